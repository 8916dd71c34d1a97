"""Ids for the chunks of a case: the file's own where they can be kept, the same chunk the same id in every list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lim_core.importers.drafts.draft import DraftChunk
from lim_core.importers.shapes.fields import label

# A reference text shorter than this is found in a chunk by accident.
_SHORTEST = 20


@dataclass(frozen=True, slots=True)
class Named:
    """Lists whose chunks all have an id. `renamed` are pairs of old and new id; `ids` maps each id of the file to its new one.

    `gold` are the ids that the reference texts stand for; `extra_gold` are reference texts in none of the lists.
    """

    chunks: tuple[DraftChunk, ...]
    candidates: tuple[DraftChunk, ...] | None
    gold: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    ids: Mapping[str, str]
    extra_gold: tuple[DraftChunk, ...] = ()


class _Namer:
    def __init__(self, lists: Sequence[Sequence[DraftChunk]]) -> None:
        self.reserved = {label(chunk.id) for part in lists for chunk in part}
        self.by_both: dict[tuple[str, str], str] = {}
        self.by_text: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.renamed: dict[tuple[str, str], None] = {}
        # The next number to try for an id that stands twice; without it many equal ids would cost their square.
        self.copies: dict[str, int] = {}
        self.used: set[str] = set()

    def name(self, chunks: Sequence[DraftChunk]) -> tuple[DraftChunk, ...]:
        own: set[str] = set()
        named: list[DraftChunk] = []
        for place, chunk in enumerate(chunks, 1):
            given = label(chunk.id)
            known = self.by_both.get((given, chunk.text)) or (None if given else self.by_text.get(chunk.text))
            key = known if known is not None and known not in own else self._fresh(given, place, own)
            if given and key != given:
                self.renamed[given, key] = None
            own.add(key)
            self.used.add(key)
            self.ids.setdefault(given or key, key)
            self.by_both.setdefault((given, chunk.text), key)
            self.by_text.setdefault(chunk.text, key)
            named.append(replace(chunk, id=key))
        return tuple(named)

    def _fresh(self, given: str, place: int, own: set[str]) -> str:
        base = given or f"c{place}"
        key, copy = base, self.copies.get(base, 1)
        if copy > 1:
            key = f"{base}#{copy}"
        # An id that another list uses for another text would make two chunks one.
        while (
            key in own
            or key in self.used
            or (not given and key in self.reserved)
            or (copy > 1 and key in self.reserved)
        ):
            copy += 1
            key = f"{base}#{copy}"
        self.copies[base] = copy
        return key


def name_lists(
    chunks: Sequence[DraftChunk], candidates: Sequence[DraftChunk] | None, gold_texts: Sequence[str]
) -> Named:
    """Give every chunk an id and find the chunks that the reference texts stand for.

    A chunk without id gets `cN`, N its place from 1; a doubled id gets `#2` and so on.
    """
    namer = _Namer((chunks, candidates or ()))
    named = namer.name(chunks)
    others = None if candidates is None else namer.name(candidates)
    everything = [*named, *(others or ())]
    gold: list[str] = []
    extra: list[DraftChunk] = []
    folded = [(_folded(chunk.text), label(chunk.id)) for chunk in everything]
    for text in gold_texts:
        wanted = _folded(text)
        found = [key for body, key in folded if body == wanted]
        if not found and len(wanted) >= _SHORTEST:
            found = [key for body, key in folded if wanted in body or (len(body) >= _SHORTEST and body in wanted)]
        if found:
            gold += found
        else:
            extra.append(DraftChunk(text, f"reference-{len(extra) + 1}"))
    if extra:
        extra = list(namer.name(extra))
        gold += [label(chunk.id) for chunk in extra]
    return Named(named, others, tuple(dict.fromkeys(gold)), tuple(namer.renamed), namer.ids, tuple(extra))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
