"""Accuracy against tokens: the first k chunks for growing k, between closed-book and oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from lim_core import arms
from lim_core.errors import InputError
from lim_core.experiments.cells import ArmFigures, Table, arm_figures, matrix, unscored
from lim_core.experiments.options import Levels, names_of, whole_of, wholes_of
from lim_core.experiments.positions import BRACKET_CALLS, CLOSED, ORACLE
from lim_core.experiments.registry import experiments
from lim_core.experiments.subjects import PLAIN, Subject, arm_name, blocks_for, frame_for, layout
from lim_core.prompts import closed_book
from lim_core.stats import mcnemar, paired_gain, wilson
from lim_core.types import Estimate, Json, Trial

KS = (1, 2, 3, 5, 8, 10, 15, 20)
# The arm of all retrieved chunks: what production sends today.
ALL = "k:all"


@dataclass(frozen=True, slots=True)
class TokenOptions:
    """Cuts of the retrieved list; all retrieved chunks are always among them. Blocks as for position curves."""

    k: tuple[int, ...] = KS
    blocks: int = 0
    templates: tuple[str, ...] = (PLAIN,)

    def __post_init__(self) -> None:
        if not self.k or min(self.k) < 1 or max(self.k) > 100_000:
            raise InputError("k must name whole numbers above 0, such as 1,2,5,10.")
        if len(self.templates) != 1:
            raise InputError("A top-k sweep runs in one template: name one.")
        layout(self.templates[0])
        if self.blocks < 0:
            raise InputError(f"blocks is {self.blocks}: give a whole number above 0.")

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> TokenOptions:
        """Options as stored with a run."""
        return cls(wholes_of(value, "k", KS), whole_of(value, "blocks", 0), names_of(value, "templates", (PLAIN,)))


@dataclass(frozen=True, slots=True)
class KPoint:
    """One cut: how the reader answers, and how often the evidence is in it. `k` None stands for all retrieved chunks.

    `recall` is the share of cases whose whole gold is among the first k, with its Wilson interval; n counts cases.
    """

    k: int | None
    figures: ArmFigures
    recall: Estimate


@dataclass(frozen=True, slots=True)
class Saving:
    """The knee against today's k: tokens saved a call (absolute and as a share), and the paired change in accuracy."""

    tokens: float
    share: float
    gain: Estimate
    p: float | None


@dataclass(frozen=True, slots=True)
class TokenResult:
    """The curve, its brackets, and its knee.

    `knee` is the smallest k whose accuracy is within one standard error of the best; None where it is undetermined, with
    the `reason`.
    """

    points: tuple[KPoint, ...]
    oracle: ArmFigures | None
    closed_book: ArmFigures | None
    best: int | None
    knee: int | None
    saving: Saving | None
    reason: str
    unit: str


