"""The list of runs: filtered and paged in the store; one run picked, opened, exported, deleted."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import streamlit as st

from lim_core.drawing.verdict import cause_status, outcome_line
from lim_core.drawing.words import CAUSES, SIGNS, cause_words, clip, count, duration
from lim_core.errors import InputError
from lim_core.jobs import JobState
from lim_core.store.records import RunRecord, RunStatus, RunSummary
from lim_core.store.runs import DIAGNOSIS
from lim_core.ui import shell, views
from lim_core.ui.resuming import WAITING_WORDS, key_gone, stop

PAGE = 50
_ALL, _DELETED = "all", "runs-deleted"


def recent_runs(limit: int) -> None:
    """The last runs as links, for Home."""
    page = shell.store().runs(limit=limit)
    if not page.rows:
        views.note("No runs yet.")
    for row in page.rows:
        with st.container(gap=None):
            query = shell.RunLink(run=row.id).to_query()
            room = shell.ROOM_OF.get(row.kind, shell.RUNS)
            st.page_link(
                room.path,
                label=views.escape(_verdict(row)),
                icon=SIGNS[cause_status(row.cause or "UNDETERMINED")].icon if row.kind == DIAGNOSIS else room.icon,
                query_params=query,
                width="stretch",
            )
            said = clip(row.question, 80)
            if row.kind != DIAGNOSIS and (found := _result(row)):
                said = f"{clip(row.question, 32)} · {found}"
            views.note(f"{said} · {row.created_at:%Y-%m-%d %H:%M} UTC")


def runs_table() -> str | None:
    """Draw the filters and the table; returns the id of the run that is picked."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            "Text in question or case", key="text", bind="query-params", width=260, icon=":material/search:"
        )
        cause = st.selectbox(
            "Cause", [_ALL, *CAUSES], format_func=lambda name: _ALL if name == _ALL else cause_words(name), key="cause",
            bind="query-params", width=260,
        )  # fmt: skip
        status = st.selectbox(
            "Status", [_ALL, *(item.value for item in RunStatus)], key="status", bind="query-params", width=160
        )
    chosen_cause = cause if cause in CAUSES else None
    chosen_status = status if status in {item.value for item in RunStatus} else None
    shown = shell.store().runs(limit=PAGE, text=text, cause=chosen_cause, status=chosen_status)
    if shown.total > PAGE:
        pages = -(-shown.total // PAGE)
        number = int(st.number_input(f"Page, of {pages}", 1, pages, key="page", width=140))
        if number > 1:
            shown = shell.store().runs(
                limit=PAGE, offset=(number - 1) * PAGE, text=text, cause=chosen_cause, status=chosen_status
            )
    views.note(f"{count(shown.total)} runs. Pick a row to see its result." if shown.total else "No runs match.")
    if not shown.rows:
        return None
    event = st.dataframe(
        [_cells(row) for row in shown.rows],
        hide_index=True,
        key="runs",
        on_select="rerun",
        selection_mode="single-row",
        placeholder="–",
        alt="Runs, newest first",
        column_config={"question": st.column_config.TextColumn(width="medium")},
    )
    picked = [index for index in event["selection"]["rows"] if 0 <= index < len(shown.rows)]
    return shown.rows[picked[0]].id if picked else None


def run_tools(run_id: str) -> None:
    """Open, export and delete one run."""
    with st.container(horizontal=True, vertical_alignment="center"):
        found = shell.store().run(run_id)
        room = shell.ROOM_OF.get(found.kind, shell.DIAGNOSE) if found is not None else shell.DIAGNOSE
        if st.button(f"Open on {room.title}", icon=":material/open_in_new:", key="open"):
            shell.go_to(room, shell.RunLink(run=run_id))
        st.download_button(
            "Export JSON",
            data=lambda: shell.store().export_json(run_id).encode(),
            file_name=f"lim-{run_id}.json",
            mime="application/json",
            icon=":material/download:",
            on_click="ignore",
            key="export-json",
        )
        for title, ending, mime, export in (
            ("Parquet", "parquet", "application/vnd.apache.parquet", shell.store().export_parquet),
            ("CSV", "csv", "text/csv", shell.store().export_csv),
            ("JSONL", "jsonl", "application/jsonl", shell.store().export_jsonl),
        ):
            st.download_button(
                f"Export {title}",
                data=partial(exported, export, run_id),
                file_name=f"lim-{run_id}.{ending}",
                mime=mime,
                icon=":material/download:",
                on_click="ignore",
                key=f"export-{ending}",
                help="The trials, one row each.",
            )
        _rescore(run_id)
        with st.popover("Delete …", icon=":material/delete:"):
            st.text("Deletes the run, its trials and every call that no other run uses. This cannot be undone.")
            if st.button("Delete for good", type="primary", key="delete"):
                stop(run_id)
                shell.jobs().wait(run_id, timeout=20)
                shell.store().delete(run_id)
                shell.go_to(shell.RUNS, shell.RunLink())


def old_runs() -> None:
    """Delete what is older than some days, once that is confirmed."""
    with st.popover("Delete old runs …", icon=":material/auto_delete:", key="old"):
        days = st.number_input(
            "Last touched more than so many days ago", min_value=1, value=90, step=1, key="old-days", width=260
        )
        st.text("Deletes the runs, their trials and every call that no other run uses. This cannot be undone.")
        sure = st.checkbox("Yes, delete them for good", key="old-sure")
        if st.button("Delete old runs", type="primary", key="old-delete", disabled=not sure):
            # A disabled button is a courtesy of the browser.
            if not sure:
                raise InputError("Confirm first that the runs shall be deleted for good.")
            st.session_state[_DELETED] = (shell.store().delete_older_than(int(days)), int(days))
            shell.go_to(shell.RUNS, shell.RunLink())
    if _DELETED in st.session_state:
        number, age = st.session_state.pop(_DELETED)
        views.note(f"Deleted: {count(number)} runs older than {count(age)} days.")


def _rescore(run_id: str) -> None:
    """Score the stored answers of a run with another judge."""
    from lim_core.judges import judges
    from lim_core.runs import rejudge

    going = shell.jobs().get(run_id)
    with st.popover("Re-score …", icon=":material/balance:", key="rescore"):
        names = [entry.name for entry in judges]
        judge = st.selectbox(
            "Judge",
            names,
            format_func=lambda name: judges[name].title,
            key="rescore-judge",
        )
        st.text(
            "Scores the stored answers anew, at no calls. A diagnosis keeps its verdict, an experiment is computed anew."
        )
        busy = going is not None and not going.state.ended
        if st.button(
            "Re-score",
            type="primary",
            key="rescore-go",
            disabled=busy,
            help="The run is still going: re-score it when it has ended." if busy else None,
        ):
            if busy:
                raise InputError("The run is still going: re-score it when it has ended.")
            tally = rejudge(shell.store(), run_id, judge if judge in names else names[0])
            views.note(f"Scored by {judge}: {outcome_line(tally)}." if tally else "The run has no stored answers.")


def exported(export: Callable[[str, Path], None], run_id: str) -> bytes:
    """The bytes of the file that one of the store's exports writes."""
    with tempfile.TemporaryDirectory(prefix="lim-") as folder:
        path = Path(folder, "trials")
        export(run_id, path)
        return path.read_bytes()


def status_words(row: RunSummary) -> str:
    """How far a run has come, with its place in the queue, and whether it waits for its key."""
    job = shell.jobs().get(row.id)
    if job is not None and job.state is JobState.QUEUED:
        return f"queued, number {job.ahead + 1} in line"
    if row.status is RunStatus.WAITING or (row.status is RunStatus.INTERRUPTED and key_gone(row)):
        return WAITING_WORDS
    return row.status.value


def _verdict(row: RunSummary) -> str:
    if row.kind == DIAGNOSIS:
        return cause_words(row.cause) if row.cause else status_words(row)
    title = kind_words(row.kind)
    return title if row.status is RunStatus.DONE else f"{title}, {status_words(row)}"


def _result(row: RunSummary) -> str | None:
    """What a run found, in a line of a list: the cause of a diagnosis, the first words of an experiment."""
    if row.kind == DIAGNOSIS:
        return cause_words(row.cause) if row.cause else None
    summary = ended_summary(row)
    return clip(summary, 72) if summary else None


def ended_summary(run: RunSummary | RunRecord) -> str | None:
    """What an experiment found, once it has ended: until then its test has no result to put into a list."""
    return run.summary if run.status is RunStatus.DONE else None


def kind_words(kind: str) -> str:
    """What a run of a kind is called."""
    from lim_core.experiments import experiments

    if kind == DIAGNOSIS:
        return "Diagnosis"
    return experiments[kind].title if kind in experiments else kind


def _cells(row: RunSummary) -> views.Row:
    return {
        "started, UTC": f"{row.created_at:%Y-%m-%d %H:%M}",
        "what": kind_words(row.kind),
        "result": _result(row),
        "status": status_words(row),
        "question": clip(row.question, 160),
        "case": row.case_id,
        "model": row.model,
        "calls": row.calls,
        "time": duration(row.seconds),
        "run": row.id,
    }
