"""The runner over real HTTP: order, sharing, faults, budgets, cancel, resume."""

import asyncio
import time
from dataclasses import replace

import pytest

from lim_core import arms
from lim_core.backends import ModelSpec, open_model
from lim_core.errors import BudgetSpent, ConfigError, EndpointError, RunCancelled
from lim_core.judges import judges
from lim_core.prices import Price
from lim_core.prompts import lay_out
from lim_core.runner import Runner, call_key
from lim_core.runner.lane import Lane, Pace
from lim_core.runner.schedule import WARM_CHARACTERS, prefix_first, warm_ups
from lim_core.types import Budget, Call, Chunk, Outcome, Request, Trial, Usage
from tests.questions import office_case

CONTAINS = judges["contains"].part


class Bench:
    """A scripted model and a runner on it, closed together."""

    def __init__(
        self, *, case=None, budget=None, pace=None, cache=None, cancelled=lambda: False, price=None, **options
    ):
        self.case = case or office_case()
        options.setdefault("needles", list(self.case.answers))
        self.model = open_model(ModelSpec("scripted", options=options))
        self.runner = Runner(
            lambda: self.model,
            {self.case.id: self.case},
            CONTAINS,
            budget=budget,
            pace=pace or Pace(first_backoff=0.01),
            cache=cache,
            cancelled=cancelled,
            price=price,
        )
        self.parts = arms.split(self.case.chunks, self.case.gold_ids)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.runner.close()
        self.model.close()

    def oracle(self, n):
        return arms.oracle(self.case, self.parts, range(n))

    def run(self, trials):
        return list(self.runner.run(trials, "test"))

    def block(self, block=0, names=("first", "middle", "last")):
        order = list(zip(range(block + 1), arms.distractor_orders(self.parts.distractors, 0), strict=False))[block][1]
        return arms.position_block(self.case, self.parts, order, block, arms.named_slots(self.parts, names))


def test_trials_come_back_scored_and_counted():
    with Bench(profile="u", edge=1.0, middle=0.0) as bench:
        results = bench.run(bench.block())
        assert {r.trial.arm: r.verdict.outcome for r in results} == {
            "position:first": Outcome.CORRECT,
            "position:middle": Outcome.WRONG,
            "position:last": Outcome.CORRECT,
        }
        assert bench.runner.tally.made == 3
        depths = {r.trial.arm: r.depth for r in results}
        assert 0 < depths["position:first"] < depths["position:middle"] < depths["position:last"] < 1


def test_repeats_are_really_sent_again_and_equal_trials_are_not():
    with Bench() as bench:
        bench.run(bench.oracle(4))
        assert bench.model.server.traffic.chats == 4
        again = bench.run(bench.oracle(4))
        assert bench.model.server.traffic.chats == 4
        assert all(result.cached for result in again)
        twice = bench.run([*bench.block(), *bench.block()])
        assert bench.model.server.traffic.chats == 7
        assert sum(result.cached for result in twice) == 3


def test_one_slot_reads_each_token_of_the_blocks_trie_once():
    # A one-slot cache keeps only the last prompt; the order of sending makes that enough.
    for block in (0, 1):
        with Bench(slots=1) as bench:
            trials = bench.block(block, ("all",))
            results = bench.run(trials)
            sent = sum(r.call.usage.prompt_tokens for r in results)
            traffic = bench.model.server.traffic
            assert traffic.read_tokens + traffic.cached_tokens == sent
            assert traffic.read_tokens < 0.65 * sent


@pytest.mark.parametrize("fault", ["rate-limit", "server", "bad-gateway", "overloaded", "dropped", "cut", "not-json"])
def test_passing_faults_are_retried_and_the_answer_counts(fault):
    with Bench(faults=[fault], retry_after=0.05) as bench:
        results = bench.run(bench.oracle(1))
        assert [r.verdict.outcome for r in results] == [Outcome.CORRECT]
        assert bench.runner.tally.made == 2
        assert bench.runner.tally.failed == bench.runner.tally.retried == 1
        assert bench.runner.stopped is None


def test_an_endpoint_that_only_fails_stops_the_run_after_its_tries():
    with Bench(faults=["server"] * 50, pace=Pace(in_flight=1, tries=3, first_backoff=0.01)) as bench:
        assert bench.run(bench.oracle(4)) == []
        assert isinstance(bench.runner.stopped, EndpointError)
        assert bench.runner.tally.made == 3