class Tokens:
    """Sends the first k chunks for several k and sets accuracy and recall against prompt tokens."""

    # A case whose gold was not retrieved is part of the answer: no k can help it, and recall says so.
    needs_retrieved_gold = False
    anytime = False
    read = TokenOptions.from_json

    def templates(self, options: TokenOptions) -> tuple[str, ...]:
        """The one template."""
        return options.templates

    def blocks(self, suite: Sequence[Subject], options: TokenOptions) -> int:
        """As many as asked for; by default one in a suite, eight for a single case."""
        return blocks_for(suite, options.blocks)

    def trials(
        self, subject: Subject, suite: Sequence[Subject], block: int, options: TokenOptions, seed: int
    ) -> tuple[Trial, ...]:
        """One block, smallest k first, so that every prompt begins with the one before; the brackets go with block 0.

        Block 0 is the retrieved order. In further blocks the gold keeps its rank and the distractors change places.
        """
        order = next(islice(arms.distractor_orders(subject.parts.distractors, seed), block, None), None)
        if order is None:
            return ()
        template = options.templates[0]
        frame = frame_for(subject, template)
        case, gold = subject.case, {chunk.id for chunk in subject.parts.gold}
        chunks = case.chunks
        if block:
            fill = iter(order)
            chunks = tuple(chunk if chunk.id in gold else next(fill) for chunk in case.chunks)
        made: list[Trial] = []
        for name, cut in [*((f"k:{k}", min(k, len(chunks))) for k in sorted(options.k)), (ALL, len(chunks))]:
            kept = chunks[:cut]
            slot = next((index for index, chunk in enumerate(kept) if chunk.id in gold), None)
            prompt = frame.lay_out(case.question, kept)
            made.append(Trial(case.id, arm_name(name, template), block, 0, prompt, slot))
        if block == 0:
            repeats = range(BRACKET_CALLS if len(suite) == 1 else 1)
            prompt = frame.lay_out(case.question, subject.evidence)
            made += [Trial(case.id, ORACLE, 0, repeat, prompt, 0) for repeat in repeats]
            alone = closed_book(case.question)
            made += [Trial(case.id, CLOSED, 0, repeat, alone) for repeat in repeats]
        return tuple(made)

    def analyse(self, table: Table, options: TokenOptions, levels: Levels) -> TokenResult:
        """The curve, the knee and what it saves."""
        template = options.templates[0]
        present = set(table.arms())
        longest = max((fact.chunks for fact in table.facts), default=0)
        points = []
        for k in sorted(options.k):
            name = arm_name(f"k:{k}", template)
            # A cut that no case is long enough for is the same as all.
            if name in present and k < longest:
                points.append(KPoint(k, arm_figures(table, name), _recall(table, k)))
        today = arm_name(ALL, template)
        if today in present:
            points.append(KPoint(None, arm_figures(table, today), _recall(table, None)))
        names = [point.figures.arm for point in points]
        reason = unscored(table, names) or ("" if len(points) > 1 else "fewer than two cuts")
        unit = "block" if len(table.facts) == 1 else "case"
        whole = matrix(table, names).whole()
        if not reason and len(whole) < 2:
            reason = f"fewer than two {unit}s are scored at every cut"
        # Over the units scored at every cut, so that no cut is compared over other cases.
        best, knee = (None, None) if reason else _knee([float(mean) for mean in whole.mean(axis=0)], len(whole))
        saved = knee is not None and knee < len(points) - 1 and points[-1].k is None
        saving = _saving(table, points[knee], points[-1], levels) if saved and knee is not None else None
        return TokenResult(
            tuple(points),
            arm_figures(table, ORACLE) if ORACLE in present else None,
            arm_figures(table, CLOSED) if CLOSED in present else None,
            best,
            knee,
            saving,
            reason,
            unit,
        )

    def summary(self, result: TokenResult) -> str:
        """Where the knee is and what it saves."""
        if result.knee is None:
            return f"Undetermined: {result.reason}."
        knee, today = result.points[result.knee], result.points[-1]
        said = f"The knee is at k = {knee.k or 'all'}: {_right(knee.figures, result.unit)}"
        if knee is not today and today.k is None:
            said += f", against {_right(today.figures, result.unit)} with all chunks"
        if result.saving is not None:
            gain = result.saving.gain
            said += f"; change {gain.value:+z.2f} [{gain.low:+z.2f}, {gain.high:+z.2f}], n = {gain.n}"
            said += f", {result.saving.tokens:,.0f} prompt tokens a call saved ({result.saving.share:.0%})"
        return said + "."


experiments.register("tokens", title="Accuracy vs tokens", order=1)(Tokens())


def k_words(k: int | None) -> str:
    """A cut as charts and tables name it."""
    return "all" if k is None else str(k)


def _right(figures: ArmFigures, unit: str) -> str:
    if figures.accuracy is None or figures.low is None or figures.high is None:
        return "nothing scored"
    return f"{figures.accuracy:.0%} right [{figures.low:.0%}, {figures.high:.0%}] of {figures.n} {unit}s"


