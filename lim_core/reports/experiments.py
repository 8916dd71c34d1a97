"""An experiment over a suite as the body of a report: what it says, then each chart with its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from lim_core.drawing.arrangements import accuracies, accuracy_rows, gain_rows, gains
from lim_core.drawing.budget import outcome_rows, outcomes_by_k, token_curve, token_rows
from lim_core.drawing.curves import curve_rows, position_curves
from lim_core.drawing.grid import grid_rows, length_grid, range_rows
from lim_core.drawing.overlays import Overlay, overlays_of
from lim_core.drawing.rank_strip import rank_rows, rank_strip
from lim_core.drawing.references import read_references
from lim_core.drawing.rows import Row
from lim_core.drawing.slot_costs import cost_rows, position_cost
from lim_core.drawing.swings import swing_counts, swing_rows, swings
from lim_core.drawing.words import SHAPES, arm_words, count, interval, percent, points
from lim_core.experiments import experiments
from lim_core.reports.markup import NOTHING, Html, details, element, figure, join, line, note, section, table, text

if TYPE_CHECKING:
    from lim_core.experiments.arrangements import OrderingResult
    from lim_core.experiments.grid import GridResult
    from lim_core.experiments.positions import Curve, PositionResult
    from lim_core.experiments.tokens import TokenResult
    from lim_core.reports.redaction import Redaction
    from lim_core.runs import ExperimentView


def experiment_body(view: ExperimentView, redaction: Redaction | None) -> Html:
    """The whole of it as its trials stand, also while it runs."""
    rows: list[Row] = [
        {"case": one.case_id, "why": one.reason if redaction is None else redaction.strike(one.reason)}
        for one in view.left_out
    ]
    return join(
        (
            _head(view),
            *_BODIES[view.kind](view),
            section("Cases left out", table(rows, "Cases that could not take part")),
        )
    )


def _head(view: ExperimentView) -> Html:
    cases = len(view.table.facts)
    said = (
        f"{view.run.model or 'model unknown'} · {view.name} · {count(cases)} {'case' if cases == 1 else 'cases'} · "
        f"{count(view.trials)} of {count(view.planned)} trials · alpha {view.levels.alpha:g}, delta {view.levels.delta:g}"
    )
    return element(
        "div",
        element("h1", text(experiments[view.kind].title)),
        line(view.standing),
        note(said),
        join(note(f"Note: {warning}") for warning in view.warnings),
        klass="verdict",
    )


def _positions(view: ExperimentView) -> tuple[Html, ...]:
    result: PositionResult = view.result
    overlays = overlays_of(view.run.model or view.name, result)
    drawn = figure(position_curves(overlays), curve_rows(overlays), "Answers by slot of the evidence")
    tests = table([_test_row(curve) for curve in result.curves], "What the curve's test says")
    cost = figure(position_cost(overlays), cost_rows(overlays), "Time and tokens by slot")
    parts = [section("Answers by slot of the evidence", drawn, tests)]
    if len(result.swings) > 1:
        counts = table(swing_counts(result), "Cases by pattern")
        parts.append(
            section("Each case's own curve", counts, figure(swings(result), swing_rows(result), "Case by case"))
        )
    parts.append(section("What each slot costs", cost))
    parts.append(_published(view, overlays))
    return tuple(parts)


def _published(view: ExperimentView, overlays: Sequence[Overlay]) -> Html:
    """The published curves over about as many documents, in a part of their own that opens with a click."""
    known = read_references()
    usual = median(fact.chunks for fact in view.table.facts)
    nearest = min({one.documents for one in known}, key=lambda documents: abs(documents - usual))
    near = [one for one in known if one.documents == nearest]
    drawn = figure(position_curves(overlays, near), curve_rows(overlays, near), "Measured here, and published")
    return details(f"Published curves over {nearest} documents, not measured here", drawn)


def _test_row(curve: Curve) -> Row:
    test = curve.test
    return {
        "template": curve.template,
        "shape": SHAPES.get(test.shape, test.shape),
        "n": test.n,
        "unit": test.unit,
        "ends minus inner (middle for a single case)": points(test.gap.value if test.gap else None),
        "95% interval": interval(test.gap.low, test.gap.high, "pts") if test.gap else None,
        "p, any effect": None if test.p_any is None else f"{test.p_any:.2g}",
        "e": None if test.e_value is None else f"{test.e_value:.3g}",
        "worst slot": arm_words(test.worst_arm) if test.worst_arm else None,
        "accuracy there": f"{percent(test.worst.value)}, {interval(test.worst.low, test.worst.high)}"
        if test.worst
        else None,
        "more to settle it": None if test.more is None else f"about {count(test.more)}",
        "why": test.reason,
    }


def _tokens(view: ExperimentView) -> tuple[Html, ...]:
    result: TokenResult = view.result
    saving = result.saving
    said = ""
    if saving is not None:
        gain = (
            f"{points(saving.gain.value)} ({interval(saving.gain.low, saving.gain.high, 'pts')}, n = {saving.gain.n})"
        )
        said = f"The cut saves {saving.tokens:,.0f} prompt tokens a question ({percent(saving.share)}) at {gain}."
    return (
        section(
            "Accuracy against prompt tokens",
            figure(token_curve(result), token_rows(result), "Accuracy and recall by cut", result.reason),
            line(said),
        ),
        section(
            "How the trials of each cut ended", figure(outcomes_by_k(result), outcome_rows(result), "Outcomes by cut")
        ),
    )


def _orderings(view: ExperimentView) -> tuple[Html, ...]:
    result: OrderingResult = view.result
    sizes = Counter(fact.chunks for fact in view.table.facts)
    names = tuple(dict.fromkeys(arm.ordering for arm in result.arms))
    n = sizes.most_common(1)[0][0] if sizes else 0
    strip = NOTHING
    if names and n:
        said = f"For {n} chunks, as most cases have. Numbers are ranks in the retrieved list."
        strip = figure(rank_strip(names, n), rank_rows(names, n), "Rank in each slot", said)
    return (
        section("Paired gains", figure(gains(result), gain_rows(result), "Gain over the first arm", result.reason)),
        section("Right answers", figure(accuracies(result), accuracy_rows(result), "Accuracy of each arm")),
        section("Which rank lands in which slot", strip),
    )


def _grid(view: ExperimentView) -> tuple[Html, ...]:
    result: GridResult = view.result
    return (
        section(
            "Answers by length and depth",
            figure(length_grid(result), grid_rows(result), "Accuracy by length and depth"),
            table(range_rows(result), f"Whether each length keeps {percent(result.threshold)} at its worst depth"),
        ),
    )


_BODIES: Mapping[str, Callable[[ExperimentView], tuple[Html, ...]]] = {
    "positions": _positions,
    "tokens": _tokens,
    "orderings": _orderings,
    "grid": _grid,
}
