"""Exact and permutation tests on paired answers, and how many pairs they need. Read them through stats.py.

Answers are an array of shape (units, positions) with values in [0, 1]: a unit is a case (repeats already averaged), a
column a position. A row with NaN, an unscored cell, is dropped whole, since it cannot be compared within itself.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from lim_core.stats.intervals import paired_gain

# Cells drawn at once by the permutation tests: 32 MB of random numbers.
_CHUNK = 4_000_000


@dataclass(frozen=True, slots=True)
class TestResult:
    """A test statistic, its p-value and the number of units it rests on."""

    __test__ = False  # the name is not for pytest

    statistic: float
    p: float
    n: int


@dataclass(frozen=True, slots=True)
class PositionTest:
    """What permuting positions within cases says. `p_u` claims that both edges beat the inner slots.

    `spread` is the largest minus the smallest slot mean, `ends_gain` the mean of both ends minus the mean of the inner slots.
    """

    n: int
    means: tuple[float, ...]
    spread: float
    p_any: float
    ends_gain: float
    p_ends: float
    p_first: float
    p_last: float

    @property
    def p_u(self) -> float:
        """Intersection-union: a U needs both edges, so the larger p counts and no correction is due (Berger 1982)."""
        return max(self.p_first, self.p_last)


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Whether a gain was shown to lie within +-delta, with the interval that decides it (1 - 2 alpha) and n units."""

    shown: bool
    gain: float
    low: float
    high: float
    delta: float
    n: int


def fisher_one_sided(k1: int, n1: int, k2: int, n2: int) -> float:
    """p-value that the first share is not above the second: P(X >= k1), X hypergeometric with all margins fixed.

    Source: Fisher 1935; exact, in whole numbers.

    Raises:
        ValueError: a count is negative or above its n.
    """
    if not (0 <= k1 <= n1 and 0 <= k2 <= n2):
        raise ValueError(f"fisher_one_sided needs 0 <= k <= n twice, not {k1}/{n1} and {k2}/{n2}")
    right = k1 + k2
    ways = sum(math.comb(n1, i) * math.comb(n2, right - i) for i in range(k1, min(n1, right) + 1))
    return ways / math.comb(n1 + n2, right)


def mcnemar(gained: int, lost: int, *, mid_p: bool = False) -> float:
    """Two-sided p-value that pairs change as often one way as the other: exact binomial, or mid-p.

    With m = min and N = gained + lost: exact min(1, 2 P(X <= m)); mid-p 2 (P(X <= m) - P(X = m)/2), X ~ Bin(N, 1/2).
    Source: McNemar 1947; mid-p: Fagerland, Lydersen and Laake 2013, BMC Med Res Methodol 13:91.

    Raises:
        ValueError: a count is negative.
    """
    if min(gained, lost) < 0:
        raise ValueError(f"mcnemar needs counts of at least 0, not {gained} and {lost}")
    total, fewer = gained + lost, min(gained, lost)
    tail = sum(math.comb(total, i) for i in range(fewer + 1))
    if mid_p:
        return (2 * tail - math.comb(total, fewer)) / (1 << total)
    return min(1.0, 2 * tail / (1 << total))


def sign_test(gained: int, lost: int) -> float:
    """One-sided exact McNemar: p-value that pairs do not change towards `gained` more often, P(X >= gained)."""
    total = gained + lost
    return sum(math.comb(total, i) for i in range(gained, total + 1)) / (1 << total)


def cochran_q(answers: NDArray[np.float64]) -> TestResult:
    """Cochran's Q for equal accuracy of k positions over the same cases, answers 0 or 1.

    Q = (k-1)(k sum C_j^2 - T^2) / (k T - sum R_i^2) ~ chi2(k-1), with column, row and grand totals C, R, T; it needs
    many cases, for few use `permutation_test`. Rows all alike carry nothing: p = 1. Source: Cochran 1950, Biometrika 37:256.

    Raises:
        ValueError: fewer than two positions, or values other than 0 and 1.
    """
    x = _complete(answers)
    if not np.isin(x, (0.0, 1.0)).all():
        raise ValueError("cochran_q needs answers of 0 and 1")
    k = x.shape[1]
    columns, rows, total = x.sum(0), x.sum(1), float(x.sum())
    below = k * total - float(rows @ rows)
    if below == 0:
        return TestResult(0.0, 1.0, len(x))
    from scipy.special import chdtrc  # takes half a second to import

    q = (k - 1) * (k * float(columns @ columns) - total * total) / below
    return TestResult(q, float(chdtrc(k - 1, q)), len(x))


def permutation_test(answers: NDArray[np.float64], *, seed: int = 0, draws: int = 2000) -> PositionTest:
    """Position effects in a suite, by shuffling position labels within each case; columns first to last.

    Any effect: spread of the slot means, two-sided by nature, already corrected for picking the extremes. Ends against
    inner: mean(first, last) - mean(inner), all labels shuffled. First (last) against inner: one-sided, labels shuffled
    among that edge and the inner slots only, so that the other edge cannot lend it significance; a U needs both.
    p = (1 + #{T* >= T}) / (draws + 1). Source: Phipson and Smyth 2010 for p; Berger 1982 for intersection-union.

    Raises:
        ValueError: fewer than three positions, or no complete case.
    """
    x = _complete(answers)
    n, k = x.shape
    if k < 3:
        raise ValueError("permutation_test needs a first, an inner and a last position")
    rng = np.random.default_rng(seed)
    means = x.mean(0)
    spread, ends = _spread(means), _ends(means)
    above_spread = above_ends = 0
    for size in _chunks(draws, n * k):
        shuffled = rng.permuted(np.broadcast_to(x, (size, n, k)), axis=2).mean(axis=1)
        above_spread += int((_spreads(shuffled) >= spread - 1e-12).sum())
        above_ends += int((_ends_rows(shuffled) >= ends - 1e-12).sum())
    return PositionTest(
        n=n,
        means=tuple(float(mean) for mean in means),
        spread=spread,
        p_any=(1 + above_spread) / (draws + 1),
        ends_gain=ends,
        p_ends=(1 + above_ends) / (draws + 1),
        p_first=_edge_p(x[:, :-1], rng, draws),
        p_last=_edge_p(x[:, :0:-1], rng, draws),
    )


