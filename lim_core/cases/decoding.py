"""From the bytes of a file to the objects in it: encoding, JSON or JSON lines, limits. Knows no fields."""

from __future__ import annotations

import codecs
import json
from collections.abc import Sequence
from dataclasses import dataclass

from lim_core.cases.fields import kind_of, shown
from lim_core.errors import InputError
from lim_core.types import Json

MAX_BYTES = 20 * 1024 * 1024

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class Record:
    """One object of a file: where it stands ("line 3", "entry 3", "" for a file that is one object), and its content."""

    where: str
    value: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Records:
    """The objects of a file, and keys that stand twice in one object (the last one counts)."""

    items: tuple[Record, ...]
    doubled: tuple[str, ...]


def read_records(data: bytes, name: str) -> Records:
    """Objects in a file: one JSON object, a JSON array of objects, or JSON lines. `name` is for messages.

    Raises:
        InputError: too large, no text, no JSON, or something else than objects in it.
    """
    if len(data) > MAX_BYTES:
        raise InputError(f"{name} is larger than 20 MB: cut it down, or leave out the corpus.")
    text = _decode(data, name)
    if not text.strip():
        raise InputError(f"{name} is empty: give a case as JSON with question and chunks.")
    doubled: dict[str, None] = {}
    try:
        value = _parse(text, doubled)
    except json.JSONDecodeError as error:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) > 1 and _starts_lines(lines[0][1]):
            return Records(tuple(_lines(lines, name, doubled)), tuple(doubled))
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{name} is not JSON ({error.msg} at {place}): correct it there.") from error
    except (ValueError, RecursionError) as error:
        raise _unreadable(error, name) from error
    if isinstance(value, list):
        return Records(tuple(_entry(item, f"entry {i}", name) for i, item in enumerate(value, 1)), tuple(doubled))
    return Records((_entry(value, "", name),), tuple(doubled))


def _decode(data: bytes, name: str) -> str:
    encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)
    if encoding is None:
        # JSON begins with an ASCII character, so a zero beside it tells UTF-16 without a mark.
        head = data[:2]
        encoding = "utf-16-be" if head[:1] == b"\0" else "utf-16-le" if head[1:] == b"\0" else "utf-8"
    try:
        # A lone surrogate in UTF-16 is one bad character, not a bad file; JSON escapes can hold the same.
        text = data.decode(encoding, "surrogatepass" if encoding.startswith("utf-16") else "strict")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not text in UTF-8 or UTF-16: save it as UTF-8.") from error
    return text.removeprefix("\ufeff")


def _parse(text: str, doubled: dict[str, None]) -> Json:
    def pairs(items: list[tuple[str, Json]]) -> dict[str, Json]:
        result = dict(items)
        if len(result) < len(items):
            seen: set[str] = set()
            for key, _ in items:
                if key in seen and len(doubled) < 20:
                    doubled[shown(key)] = None
                seen.add(key)
        return result

    # NaN and Infinity are no JSON; they are let in here as floats and taken as unknown field by field.
    value: Json = json.loads(text, object_pairs_hook=pairs, parse_constant=float)
    return value


def _starts_lines(line: str) -> bool:
    """Whether the first line of a file is an object by itself, so that the file is JSON lines."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _lines(lines: Sequence[tuple[int, str]], name: str, doubled: dict[str, None]) -> list[Record]:
    records = []
    for number, line in lines:
        try:
            value = _parse(line, doubled)
        except json.JSONDecodeError as error:
            place = f"line {number}, column {error.colno}"
            raise InputError(f"{name} is not JSON lines ({error.msg} at {place}): correct it there.") from error
        except (ValueError, RecursionError) as error:
            raise _unreadable(error, f"{name}, line {number},") from error
        records.append(_entry(value, f"line {number}", name))
    return records


def _entry(value: Json, where: str, name: str) -> Record:
    if isinstance(value, dict):
        return Record(where, value)
    place = f"{name}, {where}," if where else name
    raise InputError(f"{place} is {kind_of(value)}, not a case: a case is an object with question and chunks.")


def _unreadable(error: Exception, place: str) -> InputError:
    if isinstance(error, RecursionError):
        return InputError(f"{place} is nested too deeply to be a case: flatten it.")
    return InputError(f"{place} holds a number with too many digits: write it as a text or shorten it.")
