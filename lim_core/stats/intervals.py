"""Intervals for shares, means and paired gains that stay honest at small n. Pure functions; read them through stats.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from lim_core.types import Estimate

# From this many units on, of which this many differ from the commonest value, the percentile bootstrap keeps its level;
# below, resamples are too alike and the interval comes out too narrow (all pairs equal: width zero).
BOOTSTRAP_UNITS = 30
BOOTSTRAP_VARIED = 10
# Bets of the betting interval as shares of the largest one, with their weights: the small ones narrow it at large n, the
# large ones where the observations are nearly all alike.
_BET_SHARES = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.95, 0.999])
_BET_LOG_WEIGHTS = np.log([0.05, 0.05, 0.05, 0.05, 0.06, 0.06, 0.06, 0.06, 0.08, 0.1, 0.13, 0.25])


@dataclass(frozen=True, slots=True)
class WorstPosition:
    """The slot with the lowest accuracy: its place in the list given, and an interval that allows for the picking."""

    index: int
    estimate: Estimate


def wilson(k: int, n: int, level: float = 0.95) -> Estimate:
    """Share k/n with Wilson's score interval.

    (k + z^2/2 +- z sqrt(k(n-k)/n + z^2/4)) / (n + z^2). Source: Wilson 1927, JASA 22:209.

    Raises:
        ValueError: n is below 1, or k is not in 0..n.
    """
    if n < 1 or not 0 <= k <= n:
        raise ValueError(f"wilson needs 0 <= k <= n and n >= 1, not k={k}, n={n}")
    z = _z(level)
    centre = k + z * z / 2
    spread = z * math.sqrt(k * (n - k) / n + z * z / 4)
    # The ends are exact at k = 0 and k = n; rounding must not move them.
    low = 0.0 if k == 0 else (centre - spread) / (n + z * z)
    high = 1.0 if k == n else (centre + spread) / (n + z * z)
    return Estimate(k / n, low, high, n)


def worst_position(correct: Sequence[int], n: Sequence[int], level: float = 0.95) -> WorstPosition:
    """The slot with the lowest share correct, with an interval that allows for its having been picked out of k.

    High end: Wilson at 1 - alpha/(2k) of the picked slot (Bonferroni over the k that could have been picked). Low end:
    the smallest Wilson low end at 1 - alpha/2; no correction is due, since it errs only if the truly worst slot's does.
    The interval holds both for the picked slot's accuracy and for the accuracy of the truly worst slot. Units of a slot
    must be independent (cases, not repeats); slots may be dependent. Source: Bonferroni's inequality, Wilson 1927.

    Raises:
        ValueError: no slots, lists of different length, or a slot without trials.
    """
    if not correct or len(correct) != len(n):
        raise ValueError("worst_position needs one count correct and one n for every slot")
    index = min(range(len(n)), key=lambda slot: (correct[slot] / n[slot], slot))
    alpha = 1 - level
    low = min(wilson(k, size, level).low for k, size in zip(correct, n, strict=True))
    high = wilson(correct[index], n[index], 1 - alpha / len(n)).high
    return WorstPosition(index, Estimate(correct[index] / n[index], low, high, n[index]))


def tango(gained: int, lost: int, n: int, level: float = 0.95) -> Estimate:
    """Difference of two paired proportions, (gained - lost)/n, with Tango's score interval.

    Ends are the d with (gained - lost - n d) / sqrt(n (2q + d(1 - d))) = +-z, where q is the likelihood's maximum for
    the share lost given d: q = (sqrt(B^2 - 4AC) - B) / 2A, A = 2n, B = (2n - gained + lost) d - gained - lost,
    C = -lost d (1 - d). Never of width zero. Source: Tango 1998, Statistics in Medicine 17:891.

    Raises:
        ValueError: counts are negative or exceed n, or n is below 1.
    """
    if n < 1 or min(gained, lost) < 0 or gained + lost > n:
        raise ValueError(f"tango needs gained + lost <= n and n >= 1, not {gained}, {lost}, {n}")
    z = _z(level)
    value = (gained - lost) / n
    high = 1.0 if gained == n else _root(lambda d: _tango_z(gained, lost, n, d) + z, value, 1.0)
    low = -1.0 if lost == n else _root(lambda d: _tango_z(gained, lost, n, d) - z, value, -1.0)
    return Estimate(value, low, high, n)


def _tango_z(gained: int, lost: int, n: int, d: float) -> float:
    a = 2.0 * n
    b = (2 * n - gained + lost) * d - gained - lost
    c = -lost * d * (1 - d)
    q = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    variance = n * (2 * q + d * (1 - d))
    distance = gained - lost - n * d
    if variance <= 0:
        return 0.0 if distance == 0 else math.copysign(math.inf, distance)
    return distance / math.sqrt(variance)


def betting_interval(
    values: Sequence[float], counts: Sequence[int], low: float, high: float, level: float = 0.95
) -> Estimate:
    """Mean of bounded observations, valid at every n and at any stopping time, with no assumption but the bounds.

    With y scaled to [0, 1], a mean m is ruled out from below where the average over bets s of prod(1 - s + s y/m)
    reaches 2/alpha, and likewise from above with 1 - y. `counts[i]` says how often `values[i]` was seen.
    Source: Waudby-Smith and Ramdas 2024, JRSS-B 86:1 (betting confidence sequences), with a fixed mixture of bets.

    Raises:
        ValueError: no observation, or one outside the bounds.
    """
    n = sum(counts)
    if n < 1 or any(not low <= value <= high for value in values):
        raise ValueError("betting_interval needs at least one observation, all within the bounds")
    scaled = (np.asarray(values, dtype=float) - low) / (high - low)
    seen = np.asarray(counts, dtype=float)
    threshold = math.log(2 / (1 - level))
    lower = _betting_low(scaled, seen, threshold)
    upper = 1 - _betting_low(1 - scaled, seen, threshold)
    value = float(scaled @ seen) / n
    span = high - low
    return Estimate(low + span * value, low + span * min(lower, value), low + span * max(upper, value), n)


def _betting_low(scaled: NDArray[np.float64], counts: NDArray[np.float64], threshold: float) -> float:
    """Smallest mean not ruled out; the log wealth falls as the mean grows, so bisection finds it."""

    def wealth(mean: float) -> float:
        logs = counts @ np.log(1 - _BET_SHARES[None, :] + _BET_SHARES[None, :] * scaled[:, None] / mean)
        return float(np.logaddexp.reduce(logs + _BET_LOG_WEIGHTS))

    tiny = 1e-9
    if wealth(tiny) < threshold:
        return 0.0
    return _root(lambda mean: wealth(mean) - threshold, tiny, 1.0)


def paired_gain(
    before: Sequence[float],
    after: Sequence[float],
    *,
    units: Sequence[Hashable] | None = None,
    seed: int = 0,
    level: float = 0.95,
    draws: int = 2000,
) -> Estimate:
    """Mean gain after - before over paired values in [0, 1], with its interval; n counts units.

    The unit is the pair, or the case or block named by `units`, whose pairs are averaged first (repeats inside a case
    are not independent). Percentile bootstrap over units, seeded (Efron and Tibshirani 1993, ch. 13), where there are at
    least 30 units of which 10 differ from the commonest gain. With fewer, resamples are too alike and the percentiles
    too narrow; eight pairs that all gained would give [1, 1]. Then: Tango's score interval where all unit values are 0
    or 1, else the betting interval, which assumes nothing but the bounds.

    Raises:
        ValueError: no pairs, or lists of different length.
    """
    old, new = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    if not len(old) or len(old) != len(new) or (units is not None and len(units) != len(old)):
        raise ValueError("paired_gain needs as many values before as after, and at least one pair")
    if units is not None:
        old, new = _unit_means(old, units), _unit_means(new, units)
    gains = new - old
    values, counts = np.unique(gains, return_counts=True)
    n = len(gains)
    if n >= BOOTSTRAP_UNITS and n - int(counts.max()) >= BOOTSTRAP_VARIED:
        # Resampling units is a multinomial draw of how often each distinct gain is taken.
        taken = np.random.default_rng(seed).multinomial(n, counts / n, size=draws)
        low, high = np.quantile(taken @ values / n, [(1 - level) / 2, (1 + level) / 2])
        return Estimate(float(gains.mean()), float(low), float(high), n)
    if np.isin(old, (0.0, 1.0)).all() and np.isin(new, (0.0, 1.0)).all():
        return tango(int((gains > 0).sum()), int((gains < 0).sum()), n, level)
    return betting_interval([float(v) for v in values], [int(c) for c in counts], -1.0, 1.0, level)


def clustered_se(values: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """Standard error of the mean of values that share clusters (repeats of a case, questions of a document).

    sqrt(G/(G-1) sum_c (sum_{i in c} (x_i - mean))^2) / n, G clusters. Source: Liang and Zeger 1986; Miller 2024,
    arXiv 2411.00640; the factor G/(G-1) as in statsmodels' cluster-robust covariance.

    Raises:
        ValueError: lists of different length, or fewer than two clusters.
    """
    x = np.asarray(values, dtype=float)
    labels = _labels(clusters)
    groups = int(labels.max(initial=-1)) + 1
    if len(x) != len(labels) or groups < 2:
        raise ValueError("clustered_se needs one cluster for every value and at least two clusters")
    sums = np.bincount(labels, weights=x - x.mean(), minlength=groups)
    return float(math.sqrt(groups / (groups - 1) * float(sums @ sums)) / len(x))


def clustered_mean(values: Sequence[float], clusters: Sequence[Hashable], level: float = 0.95) -> Estimate:
    """Mean of values in [0, 1] that share clusters, with an interval that knows it; n counts clusters.

    mean +- t(G - 1) x clustered_se, clipped to [0, 1]. With fewer than 30 clusters, or clusters that hardly differ, the
    normal theory promises too much: then the betting interval on the clusters' means, whose value is their mean.

    Raises:
        ValueError: no values, or lists of different length.
    """
    x = np.asarray(values, dtype=float)
    if not len(x) or len(x) != len(clusters):
        raise ValueError("clustered_mean needs one cluster for every value, and at least one value")
    means = _unit_means(x, clusters)
    distinct, counts = np.unique(means, return_counts=True)
    if len(means) < BOOTSTRAP_UNITS or len(means) - int(counts.max()) < BOOTSTRAP_VARIED:
        return betting_interval([float(v) for v in distinct], [int(c) for c in counts], 0.0, 1.0, level)
    from scipy.special import stdtrit  # takes half a second to import

    mean = float(x.mean())
    half = float(stdtrit(len(means) - 1, (1 + level) / 2)) * clustered_se(values, clusters)
    return Estimate(mean, max(0.0, mean - half), min(1.0, mean + half), len(means))


def _labels(units: Sequence[Hashable]) -> NDArray[np.intp]:
    place: dict[Hashable, int] = {}
    return np.array([place.setdefault(unit, len(place)) for unit in units], dtype=np.intp)


def _unit_means(values: NDArray[np.float64], units: Sequence[Hashable]) -> NDArray[np.float64]:
    labels = _labels(units)
    return np.bincount(labels, weights=values) / np.bincount(labels)


def _z(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


def _root(function: Callable[[float], float], inside: float, outside: float) -> float:
    """Bisection between a point where the function has one sign and a point where it has the other."""
    sign = function(inside) > 0
    for _ in range(80):
        middle = (inside + outside) / 2
        if (function(middle) > 0) == sign:
            inside = middle
        else:
            outside = middle
    return (inside + outside) / 2
