"""JSON from strangers: bounded depth, no exception but BadJson. NaN and Infinity come as floats, for the reader to report."""

from __future__ import annotations

import json
from collections.abc import Mapping

from lim_core.types import Json

# Deep enough for traces of agents, far from what would exhaust the interpreter's own stack.
MAX_DEPTH = 150
# A bomb of small arrays takes some 60 bytes of memory for 3 of text; real files hold far fewer brackets.
MAX_CONTAINERS = 1_500_000


class BadJson(ValueError):
    """The text is no JSON, or JSON that is too deep or too many-membered. `line` and `column` count from 1, 0 = unknown."""

    def __init__(self, message: str, line: int = 0, column: int = 0, *, bomb: bool = False) -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.bomb = bomb


def _int(word: str) -> int | float | None:
    # Python refuses to read very long numbers; no id or count is that long.
    return int(word) if len(word) < 400 else None


_DECODER = json.JSONDecoder(parse_int=_int, strict=False)


def loads(text: str) -> Json:
    """Parse one JSON value; control characters in strings are let in.

    Raises:
        BadJson: no JSON, deeper than 150, or more than 1.5 million arrays and objects.
    """
    if text.count("[") + text.count("{") > MAX_CONTAINERS:
        raise BadJson("more than 1.5 million arrays and objects", bomb=True)
    value, end = decode(text, 0)
    if text[end : end + 200].strip() or text[end:].strip():
        raise BadJson("something follows the end of the value", *_place(text, end))
    return value


def decode(text: str, start: int) -> tuple[Json, int]:
    """Parse the JSON value that begins at `start`, blanks skipped; returns it with the index after it.

    Raises:
        BadJson: no JSON, or deeper than 150.
    """
    while start < len(text) and text[start] in " \t\n\r\ufeff":
        start += 1
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise BadJson(error.msg, error.lineno, error.colno) from error
    except RecursionError as error:
        raise BadJson("nested too deeply", bomb=True) from error
    except ValueError as error:
        raise BadJson("a number that cannot be read") from error
    check_depth(value)
    return value, end


def check_depth(value: Json) -> None:
    """Refuse what is nested deeper than the walkers may follow.

    Raises:
        BadJson: deeper than 150.
    """
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        below: list[Json] = []
        for item in level:
            if isinstance(item, Mapping):
                below += [v for v in item.values() if isinstance(v, list | dict)]
            elif isinstance(item, list):
                below += [v for v in item if isinstance(v, list | dict)]
        if not below:
            return
        level = below
    raise BadJson("nested too deeply", bomb=True)


def _place(text: str, index: int) -> tuple[int, int]:
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)
