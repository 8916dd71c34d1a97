"""Length by position: the gold at several depths of prompts of several lengths, filled up with the user's own documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from lim_core import arms
from lim_core.errors import InputError
from lim_core.evidence import holders
from lim_core.experiments.cells import ArmFigures, Table, arm_figures
from lim_core.experiments.options import Levels, share_of, whole_of, wholes_of
from lim_core.experiments.registry import experiments
from lim_core.experiments.subjects import PLAIN, Subject, blocks_for
from lim_core.stats import worst_position
from lim_core.tokens import counter_for
from lim_core.types import Chunk, Counter, Estimate, Json, Trial

LENGTHS = (250, 500, 1000, 2000)


@dataclass(frozen=True, slots=True)
class GridOptions:
    """Prompt lengths in tokens, how many evenly spaced depths, and the accuracy that the worst depth must keep."""

    lengths: tuple[int, ...] = LENGTHS
    depths: int = 5
    threshold: float = 0.7
    blocks: int = 0

    def __post_init__(self) -> None:
        if not self.lengths or min(self.lengths) < 50 or max(self.lengths) > 10_000_000:
            raise InputError("lengths must name numbers of tokens of 50 or more, such as 500,1000,2000.")
        if not 2 <= self.depths <= 41:
            raise InputError(f"depths is {self.depths}: give 2 to 41.")
        if self.blocks < 0:
            raise InputError(f"blocks is {self.blocks}: give a whole number above 0.")

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> GridOptions:
        """Options as stored with a run."""
        return cls(
            wholes_of(value, "lengths", LENGTHS),
            whole_of(value, "depths", 5),
            share_of(value, "threshold", 0.7),
            whole_of(value, "blocks", 0),
        )


@dataclass(frozen=True, slots=True)
class GridCell:
    """One length and depth (a share of the way from first to last slot)."""

    length: int
    depth: float
    figures: ArmFigures


@dataclass(frozen=True, slots=True)
class GridRow:
    """One length: its median prompt tokens as the server counted, and its worst depth with an interval that allows for
    having been picked. `holds` is True where even the interval's low end is at the threshold, False where its high end is
    below, None where that is open."""

    length: int
    prompt_tokens: float | None
    worst_depth: float | None
    worst: Estimate | None
    holds: bool | None


@dataclass(frozen=True, slots=True)
class GridResult:
    """All cells, and the operating range: the largest length up to which no length's worst depth falls below the threshold.

    `operating_range` goes by the measured accuracy, `shown_range` by the interval's low end; None where there is none.
    """

    cells: tuple[GridCell, ...]
    rows: tuple[GridRow, ...]
    threshold: float
    operating_range: int | None
    shown_range: int | None
    unit: str


class LengthByPosition:
    """Fills prompts to a length with the suite's own chunks and puts the gold at evenly spaced depths."""

    needs_retrieved_gold = True
    anytime = False
    read = GridOptions.from_json

    def templates(self, options: GridOptions) -> tuple[str, ...]:
        """The plain one."""
        return (PLAIN,)

    def blocks(self, suite: Sequence[Subject], options: GridOptions) -> int:
        """As many as asked for; by default one in a suite, eight for a single case."""
        return blocks_for(suite, options.blocks)

    def trials(
        self, subject: Subject, suite: Sequence[Subject], block: int, options: GridOptions, seed: int
    ) -> tuple[Trial, ...]:
        """One block: every length that the documents fill, every depth, each prompt beginning like the one before."""
        fill = filler(subject, suite)
        counter = counter_for(subject.case.model)
        frame = subject.frame
        base = counter.count_messages(frame.lay_out(subject.case.question, subject.parts.gold).messages).n
        sizes = _sizes(fill, counter, max(options.lengths))
        made: list[Trial] = []
        for length in sorted(options.lengths):
            used, total = 0, base
            while used < len(sizes) and total + sizes[used] / 2 <= length:
                total += sizes[used]
                used += 1
            # What the documents cannot fill, or what the gold alone exceeds, is no cell of this length.
            if not 0.75 * length <= total <= 1.25 * length or not used:
                continue
            orders = arms.distractor_orders(fill[:used], seed)
            order = next((o for index, o in enumerate(orders) if index == block), None)
            if order is None:
                continue
            for index, share in sorted(_depths(used, options.depths).items(), reverse=True):
                prompt = frame.lay_out(subject.case.question, arms.place(order, subject.parts.gold, index))
                made.append(Trial(subject.case.id, grid_arm(length, share), block, 0, prompt, index))
        return tuple(made)

    def analyse(self, table: Table, options: GridOptions, levels: Levels) -> GridResult:
        """Cells with n and interval, and the range of lengths that holds."""
        present = set(table.arms())
        cells: list[GridCell] = []
        rows: list[GridRow] = []
        for length in sorted(options.lengths):
            mine = [
                GridCell(length, share, arm_figures(table, grid_arm(length, share)))
                for share in (step / (options.depths - 1) for step in range(options.depths))
                if grid_arm(length, share) in present
            ]
            if not mine:
                continue
            cells += mine
            rows.append(_row(length, mine, options.threshold))
        return GridResult(
            tuple(cells),
            tuple(rows),
            options.threshold,
            _range(rows, lambda row: row.worst is not None and row.worst.value >= options.threshold),
            _range(rows, lambda row: row.holds is True),
            "block" if len(table.facts) == 1 else "case",
        )

    def summary(self, result: GridResult) -> str:
        """The operating range for this threshold, on these documents."""
        if not result.rows:
            return "Undetermined: no trial yet; a length that the suite's documents cannot fill is left out."
        if result.operating_range is None:
            first = result.rows[0]
            worst = first.worst
            said = (
                "unknown" if worst is None else f"{worst.value:.0%} [{worst.low:.0%}, {worst.high:.0%}], n = {worst.n}"
            )
            wanted = f"{result.threshold:.0%} or more"
            return f"No length keeps its worst depth at {wanted}: at {first.length:,} tokens it is {said}."
        row = next(row for row in result.rows if row.length == result.operating_range)
        worst = row.worst
        said = (
            ""
            if worst is None
            else f" (worst depth {worst.value:.0%} [{worst.low:.0%}, {worst.high:.0%}], n = {worst.n})"
        )
        holds = f"up to {result.operating_range:,} tokens the worst depth stays at {result.threshold:.0%} or more{said}"
        limits = "This holds for these documents and this model."
        if result.shown_range is None:
            return f"Measured, but not yet shown by the interval at any length: {holds}. {limits}"
        return f"Shown up to {result.shown_range:,} tokens; measured, {holds}. {limits}"


