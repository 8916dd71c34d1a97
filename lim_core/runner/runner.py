"""Runs trials: requests in flight at once, retries, cache, budget, cancel.

Async lives here and in the backends, one loop on one thread; everything around it is synchronous.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import random
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field, fields, replace
from queue import Empty, SimpleQueue

from lim_core.errors import (
    BudgetSpent,
    CallFault,
    ConfigError,
    EndpointError,
    FaultKind,
    LimError,
    ParameterRefused,
    RunCancelled,
    where,
)
from lim_core.prices import Price
from lim_core.runner.lane import Lane, Pace
from lim_core.runner.schedule import prefix_first, warm_ups
from lim_core.types import (
    Budget,
    Call,
    CallCache,
    Case,
    Json,
    Judge,
    Message,
    Model,
    Outcome,
    Progress,
    Prompt,
    Reply,
    Request,
    Trial,
    TrialResult,
    TrialSink,
    Usage,
    Verdict,
)

log = logging.getLogger(__name__)

# A server that read less than this share of the lower end of our count has cut the prompt (design: truncation).
CUT_SHARE = 0.9
_POLL = 0.1


@dataclass(slots=True)
class CallTally:
    """What the run has sent so far. `made` counts HTTP requests, retries included; `failed` those that gave no answer."""

    made: int = 0
    failed: int = 0
    retried: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    completion_tokens: int = 0
    usage_unknown: int = 0
    # Sum over the calls of this run whose price and usage are known; `unpriced` counts the others.
    spent: float = 0.0
    unpriced: int = 0
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)

    @property
    def cost(self) -> float | None:
        """What the run's calls cost; None where any of them has no known price."""
        return None if self.unpriced or not self.made else self.spent

    def answered(self, usage: Usage, seconds: float, price: Price | None) -> None:
        """Add what one request that was answered took."""
        self.prompt_tokens += usage.prompt_tokens or 0
        self.cached_prompt_tokens += usage.cached_prompt_tokens or 0
        self.completion_tokens += usage.completion_tokens or 0
        self.usage_unknown += usage.prompt_tokens is None
        cost = price.cost(usage) if price is not None else None
        self.spent += cost or 0.0
        self.unpriced += cost is None
        self.seconds += seconds
        self.latencies.append(seconds)

    def plus(self, other: CallTally) -> CallTally:
        """Both together, as one tally of its own."""
        return CallTally(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


def call_key(endpoint: str, model: str, request: Request, repeat: int) -> str:
    """Content key of a call: endpoint, model, exact messages, parameters asked for, repeat number.

    A parameter that an endpoint refuses is dropped the same way each time, so what is asked for settles what is sent.
    """
    body = [endpoint, model, [[m.role, m.content] for m in request.messages], dict(request.params), repeat]
    text = json.dumps(body, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


class Runner:
    """Sends the trials of one run to one model and yields scored results as they finish.

    Use as a context manager: leaving it ends the loop thread. With `share_equal`, trials of equal content key are
    answered by one call.
    """

    def __init__(
        self,
        open_model: Callable[[], Model],
        cases: Mapping[str, Case],
        judge: Judge,
        *,
        sink: TrialSink | None = None,
        cache: CallCache | None = None,
        budget: Budget | None = None,
        pace: Pace | None = None,
        price: Price | None = None,
        share_equal: bool = True,
        cancelled: Callable[[], bool] = lambda: False,
        report: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        self.tally = CallTally()
        self.planned = 0
        self._open_model = open_model
        self._cases = cases
        self._judge = judge
        self._sink = sink
        self._cache = cache
        self._budget = budget or Budget()
        self._pace = pace or Pace()
        self._price = price
        self._share_equal = share_equal
        self._cancelled = cancelled
        self._report = report
        self._stopped: LimError | None = None
        # Whether the endpoint reports cached prompt tokens; None before its first reply.
        self._caches: bool | None = None
        self._seq = 0
        self._memo: dict[str, Call] = {}
        self._expected: dict[str, int] = {}
        self._depths: dict[str, float | None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lane: Lane | None = None
        self._started = time.monotonic()

    @property
    def stopped(self) -> LimError | None:
        """Why no further calls are sent, or None."""
        return self._stopped

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the loop thread. Idempotent."""
        if self._loop is not None and self._thread is not None:
            # Backends keep a loop's connections open by a generator of that loop: it closes them with the loop.
            ending = asyncio.run_coroutine_threadsafe(self._loop.shutdown_asyncgens(), self._loop)
            with contextlib.suppress(TimeoutError, FutureTimeout):
                ending.result(timeout=5)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=5)
            if not self._thread.is_alive():
                self._loop.close()
            self._loop = self._thread = None

    def run(self, trials: Sequence[Trial], stage: str) -> Iterator[TrialResult]:
        """Yield results as they finish, each already handed to the sink.

        Ends early, with `stopped` set, when the run is cancelled, a cap is reached, or the endpoint or its configuration
        fails; everything that was answered before is yielded first.
        """
        if self._stopped is not None or not trials:
            return
        try:
            model = self._open_model()
        except LimError as error:
            self._stopped = error
            return
        self.planned = max(self.planned, self.tally.made + self.tally.cached + len(trials))
        out: SimpleQueue[_Done | _End] = SimpleQueue()
        loop = self._running_loop()
        if self._lane is None:
            self._lane = Lane(self._pace, model.slots)
        future = asyncio.run_coroutine_threadsafe(self._drive(model, trials, out), loop)
        try:
            while True:
                try:
                    item = out.get(timeout=_POLL)
                except Empty:
                    self._tell(stage)
                    continue
                if isinstance(item, _End):
                    break
                yield self._finish(item, model)
                self._tell(stage)
        finally:
            future.cancel()
            self._tell(stage)

    # --- the consumer's side -----------------------------------------------------------------------

    def _finish(self, done: _Done, model: Model) -> TrialResult:
        """Score one answered trial and hand it to the sink."""
        trial, call = done.trial, done.call
        score = self._score(trial, call, model)
        verdict = score.verdict
        if score.fault is not None:
            call = replace(call, fault=score.fault.value, fault_text=verdict.reason)
        self._seq += 1
        depth = self._depth(trial, model)
        result = TrialResult(trial, call, verdict, done.cached, depth, self._seq)
        if self._sink is not None:
            try:
                self._sink.put(result)
            except LimError as error:
                # Without a store nothing further is kept, so nothing further is paid for.
                self._stopped = self._stopped or error
        return result

    def _score(self, trial: Trial, call: Call, model: Model) -> _Score:
        if call.fault is not None:
            return _Score(Verdict(Outcome.ERROR, call.fault_text or call.fault), None)
        read = call.usage.prompt_tokens
        if read is not None and read < CUT_SHARE * self._expected_tokens(trial, model):
            reason = f"the server read {read} prompt tokens of at least {self._expected_tokens(trial, model)} sent"
            return _Score(Verdict(Outcome.ERROR, reason), FaultKind.PROMPT_CUT)
        verdict = self._judge(self._cases[trial.case_id], call.text)
        if call.finish_reason == "length" and verdict.outcome in (Outcome.WRONG, Outcome.ABSTAINED):
            # What was cut might have held the answer; a correct answer said before the cut stands.
            return _Score(Verdict(Outcome.ERROR, "the answer was cut by the output cap"), FaultKind.OUTPUT_CUT)
        return _Score(verdict, None)

    def _expected_tokens(self, trial: Trial, model: Model) -> int:
        """Lower end of our own count for this arm's prompt; all blocks of an arm hold the same texts, so one count will do."""
        name = f"{trial.case_id}\n{trial.arm}"
        if name not in self._expected:
            self._expected[name] = model.counter.count_messages(trial.prompt.messages).low
        return self._expected[name]

    def _depth(self, trial: Trial, model: Model) -> float | None:
        if trial.slot is None or not trial.prompt.spans:
            return None
        name = f"{trial.case_id}\n{trial.arm}"
        if name not in self._depths:
            self._depths[name] = gold_depth(trial.prompt, trial.slot, model)
        return self._depths[name]

    def _tell(self, stage: str) -> None:
        tally = self.tally
        spent = time.monotonic() - self._started
        done = tally.made + tally.cached
        left = None
        if tally.made and self.planned > done:
            left = (self.planned - done) * spent / max(tally.made, 1)
        self._report(
            Progress(
                stage=stage,
                calls=done,
                planned=max(self.planned, done),
                prompt_tokens=tally.prompt_tokens,
                completion_tokens=tally.completion_tokens,
                seconds=spent,
                seconds_left=left,
                cost=tally.cost,
            )
        )

    # --- the loop's side -----------------------------------------------------------------------------

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="lim-runner", daemon=True)
            self._thread.start()
        return self._loop

    async def _drive(self, model: Model, trials: Sequence[Trial], out: SimpleQueue[_Done | _End]) -> None:
        """Send trials in their order, as many at once as the lane allows; stop all on cancel or a fatal error."""
        lane = self._lane
        assert lane is not None  # noqa: S101 - set by run() on this runner
        tasks: set[asyncio.Task[None]] = set()
        pending: dict[str, asyncio.Future[Call | None]] = {}
        keys: defaultdict[int, str] = defaultdict(str)
        idle = asyncio.Event()
        drop = False

        def stop(error: LimError) -> None:
            nonlocal drop
            self._stopped = self._stopped or error
            # At a cap, what is in flight is paid for: let it finish. Otherwise nothing more can be gained from it.
            drop = drop or not isinstance(error, BudgetSpent)
            lane.poke()
            idle.set()

        async def place() -> bool:
            """Take a place in flight; False once the run has stopped."""
            while self._stopped is None and not lane.try_acquire():
                await lane.changed()
            return self._stopped is None

        async def one(trial: Trial, request: Request, key: str, waiting: asyncio.Future[Call | None]) -> None:
            call: Call | None = None
            try:
                call = await self._call(model, request, key, trial.repeat, lane)
                self._memo[key] = call
                out.put(_Done(trial, call, cached=False))
            except (BudgetSpent, ConfigError, EndpointError) as error:
                stop(error)
            finally:
                waiting.set_result(call)
                lane.release()

        async def after(
            leader: asyncio.Future[Call | None],
            trial: Trial,
            request: Request,
            key: str,
            waiting: asyncio.Future[Call | None],
        ) -> None:
            await asyncio.shield(leader)
            if await place():
                await one(trial, request, key, waiting)
            else:
                waiting.set_result(None)

        async def follow(trial: Trial, waiting: asyncio.Future[Call | None]) -> None:
            call = await waiting
            if call is not None:
                self.tally.cached += 1
                out.put(_Done(trial, call, cached=True))

        async def watch() -> None:
            while True:
                if self._cancelled():
                    stop(RunCancelled("The run was cancelled; what was finished is kept."))
                await asyncio.sleep(_POLL)

        def start(work: Coroutine[None, None, None]) -> None:
            task = asyncio.create_task(work)
            tasks.add(task)
            task.add_done_callback(ended)

        def ended(task: asyncio.Task[None]) -> None:
            tasks.discard(task)
            fault = None if task.cancelled() else task.exception()
            if fault is not None:
                # A defect in lim: end the run instead of waiting for a result that will never come.
                log.error("The model client failed: %s", where(fault))
                stop(LimError(f"Internal error while calling the model: {type(fault).__name__}."))
            if not tasks:
                idle.set()

        watcher = asyncio.create_task(watch())
        warm: dict[int, int] = {}
        if lane.wide and self._caches is not False:
            trials = prefix_first(trials)
            warm = warm_ups(trials)
        try:
            for index, trial in enumerate(trials):
                request = Request(trial.prompt.messages, self._params(trial, model))
                key = call_key(model.endpoint, model.name, request, trial.repeat)
                known = (self._memo.get(key) if self._share_equal else None) or (
                    self._cache.find(key) if self._cache is not None else None
                )
                if known is not None:
                    self._memo[key] = known
                    self.tally.cached += 1
                    out.put(_Done(trial, known, cached=True))
                    continue
                if key in pending and self._share_equal:
                    start(follow(trial, pending[key]))
                    continue
                leader = pending.get(keys[warm[index]]) if index in warm else None
                if leader is None and not await place():
                    break
                keys[index] = key
                pending[key] = asyncio.get_running_loop().create_future()
                if leader is None:
                    start(one(trial, request, key, pending[key]))
                else:
                    start(after(leader, trial, request, key, pending[key]))
            while tasks and not drop:
                idle.clear()
                await idle.wait()
        finally:
            watcher.cancel()
            for task in list(tasks):
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=2)
            out.put(_End())

    def _params(self, trial: Trial, model: Model) -> Mapping[str, Json]:
        """The model's defaults under what the case says was sent in production, sampling parameters only."""
        case = self._cases[trial.case_id]
        params = dict(model.default_params)
        params |= {name: value for name, value in case.params.items() if name in _CASE_PARAMS and value is not None}
        return params

    async def _call(self, model: Model, request: Request, key: str, repeat: int, lane: Lane) -> Call:
        """One call with its retries.

        Raises:
            EndpointError: down after retries with no success in between, or told to wait too long.
            BudgetSpent: a cap was reached before it could be sent.
            ConfigError: as the backend says.
        """
        pace = self._pace
        started = time.time()
        answered_before = lane.answered
        last: CallFault | None = None
        for attempt in range(pace.tries):
            self._check_budget()
            await lane.pace(_rough_tokens(request.messages))
            self._check_budget()
            self.tally.made += 1
            self.tally.retried += attempt > 0
            try:
                reply = await model.complete(request)
            except ParameterRefused as refused:
                # The backend has adapted: send again at once. Each parameter is refused once, so the tries suffice.
                self.tally.failed += 1
                last = refused
                continue
            except (ConfigError, EndpointError):
                self.tally.failed += 1
                raise
            except CallFault as fault:
                self.tally.failed += 1
                if not fault.retry:
                    return _faulty(model, request, key, repeat, fault, attempt, started)
                wait = fault.wait if fault.wait is not None else _backoff(pace.first_backoff, attempt)
                if wait > pace.longest_wait:
                    raise EndpointError(
                        f"The endpoint asks to wait {wait:.0f} s: resume the run after that; what was finished is kept.",
                        resume_after=wait,
                    ) from fault
                if fault.kind is FaultKind.RATE_LIMIT:
                    lane.slow_down()
                last = fault
                if attempt + 1 < pace.tries:
                    await asyncio.sleep(wait * (1 + 0.25 * random.random()))  # noqa: S311 - jitter
                continue
            lane.speed_up()
            self._count(reply)
            return Call(
                uuid.uuid4().hex, key, model.endpoint, model.name, request.messages, reply.sent_params or request.params,
                repeat, reply.text, reply.finish_reason, reply.usage, reply.seconds, attempt, None, None, started,
            )  # fmt: skip
        assert last is not None  # noqa: S101 - every pass that did not return has set it
        if lane.answered == answered_before:
            raise EndpointError(
                f"The endpoint failed {pace.tries} times in a row ({last}): check it, then resume the run."
            ) from last
        return _faulty(model, request, key, repeat, last, pace.tries - 1, started)

    def _check_budget(self) -> None:
        budget, tally = self._budget, self.tally
        if budget.calls is not None and tally.made >= budget.calls:
            raise BudgetSpent(f"The cap of {budget.calls} calls is reached; raise --max-calls and resume to go on.")
        if budget.money is not None and tally.spent >= budget.money:
            raise BudgetSpent(f"The cap of {budget.money:g} on money is reached; raise it and resume to go on.")
        if budget.tokens is not None and tally.prompt_tokens + tally.completion_tokens >= budget.tokens:
            raise BudgetSpent(f"The cap of {budget.tokens} tokens is reached; raise it and resume to go on.")

    def _count(self, reply: Reply) -> None:
        self.tally.answered(reply.usage, reply.seconds, self._price)
        self._caches = reply.usage.cached_prompt_tokens is not None


def gold_depth(prompt: Prompt, slot: int, model: Model) -> float | None:
    """Prompt tokens before the chunk at `slot` over all prompt tokens, in [0, 1]; None for an empty prompt."""
    span = prompt.spans[slot]
    before = sum(model.counter.count(message.content).n for message in prompt.messages[: span.message])
    before += model.counter.count(prompt.messages[span.message].content[: span.start]).n
    total = model.counter.count_messages(prompt.messages).n
    return min(1.0, before / total) if total else None


def _faulty(
    model: Model, request: Request, key: str, repeat: int, fault: CallFault, retries: int, started: float
) -> Call:
    """The record of a call that gave nothing to score."""
    return Call(
        uuid.uuid4().hex, key, model.endpoint, model.name, request.messages, request.params, repeat, "", None, Usage(),
        0.0, retries, fault.kind.value, str(fault), started,
    )  # fmt: skip


def _backoff(first: float, attempt: int) -> float:
    return min(30.0, first * 2.0**attempt)


def _rough_tokens(messages: Sequence[Message]) -> int:
    """Four characters a token: good enough for a per-minute limit, which the server enforces itself."""
    return sum(len(message.content) for message in messages) // 4


# Parameters of the case that shape sampling; output caps and stops stay those of the tested model.
_CASE_PARAMS = frozenset({"temperature", "top_p", "seed", "presence_penalty", "frequency_penalty", "reasoning_effort"})


@dataclass(frozen=True, slots=True)
class _Done:
    trial: Trial
    call: Call
    cached: bool


@dataclass(frozen=True, slots=True)
class _End:
    """No more results will come."""


@dataclass(frozen=True, slots=True)
class _Score:
    verdict: Verdict
    # A fault found in an answer that came back whole, as far as the server says.
    fault: FaultKind | None
