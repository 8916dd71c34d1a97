"""The arithmetic of the position test: what each outcome of a block pays each bet. Vectorised over runs and looks.

A block's outcome is one of 20 kinds: with first, middle and last scored, 4F + 2M + L (0..7); without last 8 + 2F + M;
without first 12 + 2M + L; without middle 16 + 2F + L. Wealth depends only on how often each kind came, so counts of kinds,
an array of shape (..., 20), are all there is to keep; the order of blocks does not matter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

KINDS = 20
FULL = 8
SHAPES = ("u", "primacy", "recency", "inverted", "unclear")

# Edge gains X = F - M and Y = L - M of each kind, and whether the kind shows them.
_KIND = np.arange(KINDS)
_HAS_FIRST = (_KIND < 12) | (_KIND >= 16)
_HAS_MIDDLE = _KIND < 16
_HAS_LAST = (_KIND < 8) | (_KIND >= 12)
_FIRST = np.concatenate([_KIND[:8] // 4, [0, 0, 1, 1], [0] * 4, [0, 0, 1, 1]])
_MIDDLE = np.concatenate([_KIND[:8] // 2 % 2, [0, 1, 0, 1], [0, 0, 1, 1], [0] * 4])
_LAST = np.concatenate([_KIND[:8] % 2, [0] * 4, [0, 1, 0, 1], [0, 1, 0, 1]])
SHOWS_FIRST_EDGE = _HAS_FIRST & _HAS_MIDDLE
SHOWS_LAST_EDGE = _HAS_LAST & _HAS_MIDDLE
FIRST_GAIN: Floats = np.where(SHOWS_FIRST_EDGE, _FIRST - _MIDDLE, 0.0)
LAST_GAIN: Floats = np.where(SHOWS_LAST_EDGE, _LAST - _MIDDLE, 0.0)
_ENDS_GAIN: Floats = np.where(_HAS_FIRST & _HAS_LAST & ~_HAS_MIDDLE, _FIRST - _LAST, 0.0)

# A bet is a pair (a, b): it multiplies wealth by 1 + a(F - M) + b(L - M). Under equal accuracy both differences have mean
# zero however the arms depend on one another, so every such bet is fair; and every fair bet on a block is, or is dominated
# by, one of these (linear programming duality on the eight outcomes). Wealth stays positive where |a|, |b| and |a + b| are
# below 1. The families, as (directions, ((share of the largest bet, weight), ...)); the mirror image of each is added.
# The weights were tuned on planted effects (benchmarks/stop_rule.py); any weights that sum to 1 keep the error rate.
_FAMILIES = (
    # All in on one edge: recency and primacy, and it doubles on every block of a clean U as well.
    (((1.0, 0.0),), ((0.999, 0.42), (0.97, 0.06), (0.9, 0.03))),
    # Between the edges: a U with noise; one contrary block does not ruin it.
    (((0.875, 0.125), (0.75, 0.25), (0.625, 0.375), (0.5, 0.5)), ((0.96, 0.10), (0.88, 0.13))),
    # Half stakes on both edges, and on one edge against the rest: weak effects, found late.
    (((0.5, 0.5),), ((0.6, 0.08), (0.4, 0.06))),
    (((1.0, -0.5),), ((0.6, 0.04),)),
    # The middle best.
    (((-0.5, -0.5), (-0.75, -0.25)), ((0.999, 0.04), (0.8, 0.02))),
    # One edge against the other, the middle between them.
    (((1.0, -1.0),), ((0.999, 0.02),)),
)
# Bets of the equivalence test, as shares of the largest one, 1/(1 - delta): the big one ends early where pairs all agree.
_FLAT_SHARES = np.array([0.95, 0.7, 0.4])
_FLAT_LOG_WEIGHTS: Floats = np.log([0.5, 0.3, 0.2])
# Cells of the look x bet table held at once: 32 MB.
_CHUNK = 4_000_000


def _table() -> tuple[Floats, Floats]:
    """Log payoff of every kind to every bet, shape (20, bets), and the log weight of every bet."""
    bets: list[tuple[float, float]] = []
    weights: list[float] = []
    for directions, stakes in _FAMILIES:
        for a, b in directions:
            for share, weight in stakes:
                bets += [(share * a, share * b), (share * b, share * a)]
                weights += [weight / (2 * len(directions))] * 2
    a_bet, b_bet = np.array(bets).T
    gain = np.outer(FIRST_GAIN, a_bet) + np.outer(LAST_GAIN, b_bet) + np.outer(_ENDS_GAIN, (a_bet - b_bet) / 2)
    return np.log1p(gain), np.log(weights)


_LOG_PAYOFF, _LOG_WEIGHTS = _table()


def kind_of(first: bool | None, middle: bool | None, last: bool | None) -> int | None:
    """The kind of a block; None is an unscored arm. None where fewer than two arms are scored: nothing to compare."""
    match (first, middle, last):
        case (bool(), bool(), bool()):
            return 4 * first + 2 * middle + last
        case (bool(), bool(), None):
            return 8 + 2 * first + middle
        case (None, bool(), bool()):
            return 12 + 2 * middle + last
        case (bool(), None, bool()):
            return 16 + 2 * first + last
        case _:
            return None


def _log_mix(log_wealth: Floats, log_weights: Floats) -> Floats:
    """Log of the weighted mean wealth over the last axis."""
    shifted = log_wealth + log_weights
    top = shifted.max(axis=-1, keepdims=True)
    return np.asarray(top[..., 0] + np.log(np.exp(shifted - top).sum(axis=-1)))


def log_e_values(counts: NDArray[np.int64] | Floats) -> Floats:
    """Log of the e-value against equal accuracy, for counts of kinds of shape (..., 20) or (..., 8), unscored arms absent.

    The weighted mean over bets of prod(1 + a(F - M) + b(L - M)). Valid at any stopping time (Ville 1939), with dependent
    arms. Counts need not be whole, so that expected ones can be asked about.
    """
    kinds = counts.shape[-1]
    flat = counts.reshape(-1, kinds).astype(float)
    out = np.empty(len(flat))
    step = max(1, _CHUNK // len(_LOG_WEIGHTS))
    for start in range(0, len(flat), step):
        out[start : start + step] = _log_mix(flat[start : start + step] @ _LOG_PAYOFF[:kinds], _LOG_WEIGHTS)
    return out.reshape(counts.shape[:-1])


def log_flat_wealth(counts: NDArray[np.int64] | Floats, delta: float) -> Floats:
    """Log wealth of the weakest of the four bets that say an edge's gain is below delta, or above -delta.

    For each gain G of X, -X, Y, -Y: the weighted mean of prod(1 + s (delta - G)/(1 - delta)), an e-value against
    mean G >= delta. All four must be large to show both edges within delta (intersection-union), so the least counts.
    """
    kinds = counts.shape[-1]
    flat = counts.reshape(-1, kinds).astype(float)
    least = np.full(len(flat), np.inf)
    stakes = _FLAT_SHARES / (1 - delta)
    for gain, shown in ((FIRST_GAIN, SHOWS_FIRST_EDGE), (LAST_GAIN, SHOWS_LAST_EDGE)):
        for sign in (1.0, -1.0):
            payoff = np.log1p(stakes * (delta - sign * gain[:kinds, None])) * shown[:kinds, None]
            least = np.minimum(least, _log_mix(flat @ payoff, _FLAT_LOG_WEIGHTS))
    return least.reshape(counts.shape[:-1])


def edge_gains(counts: NDArray[np.int64] | Floats) -> tuple[Floats, Floats]:
    """Mean of F - M and of L - M over the pairs that show them; NaN where none does."""
    kinds = counts.shape[-1]
    out = []
    for gain, shown in ((FIRST_GAIN, SHOWS_FIRST_EDGE), (LAST_GAIN, SHOWS_LAST_EDGE)):
        pairs = (counts @ shown[:kinds].astype(float)).astype(float)
        total = counts @ gain[:kinds]
        out.append(np.divide(total, pairs, out=np.full(np.shape(total), np.nan), where=pairs > 0))
    return out[0], out[1]


def shape_codes(first_gain: Floats, last_gain: Floats) -> NDArray[np.intp]:
    """Index into SHAPES by the two edge gains over the middle.

    Both above 0 and the weaker at least half of the stronger: u. Both below 0 likewise: inverted. Else the better of the
    two edges names it, primacy or recency; with neither better, or an edge unknown, unclear.
    """
    low, high = np.minimum(first_gain, last_gain), np.maximum(first_gain, last_gain)
    code = np.select(
        [(low > 0) & (2 * low >= high), (high < 0) & (2 * high <= low), first_gain > last_gain, last_gain > first_gain],
        [0, 3, 1, 2],
        default=4,
    )
    return np.where(np.isnan(low), 4, code)


def shape_support(counts: NDArray[np.int64] | Floats, codes: NDArray[np.intp], draws: int, seed: int = 0) -> Floats:
    """Posterior share of each run's named shape, for counts of whole blocks of shape (runs, 8).

    Dirichlet posterior of the eight outcomes with a prior of one block in all (Perks 1947), from a fixed seed.
    """
    gammas = np.random.default_rng(seed).standard_gamma((counts + 1 / FULL)[:, None, :], (len(counts), draws, FULL))
    # Scale does not matter to the ratio of two gains, nor to their signs.
    return np.asarray((shape_codes(*edge_gains(gammas)) == codes[:, None]).mean(axis=1))
