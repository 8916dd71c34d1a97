"""Starts, resumes and loads runs: puts model, bench, store and diagnosis together. What pages and command line call."""

from __future__ import annotations

import time
import uuid
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from lim_core import arms
from lim_core.backends import ModelSpec, open_model, spec_for
from lim_core.backends.weights import weights_name
from lim_core.config import Settings
from lim_core.diagnose import PAID, Diagnosis, diagnose
from lim_core.document import Document, build_document
from lim_core.embeddings import open_embedder
from lim_core.errors import ConfigError, InputError, KeyMissing, LimError, RunCancelled
from lim_core.evidence import gold_of
from lim_core.judges import check_answers, judge_version, judges
from lim_core.prices import Price, read_prices
from lim_core.prompts import TEMPLATE_VERSION, lay_out
from lim_core.runner import Runner
from lim_core.runner.lane import Pace
from lim_core.stages import stages
from lim_core.store import Rescore
from lim_core.tokens import counter_for
from lim_core.types import (
    Bench,
    Budget,
    Case,
    Embedder,
    Finding,
    Json,
    Model,
    Progress,
    TrialResult,
    TrialSink,
    Usage,
    Verdict,
)

if TYPE_CHECKING:
    from lim_core.store import Store

EMBEDDED = "embedded"
# Seconds a call and prompt tokens a second of the embedded model on two cores, measured; only for the preflight line.
_EMBEDDED_TOKENS_A_SECOND = 400.0
_REMOTE_SECONDS = 1.5
_ANSWER_TOKENS = 16


_COUNTS = ("max_calls", "max_tokens", "in_flight", "requests_per_minute", "tokens_per_minute")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How one diagnosis is run; stored with the run, so it never holds a key."""

    model: str = EMBEDDED
    base_url: str | None = None
    judge: str = "contains"
    alpha: float = 0.05
    delta: float = 0.2
    seed: int = 0
    max_calls: int | None = 200
    max_tokens: int | None = None
    max_cost: float | None = None
    in_flight: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    stages: tuple[str, ...] | None = None
    all_stages: bool = False
    # Whether a key was at hand: a resumed run that had one waits until it has one again.
    keyed: bool = False
    # The backend's own options, as its `Options` class declares them.
    options: Mapping[str, Json] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha is {self.alpha}: give a number between 0 and 1, such as 0.05.")
        if not 0 < self.delta < 1:
            raise InputError(f"delta is {self.delta}: give a number between 0 and 1, such as 0.2.")
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name.replace('_', '-')} is {value}: give a whole number above 0.")
        if self.max_cost is not None and not self.max_cost > 0:
            raise InputError(f"max-cost is {self.max_cost}: give an amount above 0.")
        for name in self.stages or ():
            stages[name]  # raises UnknownName with the list of stages
        judges[self.judge]

    @property
    def spec(self) -> ModelSpec:
        """The model to open."""
        return replace(spec_for(self.model, self.base_url), options=self.options)

    @property
    def tested_model(self) -> str:
        """The model's name as verdicts say it, known without loading it."""
        if self.model == EMBEDDED and self.base_url is None:
            return weights_name(Settings.from_environment().gguf)
        return self.model

    def to_json(self) -> dict[str, Json]:
        """As stored with the run."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> RunSettings:
        """Settings of a stored run.

        Raises:
            ConfigError: a key that this version does not know.
        """
        known = {name: item for name, item in value.items() if name in cls.__dataclass_fields__}
        if len(known) != len(value):
            raise ConfigError("The run's settings were written by another version of lim; start a new run instead.")
        if known.get("stages") is not None:
            known["stages"] = tuple(known["stages"])  # type: ignore[arg-type]
        return cls(**known)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a run will likely cost: calls (few if an early stage settles it), prompt tokens and seconds at most."""

    calls_low: int
    calls_high: int
    prompt_tokens: int
    seconds: float
    cost: float | None = None
    notes: tuple[str, ...] = ()


def price_of(settings: RunSettings) -> Price | None:
    """The tested model's price in the user's table beside the default store; None is unknown.

    Raises:
        ConfigError: the table cannot be read.
    """
    return read_prices(Settings.from_environment().store_path.parent).find(settings.tested_model)


def new_run_id() -> str:
    """A fresh run id: 12 hex digits, safe in links and file names."""
    return uuid.uuid4().hex[:12]