@pytest.mark.parametrize("fault", ["too-large", "tool-call", "content-filter", "filter-400", "refusal", "reasoning"])
def test_faults_that_no_retry_helps_are_shown_and_not_scored(fault):
    with Bench(faults=[fault], slots=1) as bench:
        results = bench.run(bench.oracle(2))
        assert [r.verdict.outcome.scored for r in results] == [False, True]
        assert results[0].call.fault is not None
        assert bench.runner.tally.made == 2
        assert bench.runner.stopped is None


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ("long-wait", EndpointError, "24 hours"),
        ("quota", EndpointError, "quota"),
        ("unauthorised", ConfigError, "key"),
        ("forbidden", ConfigError, ""),
        ("model-missing", ConfigError, "model"),
        ("no-path", ConfigError, "/v1"),
    ],
)
def test_what_no_call_can_pass_stops_the_run_at_its_first_call(fault, error, words):
    with Bench(faults=[fault] * 9, slots=1) as bench:
        assert bench.run(bench.oracle(4)) == []
        assert isinstance(bench.runner.stopped, error)
        assert words in str(bench.runner.stopped)
        assert bench.runner.tally.made == 1
        assert bench.runner.tally.failed == 1


@pytest.mark.parametrize("parameter", ["temperature", "max_tokens"])
def test_a_refused_parameter_is_dropped_or_renamed_once(parameter):
    with Bench(faults=[f"refuse-{parameter}"], slots=1) as bench:
        results = bench.run(bench.oracle(3))
        assert all(r.verdict.outcome is Outcome.CORRECT for r in results)
        assert bench.runner.tally.made == 4
        assert all(parameter not in r.call.params for r in results)


def test_a_wrong_key_stops_the_run_at_its_first_call():
    with Bench(slots=1) as bench:
        wrong = open_model(ModelSpec("openai-compat", name="scripted", base_url=bench.model.server.base_url), key="x")
        bench.model.server.script = replace(bench.model.server.script, key="right")
        with Runner(lambda: wrong, {bench.case.id: bench.case}, CONTAINS, pace=Pace(in_flight=1)) as runner:
            assert list(runner.run(bench.oracle(4), "test")) == []
            assert isinstance(runner.stopped, ConfigError)
            assert runner.tally.made == 1
        wrong.close()


def test_the_cap_on_calls_holds_with_many_in_flight():
    with Bench(budget=Budget(calls=10), latency=0.02) as bench:
        results = bench.run(bench.oracle(40))
        assert len(results) == bench.runner.tally.made == bench.model.server.traffic.chats == 10
        assert isinstance(bench.runner.stopped, BudgetSpent)
        assert bench.run(bench.oracle(50)) == []


def test_the_cap_on_tokens_and_on_money_stop_cleanly():
    with Bench(budget=Budget(calls=None, tokens=200), slots=1) as bench:
        bench.run(bench.oracle(40))
        assert isinstance(bench.runner.stopped, BudgetSpent)
        assert 200 <= bench.runner.tally.prompt_tokens + bench.runner.tally.completion_tokens < 300
    with Bench(budget=Budget(calls=None, money=1.0), price=Price(10_000, 10_000), slots=1) as bench:
        bench.run(bench.oracle(40))
        assert 1.0 <= bench.runner.tally.cost < 3.0
        assert "money" in str(bench.runner.stopped)


def test_an_unknown_price_is_unknown_and_not_zero():
    with Bench() as bench:
        bench.run(bench.oracle(2))
        assert bench.runner.tally.cost is None
    assert Price(2.0, 8.0, 0.5).cost(Usage(1000, 100, 400)) == pytest.approx((600 * 2 + 400 * 0.5 + 100 * 8) / 1e6)
    assert Price(2.0, 8.0).cost(Usage(1000, 100, 400)) == pytest.approx((1000 * 2 + 100 * 8) / 1e6)
    assert Price(2.0, 8.0).cost(Usage(None, 100)) is None


def test_cancel_ends_soon_and_keeps_what_was_finished():
    asked = []
    with Bench(latency=0.3, slots=1, cancelled=lambda: bool(asked)) as bench:
        done = []
        started = time.monotonic()
        for result in bench.runner.run(bench.oracle(50), "test"):
            done.append(result)
            asked.append(1)
        assert 1 <= len(done) <= 2
        assert isinstance(bench.runner.stopped, RunCancelled)
        assert time.monotonic() - started < 10


def test_resuming_serves_finished_calls_and_sends_the_rest():
    class Kept:
        def __init__(self, calls: list[Call]) -> None:
            self.calls = {call.key: call for call in calls}

        def find(self, key: str) -> Call | None:
            return self.calls.get(key)

    with Bench() as bench:
        first = bench.run(bench.oracle(3))
    with Bench(cache=Kept([result.call for result in first])) as bench:
        results = bench.run(bench.oracle(5))
        assert len(results) == 5
        assert sum(result.cached for result in results) == 3
        assert bench.model.server.traffic.chats == 2
        assert len(bench.runner.tally.latencies) == 2


