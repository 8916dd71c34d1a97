"""The position test: after every block it says effect, flat, or not yet, and may be asked as often as one likes.

H0 is equal accuracy of the first, middle and last slot; the arms of a block may depend on one another in any way. The
e-value is the mean wealth of bets that are fair under H0 (slot_bets.py), so by Ville's inequality it ever reaches 1/alpha
with probability at most alpha, whenever one stops. Sources: Ville 1939; Shafer 2021, JRSS-A 184:407 (betting); Waudby-Smith
and Ramdas 2024, JRSS-B 86:1 (bounded means). Error rates and calls: benchmarks/stop_rule.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lim_core.stats import slot_bets
from lim_core.stats.intervals import betting_interval, wilson
from lim_core.stats.significance import fisher_one_sided
from lim_core.types import Estimate

# Furthest look ahead, in blocks; beyond it no forecast is worth its ink.
_HORIZON = 256
# Blocks of agreement mixed into a forecast, so that three lucky blocks promise little.
_PRIOR_BLOCKS = 1.0
# A shape is named where this share of its posterior agrees; after an effect the test waits so many blocks for it.
NAME_SUPPORT = 0.8
NAME_BLOCKS = 12
_SUPPORT_DRAWS = 2000
_CLIFF_SLOTS = 5


class SlotTest:
    """Sequential test of first, middle and last slot for one case. `add` changes it; every property reads it as it stands.

    Feed blocks in their order, each distinct distractor order once: a repeated order adds no evidence. Where slots
    coincide (fewer than three distinct slots) there is nothing to test, and it is for the caller not to start.

    Args:
        alpha: error rate of "effect", and of "flat".
        delta: gaps of edge over middle smaller than this are called flat, in (0, 1).
    """

    def __init__(self, alpha: float = 0.05, delta: float = 0.2) -> None:
        if not 0 < alpha < 1 or not 0 < delta < 1:
            raise ValueError(f"SlotTest needs alpha and delta between 0 and 1, not {alpha} and {delta}")
        self.alpha = alpha
        self.delta = delta
        self.blocks = 0
        self._counts = np.zeros(slot_bets.KINDS, dtype=np.int64)
        self._enough = -math.log(alpha)
        self._log_e = 0.0
        self._effect_at: int | None = None

    def __repr__(self) -> str:
        return f"SlotTest(blocks={self.blocks}, e_value={self.e_value:.3g}, shape={self.shape!r})"

    def add(self, first: bool | None, middle: bool | None, last: bool | None) -> None:
        """Take in the next block: whether each arm was right, None where it is unscored.

        Pairs with an unscored arm are dropped; the pair that is left still counts. This is fair as long as being unscored
        has nothing to do with the slot, which the caller watches. A block with fewer than two scored arms says nothing.
        """
        self.blocks += 1
        kind = slot_bets.kind_of(first, middle, last)
        if kind is not None:
            self._counts[kind] += 1
        if self._effect_at is None:
            self._log_e = float(slot_bets.log_e_values(self._counts))
            if self._log_e >= self._enough:
                self._effect_at = self.blocks

    # --- verdict ---------------------------------------------------------------------------------

    @property
    def e_value(self) -> float:
        """Evidence against equal accuracy; 1 says nothing. Once 1/alpha is reached it is kept and no further bet is made."""
        return math.exp(min(self._log_e, 700.0))

    @property
    def effect(self) -> bool:
        """Whether the e-value has reached 1/alpha. Later blocks cannot take it back; they only sharpen size and shape."""
        return self._effect_at is not None

    @property
    def flat(self) -> bool:
        """Whether, with no effect seen, both edges were shown to lie within delta of the middle, each side at level alpha."""
        return not self.effect and bool(slot_bets.log_flat_wealth(self._counts, self.delta) >= self._enough)

    @property
    def done(self) -> bool:
        """Whether to stop: flat, or an effect whose shape is sure enough to be named or has stayed unsure for 12 blocks.

        Stopping at the effect at once would be valid too, but would call 5% of clear recency effects a U; the few blocks
        waited here (none, mostly) bring that under 1% (benchmarks/stop_rule.py).
        """
        if self._effect_at is None:
            return self.flat
        return self.shape != "unclear" or self.blocks >= self._effect_at + NAME_BLOCKS

    @property
    def shape(self) -> str:
        """u, primacy, recency, inverted, flat or unclear; named only after the test, and only with support of .8.

        u: both edges better than the middle, the weaker gain at least half of the stronger; inverted: the same with both
        edges worse; else the better edge names it.
        """
        if self.effect:
            return self.leaning if self.shape_support >= NAME_SUPPORT else "unclear"
        return "flat" if self.flat else "unclear"

    @property
    def shape_support(self) -> float:
        """Posterior share of the shape that the gains lean to, in [0, 1]. No error rate rests on it.

        From whole blocks only; method in `slot_bets.shape_support`.
        """
        whole, code = self._counts[: slot_bets.FULL], slot_bets.SHAPES.index(self.leaning)
        return float(slot_bets.shape_support(whole[None], np.array([code]), _SUPPORT_DRAWS)[0])

    @property
    def leaning(self) -> str:
        """The shape of the observed gains, whether or not anything is shown: a forecast, never a verdict."""
        return slot_bets.SHAPES[int(slot_bets.shape_codes(*slot_bets.edge_gains(self._counts)))]

    # --- size ------------------------------------------------------------------------------------

    @property
    def complete_blocks(self) -> int:
        """Blocks in which all three arms were scored."""
        return int(self._counts[: slot_bets.FULL].sum())

    @property
    def first_gain(self) -> float | None:
        """Accuracy at first minus middle over the pairs in which both are scored; None without one."""
        return _known(float(slot_bets.edge_gains(self._counts)[0]))

    @property
    def last_gain(self) -> float | None:
        """Accuracy at last minus middle over the pairs in which both are scored; None without one."""
        return _known(float(slot_bets.edge_gains(self._counts)[1]))

    @property
    def gap(self) -> float | None:
        """(first + last)/2 - middle over the complete blocks, in [-1, 1]; None without one."""
        interval = self.gap_interval
        return None if interval is None else interval.value

    @property
    def gap_interval(self) -> Estimate | None:
        """The gap with its confidence sequence at 1 - alpha: it covers at all looks at once, so it may be drawn as it grows.

        The betting interval of the blocks' gaps in [-1, 1], no normal theory. Source: Waudby-Smith and Ramdas 2024.
        """
        whole = self._counts[: slot_bets.FULL]
        if not whole.any():
            return None
        gaps = (slot_bets.FIRST_GAIN + slot_bets.LAST_GAIN)[: slot_bets.FULL] / 2
        return betting_interval([float(g) for g in gaps], [int(c) for c in whole], -1.0, 1.0, 1 - self.alpha)

    @property
    def more_blocks(self) -> int | None:
        """How many more blocks would likely settle it if they go on as so far; 0 if it is settled, None if not foreseeable.

        The first look within 256 blocks at which the expected log wealth, of effect or of flat, passes 1/alpha, with
        outcomes as observed and one block of agreement mixed in. About as many runs need more as need fewer. After an
        effect, the blocks left in which to name its shape.
        """
        if self.done:
            return 0
        if self._effect_at is not None:
            return self._effect_at + NAME_BLOCKS - self.blocks
        total = int(self._counts.sum())
        if not total:
            return None
        agreement = np.zeros(slot_bets.KINDS)
        agreement[[0, slot_bets.FULL - 1]] = _PRIOR_BLOCKS / 2
        a_block = (self._counts + agreement) / (total + _PRIOR_BLOCKS)
        future = self._counts + np.arange(1, _HORIZON + 1)[:, None] * a_block
        log_wealth = np.maximum(slot_bets.log_e_values(future), slot_bets.log_flat_wealth(future, self.delta))
        settled = np.flatnonzero(log_wealth >= self._enough)
        return int(settled[0]) + 1 if len(settled) else None


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


@dataclass(frozen=True, slots=True)
class SlotCount:
    """Scored observations at one slot: 0-based index, how many, how many right."""

    index: int
    n: int
    correct: int


@dataclass(frozen=True, slots=True)
class Cliff:
    """Accuracy collapses past a slot: the last slot that is still read, and accuracy up to it and past it."""

    last_read: int
    before: Estimate
    after: Estimate


def find_cliff(curve: Sequence[SlotCount], *, effect: bool, alpha: float = 0.05) -> Cliff | None:
    """The slot past which accuracy collapses, or None. Only where the test said effect, and with at least five slots.

    A cliff at s: at least two slots on either side; every slot past s below every slot up to s; accuracy past it at most
    half of that before; the step at s at least half of the way from the best slot to the worst (else it is a slope); and
    pooled one-sided Fisher at most alpha over the number of places tried. If several qualify, the largest step.
    """
    slots = sorted((slot for slot in curve if slot.n), key=lambda slot: slot.index)
    if not effect or len(slots) < _CLIFF_SLOTS:
        return None
    shares = [slot.correct / slot.n for slot in slots]
    places = range(2, len(slots) - 1)
    best: Cliff | None = None
    largest = 0.0
    for place in places:
        step = min(shares[:place]) - max(shares[place:])
        before, after = slots[:place], slots[place:]
        k1, n1 = sum(slot.correct for slot in before), sum(slot.n for slot in before)
        k2, n2 = sum(slot.correct for slot in after), sum(slot.n for slot in after)
        collapsed = step > 0 and 2 * step >= max(shares) - min(shares) and 2 * k2 * n1 <= k1 * n2
        if collapsed and step > largest and fisher_one_sided(k1, n1, k2, n2) <= alpha / len(places):
            largest = step
            best = Cliff(before[-1].index, wilson(k1, n1), wilson(k2, n2))
    return best
