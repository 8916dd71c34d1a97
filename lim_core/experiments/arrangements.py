"""Orderings side by side: what each does to the ranks, how the reader answers, and whether noise or order is the trouble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from lim_core import arms
from lim_core.errors import InputError
from lim_core.experiments.cells import ArmFigures, Matrix, Table, arm_figures, matrix, unscored
from lim_core.experiments.options import Levels, names_of, whole_of
from lim_core.experiments.registry import experiments
from lim_core.experiments.subjects import PLAIN, Subject, arm_name, blocks_for, frame_for, layout
from lim_core.orderings import arrange, orderings
from lim_core.stats import holm, mcnemar, paired_gain
from lim_core.types import Chunk, Estimate, Json, Trial

BASELINE = "as-retrieved"
BY_HAND = "by-hand"
# The distraction test: as many chunks taken away from the best-ranked distractors as from the worst-ranked.
WITHOUT_HARD, WITHOUT_EASY = "distraction:without-hard", "distraction:without-easy"
_DRAWS = 2000


@dataclass(frozen=True, slots=True)
class OrderingOptions:
    """Orderings by name, template options, and how many distractors the distraction test takes away (0: none).

    `by_hand` is an order of chunk ids for a suite of one case; it takes part as the ordering `by-hand`.
    """

    orderings: tuple[str, ...] = (BASELINE, "edges", "reverse", "langchain")
    templates: tuple[str, ...] = (PLAIN,)
    blocks: int = 0
    distraction: int = 3
    by_hand: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.orderings:
            if name != BY_HAND:
                orderings[name]  # raises UnknownName with the list
        if BY_HAND in self.orderings and not self.by_hand:
            raise InputError("The order by hand is empty: list the chunk ids in the order wanted.")
        for template in self.templates:
            layout(template)
        arms_asked = len(self.orderings) * len(self.templates)
        if not 1 <= arms_asked <= 6:
            raise InputError(f"{arms_asked} arms are asked for: compare two to six orderings and templates.")
        if self.blocks < 0 or self.distraction < 0:
            raise InputError("blocks and distraction must be whole numbers of 0 or more.")

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> OrderingOptions:
        """Options as stored with a run."""
        default = cls()
        hand = names_of(value, "by_hand", ())
        names = names_of(value, "orderings", default.orderings)
        # The first arm is what the others are compared with.
        names = (BASELINE, *(name for name in names if name != BASELINE))
        return cls(
            names if not hand or BY_HAND in names else (*names, BY_HAND),
            names_of(value, "templates", default.templates),
            whole_of(value, "blocks", 0),
            whole_of(value, "distraction", default.distraction),
            hand,
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """One arm against the baseline: paired gain with interval, exact McNemar p over the units, and p after Holm."""

    arm: str
    ordering: str
    template: str
    figures: ArmFigures
    gain: Estimate | None
    p: float | None
    p_holm: float | None


@dataclass(frozen=True, slots=True)
class Distraction:
    """Taking away the best-ranked distractors against taking away as many of the worst-ranked: same volume, less lure.

    `gain` is the paired difference in accuracy, without-hard minus without-easy.
    """

    taken: int
    without_hard: ArmFigures
    without_easy: ArmFigures
    gain: Estimate | None


@dataclass(frozen=True, slots=True)
class OrderingResult:
    """The arms beside the baseline; `winner` is an arm only where its gain holds after Holm."""

    arms: tuple[Comparison, ...]
    distraction: Distraction | None
    winner: str | None
    reason: str
    unit: str


class Orderings:
    """Sends the same chunks in several orders and templates, paired case by case."""

    needs_retrieved_gold = True
    anytime = False
    read = OrderingOptions.from_json

    def templates(self, options: OrderingOptions) -> tuple[str, ...]:
        """The templates compared."""
        return options.templates

    def blocks(self, suite: Sequence[Subject], options: OrderingOptions) -> int:
        """As many as asked for; by default one in a suite, eight for a single case."""
        return blocks_for(suite, options.blocks)

    def trials(
        self, subject: Subject, suite: Sequence[Subject], block: int, options: OrderingOptions, seed: int
    ) -> tuple[Trial, ...]:
        """One block, neighbours sharing the longest prefixes. Block 0 is each ordering's real prompt."""
        order = next(islice(arms.distractor_orders(subject.parts.distractors, seed), block, None), None)
        if order is None:
            return ()
        made: list[Trial] = []
        for template in options.templates:
            frame = frame_for(subject, template)
            for name in options.orderings:
                arranged = arrangement(subject.case.chunks, name, options.by_hand, seed)
                arm = arm_name(f"ordering:{name}", template)
                made.append(arms.arranged_block(subject.case, subject.parts, arm, arranged, order, block, frame))
        taken = taken_away(subject, options.distraction)
        if taken:
            frame = frame_for(subject, options.templates[0])
            ranked = [chunk for chunk in subject.case.chunks if chunk in subject.parts.distractors]
            for arm, gone in ((WITHOUT_HARD, ranked[:taken]), (WITHOUT_EASY, ranked[-taken:])):
                kept = tuple(chunk for chunk in subject.case.chunks if chunk not in gone)
                made.append(arms.arranged_block(subject.case, subject.parts, arm, kept, order, block, frame))
        return tuple(sorted(made, key=lambda trial: trial.prompt.messages[-1].content))

    def analyse(self, table: Table, options: OrderingOptions, levels: Levels) -> OrderingResult:
        """Gains over the order as retrieved in the first template."""
        asked = [(name, template) for template in options.templates for name in options.orderings]
        names = [arm_name(f"ordering:{name}", template) for name, template in asked]
        problem = unscored(table, names)
        grid = matrix(table, names)
        gains: list[Estimate | None] = [None]
        raw: list[float] = []
        for column in range(1, len(names)):
            pairs = grid.values[:, [0, column]]
            pairs = pairs[~np.isnan(pairs).any(axis=1)]
            gains.append(paired_gain(list(pairs[:, 0]), list(pairs[:, 1]), seed=levels.seed) if len(pairs) else None)
            up, down = int((pairs[:, 1] > pairs[:, 0]).sum()), int((pairs[:, 1] < pairs[:, 0]).sum())
            raw.append(mcnemar(up, down))
        adjusted = holm(raw)
        rows = tuple(
            Comparison(
                arm,
                ordering,
                template,
                arm_figures(table, arm),
                gains[place],
                raw[place - 1] if place else None,
                adjusted[place - 1] if place else None,
            )
            for place, (arm, (ordering, template)) in enumerate(zip(names, asked, strict=True))
        )
        unit = "block" if len(table.facts) == 1 else "case"
        winner, reason = (None, problem) if problem else _winner(rows, levels.alpha, unit)
        return OrderingResult(rows, _distraction(table, options, levels), winner, reason, unit)

    def summary(self, result: OrderingResult) -> str:
        """The winner, or that there is none, and what distraction does."""
        if result.winner is not None:
            best = next(row for row in result.arms if row.arm == result.winner)
            said = f"{best.arm} is better than the order as retrieved: "
            said += f"gain {_signed(best.gain)}, p = {best.p_holm:.3g} after Holm."
        else:
            said = f"No ordering is shown to be better: {result.reason}."
        found = result.distraction
        if found is not None and found.gain is not None:
            low, high = found.gain.low, found.gain.high
            words = (
                "the best-ranked distractors do harm: filter or rerank before you reorder"
                if low > 0
                else "no harm from the best-ranked distractors in particular is shown"
            )
            said += f" Without the {found.taken} best-ranked distractors against without the {found.taken} worst: "
            said += f"{found.gain.value:+z.2f} [{low:+z.2f}, {high:+z.2f}], n = {found.gain.n}: {words}."
        return said


