"""What every kind of run is made with: the tested model, the runner on it, the store's sink, the release identity."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lim_core.backends import ModelSpec, open_model
from lim_core.document import Document
from lim_core.errors import ConfigError, LimError, RunCancelled
from lim_core.judges import judge_version, judges
from lim_core.prompts import TEMPLATE_VERSION
from lim_core.runner import Runner
from lim_core.runner.lane import Pace
from lim_core.runs.settings import RunSettings, price_of
from lim_core.types import Budget, Case, Json, Model, Progress, TrialResult, TrialSink

if TYPE_CHECKING:
    from lim_core.store import Store


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The document of a run, and why it ended early, if it did; its `exit_code` is the command line's."""

    document: Document
    stopped: LimError | None

    @property
    def exit_code(self) -> int:
        return self.stopped.exit_code if self.stopped is not None else 0


@dataclass(frozen=True, slots=True)
class Engine:
    """What a run sends its calls with: the runner, the tested model once it is opened, the outcomes so far."""

    runner: Runner
    opened: Opened
    counting: Counting
    started: float


@contextmanager
def engine(
    settings: RunSettings,
    cases: Sequence[Case],
    *,
    store: Store | None,
    run_id: str,
    key: str | None,
    report: Callable[[Progress], None],
    cancelled: Callable[[], bool],
    resume: bool,
    use_cache: bool,
) -> Iterator[Engine]:
    """A runner on the settings' model that stores each trial in the run, which must be started; all closed at the end."""
    started = time.monotonic()
    opened = Opened(settings.spec, key)
    judge = judges[settings.judge].part
    with ExitStack() as stack:
        stack.callback(opened.close)
        sink = None
        if store is not None:
            sink = store.sink(run_id, settings.judge, judge_version(settings.judge))
        counting = Counting(sink)
        runner = stack.enter_context(
            Runner(
                opened.model,
                {case.id: case for case in cases},
                judge,
                sink=counting,
                cache=store.cache(run_id) if store is not None and resume else None,
                budget=Budget(settings.max_calls, settings.max_tokens, settings.max_cost),
                pace=Pace(settings.in_flight, settings.requests_per_minute, settings.tokens_per_minute),
                price=price_of(settings),
                share_equal=use_cache,
                cancelled=cancelled,
                report=report,
            )
        )
        yield Engine(runner, opened, counting, started)


def check_price(settings: RunSettings) -> None:
    """Refuse a cap on money for a model whose price is unknown.

    Raises:
        ConfigError: the price is not in the table.
    """
    if settings.max_cost is not None and price_of(settings) is None:
        raise ConfigError(
            f"The price of {settings.tested_model} is unknown: add it to the price table, or drop max-cost."
        )


class Opened:
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


class Counting:
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


def status_of(stopped: LimError | None) -> str:
    if isinstance(stopped, RunCancelled):
        return "cancelled"
    if stopped is None or stopped.exit_code == 0:
        return "done"
    return "failed"


def release_of(settings: RunSettings, model: Model | None) -> dict[str, Json]:
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
