"""How often the suite test names a shape, with an effect planted and without. Run: python benchmarks/curve_error_rates.py

40 cases, five slots, one call each. Each case has its own accuracy, the same at every slot but for the planted effect, with a
standard deviation of 1.2 on the logit scale (or none): suites mix easy cases and hard ones. The first table is the share
of flat suites that are called by some shape, which must not exceed alpha (.05) beyond the noise of the draws; the second
what planted effects are called.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from lim_core.experiments import Cell, Facts, Levels, Table
from lim_core.experiments.positions import SLOTS
from lim_core.experiments.shapes import curve_test
from lim_core.stats import wilson

CASES, FLAT_DRAWS, DRAWS = 40, 400, 100
ARMS = tuple(f"position:{name}" for name in SLOTS)
SHAPES = ("u", "primacy", "recency", "cliff", "inverted", "flat", "unclear")
NAMED = ("u", "primacy", "recency", "cliff", "inverted")


@dataclass(frozen=True, slots=True)
class Plan:
    """Mean accuracy at each slot, and the spread of the cases on the logit scale."""

    name: str
    slots: tuple[float, ...]
    spread: float
    draws: int


def main() -> None:
    """Print both tables."""
    began = time.perf_counter()
    flat = [
        Plan(f"flat {p:g}, {'cases differ' if spread else 'cases alike'}", (p,) * 5, spread, FLAT_DRAWS)
        for p in (0.3, 0.5, 0.7, 0.9)
        for spread in (0.0, 1.2)
    ]
    planted = [
        Plan("U .9/.5", (0.9, 0.5, 0.5, 0.5, 0.9), 1.2, DRAWS),
        Plan("U .9/.2", (0.9, 0.2, 0.2, 0.2, 0.9), 1.2, DRAWS),
        Plan("U .75/.55", (0.75, 0.55, 0.55, 0.55, 0.75), 1.2, DRAWS),
        Plan("recency .9/.5", (0.5, 0.5, 0.5, 0.5, 0.9), 1.2, DRAWS),
        Plan("primacy .9/.5", (0.9, 0.5, 0.5, 0.5, 0.5), 1.2, DRAWS),
        Plan("inverted .2/.9", (0.2, 0.9, 0.9, 0.9, 0.2), 1.2, DRAWS),
        Plan("cliff .95/.1", (0.95, 0.95, 0.95, 0.1, 0.1), 1.2, DRAWS),
        Plan("all right", (1.0,) * 5, 0.0, DRAWS),
    ]
    with ProcessPoolExecutor() as pool:
        counted = list(pool.map(_count, [*flat, *planted]))
    print(f"{'suite of 40 cases':<28}{'draws':>6}{'named':>8}  95% interval   {''.join(f'{s:>10}' for s in SHAPES)}")
    for plan, found in zip([*flat, *planted], counted, strict=True):
        named = wilson(sum(found[shape] for shape in NAMED), plan.draws)
        shares = "".join(f"{found[shape] / plan.draws:>10.3f}" for shape in SHAPES)
        print(f"{plan.name:<28}{plan.draws:>6}{named.value:>8.3f}  [{named.low:.3f}, {named.high:.3f}] {shares}")
    print(f"{time.perf_counter() - began:.0f} s")


def _count(plan: Plan) -> Counter[str]:
    rng = np.random.default_rng(7)
    found: Counter[str] = Counter()
    for draw in range(plan.draws):
        chance = _chances(plan.slots, plan.spread * rng.normal(size=(CASES, 1)))
        answers = rng.random(chance.shape) < chance
        found[curve_test(_table(answers.tolist()), ARMS, Levels(seed=draw), "case").shape] += 1
    return found


def _chances(slots: Sequence[float], shift: np.ndarray) -> np.ndarray:
    """Accuracy of each case at each slot, shape (cases, slots): logits around each slot's mean, centred to keep it."""
    p = np.clip(np.array(slots), 1e-9, 1 - 1e-9)
    logit = np.log(p / (1 - p))
    # The mean over cases must be the slot's accuracy: a few steps of Newton on the centre.
    grid = np.linspace(-4, 4, 201)
    weight = np.exp(-grid * grid / 2) / np.exp(-grid * grid / 2).sum()
    scale = float(np.std(shift)) if shift.any() else 0.0
    centre = logit.copy()
    for _ in range(8):
        at = 1 / (1 + np.exp(-(centre[None] + scale * grid[:, None])))
        centre += (p - weight @ at) / np.maximum(weight @ (at * (1 - at)), 1e-9)
    return 1 / (1 + np.exp(-(centre[None] + shift)))


def _table(answers: list[list[bool]]) -> Table:
    cells = tuple(
        Cell(str(case), arm, 0, slot, None, int(row[slot]), int(not row[slot]), 0, 0, 0, 1, 0, None, None, None)
        for case, row in enumerate(answers)
        for slot, arm in enumerate(ARMS)
    )
    return Table(cells, tuple(Facts(str(case), 5, (2,)) for case in range(len(answers))))


if __name__ == "__main__":
    main()
