"""What an experiment is analysed from: its trials folded by case, arm and block, and the few facts of each case.

The unit of every figure is the case: repeats and blocks inside a case are not independent, so they are averaged first.
With a single case the unit is the block, one distinct order of the distractors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from lim_core.stats import clustered_mean, wilson
from lim_core.types import Estimate, Outcome, TrialResult

# Shares of unscored trials that leave a comparison undetermined: in all, and between two arms (design, section 3).
MOST_UNSCORED = 0.2


@dataclass(frozen=True, slots=True)
class Cell:
    """The trials of one case, arm and block.

    `replies_right` and `replies_other` count different scored replies. Tokens are means over the trials, as the server
    reported them; `seconds` is the mean latency of the calls that were really sent; None where unknown.
    """

    case_id: str
    arm: str
    block: int
    slot: int | None
    depth: float | None
    correct: int
    wrong: int
    abstained: int
    empty: int
    error: int
    replies_right: int
    replies_other: int
    prompt_tokens: float | None
    completion_tokens: float | None
    seconds: float | None

    @property
    def n(self) -> int:
        """Scored trials."""
        return self.correct + self.wrong + self.abstained

    @property
    def trials(self) -> int:
        """All trials, the unscored ones too."""
        return self.n + self.empty + self.error

    @property
    def accuracy(self) -> float | None:
        """Share correct of the scored trials, None without one."""
        return self.correct / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class Facts:
    """What the analysis needs to know of a case: how many chunks it has, the 0-based ranks of its gold, its tags."""

    case_id: str
    chunks: int
    gold_ranks: tuple[int, ...]
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Cells with the facts of their cases; figures are computed from nothing else."""

    cells: tuple[Cell, ...]
    facts: tuple[Facts, ...]

    def arms(self) -> tuple[str, ...]:
        """Arm names in the order they first appear."""
        return tuple(dict.fromkeys(cell.arm for cell in self.cells))

    def only(self, case_ids: Iterable[str]) -> Table:
        """The part that belongs to these cases."""
        wanted = set(case_ids)
        return Table(
            tuple(cell for cell in self.cells if cell.case_id in wanted),
            tuple(fact for fact in self.facts if fact.case_id in wanted),
        )

    def tagged(self, tag: str) -> Table:
        """The part whose cases carry a tag."""
        return self.only(fact.case_id for fact in self.facts if tag in fact.tags)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How the trials of an arm came out."""

    correct: int
    wrong: int
    abstained: int
    empty: int
    error: int


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """One arm over all its units.

    `n` counts units: cases; with one case only, blocks, or different replies where one prompt was sent again. `trials`
    counts scored trials, `right` the correct ones among them. `accuracy` is the mean over units with its 95% interval:
    Wilson where every unit is wholly right or wrong, else the interval that knows the clusters. `index` and `depth` are the
    gold's mean place, tokens and seconds medians.
    """

    arm: str
    n: int
    trials: int
    right: int
    accuracy: float | None
    low: float | None
    high: float | None
    index: float | None
    depth: float | None
    prompt_tokens: float | None
    completion_tokens: float | None
    seconds: float | None
    outcomes: Outcomes


@dataclass(frozen=True, slots=True)
class Matrix:
    """Accuracy of each unit (row) in each arm (column), in [0, 1]; NaN where nothing was scored."""

    units: tuple[str, ...]
    values: NDArray[np.float64]

    def whole(self) -> NDArray[np.float64]:
        """The rows that are scored in every arm, shape (units, arms)."""
        rows: NDArray[np.float64] = self.values[~np.isnan(self.values).any(axis=1)]
        return rows


def cells_of(results: Iterable[TrialResult]) -> tuple[Cell, ...]:
    """Fold finished trials that are not read from a store."""
    groups: defaultdict[tuple[str, str, int], list[TrialResult]] = defaultdict(list)
    for result in results:
        groups[result.trial.case_id, result.trial.arm, result.trial.block].append(result)
    cells: list[Cell] = []
    for (case_id, arm, block), group in groups.items():
        count = {outcome: sum(r.verdict.outcome is outcome for r in group) for outcome in Outcome}
        cells.append(
            Cell(
                case_id,
                arm,
                block,
                group[0].trial.slot,
                next((r.depth for r in group if r.depth is not None), None),
                count[Outcome.CORRECT],
                count[Outcome.WRONG],
                count[Outcome.ABSTAINED],
                count[Outcome.EMPTY],
                count[Outcome.ERROR],
                len({r.call.text for r in group if r.verdict.outcome is Outcome.CORRECT}),
                len({r.call.text for r in group if r.verdict.outcome in (Outcome.WRONG, Outcome.ABSTAINED)}),
                _mean(r.call.usage.prompt_tokens for r in group),
                _mean(r.call.usage.completion_tokens for r in group),
                _mean(r.call.seconds for r in group if not r.cached and r.call.fault is None),
            )
        )
    return tuple(cells)


def unit_of(table: Table, cell: Cell) -> str:
    """The name of the unit that a cell belongs to."""
    return str(cell.block) if len(table.facts) == 1 else cell.case_id


def _of_arms(table: Table, arms: Sequence[str]) -> list[Cell]:
    """The cells of these arms, by case as in the suite and by block.

    Trials finish in any order; figures with a seed, and the last digit of a sum, must not depend on it.
    """
    place = {fact.case_id: index for index, fact in enumerate(table.facts)}
    wanted = set(arms)
    mine = (cell for cell in table.cells if cell.arm in wanted)
    return sorted(mine, key=lambda cell: (place.get(cell.case_id, len(place)), cell.block))


def matrix(table: Table, arms: Sequence[str], *, by_case: bool = False) -> Matrix:
    """Units by arms; with `by_case` the unit is the case also where there is one only.

    An arm that is sent once a case (block 0 only) counts for its unit 0 where there is one case.
    """
    sums: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    units: dict[str, None] = {}
    for cell in _of_arms(table, arms):
        unit = cell.case_id if by_case else unit_of(table, cell)
        units[unit] = None
        pair = sums[unit, cell.arm]
        pair[0] += cell.correct
        pair[1] += cell.n
    values = np.full((len(units), len(arms)), np.nan)
    for row, unit in enumerate(units):
        for column, arm in enumerate(arms):
            right, n = sums.get((unit, arm), (0, 0))
            if n:
                values[row, column] = right / n
    return Matrix(tuple(units), values)


def arm_figures(table: Table, arm: str) -> ArmFigures:
    """One arm's accuracy with its interval, and what its prompts cost."""
    mine = _of_arms(table, (arm,))
    by_unit: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    bracket = len(table.facts) == 1 and len({cell.block for cell in mine}) == 1
    for cell in mine:
        pair = by_unit[unit_of(table, cell)]
        pair[0] += cell.correct
        pair[1] += cell.n
    shares = [right / n for right, n in by_unit.values() if n]
    right, trials = sum(cell.correct for cell in mine), sum(cell.n for cell in mine)
    if bracket and trials:
        # One prompt sent several times: equal replies are one observation (design, section 4).
        said, other = sum(cell.replies_right for cell in mine), sum(cell.replies_other for cell in mine)
        accuracy: Estimate | None = replace(wilson(said, said + other), value=right / trials)
    else:
        accuracy = share(shares)
    slots = [cell.slot for cell in mine if cell.slot is not None]
    return ArmFigures(
        arm=arm,
        n=0 if accuracy is None else accuracy.n,
        trials=trials,
        right=right,
        accuracy=None if accuracy is None else accuracy.value,
        low=None if accuracy is None else accuracy.low,
        high=None if accuracy is None else accuracy.high,
        index=_mean(slots),
        depth=_mean(cell.depth for cell in mine),
        prompt_tokens=_median(cell.prompt_tokens for cell in mine),
        completion_tokens=_median(cell.completion_tokens for cell in mine),
        seconds=_median(cell.seconds for cell in mine),
        outcomes=Outcomes(
            right,
            sum(cell.wrong for cell in mine),
            sum(cell.abstained for cell in mine),
            sum(cell.empty for cell in mine),
            sum(cell.error for cell in mine),
        ),
    )


