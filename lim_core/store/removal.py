"""The only code that removes rows: a run's own, and what no other run uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def remove_runs(cursor: DuckDBPyConnection, run_ids: Sequence[str]) -> None:
    """Remove the runs' rows, and every call and case that only they used."""
    ids = list(run_ids)
    cursor.execute(
        """
        DELETE FROM calls
        WHERE id IN (SELECT call_id FROM trials WHERE list_contains($ids, run_id))
        AND id NOT IN (SELECT call_id FROM trials WHERE NOT list_contains($ids, run_id))
        """,
        {"ids": ids},
    )
    cursor.execute(
        """
        DELETE FROM cases
        WHERE case_hash IN (SELECT case_hash FROM runs WHERE list_contains($ids, run_id)
                            UNION SELECT case_hash FROM run_cases WHERE list_contains($ids, run_id))
        AND case_hash NOT IN (SELECT case_hash FROM runs WHERE NOT list_contains($ids, run_id)
                              UNION SELECT case_hash FROM run_cases WHERE NOT list_contains($ids, run_id))
        """,
        {"ids": ids},
    )
    for table in ("trials", "scores", "arms", "findings", "remedies", "releases", "run_cases", "runs"):
        cursor.execute(f"DELETE FROM {table} WHERE list_contains(?, run_id)", [ids])  # noqa: S608 - names from above


def ended_before(cursor: DuckDBPyConnection, moment: float) -> tuple[str, ...]:
    """Ids of the runs that were last touched before `moment` (epoch seconds) and are not running."""
    rows = cursor.execute(
        """
        SELECT run_id FROM (SELECT run_id, added_at, status FROM runs
                            QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY row DESC) = 1)
        WHERE added_at < ? AND status <> 'running'
        """,
        [moment],
    ).fetchall()
    return tuple(run_id for (run_id,) in rows)
