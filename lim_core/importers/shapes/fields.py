"""Small readings of one untrusted JSON value; none of them raises."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lim_core.importers.files.strict import BadJson, loads
from lim_core.types import Json

QUESTION_NAMES = (
    "question",
    "query",
    "user_input",
    "user_query",
    "user_question",
    "query_str",
    "q",
    "input",
    "inputs",
    "prompt",
    "text",
    "message",
)
ANSWER_NAMES = ("answer", "response", "output", "outputs", "actual_output", "result", "text", "content", "generation")
EXPECTED_NAMES = (
    "answers",
    "expected_answer",
    "expected_output",
    "expected",
    "reference",
    "reference_answer",
    "ground_truth",
    "ground_truths",
    "gold_answer",
    "gt_answer",
)


def mapping(value: Json) -> Mapping[str, Json]:
    """The object, or an empty one."""
    if isinstance(value, dict):
        return value
    return value if isinstance(value, Mapping) else {}


def listed(value: Json) -> Sequence[Json]:
    """The array, or an empty one; a string is no array."""
    return value if isinstance(value, list | tuple) else ()


def text(value: Json) -> str | None:
    """A string that is not blank."""
    return value if isinstance(value, str) and value.strip() else None


def label(value: Json) -> str:
    """A string or number as a short label, else empty."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def first(record: Mapping[str, Json], *names: str) -> Json:
    """The first of these fields that is there and not null."""
    for name in names:
        value = record.get(name)
        if value is not None:
            return value
    return None


def number(value: Json) -> float | None:
    """A finite number, or a string that is one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def whole(value: Json) -> int | None:
    """A whole number of at least 0, such as a token count."""
    found = number(value)
    return int(found) if found is not None and found >= 0 and found == int(found) and found < 1e15 else None


def opened(value: Json) -> Json:
    """The value inside a string that holds JSON; anything else as it is."""
    if isinstance(value, str):
        bare = value.strip()
        if len(bare) > 1 and bare[0] + bare[-1] in ("{}", "[]", '""'):
            try:
                return loads(bare)
            except BadJson:
                return value
    return value


def dig(value: Json, path: str) -> Json:
    """Follow dotted names through objects; None where the way ends."""
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def strings(value: Json) -> tuple[str, ...]:
    """The non-blank strings of an array, or one string alone; numbers become strings."""
    items = value if isinstance(value, list | tuple) else (value,)
    return tuple(word for word in (label(item) for item in items) if word)


def question_in(value: Json) -> str | None:
    """The question in a run's input: a string, a named field, or the last user message."""
    found = opened(value)
    if isinstance(found, str):
        return found.strip() or None
    if isinstance(found, Mapping):
        for name in QUESTION_NAMES:
            inner = found.get(name)
            if isinstance(inner, str) and inner.strip():
                return inner.strip()
        for name in ("input", "inputs", "args", "kwargs", "messages", "input_value"):
            inner = found.get(name)
            if isinstance(inner, Mapping) or (isinstance(inner, list) and inner):
                deeper = question_in(inner)
                if deeper:
                    return deeper
        return text(next(iter(found.values()))) if len(found) == 1 else None
    if isinstance(found, list | tuple):
        return _last_user(found)
    return None


def _last_user(items: Sequence[Json]) -> str | None:
    from lim_core.importers.shapes.messages import read_messages

    turns = read_messages(items)
    if turns is not None:
        return next((turn["content"].strip() for turn in reversed(turns) if turn["role"] == "user"), None)
    return text(items[0]) if len(items) == 1 else None


def answer_in(value: Json) -> str | None:
    """The answer in a run's output: a string, a named field, a message or a list of choices."""
    found = opened(value)
    for _ in range(6):
        if isinstance(found, str):
            return found.strip() or None
        if isinstance(found, list | tuple):
            parts = [part for part in found if isinstance(part, Mapping) and isinstance(part.get("text"), str)]
            if parts and len(parts) == len(found):
                return "".join(str(part["text"]) for part in parts).strip() or None
            found = found[-1] if found else None
        elif isinstance(found, Mapping):
            found = first(found, *ANSWER_NAMES, "message", "choices", "generations", "kwargs", "parts")
        else:
            return None
    return None


def expected_in(record: Mapping[str, Json]) -> tuple[str, ...]:
    """Right answers under any of the usual names, doubles dropped."""
    for name in EXPECTED_NAMES:
        found = strings(record[name]) if name in record else ()
        if found:
            return tuple(dict.fromkeys(found))
    return ()
