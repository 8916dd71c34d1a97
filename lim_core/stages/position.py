"""Stage 4: with oracle and closed-book as brackets, does moving the gold chunk change the answer?"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice

from lim_core import arms
from lim_core.arms import Framing, Slot, Split
from lim_core.errors import BudgetSpent, FaultKind
from lim_core.evidence import gold_of
from lim_core.prompts import DEFAULT_LAYOUT
from lim_core.scores import arm_score, outcome_counts, score_json, unscored_shares
from lim_core.stages.registry import stages
from lim_core.stages.rival import rivals_of, try_removal
from lim_core.stats import fisher_one_sided, sign_test
from lim_core.stats.stop_rule import SlotCount, SlotTest, find_cliff
from lim_core.types import ArmScore, Bench, Case, Cause, Chunk, Finding, Json, Outcome, Status, Trial, TrialResult

BRACKET_CALLS = 4
# Distinct blocks in which every slot must agree before the test may end early.
EARLY_BLOCKS = 6
# Calls kept back for the remedies, the as-sent prompt and the points between the tested slots.
_RESERVE = 48
# Largest share of unscored trials, and largest difference of it between slots, that leaves a verdict.
_UNSCORED = 0.2
_TEMPLATE_ADVICE = "Compare the template as sent with a plain one, and change one thing at a time."
# Causes that say no answer was lost here: no rival is looked for.
_NOT_LOST = frozenset({Cause.NOT_REPRODUCED, Cause.NO_FAULT_FOUND, Cause.PROMPT_SENSITIVE})
# The slots that the stop rule compares.
_TESTED = ("position:first", "position:middle", "position:last")


@stages.register("position", title="Position", order=4)
def position(case: Case, bench: Bench, earlier: Mapping[str, Finding]) -> Finding:
    """Moves the gold chunk through the slots in distinct distractor orders, with oracle and closed-book beside it."""
    obstacle = _obstacle(case, bench)
    if obstacle is not None:
        return obstacle
    tested = _chunks_sent(case, earlier.get("assembly"))
    finding = _Test(tested, bench, earlier).run()
    kept = {chunk.id for chunk in tested.chunks}
    left_out = [chunk.id for chunk in case.chunks if chunk.id not in kept]
    if not left_out:
        return finding
    note = f" Tested are the {len(kept)} chunks that were sent; {len(left_out)} retrieved ones were left out of the prompt."
    return replace(finding, summary=finding.summary + note, evidence={**finding.evidence, "left_out": left_out})


def _obstacle(case: Case, bench: Bench) -> Finding | None:
    """Why the test cannot, or need not, be run."""
    if not case.answers:
        return _skipped("The right answer is not given, so no reply can be scored.", "answers")
    if not case.chunks:
        return _skipped("There are no chunks to move.", "chunks")
    if case.answerable is False:
        return _skipped("The case is marked as not answerable, so no chunk is expected to give the answer.")
    gold = gold_of(case)
    if gold.ambiguous:
        names = ", ".join(gold.ambiguous)
        return _skipped(
            f"Several chunks hold the answer ({names}) and none is marked gold: mark the gold chunk.", "gold_ids"
        )
    present = {chunk.id for chunk in case.chunks}
    if not present.intersection(gold.ids):
        return _skipped("The gold chunk is not among the retrieved chunks, so there is nothing to move.", "gold_ids")
    if gold.spoilers:
        names = ", ".join(gold.spoilers)
        return _skipped(
            f"A chunk that is not marked gold holds the answer too ({names}): mark it gold, or confirm it as harmless, "
            "for it would spoil the test.",
            "gold_ids",
        )
    if case.answer is not None and bench.judge(case, case.answer).outcome is Outcome.CORRECT:
        return Finding(
            "position",
            Status.UNDETERMINED,
            "The recorded answer counts as right by the answers given, so there is no failure to explain.",
            advice="Correct the answers, or add the alias that tells the wrong answer from the right one.",
        )
    return None


def _skipped(summary: str, *missing: str) -> Finding:
    return Finding("position", Status.SKIPPED, summary, missing_fields=missing)


@dataclass(frozen=True, slots=True)
class _End:
    """How the test ended, before brackets and the prompt as sent have had their say."""

    kind: str  # effect, flat, all-right, all-wrong, open, unscored, window, prompt-cut, output-budget, few
    reason: str
    more_blocks: int | None = None


@dataclass(slots=True)
class _Test:
    case: Case
    bench: Bench
    earlier: Mapping[str, Finding]
    results: list[TrialResult] = field(default_factory=list)
    brackets: list[TrialResult] = field(default_factory=list)
    curve: list[TrialResult] = field(default_factory=list)
    blocks: int = 0

    def __post_init__(self) -> None:
        self.order = order = _order_as_sent(self.earlier.get("assembly"))
        self.parts = arms.split(
            arms.in_order(self.case.chunks, order) if order else self.case.chunks, gold_of(self.case).ids
        )
        self.own_known = self._as_one_arm(order)
        self.framing = arms.frame_of(self.case)
        names = ("first", "middle", "last", "own") if self.own_known else ("first", "middle", "last")
        self.slots = arms.named_slots(self.parts, names)
        self.test = SlotTest(alpha=self.bench.alpha, delta=self.bench.delta)

    # Gold and distractors in the order of the prompt as sent, where that is known: block 0 is the user's own order.
    order: list[str] | None = field(init=False)
    parts: Split = field(init=False)
    own_known: bool = field(init=False)
    framing: Framing = field(init=False)
    slots: tuple[Slot, ...] = field(init=False)
    test: SlotTest = field(init=False)

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

    # --- the course of the test -----------------------------------------------------------------

    def run(self) -> Finding:
        blocked = self._window_check()
        if blocked is not None:
            return blocked
        self._send_oracle(range(BRACKET_CALLS))
        self._send(arms.closed(self.case, range(BRACKET_CALLS)), self.brackets)
        oracle = self._top_up()
        failed = self._fault_end([result for result in self.brackets if result.trial.arm == "oracle"])
        if failed is not None:
            return self._conclude(failed)
        if self.bench.runner.stopped is not None:
            return self._conclude(_End("open", str(self.bench.runner.stopped)))
        if oracle.n < BRACKET_CALLS:
            sent = self._count("oracle")
            faults = [
                r.verdict.reason for r in self.brackets if r.trial.arm == "oracle" and not r.verdict.outcome.scored
            ]
            why = Tally(faults).most_common(1)[0][0].rstrip(".")
            reason = f"{sent - oracle.n} of {sent} calls with the gold chunk alone could not be scored ({why})"
            return self._conclude(_End("unscored", reason))
        if not _right(oracle):
            return self._plain_oracle(oracle) or self._cannot_answer(oracle)
        if arms.count_orders(self.parts.distractors) < EARLY_BLOCKS or len(self.slots) < 3:
            n = len(self.case.chunks)
            return self._conclude(_End("few", f"too few chunks ({n}): fewer than {EARLY_BLOCKS} distinct orders exist"))
        return self._conclude(self._blocks())

    def _top_up(self) -> ArmScore:
        """More calls for an oracle that is right now and then, and for what could not be scored; the oracle's score."""
        closed = self._bracket("closed-book")
        if 0 < closed.n < BRACKET_CALLS:
            self._send(arms.closed(self.case, range(BRACKET_CALLS, 2 * BRACKET_CALLS - closed.n)), self.brackets)
        oracle = self._bracket("oracle")
        if 0 < oracle.n < BRACKET_CALLS:
            self._send_oracle(range(BRACKET_CALLS, 2 * BRACKET_CALLS - oracle.n))
            oracle = self._bracket("oracle")
        if oracle.correct and not _right(oracle):
            sent = self._count("oracle")
            self._send_oracle(range(sent, sent + BRACKET_CALLS))
            oracle = self._bracket("oracle")
        return oracle

    def _send_oracle(self, repeats: range) -> None:
        self._send(arms.oracle(self.case, self.parts, repeats, self.framing.frame), self.brackets)

    def _count(self, arm: str) -> int:
        return sum(result.trial.arm == arm for result in self.brackets)

    def _blocks(self) -> _End:
        """Run blocks until the stop rule, an early end, or the budget says stop."""
        most = self._most_blocks()
        for block, order in enumerate(islice(self._orders(), most)):
            self._send(
                arms.position_block(self.case, self.parts, order, block, self.slots, self.framing.frame), self.results
            )
            if self.bench.runner.stopped is not None:
                return self._effect_or_open(str(self.bench.runner.stopped))
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

    def _effect_or_open(self, reason: str, used_up: bool = False) -> _End:
        """An effect that was certain before the end stands, also where its shape could not be named yet."""
        if self.test.effect and self._unscored_end() is None:
            return _End("effect", f"e = {self.test.e_value:.3g} after {self.blocks} blocks")
        return _End("used-up", reason) if used_up else _End("open", reason, self.test.more_blocks)

    def _add_to_test(self, block: int) -> None:
        mine = {result.trial.arm: result for result in self.results if result.trial.block == block}

        def right(arm: str) -> bool | None:
            result = mine.get(arm)
            if result is None or not result.verdict.outcome.scored:
                return None
            return result.verdict.outcome is Outcome.CORRECT

        self.test.add(right("position:first"), right("position:middle"), right("position:last"))

    def _end_after(self, blocks: int) -> _End | None:
        fault = self._fault_end(self.results)
        if fault is not None:
            return fault
        if self._unscored_end() is not None:
            return None
        scores = [self._score(slot) for slot in self.slots]
        if all(score.n >= EARLY_BLOCKS for score in scores):
            if all(score.correct == score.n for score in scores):
                return _End("all-right", f"right at every slot in {blocks} distinct orders")
            if not any(score.correct for score in scores) and self._volume_shown(scores):
                return _End("all-wrong", f"wrong at every slot in {blocks} distinct orders, right with the gold alone")
        # `done` may wait for some blocks after the effect, until the shape can be named.
        if self.test.effect and self.test.done:
            return _End("effect", f"e = {self.test.e_value:.3g} after {blocks} blocks")
        if self.test.flat:
            return _End("flat", f"both edges within {self.bench.delta:g} of the middle after {blocks} blocks")
        return None

    def _volume_shown(self, scores: Sequence[ArmScore]) -> bool:
        """Oracle against all slots pooled, one-sided Fisher; the oracle's identical replies count once."""
        oracle = self._bracket("oracle")
        if oracle.n < BRACKET_CALLS or not _right(oracle):
            return False
        right = round(oracle.distinct * oracle.correct / oracle.n)
        pooled = sum(score.distinct for score in scores)
        return fisher_one_sided(right, oracle.distinct, 0, pooled) <= self.bench.alpha

    # --- what can end it early ---------------------------------------------------------------------

    def _window_check(self) -> Finding | None:
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
            return self._conclude(end)
        # It fits: block 0 counts this trial when its turn comes, and not twice.
        self.results.clear()
        return None

    def _fault_end(self, results: Sequence[TrialResult]) -> _End | None:
        """A fault that most trials share and that says more than their answers."""
        if not results:
            return None
        faults = Tally(result.call.fault for result in results if result.call.fault is not None)
        for kind in (FaultKind.CONTEXT_WINDOW, FaultKind.PROMPT_CUT, FaultKind.OUTPUT_BUDGET):
            if 2 * faults[kind.value] > len(results):
                words = next(r.call.fault_text or kind.value for r in results if r.call.fault == kind.value)
                return _End(kind.value, words)
        return None

    def _unscored_end(self) -> _End | None:
        shares = unscored_shares(self.results)
        if not shares or (
            max(shares.values()) <= _UNSCORED and max(shares.values()) - min(shares.values()) <= _UNSCORED
        ):
            return None
        worst = max(shares, key=lambda arm: shares[arm])
        return _End("unscored", f"{shares[worst]:.0%} of the trials at {worst} could not be scored")

    # --- the verdict -------------------------------------------------------------------------------

    def _plain_oracle(self, oracle: ArmScore) -> Finding | None:
        """Where the gold alone fails in the user's template, whether it does in a plain one."""
        if self.framing.frame is DEFAULT_LAYOUT:
            return None
        self._send(_renamed(arms.oracle(self.case, self.parts, range(BRACKET_CALLS)), "oracle:plain"), self.brackets)
        plain = self._bracket("oracle:plain")
        if plain.n < BRACKET_CALLS or not _right(plain):
            return None
        if fisher_one_sided(plain.correct, plain.n, oracle.correct, oracle.n) > self.bench.alpha:
            reason = (
                f"the gold chunk alone is right in {oracle.correct} of {oracle.n} calls in the template as sent and in "
                f"{plain.correct} of {plain.n} in a plain one, too few calls to tell template from model"
            )
            return self._conclude(_End("open", reason))
        summary = (
            f"With the gold chunk alone the template as sent is right in {oracle.correct} of {oracle.n} calls, a plain one in "
            f"{plain.correct} of {plain.n}{self._on_model()}: it is the template, not the order."
        )
        end = _End("template", "the gold chunk alone fails in the template as sent and not in a plain one")
        return self._finding(Status.FAIL, summary, Cause.PROMPT_SENSITIVE, (), _TEMPLATE_ADVICE, end)

    def _plain_block(self) -> Finding | None:
        """Where every slot fails in the user's template, whether the same chunks in the same orders do in a plain one."""
        if self.framing.frame is DEFAULT_LAYOUT:
            return None
        own = (Slot("plain:own", self.parts.own_index),)
        for block, order in enumerate(islice(self._orders(), self.blocks)):
            self._send(arms.position_block(self.case, self.parts, order, block, own), self.brackets)
        plain = self._bracket("plain:own")
        # Every slot is wrong in the user's template, so each right answer here is a discordant pair in favour of the plain one.
        if not plain.n or sign_test(plain.correct, 0) > self.bench.alpha or not _right(plain):
            return None
        summary = (
            f"Every slot is wrong in the template as sent, yet the same chunks in the same orders are right in {plain.correct} "
            f"of {plain.n} in a plain one{self._on_model()}: it is the template, not the order."
        )
        end = _End("template", "wrong at every slot in the template as sent, right in a plain one")
        return self._finding(Status.FAIL, summary, Cause.PROMPT_SENSITIVE, (), _TEMPLATE_ADVICE, end)

    def _cannot_answer(self, oracle: ArmScore) -> Finding:
        known = self._known()
        absent = sorted(set(gold_of(self.case).ids) - {chunk.id for chunk in self.case.chunks})
        if absent:
            reason = (
                f"with the retrieved gold alone it is right in {oracle.correct} of {oracle.n} calls, but gold "
                f"{', '.join(absent)} was not retrieved and may be needed"
            )
            return self._conclude(_End("gold-absent", reason))
        summary = (
            f"With the gold chunk alone the model is right in {oracle.correct} of {oracle.n} calls{self._on_model()}: "
            f"it cannot {'reliably ' if oracle.correct else ''}answer this from the document, whatever the order."
        )
        advice = "Read the gold chunk: say whether it really answers the question as asked; then try a stronger model."
        return self._finding(
            Status.FAIL, summary, Cause.CANNOT_ANSWER, known, advice, _End("cannot-answer", "oracle wrong")
        )

    def _known(self) -> tuple[Cause, ...]:
        return (Cause.CLOSED_BOOK_KNOWN,) if _right(self._bracket("closed-book")) else ()

    def _conclude(self, end: _End) -> Finding:
        """The finding of an end; a chunk with another value that is shown to lead astray goes before any layout."""
        finding = self._conclude_layout(end)
        if end.kind not in ("effect", "all-wrong", "open", "flat") or finding.cause in _NOT_LOST:
            return finding
        tested = {chunk.id for chunk in self.parts.distractors}
        named = rivals_of(self.earlier.get("retrieval"), [chunk.id for chunk in self.parts.gold])
        rivals = [name for name in named if name in tested]
        if not rivals or self.bench.runner.stopped is not None:
            return finding
        removal = try_removal(self.case, self.bench, self.parts, self.framing.frame, rivals)
        evidence = {**finding.evidence, "removal": {**asdict(removal), "rivals": list(rivals)}}
        if not removal.restores:
            return replace(finding, evidence=evidence)
        names = ", ".join(rivals)
        also = () if finding.cause is None else (finding.cause,)
        return replace(
            finding,
            status=Status.FAIL,
            evidence=evidence,
            cause=Cause.CONFLICTING_SOURCES,
            also=(*also, *(cause for cause in finding.also if cause is not Cause.CONFLICTING_SOURCES)),
            summary=(
                f"Without {names}, which gives another value, the answer is right in {removal.right_without} of {removal.n} "
                f"orders, with it in {removal.right_with}{self._on_model()}: the sources disagree and the other one is told."
            ),
            advice="Remove or date the outdated source, or tell the model which one holds.",
        )

    def _conclude_layout(self, end: _End) -> Finding:
        known = self._known()
        match end.kind:
            case "effect":
                return self._effect(end, known)
            case "all-right":
                return self._all_right(end, bool(known))
            case "all-wrong":
                return self._all_wrong(end, known)
            case FaultKind.CONTEXT_WINDOW.value | FaultKind.PROMPT_CUT.value:
                return self._over_window(end)
            case FaultKind.OUTPUT_BUDGET.value:
                return self._over_output(end, known)
            case "flat":
                summary = f"Position makes no difference that matters here{self._on_model()}: {end.reason}."
                return self._finding(Status.PASS, summary, None, known, "", end)
            case _:
                summary = f"Position is undetermined: {end.reason}."
                if end.more_blocks:
                    summary += f" About {end.more_blocks * len(self.slots)} more calls would likely settle it."
                return self._finding(Status.UNDETERMINED, summary, None, known, self._what_next(end), end)

    def _effect(self, end: _End, known: tuple[Cause, ...]) -> Finding:
        self._fill_curve()
        shape = self._shape()
        told = ", ".join(
            f"{score.correct} of {score.n} at {score.arm.removeprefix('position:')}"
            for score in (self._score(slot) for slot in self.slots)
            if score.arm in _TESTED
        )
        own = self._own_score() if self.own_known else None
        if own is not None and 2 * own.correct > own.n:
            return self._right_where_sent(end, own, f"Position matters{self._on_model()} ({told})", shape, known)
        # That the model does not know the answer must have been seen.
        lost = shape == "u" and not known and self._bracket("closed-book").n >= BRACKET_CALLS
        cause = Cause.LOST_IN_THE_MIDDLE if lost else Cause.POSITION_SENSITIVE
        what = {
            "u": "The answer is lost when its chunk stands in the middle",
            "primacy": "The answer is found when its chunk stands first and lost further on",
            "recency": "The answer is found when its chunk stands last and lost before that",
            "cliff": "The answer is lost when its chunk stands past a certain slot",
            "inverted": "The answer is found when its chunk stands in the middle and lost at the edges",
        }.get(shape, "Whether the answer is found depends on where its chunk stands")
        summary = f"{what}{self._on_model()}: right in {told}, of distinct orders (e = {self.test.e_value:.3g})."
        retrieved = self._own_score() if self.case.prompt is None else None
        if retrieved is not None and 2 * retrieved.correct > retrieved.n:
            summary += (
                f" As retrieved it stands at slot {(retrieved.index or 0) + 1}, where it is right in "
                f"{retrieved.correct} of {retrieved.n}."
            )
        advice = (
            "Use a remedy that was seen to help on this case; first and last show what a perfect reranker would give."
        )
        return self._finding(Status.FAIL, summary, cause, known, advice, end, shape)

    def _right_where_sent(
        self, end: _End, own: ArmScore, matters: str, shape: str, known: tuple[Cause, ...]
    ) -> Finding:
        """There is an effect, but not where the gold really stood: it does not explain this complaint."""
        also = (Cause.POSITION_SENSITIVE, *known)
        place = (
            f"where the gold chunk was sent (slot {(own.index or 0) + 1}) it is read right in {own.correct} of {own.n}"
        )
        if own.correct < own.n or own.n < BRACKET_CALLS:
            summary = f"{matters}, but {place}: whether that lost this answer is open."
            return self._finding(Status.UNDETERMINED, summary, None, also, self._what_next(end), end, shape)
        failure = self._as_sent_failure(f"{matters}, but {place}", end, also, shape)
        if failure is not None:
            return failure
        cause = Cause.NOT_REPRODUCED if self.case.answer is not None else Cause.NO_FAULT_FOUND
        summary = f"{matters}, but {place}: that did not lose this answer."
        return self._finding(Status.PASS, summary, cause, also, "", end, shape)

    def _all_right(self, end: _End, closed_right: bool) -> Finding:
        if closed_right:
            summary = (
                f"The model knows the answer without any document{self._on_model()}, so the chunks cannot have lost it."
            )
            advice = "Test with a question that only the documents answer."
            return self._finding(Status.UNDETERMINED, summary, Cause.CLOSED_BOOK_KNOWN, (), advice, end)
        failure = self._as_sent_failure(f"The answer is {end.reason}", end)
        if failure is not None:
            return failure
        if self.case.answer is not None:
            summary = f"The wrong answer did not come back{self._on_model()}: {end.reason}."
            advice = "Name the model that gave the answer with --model, or give the prompt as sent."
            return self._finding(Status.PASS, summary, Cause.NOT_REPRODUCED, (), advice, end)
        summary = f"No fault found{self._on_model()}: {end.reason}."
        return self._finding(Status.PASS, summary, Cause.NO_FAULT_FOUND, (), "", end)

    def _all_wrong(self, end: _End, known: tuple[Cause, ...]) -> Finding:
        template = self._plain_block()
        if template is not None:
            return template
        n = len(self.case.chunks)
        summary = (
            f"The gold chunk alone is enough, but among {n} chunks the answer is lost at every slot{self._on_model()}: "
            f"{end.reason}. It is the volume, not the layout."
        )
        advice = "Send fewer chunks or filter the distractors; reordering cannot help."
        return self._finding(Status.FAIL, summary, Cause.DISTRACTED, known, advice, end)

    def _over_window(self, end: _End) -> Finding:
        """A live refusal, or a silent cut, for length: the case's own fault only where its own model was asked."""
        same = self.bench.same_model
        if same or (same is None and self.case.model is None and self.case.context_window is None):
            summary = f"The prompt does not fit the model's window{self._on_model()}: {end.reason}."
            advice = "Send fewer or shorter chunks, or raise the window of the server."
            return self._finding(Status.FAIL, summary, Cause.TRUNCATED, (), advice, end)
        summary = f"The prompt is longer than the tested model's window ({end.reason}), so position was not tested."
        return self._finding(Status.SKIPPED, summary, None, (), "Test on a model with a larger window.", end)

    def _over_output(self, end: _End, known: tuple[Cause, ...]) -> Finding:
        """An output budget that was spent without an answer: the case's own fault only where its own model was asked."""
        advice = "Raise the output cap or lower the reasoning effort; this is no miss by position."
        if self.bench.same_model is False:
            summary = (
                f"The tested model {self.bench.tested_model} spent its output budget without an answer ({end.reason}): "
                f"that is a limit of that model, not of {self.case.model}, so position was not tested."
            )
            return self._finding(Status.UNDETERMINED, summary, None, known, advice, end)
        summary = f"The model spent its output budget without an answer{self._on_model()}: {end.reason}."
        return self._finding(Status.FAIL, summary, Cause.OUTPUT_BUDGET, known, advice, end)

    def _what_next(self, end: _End) -> str:
        if isinstance(self.bench.runner.stopped, BudgetSpent):
            return "Raise the cap on calls and resume the run."
        if end.kind == "unscored":
            return "Look at the unscored trials: errors, empty and cut answers say what to mend first."
        if end.kind in ("few", "used-up"):
            return "Retrieve more chunks to test position: at least four distinct ones, better eight."
        if end.kind == "gold-absent":
            return "Keep in gold_ids only the chunks that the answer needs, or mend the retrieval of the others first."
        return "Give more budget (--max-calls), or run a suite of cases: with many cases a smaller effect can be seen."

    # --- parts ---------------------------------------------------------------------------------------

    def _as_sent_failure(
        self, otherwise: str, end: _End, also: tuple[Cause, ...] = (), shape: str | None = None
    ) -> Finding | None:
        """What wrong or missing replies to the prompt as sent say; None where all are right, or it is not known."""
        if self.case.prompt is None:
            return None
        self._send(arms.sent(self.case, range(BRACKET_CALLS)), self.brackets)
        score = self._bracket("as-sent")
        if score.n < BRACKET_CALLS:
            stopped = self.bench.runner.stopped
            why = str(stopped) if stopped is not None else f"only {score.n} of {BRACKET_CALLS} replies could be scored"
            summary = f"{otherwise}; what the prompt as sent gives is unknown: {why}."
            return self._finding(Status.UNDETERMINED, summary, None, also, self._what_next(end), end, shape)
        if score.correct == score.n:
            return None
        wrong = f"{otherwise}, but the prompt as sent is wrong in {score.n - score.correct} of {score.n} calls"
        if 2 * score.correct < score.n and _all_whole(self.earlier.get("assembly")):
            summary = f"{wrong} with every chunk whole{self._on_model()}: it is the template, not the order."
            return self._finding(Status.FAIL, summary, Cause.PROMPT_SENSITIVE, also, _TEMPLATE_ADVICE, end, shape)
        summary = f"{wrong}{self._on_model()}: it fails now and then, or for what else differs in it."
        return self._finding(Status.UNDETERMINED, summary, None, also, _TEMPLATE_ADVICE, end, shape)

    def _fill_curve(self) -> None:
        """Own slot and the quarter slots for a few of the same blocks, so that the curve has its points."""
        taken = {slot.index for slot in self.slots}
        extra = tuple(slot for slot in arms.named_slots(self.parts, ("own", "q1", "q3")) if slot.index not in taken)
        if not extra:
            return
        for block, order in enumerate(islice(self._orders(), min(self.blocks, 8))):
            self._send(arms.position_block(self.case, self.parts, order, block, extra, self.framing.frame), self.curve)
        self.slots = tuple(sorted((*self.slots, *extra), key=lambda slot: slot.index))

    def _own_score(self) -> ArmScore | None:
        slot = next((slot for slot in self.slots if slot.index == self.parts.own_index), None)
        return self._score(slot) if slot is not None else None

    def _shape(self) -> str:
        """The test's shape, or a cliff where the wider curve shows one."""
        scores = [self._score(slot) for slot in self.slots]
        curve = [
            SlotCount(score.index or 0, score.distinct, score.correct) for score in scores if score.distinct == score.n
        ]
        cliff = find_cliff(curve, effect=self.test.effect, alpha=self.bench.alpha)
        return self.test.shape if cliff is None else "cliff"

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

    def _bracket(self, arm: str) -> ArmScore:
        return arm_score(arm, self.brackets)

    def _score(self, slot: Slot) -> ArmScore:
        return arm_score(slot.arm, (*self.results, *self.curve), slot.index)

    def _on_model(self) -> str:
        return "" if self.bench.same_model else f" on {self.bench.tested_model}"

    def _finding(
        self,
        status: Status,
        summary: str,
        cause: Cause | None,
        also: tuple[Cause, ...],
        advice: str,
        end: _End,
        shape: str | None = None,
    ) -> Finding:
        points: list[Json] = [score_json(self._score(slot)) for slot in sorted(self.slots, key=lambda slot: slot.index)]
        ran = bool(self.results)
        gap = self.test.gap_interval
        evidence: dict[str, Json] = {
            "points": points if ran else [],
            "oracle": self._bracket_json("oracle"),
            "closed_book": self._bracket_json("closed-book"),
            "as_sent": self._bracket_json("as-sent"),
            "oracle_plain": self._bracket_json("oracle:plain"),
            "e_value": self.test.e_value if ran else None,
            "gap": gap.value if gap is not None else None,
            "gap_low": gap.low if gap is not None else None,
            "gap_high": gap.high if gap is not None else None,
            "shape": shape or ("flat" if end.kind == "flat" else "unclear"),
            "blocks": self.blocks,
            "reason": end.reason,
            "more_calls": end.more_blocks * len(self.slots) if end.more_blocks else None,
            "own_index": self.parts.own_index,
            "order_as_sent": list(self.order) if self.own_known and self.order else None,
            "template": self.framing.frame.name,
            "template_note": self.framing.note or None,
            "outcomes": dict(outcome_counts(self._all())),
        }
        return Finding("position", status, summary, evidence, (), cause, also, advice)

    def _bracket_json(self, arm: str) -> Json:
        score = self._bracket(arm)
        return score_json(score) if any(result.trial.arm == arm for result in self.brackets) else None

    def _all(self) -> list[TrialResult]:
        return [*self.brackets, *self.results, *self.curve]


