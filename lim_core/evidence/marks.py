"""Proposes the gold chunks of a case from its right answers: those that hold one, else the nearest by embedding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lim_core.evidence.gold import gold_of
from lim_core.text.normalise import find_aliases
from lim_core.types import Case, Embedder

# More proposals than this help nobody choose.
NEAREST = 3


@dataclass(frozen=True, slots=True)
class Mark:
    """A right answer found in a retrieved chunk: half-open character range in the chunk's text."""

    chunk_id: str
    alias: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Near:
    """A chunk near to question and answer; cosine similarity in [-1, 1]."""

    chunk_id: str
    similarity: float


@dataclass(frozen=True, slots=True)
class GoldMarks:
    """What could be gold. `nearest` is filled only where no chunk holds an answer.

    `spoilers` hold an answer and are neither gold nor confirmed as harmless: they would spoil a position test.
    """

    marks: tuple[Mark, ...]
    nearest: tuple[Near, ...]
    spoilers: tuple[str, ...]

    @property
    def proposed(self) -> tuple[str, ...]:
        """Ids to tick: the chunks that hold an answer, in retrieved order, else the nearest one."""
        return tuple(dict.fromkeys(mark.chunk_id for mark in self.marks)) or tuple(n.chunk_id for n in self.nearest[:1])


def mark_gold(case: Case, open_embedder: Callable[[], Embedder] | None = None) -> GoldMarks:
    """Look for the answers in the retrieved chunks; without a match embed question and answers, if an embedder is given."""
    marks = tuple(
        Mark(chunk.id, match.alias, match.start, match.end)
        for chunk in case.chunks
        for match in find_aliases(case.answers, chunk.text)
    )
    nearest: tuple[Near, ...] = ()
    if not marks and case.answers and case.chunks and open_embedder is not None:
        nearest = _nearest(case, open_embedder())
    gold = gold_of(case)
    return GoldMarks(marks, nearest, gold.spoilers)


def _nearest(case: Case, embedder: Embedder) -> tuple[Near, ...]:
    wanted = f"{case.question} {case.answers[0]}"
    vectors = embedder([wanted, *(chunk.text for chunk in case.chunks)])
    scores = (vectors[1:] @ vectors[0]).tolist()
    ranked = sorted(zip(scores, case.chunks, strict=True), key=lambda pair: -pair[0])
    return tuple(Near(chunk.id, float(score)) for score, chunk in ranked[:NEAREST])