experiments.register("grid", title="Length by position", order=3)(LengthByPosition())

# Number, brackets and line end that a chunk is wrapped in, in tokens.
_LABEL_TOKENS = 6


def grid_arm(length: int, share: float) -> str:
    """The arm of one cell."""
    return f"grid:{length}:{share * 100:g}"


def _depths(last: int, depths: int) -> dict[int, float]:
    """Evenly spaced depths by the slot they fall on, of slots 0 to `last`; where slots are few the nearest depth names one."""
    exact = [step * last / (depths - 1) for step in range(depths)]
    near = sorted(range(depths), key=lambda step: abs(exact[step] - round(exact[step])), reverse=True)
    return {round(exact[step]): step / (depths - 1) for step in near}


def _sizes(fill: Sequence[Chunk], counter: Counter, longest: int) -> list[int]:
    """Tokens of the chunks in their order, as far as prompts of the longest length can reach."""
    sizes: list[int] = []
    for chunk in fill:
        if sum(sizes) > longest:
            break
        sizes.append(counter.count(f"{chunk.title} {chunk.text}").n + _LABEL_TOKENS)
    return sizes


def filler(subject: Subject, suite: Sequence[Subject]) -> tuple[Chunk, ...]:
    """What fills a prompt: the case's own distractors, its other candidates and corpus, then other cases' chunks.

    Chunks that hold an answer, and doubles of id or text, are left out. An id is a case's own, so other cases' chunks get
    their case's id before it.
    """
    case = subject.case
    own = (*subject.parts.distractors, *(case.candidates or ()), *(case.corpus or ()))
    others = (
        replace(chunk, id=f"{other.case.id}/{chunk.id}")
        for other in suite
        if other is not subject
        for chunk in other.case.chunks
    )
    ids = {chunk.id for chunk in subject.parts.gold}
    texts = {chunk.text for chunk in subject.parts.gold}
    kept: list[Chunk] = []
    for chunk in (*own, *others):
        if chunk.id not in ids and chunk.text not in texts:
            ids.add(chunk.id)
            texts.add(chunk.text)
            kept.append(chunk)
    spoiled = set(holders(case, kept))
    return tuple(chunk for chunk in kept if chunk.id not in spoiled)


def _row(length: int, cells: Sequence[GridCell], threshold: float) -> GridRow:
    tokens = [cell.figures.prompt_tokens for cell in cells if cell.figures.prompt_tokens is not None]
    median = sorted(tokens)[len(tokens) // 2] if tokens else None
    if any(not cell.figures.n for cell in cells):
        return GridRow(length, median, None, None, None)
    right = [round((cell.figures.accuracy or 0) * cell.figures.n) for cell in cells]
    found = worst_position(right, [cell.figures.n for cell in cells])
    estimate = found.estimate
    holds = True if estimate.low >= threshold else False if estimate.high < threshold else None
    return GridRow(length, median, cells[found.index].depth, estimate, holds)


def _range(rows: Sequence[GridRow], passes: Callable[[GridRow], bool]) -> int | None:
    largest = None
    for row in rows:
        if not passes(row):
            break
        largest = row.length
    return largest
