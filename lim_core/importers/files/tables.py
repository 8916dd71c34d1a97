"""CSV and TSV: rows under a header, with cells that hold JSON or a printed list opened."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from lim_core.cases import MAX_BYTES
from lim_core.errors import InputError
from lim_core.importers.drafts.draft import Skipped
from lim_core.importers.files.literals import read_literal
from lim_core.importers.files.strict import BadJson, check_depth, loads
from lim_core.types import Json

# Rows of chunks; a table beyond this is a corpus, not a case.
_MAX_ROWS = 50_000
# A header with two of these is a table of chunks or of cases.
_COLUMNS = frozenset(
    (
        "id",
        "_id",
        "text",
        "content",
        "chunk",
        "chunk_text",
        "document",
        "context",
        "contexts",
        "passage",
        "page_content",
        "title",
        "score",
        "rank",
        "question",
        "query",
        "user_input",
        "answer",
        "answers",
        "response",
        "reference",
        "source",
        "chunk_id",
        "doc_id",
        "retrieved_contexts",
        "ground_truth",
        "input",
        "expected_output",
        "retrieval_context",
        "gold",
        "is_gold",
        "similarity",
        "distance",
        "name",
        "span_kind",
    )
)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with the line each begins on, and rows that do not fit the header."""

    rows: tuple[tuple[int, Mapping[str, Json]], ...]
    skipped: tuple[Skipped, ...]


def read_table(text: str, name: str) -> Table | None:
    """CSV or TSV with a header that holds at least two column names known here (or was named .csv)."""
    head = text.lstrip("\ufeff\n").split("\n", 1)[0]
    delimiter = max("\t,;|", key=head.count)
    named = name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
    names = [_column(cell) for cell in head.split(delimiter)]
    known = sum(1 for cell in names if cell in _COLUMNS or cell.startswith(("attributes.", "context.")))
    if (known < 2 or "\n" not in text.strip()) and not (named and known):
        return None
    # Chunks of 200,000 characters are fine here; the module's own cap is 131,072 a cell.
    csv.field_size_limit(MAX_BYTES)
    try:
        rows = _rows(text.lstrip("\ufeff\n"), delimiter)
    except csv.Error as error:
        raise InputError(f"{name} is no table that can be read ({error}): export it again.") from error
    return _under_header(rows)


def _column(cell: str) -> str:
    return cell.strip().strip('"').strip().lower().replace(" ", "_")


def _rows(text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    found: list[tuple[int, list[str]]] = []
    begin = 1
    for row in islice(reader, _MAX_ROWS + 1):
        found.append((begin, row))
        begin = reader.line_num + 1
    return found


def _under_header(rows: list[tuple[int, list[str]]]) -> Table | None:
    columns = [cell.strip() for cell in rows[0][1]] if rows else []
    kept: list[tuple[int, Mapping[str, Json]]] = []
    skipped: list[Skipped] = []
    for line, row in rows[1:]:
        if not any(cell.strip() for cell in row):
            continue
        if len(row) > len(columns):
            skipped.append(Skipped(f"{len(row)} cells under {len(columns)} columns: a quote is missing", line))
            continue
        kept.append((line, {name: _cell(cell) for name, cell in zip(columns, row, strict=False) if name}))
    if len(rows) > _MAX_ROWS:
        skipped.append(Skipped(f"rows beyond the first {_MAX_ROWS} are not read", rows[-1][0]))
    return Table(tuple(kept), tuple(skipped)) if kept else None


def _cell(cell: str) -> Json:
    """Cells that hold JSON or a printed Python list are opened; "nan" and empty are null."""
    bare = cell.strip()
    if bare in ("", "nan", "NaN", "None", "null"):
        return None
    if bare[:1] in "[{" and bare[-1:] in "]}" and len(bare) > 1:
        try:
            return loads(bare)
        except BadJson:
            pass
        try:
            # numpy prints arrays of strings without commas; the reader joins what Python would join.
            value = read_literal(re.sub(r"(?<=['\"])\s*\n\s*(?=['\"])", ", ", bare))
            check_depth(value)
            return value
        except BadJson:
            return cell
    return cell