def _edge_p(x: NDArray[np.float64], rng: np.random.Generator, draws: int) -> float:
    """One-sided p for column 0 over the others. Row sums are fixed, so only the value dealt to column 0 matters."""
    n, k = x.shape
    observed, above = float(x[:, 0].sum()), 0
    for size in _chunks(draws, n):
        dealt = np.take_along_axis(x[None], rng.integers(k, size=(size, n, 1)), axis=2)
        above += int((dealt.sum(axis=(1, 2)) >= observed - 1e-9).sum())
    return (1 + above) / (draws + 1)


def _spread(means: NDArray[np.float64]) -> float:
    return float(means.max() - means.min())


def _spreads(means: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(means.max(axis=1) - means.min(axis=1))


def _ends(means: NDArray[np.float64]) -> float:
    return float(_ends_rows(means[None])[0])


def _ends_rows(means: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((means[:, 0] + means[:, -1]) / 2 - means[:, 1:-1].mean(axis=1))


def _chunks(draws: int, cells: int) -> list[int]:
    most = max(1, _CHUNK // cells)
    return [min(most, draws - start) for start in range(0, draws, most)]


def _complete(answers: NDArray[np.float64]) -> NDArray[np.float64]:
    x = np.asarray(answers, dtype=float)
    if x.ndim != 2 or x.shape[1] < 2:
        raise ValueError("answers must have the shape (units, positions) with at least two positions")
    whole: NDArray[np.float64] = x[~np.isnan(x).any(axis=1)]
    if not len(whole):
        raise ValueError("no unit has a scored answer at every position")
    return whole


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values, in the order given, that keep the family-wise error rate under any dependence.

    Sorted upwards, the i-th (from 0) of m becomes the largest of min(1, (m - j) p_j) over j <= i.
    Source: Holm 1979, Scand. J. Statist. 6:65.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = running
    return tuple(adjusted)


def tost(
    before: Sequence[float],
    after: Sequence[float],
    delta: float,
    *,
    units: Sequence[Hashable] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> Equivalence:
    """Two one-sided tests of |gain| < delta: shown where the 1 - 2 alpha interval of the paired gain lies inside +-delta.

    "No difference" is shown this way, never inferred from a lack of significance. The interval is that of `paired_gain`,
    so pairs that all agree still need enough of them. Source: Schuirmann 1987; score interval: Tango 1998.

    Raises:
        ValueError: no pairs, lists of different length, or delta not above 0.
    """
    if delta <= 0:
        raise ValueError(f"tost needs a delta above 0, not {delta}")
    gain = paired_gain(before, after, units=units, seed=seed, level=1 - 2 * alpha)
    return Equivalence(-delta < gain.low and gain.high < delta, gain.value, gain.low, gain.high, delta, gain.n)


def pairs_needed(gain: float, discordant: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Pairs for a two-sided McNemar test to see a gain, given the share of pairs that differ.

    n = (z_{alpha/2} sqrt(psi) + z_beta sqrt(psi - d^2))^2 / d^2. The exact test needs some 5 to 10% more.
    Source: Connor 1987, Biometrics 43:207.

    Raises:
        ValueError: the gain is 0 or larger than the share of pairs that differ.
    """
    if not 0 < abs(gain) <= discordant <= 1:
        raise ValueError(f"pairs_needed needs 0 < |gain| <= discordant <= 1, not {gain} and {discordant}")
    z_alpha, z_beta = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(power)
    root = z_alpha * math.sqrt(discordant) + z_beta * math.sqrt(discordant - gain * gain)
    return math.ceil(root * root / (gain * gain) - 1e-9)


def flat_pairs_needed(delta: float, discordant: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Pairs for TOST to show a truly absent gain as within +-delta: (z_alpha + z_{beta/2})^2 psi / delta^2.

    psi = share of pairs that differ, beta = 1 - power (halved: both bounds must hold). Normal approximation.
    Source: Schuirmann 1987, J. Pharmacokinet. Biopharm. 15:657.
    """
    z = NormalDist().inv_cdf(1 - alpha) + NormalDist().inv_cdf((1 + power) / 2)
    return math.ceil(z * z * discordant / (delta * delta) - 1e-9)


def cases_needed(
    gain: float, between: float, within: float, repeats: int, *, alpha: float = 0.05, power: float = 0.8
) -> int:
    """Cases for a paired comparison of two arms with `repeats` calls a case and arm.

    n = (z_{alpha/2} + z_beta)^2 (omega^2 + 2 sigma^2 / K) / d^2: `between` = omega^2, variance over cases of the true
    gain; `within` = sigma^2, variance of one call given its case and arm. Repeats lower only the second part.
    Source: Miller 2024, arXiv 2411.00640, eq. 9.

    Raises:
        ValueError: the gain is 0 or repeats is below 1.
    """
    if gain == 0 or repeats < 1:
        raise ValueError("cases_needed needs a gain other than 0 and at least one repeat")
    z = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)
    return math.ceil(z * z * (between + 2 * within / repeats) / (gain * gain) - 1e-9)
