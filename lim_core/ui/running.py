"""Starts diagnoses in the background, shows how far they have come, and opens what they left in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from lim_core.drawing.verdict import outcome_line
from lim_core.drawing.words import count, duration, stage_words
from lim_core.errors import InputError
from lim_core.jobs import JobState
from lim_core.store.runs import DIAGNOSIS
from lim_core.summary import five_lines
from lim_core.types import Case, Json
from lim_core.ui import shell, views
from lim_core.ui.result import show_result
from lim_core.ui.resuming import allowed_key, ending, key_gone, resume_form, stop, with_an_end
from lim_core.ui.runs_list import ended_summary
from lim_core.ui.trials import show_trials

if TYPE_CHECKING:
    from lim_core.jobs import JobContext, JobView
    from lim_core.runs import RunSettings
    from lim_core.store.records import RunRecord


def start_diagnosis(case: Case, settings: RunSettings, warnings: tuple[str, ...] = ()) -> str:
    """Start a new run in the background and return its id; it is in the store at once, also while it is queued.

    Raises:
        ConfigError: its address may not be called from this server.
        InputError: too many runs are waiting.
    """
    from lim_core.runs import new_run_id, run_diagnosis

    run_id, key, store = new_run_id(), allowed_key(settings), shell.store()
    settings = replace(settings, keyed=key is not None)

    def work(job: JobContext) -> object:
        return with_an_end(
            store,
            run_id,
            lambda: run_diagnosis(
                case,
                settings,
                store=store,
                run_id=run_id,
                key=key,
                warnings=warnings,
                report=job.report,
                cancelled=job.cancelled,
            ),
        )

    # A run that is still in the queue when the server stops is found as interrupted, not lost.
    store.start_run(run_id, case, settings.to_json(), {})
    try:
        shell.jobs().start(run_id, work, settings.lane)
    except InputError:
        store.delete(run_id)
        raise
    return run_id


def show_run(run_id: str) -> None:
    """Draw one run: its progress while it goes, then its result, with what can be done with it.

    Raises:
        InputError: there is no such run.
    """
    job = shell.jobs().get(run_id)
    record = shell.store().run(run_id)
    if record is None and job is None:
        raise InputError(f"There is no run {run_id} in this store: it was deleted, or the link is of another server.")
    if job is not None and not job.state.ended:
        if record is not None:
            views.line(record.question)
        if record is not None and record.kind != DIAGNOSIS:
            show_elsewhere(record)
            return
        _watch(run_id)
        return
    if record is None:
        if job is not None and job.error:
            raise InputError(job.error)
        raise InputError(f"The run {run_id} ended before it was stored: start it again.")
    if record.kind != DIAGNOSIS:
        show_elsewhere(record)
        return
    document = shell.store().document(run_id)
    left, right = st.columns([2, 3], vertical_alignment="center")
    with left:
        views.line(record.question)
    with right:
        _actions(record, document)
    # Settings that are off or empty say nothing.
    settings = ", ".join(f"{name.replace('_', ' ')} {_say(value)}" for name, value in record.settings.items() if value)
    views.note(f"{record.case_id} · {record.created_at:%Y-%m-%d %H:%M} UTC · run {record.id} · {settings}")
    early = ending(record, document)
    if early is not None:
        resume_form(record, early)
    if document is not None:
        reading = show_result(document, run_id)
        if sum(reading.outcomes.values()):
            views.note(f"All trials: {outcome_line(reading.outcomes)}")
    show_trials(shell.store(), run_id, run_id)


def show_elsewhere(record: RunRecord) -> None:
    """A run of another kind than a diagnosis: what it found in a sentence, and the way to its own page."""
    room = shell.ROOM_OF.get(record.kind)
    views.line(ended_summary(record) or f"A run of the kind {record.kind}, status {record.status.value}.")
    if room is not None:
        query = shell.RunLink(run=record.id).to_query()
        st.page_link(room.path, label=f"Open on {room.title}", icon=room.icon, query_params=query)


def _again(run_id: str) -> str:
    """Start the case of a run anew, with the same settings; returns the new run's id."""
    from lim_core.runs import RunSettings

    return start_diagnosis(shell.store().case(run_id), RunSettings.from_json(shell.store().settings(run_id)))


