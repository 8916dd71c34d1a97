"""Reading trials and arms, and adding new verdicts to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lim_core.store.bulk import Row, Value, insert_rows
from lim_core.store.encoding import messages_from_json, storable
from lim_core.store.records import ArmRow, Rescore, TrialRow
from lim_core.store.sink import SCORES, score_key
from lim_core.types import Message, Outcome

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from lim_core.experiments.cells import Cell


def write_rescores(
    cursor: DuckDBPyConnection,
    run_id: str,
    hash_of: Callable[[str], str],
    judge: str,
    judge_version: str,
    scores: Sequence[Rescore],
) -> None:
    """Add the verdicts of a judge run again; the earlier ones stay in the file."""
    now = time.time()
    found = cursor.execute("SELECT seq, call_id, case_id FROM trials WHERE run_id = ?", [run_id]).fetchall()
    of = {seq: (call_id, hash_of(case_id)) for seq, call_id, case_id in found}
    rows: list[Row] = []
    for score in scores:
        key = score_key(*of[score.seq], judge, judge_version)
        rows.append(
            (key, run_id, score.seq, judge, judge_version, score.outcome.value, storable(score.reason), now),
        )
    insert_rows(cursor, "scores", SCORES, rows)


# A failed call that was sent again later is told by the later one; the newest score of a trial counts.
_CURRENT = """
    WITH own AS (
        SELECT * FROM trials WHERE run_id = $run
        QUALIFY fault IS NULL OR row_number() OVER (PARTITION BY case_id, arm, block, repeat ORDER BY seq DESC) = 1),
    judged AS (
        SELECT seq, judge, judge_version, outcome, reason FROM scores WHERE run_id = $run
        QUALIFY row_number() OVER (PARTITION BY seq ORDER BY row DESC) = 1),
    current AS (SELECT * FROM own JOIN judged USING (seq))
"""
_CHOSEN = """
    WHERE ($arm IS NULL OR arm = $arm) AND ($outcome IS NULL OR outcome = $outcome) AND ($case IS NULL OR case_id = $case)
"""


def read_trials(
    cursor: DuckDBPyConnection,
    run_id: str,
    arm: str | None,
    outcome: str | None,
    case: str | None,
    limit: int,
    offset: int,
) -> list[TrialRow]:
    """The run's trials in the order they finished."""
    values: dict[str, Value] = {"run": run_id, "arm": arm, "outcome": outcome, "case": case}
    values |= {"limit": max(0, limit), "offset": max(0, offset)}
    rows = cursor.execute(
        f"""
        {_CURRENT} SELECT seq, case_id, arm, block, repeat, slot, depth, outcome, reason, answer, prompt_tokens,
            cached_prompt_tokens, completion_tokens, seconds, cached, fault, call_id, judge, judge_version
        FROM current {_CHOSEN} ORDER BY seq LIMIT $limit OFFSET $offset
        """,  # noqa: S608 - constants only, values are bound
        values,
    ).fetchall()
    names = list(TrialRow.__dataclass_fields__)
    return [TrialRow(**(dict(zip(names, row, strict=True)) | {"outcome": Outcome(row[7])})) for row in rows]


def count_trials(
    cursor: DuckDBPyConnection, run_id: str, arm: str | None, outcome: str | None, case: str | None
) -> int:
    """How many trials `read_trials` would give without a limit."""
    values = {"run": run_id, "arm": arm, "outcome": outcome, "case": case}
    row = cursor.execute(f"{_CURRENT} SELECT count(*) FROM current {_CHOSEN}", values).fetchone()  # noqa: S608
    return int(row[0]) if row else 0


def read_arms(cursor: DuckDBPyConnection, run_id: str) -> tuple[ArmRow, ...]:
    """The run's arms in the order they were first tried."""
    columns = ", ".join(f"count(*) FILTER (outcome = '{outcome.value}')" for outcome in Outcome)
    rows = cursor.execute(
        f"{_CURRENT} SELECT arm, min(slot), count(*), {columns} FROM current GROUP BY arm ORDER BY min(seq)",  # noqa: S608
        {"run": run_id},
    ).fetchall()
    return tuple(ArmRow(*row) for row in rows)


def read_cells(cursor: DuckDBPyConnection, run_id: str) -> tuple[Cell, ...]:
    """The run's trials folded by case, arm and block, in the order they were first tried."""
    from lim_core.experiments.cells import Cell  # brings numpy, which opening a store need not

    columns = ", ".join(f"count(*) FILTER (outcome = '{outcome.value}')" for outcome in Outcome)
    rows = cursor.execute(
        f"""
        {_CURRENT} SELECT case_id, arm, block, min(slot), any_value(depth), {columns},
            count(DISTINCT answer) FILTER (outcome = 'correct'),
            count(DISTINCT answer) FILTER (outcome IN ('wrong', 'abstained')), avg(prompt_tokens),
            avg(completion_tokens), avg(seconds) FILTER (NOT cached AND fault IS NULL)
        FROM current GROUP BY case_id, arm, block ORDER BY min(seq)
        """,  # noqa: S608 - constants only, values are bound
        {"run": run_id},
    ).fetchall()
    return tuple(Cell(*row) for row in rows)


def read_prompt(cursor: DuckDBPyConnection, call_id: str) -> tuple[Message, ...] | None:
    """The exact messages of one call, None where there is no such call."""
    row = cursor.execute("SELECT messages FROM calls WHERE id = ? LIMIT 1", [call_id]).fetchone()
    return None if row is None else messages_from_json(row[0])
