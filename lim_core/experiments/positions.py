"""Position curves: the gold chunk at several slots, beside oracle and closed-book, over one case or a suite."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from lim_core import arms
from lim_core.errors import InputError
from lim_core.experiments.cells import ArmFigures, Matrix, Table, arm_figures, matrix, unscored
from lim_core.experiments.options import Levels, names_of, whole_of
from lim_core.experiments.registry import experiments
from lim_core.experiments.subjects import PLAIN, Subject, arm_name, frame_for, layout
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
from lim_core.types import Estimate, Json, Trial

ORACLE, CLOSED = "oracle", "closed-book"
SLOTS = ("first", "q1", "middle", "q3", "last")
# Sendings of each bracket for a single case; in a suite the cases are the repeats.
BRACKET_CALLS = 4
SINGLE_BLOCKS = 8


@dataclass(frozen=True, slots=True)
class PositionOptions:
    """Slots by name (`all` is every slot), blocks a case (0: one in a suite, eight for a single case), templates."""

    positions: tuple[str, ...] = SLOTS
    blocks: int = 0
    templates: tuple[str, ...] = (PLAIN,)

    def __post_init__(self) -> None:
        if not self.positions:
            raise InputError("No position is named: give some of first, q1, middle, q3, last, or all.")
        for name in self.positions:
            if name not in arms.NAMED_SLOTS and name not in ("all", "own") and not name.isdecimal():
                raise InputError(
                    f"There is no position {name!r}: give first, q1, middle, q3, last, all or a slot number."
                )
        for template in self.templates:
            layout(template)
        if self.blocks < 0:
            raise InputError(f"blocks is {self.blocks}: give a whole number above 0.")

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> PositionOptions:
        """Options as stored with a run."""
        return cls(
            names_of(value, "positions", SLOTS), whole_of(value, "blocks", 0), names_of(value, "templates", (PLAIN,))
        )


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


@dataclass(frozen=True, slots=True)
class Curve:
    """Accuracy by slot in one template."""

    template: str
    points: tuple[ArmFigures, ...]
    test: CurveTest


@dataclass(frozen=True, slots=True)
class Swing:
    """One case's accuracy at each slot of the first template, None where unscored."""

    case_id: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class PositionResult:
    """Curves by template, the brackets they share, and each case's own swing."""

    curves: tuple[Curve, ...]
    oracle: ArmFigures | None
    closed_book: ArmFigures | None
    swings: tuple[Swing, ...]
    unit: str


class Positions:
    """Moves the gold chunk through the prompt, all else equal, and asks whether the answers change."""

    needs_retrieved_gold = True
    read = PositionOptions.from_json

    def templates(self, options: PositionOptions) -> tuple[str, ...]:
        """The templates compared."""
        return options.templates

    def trials(
        self, subject: Subject, suite: Sequence[Subject], block: int, options: PositionOptions, seed: int
    ) -> tuple[Trial, ...]:
        """One block: every slot in every template; the brackets go with block 0."""
        order = next(islice(arms.distractor_orders(subject.parts.distractors, seed), block, None), None)
        if order is None:
            return ()
        made: list[Trial] = []
        for template in options.templates:
            slots = [
                replace(slot, arm=arm_name(slot.arm, template))
                for slot in arms.named_slots(subject.parts, options.positions)
            ]
            made += arms.position_block(subject.case, subject.parts, order, block, slots, frame_for(subject, template))
        if block == 0:
            repeats = range(BRACKET_CALLS if len(suite) == 1 else 1)
            made += arms.oracle(subject.case, subject.parts, repeats, subject.frame)
            made += arms.closed(subject.case, repeats)
        return tuple(made)

    def blocks(self, suite: Sequence[Subject], options: PositionOptions) -> int:
        """As many as asked for; by default one in a suite, eight for a single case."""
        return options.blocks or (SINGLE_BLOCKS if len(suite) == 1 else 1)

    def analyse(self, table: Table, options: PositionOptions, levels: Levels) -> PositionResult:
        """Figures, shapes and swings of what has finished."""
        unit = "block" if len(table.facts) == 1 else "case"
        present = table.arms()
        curves = []
        for template in options.templates:
            names = slot_arms(table, template)
            points = tuple(arm_figures(table, name) for name in names)
            curves.append(Curve(template, points, curve_test(table, names, levels, unit)))
        first = slot_arms(table, options.templates[0])
        return PositionResult(
            tuple(curves),
            arm_figures(table, ORACLE) if ORACLE in present else None,
            arm_figures(table, CLOSED) if CLOSED in present else None,
            _swings(table, first),
            unit,
        )

    def summary(self, result: PositionResult) -> str:
        """One sentence a template."""
        return " ".join(_say(curve, result.unit) for curve in result.curves)