def test_an_answer_that_was_cut_is_not_scored_unless_it_is_right():
    case = office_case()
    with Bench() as bench:
        trial = bench.oracle(1)[0]
        result = bench.run([trial])[0]
        cut = replace(result.call, text="It is someone el", finish_reason="length")
        score = bench.runner._score(trial, cut, bench.model)
        assert score.verdict.outcome is Outcome.ERROR
        assert score.fault == "output-cut"
        right = replace(result.call, text=f"It is {case.answers[0]} of", finish_reason="length")
        assert bench.runner._score(trial, right, bench.model).verdict.outcome is Outcome.CORRECT


def test_the_key_covers_endpoint_model_messages_parameters_and_repeat():
    request = Request(lay_out("Q", [Chunk("a", "text")]).messages, {"temperature": 0})
    key = call_key("e", "m", request, 0)
    other = Request(lay_out("Q", [Chunk("a", "text ")]).messages, {"temperature": 0})
    variants = [
        call_key("f", "m", request, 0),
        call_key("e", "n", request, 0),
        call_key("e", "m", request, 1),
        call_key("e", "m", other, 0),
        call_key("e", "m", Request(request.messages, {"temperature": 1}), 0),
    ]
    assert len({key, *variants}) == 6
    assert call_key("e", "m", Request(request.messages, {"temperature": 0}), 0) == key


def long_block(n: int = 6) -> list[Trial]:
    chunks = [Chunk(f"c{i}", f"{i} " * 700) for i in range(n)]
    prompts = [lay_out("Q", [*chunks[:i], Chunk("gold", "gold " * 300), *chunks[i:]]) for i in range(n + 1)]
    return [Trial("case", f"position:{i}", 0, 0, prompt, i) for i, prompt in enumerate(prompts)]


def test_a_warm_up_comes_first_and_only_where_the_prefix_is_long():
    ordered = prefix_first(long_block())
    # The gold last shares most with the others: after it, each sibling's prefix is in the cache.
    assert ordered[0].arm in {"position:5", "position:6"}
    waits = warm_ups(ordered)
    assert set(waits.values()) == {0}
    followers = {ordered[index].arm for index in waits}
    assert "position:0" not in followers
    short = [Trial("case", "a", 0, i, lay_out("Q", [Chunk("a", "x" * (WARM_CHARACTERS // 4))])) for i in range(5)]
    assert warm_ups(short) == {}


def test_the_lane_halves_on_429_and_grows_back():
    async def course() -> list[int]:
        lane = Lane(Pace(in_flight=16), slots=64)
        room = [sum(lane.try_acquire() for _ in range(40))]
        for _ in range(room[0]):
            lane.release()
        lane.slow_down()
        lane.slow_down()  # refused together: one halving
        room.append(sum(lane.try_acquire() for _ in range(40)))
        for _ in range(room[1]):
            lane.release()
        for _ in range(200):
            lane.speed_up()
        room.append(sum(lane.try_acquire() for _ in range(40)))
        return room

    assert asyncio.run(course()) == [16, 8, 16]


def test_requests_per_minute_are_kept(monkeypatch):
    async def course() -> list[float]:
        lane = Lane(Pace(requests_per_minute=2), slots=4)
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            lane._sent.clear()

        monkeypatch.setattr("lim_core.runner.lane.asyncio.sleep", sleep)
        for _ in range(3):
            await lane.pace(10)
        return waits

    waits = asyncio.run(course())
    assert len(waits) == 1
    assert 59 < waits[0] <= 60.1


class Broken:
    """A model client with a defect: its error quotes the prompt."""

    def __init__(self, model):
        self._model = model

    def __getattr__(self, name):
        return getattr(self._model, name)

    async def complete(self, request):
        raise KeyError(request.messages[0].content)


def test_a_defect_of_the_model_client_ends_the_run_and_is_logged_by_its_place_only(caplog):
    with Bench() as bench:
        bench.model = Broken(bench.model)
        assert bench.run(bench.oracle(1)) == []
        assert str(bench.runner.stopped) == "Internal error while calling the model: KeyError."
        (record,) = [each for each in caplog.records if each.name == "lim_core.runner.runner"]
        assert "KeyError at test_runner.py" in record.getMessage()
        assert "Lindholm" not in caplog.text
        assert record.exc_info is None
