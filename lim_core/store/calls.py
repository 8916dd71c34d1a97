"""Finished calls of one run, for resuming without paying twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lim_core.store.encoding import from_json, messages_from_json
from lim_core.types import Call, Json, Usage

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

COLUMNS = (
    "id, key, endpoint, model, messages, params, repeat, text, finish_reason, prompt_tokens, completion_tokens, "
    "cached_prompt_tokens, reasoning_tokens, seconds, retries, fault, fault_text, started_at"
)


class RunCache:
    """The answered calls of one run as they stood when it was opened; calls that failed are not among them."""

    def __init__(self, cursor: DuckDBPyConnection, run_id: str) -> None:
        # Ordered so that of several sendings with one key the newest answer is kept.
        rows = cursor.execute(
            f"""
            SELECT {COLUMNS} FROM calls WHERE fault IS NULL
            AND id IN (SELECT call_id FROM trials WHERE run_id = ?) ORDER BY started_at
            """,  # noqa: S608 - constants only
            [run_id],
        ).fetchall()
        self._rows = {row[1]: row for row in rows}

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, key: str) -> Call | None:
        """The answered call with this content key, None where it has to be sent."""
        row = self._rows.get(key)
        if row is None:
            return None
        return Call(
            id=row[0],
            key=row[1],
            endpoint=row[2],
            model=row[3],
            messages=messages_from_json(row[4]),
            params=from_json(row[5]),
            repeat=row[6],
            text=row[7],
            finish_reason=row[8],
            usage=Usage(row[9], row[10], row[11], row[12]),
            seconds=row[13],
            retries=row[14],
            fault=row[15],
            fault_text=row[16],
            started_at=row[17],
        )


def read_calls(cursor: DuckDBPyConnection, run_id: str) -> list[dict[str, Json]]:
    """Every call of a run as JSON objects with prompts and parameters, for an export."""
    rows = cursor.execute(
        f"SELECT {COLUMNS} FROM calls WHERE id IN (SELECT call_id FROM trials WHERE run_id = ?) ORDER BY started_at",  # noqa: S608
        [run_id],
    ).fetchall()
    names = COLUMNS.split(", ")
    calls: list[dict[str, Json]] = []
    for row in rows:
        call: dict[str, Json] = dict(zip(names, row, strict=True))
        call["messages"] = [{"role": role, "content": content} for role, content in json.loads(row[4])]
        call["params"] = json.loads(row[5])
        calls.append(call)
    return calls
