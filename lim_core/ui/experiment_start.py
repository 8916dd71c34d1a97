"""The front of an experiment's page: cases, options and model, what it will cost, one button; below, what was run before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import streamlit as st

from lim_core.drawing.words import clip, count, duration
from lim_core.errors import InputError
from lim_core.experiments import experiments
from lim_core.experiments.subjects import blocks_for, roll
from lim_core.runs import Preflight, RunSettings, new_run_id, preflight_experiment, price_of, run_experiment
from lim_core.types import Case, Json
from lim_core.ui import session, shell, views
from lim_core.ui.model_form import pick_model
from lim_core.ui.price_form import currency
from lim_core.ui.resuming import allowed_key, with_an_end
from lim_core.ui.runs_list import ended_summary, kind_words, status_words
from lim_core.ui.suites import Suite, pick_suite

Plan = Mapping[str, Json]


def new_experiment(kind: str, options: Callable[[Suite], Plan]) -> None:
    """Draw the form; on the button start the run and go to its address. `options` draws the experiment's own choices."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        suite = pick_suite()
        plan = options(suite) if suite is not None else {}
    with right:
        settings = replace(pick_model(f"{kind}-model").settings(), plan=plan, max_calls=None)
        with st.expander("Settings"):
            seed = st.number_input("Seed", 0, 2**31 - 1, 0, key=f"{kind}-seed", persist_state="session")
            alpha = st.number_input(
                "Alpha", 0.001, 0.5, 0.05, 0.01, format="%g", key=f"{kind}-alpha", persist_state="session"
            )
            delta = st.number_input(
                "Delta", 0.01, 0.9, 0.2, 0.05, format="%g", key=f"{kind}-delta", persist_state="session",
                help="The smallest gap in accuracy that matters.",
            )  # fmt: skip
        settings = replace(settings, seed=int(seed), alpha=float(alpha), delta=float(delta))
        cost = None
        if suite is not None:
            known = suite
            cost = session.remembered(
                f"cost-{kind}",
                (
                    suite.digest,
                    repr(sorted(plan.items())),
                    settings.model,
                    settings.base_url,
                    settings.seed,
                    price_of(settings),
                ),
                lambda: preflight_experiment(kind, known.cases, settings),
            )
            _cost(cost, settings)
        if st.button("Run", type="primary", disabled=cost is None, key=f"{kind}-run", width="stretch"):
            if suite is None or cost is None:
                raise InputError("There are no cases yet: choose a suite first.")
            run_id = start_experiment(
                kind,
                suite.name,
                suite.cases,
                replace(settings, max_calls=_cap(cost), warnings=suite.warnings),
            )
            shell.go_to(shell.ROOM_OF[kind], shell.RunLink(run=run_id))
    earlier_runs(kind)


def pick_blocks(kind: str, suite: Suite) -> int:
    """How many distractor orders a case is sent in; one in a suite, more where a single case takes part."""
    wanted = experiments[kind].part.needs_retrieved_gold
    default = session.remembered(
        f"blocks-{kind}", suite.digest, lambda: blocks_for(roll(suite.cases, retrieved=wanted).facts, 0)
    )
    return int(
        st.number_input(
            "Distractor orders a case (blocks)",
            1,
            64,
            default,
            key=f"{kind}-blocks-{default}",
            persist_state="session",
            help="Cases say more than orders: add cases before blocks.",
        )
    )


def start_experiment(kind: str, name: str, cases: tuple[Case, ...], settings: RunSettings) -> str:
    """Start an experiment in the background and return its id; it is in the store at once, also while it is queued.

    Raises:
        ConfigError: its address may not be called from this server.
        InputError: too many runs are waiting, or the cases cannot take part.
    """
    run_id, key, store = new_run_id(), allowed_key(settings), shell.store()
    preflight_experiment(kind, cases, settings)
    settings = replace(settings, keyed=key is not None)

    # A run that is still in the queue when the server stops is found as interrupted, not lost.
    store.start_suite(run_id, kind, name, cases, settings.to_json(), {})
    try:
        shell.jobs().start(
            run_id,
            lambda job: with_an_end(
                store,
                run_id,
                lambda: run_experiment(
                    kind,
                    name,
                    cases,
                    settings,
                    store=store,
                    run_id=run_id,
                    key=key,
                    report=job.report,
                    cancelled=job.cancelled,
                ),
            ),
            settings.lane,
        )
    except InputError:
        store.delete(run_id)
        raise
    return run_id


def quick_start(kind: str, suite: Suite, settings: RunSettings) -> str:
    """Start an experiment with its default options, for a button on Home."""
    cost = preflight_experiment(kind, suite.cases, settings)
    settings = replace(settings, max_calls=_cap(cost), warnings=suite.warnings)
    return start_experiment(kind, suite.name, suite.cases, settings)


def earlier_runs(kind: str, limit: int = 8) -> None:
    """The last runs of this kind as links."""
    page = shell.store().runs(limit=limit, kind=kind)
    if not page.rows:
        return
    st.subheader(f"Earlier: {kind_words(kind)}", anchor=False)
    for row in page.rows:
        room = shell.ROOM_OF[kind]
        said = f"{row.question} · {row.model or 'model unknown'} · {row.created_at:%Y-%m-%d %H:%M} UTC"
        st.page_link(
            room.path,
            label=views.escape(clip(said, 120)),
            icon=room.icon,
            query_params=shell.RunLink(run=row.id).to_query(),
        )
        views.note(ended_summary(row) or status_words(row))


def _cap(cost: Preflight) -> int:
    """The planned calls and room for retries."""
    return cost.calls_high + max(20, cost.calls_high // 5)


def _cost(cost: Preflight, settings: RunSettings) -> None:
    money = "price unknown"
    if cost.cost is not None:
        money = f"about {cost.cost:,.4g} {currency()} by the price table"
    elif settings.base_url is None:
        money = "nothing to pay: it runs on this machine"
    views.line(
        f"{count(cost.calls_high)} calls, about {count(cost.prompt_tokens)} prompt tokens, "
        f"about {duration(cost.seconds)}; {money}."
    )
    for said in cost.notes:
        views.note(said)
