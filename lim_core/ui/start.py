"""The front of Diagnose: the case on the left, what it enables and costs on the right, one button."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from lim_core.cases import LoadedCase
from lim_core.drawing.words import SIGNS, count, duration, stage_words
from lim_core.errors import InputError
from lim_core.judges import judges
from lim_core.runs import Preflight, RunSettings, preflight, price_of
from lim_core.types import Case, Status
from lim_core.ui import shell, views
from lim_core.ui.case_form import enabled_stages, take_case
from lim_core.ui.model_form import ModelChoice, pick_model
from lim_core.ui.price_form import currency
from lim_core.ui.running import start_diagnosis

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


def new_diagnosis() -> None:
    """Draw the form; on the button start the run and go to its address."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        loaded, fault = _take()
    with right:
        choice = pick_model("start-model")
        settings = _settings(choice)
        if fault:
            views.caution(fault)
        _enabled(None if loaded is None else loaded.case)
        if loaded is not None:
            _cost(loaded, settings)
        if st.button("Diagnose", type="primary", disabled=loaded is None, key="diagnose", width="stretch"):
            # A disabled button is a courtesy of the browser.
            if loaded is None:
                raise InputError("There is no case yet: fill in the question and the chunks.")
            run_id = start_diagnosis(loaded.case, settings, loaded.warnings)
            shell.go_to(shell.DIAGNOSE, shell.RunLink(run=run_id))


def _take() -> tuple[LoadedCase | None, str]:
    try:
        return take_case(), ""
    except InputError as error:
        return None, str(error)


def _settings(choice: ModelChoice) -> RunSettings:
    model = choice.settings()
    price = price_of(model)
    with st.expander("Settings"):
        names = [entry.name for entry in judges]
        judge = st.selectbox(
            "Judge",
            names,
            format_func=lambda name: judges[name].title,
            key="start-judge",
            help="Decides whether an answer is right.",
            persist_state="session",
        )
        left, right = st.columns(2)
        calls = left.number_input(
            "Calls, at most", 1, 10_000, 200, key="start-calls", help="Retries count.", persist_state="session"
        )
        tokens = _whole(right, "Tokens, at most", "start-tokens", "Prompt and answer tokens that the endpoint reports.")
        money = left.number_input(
            "Money, at most",
            min_value=0.0001,
            value=None,
            format="%g",
            key="start-money",
            placeholder="no cap" if price else "price unknown",
            disabled=price is None,
            help="In the currency of the price table on the page Models; it needs this model's price there.",
            persist_state="session",
        )
        flight = _whole(
            right,
            "In flight, at most",
            "start-flight",
            "Requests at once; by default as many as the model works on at once.",
            "default",
        )
        requests = _whole(left, "Requests a minute", "start-rpm", "At most so many are sent in a minute.")
        minute = _whole(right, "Tokens a minute", "start-tpm", "Prompt tokens, at most so many in a minute.")
        alpha = left.number_input(
            "Alpha",
            0.001,
            0.5,
            0.05,
            0.01,
            format="%g",
            key="start-alpha",
            help="How often the position test may name an effect where there is none.",
            persist_state="session",
        )
        delta = right.number_input(
            "Delta",
            0.01,
            0.9,
            0.2,
            0.05,
            format="%g",
            key="start-delta",
            help="The smallest gap in accuracy that matters.",
            persist_state="session",
        )
        seed = left.number_input("Seed", 0, 2**31 - 1, 0, key="start-seed", persist_state="session")
        every = st.checkbox("Run all stages, also once a cause is certain", key="start-all", persist_state="session")
    return replace(
        model,
        judge=judge if judge in names else names[0],
        alpha=float(alpha),
        delta=float(delta),
        seed=int(seed),
        max_calls=int(calls),
        max_tokens=tokens,
        # A cap typed for a model with a price is kept in the box, and means nothing for one without.
        max_cost=float(money) if money is not None and price is not None else None,
        in_flight=flight,
        requests_per_minute=requests,
        tokens_per_minute=minute,
        all_stages=every,
    )


def _whole(where: DeltaGenerator, label: str, key: str, says: str, empty: str = "no cap") -> int | None:
    """A whole number of 1 or more, or nothing."""
    value = where.number_input(
        label, min_value=1, value=None, step=1, key=key, help=says, placeholder=empty, persist_state="session"
    )
    return None if value is None else int(value)


def _enabled(case: Case | None) -> None:
    with st.container(gap="xsmall"):
        st.markdown("**What each stage needs**" if case is None else "**What this case enables**")
        for row in enabled_stages(case):
            look = SIGNS[Status.PASS if row.ready else Status.SKIPPED]
            st.markdown(views.sign(look, f"{stage_words(row.stage)} :gray[{row.says}]"))


def _cost(loaded: LoadedCase, settings: RunSettings) -> None:
    for warning in loaded.warnings:
        views.note(f"Note: {warning}")
    cost = preflight(loaded.case, settings)
    if cost.calls_high:
        calls = f"{count(cost.calls_low)} to {count(cost.calls_high)} calls"
        tokens = f"up to {count(cost.prompt_tokens)} prompt tokens"
        views.line(f"{calls}, {tokens}, about {duration(cost.seconds)} at most; {_money(cost, settings)}.")
    for said in cost.notes:
        views.note(said)


def _money(cost: Preflight, settings: RunSettings) -> str:
    if cost.cost is not None:
        return f"at most {cost.cost:,.4g} {currency()} by the price table"
    return "nothing to pay: it runs on this machine" if settings.base_url is None else "price unknown"