def preflight(case: Case, settings: RunSettings) -> Preflight:
    """Estimate calls, tokens, time and cost of a diagnosis without loading a model; upper ends, cost None if unpriced."""
    wanted = settings.stages is None or "position" in settings.stages
    gold = gold_of(case)
    if not wanted or not case.answers or not case.chunks or not gold.ids or gold.spoilers:
        return Preflight(
            0, 0, 0, 0.0, None, ("No model is called: the position test is not wanted or lacks its fields.",)
        )
    counter = counter_for(case.model)
    one = counter.count_messages(lay_out(case.question, case.chunks).messages).n
    slots = arms.named_slots(arms.split(case.chunks, gold.ids))
    low = 8 + 6 * len(slots)
    high = min(settings.max_calls or 10_000, 8 + 64 * len(slots) + 48)
    tokens = one * high
    if settings.model == EMBEDDED:
        # Neighbouring prompts share prefixes, so about three fifths of the tokens are read anew (facts: cost of a sweep).
        seconds = 0.6 * tokens / _EMBEDDED_TOKENS_A_SECOND
        notes: tuple[str, ...] = ("The embedded model is small: its verdict holds for itself.",)
    else:
        seconds = high * _REMOTE_SECONDS
        notes = ()
    price = price_of(settings)
    cost = price.cost(Usage(tokens, high * _ANSWER_TOKENS)) if price is not None else None
    return Preflight(low, high, tokens, seconds, cost, notes)


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

    Raises:
        InputError: an alias that can never match, or a case that needs chunks or a question first.
        ConfigError, StoreError: before anything was paid for, or with what was finished kept.
    """
    if settings.judge == "contains":
        check_answers(case)
    settings = replace(settings, keyed=key is not None)
    price = price_of(settings)
    if settings.max_cost is not None and price is None:
        raise ConfigError(
            f"The price of {settings.tested_model} is unknown: add it to the price table, or drop max-cost."
        )
    started = time.monotonic()
    opened = _Opened(settings.spec, key)
    with ExitStack() as stack:
        stack.callback(opened.close)
        sink = None
        if store is not None:
            store.start_run(run_id, "diagnosis", case, settings.to_json(), _release(settings, None))
            sink = store.sink(run_id, settings.judge, judge_version(settings.judge))
        counting = _Counting(sink)
        runner = stack.enter_context(
            Runner(
                opened.model,
                {case.id: case},
                judges[settings.judge].part,
                sink=counting,
                cache=store.cache(run_id) if store is not None and resume else None,
                budget=Budget(settings.max_calls, settings.max_tokens, settings.max_cost),
                pace=Pace(settings.in_flight, settings.requests_per_minute, settings.tokens_per_minute),
                price=price,
                share_equal=use_cache,
                cancelled=cancelled,
                report=report,
            )
        )
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
            tally=runner.tally,
            cost=runner.tally.cost,
            seconds=time.monotonic() - started,
            outcomes=counting.outcomes,
            release=_release(settings, opened.opened),
            warnings=warnings,
        )
        if store is not None:
            counting.flush()
            store.save_document(run_id, document, _status(stopped))
        return RunOutcome(document, stopped)


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The document of a run, and why it ended early, if it did; its `exit_code` is the command line's."""

    document: Document
    stopped: LimError | None

    @property
    def exit_code(self) -> int:
        return self.stopped.exit_code if self.stopped is not None else 0


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

    The diagnosis keeps the verdict that its own judge led to. Returns how many trials have each outcome now.

    Raises:
        InputError: no such run, or an alias that the judge cannot use.
        UnknownName: no such judge.
    """
    if store.run(run_id) is None:
        raise InputError(f"There is no run {run_id} in this store: list them with `runs list`.")
    entry, case = judges[judge], store.case(run_id)
    scores: list[Rescore] = []
    tally: Tally[str] = Tally()
    for row in store.trials(run_id, limit=store.count_trials(run_id)):
        # A call that failed or was cut has nothing to judge, whoever judges.
        verdict = entry.part(case, row.answer) if row.fault is None else Verdict(row.outcome, row.reason)
        tally[verdict.outcome.value] += 1
        scores.append(Rescore(row.seq, verdict.outcome, verdict.reason))
    store.add_scores(run_id, judge, judge_version(judge), scores)
    return dict(tally)


class _Opened:
    """The tested model, opened at its first use and shared by all stages."""

    def __init__(self, spec: ModelSpec, key: str | None) -> None:
        self._spec = spec
        self._key = key
        self.opened: Model | None = None

    def model(self) -> Model:
        if self.opened is None:
            self.opened = open_model(self._spec, self._key)
        return self.opened

    def close(self) -> None:
        if self.opened is not None:
            self.opened.close()


class _Counting:
    """Counts outcomes on the way to the store, or to nowhere where nothing is stored."""

    def __init__(self, sink: TrialSink | None) -> None:
        self._sink = sink
        self._tally: Tally[str] = Tally()

    def put(self, result: TrialResult) -> None:
        self._tally[result.verdict.outcome.value] += 1
        if self._sink is not None:
            self._sink.put(result)

    def flush(self) -> None:
        if self._sink is not None:
            self._sink.flush()

    @property
    def outcomes(self) -> Mapping[str, int]:
        return self._tally


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


def _status(stopped: LimError | None) -> str:
    if isinstance(stopped, RunCancelled):
        return "cancelled"
    if stopped is None or stopped.exit_code == 0:
        return "done"
    return "failed"


def _release(settings: RunSettings, model: Model | None) -> dict[str, Json]:
    """The release identity: what must be equal for two runs to be compared. Unknown parts are null."""
    return {
        "provider": settings.base_url or settings.spec.backend,
        "model": settings.tested_model,
        "model_revision": model.endpoint if model is not None else None,
        "tokenizer": model.counter.source if model is not None else None,
        "prompt_template": TEMPLATE_VERSION,
        "retriever": None,
        "reranker": None,
        "assembler": None,
        "corpus_revision": None,
        "inference": dict(model.default_params) if model is not None else None,
        "judge": f"{settings.judge}@{judge_version(settings.judge)}",
    }
