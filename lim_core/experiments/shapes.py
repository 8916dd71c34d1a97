"""The shape of a position curve: its test over the cases of a suite, or over the blocks of a single case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lim_core.experiments.cells import Matrix, Table, arm_figures, matrix, unscored
from lim_core.experiments.options import Levels
from lim_core.stats import (
    cases_needed,
    flat_pairs_needed,
    holm,
    paired_gain,
    permutation_test,
    tost,
    worst_position,
)
from lim_core.stats.stop_rule import SlotCount, SlotTest, find_cliff
from lim_core.types import Estimate

_NO_EDGE = "the slots differ, but no edge stands out"


@dataclass(frozen=True, slots=True)
class CurveTest:
    """What a curve's test says.

    `shape` is u, primacy, recency, cliff, inverted, flat or unclear. `p_any` is that of any position effect. `gap` is the mean
    of both ends minus that of the inner slots (for a single case: minus the middle slot) with its interval. `worst` is the
    lowest slot with an interval that allows for its having been picked. `e_value` is given for a single case. `more` is how
    many more cases (blocks) would likely settle it.
    """

    shape: str
    reason: str
    n: int
    unit: str
    p_any: float | None = None
    p_first: float | None = None
    p_last: float | None = None
    e_value: float | None = None
    gap: Estimate | None = None
    worst_arm: str | None = None
    worst: Estimate | None = None
    more: int | None = None


def curve_test(table: Table, names: Sequence[str], levels: Levels, unit: str) -> CurveTest:
    """Name the shape of a curve, or say why it cannot be named and what would settle it."""
    grid = matrix(table, names)
    n = len(grid.whole())
    problem = unscored(table, names)
    if problem:
        return CurveTest("unclear", problem, n, unit)
    if len(names) < 3:
        return CurveTest("unclear", "fewer than three distinct slots", n, unit)
    if n < 2:
        seen = f"one {unit} proves nothing" if n else f"no {unit} is scored at every slot"
        return CurveTest("unclear", seen, n, unit)
    figures = [arm_figures(table, name) for name in names]
    test = _sequential(grid, names, levels) if unit == "block" else _permuted(grid, levels)
    # A cliff is the sharper word for what else would be called primacy, or would have an effect and no name.
    effect = test.shape == "primacy" or test.reason == _NO_EDGE
    slots = [SlotCount(index, point.trials, point.right) for index, point in enumerate(figures)]
    if find_cliff(slots, effect=effect, alpha=levels.alpha) is not None:
        test = replace(test, shape="cliff", reason="", more=None)
    # Units are whole cases, so a slot's count is its accuracy over its units, rounded to whole cases.
    right = [round((point.accuracy or 0) * point.n) for point in figures]
    worst = worst_position(right, [point.n for point in figures])
    return replace(test, worst_arm=names[worst.index], worst=worst.estimate)


def _permuted(grid: Matrix, levels: Levels) -> CurveTest:
    """The test over cases: any effect by permutation, each edge against the inner slots, flatness by equivalence."""
    x = grid.whole()
    n = len(x)
    found = permutation_test(x, seed=levels.seed)
    mirrored = permutation_test(1 - x, seed=levels.seed)
    inner = x[:, 1:-1].mean(axis=1)
    first, last = x[:, 0], x[:, -1]
    gap = paired_gain(list(inner), list((first + last) / 2), seed=levels.seed)
    any_effect, u, inverted = holm((found.p_any, found.p_u, mirrored.p_u))
    # Equivalence is shown of each edge; two claims, both needed, so no correction is due.
    flat = all(tost(list(inner), list(edge), levels.delta, alpha=levels.alpha).shown for edge in (first, last))
    weaker, stronger = sorted((float((first - inner).mean()), float((last - inner).mean())))
    shape, reason = "unclear", ""
    if u <= levels.alpha and 2 * weaker >= stronger:
        shape = "u"
    elif inverted <= levels.alpha:
        shape = "inverted"
    elif any_effect <= levels.alpha and found.p_first <= levels.alpha and first.mean() >= last.mean():
        shape = "primacy"
    elif any_effect <= levels.alpha and found.p_last <= levels.alpha:
        shape = "recency"
    elif any_effect <= levels.alpha:
        reason = _NO_EDGE
    elif flat:
        shape = "flat"
    else:
        # Short cases lack late slots, and a run that goes on lacks some too.
        rest = f", and only they of {len(grid.units)} are scored at every slot" if n < len(grid.units) else ""
        reason = f"{n} cases do not settle it{rest}"
    return CurveTest(
        shape,
        reason,
        n,
        "case",
        found.p_any,
        found.p_first,
        found.p_last,
        gap=gap,
        more=None if shape != "unclear" else _more_cases(first - inner, last - inner, levels.delta),
    )


def _sequential(grid: Matrix, names: Sequence[str], levels: Levels) -> CurveTest:
    """The test over the blocks of one case: the anytime-valid rule of the diagnosis, on first, middle and last."""
    test = SlotTest(levels.alpha, levels.delta)
    named = (place for place, name in enumerate(names) if name.startswith("position:middle"))
    middle = next(named, (len(names) - 1) // 2)
    for row in grid.values:
        test.add(*(_right(row[place]) for place in (0, middle, -1)))
    reason = _NO_EDGE if test.effect else f"{test.blocks} blocks do not settle it"
    if test.shape != "unclear":
        reason = ""
    return CurveTest(
        test.shape,
        reason,
        test.complete_blocks,
        "block",
        e_value=test.e_value,
        gap=test.gap_interval,
        more=test.more_blocks if test.shape == "unclear" else None,
    )


def _right(value: float) -> bool | None:
    return None if math.isnan(value) else bool(value > 0.5)


def _more_cases(first: NDArray[np.float64], last: NDArray[np.float64], delta: float) -> int | None:
    """Cases beyond those seen that would show the gap seen, or flatness, with power .8 if all goes on as it did.

    Flatness is shown of each edge, so the edge whose gains vary most counts.
    """
    n, ends = len(first), (first + last) / 2
    options = [flat_pairs_needed(delta, max(_spread(first), _spread(last)))]
    if abs(float(ends.mean())) > 1e-9:
        options.append(cases_needed(float(ends.mean()), between=_spread(ends), within=0.0, repeats=1))
    more = min(options) - n
    return more if more > 0 else None


def _spread(gains: NDArray[np.float64]) -> float:
    return float(gains.var(ddof=1)) or 1.0 / len(gains)