experiments.register("orderings", title="Orderings", order=2)(Orderings())


def arrangement(chunks: Sequence[Chunk], name: str, by_hand: Sequence[str] = (), seed: int = 0) -> tuple[Chunk, ...]:
    """Chunks in the order of an ordering; `by-hand` takes the ids given, chunks not named keep their place in line behind."""
    if name == BY_HAND:
        return arms.in_order(chunks, by_hand)
    return arrange(name, chunks, seed)


def ranks_by_slot(name: str, n: int, by_hand: Sequence[int] = (), seed: int = 0) -> tuple[int, ...]:
    """Which 0-based rank stands in each slot under an ordering that goes by rank alone, for n chunks without metadata."""
    chunks = tuple(Chunk(str(rank), "") for rank in range(n))
    arranged = arrangement(chunks, name, [str(rank) for rank in by_hand], seed)
    return tuple(int(chunk.id) for chunk in arranged)


def taken_away(subject: Subject, wanted: int) -> int:
    """How many distractors the test takes away from either end of the list: the two ends must not overlap."""
    return min(wanted, len(subject.parts.distractors) // 2)


@dataclass(frozen=True, slots=True)
class ExpectedGain:
    """What an ordering should gain by a measured position curve, before any call; see `expected_gain`."""

    ordering: str
    gain: Estimate


def expected_gain(
    answers: Matrix, slots: Sequence[float], table: Table, ordering: str, *, seed: int = 0, level: float = 0.95
) -> ExpectedGain:
    """Sum over ranks j of r(j) [a(slot that the ordering gives rank j) - a(j)], with its interval.

    `answers` holds each case's accuracy at the measured slots (columns), `slots` where these lie as shares of the way from
    the first slot to the last; a(.) is interpolated between them. r(j) is how often the gold is ranked j. Percentile
    bootstrap over cases of both a and r, 2,000 draws. n counts cases.

    Raises:
        ValueError: no case was scored at every slot, or no case has a gold rank.
    """
    x = answers.whole()
    facts = [fact for fact in table.facts if fact.gold_ranks and fact.chunks > 1]
    if not len(x) or not facts:
        raise ValueError("expected_gain needs cases scored at every slot, and gold ranks")
    moved: dict[int, dict[int, int]] = {}
    old, new = [], []
    for fact in facts:
        if fact.chunks not in moved:
            ranks = ranks_by_slot(ordering, fact.chunks)
            moved[fact.chunks] = {rank: slot for slot, rank in enumerate(ranks)}
        rank = min(fact.gold_ranks)
        old.append(rank / (fact.chunks - 1))
        new.append(moved[fact.chunks][rank] / (fact.chunks - 1))
    # Weight of each measured slot in the gain of each case: the interpolation is linear in a.
    basis = np.eye(len(slots))
    weights = np.array(
        [
            [np.interp(after, slots, row) - np.interp(before, slots, row) for row in basis]
            for before, after in zip(old, new, strict=True)
        ]
    )
    rng = np.random.default_rng(seed)
    value = float(weights.mean(axis=0) @ x.mean(axis=0))
    taken_w = rng.multinomial(len(weights), np.full(len(weights), 1 / len(weights)), size=_DRAWS) / len(weights)
    taken_x = rng.multinomial(len(x), np.full(len(x), 1 / len(x)), size=_DRAWS) / len(x)
    draws = ((taken_w @ weights) * (taken_x @ x)).sum(axis=1)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return ExpectedGain(ordering, Estimate(value, float(low), float(high), len(facts)))


def _winner(rows: Sequence[Comparison], alpha: float, unit: str) -> tuple[str | None, str]:
    shown = [
        row
        for row in rows
        if row.gain is not None and row.gain.low > 0 and row.p_holm is not None and row.p_holm <= alpha
    ]
    if shown:
        best = max(shown, key=lambda row: row.gain.value if row.gain is not None else 0.0)
        return best.arm, ""
    n = max((row.figures.n for row in rows), default=0)
    if len(rows) < 2:
        return None, "only one order was sent"
    return None, f"no gain holds over {n} {unit}s after Holm"


def _distraction(table: Table, options: OrderingOptions, levels: Levels) -> Distraction | None:
    if not options.distraction or not {WITHOUT_HARD, WITHOUT_EASY} <= set(table.arms()):
        return None
    pairs = matrix(table, (WITHOUT_EASY, WITHOUT_HARD)).whole()
    gain = paired_gain(list(pairs[:, 0]), list(pairs[:, 1]), seed=levels.seed) if len(pairs) else None
    # A short list has fewer to take from either end.
    taken = max(min(options.distraction, (fact.chunks - len(fact.gold_ranks)) // 2) for fact in table.facts)
    return Distraction(taken, arm_figures(table, WITHOUT_HARD), arm_figures(table, WITHOUT_EASY), gain)


def _signed(gain: Estimate | None) -> str:
    return "unknown" if gain is None else f"{gain.value:+z.2f} [{gain.low:+z.2f}, {gain.high:+z.2f}], n = {gain.n}"
