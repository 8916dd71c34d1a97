"""Puts a report together: what the run found, its trials, its texts, where it comes from, in under eight megabytes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from lim_core.errors import InputError
from lim_core.experiments import experiments
from lim_core.reports.diagnosis import diagnosis_body
from lim_core.reports.experiments import experiment_body
from lim_core.reports.markup import NOTHING, Html, element, join, line, note, text
from lim_core.reports.page import page
from lim_core.reports.provenance import diagnosis_commands, experiment_commands, release_section, reproduce_section
from lim_core.reports.redaction import Redaction
from lim_core.reports.texts import redaction_note, texts_section
from lim_core.reports.trials import MOST_TRIALS, arms_section, trials_section
from lim_core.runs import load_experiment

if TYPE_CHECKING:
    from lim_core.store import Store
    from lim_core.store.records import RunRecord

MOST_BYTES = 8_000_000
# Of the room that charts and tables leave, the share that the trials may take; the texts get what is left then.
_TRIALS_SHARE = 0.5


def html_report(store: Store, run_id: str, redact: bool = False) -> bytes:
    """One HTML file of at most MOST_BYTES with everything a run found, its charts, its figures and how to make it again.

    With `redact` it holds no question, answer, chunk text or prompt.

    Raises:
        InputError: there is no such run.
    """
    record = store.run(run_id)
    if record is None:
        raise InputError(f"There is no run {run_id[:80]!r} in this store: `runs list` shows those that exist.")
    cases = store.suite(run_id)
    trials, total = store.trials(run_id, limit=MOST_TRIALS), store.count_trials(run_id)
    document = store.document(run_id) or {}
    settings, remark, question, redaction = record.settings, record.note, record.question, None
    if redact:
        redaction = Redaction(cases, (row.answer for row in trials), document)
        document, settings = redaction.document(document), redaction.document(settings)
        remark, question = redaction.strike(remark), ""
    if record.kind in experiments:
        found, commands = experiment_body(load_experiment(store, run_id), redaction), experiment_commands(record)
    else:
        found = diagnosis_body(document) if document else _no_result(record)
        commands = diagnosis_commands(record)
    top = join((_head(record, redact), line(question, "question"), note(remark), found))
    arms = arms_section(store.arms(run_id))
    release = document.get("release")
    end = join(
        (
            release_section(release if isinstance(release, Mapping) else record.release, settings),
            reproduce_section(record, commands),
        )
    )
    title = f"lim report, run {record.id}"
    room = MOST_BYTES - len(page(title, join((top, arms, end))))
    listed = trials_section(trials, total, int(room * _TRIALS_SHARE), answers=not redact)
    room -= len(listed.encode())
    texts = NOTHING if redact else texts_section(cases, room)
    return page(title, join((top, arms, listed, texts, end)))


def _head(record: RunRecord, redact: bool) -> Html:
    made = datetime.now(UTC)
    said = (
        f"lim {_version()} · {record.kind} of {record.case_id} · run {record.id} of {record.created_at:%Y-%m-%d %H:%M} UTC "
        f"· {record.status.value} · report of {made:%Y-%m-%d %H:%M} UTC"
    )
    scripts = element("noscript", note("Without scripts the charts are not drawn; the tables hold the same figures."))
    return element("header", note(said), redaction_note() if redact else NOTHING, scripts)


def _no_result(record: RunRecord) -> Html:
    return element(
        "div",
        element("h1", text("No result yet")),
        line(f"The run is {record.status.value}; the trials it has finished are listed below."),
        klass="verdict",
    )


@lru_cache(maxsize=1)
def _version() -> str:
    path = Path(__file__).resolve().parents[2] / "pyproject.toml"
    return str(tomllib.loads(path.read_text("utf-8"))["project"]["version"])
