"""The data of Liu et al. ("Lost in the Middle"), and of dense passage retrieval, which has the same rows."""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.importers.drafts.draft import Draft, DraftChunk, Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.chunk_shapes import plain_chunk
from lim_core.importers.shapes.fields import listed, mapping, strings, text
from lim_core.importers.shapes.search import Hit, read_rows, see_rows
from lim_core.types import Json


@importers.register("liu", title="Liu et al. questions", order=130)
class Liu:
    """Rows with question, answers and ctxs; the gold passage is marked isgold and has neither id nor score."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By `ctxs` beside a question."""
        return see_rows(source, _is_row, 0.97, "question with ctxs")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a row."""
        return read_rows(source, _is_row, _draft)


def _is_row(row: Mapping[str, Json]) -> bool:
    return isinstance(row.get("ctxs"), list) and ("question" in row or "answers" in row)


def _draft(row: Mapping[str, Json], hit: Hit) -> Draft:
    chunks: list[DraftChunk] = []
    for item in listed(row.get("ctxs")):
        chunk = plain_chunk(item)
        if chunk is not None:
            chunks.append(chunk)
    annotated = mapping(row.get("nq_annotated_gold"))
    gold = () if any(chunk.gold for chunk in chunks) else strings(annotated.get("chunked_long_answer"))
    return Draft(
        id=row.get("id"),
        question=text(row.get("question")),
        answers=strings(row.get("answers")),
        chunks=tuple(chunks),
        gold_texts=gold,
    )
