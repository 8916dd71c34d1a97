"""The front of Diagnose: the case on the left, what it enables and costs on the right, one button."""

from __future__ import annotations

import streamlit as st

from lim_core.cases import LoadedCase
from lim_core.errors import InputError
from lim_core.judges import judges
from lim_core.runs import RunSettings, preflight
from lim_core.types import Case, Status
from lim_core.ui import shell, views
from lim_core.ui.case_form import enabled_stages, take_case
from lim_core.ui.model_form import ModelChoice, pick_model
from lim_core.ui.running import start_diagnosis
from lim_core.ui.words import SIGNS, count, duration, stage_words


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
        calls = left.number_input("Calls, at most", 1, 10_000, 200, key="start-calls", persist_state="session")
        seed = right.number_input("Seed", 0, 2**31 - 1, 0, key="start-seed", persist_state="session")
        every = st.checkbox("Run all stages, also once a cause is certain", key="start-all", persist_state="session")
    return RunSettings(
        model=choice.model,
        base_url=choice.base_url,
        judge=judge if judge in names else names[0],
        max_calls=int(calls),
        seed=int(seed),
        all_stages=every,
    )


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
        money = "" if cost.cost is None else f", {cost.cost:.2f} by the price table"
        views.line(f"{calls}, {tokens}, about {duration(cost.seconds)}{money} at most.")
    for said in cost.notes:
        views.note(said)
