"""Error rate, power and calls of the position test, by simulation. Run: python benchmarks/stop_rule.py [--sims N]

Simulates first, middle and last slot of one case with planted accuracies, three calls a block, and asks lim's own stop rule
after every block. Brackets (oracle, closed-book) and the caller's least number of blocks come on top.
false: an effect where accuracy is equal, or "flat" where it is not. named right / wrong: shape at the end, the rest unclear.
McNemar: calls of the fixed-size exact test (one-sided, alpha/2 an edge) that reaches power .95, and that reaches the power
of the stop rule at 64 blocks.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lim_core.stats import slot_bets
from lim_core.stats.significance import sign_test
from lim_core.stats.stop_rule import NAME_BLOCKS, NAME_SUPPORT, SlotTest

BUDGETS = (8, 16, 32, 64)
ALPHA, DELTA = 0.05, 0.2
# First and last share most of their distractor layout, the middle little of it.
DEPENDENT = np.array([[1.0, 0.2, 0.9], [0.2, 1.0, 0.2], [0.9, 0.2, 1.0]])


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    accuracy: tuple[float, float, float]
    shape: str
    dependent: bool = False
    target: int | None = None


EQUAL = tuple(Scenario(f"equal {p}", (p, p, p), "flat") for p in (0.3, 0.5, 0.7, 0.9)) + tuple(
    Scenario(f"equal {p}, dependent arms", (p, p, p), "flat", dependent=True) for p in (0.3, 0.5, 0.7)
)
PLANTED = (
    Scenario("U 1/0", (1, 0, 1), "u", target=18),
    Scenario("U .9/.2", (0.9, 0.2, 0.9), "u", target=24),
    Scenario("U .9/.5", (0.9, 0.5, 0.9), "u", target=45),
    Scenario("U .7/.4", (0.7, 0.4, 0.7), "u"),
    Scenario("recency .95/.05", (0.05, 0.05, 0.95), "recency", target=27),
    Scenario("primacy .9/.2", (0.9, 0.2, 0.2), "primacy", target=33),
    Scenario("inverted .2/.9", (0.2, 0.9, 0.2), "inverted", target=45),
    Scenario("U .9/.5, dependent arms", (0.9, 0.5, 0.9), "u", dependent=True),
    Scenario("recency .7/.3", (0.3, 0.3, 0.7), "recency"),
)


@dataclass(frozen=True, slots=True)
class Course:
    """What happened in every simulated run; blocks count from 1, `never` where it did not happen."""

    effect: NDArray[np.int64]
    flat: NDArray[np.int64]
    done: NDArray[np.int64]
    code: NDArray[np.int64]


def simulate(scenario: Scenario, sims: int, blocks: int, seed: int) -> NDArray[np.int64]:
    """Kinds of block outcomes, shape (sims, blocks)."""
    normal = np.random.default_rng(seed).standard_normal((sims, blocks, 3))
    if scenario.dependent:
        normal = normal @ np.linalg.cholesky(DEPENDENT).T
    cut = [math.inf if p >= 1 else -math.inf if p <= 0 else NormalDist().inv_cdf(p) for p in scenario.accuracy]
    return ((normal < np.array(cut)) @ np.array([4, 2, 1])).astype(np.int64)


def first_true(hit: NDArray[np.bool_], never: int) -> NDArray[np.int64]:
    return np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, never)


def run(counts: NDArray[np.int64], draws: int) -> Course:
    """Ask the stop rule after every block of every run."""
    sims, blocks, _ = counts.shape
    never = blocks + 1
    enough = -math.log(ALPHA)
    effect = first_true(slot_bets.log_e_values(counts) >= enough, never)
    flat = first_true(slot_bets.log_flat_wealth(counts, DELTA) >= enough, never)
    flat = np.where(flat < effect, flat, never)
    effect = np.where(flat < never, never, effect)
    done, code = flat.copy(), np.full(sims, slot_bets.SHAPES.index("unclear"))
    waiting = np.flatnonzero(effect < never)
    for wait in range(NAME_BLOCKS + 1):
        waiting = waiting[effect[waiting] + wait <= blocks]
        now = counts[waiting, effect[waiting] + wait - 1]
        codes = slot_bets.shape_codes(*slot_bets.edge_gains(now))
        sure = slot_bets.shape_support(now, codes, draws) >= NAME_SUPPORT
        code[waiting[sure]] = codes[sure]
        ended = sure | (wait == NAME_BLOCKS)
        done[waiting[ended]] = effect[waiting[ended]] + wait
        waiting = waiting[~ended]
    return Course(effect, flat, done, code)


def check_against_class(kinds: NDArray[np.int64], course: Course, runs: int) -> None:
    """Replay some runs through SlotTest itself; the vectorised course must say the same."""
    never = kinds.shape[1] + 1
    for i in range(runs):
        test = SlotTest(ALPHA, DELTA)
        effect = flat = never
        for block, kind in enumerate(kinds[i], start=1):
            test.add(bool(kind & 4), bool(kind & 2), bool(kind & 1))
            effect = min(effect, block) if test.effect else effect
            flat = min(flat, block) if test.flat else flat
            if effect < never or flat < never:
                break
        assert (effect, flat) == (course.effect[i], course.flat[i]), (i, effect, flat)


def mcnemar_calls(counts: NDArray[np.int64], power: float, inverted: bool) -> str:
    """Calls of the smallest fixed-size exact McNemar test of power .95, and of the power given."""
    blocks = counts.shape[1]
    table = np.array([[sign_test(b, c) <= ALPHA / 2 for c in range(blocks + 1)] for b in range(blocks + 1)])
    rejects = np.zeros(counts.shape[:2], dtype=bool)
    for gain in (slot_bets.FIRST_GAIN[:8], slot_bets.LAST_GAIN[:8]):
        better, worse = counts @ (gain > 0).astype(int), counts @ (gain < 0).astype(int)
        rejects |= table[worse, better] if inverted else table[better, worse]
    words = []
    for wanted in (0.95, power):
        reached = np.flatnonzero(rejects.mean(axis=0) >= wanted)
        words.append(f"{3 * (reached[0] + 1)}" if len(reached) else f">{3 * blocks}")
    return ", ".join(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sims", type=int, default=4000, help="runs of each scenario (default 4000)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began, most = time.perf_counter(), BUDGETS[-1]
    print(f"{options.sims} runs a scenario, alpha {ALPHA}, delta {DELTA}, budgets in blocks of three calls\n")

    print(
        f"{'no effect planted':26}"
        + "".join(f"{f'false @{b}':>11}" for b in BUDGETS)
        + f"{'flat @64':>11}{'mean calls':>12}"
    )
    worst = 0.0
    for number, scenario in enumerate(EQUAL):
        kinds = simulate(scenario, options.sims, most, options.seed + number)
        course = run(np.cumsum(np.eye(8, dtype=np.int64)[kinds], axis=1), draws=200)
        check_against_class(kinds, course, runs=20)
        false = [(course.effect <= b).mean() for b in BUDGETS]
        worst = max(worst, false[-1])
        mean = 3 * np.minimum(course.done, most).mean()
        print(
            f"{scenario.name:26}"
            + "".join(f"{rate:11.4f}" for rate in false)
            + f"{(course.flat <= most).mean():11.3f}{mean:12.1f}"
        )
    print(
        f"largest false rate {worst:.4f} (limit {ALPHA}), standard error {math.sqrt(0.05 * 0.95 / options.sims):.4f}\n"
    )

    print("calls to the effect (median / mean over all runs, those without a verdict at their budget)")
    print(
        f"{'planted':26}{'target':>7}"
        + "".join(f"{f'power @{b}: median/mean':>25}" for b in BUDGETS)
        + f"{'false':>8}{'McNemar':>11}{'named: median':>15}{'right':>8}{'wrong':>8}"
    )
    for number, scenario in enumerate(PLANTED):
        kinds = simulate(scenario, options.sims, 3 * most, options.seed + 100 + number)
        long = np.cumsum(np.eye(8, dtype=np.int64)[kinds], axis=1)
        course = run(long[:, :most], draws=400)
        check_against_class(kinds[:, :most], course, runs=20)
        cells = ""
        for b in BUDGETS:
            calls = 3 * np.minimum(course.effect, b)
            cells += f"{f'{(course.effect <= b).mean():.3f}: {np.median(calls):.0f}/{calls.mean():.1f}':>25}"
        ended = 3 * np.median(np.minimum(course.done, most))
        named = course.code != slot_bets.SHAPES.index("unclear")
        right = course.code == slot_bets.SHAPES.index(scenario.shape)
        power = (course.effect <= most).mean()
        print(
            f"{scenario.name:26}{scenario.target or '-':>7}{cells}{(course.flat <= most).mean():8.4f}"
            f"{mcnemar_calls(long, power, scenario.shape == 'inverted'):>11}{ended:15.0f}"
            f"{right.mean():8.3f}{(named & ~right).mean():8.4f}"
        )
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
