"""RAGChecker results."""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.importers.drafts.draft import Draft, Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.chunk_shapes import plain_chunk
from lim_core.importers.shapes.fields import listed, strings, text
from lim_core.importers.shapes.search import Hit, read_rows, see_rows
from lim_core.types import Json


@importers.register("ragchecker", title="RAGChecker results", order=110)
class RagChecker:
    """Rows of `results` with query, gt_answer, response and retrieved_context."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By gt_answer or query_id beside a retrieved context."""
        return see_rows(source, _is_row, 0.95, "query with gt_answer and retrieved_context")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a result."""
        return read_rows(source, _is_row, _draft)


def _is_row(row: Mapping[str, Json]) -> bool:
    marks = sum(name in row for name in ("query_id", "gt_answer", "response", "retrieved_context"))
    return isinstance(row.get("query"), str) and marks >= 2 and ("gt_answer" in row or "retrieved_context" in row)


def _draft(row: Mapping[str, Json], hit: Hit) -> Draft:
    found = row.get("retrieved_context")
    chunks = (plain_chunk(item) for item in listed(found))
    return Draft(
        id=row.get("query_id"),
        question=text(row.get("query")),
        answers=strings(row.get("gt_answer")),
        chunks=None if found is None else tuple(chunk for chunk in chunks if chunk is not None),
        answer=text(row.get("response")),
    )
