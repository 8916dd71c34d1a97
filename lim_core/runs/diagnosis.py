"""Diagnoses one case: puts model, bench, store and stages together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from lim_core.diagnose import PAID, Diagnosis, diagnose
from lim_core.document import build_document
from lim_core.embeddings import open_embedder
from lim_core.errors import ConfigError, LimError
from lim_core.judges import check_answers, judges
from lim_core.runs.earlier import Earlier, sent_before
from lim_core.runs.engine import RunOutcome, check_price, engine, release_of, status_of
from lim_core.runs.settings import RunSettings, price_of
from lim_core.tokens import counter_for
from lim_core.types import Bench, Case, Embedder, Finding, Progress

if TYPE_CHECKING:
    from lim_core.store import Store


def run_diagnosis(
    case: Case,
    settings: RunSettings,
    *,
    store: Store | None,
    run_id: str,
    key: str | None = None,
    warnings: tuple[str, ...] = (),
    report: Callable[[Progress], None] = lambda progress: None,
    cancelled: Callable[[], bool] = lambda: False,
    resume: bool = False,
    use_cache: bool = True,
) -> RunOutcome:
    """Diagnose one case and store it as it goes; resuming serves finished calls of the same run from the store.

    The document counts the calls of the whole run. `warnings` are kept with the settings, so that a resume has them too.

    Raises:
        InputError: an alias that can never match, or a case that needs chunks or a question first.
        ConfigError, StoreError: before anything was paid for, or with what was finished kept.
    """
    if settings.judge == "contains":
        check_answers(case)
    settings = replace(settings, keyed=key is not None, warnings=warnings or settings.warnings)
    check_price(settings)
    before = sent_before(store, run_id, price_of(settings)) if store is not None and resume else Earlier()
    if store is not None:
        store.start_run(run_id, case, settings.to_json(), release_of(settings, None))
    with engine(
        settings,
        (case,),
        store=store,
        run_id=run_id,
        key=key,
        report=report,
        cancelled=cancelled,
        resume=resume,
        use_cache=use_cache,
    ) as parts:
        runner, opened, counting = parts.runner, parts.opened, parts.counting
        tested = settings.tested_model
        bench = Bench(
            open_model=opened.model,
            open_embedder=_no_embedder if _early_only(settings) else open_embedder,
            runner=runner,
            counter=counter_for(case.model),
            judge=judges[settings.judge].part,
            same_model=_same(case, tested),
            tested_model=tested,
            alpha=settings.alpha,
            delta=settings.delta,
            seed=settings.seed,
            max_calls=settings.max_calls,
            all_stages=settings.all_stages,
            cancelled=cancelled,
            report=report,
        )
        try:
            diagnosis = _last(diagnose(case, bench, settings.stages))
        except LimError as error:
            if store is not None:
                counting.flush()
                store.set_status(run_id, "failed", str(error))
            raise
        stopped = diagnosis.stopped
        document = build_document(
            case,
            diagnosis,
            run_id=run_id if store is not None else None,
            tested_model=tested,
            same_model=bench.same_model,
            tally=before.tally.plus(runner.tally),
            seconds=before.seconds + time.monotonic() - parts.started,
            outcomes=counting.outcomes,
            release=release_of(settings, opened.opened),
            warnings=settings.warnings,
        )
        if store is not None:
            counting.flush()
            store.save_document(run_id, document, status_of(stopped))
        return RunOutcome(document, stopped)


def _early_only(settings: RunSettings) -> bool:
    """Whether only stages were asked for that read the case and nothing else: then no model of any kind is loaded."""
    return settings.stages is not None and not PAID.intersection(settings.stages)


def _no_embedder() -> Embedder:
    raise ConfigError("Embeddings are loaded only when a stage that calls a model is asked for too.")


def _last(steps: Iterator[Finding | Diagnosis]) -> Diagnosis:
    """Run the diagnosis to its end; findings on the way reach the store with the document."""
    for step in steps:
        if isinstance(step, Diagnosis):
            return step
    raise LimError("The diagnosis ended without a verdict.")


def _same(case: Case, tested: str) -> bool | None:
    """Whether the tested model gave the recorded answer; unknown where the case does not name its model."""
    if case.model is None:
        return None
    return case.model.strip().casefold() == tested.strip().casefold()
