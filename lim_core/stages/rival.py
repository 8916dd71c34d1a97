"""Whether a chunk with another value is what leads the answer astray: the same blocks with and without it, in pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from lim_core import arms
from lim_core.arms import Split
from lim_core.stats import sign_test
from lim_core.types import Bench, Case, Finding, Frame, Outcome, Trial, TrialResult

# Enough that every pair in favour gives a one-sided sign test far below .05 (2 to the power of -8).
_BLOCKS = 8


@dataclass(frozen=True, slots=True)
class Removal:
    """Right answers with and without the rivals, over the blocks in which both were scored."""

    rivals: tuple[str, ...]
    n: int
    right_with: int
    right_without: int
    restores: bool


def rivals_of(retrieval: Finding | None, gold_ids: Sequence[str]) -> tuple[str, ...]:
    """Chunks that stage 2 found to give another value for the thing asked, gold chunks left out."""
    rows = retrieval.evidence.get("conflicts") if retrieval is not None else None
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        return ()
    named: list[str] = []
    for row in rows:
        ids = row.get("ids") if isinstance(row, Mapping) else None
        if isinstance(ids, Sequence) and not isinstance(ids, str):
            named += [str(name) for name in ids if str(name) not in gold_ids]
    return tuple(dict.fromkeys(named))


def try_removal(case: Case, bench: Bench, parts: Split, frame: Frame, rivals: Sequence[str]) -> Removal:
    """Run the gold's own slot with and without the rivals in the same distractor orders.

    It restores the answer where most calls without them are right and the paired sign test is at most alpha.
    """
    gone = set(rivals)
    results: list[TrialResult] = []
    for block, order in enumerate(islice(arms.distractor_orders(parts.distractors, bench.seed), _BLOCKS)):
        whole = arms.place(order, parts.gold, parts.own_index)
        prompts = {
            "position:own": whole,
            f"without:{','.join(rivals)}": tuple(chunk for chunk in whole if chunk.id not in gone),
        }
        trials = [
            Trial(case.id, arm, block, 0, frame.lay_out(case.question, chunks), chunks.index(parts.gold[0]))
            for arm, chunks in prompts.items()
        ]
        results += bench.runner.run(trials, "position")
        if bench.runner.stopped is not None:
            break
    right: dict[bool, dict[int, bool]] = {True: {}, False: {}}
    for result in results:
        if result.verdict.outcome.scored:
            kept = result.trial.arm == "position:own"
            right[kept][result.trial.block] = result.verdict.outcome is Outcome.CORRECT
    blocks = right[True].keys() & right[False].keys()
    gained = sum(right[False][block] and not right[True][block] for block in blocks)
    lost = sum(right[True][block] and not right[False][block] for block in blocks)
    right_without = sum(right[False][block] for block in blocks)
    restores = bool(blocks) and 2 * right_without > len(blocks) and sign_test(gained, lost) <= bench.alpha
    return Removal(tuple(rivals), len(blocks), sum(right[True][block] for block in blocks), right_without, restores)
