"""Writing runs: started, and every change of status as a new row."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lim_core.errors import InputError
from lim_core.store.bulk import Value, insert_rows
from lim_core.store.encoding import digest, storable, to_json, without_credentials
from lim_core.store.lookup import LATEST, no_run
from lim_core.store.records import RunStatus
from lim_core.types import Json

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

QUESTION_CHARACTERS = 500
# The kind of a run that has one case of its own; every other kind runs over a suite.
DIAGNOSIS = "diagnosis"


@dataclass(frozen=True, slots=True)
class NewRun:
    """What a run is started with: its cases as JSON; several of them are a suite, which `case_id` and `question` name."""

    run_id: str
    kind: str
    case_id: str
    question: str
    cases: tuple[Mapping[str, Json], ...]
    settings: Mapping[str, Json]
    release: Mapping[str, Json]


def start(cursor: DuckDBPyConnection, new: NewRun) -> None:
    """Add the run, or its next row where it is resumed.

    Raises:
        InputError: the id belongs to a run of another case.
    """
    now = time.time()
    cases = [_without_credentials(case) for case in new.cases]
    hashes = [digest(case) for case in cases]
    case_hash = hashes[0] if new.kind == DIAGNOSIS else digest([new.kind, *hashes])
    settings = without_credentials(new.settings)
    model = new.settings.get("model")
    earlier = cursor.execute(
        "SELECT case_hash, created_at, cause, summary, seconds, model FROM runs WHERE run_id = ? ORDER BY row DESC LIMIT 1",
        [new.run_id],
    ).fetchone()
    if earlier is not None and earlier[0] != case_hash:
        raise InputError(f"The run {new.run_id} belongs to another case: start this case as a run of its own.")
    found = cursor.execute("SELECT case_hash FROM cases WHERE list_contains(?, case_hash)", [hashes]).fetchall()
    stored = {one for (one,) in found}
    # Two ids may stand for equal cases; the body is kept once.
    fresh = {one: case for one, case in zip(hashes, cases, strict=True) if one not in stored}
    bodies = [(one, storable(str(case.get("id"))), now, to_json(case)) for one, case in fresh.items()]
    insert_rows(cursor, "cases", ["case_hash", "case_id", "added_at", "body"], bodies)
    if earlier is None and new.kind != DIAGNOSIS:
        rows = [
            (new.run_id, place, storable(str(case.get("id"))), one)
            for place, (one, case) in enumerate(zip(hashes, cases, strict=True))
        ]
        insert_rows(cursor, "run_cases", ["run_id", "position", "case_id", "case_hash"], rows)
    cursor.execute(
        """
        INSERT INTO runs (run_id, added_at, created_at, kind, status, note, case_id, case_hash, question, model, settings,
                          cause, summary, calls, seconds)
        VALUES (?, ?, ?, ?, ?, '', ?, ?, ?, ?, ?, ?, ?, NULL, ?)
        """,
        [
            new.run_id,
            now,
            now if earlier is None else earlier[1],
            new.kind,
            RunStatus.RUNNING.value,
            storable(new.case_id),
            case_hash,
            storable(new.question[:QUESTION_CHARACTERS]),
            storable(model) if isinstance(model, str) else (None if earlier is None else earlier[5]),
            to_json(settings),
            None if earlier is None else earlier[2],
            # An experiment that goes on has no result until it ends; a verdict of a diagnosis stays good.
            None if earlier is None or new.kind != DIAGNOSIS else earlier[3],
            None if earlier is None else earlier[4],
        ],
    )
    add_release(cursor, new.run_id, new.release)


def _without_credentials(case: Mapping[str, Json]) -> Mapping[str, Json]:
    params = case.get("params")
    return {**case, "params": without_credentials(params)} if isinstance(params, Mapping) else case


def add_release(cursor: DuckDBPyConnection, run_id: str, release: Mapping[str, Json]) -> None:
    """Add the release where it differs from the one already there; an empty one says nothing and is left out."""
    if not release:
        return
    body = to_json(without_credentials(release))
    earlier = cursor.execute(
        "SELECT body FROM releases WHERE run_id = ? ORDER BY row DESC LIMIT 1", [run_id]
    ).fetchone()
    if earlier is None or earlier[0] != body:
        cursor.execute("INSERT INTO releases (run_id, added_at, body) VALUES (?, ?, ?)", [run_id, time.time(), body])


def set_status(cursor: DuckDBPyConnection, run_id: str, status: RunStatus, note: str) -> None:
    """Add a row with the new status.

    Raises:
        InputError: there is no such run.
    """
    calls: Value = None
    if status is not RunStatus.RUNNING:
        # Requests sent so far, for a run that ends without a document.
        row = cursor.execute(
            """
            SELECT CAST(sum(1 + retries) AS BIGINT) FROM calls
            WHERE id IN (SELECT call_id FROM trials WHERE run_id = ? AND NOT cached)
            """,
            [run_id],
        ).fetchone()
        calls = row[0] if row and row[0] is not None else 0
    added = cursor.execute(
        f"""
        INSERT INTO runs (run_id, added_at, created_at, kind, status, note, case_id, case_hash, question, model, settings,
                          cause, summary, calls, seconds)
        SELECT run_id, $at, created_at, kind, $status, $note, case_id, case_hash, question, model, settings,
               cause, summary, coalesce(calls, $calls), seconds FROM ({LATEST}) WHERE run_id = $run
        """,  # noqa: S608 - constants only
        {"run": run_id, "at": time.time(), "status": status.value, "note": storable(note), "calls": calls},
    ).fetchone()
    if not added or not added[0]:
        raise no_run(run_id)


def mark_interrupted(
    cursor: DuckDBPyConnection, alive: Collection[str], only: Collection[str] | None = None
) -> tuple[str, ...]:
    """Give every run that is marked as running, and is not `alive`, the status `interrupted`; returns their ids."""
    rows = cursor.execute(f"SELECT run_id FROM ({LATEST}) WHERE status = 'running' ORDER BY row").fetchall()  # noqa: S608
    ended = tuple(run_id for (run_id,) in rows if run_id not in alive and (only is None or run_id in only))
    for run_id in ended:
        note = "The program ended while this run was going; what was finished is kept, resume it to go on."
        set_status(cursor, run_id, RunStatus.INTERRUPTED, note)
    return ended
