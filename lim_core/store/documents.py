"""The result of a run: the whole document, and its findings and remedies as rows of their own."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lim_core.store.bulk import Value, insert_rows
from lim_core.store.encoding import as_number, as_text, as_whole, from_json, to_json
from lim_core.store.lookup import LATEST, no_run
from lim_core.store.records import RunStatus
from lim_core.store.runs import add_release
from lim_core.types import Json

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_FINDINGS = [
    "run_id",
    "document_id",
    "position",
    "stage",
    "status",
    "summary",
    "cause",
    "advice",
    "evidence",
    "missing_fields",
]
_FIGURES = ["before", "after", "gain", "low", "high"]
_REMEDIES = ["run_id", "document_id", "position", "name", "title", "tried", "n", *_FIGURES, "note"]


def save_document(
    cursor: DuckDBPyConnection, run_id: str, document: Mapping[str, Json], status: RunStatus | None
) -> None:
    """Add a row with the document, and its findings and remedies as rows of their own.

    Raises:
        InputError: there is no such run.
    """
    document_id = uuid.uuid4().hex
    calls = document.get("calls")
    made = calls.get("made") if isinstance(calls, Mapping) else None
    seconds = calls.get("seconds") if isinstance(calls, Mapping) else None
    added = cursor.execute(
        f"""
        INSERT INTO runs (run_id, added_at, created_at, kind, status, note, case_id, case_hash, question, model, settings,
                          cause, summary, calls, seconds, document_id, document)
        SELECT run_id, $at, created_at, kind, coalesce($status, status), note, case_id, case_hash, question,
               coalesce($model, model), settings, $cause, $summary, $calls, $seconds, $document_id, $document
        FROM ({LATEST}) WHERE run_id = $run
        """,  # noqa: S608 - constants only
        {
            "run": run_id,
            "at": time.time(),
            "status": None if status is None else status.value,
            "model": as_text(document.get("tested_model")),
            "cause": as_text(document.get("cause")),
            "summary": as_text(document.get("summary")),
            "calls": as_whole(made),
            "seconds": as_number(seconds),
            "document_id": document_id,
            "document": to_json(document),
        },
    ).fetchone()
    if not added or not added[0]:
        raise no_run(run_id)
    findings: list[tuple[Value, ...]] = [
        (
            run_id,
            document_id,
            position,
            as_text(part.get("stage")),
            as_text(part.get("status")),
            as_text(part.get("summary")),
            as_text(part.get("cause")),
            as_text(part.get("advice")),
            to_json(part.get("evidence")),
            to_json(part.get("missing_fields")),
        )
        for position, part in enumerate(_objects(document.get("stages")))
    ]
    insert_rows(cursor, "findings", _FINDINGS, findings)
    remedies: list[tuple[Value, ...]] = [
        (
            run_id,
            document_id,
            position,
            as_text(part.get("name")),
            as_text(part.get("title")),
            bool(part.get("tried")),
            as_whole(part.get("n")),
            *(as_number(part.get(figure)) for figure in _FIGURES),
            as_text(part.get("note")),
        )
        for position, part in enumerate(_objects(document.get("remedies")))
    ]
    insert_rows(cursor, "remedies", _REMEDIES, remedies)
    release = document.get("release")
    if isinstance(release, Mapping):
        add_release(cursor, run_id, release)


def read_document(cursor: DuckDBPyConnection, run_id: str) -> Mapping[str, Json] | None:
    """The newest document of a run."""
    row = cursor.execute(
        "SELECT document FROM runs WHERE run_id = ? AND document_id IS NOT NULL ORDER BY row DESC LIMIT 1", [run_id]
    ).fetchone()
    return None if row is None else from_json(row[0])


def _objects(value: Json) -> list[Mapping[str, Json]]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return []
    return [part for part in value if isinstance(part, Mapping)]
