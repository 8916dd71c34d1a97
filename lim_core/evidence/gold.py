"""Which chunks of a case hold the answer: the gold, those that would spoil a position test, and open questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lim_core.text.normalise import contains_any
from lim_core.types import Case, Chunk

FoundBy = Literal["gold_id", "alias"]


@dataclass(frozen=True, slots=True)
class Gold:
    """The evidence of a case.

    `ids` are the gold chunks, in the order of `gold_ids`; they may stand in candidates or corpus only.
    `spoilers` are retrieved chunks that are not gold, hold an answer or a gold chunk's text, and are not confirmed as
    harmless.
    `ambiguous` are the retrieved chunks with an answer where no gold id is known and there are several; `ids` is empty then.
    """

    ids: tuple[str, ...]
    found_by: FoundBy | None
    spoilers: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()


def gold_of(case: Case) -> Gold:
    """Find the gold by id, else by alias among the retrieved chunks.

    Gold ids in none of the lists are ignored. Without a known one, a single retrieved chunk with an answer is the gold.
    """
    lists = (case.chunks, case.candidates or (), case.corpus or ())
    known = {chunk.id for part in lists for chunk in part}
    ids = tuple(one for one in case.gold_ids if one in known)
    left_out = {*ids, *case.harmless_ids}
    rest = [chunk for chunk in case.chunks if chunk.id not in left_out]
    others = holders(case, rest)
    if ids:
        spoilers = {*others, *copies(case, ids)}
        return Gold(ids, "gold_id", spoilers=tuple(chunk.id for chunk in rest if chunk.id in spoilers))
    if len(others) == 1:
        return Gold(others, "alias")
    return Gold((), None, ambiguous=others)


def copies(case: Case, ids: Sequence[str]) -> frozenset[str]:
    """Ids of retrieved chunks with the text of one of these, white space aside, under another id.

    What a gold chunk says in its own words they say too, so they spoil a position test, and a gold chunk that seems not
    to be retrieved may be one of them.
    """
    lists = (case.chunks, case.candidates or (), case.corpus or ())
    texts = {" ".join(chunk.text.split()) for part in lists for chunk in part if chunk.id in ids} - {""}
    return frozenset(c.id for c in case.chunks if c.id not in ids and " ".join(c.text.split()) in texts)


def holders(case: Case, chunks: Sequence[Chunk]) -> tuple[str, ...]:
    """Ids of the chunks that hold an accepted answer in their text or title, in their order."""
    return tuple(chunk.id for chunk in chunks if holds_answer(case, chunk))


def holds_answer(case: Case, chunk: Chunk) -> bool:
    """Whether an accepted answer stands in the chunk's text or in its title, which the prompt shows too."""
    return contains_any(case.answers, chunk.text) or bool(chunk.title and contains_any(case.answers, chunk.title))
