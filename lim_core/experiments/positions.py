"""Position curves: the gold chunk at several slots, beside oracle and closed-book, over one case or a suite."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from lim_core import arms
from lim_core.errors import InputError
from lim_core.experiments.cells import ArmFigures, Table, arm_figures, matrix
from lim_core.experiments.options import Levels, names_of, whole_of
from lim_core.experiments.registry import experiments
from lim_core.experiments.shapes import CurveTest, curve_test
from lim_core.experiments.subjects import PLAIN, Subject, arm_name, blocks_for, frame_for, layout
from lim_core.types import Json, Trial

ORACLE, CLOSED = "oracle", "closed-book"
SLOTS = ("first", "q1", "middle", "q3", "last")
# Sendings of each bracket for a single case; in a suite the cases are the repeats.
BRACKET_CALLS = 4


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
    anytime = True
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
        return blocks_for(suite, options.blocks)

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
        rests += f", ends minus {against} {test.gap.value:+z.2f} [{test.gap.low:+z.2f}, {test.gap.high:+z.2f}]"
    if test.p_any is not None:
        rests += f", p = {test.p_any:.3g} for any effect"
    if test.e_value is not None:
        rests += f", e = {test.e_value:.3g}"
    words = SHAPE_WORDS[test.shape]
    if test.reason:
        words += f": {test.reason}"
    more = f"; about {test.more} more {unit}s would likely settle it" if test.more else ""
    return f"{name}{words[0].upper()}{words[1:]} ({rests}){more}."
