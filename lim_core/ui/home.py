"""The front page: what lim does, the sample complaints, the last runs."""

from __future__ import annotations

import streamlit as st

from lim_core.ui import shell, views
from lim_core.ui.experiment_start import quick_start
from lim_core.ui.model_form import chosen_model
from lim_core.ui.running import start_diagnosis
from lim_core.ui.runs_list import recent_runs
from lim_core.ui.samples import Sample, list_samples, load_sample
from lim_core.ui.suites import SAMPLE, sample_suite

_WHAT = (
    "A user says the bot answered wrongly, though the document says otherwise. "
    "lim takes the question, the retrieved chunks and the right answer, runs the stages in order, and names the first one "
    "that lost the answer: with evidence, an interval, and a remedy that was tried on this very case."
)


def show_home() -> None:
    """Draw the page."""
    st.text(_WHAT, width=760)
    st.page_link(shell.DIAGNOSE.path, label="Diagnose a complaint of your own", icon=shell.DIAGNOSE.icon)
    left, right = st.columns([5, 2], gap="large")
    with left:
        st.subheader("Sample complaints", anchor=False)
        samples = list_samples()
        if not samples:
            views.note("The folder data holds no samples.")
        with st.grid(2, min_column_width=280, gap="small"):
            for place, sample in enumerate(samples):
                _offer(sample, place)
        _experiments()
    with right:
        st.subheader("Last runs", anchor=False)
        recent_runs(8)


_MEASURES = (
    ("positions", "Where does the model read best?", "The gold chunk at five slots, beside oracle and closed-book."),
    ("tokens", "How many chunks are enough?", "The first k chunks for growing k, against prompt tokens."),
    ("orderings", "Which order is best?", "Four orderings side by side, and a test of distraction."),
    ("grid", "How long may the prompt be?", "Length by position, filled with the suite's own documents."),
)


def _experiments() -> None:
    st.subheader("Measure over a suite", anchor=False)
    views.note(f"Each runs the sample suite {SAMPLE.stem} on the model of this session.")
    with st.grid(2, min_column_width=280, gap="small"):
        for kind, title, says in _MEASURES:
            with st.container(border=True, gap="xsmall", height="stretch"):
                st.markdown(f"**{title}**")
                views.note(says)
                if st.button("Measure", key=f"measure-{kind}", icon=":material/play_arrow:"):
                    run_id = quick_start(kind, sample_suite(), chosen_model().settings())
                    shell.go_to(shell.ROOM_OF[kind], shell.RunLink(run=run_id))


def _offer(sample: Sample, place: int) -> None:
    with st.container(border=True, gap="xsmall", height="stretch"):
        st.markdown(f"**{views.escape(sample.title)}**")
        views.note(sample.complaint)
        if st.button("Diagnose", key=f"sample-{place}", icon=":material/play_arrow:"):
            loaded = load_sample(sample)
            run_id = start_diagnosis(loaded.case, chosen_model().settings(), loaded.warnings)
            shell.go_to(shell.DIAGNOSE, shell.RunLink(run=run_id))
