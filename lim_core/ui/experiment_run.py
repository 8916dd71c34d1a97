"""One experiment on its page: progress while it goes, its figures as they stand, what can be done with it, its trials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from lim_core.drawing.words import clip, count, duration
from lim_core.errors import InputError, LimError
from lim_core.experiments import Table, experiments
from lim_core.jobs import JobState
from lim_core.runs import ExperimentView, RunSettings, load_experiment
from lim_core.ui import shell, views
from lim_core.ui.experiment_start import start_experiment
from lim_core.ui.resuming import ending, key_gone, resume_form, stop
from lim_core.ui.running import report_popover
from lim_core.ui.trials import show_trials

if TYPE_CHECKING:
    from lim_core.jobs import JobView

Draw = Callable[[ExperimentView, tuple[ExperimentView, ...]], str | None]
_ALL = "all"
_COMPARED = 5
# What a link carries beside the run.
_IN_LINK = ("tag", "with", "case", "context", "published")


def show_experiment(run_id: str, draw: Draw) -> None:
    """Draw a run of this page's kind. `draw` draws the figures of it and of the runs laid over it, and may return the name
    of an arm whose trials are wanted.

    Raises:
        InputError: there is no such run, or it is of another kind.
    """
    job = shell.jobs().get(run_id)
    if job is not None and not job.state.ended:
        _watch(run_id, draw)
        return
    view = load_experiment(shell.store(), run_id)
    document = shell.store().document(run_id)
    left, right = st.columns([2, 3], vertical_alignment="center")
    with left:
        views.line(f"{experiments[view.kind].title}: {view.run.question}")
    with right:
        _actions(view)
    views.note(_identity(view))
    early = ending(view.run, document)
    if early is not None:
        resume_form(view.run, early)
    if job is not None and job.error:
        views.problem(job.error)
    tag, others = _choices(view)
    shown = _tagged(view, tag)
    _verdict(shown)
    known = [other for other in others if tag == _ALL or other.table.tagged(tag).facts]
    for other in others:
        if other not in known:
            views.note(f"{label_of(other)} has no case with the tag {tag}: it is left out here.")
    for other in known:
        if other.caution:
            views.note(f"{label_of(other)}: {other.caution}")
    arm = draw(shown, tuple(_tagged(other, tag) for other in known))
    show_trials(shell.store(), run_id, run_id, arm=arm)


def _verdict(view: ExperimentView) -> None:
    with st.container(border=True, gap="xsmall"):
        views.line(view.standing)
        lost = sum(cell.empty + cell.error for cell in view.table.cells)
        seen = len({cell.case_id for cell in view.table.cells})
        whole = len(view.table.facts)
        cases = f"{whole} cases" if seen == whole else f"{seen} of {whole} cases"
        rests = f"rests on {count(view.trials)} of {count(view.planned)} trials, {cases}"
        if lost:
            rests += f"; {count(lost)} trials gave nothing to score and are left out"
        views.note(rests)
        for warning in view.warnings[:5]:
            views.note(f"Note: {warning}")
        if len(view.warnings) > 5:
            views.note(f"{len(view.warnings) - 5} more notes stand in the report.")
        for one in view.left_out[:5]:
            views.note(f"{one.case_id} stays out: {one.reason}.")
        if len(view.left_out) > 5:
            views.note(f"{len(view.left_out) - 5} more cases stay out.")


def _choices(view: ExperimentView) -> tuple[str, tuple[ExperimentView, ...]]:
    """The tag that narrows the cases, and the runs laid over this one; both are part of the address."""
    tags = sorted({tag for fact in view.table.facts for tag in fact.tags})
    rows = {row.id: row for row in shell.store().runs(limit=50, kind=view.kind).rows if row.id != view.run.id}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        tag = _ALL
        if any(one not in fact.tags for one in tags for fact in view.table.facts):
            offered = [_ALL, *(one for one in tags if one != _ALL)]
            tag = st.selectbox("Cases with tag", offered, key="tag", bind="query-params", width=240)
            tag = tag if tag in tags else _ALL
        picked: list[str] = []
        if rows:
            # The address holds what is shown, so the label begins with the run's id.
            picked = st.multiselect(
                "Compare with",
                list(rows),
                key="with",
                bind="query-params",
                max_selections=_COMPARED,
                width=420,
                placeholder="runs of this kind, by id",
                help="\n".join(
                    f"{one}: {views.escape(clip(row.question, 40))}, {row.created_at:%m-%d %H:%M}  "
                    for one, row in list(rows.items())[:12]
                ),
            )
    others: list[ExperimentView] = []
    for one in picked:
        if one in rows:
            try:
                others.append(load_experiment(shell.store(), one))
            except LimError as error:
                views.note(f"{one} is left out: {error}")
    return tag, tuple(others)


def _tagged(view: ExperimentView, tag: str) -> ExperimentView:
    """The view over the cases that carry the tag, figures computed anew."""
    if tag == _ALL:
        return view
    table: Table = view.table.tagged(tag)
    if not table.facts:
        return view
    part = experiments[view.kind].part
    result = part.analyse(table, view.options, view.levels)
    trials = sum(cell.trials for cell in table.cells)
    summary = part.summary(result)
    return replace(view, table=table, result=result, summary=summary, trials=trials, planned=trials)


def label_of(view: ExperimentView) -> str:
    """How a run is named beside others: its model, suite and the start of its id."""
    return f"{view.run.model or 'model unknown'}, {clip(view.name, 24)}, {view.run.id[:4]}"


def _identity(view: ExperimentView) -> str:
    run = view.run
    parts = [run.model or "model unknown", f"{run.created_at:%Y-%m-%d %H:%M} UTC", f"run {run.id}"]
    parts.append(f"status {run.status.value}")
    if run.calls is not None:
        parts.append(f"{count(run.calls)} calls")
    if run.seconds is not None:
        parts.append(duration(run.seconds))
    return " · ".join(parts)


def _actions(view: ExperimentView) -> None:
    run = view.run
    room = shell.ROOM_OF[view.kind]
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        with st.popover("Copy link", icon=":material/link:"):
            rest = [(name, value) for name in _IN_LINK for value in st.query_params.get_all(name)]
            shared = shell.share(shell.RunLink(run=run.id), st.context.url, room, urlencode(rest))
            st.code(shared.url, language=None, wrap_lines=True)
            if shared.loopback:
                views.note("This address opens on this machine only; the README says how to share runs.")
        report_popover(run)
        gone = key_gone(run)
        if st.button(
            "Run again",
            icon=":material/replay:",
            key="again",
            disabled=gone,
            help="Its endpoint wants a key: type it on the page Models first." if gone else "Every call is sent anew.",
        ):
            # A disabled button is a courtesy of the browser.
            if gone:
                raise InputError("Its endpoint wants a key: type it on the page Models first.")
            settings = RunSettings.from_json(run.settings)
            cases = shell.store().suite(run.id)
            shell.go_to(room, shell.RunLink(run=start_experiment(view.kind, view.name, cases, settings)))
        if st.button("New run", icon=":material/add:", key="new"):
            shell.go_to(room, shell.RunLink())


def _watch(run_id: str, draw: Draw) -> None:
    @st.fragment(run_every="2s")
    def progress() -> None:
        # A fragment runs by itself: the page's own guard is not around it then.
        with shell.guarded():
            watched()

    def watched() -> None:
        job = shell.jobs().get(run_id)
        if job is None or job.state.ended:
            st.rerun()
        record = shell.store().run(run_id)
        if record is not None:
            views.line(f"{experiments[record.kind].title}: {record.question}")
        _progress(job)
        label = "Stopping …" if job.cancelling else "Cancel"
        if st.button(label, icon=":material/stop:", disabled=job.cancelling, key=f"stop-{run_id}"):
            stop(run_id)
            st.rerun(scope="fragment")
        views.note("The run goes on when this page is closed; its address leads back to it.")
        if record is not None and job.state is JobState.RUNNING:
            view = load_experiment(shell.store(), run_id)
            if view.trials:
                if not view.caution:
                    views.note(f"So far, {count(view.trials)} of {count(view.planned)} trials.")
                views.line(view.standing)
                draw(view, ())

    progress()


def _progress(job: JobView) -> None:
    progress = job.progress
    if progress is None:
        waits = f"Queued, number {count(job.ahead + 1)} in line: it starts by itself when the runs before it have ended"
        st.progress(0.0, text=waits if job.state is JobState.QUEUED else "Starting: the model is loaded")
        return
    most = max(progress.planned, 1)
    st.progress(min(1.0, progress.calls / most))
    cells = [
        ("calls", f"{count(progress.calls)} of {count(progress.planned)}"),
        ("prompt tokens", count(progress.prompt_tokens)),
        ("answer tokens", count(progress.completion_tokens)),
        ("elapsed", duration(progress.seconds)),
        ("left, about", duration(progress.seconds_left)),
    ]
    if progress.cost is not None:
        cells.append(("cost so far", f"{progress.cost:.4f}"))
    with st.container(horizontal=True, gap="medium"):
        for label, value in cells:
            st.metric(label, value, width="content")


def open_or_start(draw: Draw, start: Callable[[], None], kinds: tuple[str, ...]) -> None:
    """Draw the run that the address names, else the form of a new one.

    Raises:
        InputError: the run is of a kind that another page shows.
    """
    link = shell.RunLink.from_query(st.query_params)
    if link.run is None:
        start()
        return
    record = shell.store().run(link.run)
    if record is not None and record.kind not in kinds:
        room = shell.ROOM_OF.get(record.kind)
        if room is None:
            raise InputError(
                f"The run {record.id} is of the kind {record.kind}, which this version of lim cannot show."
            )
        shell.go_to(room, link)
    show_experiment(link.run, draw)
