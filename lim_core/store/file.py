"""The store: one DuckDB file that keeps every run, behind the few calls the rest of lim uses."""

from __future__ import annotations

import atexit
import contextlib
import re
import threading
import time
import weakref
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from lim_core.errors import InputError, LimError, StoreError
from lim_core.store import documents, export, inbox, lookup, removal
from lim_core.store import runs as run_rows
from lim_core.store import trials as trial_rows
from lim_core.store.calls import RunCache, read_calls
from lim_core.store.database import Database
from lim_core.store.encoding import storable
from lim_core.store.records import ArmRow, Rescore, RunPage, RunRecord, RunStatus, TrialRow
from lim_core.store.sink import Pending, RunSink, write_group
from lim_core.store.writer import Writer
from lim_core.types import Case, Json, Message, Outcome

if TYPE_CHECKING:
    from lim_core.experiments.cells import Cell

# Ids become file names in the inbox and parts of links.
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
EVERY_TRIAL = 2**62


class Store:
    """One open store file; every method may be called from any thread.

    Any method raises StoreError, or the member of its family that fits, where the file cannot be read or written.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        # Two locks: making a sink waits for the writer, and the writer asks which runs are deleted.
        self._sinks_lock = threading.Lock()
        self._deleted_lock = threading.Lock()
        self._sinks: dict[str, RunSink] = {}
        self._deleted: set[str] = set()
        self._writer: Writer[Pending] = Writer(self._write_group)
        # Pending trials are flushed at exit; the weak reference keeps the hook from keeping the store.
        self._at_exit = _CloseAtExit(weakref.ref(self))
        atexit.register(self._at_exit)

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open the file, with its folder (mode 0700) and itself (mode 0600) made where they do not exist.

        Raises:
            StoreBusy: another process holds it; the error names the PID.
            StoreNewer: a newer lim wrote it.
            StoreFull: there is no room for it, or it cannot be written.
        """
        return cls(Database.open(path))

    @classmethod
    def open_inbox(cls, run_id: str, *, beside: Path) -> Store:
        """A store of its own for one run, beside a store that another process holds; the owner takes it in.

        Raises:
            InputError: the id cannot be a file name.
        """
        _check_id(run_id)
        return cls(inbox.open_patiently(inbox.inbox_path(beside, run_id)))

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    def close(self) -> None:
        """Commit what is pending and close the file. Idempotent.

        Raises:
            StoreFull: what was pending could not be committed; the file is closed all the same.
        """
        atexit.unregister(self._at_exit)
        try:
            self._writer.close()
        finally:
            self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- writing a run --------------------------------------------------------------------------------

    def start_run(self, run_id: str, case: Case, settings: Mapping[str, Json], release: Mapping[str, Json]) -> None:
        """Add a diagnosis with status `running`, or set an existing one of the same case going again.

        Entries of settings and release that are named like a credential are not stored.

        Raises:
            InputError: the id is taken by a run of another case, or has characters a link cannot carry.
        """
        from lim_core.cases import case_to_json

        _check_id(run_id)
        self._start(
            run_rows.NewRun(
                run_id, run_rows.DIAGNOSIS, case.id, case.question, (case_to_json(case),), settings, release
            )
        )

    def start_suite(
        self,
        run_id: str,
        kind: str,
        name: str,
        cases: Sequence[Case],
        settings: Mapping[str, Json],
        release: Mapping[str, Json],
    ) -> None:
        """Add a run over a suite, or set an existing one of the same suite going again; `name` stands for it in lists.

        Raises:
            InputError: the id is taken by another run, or has characters a link cannot carry.
        """
        from lim_core.cases import case_to_json

        _check_id(run_id)
        said = cases[0].question if len(cases) == 1 else f"{name}, {len(cases)} cases"
        bodies = tuple(case_to_json(case) for case in cases)
        self._start(run_rows.NewRun(run_id, kind, name, said, bodies, settings, release))

    def _start(self, new: run_rows.NewRun) -> None:
        with self._database.write() as cursor:
            run_rows.start(cursor, new)
        with self._deleted_lock:
            self._deleted.discard(new.run_id)

    def set_status(self, run_id: str, status: str, note: str = "") -> None:
        """Record a new status of a run, once everything put before is committed.

        Raises:
            InputError: there is no such run.
        """
        kind = RunStatus(status)
        self._writer.flush()
        with self._database.write() as cursor:
            run_rows.set_status(cursor, run_id, kind, note)

    def save_document(self, run_id: str, document: Mapping[str, Json], status: str | None = None) -> None:
        """Keep the result of a run, the object of `diagnose --json`, and where given its new status with it.

        Raises:
            InputError: there is no such run.
        """
        kind = None if status is None else RunStatus(status)
        self._writer.flush()
        with self._database.write() as cursor:
            documents.save_document(cursor, run_id, document, kind)

    def sink(self, run_id: str, judge: str | None = None, judge_version: str | None = None) -> RunSink:
        """Where the run's finished trials go; one sink a run and judge. The judge defaults to the one in the settings.

        Raises:
            InputError: there is no such run.
        """
        name = judge or str(self.settings(run_id).get("judge") or "contains")
        if judge_version is None:
            from lim_core.judges import judge_version as version_of_judge

            judge_version = version_of_judge(name)
        with self._sinks_lock:
            sink = self._sinks.get(run_id)
            if sink is None or sink.judged_by != (name, judge_version):
                self._writer.flush()
                with self._database.cursor() as cursor:
                    hashes = lookup.case_hashes(cursor, run_id)
                    sink = RunSink(run_id, hashes, name, judge_version, cursor, self._writer.put, self._writer.flush)
                self._sinks[run_id] = sink
            return sink

    def add_scores(self, run_id: str, judge: str, judge_version: str, scores: Sequence[Rescore]) -> None:
        """Add the verdicts of a judge that was run again over stored answers; they become the trials' current scores.

        Raises:
            InputError: there is no such run.
        """
        self._writer.flush()
        with self._database.write() as cursor:
            hashes = lookup.case_hashes(cursor, run_id)
            trial_rows.write_rescores(cursor, run_id, hashes, judge, judge_version, scores)

    def flush(self) -> None:
        """Wait until every trial put before is committed.

        Raises:
            StoreFull: it could not be committed.
        """
        self._writer.flush()

    # --- reading --------------------------------------------------------------------------------------

    def cache(self, run_id: str) -> RunCache:
        """The answered calls of this run as they are now, for resuming it."""
        self._catch_up()
        with self._database.cursor() as cursor:
            return RunCache(cursor, storable(run_id))

    def run(self, run_id: str) -> RunRecord | None:
        """One run, None where there is none of this id."""
        with self._database.cursor() as cursor:
            return lookup.read_run(cursor, storable(run_id))

    def runs(
        self,
        limit: int = 50,
        offset: int = 0,
        text: str = "",
        cause: str | None = None,
        status: str | None = None,
        model: str | None = None,
        kind: str | None = None,
    ) -> RunPage:
        """A page of runs, newest first; `text` is looked for in id, case id, question, cause, summary, model and note."""
        with self._database.cursor() as cursor:
            return lookup.read_page(
                cursor, limit, offset, text, _given(cause), _given(status), _given(model), _given(kind)
            )

    def document(self, run_id: str) -> Mapping[str, Json] | None:
        """The newest result of a run, None where it has none yet."""
        with self._database.cursor() as cursor:
            return documents.read_document(cursor, storable(run_id))

    def case(self, run_id: str) -> Case:
        """The case of a diagnosis.

        Raises:
            InputError: there is no such run, or it is one over a suite.
        """
        from lim_core.cases import case_from_json

        with self._database.cursor() as cursor:
            body = lookup.read_case(cursor, storable(run_id))
        return case_from_json(body).case

    def suite(self, run_id: str) -> tuple[Case, ...]:
        """The cases of a run in their order; a diagnosis has one.

        Raises:
            InputError: there is no such run.
        """
        from lim_core.cases import case_from_json

        with self._database.cursor() as cursor:
            bodies = lookup.read_cases(cursor, storable(run_id))
        return tuple(case_from_json(body).case for body in bodies)

    def cells(self, run_id: str) -> tuple[Cell, ...]:
        """The run's trials folded by case, arm and block, with their newest scores."""
        self._catch_up()
        with self._database.cursor() as cursor:
            return trial_rows.read_cells(cursor, storable(run_id))

    def settings(self, run_id: str) -> Mapping[str, Json]:
        """The settings a run was last started with.

        Raises:
            InputError: there is no such run.
        """
        return self._existing(run_id).settings

    def trials(
        self,
        run_id: str,
        arm: str | None = None,
        outcome: Outcome | str | None = None,
        limit: int = 1_000,
        offset: int = 0,
        case: str | None = None,
    ) -> list[TrialRow]:
        """The run's trials in the order they finished, each with its newest score."""
        self._catch_up()
        wanted = None if outcome is None else Outcome(outcome).value
        with self._database.cursor() as cursor:
            return trial_rows.read_trials(cursor, storable(run_id), _given(arm), wanted, _given(case), limit, offset)

    def count_trials(
        self, run_id: str, arm: str | None = None, outcome: Outcome | str | None = None, case: str | None = None
    ) -> int:
        """How many trials `trials` gives without a limit."""
        self._catch_up()
        wanted = None if outcome is None else Outcome(outcome).value
        with self._database.cursor() as cursor:
            return trial_rows.count_trials(cursor, storable(run_id), _given(arm), wanted, _given(case))

    def arms(self, run_id: str) -> tuple[ArmRow, ...]:
        """The run's arms in the order they were first tried, with their outcomes counted."""
        self._catch_up()
        with self._database.cursor() as cursor:
            return trial_rows.read_arms(cursor, storable(run_id))

    def prompt(self, call_id: str) -> tuple[Message, ...]:
        """The exact messages of one call.

        Raises:
            InputError: there is no such call.
        """
        with self._database.cursor() as cursor:
            messages = trial_rows.read_prompt(cursor, storable(call_id))
        if messages is None:
            raise InputError("This call is not in the store: its run was deleted, open another one.")
        return messages

    # --- removing, sharing ----------------------------------------------------------------------------

    def delete(self, run_id: str) -> None:
        """Remove a run, and every call no other run uses, for good.

        Raises:
            InputError: there is no such run.
        """
        if self.run(run_id) is None:
            raise lookup.no_run(run_id)
        self._remove((run_id,))

    def delete_older_than(self, days: float) -> int:
        """Remove the runs last touched more than `days` days ago, running ones excepted; returns how many.

        Raises:
            InputError: the number of days is negative or not a number.
        """
        if not days >= 0:
            raise InputError("The age in days must be 0 or more.")
        with self._database.cursor() as cursor:
            old = removal.ended_before(cursor, time.time() - days * 86_400)
        if old:
            self._remove(old)
        return len(old)

    def export_json(self, run_id: str) -> str:
        """A run as one strict JSON object: run, document, case, trials, and calls with their exact prompts.

        Raises:
            InputError: there is no such run.
        """
        found = self._existing(run_id)
        rows = self.trials(run_id, limit=EVERY_TRIAL)
        with self._database.cursor() as cursor:
            document, cases = documents.read_document(cursor, run_id), lookup.read_cases(cursor, run_id)
            return export.run_to_json(found, document, cases, rows, read_calls(cursor, run_id))

    def export_parquet(self, run_id: str, path: Path) -> None:
        """Write the run's trials to a Parquet file, one row each.

        Raises:
            InputError: there is no such run, or the file cannot be written there.
        """
        found = self._existing(run_id)
        export.write_parquet(found, self.trials(run_id, limit=EVERY_TRIAL), path)

    def export_csv(self, run_id: str, path: Path) -> None:
        """Write the run's trials to a CSV file, one row each; formulas are quoted.

        Raises:
            InputError: there is no such run, or the file cannot be written there.
        """
        found = self._existing(run_id)
        export.write_csv(found, self.trials(run_id, limit=EVERY_TRIAL), path)

    def export_jsonl(self, run_id: str, path: Path) -> None:
        """Write the run's trials to a file of JSON lines, one object each.

        Raises:
            InputError: there is no such run, or the file cannot be written there.
        """
        found = self._existing(run_id)
        export.write_jsonl(found, self.trials(run_id, limit=EVERY_TRIAL), path)

    # --- the owner's duties ---------------------------------------------------------------------------

    def mark_interrupted(self, alive: Collection[str] = ()) -> tuple[str, ...]:
        """Give every run that is marked as running, and is not in `alive`, the status `interrupted`; returns their ids.

        For the owner, once after opening: a run of an earlier process cannot be going any more.
        """
        with self._database.write() as cursor:
            return run_rows.mark_interrupted(cursor, alive)

    def take_in(self) -> tuple[str, ...]:
        """Move the runs of inbox files that nobody is writing into this store; returns the ids added."""
        return inbox.take_in(self._database)

    def _existing(self, run_id: str) -> RunRecord:
        found = self.run(run_id)
        if found is None:
            raise lookup.no_run(run_id)
        return found

    def _catch_up(self) -> None:
        # What was put shows at once; on a full disk, reading what was committed before goes on.
        with contextlib.suppress(StoreError):
            self._writer.flush()

    def _remove(self, run_ids: Sequence[str]) -> None:
        with self._deleted_lock:
            self._deleted.update(run_ids)
        with self._sinks_lock:
            for run_id in run_ids:
                self._sinks.pop(run_id, None)
        with self._database.write() as cursor:
            removal.remove_runs(cursor, run_ids)
        self._database.checkpoint()

    def _write_group(self, group: Sequence[Pending]) -> None:
        with self._deleted_lock:
            deleted = frozenset(self._deleted)
        write_group(self._database, group, deleted.__contains__)


class _CloseAtExit:
    def __init__(self, store: weakref.ref[Store]) -> None:
        self._store = store

    def __call__(self) -> None:
        store = self._store()
        if store is not None:
            with contextlib.suppress(LimError):
                store.close()


def _given(choice: str | None) -> str | None:
    # Choices come from links, which can carry anything.
    return None if choice is None else storable(choice)


def _check_id(run_id: str) -> None:
    if not _RUN_ID.fullmatch(run_id):
        raise InputError(
            f"{run_id[:80]!r} cannot be a run id: use up to 80 letters, digits, dots, dashes and underscores."
        )
