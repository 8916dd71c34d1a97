"""Reading runs: the list, one run, its case."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lim_core.errors import InputError
from lim_core.store.bulk import Value
from lim_core.store.encoding import as_number, as_text, as_whole, from_json, storable
from lim_core.store.records import RunPage, RunRecord, RunStatus, RunSummary
from lim_core.types import Json

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SUMMARY = (
    "run_id, created_at, added_at, kind, case_id, question, status, cause, summary, model, calls, seconds, note, "
    "settings"
)
# `document` can be megabytes and is never part of a list.
LATEST = """
    SELECT * EXCLUDE (document) FROM runs QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY row DESC) = 1
"""


def read_page(
    cursor: DuckDBPyConnection,
    limit: int,
    offset: int,
    text: str,
    cause: str | None,
    status: str | None,
    model: str | None,
    kind: str | None,
) -> RunPage:
    """One page of runs, newest first, and the number that match."""
    chosen = f"""
        FROM ({LATEST}) WHERE ($cause IS NULL OR cause = $cause) AND ($status IS NULL OR status = $status)
        AND ($model IS NULL OR model = $model) AND ($kind IS NULL OR kind = $kind)
        AND contains(lower(concat_ws(' ', run_id, case_id, question, cause, summary, model, note)), lower($text))
    """
    values: dict[str, Value] = {
        "cause": cause,
        "status": status,
        "model": model,
        "kind": kind,
        "text": storable(text.strip()),
    }
    counted = cursor.execute(f"SELECT count(*) {chosen}", values).fetchone()
    values |= {"limit": max(0, limit), "offset": max(0, offset)}
    rows = cursor.execute(
        f"SELECT {_SUMMARY} {chosen} ORDER BY created_at DESC, row DESC LIMIT $limit OFFSET $offset", values
    ).fetchall()
    return RunPage(tuple(_summary(row) for row in rows), int(counted[0]) if counted else 0)


def read_run(cursor: DuckDBPyConnection, run_id: str) -> RunRecord | None:
    """One run with its release."""
    row = cursor.execute(f"SELECT {_SUMMARY} FROM ({LATEST}) WHERE run_id = ?", [run_id]).fetchone()  # noqa: S608
    if row is None:
        return None
    release = cursor.execute(
        "SELECT body FROM releases WHERE run_id = ? ORDER BY row DESC LIMIT 1", [run_id]
    ).fetchone()
    kept = cursor.execute("SELECT 1 FROM runs WHERE run_id = ? AND document_id IS NOT NULL LIMIT 1", [run_id])
    summary = _summary(row)
    return RunRecord(
        **{name: getattr(summary, name) for name in RunSummary.__dataclass_fields__},
        release={} if release is None else from_json(release[0]),
        has_document=kept.fetchone() is not None,
    )


def read_case(cursor: DuckDBPyConnection, run_id: str) -> Mapping[str, Json]:
    """The case of a diagnosis, as JSON.

    Raises:
        InputError: there is no such run, or it is one over a suite.
    """
    row = cursor.execute(
        "SELECT body FROM cases WHERE case_hash = (SELECT any_value(case_hash) FROM runs WHERE run_id = ?) LIMIT 1",
        [run_id],
    ).fetchone()
    if row is None:
        kind = cursor.execute("SELECT kind FROM runs WHERE run_id = ? LIMIT 1", [run_id]).fetchone()
        if kind is not None:
            raise InputError(f"The run {run_id} is one over a suite ({kind[0]}), not a diagnosis of one case.")
        raise no_run(run_id)
    return from_json(row[0])


def read_cases(cursor: DuckDBPyConnection, run_id: str) -> tuple[Mapping[str, Json], ...]:
    """The cases of a run in their order, as JSON; a run of one case has just that.

    Raises:
        InputError: there is no such run.
    """
    rows = cursor.execute(
        "SELECT body FROM run_cases JOIN cases USING (case_hash) WHERE run_id = ? ORDER BY position", [run_id]
    ).fetchall()
    if not rows:
        return (read_case(cursor, run_id),)
    return tuple(from_json(body) for (body,) in rows)


def case_hashes(cursor: DuckDBPyConnection, run_id: str) -> Callable[[str], str]:
    """A function from the id of a case of this run to the case's hash; a diagnosis has one for whatever id.

    Raises:
        InputError: there is no such run.
    """
    row = cursor.execute("SELECT case_hash FROM runs WHERE run_id = ? LIMIT 1", [run_id]).fetchone()
    if row is None:
        raise no_run(run_id)
    only = str(row[0])
    own: dict[str, str] = dict(
        cursor.execute("SELECT case_id, case_hash FROM run_cases WHERE run_id = ?", [run_id]).fetchall()
    )
    return own.__getitem__ if own else lambda _: only


def no_run(run_id: str) -> InputError:
    """The error for an id that is not in the store."""
    return InputError(f"There is no run {run_id[:80]!r} in this store: `runs list` shows those that exist.")


def _summary(row: Sequence[object]) -> RunSummary:
    run_id, created, at, kind, case_id, question, status, cause, summary, model, calls, seconds, note, settings = row
    return RunSummary(
        id=str(run_id),
        created_at=_moment(created),
        updated_at=_moment(at),
        kind=str(kind),
        case_id=str(case_id),
        question=str(question),
        status=RunStatus(str(status)),
        cause=as_text(cause),
        summary=as_text(summary),
        model=as_text(model),
        calls=as_whole(calls),
        seconds=as_number(seconds),
        note=str(note),
        settings=json.loads(str(settings)),
    )


def _moment(seconds: object) -> datetime:
    return datetime.fromtimestamp(float(str(seconds)), UTC)