def _renamed(trials: Sequence[Trial], arm: str) -> tuple[Trial, ...]:
    return tuple(replace(trial, arm=arm) for trial in trials)


def _right(score: ArmScore) -> bool:
    """More than half of its calls are right."""
    return 2 * score.correct > score.n


def _rows_as_sent(assembly: Finding | None) -> list[Mapping[str, Json]]:
    """What stage 3 says of each chunk; empty where it was not run."""
    rows = assembly.evidence.get("chunks") if assembly is not None else None
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        return []
    return [row for row in rows if isinstance(row, Mapping)]


def _all_whole(assembly: Finding | None) -> bool:
    """Whether every chunk stands in the prompt as sent once, and whole."""
    rows = _rows_as_sent(assembly)
    return bool(rows) and all(row.get("state") == "whole" for row in rows)


def _chunks_sent(case: Case, assembly: Finding | None) -> Case:
    """The case with the chunks that production sent, where the prompt as sent holds the gold whole; else the case as it is."""
    there = {str(row.get("id")) for row in _rows_as_sent(assembly) if row.get("token_offset") is not None}
    whole = {str(row.get("id")) for row in _rows_as_sent(assembly) if row.get("state") in ("whole", "doubled")}
    if not whole.issuperset({chunk.id for chunk in case.chunks}.intersection(gold_of(case).ids)):
        return case
    return replace(case, chunks=tuple(chunk for chunk in case.chunks if chunk.id in there))


def _order_as_sent(assembly: Finding | None) -> list[str] | None:
    """Chunk ids in the order of the prompt as sent, as stage 3 found them; None where it found none."""
    found: list[tuple[float, str]] = []
    for row in _rows_as_sent(assembly):
        offset, name = row.get("token_offset"), row.get("id")
        if isinstance(offset, int | float) and isinstance(name, str):
            found.append((offset, name))
    return [name for _, name in sorted(found, key=lambda each: each[0])] or None
