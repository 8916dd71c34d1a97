"""Typed reading of the fields of one case object: each value checked, each oddity named once."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice

from lim_core.errors import InputError
from lim_core.types import Json

MAX_DEPTH = 64
# No token count comes near; beyond 2^53 other programs would read another number.
MAX_COUNT = 2**53
# Files can be hostile: no message grows with the file.
_MAX_KEYS = 20
_MAX_LINES = 50
_SURROGATE = re.compile("[\ud800-\udfff]")


class Notes:
    """Warnings in order of appearance; the same oddity in many places becomes one warning that counts them."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, int]] = {}

    def add(self, where: str, what: str) -> None:
        """Note that `what` was seen at `where`, a path such as `chunks[3].id`."""
        first, count = self._seen.get(what, (where, 0))
        self._seen[what] = first, count + 1

    def lines(self) -> tuple[str, ...]:
        """One sentence a kind of oddity."""
        return few(_line(what, first, count) for what, (first, count) in self._seen.items())


def few(lines: Iterable[str]) -> tuple[str, ...]:
    """As many lines as a person reads, the empty ones left out, and how many more there are."""
    found = [one for one in lines if one]
    if len(found) <= _MAX_LINES:
        return tuple(found)
    return (*found[:_MAX_LINES], f"There are {len(found) - _MAX_LINES} more warnings like these.")


def _line(what: str, first: str, count: int) -> str:
    sentence = f"{first} {what}" if count == 1 else f"{first} and {count - 1} more: {what}"
    return sentence if sentence.endswith("?") else f"{sentence}."


