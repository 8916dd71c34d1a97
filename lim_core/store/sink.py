"""Finished trials on their way into the file: as rows, and kept from doubling where a run is resumed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lim_core.store.bulk import Row, insert_rows
from lim_core.store.database import Database
from lim_core.store.encoding import digest, messages_to_json, storable, to_json, without_credentials
from lim_core.types import TrialResult

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TRIALS = [
    "run_id",
    "seq",
    "case_id",
    "arm",
    "block",
    "repeat",
    "slot",
    "depth",
    "template",
    "answer",
    "prompt_tokens",
    "cached_prompt_tokens",
    "completion_tokens",
    "seconds",
    "cached",
    "fault",
    "call_id",
    "added_at",
]
SCORES = ["key", "run_id", "seq", "judge", "judge_version", "outcome", "reason", "added_at"]
_CALLS = [
    "id",
    "key",
    "endpoint",
    "model",
    "messages",
    "params",
    "repeat",
    "text",
    "finish_reason",
    "prompt_tokens",
    "completion_tokens",
    "cached_prompt_tokens",
    "reasoning_tokens",
    "seconds",
    "retries",
    "fault",
    "fault_text",
    "started_at",
]
_ARMS = ["run_id", "arm", "slot", "added_at"]


@dataclass(frozen=True, slots=True)
class Pending:
    """The rows of one finished trial, ready to be written; None where the file already has the row."""

    run_id: str
    trial: Row | None
    score: Row | None
    call: Row | None
    call_maybe_stored: bool
    arm: Row | None


@dataclass(frozen=True, slots=True)
class _Known:
    seq: int
    judge: str
    judge_version: str


@dataclass(frozen=True, slots=True)
class _Place:
    case_id: str
    arm: str
    block: int
    repeat: int
    call_id: str


class RunSink:
    """Takes the finished trials of one run for keeping, from any thread."""

    def __init__(
        self,
        run_id: str,
        hash_of: Callable[[str], str],
        judge: str,
        judge_version: str,
        cursor: DuckDBPyConnection,
        put: Callable[[Pending], None],
        flush: Callable[[], None],
    ) -> None:
        self._run_id = run_id
        self._hash_of = hash_of
        self._judge = judge
        self._judge_version = judge_version
        self._put = put
        self._flush = flush
        self._lock = threading.Lock()  # guards _known, _next, _calls, _arms
        self._known: dict[_Place, _Known] = {}
        self._next = 0
        rows = cursor.execute(
            """
            SELECT case_id, arm, block, repeat, call_id, seq, judge, judge_version FROM trials
            LEFT JOIN (SELECT seq, judge, judge_version FROM scores WHERE run_id = $run
                       QUALIFY row_number() OVER (PARTITION BY seq ORDER BY row DESC) = 1) USING (seq)
            WHERE run_id = $run
            """,
            {"run": run_id},
        ).fetchall()
        for case_id, arm, block, repeat, call_id, seq, stored_judge, stored_version in rows:
            self._known[_Place(case_id, arm, block, repeat, call_id)] = _Known(seq, stored_judge, stored_version)
            self._next = max(self._next, seq + 1)
        self._calls = {place.call_id for place in self._known}
        arms = cursor.execute("SELECT arm FROM arms WHERE run_id = ?", [run_id]).fetchall()
        self._arms = {arm for (arm,) in arms}

    @property
    def judged_by(self) -> tuple[str, str]:
        """Name and version of the judge whose verdicts come in."""
        return self._judge, self._judge_version

    def put(self, result: TrialResult) -> None:
        """Take one trial and return at once; it is committed within some 100 ms.

        A trial that a resumed run answered from this run's own cache is already here and is not doubled.

        Raises:
            StoreFull: trials put before could not be committed; this one is kept with them for the next try.
        """
        trial, call, now = result.trial, result.call, time.time()
        place = _Place(storable(trial.case_id), storable(trial.arm), trial.block, trial.repeat, call.id)
        with self._lock:
            known = self._known.get(place)
            if known is not None and (known.judge, known.judge_version) == (self._judge, self._judge_version):
                return
            seq = self._next if known is None else known.seq
            rows = Pending(
                run_id=self._run_id,
                trial=None if known else _trial_row(self._run_id, seq, result, now),
                score=self._score_row(seq, result, now),
                call=None if call.id in self._calls else _call_row(result),
                call_maybe_stored=result.cached,
                arm=None if place.arm in self._arms else (self._run_id, place.arm, trial.slot, now),
            )
            self._known[place] = _Known(seq, self._judge, self._judge_version)
            self._next = max(self._next, seq + 1)
            self._calls.add(call.id)
            self._arms.add(place.arm)
            self._put(rows)

    def flush(self) -> None:
        """Wait until everything put before is committed.

        Raises:
            StoreFull: it could not be committed; what was committed before stays.
        """
        self._flush()

    def _score_row(self, seq: int, result: TrialResult, now: float) -> Row:
        verdict = result.verdict
        case_hash = self._hash_of(storable(result.trial.case_id))
        key = score_key(result.call.id, case_hash, self._judge, self._judge_version)
        outcome, reason = verdict.outcome.value, storable(verdict.reason)
        return (key, self._run_id, seq, self._judge, self._judge_version, outcome, reason, now)


def score_key(call_id: str, case_hash: str, judge: str, judge_version: str) -> str:
    """The key of a score: what was judged, against which case, by which judge in which version."""
    return digest([call_id, case_hash, judge, judge_version])


def write_group(database: Database, group: Sequence[Pending], deleted: Callable[[str], bool]) -> None:
    """Commit a group of trials in one transaction; those of a run deleted meanwhile are let go."""
    with database.write() as cursor:
        kept = [rows for rows in group if not deleted(rows.run_id)]
        calls = [rows.call for rows in kept if rows.call is not None]
        doubtful = [rows.call[0] for rows in kept if rows.call is not None and rows.call_maybe_stored]
        if doubtful:
            found = cursor.execute("SELECT id FROM calls WHERE list_contains(?, id)", [doubtful]).fetchall()
            stored = {call_id for (call_id,) in found}
            calls = [row for row in calls if row[0] not in stored]
        insert_rows(cursor, "calls", _CALLS, calls)
        insert_rows(cursor, "trials", _TRIALS, [rows.trial for rows in kept if rows.trial is not None])
        insert_rows(cursor, "scores", SCORES, [rows.score for rows in kept if rows.score is not None])
        insert_rows(cursor, "arms", _ARMS, [rows.arm for rows in kept if rows.arm is not None])


def _trial_row(run_id: str, seq: int, result: TrialResult, now: float) -> Row:
    trial, call = result.trial, result.call
    return (
        run_id,
        seq,
        storable(trial.case_id),
        storable(trial.arm),
        trial.block,
        trial.repeat,
        trial.slot,
        result.depth,
        storable(trial.prompt.template),
        storable(call.text),
        call.usage.prompt_tokens,
        call.usage.cached_prompt_tokens,
        call.usage.completion_tokens,
        call.seconds,
        result.cached,
        call.fault,
        call.id,
        now,
    )


def _call_row(result: TrialResult) -> Row:
    call = result.call
    endpoint = without_credentials(call.endpoint)
    return (
        storable(call.id),
        storable(call.key),
        storable(str(endpoint)),
        storable(call.model),
        messages_to_json(call.messages),
        to_json(without_credentials(call.params)),
        call.repeat,
        storable(call.text),
        None if call.finish_reason is None else storable(call.finish_reason),
        call.usage.prompt_tokens,
        call.usage.completion_tokens,
        call.usage.cached_prompt_tokens,
        call.usage.reasoning_tokens,
        call.seconds,
        call.retries,
        call.fault,
        None if call.fault_text is None else storable(call.fault_text),
        call.started_at,
    )
