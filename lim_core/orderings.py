"""Orderings of retrieved chunks. Each takes the chunks best first and a seed, and returns a permutation of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from lim_core.errors import InputError
from lim_core.registry import Registry
from lim_core.types import Chunk, Json, Ordering, ScoreDirection

orderings: Registry[Ordering] = Registry("ordering")

_DATE_KEYS = (
    "date",
    "published",
    "published_at",
    "updated",
    "updated_at",
    "created",
    "created_at",
    "timestamp",
    "time",
)
_SOURCE_KEYS = ("source", "file_name", "file", "url", "document_id", "doc_id")
_PLACE_KEYS = ("section", "page", "position", "start_index", "start_char_idx", "chunk_index", "index", "offset")


def arrange(name: str, chunks: Sequence[Chunk], seed: int = 0) -> tuple[Chunk, ...]:
    """Apply the ordering `name` and check that nothing was lost or doubled.

    Raises:
        UnknownName: no such ordering.
        InputError: the ordering did not return a permutation of its input.
    """
    arranged = tuple(orderings[name].part(chunks, seed))
    if sorted(map(id, arranged)) != sorted(map(id, chunks)):
        raise InputError(
            f"The ordering {name} returned {len(arranged)} chunks that are not a permutation of its input."
        )
    return arranged


def score_direction(chunks: Sequence[Chunk]) -> ScoreDirection | None:
    """Guess whether scores are similarities or distances from how they run along the retrieved order.

    Retrievers return the best chunk first: falling scores are similarities, rising ones distances. None where fewer than
    two distinct scores exist, or where they neither fall nor rise in at least three of four neighbouring pairs.
    """
    scores = [chunk.score for chunk in chunks if chunk.score is not None]
    falls = sum(a > b for a, b in pairwise(scores))
    rises = sum(a < b for a, b in pairwise(scores))
    if falls + rises == 0 or 0.25 < falls / (falls + rises) < 0.75:
        return None
    return ScoreDirection.SIMILARITY if falls > rises else ScoreDirection.DISTANCE


@orderings.register("as-retrieved", title="As retrieved", order=0)
def as_retrieved(chunks: Sequence[Chunk], seed: int) -> Sequence[Chunk]:
    """The order the retriever gave, unchanged."""
    return list(chunks)


@orderings.register("score", title="By score", order=1)
def by_score(chunks: Sequence[Chunk], seed: int) -> Sequence[Chunk]:
    """Best score first, in the direction that the scores show; chunks without a score go last, ties keep their order."""
    distance = score_direction(chunks) is ScoreDirection.DISTANCE

    def key(chunk: Chunk) -> tuple[bool, float]:
        score = chunk.score
        return score is None, 0.0 if score is None else score if distance else -score

    return sorted(chunks, key=key)


@orderings.register("edges", title="Best at both edges", order=2)
def edges(chunks: Sequence[Chunk], seed: int) -> Sequence[Chunk]:
    """Best first, second best last, and so on inwards: ranks A C E D B (Haystack's LostInTheMiddleRanker does the same)."""
    return [*chunks[0::2], *reversed(chunks[1::2])]


@orderings.register("langchain", title="LangChain LongContextReorder", order=3)
def langchain(chunks: Sequence[Chunk], seed: int) -> Sequence[Chunk]:
    """Exactly what LangChain's LongContextReorder does: for an even number the best chunk is last, for an odd one first."""
    arranged: list[Chunk] = []
    for index, chunk in enumerate(reversed(chunks)):
        if index % 2:
            arranged.append(chunk)
        else:
            arranged.insert(0, chunk)
    return arranged


@orderings.register("reverse", title="Best last", order=4)
def reverse(chunks: Sequence[Chunk], seed: int) -> Sequence[Chunk]:
    """Worst first, best last, next to the question."""
    return list(reversed(chunks))


@orderings.register("document-order", title="Document order", order=5)
def document_order(chunks: Sequence[Chunk], seed: int) -> Sequence[Chunk]:
    """Chunks of one source together, in the order they stand in it; sources by their best chunk.

    Source and place come from the metadata (source, file_name, url ...; section, page, start_index ...), the source also
    from the title. Chunks that name no place keep their rank within the source.
    """
    first_rank: dict[str, int] = {}
    for rank, chunk in enumerate(chunks):
        first_rank.setdefault(_source(chunk), rank)
    ranked = sorted(enumerate(chunks), key=lambda pair: (first_rank[_source(pair[1])], _place(pair[1]), pair[0]))
    return [chunk for _, chunk in ranked]


@orderings.register("chronological", title="Oldest first", order=6)
def chronological(chunks: Sequence[Chunk], seed: int) -> Sequence[Chunk]:
    """Oldest first by the date in the metadata (ISO 8601 or Unix seconds); undated chunks go first, in their order."""
    return sorted(chunks, key=lambda chunk: date_of(chunk) or float("-inf"))


@orderings.register("random", title="Random", order=7)
def shuffled(chunks: Sequence[Chunk], seed: int) -> Sequence[Chunk]:
    """A shuffle that depends on the seed alone: the control for every other ordering."""
    arranged = list(chunks)
    random.Random(seed).shuffle(arranged)  # noqa: S311 - an experiment's shuffle, not a secret
    return arranged


def date_of(chunk: Chunk) -> float | None:
    """The chunk's date as Unix seconds, from its metadata, or None."""
    for key in _DATE_KEYS:
        stamp = _timestamp(chunk.metadata.get(key))
        if stamp is not None:
            return stamp
    return None


def _timestamp(value: Json) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        if moment.tzinfo is None:
            # Naive dates are compared with one another, so any one zone will do.
            return (moment - datetime(1970, 1, 1)).total_seconds()  # noqa: DTZ001
        return moment.timestamp()
    return None


def _source(chunk: Chunk) -> str:
    for key in _SOURCE_KEYS:
        value = chunk.metadata.get(key)
        if isinstance(value, str) and value:
            return value
    return chunk.title


def _place(chunk: Chunk) -> tuple[tuple[float, str], ...]:
    """Sort key of a chunk's place within its source; sections such as 2.10 sort after 2.9."""
    place: list[tuple[float, str]] = []
    for key in _PLACE_KEYS:
        value = chunk.metadata.get(key)
        if isinstance(value, bool) or value is None:
            continue
        if isinstance(value, int | float):
            place.append((float(value), ""))
        elif isinstance(value, str):
            for part in value.replace("-", ".").split("."):
                place.append((float(part), "") if part.isdecimal() else (float("inf"), part))
    return tuple(place)