def share(values: Sequence[float]) -> Estimate | None:
    """Mean of unit accuracies with a 95% interval: Wilson where all are 0 or 1, else that of `clustered_mean`."""
    if not values:
        return None
    if all(value in (0.0, 1.0) for value in values):
        return wilson(int(sum(values)), len(values))
    return clustered_mean(values, range(len(values)))


def unscored(table: Table, arms: Sequence[str]) -> str:
    """Why a comparison of these arms is undetermined for lack of scored trials; empty where it is not."""
    lost = {arm: [0, 0] for arm in arms}
    for cell in table.cells:
        if cell.arm in lost:
            lost[cell.arm][0] += cell.empty + cell.error
            lost[cell.arm][1] += cell.trials
    shares = {arm: missing / total for arm, (missing, total) in lost.items() if total}
    if not shares:
        return "no trial has finished yet"
    missing, total = (sum(pair[place] for pair in lost.values()) for place in (0, 1))
    if missing / total > MOST_UNSCORED:
        return f"{missing} of {total} trials gave nothing to score"
    if max(shares.values()) - min(shares.values()) > MOST_UNSCORED:
        worst = max(shares, key=lambda arm: shares[arm])
        return (
            f"{shares[worst]:.0%} of the trials of {worst} gave nothing to score, more than 20 points above another arm"
        )
    return ""


def _mean(values: Iterable[float | int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None
