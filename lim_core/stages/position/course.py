"""The course of the position test: which trials are run, in which order, and when it stops."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from lim_core import arms
from lim_core.arms import Framing, Slot, Split
from lim_core.errors import FaultKind
from lim_core.evidence import gold_of
from lim_core.prompts import DEFAULT_LAYOUT
from lim_core.scores import arm_score, unscored_shares
from lim_core.stages.position.as_sent import order_as_sent
from lim_core.stats import fisher_one_sided
from lim_core.stats.stop_rule import SlotCount, SlotTest, find_cliff
from lim_core.types import ArmScore, Bench, Case, Chunk, Finding, Outcome, Trial, TrialResult

BRACKET_CALLS = 4
# Distinct blocks in which every slot must agree before the test may end early.
EARLY_BLOCKS = 6
# Calls kept back for the remedies, the as-sent prompt and the points between the tested slots.
_RESERVE = 48
# Largest share of unscored trials, and largest difference of it between slots, that leaves a verdict.
_UNSCORED = 0.2


@dataclass(frozen=True, slots=True)
class End:
    """How the test ended, before the prompt as sent and the chunks with another value have had their say."""

    # effect, flat, all-right, all-wrong, open, used-up, unscored, few, template, gold-absent, cannot-answer, or a FaultKind
    kind: str
    # Without a full stop, for it goes on inside a sentence.
    reason: str
    more_blocks: int | None = None


@dataclass(slots=True)
class Course:
    """One case's test: brackets, blocks until the stop rule ends them, and the further calls that a verdict asks for."""

    case: Case
    bench: Bench
    earlier: Mapping[str, Finding]
    results: list[TrialResult] = field(default_factory=list)
    brackets: list[TrialResult] = field(default_factory=list)
    curve: list[TrialResult] = field(default_factory=list)
    blocks: int = 0

    # Gold and distractors in the order of the prompt as sent, where that is known: block 0 is the user's own order.
    order: list[str] | None = field(init=False)
    parts: Split = field(init=False)
    own_known: bool = field(init=False)
    framing: Framing = field(init=False)
    slots: tuple[Slot, ...] = field(init=False)
    test: SlotTest = field(init=False)

    def __post_init__(self) -> None:
        self.order = order = order_as_sent(self.earlier.get("assembly"))
        self.parts = arms.split(
            arms.in_order(self.case.chunks, order) if order else self.case.chunks, gold_of(self.case).ids
        )
        self.own_known = self._as_one_arm(order)
        self.framing = arms.frame_of(self.case)
        names = ("first", "middle", "last", "own") if self.own_known else ("first", "middle", "last")
        self.slots = arms.named_slots(self.parts, names)
        self.test = SlotTest(alpha=self.bench.alpha, delta=self.bench.delta)

    def _as_one_arm(self, order: Sequence[str] | None) -> bool:
        """Whether the gold's own slot is known: every chunk tested is in the prompt as sent, the gold chunks side by side.

        With chunks more than were sent, or gold chunks spread, no arm stands for where the gold was; and where the prompt as
        sent is not known, nothing says that the retrieved order is the order that was sent.
        """
        if order is None or len(order) < len(self.case.chunks):
            return False
        gold = {chunk.id for chunk in self.parts.gold}
        places = [index for index, name in enumerate(order) if name in gold]
        return places[-1] - places[0] + 1 == len(places)

    def run(self) -> End:
        """Send the trials and say how it ended; nothing is judged but whether to go on."""
        blocked = self._window_check()
        if blocked is not None:
            return blocked
        self._send_oracle(range(BRACKET_CALLS))
        self._send(arms.closed(self.case, range(BRACKET_CALLS)), self.brackets)
        oracle = self._top_up()
        failed = self._fault_end([result for result in self.brackets if result.trial.arm == "oracle"])
        if failed is not None:
            return failed
        if self.bench.runner.stopped is not None:
            return End("open", self.stop_reason())
        if oracle.n < BRACKET_CALLS:
            sent = self._count("oracle")
            faults = [
                r.verdict.reason for r in self.brackets if r.trial.arm == "oracle" and not r.verdict.outcome.scored
            ]
            why = Tally(faults).most_common(1)[0][0].rstrip(".")
            return End(
                "unscored", f"{sent - oracle.n} of {sent} calls with the gold chunk alone could not be scored ({why})"
            )
        if not mostly_right(oracle):
            return self._oracle_end(oracle)
        if arms.count_orders(self.parts.distractors) < EARLY_BLOCKS or len(self.slots) < 3:
            n = len(self.case.chunks)
            return End("few", f"too few chunks ({n}): fewer than {EARLY_BLOCKS} distinct orders exist")
        return self._blocks()

    def _oracle_end(self, oracle: ArmScore) -> End:
        """Where the gold alone fails: in the user's template only, for want of gold that was not retrieved, or anyhow."""
        if self.framing.frame is not DEFAULT_LAYOUT:
            alone = arms.oracle(self.case, self.parts, range(BRACKET_CALLS))
            self._send([replace(trial, arm="oracle:plain") for trial in alone], self.brackets)
            plain = self.bracket("oracle:plain")
            if plain.n >= BRACKET_CALLS and mostly_right(plain):
                if fisher_one_sided(plain.correct, plain.n, oracle.correct, oracle.n) <= self.bench.alpha:
                    return End("template", "the gold chunk alone fails in the template as sent and not in a plain one")
                reason = (
                    f"the gold chunk alone is right in {oracle.correct} of {oracle.n} calls in the template as sent and in "
                    f"{plain.correct} of {plain.n} in a plain one, too few calls to tell template from model"
                )
                return End("open", reason)
        absent = sorted(set(gold_of(self.case).ids) - {chunk.id for chunk in self.case.chunks})
        if absent:
            reason = (
                f"with the retrieved gold alone it is right in {oracle.correct} of {oracle.n} calls, but gold "
                f"{', '.join(absent)} was not retrieved and may be needed"
            )
            return End("gold-absent", reason)
        return End("cannot-answer", "oracle wrong")

    def _top_up(self) -> ArmScore:
        """More calls for an oracle that is right now and then, and for what could not be scored; the oracle's score."""
        closed = self.bracket("closed-book")
        if 0 < closed.n < BRACKET_CALLS:
            self._send(arms.closed(self.case, range(BRACKET_CALLS, 2 * BRACKET_CALLS - closed.n)), self.brackets)
        oracle = self.bracket("oracle")
        if 0 < oracle.n < BRACKET_CALLS:
            self._send_oracle(range(BRACKET_CALLS, 2 * BRACKET_CALLS - oracle.n))
            oracle = self.bracket("oracle")
        if oracle.correct and not mostly_right(oracle):
            sent = self._count("oracle")
            self._send_oracle(range(sent, sent + BRACKET_CALLS))
            oracle = self.bracket("oracle")
        return oracle

    def _send_oracle(self, repeats: range) -> None:
        self._send(arms.oracle(self.case, self.parts, repeats, self.framing.frame), self.brackets)

    def _count(self, arm: str) -> int:
        return sum(result.trial.arm == arm for result in self.brackets)

    def _blocks(self) -> End:
        """Run blocks until the stop rule, an early end, or the budget says stop."""
        most = self._most_blocks()
        for block, order in enumerate(islice(self._orders(), most)):
            self._send(
                arms.position_block(self.case, self.parts, order, block, self.slots, self.framing.frame), self.results
            )
            if self.bench.runner.stopped is not None:
                return self._effect_or_open(self.stop_reason())
            self.blocks = block + 1
            self._add_to_test(block)
            end = self._end_after(self.blocks)
            if end is not None:
                return end
        unscored = self._unscored_end()
        if unscored is not None:
            return unscored
        if self.blocks < most:
            return self._effect_or_open(
                f"all {self.blocks} distinct orders of these chunks did not settle it", used_up=True
            )
        return self._effect_or_open(f"{self.blocks} blocks did not settle it")

    def _effect_or_open(self, reason: str, used_up: bool = False) -> End:
        """An effect that was certain before the end stands, also where its shape could not be named yet."""
        if self.test.effect and self._unscored_end() is None:
            return End("effect", f"e = {self.test.e_value:.3g} after {self.blocks} blocks")
        return End("used-up", reason) if used_up else End("open", reason, self.test.more_blocks)

    def _add_to_test(self, block: int) -> None:
        mine = {result.trial.arm: result for result in self.results if result.trial.block == block}

        def right(arm: str) -> bool | None:
            result = mine.get(arm)
            if result is None or not result.verdict.outcome.scored:
                return None
            return result.verdict.outcome is Outcome.CORRECT

        self.test.add(right("position:first"), right("position:middle"), right("position:last"))

    def _end_after(self, blocks: int) -> End | None:
        fault = self._fault_end(self.results)
        if fault is not None:
            return fault
        if self._unscored_end() is not None:
            return None
        scores = [self.score(slot) for slot in self.slots]
        if all(score.n >= EARLY_BLOCKS for score in scores):
            if all(score.correct == score.n for score in scores):
                return End("all-right", f"right at every slot in {blocks} distinct orders")
            if not any(score.correct for score in scores) and self._volume_shown(scores):
                return End("all-wrong", f"wrong at every slot in {blocks} distinct orders, right with the gold alone")
        # `done` may wait for some blocks after the effect, until the shape can be named.
        if self.test.effect and self.test.done:
            return End("effect", f"e = {self.test.e_value:.3g} after {blocks} blocks")
        if self.test.flat:
            return End("flat", f"both edges within {self.bench.delta:g} of the middle after {blocks} blocks")
        return None

    def _volume_shown(self, scores: Sequence[ArmScore]) -> bool:
        """Oracle against all slots pooled, one-sided Fisher; the oracle's identical replies count once."""
        oracle = self.bracket("oracle")
        if oracle.n < BRACKET_CALLS or not mostly_right(oracle):
            return False
        right = round(oracle.distinct * oracle.correct / oracle.n)
        pooled = sum(score.distinct for score in scores)
        return fisher_one_sided(right, oracle.distinct, 0, pooled) <= self.bench.alpha

    def _window_check(self) -> End | None:
        """Where the prompt may not fit the tested model, send it once before paying for brackets."""
        model = self.bench.open_model()
        window = model.context_window
        if window is None:
            return None
        prompt = self.framing.frame.lay_out(self.case.question, self.case.chunks)
        if model.counter.count_messages(prompt.messages).high <= window:
            return None
        block = arms.position_block(
            self.case, self.parts, self.parts.distractors, 0, self.slots[-1:], self.framing.frame
        )
        self._send(block, self.results)
        end = self._fault_end(self.results)
        if end is not None:
            return end
        # It fits: block 0 counts this trial when its turn comes, and not twice.
        self.results.clear()
        return None

    def _fault_end(self, results: Sequence[TrialResult]) -> End | None:
        """A fault that most trials share and that says more than their answers."""
        if not results:
            return None
        faults = Tally(result.call.fault for result in results if result.call.fault is not None)
        for kind in (FaultKind.CONTEXT_WINDOW, FaultKind.PROMPT_CUT, FaultKind.OUTPUT_BUDGET):
            if 2 * faults[kind.value] > len(results):
                words = next(r.call.fault_text or kind.value for r in results if r.call.fault == kind.value)
                return End(kind.value, words.rstrip("."))
        return None

    def _unscored_end(self) -> End | None:
        shares = unscored_shares(self.results)
        if not shares or (
            max(shares.values()) <= _UNSCORED and max(shares.values()) - min(shares.values()) <= _UNSCORED
        ):
            return None
        worst = max(shares, key=lambda arm: shares[arm])
        return End("unscored", f"{shares[worst]:.0%} of the trials at {worst} could not be scored")

    # --- what a verdict may ask for ------------------------------------------------------------------

    def send_as_sent(self) -> ArmScore:
        """The prompt as sent, a few times."""
        self._send(arms.sent(self.case, range(BRACKET_CALLS)), self.brackets)
        return self.bracket("as-sent")

    def send_plain(self) -> ArmScore:
        """The same chunks in the same orders, the gold in its own slot, in a plain template."""
        own = (Slot("plain:own", self.parts.own_index),)
        for block, order in enumerate(islice(self._orders(), self.blocks)):
            self._send(arms.position_block(self.case, self.parts, order, block, own), self.brackets)
        return self.bracket("plain:own")

    def fill_curve(self) -> None:
        """Own slot and the quarter slots for a few of the same blocks, so that the curve has its points."""
        taken = {slot.index for slot in self.slots}
        extra = tuple(slot for slot in arms.named_slots(self.parts, ("own", "q1", "q3")) if slot.index not in taken)
        if not extra:
            return
        for block, order in enumerate(islice(self._orders(), min(self.blocks, 8))):
            self._send(arms.position_block(self.case, self.parts, order, block, extra, self.framing.frame), self.curve)
        self.slots = tuple(sorted((*self.slots, *extra), key=lambda slot: slot.index))

    def own_score(self) -> ArmScore | None:
        """Score of the gold's own slot; None where it was not tested."""
        slot = next((slot for slot in self.slots if slot.index == self.parts.own_index), None)
        return self.score(slot) if slot is not None else None

    def shape(self) -> str:
        """The test's shape, or a cliff where the wider curve shows one."""
        scores = [self.score(slot) for slot in self.slots]
        curve = [
            SlotCount(score.index or 0, score.distinct, score.correct) for score in scores if score.distinct == score.n
        ]
        cliff = find_cliff(curve, effect=self.test.effect, alpha=self.bench.alpha)
        return self.test.shape if cliff is None else "cliff"

    def stop_reason(self) -> str:
        """Why no further calls are sent, to go on inside a sentence; empty while they are."""
        return str(self.bench.runner.stopped or "").rstrip(".")

    def _orders(self) -> Iterator[tuple[Chunk, ...]]:
        return arms.distractor_orders(self.parts.distractors, self.bench.seed)

    def _most_blocks(self) -> int:
        by_calls = self.bench.max_blocks
        if self.bench.max_calls is not None:
            spare = self.bench.max_calls - 2 * BRACKET_CALLS - _RESERVE
            by_calls = max(EARLY_BLOCKS, spare // len(self.slots))
        return min(self.bench.max_blocks, by_calls)

    def _send(self, trials: Sequence[Trial], into: list[TrialResult]) -> None:
        into.extend(self.bench.runner.run(trials, "position"))

    def bracket(self, arm: str) -> ArmScore:
        """Score of an arm that stands beside the slots."""
        return arm_score(arm, self.brackets)

    def score(self, slot: Slot) -> ArmScore:
        """Score of a slot, its points of the curve included."""
        return arm_score(slot.arm, (*self.results, *self.curve), slot.index)

    def trials(self) -> list[TrialResult]:
        """Every trial of the test."""
        return [*self.brackets, *self.results, *self.curve]


def mostly_right(score: ArmScore) -> bool:
    """More than half of its calls are right."""
    return 2 * score.correct > score.n
