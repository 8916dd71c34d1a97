"""Plain records: a table or a JSON list of chunks, or rows of question and contexts, in nobody's names in particular."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lim_core.importers.drafts.draft import Draft, DraftChunk, Reading, Sighting, Skipped
from lim_core.importers.files.source import Record, Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.chunk_shapes import any_chunks, plain_chunk
from lim_core.importers.shapes.fields import QUESTION_NAMES, expected_in, first, label, mapping, number, text
from lim_core.importers.shapes.search import MAX_CHUNKS, Hit, read_lists, read_rows, see_lists, see_rows
from lim_core.types import Json

_QUESTIONS = tuple(name for name in QUESTION_NAMES if name not in ("text", "message", "prompt", "inputs"))
_CONTEXTS = (
    "contexts",
    "context",
    "documents",
    "docs",
    "passages",
    "chunks",
    "retrieved",
    "retrieved_documents",
    "sources",
    "results",
    "hits",
    "matches",
    "source_documents",
    "search_results",
)
_RANKS = ("rank", "position", "order", "index", "no", "#")


@importers.register("table", title="CSV, TSV and tables of chunks", order=150)
class Table:
    """Rows of chunks, with their question beside them or not; rows of one question each with a list of contexts."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """Any table with a column of texts."""
        if source.kind != "csv":
            return None
        rows = [record for record in source.records if _chunk(record.value) is not None or _contexts(record.value)]
        return Sighting(0.7, 0, "a table with a column of texts") if len(rows) * 2 > len(source.records) else None

    @staticmethod
    def read(source: Source) -> Reading:
        """Rows with the same question are one case; rank is the order of the rows, or the rank column."""
        if sum(_contexts(record.value) is not None for record in source.records) * 2 > len(source.records):
            return read_rows(source, lambda row: _contexts(row) is not None, _question_row)
        groups: dict[str, list[Record]] = {}
        skipped: list[Skipped] = []
        for record in source.records:
            if _chunk(record.value) is None:
                skipped.append(Skipped("no text in it", record.line))
                continue
            group = groups.setdefault(_question(record.value) or "", [])
            if len(group) < MAX_CHUNKS:
                group.append(record)
            elif len(skipped) < MAX_CHUNKS:
                skipped.append(Skipped(f"more than {MAX_CHUNKS} chunks for one question", record.line))
        return Reading(tuple(_chunk_rows(rows) for rows in groups.values()), tuple(skipped))


@importers.register("records", title="Plain JSON records", order=160)
class Records:
    """Lists of objects with a text, as vector stores and notebooks give them; used where no library's shape fits."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """Any list of objects with a text, or question with a list of contexts."""
        if source.kind in ("text", "csv"):
            return None
        rows = see_rows(source, lambda row: _contexts(row) is not None and _question(row) is not None, 0.6, _WHY_ROWS)
        return rows or see_lists(source, plain_chunk, 0.55, "objects with a text") or _strings(source)

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a row, or one a list."""
        if _strings(source):
            chunks = [chunk for record in source.records for chunk in any_chunks(record.value) or ()]
            return Reading((Draft(line=source.records[0].line, chunks=tuple(chunks)),))
        reading = read_rows(
            source, lambda row: _contexts(row) is not None and _question(row) is not None, _question_row
        )
        return reading if reading.drafts else read_lists(source, plain_chunk)


_WHY_ROWS = "a question with a list of texts"


def _strings(source: Source) -> Sighting | None:
    values = [record.value for record in source.records]
    if values and all(isinstance(v, list) and v and all(isinstance(item, str) for item in v) for v in values):
        return Sighting(0.5, 0, "a list of texts")
    return None


def _chunk(value: Json) -> DraftChunk | None:
    row = mapping(value)
    chunk = plain_chunk(row)
    if chunk is None:
        body = text(first(row, "context", "contexts"))
        return None if body is None else DraftChunk(body, first(row, "id", "chunk_id"), label(row.get("title")))
    return chunk if chunk.text.strip() else None


def _question(value: Json) -> str | None:
    row = mapping(value)
    return next((found for name in _QUESTIONS if (found := text(row.get(name)))), None)


def _contexts(value: Json) -> tuple[DraftChunk, ...] | None:
    row = mapping(value)
    for name in _CONTEXTS:
        found = row.get(name)
        if isinstance(found, list) and found:
            return any_chunks(found)
    return None


def _question_row(row: Mapping[str, Json], hit: Hit) -> Draft:
    return Draft(
        id=first(row, "id", "_id", "case_id"),
        question=_question(row),
        answers=expected_in(row),
        chunks=_contexts(row),
        answer=next((found for name in ("answer", "response", "output") if (found := text(row.get(name)))), None),
        model=label(row.get("model")) or None,
    )


def _chunk_rows(rows: Sequence[Record]) -> Draft:
    lead = mapping(rows[0].value)
    ranks = [number(first(mapping(record.value), *_RANKS)) for record in rows]
    notes: tuple[str, ...] = ()
    ordered = list(rows)
    known = [rank for rank in ranks if rank is not None]
    if len(known) == len(rows) and len(set(known)) == len(known) and known != sorted(known):
        ordered = [row for _, row in sorted(zip(known, rows, strict=True), key=lambda pair: pair[0])]
        notes = ("the rows were put in the order of their rank column",)
    chunks = [chunk for record in ordered if (chunk := _chunk(record.value)) is not None]
    return Draft(
        line=rows[0].line,
        question=_question(rows[0].value),
        answers=expected_in(lead) or tuple(filter(None, (text(lead.get("answer")),))),
        chunks=tuple(chunks),
        notes=notes,
    )
