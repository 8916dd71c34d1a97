"""The tables of the store and the numbered steps that lead to them.

Rows are only added: a change of status, a second document or a new verdict is a new row, and the newest one counts.
`row` numbers rows in the order they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Step: TypeAlias = "Callable[[DuckDBPyConnection], None]"

MIGRATIONS: list[Step] = []


def migration(step: Step) -> Step:
    """Decorator that files the next numbered step; released steps are never changed or reordered."""
    MIGRATIONS.append(step)
    return step


def version_of(cursor: DuckDBPyConnection) -> int | None:
    """The version of the open file: 0 for an empty one, None for one whose tables are not lim's."""
    names = {name for (name,) in cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    if not names:
        return 0
    if "schema_versions" not in names:
        return None
    row = cursor.execute("SELECT max(version) FROM schema_versions").fetchone()
    return None if row is None or row[0] is None else int(row[0])


def migrate(cursor: DuckDBPyConnection, version: int, steps: Sequence[Step], now: float) -> None:
    """Apply the steps after `version`, all or none."""
    cursor.begin()
    try:
        if version == 0:
            cursor.execute("CREATE TABLE schema_versions (version INTEGER, name VARCHAR, added_at DOUBLE)")
        for number, step in enumerate(steps[version:], start=version + 1):
            step(cursor)
            cursor.execute("INSERT INTO schema_versions VALUES (?, ?, ?)", [number, step.__name__, now])
    except BaseException:
        cursor.rollback()
        raise
    cursor.commit()


@migration
def m001_first_tables(cursor: DuckDBPyConnection) -> None:
    """The nine tables of the first release."""
    cursor.execute("CREATE SEQUENCE row_numbers")
    # `calls` and `seconds` repeat what the trials add up to, so that listing runs never reads a trial.
    cursor.execute(
        """
        CREATE TABLE runs (
            row BIGINT DEFAULT nextval('row_numbers'), run_id VARCHAR, added_at DOUBLE, created_at DOUBLE, kind VARCHAR,
            status VARCHAR, note VARCHAR, case_id VARCHAR, case_hash VARCHAR, question VARCHAR, model VARCHAR,
            settings VARCHAR, cause VARCHAR, summary VARCHAR, calls BIGINT, seconds DOUBLE,
            document_id VARCHAR, document VARCHAR)
        """
    )
    cursor.execute("CREATE TABLE cases (case_hash VARCHAR, case_id VARCHAR, added_at DOUBLE, body VARCHAR)")
    cursor.execute("CREATE TABLE arms (run_id VARCHAR, arm VARCHAR, slot BIGINT, added_at DOUBLE)")
    cursor.execute(
        """
        CREATE TABLE trials (
            run_id VARCHAR, seq BIGINT, case_id VARCHAR, arm VARCHAR, block BIGINT, repeat BIGINT, slot BIGINT,
            depth DOUBLE, template VARCHAR, answer VARCHAR, prompt_tokens BIGINT, cached_prompt_tokens BIGINT,
            completion_tokens BIGINT, seconds DOUBLE, cached BOOLEAN, fault VARCHAR, call_id VARCHAR, added_at DOUBLE)
        """
    )
    cursor.execute(
        """
        CREATE TABLE scores (
            row BIGINT DEFAULT nextval('row_numbers'), key VARCHAR, run_id VARCHAR, seq BIGINT, judge VARCHAR,
            judge_version VARCHAR, outcome VARCHAR, reason VARCHAR, added_at DOUBLE)
        """
    )
    cursor.execute(
        """
        CREATE TABLE calls (
            id VARCHAR, key VARCHAR, endpoint VARCHAR, model VARCHAR, messages VARCHAR, params VARCHAR, repeat BIGINT,
            text VARCHAR, finish_reason VARCHAR, prompt_tokens BIGINT, completion_tokens BIGINT,
            cached_prompt_tokens BIGINT, reasoning_tokens BIGINT, seconds DOUBLE, retries BIGINT, fault VARCHAR,
            fault_text VARCHAR, started_at DOUBLE)
        """
    )
    cursor.execute(
        """
        CREATE TABLE findings (
            run_id VARCHAR, document_id VARCHAR, position BIGINT, stage VARCHAR, status VARCHAR, summary VARCHAR,
            cause VARCHAR, advice VARCHAR, evidence VARCHAR, missing_fields VARCHAR)
        """
    )
    cursor.execute(
        """
        CREATE TABLE remedies (
            run_id VARCHAR, document_id VARCHAR, position BIGINT, name VARCHAR, title VARCHAR, tried BOOLEAN, n BIGINT,
            before DOUBLE, after DOUBLE, gain DOUBLE, low DOUBLE, high DOUBLE, note VARCHAR)
        """
    )
    cursor.execute(
        "CREATE TABLE releases (row BIGINT DEFAULT nextval('row_numbers'), run_id VARCHAR, added_at DOUBLE, body VARCHAR)"
    )


@migration
def m002_cases_of_a_run(cursor: DuckDBPyConnection) -> None:
    """The cases of a run over a suite, in their order; a run of one case has none here, its case stands in `runs`."""
    cursor.execute("CREATE TABLE run_cases (run_id VARCHAR, position BIGINT, case_id VARCHAR, case_hash VARCHAR)")