experiments.register("positions", title="Position curves", order=0)(Positions())


def slot_arms(table: Table, template: str) -> tuple[str, ...]:
    """The position arms of one template, first slot to last.

    By their mean share of the way through the prompt, over the cases that have them all where there are such cases: only
    there are a late slot, which short cases lack, and an early one averages of the same prompts.
    """
    suffix = "" if template == PLAIN else f"+{template}"
    last = {fact.case_id: max(1, fact.chunks - len(fact.gold_ranks)) for fact in table.facts}
    shares: dict[str, dict[str, float]] = {}
    for cell in table.cells:
        base = cell.arm.removesuffix(suffix) if suffix else cell.arm
        if base.startswith("position:") and arm_name(base, template) == cell.arm and "+" not in base:
            shares.setdefault(cell.arm, {})[cell.case_id] = (cell.slot or 0) / last.get(cell.case_id, 1)
    shared = set.intersection(*map(set, shares.values())) if shares else set()

    def place(arm: str) -> float:
        found = [share for case_id, share in shares[arm].items() if case_id in shared or not shared]
        return sum(found) / len(found)

    return tuple(sorted(shares, key=place))


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
        return CurveTest("unclear", f"one {unit} proves nothing", n, unit)
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


_NO_EDGE = "the slots differ, but no edge stands out"


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
        reason = f"{n} cases do not settle it"
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


def _swings(table: Table, names: Sequence[str]) -> tuple[Swing, ...]:
    grid = matrix(table, names, by_case=True)
    rows = dict(zip(grid.units, grid.values, strict=True))
    return tuple(
        Swing(fact.case_id, tuple(None if math.isnan(value) else float(value) for value in rows[fact.case_id]))
        for fact in table.facts
        if fact.case_id in rows
    )


SHAPE_WORDS = {
    "u": "both edges are read better than the inner slots",
    "primacy": "the start is read best",
    "recency": "the end is read best",
    "cliff": "accuracy collapses past one slot",
    "inverted": "the inner slots are read better than both edges",
    "flat": "the position makes no difference that matters",
    "unclear": "undetermined",
}


def _say(curve: Curve, unit: str) -> str:
    test = curve.test
    name = "" if curve.template == PLAIN else f"{curve.template}: "
    rests = f"{test.n} {unit}{'' if test.n == 1 else 's'}"
    if test.gap is not None:
        against = "middle" if unit == "block" else "inner"
        rests += f", ends minus {against} {test.gap.value:+.2f} [{test.gap.low:+.2f}, {test.gap.high:+.2f}]"
    if test.p_any is not None:
        rests += f", p = {test.p_any:.3g} for any effect"
    if test.e_value is not None:
        rests += f", e = {test.e_value:.3g}"
    words = SHAPE_WORDS[test.shape]
    if test.reason:
        words += f": {test.reason}"
    more = f"; about {test.more} more {unit}s would likely settle it" if test.more else ""
    return f"{name}{words[0].upper()}{words[1:]} ({rests}){more}."