class Fields:
    """The fields of one JSON object, read by type. `null` is the same as absent.

    Every method raises InputError with one sentence that names the field where the value has another type.
    """

    def __init__(self, values: Mapping[str, Json], path: str, notes: Notes) -> None:
        self.values = values
        self.path = path
        self.notes = notes

    def where(self, name: str) -> str:
        """Path of a field, as in `chunks[3].text`."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(name) is not None

    def text(self, name: str) -> str | None:
        value = self.values.get(name)
        if value is None:
            return None
        return text_of(value, self.where(name), self.notes)

    def identifier(self, name: str) -> str | None:
        """An id: text, or a number that becomes text with a warning; None where absent or blank."""
        value = self.values.get(name)
        return None if value is None else identifier_of(value, self.where(name), self.notes)

    def identifiers(self, name: str) -> tuple[str, ...]:
        """A list of ids without doubles."""
        found = []
        for index, value in enumerate(self.items(name) or ()):
            where = f"{self.where(name)}[{index}]"
            if value is None:
                raise InputError(f"{where} must be an id in quotes, not null.")
            one = identifier_of(value, where, self.notes)
            if one is not None:
                found.append(one)
        return tuple(dict.fromkeys(found))

    def texts(self, name: str) -> tuple[str, ...]:
        items = self.items(name) or ()
        return tuple(text_of(value, f"{self.where(name)}[{i}]", self.notes) for i, value in enumerate(items))

    def items(self, name: str) -> Sequence[Json] | None:
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            hint = ": put it in square brackets" if isinstance(value, str | int | float) else ""
            raise InputError(f"{self.where(name)} must be a list, not {kind_of(value)}{hint}.")
        return value

    def mapping(self, name: str) -> Mapping[str, Json]:
        """An object of free content, made strict: no NaN, no lone surrogates, at most 64 levels deep."""
        value = self.values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise InputError(f"{self.where(name)} must be an object in curly brackets, not {kind_of(value)}.")
        return dict(_strict_object(value, self.where(name), self.notes, 1))

    def count(self, name: str, least: int) -> int | None:
        """A whole number of at least `least`."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{self.where(name)} must be a whole number, not {kind_of(value)}.")
        if isinstance(value, float) and not value.is_integer():
            raise InputError(f"{self.where(name)} must be a whole number, not {value}.")
        if not least <= value <= MAX_COUNT:
            size = f"at least {least}" if value < least else "far smaller"
            raise InputError(f"{self.where(name)} must be {size}.")
        return int(value)

    def score(self, name: str) -> float | None:
        """A finite number; NaN and infinity become unknown, with a warning."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{self.where(name)} must be a number, not {kind_of(value)}.")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.notes.add(self.where(name), "is not a finite number and is taken as unknown (null)")
            return None
        return number

    def flag(self, name: str) -> bool | None:
        value = self.values.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise InputError(f"{self.where(name)} must be true, false or null, not {kind_of(value)}.")

    def warn_unknown(self, known: Sequence[str]) -> None:
        """Note every key that is not read, with the nearest one that is."""
        unknown = [key for key in self.values if key not in known]
        here, place = self.path or "The case", re.sub(r"\[\d+\]", "", self.path) or "the case"
        for key in unknown[:_MAX_KEYS]:
            hint = f"; did you mean {near}?" if (near := nearest(key, known, self.values)) else ""
            self.notes.add(here, f"has the unknown key {shown(key)}, ignored in {place}{hint}")
        if len(unknown) > _MAX_KEYS:
            self.notes.add(here, f"has {len(unknown) - _MAX_KEYS} more unknown keys, all ignored")


# Names that other tools give to the fields of a case or chunk.
_SYNONYMS: Mapping[str, str] = {
    "query": "question",
    "input": "question",
    "user_input": "question",
    "contexts": "chunks",
    "ctxs": "chunks",
    "documents": "chunks",
    "passages": "chunks",
    "context": "chunks",
    "retrieved_contexts": "chunks",
    "page_content": "text",
    "content": "text",
    "body": "text",
    "doc_id": "id",
    "chunk_id": "id",
    "similarity": "score",
    "distance": "score",
    "response": "answer",
    "output": "answer",
    "reference": "answers",
    "ground_truth": "answers",
    "expected": "answers",
    "messages": "prompt",
    "gold": "gold_ids",
    "gold_id": "gold_ids",
    "num_ctx": "context_window",
    "max_tokens": "max_output_tokens",
}


def nearest(key: str, known: Sequence[str], taken: Mapping[str, Json]) -> str | None:
    """The known field that a key was probably meant to be, unless that field is there as well."""
    meant = _SYNONYMS.get(key.lower())
    if meant not in known:
        meant = next(iter(get_close_matches(key.lower(), known, n=1, cutoff=0.75)), None)
    return meant if meant is not None and taken.get(meant) is None else None


def meant_for(name: str, known: Sequence[str], values: Mapping[str, Json]) -> str:
    """Hint for a missing field: the key in the object that was probably meant to be it."""
    key = next((key for key in islice(values, 100) if key not in known and nearest(key, known, values) == name), None)
    return f"; did you mean it by {shown(key)}?" if key is not None else "."


def text_of(value: Json, where: str, notes: Notes) -> str:
    """A text; halves of surrogate pairs, which nothing can store, become U+FFFD.

    Raises:
        InputError: it is no text.
    """
    if not isinstance(value, str):
        hint = ": put it in quotes" if isinstance(value, int | float) and not isinstance(value, bool) else ""
        raise InputError(f"{where} must be a text, not {kind_of(value)}{hint}.")
    if value.isascii() or not _SURROGATE.search(value):
        return value
    notes.add(where, "holds half characters (lone surrogates), shown as \ufffd")
    return _SURROGATE.sub("\ufffd", value)


def identifier_of(value: Json, where: str, notes: Notes) -> str | None:
    """An id as text, None where it is blank."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{where} must be an id in quotes, not {kind_of(value)}.")
    if isinstance(value, str):
        name = text_of(value, where, notes)
        if not name.strip():
            notes.add(where, "is an empty id and is taken as absent")
            return None
        return name
    if isinstance(value, float) and not math.isfinite(value):
        notes.add(where, "is no id (not a number) and is taken as absent")
        return None
    notes.add(where, "is a number and is read as text")
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def kind_of(value: Json) -> str:
    """The JSON type of a value, for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "an object" if isinstance(value, Mapping) else "a list"


def shown(key: str) -> str:
    """A name from a file in quotes, printable and short."""
    clean = "".join(c if c.isprintable() else "\ufffd" for c in _SURROGATE.sub("\ufffd", key))
    return f'"{clean}"' if len(clean) <= 40 else f'"{clean[:40]}..."'


def _strict(value: Json, where: str, notes: Notes, depth: int) -> Json:
    if depth > MAX_DEPTH:
        raise InputError(f"{where[:60]} is nested deeper than {MAX_DEPTH} levels: flatten it.")
    if isinstance(value, str):
        return text_of(value, where, notes)
    if isinstance(value, float) and not math.isfinite(value):
        notes.add(where, "is not a finite number and is taken as unknown (null)")
        return None
    if isinstance(value, dict):
        return dict(_strict_object(value, where, notes, depth + 1))
    if isinstance(value, list):
        return [_strict(item, f"{where}[{i}]", notes, depth + 1) for i, item in enumerate(value)]
    return value


def _strict_object(value: Mapping[str, Json], where: str, notes: Notes, depth: int) -> list[tuple[str, Json]]:
    return [
        (text_of(key, where, notes), _strict(item, f"{where}.{key[:40]}", notes, depth)) for key, item in value.items()
    ]
