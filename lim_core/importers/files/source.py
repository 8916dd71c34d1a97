"""A file or a paste as importers see it: its text, how it was written, and the values in it with their lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from lim_core.errors import InputError
from lim_core.importers.drafts.draft import Skipped
from lim_core.importers.files.literals import read_literal
from lim_core.importers.files.strict import BadJson, decode, loads
from lim_core.importers.files.tables import read_table
from lim_core.importers.files.unpack import unpack
from lim_core.importers.files.yaml_text import read_yaml
from lim_core.types import Json

Kind = Literal["json", "jsonl", "python", "yaml", "csv", "text"]

# Printed objects are read by Python, some 2 MB a second.
_PRINTED_CHARACTERS = 2_000_000
_STARTS_A_LINE = 5
_YAML_KEYS = re.compile(r"^(?:tests|prompts|providers|scenarios|description):", re.MULTILINE)
_CALL = re.compile(r"\s*(?:[\[({]\s*){0,9}[A-Za-z_][\w.]*\s*\(|\s*[A-Za-z_]\w*='", re.ASCII)
_BETWEEN = re.compile(r"[\s,;]*")


@dataclass(frozen=True, slots=True)
class Record:
    """One value of the file and the line it begins on, from 1; None where lines do not tell."""

    value: Json
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """All of a file. `records` are the values of JSON, JSONL, YAML, printed Python and table rows; empty for plain text."""

    name: str
    kind: Kind
    text: str
    records: tuple[Record, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    packing: str = ""
    encoding: str = "utf-8"

    def sample(self, records: int = 40, items: int = 40) -> Source:
        """The head of the file, long arrays cut, so that recognising costs little."""
        cut = [replace(record, value=_cut(record.value, items, 20)) for record in self.records[:records]]
        return replace(self, text=self.text[:200_000], records=tuple(cut))


def read_source(data: bytes, name: str, format: str = "auto") -> Source:
    """Unpack, decode and parse. Text that is neither JSON, YAML, a table nor printed Python stays plain text.

    Raises:
        InputError: too large, no text, nested too deeply, or JSON that is broken past use.
    """
    unpacked = unpack(data, name)
    text = unpacked.text
    suffix = name.lower().removesuffix(".gz").rpartition(".")[2]
    if format == "text":
        found = Source(name, "text", text)
    elif suffix in ("yaml", "yml") or (format == "promptfoo" and text.lstrip()[:1] not in ("{", "[")):
        found = _yaml(text, name)
    elif suffix in ("csv", "tsv") or format == "table":
        found = _tabled(text, name) or Source(name, "text", text)
    else:
        found = _structured(text, name, suffix)
    return replace(_upright(found), packing=unpacked.packing, encoding=unpacked.encoding)


def _structured(text: str, name: str, suffix: str) -> Source:
    start = text.lstrip()[:1]
    problem: BadJson | None = None
    if start in ("{", "["):
        try:
            return Source(name, "json", text, (Record(loads(text), 1),))
        except BadJson as error:
            problem = _refuse_bomb(error, name)
        lines = _lines(text, name, suffix == "jsonl")
        if lines is not None:
            return lines
        several = _in_a_row(text, name)
        if several is not None:
            return several
    if start in ("{", "[", "(") or _CALL.match(text):
        printed = _printed(text, name)
        if printed is not None:
            return printed
    if problem is not None:
        if _looks_like_json(text):
            place = f" at line {problem.line}, column {problem.column}" if problem.line else ""
            raise InputError(f"{name} is broken JSON ({problem}{place}): paste all of it, or correct it there.")
        return Source(name, "text", text)
    if _YAML_KEYS.search(text[:5_000]) and re.search(r"^(?:tests|prompts|providers):", text, re.MULTILINE):
        try:
            return _yaml(text, name)
        except InputError:
            return Source(name, "text", text)
    return _logged(text, name) or _tabled(text, name) or Source(name, "text", text)


def _upright(source: Source) -> Source:
    """Turn data frames that were saved column by column (`to_json()` with its default) into rows, envelopes around or not."""
    if len(source.records) != 1:
        return source
    record = source.records[0]
    turned = _turned(record.value, 4)
    if turned is record.value:
        return source
    note = "a data frame saved column by column was turned into rows"
    return replace(source, records=(Record(turned, record.line),), notes=(*source.notes, note))


def _turned(value: Json, depth: int) -> Json:
    rows = _rows_of_columns(value) if isinstance(value, dict) else None
    if rows is not None:
        return rows
    if depth == 0:
        return value
    if isinstance(value, dict) and len(value) < 20:
        inner = {key: _turned(item, depth - 1) for key, item in value.items()}
        return inner if any(inner[key] is not value[key] for key in inner) else value
    if isinstance(value, list) and len(value) == 1:
        only = _turned(value[0], depth - 1)
        return [only] if only is not value[0] else value
    return value


def _rows_of_columns(value: dict[str, Json]) -> Json:
    columns = list(value.values())
    head = columns[0] if len(columns) > 1 else None
    if not isinstance(head, dict) or not head:
        return None
    counted = all(key.isascii() and key.isdecimal() and len(key) < 9 for key in head)
    if not counted and not any(name.startswith(("attributes.", "context.")) for name in value):
        return None
    if any(not isinstance(column, dict) or column.keys() != head.keys() for column in columns):
        return None
    keys = sorted(head, key=int) if counted else list(head)
    return [{name: column[key] for name, column in value.items() if isinstance(column, dict)} for key in keys]


def _refuse_bomb(error: BadJson, name: str) -> BadJson:
    if error.bomb:
        raise InputError(f"{name} is refused ({error}): give a plainer file.") from error
    return error


def _looks_like_json(text: str) -> bool:
    """An object or array with a quoted key or several quotes near its start, rather than prose in brackets."""
    return bool(re.match(r"\s*(?:\[\s*){0,9}(?:\{\s*\"|\[\s*[\[{\"])", text))


def _lines(text: str, name: str, surely: bool) -> Source | None:
    """JSON lines: at least one line is a value by itself, and no line but whole values or faults."""
    records: list[Record] = []
    skipped: list[Skipped] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = loads(line)
        except BadJson as error:
            skipped.append(Skipped(f"no JSON ({error})", number))
            if not surely and len(skipped) > 20 and len(skipped) > 3 * len(records):
                return None
            continue
        if isinstance(value, list | dict):
            records.append(Record(value, number))
        else:
            skipped.append(Skipped("neither an object nor an array", number))
    if not records or (not surely and len(records) < len(skipped)) or (len(records) == 1 and skipped and not surely):
        return None
    return Source(name, "jsonl", text, tuple(records), tuple(skipped))


def _in_a_row(text: str, name: str) -> Source | None:
    """Several JSON values one after another, over as many lines as they like."""
    records: list[Record] = []
    line, counted = 1, 0
    begin = _next(text, 0)
    while begin < len(text):
        try:
            value, end = decode(text, begin)
        except BadJson:
            return None
        line += text.count("\n", counted, begin)
        counted = begin
        records.append(Record(value, line))
        begin = _next(text, end)
    return Source(name, "json", text, tuple(records)) if len(records) > 1 else None


def _next(text: str, at: int) -> int:
    found = _BETWEEN.match(text, at)
    return found.end() if found else at


def _printed(text: str, name: str) -> Source | None:
    if len(text) > _PRINTED_CHARACTERS:
        if _looks_like_json(text) or not re.match(r"\s*(?:\{\s*'|(?:[\[(]\s*){0,9}[A-Z]\w{0,60}\()", text):
            return None
        raise InputError(f"{name} is printed Python of more than 2 MB: save it as JSON.")
    try:
        value = read_literal(text)
    except BadJson as error:
        _refuse_bomb(error, name)
        return None
    return Source(name, "python", text, (Record(value, 1),)) if isinstance(value, list | dict) else None


def _logged(text: str, name: str) -> Source | None:
    """Log lines that end in, or hold, a JSON object: the object of each line is taken."""
    records: list[Record] = []
    skipped: list[Skipped] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        value = _object_in(line)
        if value is None:
            skipped.append(Skipped("a log line without a JSON object", number))
            if len(skipped) > 200 and not records:
                return None
        else:
            records.append(Record(value, number))
    if not records or len(records) * 3 < len(skipped):
        return None
    return Source(name, "jsonl", text, tuple(records), tuple(skipped), ("the JSON objects were cut out of log lines",))


def _object_in(line: str) -> Json:
    at = -1
    for _ in range(_STARTS_A_LINE):
        found = [index for index in (line.find("{", at + 1), line.find("[{", at + 1)) if index >= 0]
        if not found:
            return None
        at = min(found)
        # Prose and templates hold braces too; an object has a quoted key.
        if not re.match(r"\[?\{\s*\"", line[at : at + 20]):
            continue
        try:
            value, end = decode(line, at)
        except BadJson:
            continue
        rest = len(line) - end
        return value if rest < 200 and len(line) - at > 40 else None
    return None


def _yaml(text: str, name: str) -> Source:
    records = tuple(Record(value, None) for value in read_yaml(text, name) if isinstance(value, list | dict))
    return Source(name, "yaml" if records else "text", text, records)


def _tabled(text: str, name: str) -> Source | None:
    found = read_table(text, name)
    if found is None:
        return None
    return Source(name, "csv", text, tuple(Record(row, line) for line, row in found.rows), found.skipped)


def _cut(value: Json, items: int, depth: int) -> Json:
    if depth == 0:
        return None if isinstance(value, list | dict) else value
    if isinstance(value, list):
        return [_cut(item, items, depth - 1) for item in value[:items]]
    if isinstance(value, dict):
        return {key: _cut(inner, items, depth - 1) for key, inner in list(value.items())[:200]}
    return value
