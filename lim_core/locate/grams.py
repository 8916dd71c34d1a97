"""Finding one text inside another by the hashes of its short pieces, in time near the sum of both lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Characters in a piece. Shorter ones turn up by chance, longer ones miss text between two small changes.
GRAM = 12
# A piece that occurs more often than this says little about where a text stands.
_FREQUENT = 8
_PROBES = 16
_DIAGONALS = 48

_BASE = np.uint64(0x9E3779B97F4A7C15)


def gram_hashes(codes: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """64-bit hash of every `GRAM` neighbouring characters, shape (len(codes) - GRAM + 1,), empty for shorter texts."""
    if len(codes) < GRAM:
        return np.zeros(0, dtype=np.uint64)
    with np.errstate(over="ignore"):
        one = codes.astype(np.uint64)
        one = (one + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
        one ^= one >> np.uint64(29)
        base2 = _BASE * _BASE
        base4 = base2 * base2
        two = one[:-1] * _BASE + one[1:]
        four = two[:-2] * base2 + two[2:]
        eight = four[:-4] * base4 + four[4:]
        hashes = eight[:-4] * base4 + four[8:]
        return np.asarray(hashes ^ (hashes >> np.uint64(31)), dtype=np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Pairs of places at which a text and the indexed one agree for `GRAM` characters: `own` in the text, `there` in it."""

    own: NDArray[np.int64]
    there: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.own)

    def keep(self, mask: NDArray[np.bool_]) -> Matches:
        """The pairs that the mask keeps."""
        return Matches(self.own[mask], self.there[mask])


class GramIndex:
    """Where each piece of a text occurs."""

    def __init__(self, hashes: NDArray[np.uint64], places: NDArray[np.int64] | None = None) -> None:
        order = np.argsort(hashes)
        self._sorted = hashes[order]
        self._places = order if places is None else places[order]

    @classmethod
    def of(cls, codes: NDArray[np.uint32]) -> GramIndex:
        """Index every piece of a text."""
        return cls(gram_hashes(codes))

    def without(self, taken: NDArray[np.bool_]) -> GramIndex:
        """The index of those pieces that touch no taken character; `taken` has one entry a character."""
        free = _untouched(self._places, taken)
        smaller = GramIndex.__new__(GramIndex)
        smaller._sorted, smaller._places = self._sorted[free], self._places[free]
        return smaller

    def counts(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How often each piece occurs."""
        left, right = self._bounds(hashes)
        return right - left

    def places(self, piece: np.uint64) -> NDArray[np.int64]:
        """Where one piece occurs, in ascending order."""
        left, right = self._bounds(np.array([piece]))
        return np.sort(self._places[left[0] : right[0]])

    def matches(self, hashes: NDArray[np.uint64], taken: NDArray[np.bool_]) -> Matches:
        """Agreements with a text of these hashes in what is not taken.

        All of them for pieces that occur a few times. Where every piece is frequent, as in repetitive text, a few evenly
        spaced pieces and their first free places stand for the rest.
        """
        left, right = self._bounds(hashes)
        counts = right - left
        own = np.flatnonzero((counts > 0) & (counts <= _FREQUENT))
        if len(own):
            repeats = counts[own]
            steps = np.arange(int(repeats.sum())) - np.repeat(np.cumsum(repeats) - repeats, repeats)
            found = Matches(np.repeat(own, repeats), self._places[np.repeat(left[own], repeats) + steps])
            found = found.keep(_untouched(found.there, taken))
            if len(found):
                return found
        own = np.flatnonzero(counts > _FREQUENT)
        own = own[np.unique(np.linspace(0, len(own) - 1, _PROBES).astype(int))] if len(own) else own
        owns, theres = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for at in own.tolist():
            places = self._places[left[at] : right[at]]
            places = places[_untouched(places, taken)]
            places = np.sort(np.partition(places, _FREQUENT)[:_FREQUENT] if len(places) > _FREQUENT else places)
            owns.append(np.full(len(places), at, dtype=np.int64))
            theres.append(places)
        return Matches(np.concatenate(owns), np.concatenate(theres))

    def _bounds(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.searchsorted(self._sorted, hashes, "left"), np.searchsorted(self._sorted, hashes, "right")


def _untouched(places: NDArray[np.int64], taken: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which pieces touch no taken character. What is taken is never shorter than a piece, so both ends tell."""
    return np.asarray(~(taken[places] | taken[places + GRAM - 1]))


def extended(
    matches: Matches, codes: NDArray[np.uint32], there: NDArray[np.uint32], taken: NDArray[np.bool_]
) -> Matches:
    """The agreements along the one diagonal of these matches on which the two texts agree most, in what is not taken."""
    best = matches
    most = 0
    for shift in np.unique(matches.there - matches.own).tolist()[:_DIAGONALS]:
        first, end = max(0, -shift), min(len(codes), len(there) - shift)
        equal = (codes[first:end] == there[first + shift : end + shift]) & ~taken[first + shift : end + shift]
        sums = np.concatenate([[0], np.cumsum(equal)])
        starts = np.flatnonzero(sums[GRAM:] - sums[:-GRAM] == GRAM)
        if len(starts) > most:
            best, most = Matches(starts + first, starts + first + shift), len(starts)
    return best


def densest(matches: Matches, length: int) -> Matches:
    """The agreements in the stretch, half as long again as the text, that holds most of them; one for each own place.

    Where an own place has several, the one nearest to the diagonal of the rest is kept.
    """
    order = np.argsort(matches.there, kind="stable")
    own, there = matches.own[order], matches.there[order]
    ends = np.searchsorted(there, there + length + length // 2 + 4 * GRAM, "right")
    first = int(np.argmax(ends - np.arange(len(there))))
    own, there = own[first : ends[first]], there[first : ends[first]]
    away = np.abs(there - own - np.median(there - own))
    order = np.lexsort((away, own))
    own, there = own[order], there[order]
    once = np.ones(len(own), dtype=bool)
    once[1:] = own[1:] != own[:-1]
    return Matches(own[once], there[once])
