"""The page Position curves: curves over slots with their costs and each case's swing, and the grid of length by depth."""

from __future__ import annotations

import streamlit as st

from lim_core.drawing.curves import curve_rows, position_curves
from lim_core.drawing.grid import grid_rows, length_grid, range_rows
from lim_core.drawing.overlays import Overlay, overlays_of
from lim_core.drawing.references import Reference, read_references
from lim_core.drawing.slot_costs import cost_rows, position_cost
from lim_core.drawing.swings import swing_counts, swing_rows, swings
from lim_core.drawing.words import count, interval, percent, points
from lim_core.experiments.grid import LENGTHS
from lim_core.experiments.positions import SHAPE_WORDS, SLOTS, PositionResult
from lim_core.experiments.subjects import PLAIN, TEMPLATE_OPTIONS
from lim_core.runs import ExperimentView
from lim_core.ui import views
from lim_core.ui.experiment_run import label_of
from lim_core.ui.experiment_start import Plan, earlier_runs, new_experiment, pick_blocks
from lim_core.ui.suites import Suite

_CURVES, _GRID = "Curve over slots", "Length by position"


def start() -> None:
    """The form of a new run: a curve, or the grid."""
    what = st.segmented_control(
        "Measure", [_CURVES, _GRID], default=_CURVES, required=True, key="curves-what", persist_state="session"
    )
    if what == _GRID:
        new_experiment("grid", _grid_options)
        earlier_runs("positions", 3)
    else:
        new_experiment("positions", _curve_options)
        earlier_runs("grid", 3)


def draw(view: ExperimentView, others: tuple[ExperimentView, ...]) -> str | None:
    """The figures of a run; returns the arm of a cell that was picked."""
    if view.kind == "grid":
        return _draw_grid(view)
    _draw_curves(view, others)
    return None


def _curve_options(suite: Suite) -> Plan:
    every = st.toggle("Every slot instead of five", key="curves-all", persist_state="session")
    templates = pick_templates("curves-templates")
    return {
        "positions": ["all"] if every else list(SLOTS),
        "templates": templates,
        "blocks": pick_blocks("positions", suite),
    }


def pick_templates(key: str) -> list[str]:
    """Template options to compare, the plain template always among them."""
    picked = st.multiselect(
        "Also in these templates",
        list(TEMPLATE_OPTIONS),
        format_func=lambda name: TEMPLATE_OPTIONS.get(name, name),
        key=key,
        persist_state="session",
        max_selections=3,
    )
    return [PLAIN, *(name for name in picked if name in TEMPLATE_OPTIONS)]


def _grid_options(suite: Suite) -> Plan:
    lengths = st.multiselect(
        "Prompt lengths in tokens",
        [250, 500, 1000, 2000, 4000, 8000, 16000, 32000],
        default=list(LENGTHS),
        key="grid-lengths",
        persist_state="session",
        help="Prompts are filled with the suite's own chunks; lengths that they cannot fill are left out.",
    )
    depths = st.number_input("Depths", 3, 11, 5, 2, key="grid-depths", persist_state="session")
    threshold = st.slider(
        "Accuracy that the worst depth must keep", 0.1, 0.95, 0.7, 0.05, key="grid-threshold", persist_state="session"
    )
    return {
        "lengths": sorted(int(one) for one in lengths) or list(LENGTHS),
        "depths": int(depths),
        "threshold": float(threshold),
    }


def _draw_curves(view: ExperimentView, others: tuple[ExperimentView, ...]) -> None:
    result: PositionResult = view.result
    overlays: list[Overlay] = list(overlays_of(label_of(view) if others else "measured", result))
    for other in others:
        overlays += overlays_of(label_of(other), other.result)
    with st.container(horizontal=True, vertical_alignment="center"):
        context = st.toggle("Context-use ratio", key="context", bind="query-params")
        published = st.toggle("Published curves (Liu et al. 2024)", key="published", bind="query-params")
    references: tuple[Reference, ...] = ()
    if published:
        known = read_references()
        names = [f"{one.model}, {one.documents} documents" for one in known]
        chosen = st.multiselect("Published, not measured here", names, default=names[:1], key="reference")
        references = tuple(one for name, one in zip(names, known, strict=True) if name in chosen)
    st.subheader("Right answers by slot of the gold chunk", anchor=False)
    # A chart of other curves is another chart: its key says which.
    key = f"curve-{len(overlays)}-{context}-{len(references)}"
    views.chart(position_curves(overlays, references, context_use=context), curve_rows(overlays, references), key=key)
    _shapes(overlays)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        st.subheader("What a slot costs", anchor=False)
        views.chart(position_cost(overlays), cost_rows(overlays), key=f"cost-{len(overlays)}")
        views.table(swing_counts(result), alt="How many cases show each pattern")
    with right:
        st.subheader("Each case by itself", anchor=False)
        views.note("Averages hide swings: cases of one pattern stand together.")
        views.chart(swings(result), swing_rows(result), key="swings")


def _shapes(overlays: list[Overlay]) -> None:
    rows: list[views.Row] = []
    for overlay in overlays:
        curve = overlay.curve
        if curve is None:
            continue
        test = curve.test
        gap, worst = test.gap, test.worst
        rows.append(
            {
                "curve": overlay.label,
                "shape": SHAPE_WORDS[test.shape] + (f": {test.reason}" if test.reason else ""),
                "ends minus inner (middle for a single case)": None
                if gap is None
                else f"{points(gap.value)} ({interval(gap.low, gap.high, 'pts')})",
                "worst slot": None
                if worst is None
                else f"{percent(worst.value)} ({interval(worst.low, worst.high)}), allows for the picking",
                f"n, {test.unit}s": test.n,
                "p, any effect": None if test.p_any is None else f"{test.p_any:.3g}",
                "e": None if test.e_value is None else f"{test.e_value:.3g}",
                "more to settle it": None if test.more is None else f"about {count(test.more)} {test.unit}s",
            }
        )
    views.table(rows, alt="The test of each curve")


def _draw_grid(view: ExperimentView) -> str | None:
    st.subheader("Right answers by length and depth", anchor=False)
    drawn = length_grid(view.result)
    picture, figures = st.tabs(["Chart", "Table"], key="grid-tabs")
    with picture:
        event = st.plotly_chart(
            drawn.figure,
            alt=drawn.alt,
            key=f"grid-chart-{view.run.id}",
            on_select="rerun",
            config={"displayModeBar": False},
        )
        views.note("Click a cell to see its trials below.")
    with figures:
        views.table(grid_rows(view.result), alt=drawn.alt)
    views.table(range_rows(view.result), alt="The worst depth of each length")
    picked = event["selection"]["points"] if event else []
    data = picked[0].get("customdata") if picked else None
    return str(data[0]) if isinstance(data, list) and data else None
