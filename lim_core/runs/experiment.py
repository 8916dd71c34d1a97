"""Runs an experiment over a suite, and reads one back as its trials stand now."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from lim_core.cases.fields import few
from lim_core.document import Document, calls_json
from lim_core.errors import InputError, LimError
from lim_core.experiments import Cell, LeftOut, Levels, Subject, Table, cells_of, experiments, roll, subjects
from lim_core.runs.earlier import Earlier, sent_before
from lim_core.runs.engine import RunOutcome, check_price, engine, release_of, status_of
from lim_core.runs.settings import RunSettings, price_of
from lim_core.store.records import RunStatus
from lim_core.types import Case, Outcome, Progress, TrialResult

if TYPE_CHECKING:
    from lim_core.store import Store
    from lim_core.store.records import RunRecord

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class ExperimentView:
    """An experiment as its stored trials stand now: also while it runs, and after they were scored anew.

    `options` and `result` are of the types that the experiment's kind names; `planned` counts the trials it will have when
    it is finished, `trials` those it has. `caution` says what the test of an unfinished run is worth; it is about the whole
    run, also where the table was narrowed, and empty where the result may be taken as it stands.
    """

    run: RunRecord
    kind: str
    name: str
    options: Any
    levels: Levels
    table: Table
    result: Any
    summary: str
    left_out: tuple[LeftOut, ...]
    trials: int
    planned: int
    warnings: tuple[str, ...] = ()
    caution: str = ""

    @property
    def standing(self) -> str:
        """The summary, behind the caution where there is one."""
        return _standing(self.caution, self.summary)


def run_experiment(
    kind: str,
    name: str,
    cases: Sequence[Case],
    settings: RunSettings,
    *,
    store: Store | None,
    run_id: str,
    key: str | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
    cancelled: Callable[[], bool] = lambda: False,
    resume: bool = False,
    use_cache: bool = True,
) -> RunOutcome:
    """Send an experiment's trials block by block, every case in each, and store each as it ends.

    `name` is that of the suite. Resuming serves the finished calls of the same run from the store.

    Raises:
        InputError: no case can take part, ids that stand twice, or an option that cannot be used.
        UnknownName: no such kind.
        ConfigError, StoreError: before anything was paid for, or with what was finished kept.
    """
    part = experiments[kind].part
    options = part.read(settings.plan)
    chosen = subjects(cases, part.templates(options), retrieved=part.needs_retrieved_gold)
    _check_ids(cases)
    made = [
        [
            trial
            for subject in chosen.ready
            for trial in part.trials(subject, chosen.ready, block, options, settings.seed)
        ]
        for block in range(part.blocks(chosen.ready, options))
    ]
    settings = replace(
        settings,
        keyed=key is not None,
        planned=sum(map(len, made)),
        # Those of the file are few already; when a run goes on, the notes are among them.
        warnings=tuple(dict.fromkeys((*settings.warnings, *few(map(_own_template_lost, chosen.ready))))),
    )
    check_price(settings)
    before = sent_before(store, run_id, price_of(settings)) if store is not None and resume else Earlier()
    if store is not None:
        store.start_suite(run_id, kind, name, cases, settings.to_json(), release_of(settings, None))
    with engine(
        settings,
        cases,
        store=store,
        run_id=run_id,
        key=key,
        report=report,
        cancelled=cancelled,
        resume=resume,
        use_cache=use_cache,
    ) as parts:
        runner = parts.runner
        runner.planned = settings.planned or 0
        results: list[TrialResult] = []
        try:
            for trials in made:
                results += runner.run(trials, kind)
        except LimError as error:
            if store is not None:
                parts.counting.flush()
                store.set_status(run_id, "failed", str(error))
            raise
        stopped = runner.stopped
        if store is not None:
            parts.counting.flush()
        cells = cells_of(results) if store is None else store.cells(run_id)
        table = Table(cells, tuple(subject.facts for subject in chosen.ready))
        result = part.analyse(table, options, _levels(settings))
        summary = part.summary(result)
        status = RunStatus(status_of(stopped))
        caution = _caution(status, kind, len(table.facts), len(results), settings.planned or 0)
        summary = f"{_standing(caution, summary)} {stopped or ''}".rstrip()
        document: Document = {
            "schema": SCHEMA,
            "kind": kind,
            "run_id": run_id if store is not None else None,
            "suite": name,
            "cases": len(chosen.ready),
            "left_out": [asdict(one) for one in chosen.left_out],
            "summary": summary,
            "tested_model": settings.tested_model,
            "templates": list(part.templates(options)),
            "frames": sorted({subject.frame.name for subject in chosen.ready}),
            "options": asdict(options),
            "result": asdict(result),
            "outcomes": {outcome.value: parts.counting.outcomes.get(outcome.value, 0) for outcome in Outcome},
            "calls": calls_json(before.tally.plus(runner.tally), before.seconds + time.monotonic() - parts.started),
            "release": release_of(settings, parts.opened.opened),
            "warnings": list(settings.warnings),
            "stopped": str(stopped) if stopped is not None else None,
        }
        if store is not None:
            store.save_document(run_id, document, status)
        return RunOutcome(document, stopped)


def load_experiment(store: Store, run_id: str) -> ExperimentView:
    """Read an experiment back from its stored trials.

    Raises:
        InputError: no such run, or it is a diagnosis.
    """
    record = store.run(run_id)
    if record is None:
        raise InputError(f"There is no run {run_id} in this store: it was deleted, or the link is of another server.")
    if record.kind not in experiments:
        raise InputError(f"The run {run_id} is a {record.kind}: open it on its own page.")
    part = experiments[record.kind].part
    settings = RunSettings.from_json(record.settings)
    options = part.read(settings.plan)
    found = roll(store.suite(run_id), retrieved=part.needs_retrieved_gold)
    cells: tuple[Cell, ...] = store.cells(run_id)
    table = Table(cells, found.facts)
    levels = _levels(settings)
    result = part.analyse(table, options, levels)
    trials = sum(cell.trials for cell in cells)
    return ExperimentView(
        record,
        record.kind,
        record.case_id,
        options,
        levels,
        table,
        result,
        part.summary(result),
        found.left_out,
        trials,
        trials if settings.planned is None else settings.planned,
        settings.warnings,
        _caution(record.status, record.kind, len(table.facts), trials, settings.planned or trials),
    )


def _own_template_lost(subject: Subject) -> str:
    """Why a prompt as sent is not what the arms are laid out in; empty where none was given."""
    if not subject.note or subject.case.prompt is None:
        return ""
    return f"{subject.case.id}: {subject.note}, so lim's own template is used."


def _standing(caution: str, summary: str) -> str:
    return f"{caution} As it stands: {summary}" if caution else summary


def _caution(status: RunStatus, kind: str, cases: int, trials: int, planned: int) -> str:
    # A run that was killed in the queue knows no plan yet.
    far = f"{trials:,} of {planned:,} trials" if planned else "before its first trial"
    if status is RunStatus.DONE:
        # A cap is set beforehand, so its end is not picked by what pleases; it is said all the same.
        return f"Ended by its cap at {far}." if trials < planned else ""
    if cases == 1 and experiments[kind].part.anytime:
        return ""
    return f"Unfinished, {far}: no result yet, for a test that is looked at while it grows says yes too often; let the run end."


def _levels(settings: RunSettings) -> Levels:
    return Levels(settings.alpha, settings.delta, settings.seed)


def _check_ids(cases: Sequence[Case]) -> None:
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            raise InputError(f"Two cases of the suite have the id {case.id!r}: give each its own id.")
        seen.add(case.id)
