"""A run that ended early: why, what it needs to go on, and the button that lets it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from lim_core.errors import LimError, RunCancelled
from lim_core.jobs import INTERNAL_ERROR, JobState
from lim_core.runs import RunSettings, price_of, resume_run
from lim_core.store.records import RunStatus
from lim_core.types import Json
from lim_core.ui import shell, views
from lim_core.ui.model_form import check_allowed, hold_key, key_for

if TYPE_CHECKING:
    from lim_core.jobs import JobContext
    from lim_core.store import Store
    from lim_core.store.records import RunRecord, RunSummary

_SAYS = {
    RunStatus.CANCELLED: "This run was cancelled. What was finished is kept; continuing pays for nothing twice.",
    RunStatus.INTERRUPTED: "This run was interrupted: its server stopped. What was finished is kept; it can go on from there.",
    RunStatus.FAILED: "This run ended early. What was finished is kept; mend the cause, then continue.",
    RunStatus.RUNNING: "This run stopped without a word. What was finished is kept; it can go on from there.",
}
_NEEDS_KEY = "This run waits for its key: its endpoint wants one, and keys are never stored. Type it below to go on."
_KEY_HERE = "This run waited for its key, which this session holds: it can go on."
_CAPPED = "What was finished is kept and counts; raise the cap to go on from there."
WAITING_WORDS = "waiting for its key"
_TURN = "resume-turn"


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a run ended before its end, and whether its key is missing here."""

    says: str
    needs_key: bool
    capped: bool


def key_gone(run: RunSummary) -> bool:
    """Whether a run went with a key and none is at hand now, neither in this session nor in the environment."""
    url = run.settings.get("base_url")
    if not run.settings.get("keyed") or not isinstance(url, str):
        return False
    # An address that no longer reads as one has no key either.
    with suppress(LimError):
        return key_for(url) is None
    return True


def ending(record: RunRecord, document: Mapping[str, Json] | None) -> Ending | None:
    """Why the run ended early, None where it came to its end. The run is not going now."""
    gone = key_gone(record)
    if record.status is RunStatus.DONE:
        # Of all that stops a run, only a cap leaves it done.
        stopped = document.get("stopped") if document is not None else None
        if not isinstance(stopped, str):
            return None
        # Its second half speaks of the command line.
        which = stopped.partition(";")[0].rstrip(".")
        return Ending(f"{which}. {_CAPPED}", gone, capped=True)
    if record.status is RunStatus.WAITING:
        return Ending(_NEEDS_KEY if gone else _KEY_HERE, gone, capped=False)
    if record.status is RunStatus.INTERRUPTED:
        return Ending(_NEEDS_KEY if gone else _SAYS[record.status], gone, capped=False)
    stopped = document.get("stopped") if document is not None and record.status is RunStatus.FAILED else None
    says = f"{_SAYS[record.status]} {record.note or stopped or ''}".strip()
    return Ending(f"{says} {_NEEDS_KEY}" if gone else says, gone, capped=False)


def resume_form(record: RunRecord, found: Ending) -> None:
    """Say why the run ended, and offer to go on, with its key where that is gone and with other caps.

    Raises:
        InputError: the box for the key was left empty.
        ConfigError: the address may not be called from this server.
    """
    views.caution(found.says)
    settings = RunSettings.from_json(record.settings)
    turn = int(st.session_state.get(_TURN, 0))
    # A wrong key is the usual reason of a failure, so a run that failed with one may be given another.
    wants_key = found.needs_key or (record.status is RunStatus.FAILED and settings.keyed)
    typed = ""
    with st.form(f"resume-{record.id}", border=False):
        if wants_key and settings.base_url is not None:
            typed = st.text_input(
                f"Key for {views.escape(settings.base_url)}",
                type="password",
                # Each turn has a fresh, empty box.
                key=f"resume-key-{record.id}-{turn}",
                autocomplete="off",
                placeholder="" if found.needs_key else "as held for this address",
                help="Kept in this browser session only: never stored, and sent to this address alone.",
                width=420,
            ).strip()
        with st.container(horizontal=True, vertical_alignment="bottom"):
            more = 2 if found.capped else 1
            calls = st.number_input(
                "Calls, at most",
                min_value=1,
                value=None if settings.max_calls is None else settings.max_calls * more,
                step=1,
                key=f"resume-calls-{record.id}",
                placeholder="no cap" if settings.max_calls is None else "as before",
                help="Caps count what is sent from here on; what was finished is not sent again.",
                width=150,
            )
            tokens = st.number_input(
                "Tokens, at most",
                min_value=1,
                value=None if settings.max_tokens is None else settings.max_tokens * more,
                step=1,
                key=f"resume-tokens-{record.id}",
                placeholder="no cap" if settings.max_tokens is None else "as before",
                width=150,
            )
            priced = price_of(settings) is not None
            money = st.number_input(
                "Money, at most",
                min_value=0.0001,
                value=None if settings.max_cost is None else settings.max_cost * more,
                format="%g",
                key=f"resume-money-{record.id}",
                placeholder=("no cap" if settings.max_cost is None else "as before") if priced else "price unknown",
                disabled=not priced,
                width=150,
            )
            go = st.form_submit_button("Continue", type="primary", icon=":material/play_arrow:", key="continue")
    if go:
        if wants_key and settings.base_url is not None and (typed or found.needs_key):
            hold_key(settings.base_url, typed)
        st.session_state[_TURN] = turn + 1
        _resume(
            record.id,
            settings,
            calls=None if calls is None else int(calls),
            tokens=None if tokens is None else int(tokens),
            money=None if money is None or not priced else float(money),
        )
        st.rerun()


def _resume(run_id: str, settings: RunSettings, *, calls: int | None, tokens: int | None, money: float | None) -> None:
    """Go on with a stored run in the background, from where it was."""
    store, key = shell.store(), allowed_key(settings)

    def work(job: JobContext) -> object:
        return with_an_end(
            store,
            run_id,
            lambda: resume_run(
                store,
                run_id,
                key=key,
                max_calls=calls,
                max_tokens=tokens,
                max_cost=money,
                report=job.report,
                cancelled=job.cancelled,
            ),
        )

    shell.jobs().start(run_id, work, settings.lane)


def allowed_key(settings: RunSettings) -> str | None:
    """The key for the run's address, where this server may call it.

    Raises:
        ConfigError: it may not.
    """
    if settings.base_url is not None:
        check_allowed(settings.base_url)
    return key_for(settings.base_url)


def with_an_end(store: Store, run_id: str, work: Callable[[], object]) -> object:
    """Do the work of a run; however it ends, the store does not go on saying that the run is going."""
    status, note = RunStatus.FAILED, INTERNAL_ERROR
    try:
        return work()
    except RunCancelled:
        status, note = RunStatus.CANCELLED, ""
        raise
    except LimError as error:
        note = str(error)
        raise
    finally:
        # The run may be deleted, and a full disk is said by the error that is on its way.
        with suppress(LimError):
            run = store.run(run_id)
            if run is not None and run.status is RunStatus.RUNNING:
                store.set_status(run_id, status, note)


def stop(run_id: str) -> None:
    """Cancel a run that is going or queued; one that never came to its turn is marked at once."""
    jobs, store = shell.jobs(), shell.store()
    jobs.cancel(run_id)
    job, run = jobs.get(run_id), store.run(run_id)
    if job is not None and job.state is JobState.CANCELLED and run is not None and run.status is RunStatus.RUNNING:
        store.set_status(run_id, RunStatus.CANCELLED)
