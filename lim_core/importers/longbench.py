"""LongBench v2 rows."""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.importers.drafts.draft import Draft, DraftChunk, Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.chunk_shapes import plain_chunk
from lim_core.importers.shapes.fields import label, listed, text
from lim_core.importers.shapes.search import Hit, read_rows, see_rows
from lim_core.types import Json

_CHOICES = ("choice_A", "choice_B", "choice_C", "choice_D")


@importers.register("longbench", title="LongBench v2 rows", order=120)
class LongBench:
    """A question with four choices over one long context, with the retrieved pieces of it where they are there."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By the four choices."""
        return see_rows(source, _is_row, 0.97, "question with choice_A to choice_D")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a row; the right answer is the text of the right choice."""
        return read_rows(source, _is_row, _draft)


def _is_row(row: Mapping[str, Json]) -> bool:
    return "question" in row and sum(name in row for name in _CHOICES) >= 2


def _draft(row: Mapping[str, Json], hit: Hit) -> Draft | str:
    question = text(row.get("question"))
    if question is None:
        return "no question"
    lines = [f"({name[-1]}) {label(row[name])}" for name in _CHOICES if label(row.get(name))]
    letter = label(row.get("answer"))[:1].upper()
    right = label(row.get(f"choice_{letter}")) if letter else ""
    found = row.get("retrieved_context")
    pieces = (plain_chunk(item) for item in listed(found))
    notes = ["the answer looked for is the text of the right choice; a reply of one letter counts as wrong"]
    whole = text(row.get("context"))
    if found is not None:
        chunks: tuple[DraftChunk, ...] | None = tuple(chunk for chunk in pieces if chunk is not None)
    elif whole is not None:
        chunks = (DraftChunk(whole),)
        notes.append("the whole context is one chunk: split it for a position test")
    else:
        chunks = None
    return Draft(
        id=row.get("_id"),
        question="\n".join([question, *lines]),
        answers=(right,) if right else (),
        chunks=chunks,
        notes=tuple(notes),
    )