def _recall(table: Table, k: int | None) -> Estimate:
    whole = sum(bool(fact.gold_ranks) and (k is None or max(fact.gold_ranks) < k) for fact in table.facts)
    return wilson(whole, len(table.facts))


def _knee(shares: Sequence[float], n: int) -> tuple[int, int]:
    """Places of the best cut and of the first within one standard error of it (sqrt(p (1 - p) / n), n units)."""
    best = shares.index(max(shares))
    error = math.sqrt(shares[best] * (1 - shares[best]) / n)
    # Sums of shares are not exact; a tie must not hang on the last digit.
    return best, next(place for place, value in enumerate(shares) if value >= shares[best] - error - 1e-12)


def _saving(table: Table, knee: KPoint, today: KPoint, levels: Levels) -> Saving | None:
    if knee.figures.prompt_tokens is None or today.figures.prompt_tokens is None:
        return None
    pairs = matrix(table, (today.figures.arm, knee.figures.arm)).whole()
    if not len(pairs):
        return None
    before, after = pairs[:, 0], pairs[:, 1]
    binary = ((pairs == 0) | (pairs == 1)).all()
    p = mcnemar(int((after > before).sum()), int((after < before).sum())) if binary else None
    tokens = today.figures.prompt_tokens - knee.figures.prompt_tokens
    share = tokens / today.figures.prompt_tokens if today.figures.prompt_tokens else 0.0
    return Saving(tokens, share, paired_gain(list(before), list(after), seed=levels.seed), p)


def advice(result: TokenResult, budget: int) -> tuple[str, ...]:
    """What to send within a budget of prompt tokens a call, each sentence tied to what was measured here."""
    if result.reason or not result.points:
        return (f"No advice: {result.reason or 'nothing was measured'}.",)
    affordable = [
        point
        for point in result.points
        if point.figures.n and point.figures.prompt_tokens is not None and point.figures.prompt_tokens <= budget
    ]
    if not affordable:
        least = min(point.figures.prompt_tokens or math.inf for point in result.points)
        return (f"Even the smallest cut takes {least:,.0f} prompt tokens: shorten the chunks, or allow more.",)
    said = []
    shares = [point.figures.accuracy or 0.0 for point in affordable]
    best, knee = _knee(shares, min(point.figures.n for point in affordable))
    pick = affordable[knee]
    said.append(
        f"Send the first {k_words(pick.k)}: {_right(pick.figures, result.unit)} at {pick.figures.prompt_tokens:,.0f} prompt "
        f"tokens, the smallest cut within one standard error of the best affordable one (k = {k_words(affordable[best].k)}, "
        f"{_right(affordable[best].figures, result.unit)})."
    )
    oracle, closed = result.oracle, result.closed_book
    if oracle is not None and oracle.accuracy is not None and pick.figures.accuracy is not None:
        if oracle.low is not None and pick.figures.high is not None and oracle.low > pick.figures.high:
            said.append(
                f"The gold alone gives {_right(oracle, result.unit)}: what is lost up to there is lost to the other "
                "chunks, so a filter or a reranker has more to gain than another order."
            )
        elif oracle.accuracy < 0.5:
            said.append(
                f"Even the gold alone gives only {_right(oracle, result.unit)}: the reader is the limit, no cut will mend it."
            )
    recall, whole = pick.recall, affordable[-1].recall
    if recall.value < whole.value:
        said.append(
            f"The gold is among them in {recall.value:.0%} [{recall.low:.0%}, {recall.high:.0%}] of {recall.n} cases, against "
            f"{whole.value:.0%} with k = {k_words(affordable[-1].k)}: a better ranker would let a small cut keep it."
        )
    if (
        closed is not None
        and closed.low is not None
        and pick.figures.high is not None
        and closed.low >= pick.figures.high
    ):
        said.append(
            f"Without any chunk it is {_right(closed, result.unit)}: these questions do not need the documents."
        )
    return tuple(said)
