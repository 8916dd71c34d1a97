"""The verdict of the position test and its words: the cause that an end of the course stands for."""

from __future__ import annotations

from dataclasses import asdict, replace

from lim_core.errors import BudgetSpent, FaultKind
from lim_core.prompts import DEFAULT_LAYOUT
from lim_core.stages.position.as_sent import all_whole
from lim_core.stages.position.course import BRACKET_CALLS, Course, End, mostly_right
from lim_core.stages.position.evidence import evidence_of
from lim_core.stages.rival import rivals_of, try_removal
from lim_core.stats import sign_test
from lim_core.types import ArmScore, Cause, Finding, Status

_TEMPLATE_ADVICE = "Compare the template as sent with a plain one, and change one thing at a time."
# Causes that say no answer was lost here: no rival is looked for.
_NOT_LOST = frozenset({Cause.NOT_REPRODUCED, Cause.NO_FAULT_FOUND, Cause.PROMPT_SENSITIVE})
# The slots that the stop rule compares.
_TESTED = ("position:first", "position:middle", "position:last")


def conclude(course: Course, end: End) -> Finding:
    """The finding of a test that ended so; some ends need further calls, which the course sends."""
    return _Verdict(course).conclude(end)


class _Verdict:
    def __init__(self, course: Course) -> None:
        self.course = course
        self.case = course.case
        self.bench = course.bench

    def conclude(self, end: End) -> Finding:
        """The finding of an end; a chunk with another value that is shown to lead astray goes before any layout."""
        finding = self._conclude_layout(end)
        if end.kind not in ("effect", "all-wrong", "open", "flat") or finding.cause in _NOT_LOST:
            return finding
        tested = {chunk.id for chunk in self.course.parts.distractors}
        named = rivals_of(self.course.earlier.get("retrieval"), [chunk.id for chunk in self.course.parts.gold])
        rivals = [name for name in named if name in tested]
        if not rivals or self.bench.runner.stopped is not None:
            return finding
        removal = try_removal(self.case, self.bench, self.course.parts, self.course.framing.frame, rivals)
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

    def _conclude_layout(self, end: End) -> Finding:
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
            case "template":
                return self._template(end)
            case "cannot-answer":
                return self._cannot_answer(end, known)
            case "flat":
                summary = f"Position makes no difference that matters here{self._on_model()}: {end.reason}."
                return self._finding(Status.PASS, summary, None, known, "", end)
            case _:
                summary = f"Position is undetermined: {end.reason}."
                if end.more_blocks:
                    summary += f" About {end.more_blocks * len(self.course.slots)} more calls would likely settle it."
                return self._finding(Status.UNDETERMINED, summary, None, known, self._what_next(end), end)

    def _effect(self, end: End, known: tuple[Cause, ...]) -> Finding:
        self.course.fill_curve()
        shape = self.course.shape()
        told = ", ".join(
            f"{score.correct} of {score.n} at {score.arm.removeprefix('position:')}"
            for score in (self.course.score(slot) for slot in self.course.slots)
            if score.arm in _TESTED
        )
        own = self.course.own_score() if self.course.own_known else None
        if own is not None and 2 * own.correct > own.n:
            return self._right_where_sent(end, own, f"Position matters{self._on_model()} ({told})", shape, known)
        # That the model does not know the answer must have been seen.
        lost = shape == "u" and not known and self.course.bracket("closed-book").n >= BRACKET_CALLS
        cause = Cause.LOST_IN_THE_MIDDLE if lost else Cause.POSITION_SENSITIVE
        what = {
            "u": "The answer is lost when its chunk stands in the middle",
            "primacy": "The answer is found when its chunk stands first and lost further on",
            "recency": "The answer is found when its chunk stands last and lost before that",
            "cliff": "The answer is lost when its chunk stands past a certain slot",
            "inverted": "The answer is found when its chunk stands in the middle and lost at the edges",
        }.get(shape, "Whether the answer is found depends on where its chunk stands")
        summary = f"{what}{self._on_model()}: right in {told}, of distinct orders (e = {self.course.test.e_value:.3g})."
        retrieved = self.course.own_score() if self.case.prompt is None else None
        if retrieved is not None and 2 * retrieved.correct > retrieved.n:
            summary += (
                f" As retrieved it stands at slot {(retrieved.index or 0) + 1}, where it is right in "
                f"{retrieved.correct} of {retrieved.n}."
            )
        advice = (
            "Use a remedy that was seen to help on this case; first and last show what a perfect reranker would give."
        )
        return self._finding(Status.FAIL, summary, cause, known, advice, end, shape)

    def _right_where_sent(self, end: End, own: ArmScore, matters: str, shape: str, known: tuple[Cause, ...]) -> Finding:
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

    def _all_right(self, end: End, closed_right: bool) -> Finding:
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

    def _all_wrong(self, end: End, known: tuple[Cause, ...]) -> Finding:
        template = self._plain_right(end)
        if template is not None:
            return template
        n = len(self.case.chunks)
        summary = (
            f"The gold chunk alone is enough, but among {n} chunks the answer is lost at every slot{self._on_model()}: "
            f"{end.reason}. It is the volume, not the layout."
        )
        advice = "Send fewer chunks or filter the distractors; reordering cannot help."
        return self._finding(Status.FAIL, summary, Cause.DISTRACTED, known, advice, end)

    def _plain_right(self, end: End) -> Finding | None:
        """Where every slot fails in the user's template, whether the same chunks in the same orders do in a plain one."""
        if self.course.framing.frame is DEFAULT_LAYOUT:
            return None
        plain = self.course.send_plain()
        # Every slot is wrong in the user's template, so each right answer here is a discordant pair in favour of the plain one.
        if not plain.n or sign_test(plain.correct, 0) > self.bench.alpha or not mostly_right(plain):
            return None
        summary = (
            f"Every slot is wrong in the template as sent, yet the same chunks in the same orders are right in {plain.correct} "
            f"of {plain.n} in a plain one{self._on_model()}: it is the template, not the order."
        )
        end = replace(end, kind="template", reason="wrong at every slot in the template as sent, right in a plain one")
        return self._finding(Status.FAIL, summary, Cause.PROMPT_SENSITIVE, (), _TEMPLATE_ADVICE, end)

    def _template(self, end: End) -> Finding:
        oracle, plain = self.course.bracket("oracle"), self.course.bracket("oracle:plain")
        summary = (
            f"With the gold chunk alone the template as sent is right in {oracle.correct} of {oracle.n} calls, a plain one in "
            f"{plain.correct} of {plain.n}{self._on_model()}: it is the template, not the order."
        )
        return self._finding(Status.FAIL, summary, Cause.PROMPT_SENSITIVE, (), _TEMPLATE_ADVICE, end)

    def _cannot_answer(self, end: End, known: tuple[Cause, ...]) -> Finding:
        oracle = self.course.bracket("oracle")
        summary = (
            f"With the gold chunk alone the model is right in {oracle.correct} of {oracle.n} calls{self._on_model()}: "
            f"it cannot {'reliably ' if oracle.correct else ''}answer this from the document, whatever the order."
        )
        advice = "Read the gold chunk: say whether it really answers the question as asked; then try a stronger model."
        return self._finding(Status.FAIL, summary, Cause.CANNOT_ANSWER, known, advice, end)

    def _over_window(self, end: End) -> Finding:
        """A live refusal, or a silent cut, for length: the case's own fault only where its own model was asked."""
        same = self.bench.same_model
        if same or (same is None and self.case.model is None and self.case.context_window is None):
            summary = f"The prompt does not fit the model's window{self._on_model()}: {end.reason}."
            advice = "Send fewer or shorter chunks, or raise the window of the server."
            return self._finding(Status.FAIL, summary, Cause.TRUNCATED, (), advice, end)
        summary = f"The prompt is longer than the tested model's window ({end.reason}), so position was not tested."
        return self._finding(Status.SKIPPED, summary, None, (), "Test on a model with a larger window.", end)

    def _over_output(self, end: End, known: tuple[Cause, ...]) -> Finding:
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

    def _what_next(self, end: End) -> str:
        if isinstance(self.bench.runner.stopped, BudgetSpent):
            return "Raise the cap on calls and resume the run."
        if end.kind == "unscored":
            return "Look at the unscored trials: errors, empty and cut answers say what to mend first."
        if end.kind in ("few", "used-up"):
            return "Retrieve more chunks to test position: at least four distinct ones, better eight."
        if end.kind == "gold-absent":
            return "Keep in gold_ids only the chunks that the answer needs, or mend the retrieval of the others first."
        return "Give more budget (--max-calls), or run a suite of cases: with many cases a smaller effect can be seen."

    def _as_sent_failure(
        self, otherwise: str, end: End, also: tuple[Cause, ...] = (), shape: str | None = None
    ) -> Finding | None:
        """What wrong or missing replies to the prompt as sent say; None where all are right, or it is not known."""
        if self.case.prompt is None:
            return None
        score = self.course.send_as_sent()
        if score.n < BRACKET_CALLS:
            why = self.course.stop_reason() or f"only {score.n} of {BRACKET_CALLS} replies could be scored"
            summary = f"{otherwise}; what the prompt as sent gives is unknown: {why}."
            return self._finding(Status.UNDETERMINED, summary, None, also, self._what_next(end), end, shape)
        if score.correct == score.n:
            return None
        wrong = f"{otherwise}, but the prompt as sent is wrong in {score.n - score.correct} of {score.n} calls"
        if 2 * score.correct < score.n and all_whole(self.course.earlier.get("assembly")):
            summary = f"{wrong} with every chunk whole{self._on_model()}: it is the template, not the order."
            return self._finding(Status.FAIL, summary, Cause.PROMPT_SENSITIVE, also, _TEMPLATE_ADVICE, end, shape)
        summary = f"{wrong}{self._on_model()}: it fails now and then, or for what else differs in it."
        return self._finding(Status.UNDETERMINED, summary, None, also, _TEMPLATE_ADVICE, end, shape)

    def _known(self) -> tuple[Cause, ...]:
        return (Cause.CLOSED_BOOK_KNOWN,) if mostly_right(self.course.bracket("closed-book")) else ()

    def _on_model(self) -> str:
        return "" if self.bench.same_model else f" on {self.bench.tested_model}"

    def _finding(
        self,
        status: Status,
        summary: str,
        cause: Cause | None,
        also: tuple[Cause, ...],
        advice: str,
        end: End,
        shape: str | None = None,
    ) -> Finding:
        return Finding("position", status, summary, evidence_of(self.course, end, shape), (), cause, also, advice)
