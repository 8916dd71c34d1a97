"""Where an experiment's cases come from: the sample suite, a file, or the cases of a stored run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from lim_core.cases import MAX_BYTES, read_suite
from lim_core.drawing.words import clip
from lim_core.errors import InputError
from lim_core.types import Case
from lim_core.ui import session, shell, views

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "handbook-suite.jsonl"
_SAMPLE, _FILE, _RUN = "Sample suite", "A file", "A stored run"
_RUNS_OFFERED = 50


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases under the name that the run will carry; `digest` tells two suites apart."""

    name: str
    cases: tuple[Case, ...]
    digest: str
    warnings: tuple[str, ...] = ()


def pick_suite() -> Suite | None:
    """Draw the choice; None while nothing is chosen.

    Raises:
        InputError: the file or the run cannot be used; the message says what to do.
    """
    way = st.segmented_control(
        "Cases from", [_SAMPLE, _FILE, _RUN], default=_SAMPLE, required=True, key="suite-way", persist_state="session"
    )
    if way == _FILE:
        found = _uploaded()
    elif way == _RUN:
        found = _of_a_run()
    else:
        found = sample_suite()
    if found is not None:
        _describe(found)
    return found


def sample_suite() -> Suite:
    """The suite that ships with lim: invented handbooks.

    Raises:
        InputError: it is not in the folder data.
    """
    try:
        data = SAMPLE.read_bytes()
    except OSError as error:
        raise InputError(f"The sample suite {SAMPLE.name} is not there: restore the folder data.") from error
    return _read(data, SAMPLE.name)


def _uploaded() -> Suite | None:
    file = st.file_uploader("Cases as JSON lines", type=["jsonl", "json"], key="suite-file")
    if file is None:
        views.note("One case a line, as `import --out` writes them and the copy button of Diagnose gives them.")
        return None
    data = file.getvalue()
    if len(data) > MAX_BYTES:
        raise InputError("The file is larger than 20 MB: split it.")
    return _read(data, file.name)


def _of_a_run() -> Suite | None:
    rows = {row.id: row for row in shell.store().runs(limit=_RUNS_OFFERED).rows}
    if not rows:
        views.note("No runs yet: diagnose a case first.")
        return None
    picked = st.selectbox(
        "Run",
        list(rows),
        format_func=lambda one: (
            f"{clip(rows[one].question, 60)} · {rows[one].created_at:%Y-%m-%d %H:%M} · {one}"
            if one in rows
            else str(one)
        ),
        key="suite-run",
        persist_state="session",
    )
    if picked not in rows:
        return None
    cases = shell.store().suite(picked)
    return Suite(rows[picked].case_id, cases, picked)


def _read(data: bytes, name: str) -> Suite:
    # The name is part of it: cases without an id take theirs from it.
    digest = hashlib.sha256(name.encode() + b"\0" + data).hexdigest()

    def read() -> Suite:
        loaded = read_suite(data, name)
        return Suite(Path(name).stem, loaded.cases, digest, loaded.warnings)

    return session.remembered("suite", digest, read)


def _describe(suite: Suite) -> None:
    views.note(
        f"{suite.name}: {len(suite.cases)} cases, {_span([len(case.chunks) for case in suite.cases])} chunks each."
    )
    for warning in suite.warnings[:3]:
        views.note(f"Note: {warning}")
    if len(suite.warnings) > 3:
        views.note(f"Note: {len(suite.warnings) - 3} more oddities in the file.")


def _span(counts: Sequence[int]) -> str:
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
