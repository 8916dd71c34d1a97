"""The page Accuracy vs tokens: the reader against prompt tokens, the knee, and what to do within a budget."""

from __future__ import annotations

import streamlit as st

from lim_core.drawing.budget import outcome_rows, outcomes_by_k, token_curve, token_rows
from lim_core.drawing.words import count, interval, percent, points
from lim_core.experiments.tokens import KS, TokenResult, advice, k_words
from lim_core.prices import Price
from lim_core.runs import ExperimentView, RunSettings, price_of
from lim_core.types import Usage
from lim_core.ui import views
from lim_core.ui.experiment_run import label_of
from lim_core.ui.experiment_start import Plan, new_experiment, pick_blocks
from lim_core.ui.price_form import currency
from lim_core.ui.suites import Suite


def start() -> None:
    """The form of a new sweep."""
    new_experiment("tokens", _options)


def draw(view: ExperimentView, others: tuple[ExperimentView, ...]) -> str | None:
    """The curve, the failures at each cut, the knee's saving and the advice for a budget."""
    for place, one in enumerate((view, *others)):
        if others:
            st.subheader(views.escape(label_of(one)), anchor=False)
        _one(one, f"tokens-{place}")
    return None


def _options(suite: Suite) -> Plan:
    longest = max(len(case.chunks) for case in suite.cases)
    offered = sorted({*(k for k in KS if k < longest), *range(1, min(longest, 21))})
    picked = st.multiselect(
        "Cut to the first k chunks",
        offered,
        default=[k for k in KS if k < longest],
        key=f"tokens-k-{longest}",
        persist_state="session",
        help="All retrieved chunks, closed-book and oracle are always measured too.",
    )
    return {"k": sorted(int(k) for k in picked) or [1, 2, 5], "blocks": pick_blocks("tokens", suite)}


def _one(view: ExperimentView, key: str) -> None:
    result: TokenResult = view.result
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.subheader("Right answers against prompt tokens", anchor=False)
        views.chart(token_curve(result), token_rows(result), key=f"{key}-curve")
    with right:
        st.subheader("How the answers fail", anchor=False)
        views.chart(outcomes_by_k(result), outcome_rows(result), key=f"{key}-outcomes")
    _saving(view, result)
    _advice(result, key)


def _saving(view: ExperimentView, result: TokenResult) -> None:
    if result.knee is None or result.saving is None:
        return
    saving = result.saving
    price = price_of(RunSettings.from_json(view.run.settings))
    rows: list[views.Row] = [
        {
            "cut": f"k = {k_words(result.points[result.knee].k)} in place of all",
            "prompt tokens saved a call": count(round(saving.tokens)),
            "share": percent(saving.share),
            f"money saved a thousand calls, {currency()}": _money(price, saving.tokens),
            "change in right answers": f"{points(saving.gain.value)} ({interval(saving.gain.low, saving.gain.high, 'pts')})",
            f"n, {result.unit}s": saving.gain.n,
            "exact McNemar p": None if saving.p is None else f"{saving.p:.3g}",
        }
    ]
    views.table(rows, alt="What the knee saves")


def _money(price: Price | None, tokens: float) -> str | None:
    cost = None if price is None else price.cost(Usage(prompt_tokens=round(tokens * 1000), completion_tokens=0))
    return None if cost is None else f"{cost:,.4g}"


def _advice(result: TokenResult, key: str) -> None:
    costs = [point.figures.prompt_tokens for point in result.points if point.figures.prompt_tokens is not None]
    if not costs:
        return
    st.subheader("Within a budget", anchor=False)
    budget = st.number_input(
        "Prompt tokens a call, at most", 1, None, round(max(costs)), 50, key=f"{key}-budget", width=260
    )
    for said in advice(result, int(budget)):
        views.line(said)
