"""lim's own case files, read with more patience than `diagnose` has."""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.importers.drafts.draft import Draft, Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.fields import label, listed
from lim_core.importers.shapes.search import Hit, read_rows, see_rows
from lim_core.types import Json

_MAX_NOTES = 200
_LISTS = ("chunks", "candidates", "corpus")
_OWN = ("gold_ids", "candidates", "corpus", "score_direction", "forbidden_ids", "answers", "context_window", "prompt")


@importers.register("lim", title="lim cases", order=0)
class Own:
    """Cases as the README shows them, one object, an array or JSON lines. Doubled ids are renamed, NaN becomes null."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By question and chunks, or chunks with another field of a case."""
        return see_rows(source, _is_row, 0.98, "question with chunks")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case an object."""
        return read_rows(source, _is_row, _draft)


def _is_row(row: Mapping[str, Json]) -> bool:
    chunks = row.get("chunks")
    if isinstance(chunks, list) and all(isinstance(item, str) or _is_chunk(item) for item in chunks[:20]):
        return "question" in row or sum(name in row for name in _OWN) >= 2
    return chunks is None and isinstance(row.get("question"), str) and "prompt" in row and "answers" in row


def _is_chunk(item: Json) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("text"), str)


def _draft(row: Mapping[str, Json], hit: Hit) -> Draft:
    own = dict(row)
    notes: list[str] = []
    for name in _LISTS:
        items = own.get(name)
        if isinstance(items, list):
            own[name] = _unique(items, name, notes)
    if any(isinstance(key, int | float) for key in (own.get("id"), *_given_ids(row))):
        notes.append("ids that are numbers were turned into strings")
    return Draft(own=own, notes=tuple(notes))


def _given_ids(row: Mapping[str, Json]) -> list[Json]:
    return [item.get("id") for name in _LISTS for item in listed(row.get(name)) if isinstance(item, Mapping)]


def _unique(items: list[Json], name: str, notes: list[str]) -> list[Json]:
    """The list with doubled ids renamed, so that every chunk has its own."""
    taken = {label(item.get("id")) for item in items if isinstance(item, Mapping)}
    seen: set[str] = set()
    # Without the next number to try, many equal ids would cost their square.
    copies: dict[str, int] = {}
    found: list[Json] = []
    for item in items:
        key = label(item.get("id")) if isinstance(item, Mapping) else ""
        if not isinstance(item, Mapping) or not key:
            found.append(item)
            continue
        copy = copies.get(key, 1)
        fresh = key if copy == 1 else f"{key}#{copy}"
        while fresh in seen or (copy > 1 and fresh in taken):
            copy += 1
            fresh = f"{key}#{copy}"
        copies[key] = copy
        if fresh != key and len(notes) < _MAX_NOTES:
            notes.append(f"{name}: the id {key} stands twice, the later one is now {fresh}")
        seen.add(fresh)
        found.append({**item, "id": fresh})
    return found
