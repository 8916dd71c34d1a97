"""The trials of a run: filtered and paged in the store, with the answer and the exact prompt of the one that is picked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from lim_core.drawing.words import OUTCOME_SHAPES, arm_words, clip, count, percent
from lim_core.types import Outcome
from lim_core.ui import views

if TYPE_CHECKING:
    from lim_core.store import Store
    from lim_core.store.records import TrialRow

PAGE = 100
_ALL = "all"


def show_trials(store: Store, run_id: str, key: str, arm: str | None = None) -> None:
    """Draw the table with its filters, and below it the trial that is picked; `arm` is one picked in a chart."""
    arms = {row.arm: row for row in store.arms(run_id)}
    if not arms:
        return
    st.subheader("Trials", anchor=False)
    # A cell stays picked over reruns: it sets the filter once, when it is picked.
    if arm != st.session_state.get(f"{key}-picked"):
        st.session_state[f"{key}-picked"] = arm
        if arm in arms:
            st.session_state[f"{key}-arm"] = arm
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox("Arm", [_ALL, *arms], format_func=arm_words, key=f"{key}-arm", width=220)
        outcome = st.selectbox(
            "Outcome",
            [_ALL, *(item.value for item in Outcome)],
            format_func=lambda name: OUTCOME_SHAPES.get(name, name),
            key=f"{key}-outcome",
            width=180,
        )
        chosen_arm = chosen if chosen in arms else None
        chosen_outcome = outcome if outcome in OUTCOME_SHAPES else None
        total = store.count_trials(run_id, arm=chosen_arm, outcome=chosen_outcome)
        pages = max(1, -(-total // PAGE))
        page = 1
        if pages > 1:
            page = int(
                st.number_input(f"Page, of {pages}", 1, pages, key=f"{key}-page-{chosen_arm}-{outcome}", width=140)
            )
    rows = store.trials(run_id, arm=chosen_arm, outcome=chosen_outcome, limit=PAGE, offset=(page - 1) * PAGE)
    views.note(f"{count(total)} trials. Pick a row for its whole answer and the exact prompt.")
    event = st.dataframe(
        [_cells(row) for row in rows],
        hide_index=True,
        key=f"{key}-trials-{chosen_arm}-{outcome}-{page}",
        on_select="rerun",
        selection_mode="single-row",
        placeholder="–",
        alt="Trials of the run, in the order they finished",
        column_config={
            "ms": st.column_config.NumberColumn(format="%d"),
            "answer": st.column_config.TextColumn(width="medium"),
        },
    )
    picked = [index for index in event["selection"]["rows"] if 0 <= index < len(rows)]
    if picked:
        _one(store, rows[picked[0]])


def _cells(row: TrialRow) -> views.Row:
    return {
        "trial": row.seq + 1,
        "case": row.case_id,
        "arm": arm_words(row.arm),
        "block": row.block,
        "repeat": row.repeat,
        "slot": None if row.slot is None else row.slot + 1,
        "depth": percent(row.depth),
        "outcome": OUTCOME_SHAPES.get(row.outcome, row.outcome),
        "answer": clip(row.answer, 160),
        "prompt tokens": row.prompt_tokens,
        "of these cached": row.cached_prompt_tokens,
        "answer tokens": row.completion_tokens,
        "ms": None if row.seconds is None else round(row.seconds * 1000),
        "call": "from cache" if row.cached else "sent",
    }


def _one(store: Store, row: TrialRow) -> None:
    with st.container(border=True):
        views.note(f"Trial {row.seq + 1}, {arm_words(row.arm)}, block {row.block}: {row.outcome}. {row.reason}")
        if row.fault:
            views.note(f"Fault: {row.fault}")
        views.block(row.answer or "(empty)")
        if st.toggle("Exact prompt", key=f"prompt-{row.call_id}"):
            for message in store.prompt(row.call_id) or ():
                views.note(f"{message.role}, {count(len(message.content))} characters")
                views.block(message.content, height=360)