def _watch(run_id: str) -> None:
    @st.fragment(run_every="1s")
    def progress() -> None:
        job = shell.jobs().get(run_id)
        if job is None or job.state.ended:
            st.rerun()
        _progress(job)
        label = "Stopping …" if job.cancelling else "Cancel"
        if st.button(label, icon=":material/stop:", disabled=job.cancelling, key=f"stop-{run_id}"):
            stop(run_id)
            st.rerun(scope="fragment")
        views.note("The run goes on when this page is closed; its address leads back to it.")

    progress()


def _progress(job: JobView) -> None:
    progress = job.progress
    if progress is None:
        queued = (
            f"Queued, number {count(job.ahead + 1)} in line: it starts by itself when the runs before it have ended"
        )
        st.progress(0.0, text=queued if job.state is JobState.QUEUED else "Starting")
        return
    # The stop rule decides block by block, so what is planned grows; the estimate made beforehand bounds it.
    most = max(progress.planned, _calls_at_most(job.id))
    left = progress.seconds / progress.calls * (most - progress.calls) if progress.calls else None
    st.progress(
        min(1.0, progress.calls / most) if most else 0.0,
        text=f"**{views.escape(stage_words(progress.stage))}** {views.escape(progress.note)}",
    )
    cells = [
        ("calls", f"{count(progress.calls)} of at most {count(most)}" if most else count(progress.calls)),
        ("prompt tokens", count(progress.prompt_tokens)),
        ("answer tokens", count(progress.completion_tokens)),
        ("elapsed", duration(progress.seconds)),
        ("left, at most", duration(left)),
    ]
    if progress.cost is not None:
        cells.append(("cost so far", f"{progress.cost:.4f}"))
    with st.container(horizontal=True, gap="medium"):
        for label, value in cells:
            st.metric(label, value, width="content")
    views.note("Most runs stop early, as soon as the answers settle it.")


def _calls_at_most(run_id: str) -> int:
    """The upper end of the estimate for a run, 0 while it is not stored yet; kept in the session, for it is asked often."""
    from lim_core.runs import RunSettings, preflight

    known = st.session_state.setdefault("calls-at-most", {})
    if run_id not in known:
        if shell.store().run(run_id) is None:
            return 0
        settings = RunSettings.from_json(shell.store().settings(run_id))
        known[run_id] = preflight(shell.store().case(run_id), settings).calls_high
    return int(known[run_id])


def _actions(record: RunRecord, document: Mapping[str, Json] | None) -> None:
    shared = shell.share(shell.RunLink(run=record.id), st.context.url)
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        with st.popover("Copy link", icon=":material/link:"):
            st.code(shared.url, language=None, wrap_lines=True)
            if shared.loopback:
                views.note("This address opens on this machine only; the README says how to share runs.")
        report_popover(record)
        if document is not None:
            with st.popover("Copy summary", icon=":material/content_copy:"):
                views.block(five_lines(document, None if shared.loopback else shared.url))
        gone = key_gone(record)
        if st.button(
            "Run again",
            icon=":material/replay:",
            key="again",
            disabled=gone,
            help="Its endpoint wants a key: type it on the page Models first."
            if gone
            else "A new run of the same case; every call is sent anew.",
        ):
            # A disabled button is a courtesy of the browser.
            if gone:
                raise InputError("Its endpoint wants a key: type it on the page Models first.")
            shell.go_to(shell.DIAGNOSE, shell.RunLink(run=_again(record.id)))
        if st.button("New diagnosis", icon=":material/add:", key="new"):
            shell.go_to(shell.DIAGNOSE, shell.RunLink())


def report_popover(record: RunRecord) -> None:
    """The run as one HTML file, texts left out on demand."""
    from lim_core.reports import html_report

    with st.popover("Report", icon=":material/description:"):
        st.text("One HTML file with the charts, the figures and how to make them again. It opens without a network.")
        redact = st.checkbox(
            "Leave out texts", key=f"redact-{record.id}", help="Questions, answers, chunk texts and prompts."
        )
        # The file is made when it is asked for: a page does not pay for it.
        st.download_button(
            "Download report",
            data=lambda: html_report(shell.store(), record.id, redact=redact),
            file_name=f"lim-{record.id}{'-redacted' if redact else ''}.html",
            mime="text/html",
            icon=":material/download:",
            on_click="ignore",
            key="report",
        )


def _say(value: Json) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {_say(item)}".strip() for name, item in value.items() if item)
    return "" if value is True else str(value)
