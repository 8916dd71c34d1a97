"""What can be done with a stored run: go on with it, score its answers anew."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from lim_core.errors import InputError, KeyMissing
from lim_core.experiments import experiments
from lim_core.judges import judge_version, judges
from lim_core.runs.diagnosis import run_diagnosis
from lim_core.runs.engine import RunOutcome
from lim_core.runs.experiment import load_experiment, run_experiment
from lim_core.runs.settings import RunSettings
from lim_core.store.records import Rescore
from lim_core.types import Outcome, Progress, Verdict

if TYPE_CHECKING:
    from lim_core.store import Store


def resume_run(
    store: Store,
    run_id: str,
    *,
    key: str | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> RunOutcome:
    """Go on with a stored run from where it was: finished calls are served from the store, the rest is sent.

    A cap given here stands in place of the run's own; caps count what is sent from here on.

    Raises:
        InputError: no such run.
        KeyMissing: its endpoint needs a key and none is at hand; the run waits.
    """
    record = store.run(run_id)
    if record is None:
        raise InputError(f"There is no run {run_id} in this store: list them with `runs list`.")
    settings = RunSettings.from_json(store.settings(run_id))
    if settings.keyed and key is None:
        message = f"The run's endpoint {settings.base_url} needs its key again: give the key and resume."
        store.set_status(run_id, "waiting", message)
        raise KeyMissing(message)
    settings = replace(
        settings,
        max_calls=settings.max_calls if max_calls is None else max_calls,
        max_tokens=settings.max_tokens if max_tokens is None else max_tokens,
        max_cost=settings.max_cost if max_cost is None else max_cost,
    )
    if record.kind != "diagnosis":
        return run_experiment(
            record.kind,
            record.case_id,
            store.suite(run_id),
            settings,
            store=store,
            run_id=run_id,
            key=key,
            report=report,
            cancelled=cancelled,
            resume=True,
        )
    return run_diagnosis(
        store.case(run_id),
        settings,
        store=store,
        run_id=run_id,
        key=key,
        report=report,
        cancelled=cancelled,
        resume=True,
    )


def rejudge(store: Store, run_id: str, judge: str) -> dict[str, int]:
    """Score a run's stored answers with another judge, at no calls; the new scores become the current ones.

    A diagnosis keeps the verdict that its own judge led to; an experiment's result is computed anew.

    Returns how many trials have each outcome now.

    Raises:
        InputError: no such run, or an alias that the judge cannot use.
        UnknownName: no such judge.
    """
    if store.run(run_id) is None:
        raise InputError(f"There is no run {run_id} in this store: list them with `runs list`.")
    entry, cases = judges[judge], {case.id: case for case in store.suite(run_id)}
    scores: list[Rescore] = []
    tally: Tally[str] = Tally()
    for row in store.trials(run_id, limit=store.count_trials(run_id)):
        # A call that failed or was cut has nothing to judge, whoever judges.
        verdict = entry.part(cases[row.case_id], row.answer) if row.fault is None else Verdict(row.outcome, row.reason)
        tally[verdict.outcome.value] += 1
        scores.append(Rescore(row.seq, verdict.outcome, verdict.reason))
    store.add_scores(run_id, judge, judge_version(judge), scores)
    document = store.document(run_id)
    if document is not None and document.get("kind") in experiments:
        view = load_experiment(store, run_id)
        outcomes = {outcome.value: tally[outcome.value] for outcome in Outcome}
        store.save_document(
            run_id,
            {**document, "summary": view.standing, "result": asdict(view.result), "outcomes": outcomes, "judge": judge},
        )
    return dict(tally)
