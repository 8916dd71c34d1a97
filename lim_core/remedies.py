"""The remedies, each run on the very case and reported with its paired gain, or named as not tried with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from lim_core import arms
from lim_core.arms import Split
from lim_core.evidence import gold_of
from lim_core.orderings import arrange, orderings
from lim_core.rerankers import rerankers
from lim_core.stats import paired_gain
from lim_core.types import Bench, Case, Cause, Chunk, Outcome, Remedy, Trial, TrialResult

# Causes after which layout or volume can be the remedy.
TREATABLE = frozenset({Cause.LOST_IN_THE_MIDDLE, Cause.POSITION_SENSITIVE, Cause.DISTRACTED, Cause.PROMPT_SENSITIVE})
# As many as the shortest position test runs, so that most prompts of a remedy were paid for already.
BLOCKS = 6
_CUTS = (5, 3)
_BEFORE = "position:own"


@dataclass(frozen=True, slots=True)
class Plan:
    """One remedy to try: its arm name, its title, and the chunks as it would send them (None: not offered, see note)."""

    name: str
    title: str
    chunks: tuple[Chunk, ...] | None
    note: str = ""


def try_remedies(case: Case, bench: Bench, sent: Sequence[str] | None = None) -> tuple[Remedy, ...]:
    """Run every remedy that can change this case's prompt, in the blocks of the position test, paired with the own slot.

    `sent` are the chunk ids in the order of the prompt as sent; without it the retrieved order is taken as what was sent.
    Block 0 is the remedy's real prompt; further blocks keep the gold's place in it and vary the distractors.
    """
    as_sent = arms.in_order(case.chunks, sent) if sent else case.chunks
    parts = arms.split(as_sent, gold_of(case).ids)
    # Sampled replies are drawn anew: the position test stopped on its own draws, so they flatter whatever comes after.
    repeat = 1 if _sampled(case) else 0
    frame = arms.frame_of(case).frame
    plans = tuple(_offer(plan, as_sent) for plan in plan_remedies(case, bench, parts))
    results: list[TrialResult] = []
    for block, order in enumerate(islice(arms.distractor_orders(parts.distractors, bench.seed), BLOCKS)):
        own = arms.place(order, parts.gold, parts.own_index) if block else as_sent
        trials = [arms.arranged_block(case, parts, _BEFORE, own, order, block, frame)]
        trials += [
            arms.arranged_block(case, parts, plan.name, plan.chunks, order, block, frame)
            for plan in plans
            if plan.chunks is not None
        ]
        trials = [replace(trial, repeat=repeat) for trial in trials]
        results += bench.runner.run(_sent_by_prefix(trials), "remedies")
        if bench.runner.stopped is not None:
            break
    return tuple(_report(plan, results, bench.seed) for plan in plans)


def plan_remedies(case: Case, bench: Bench, parts: Split) -> Iterator[Plan]:
    """Which remedies are worth a call on this case, and why the others are not."""
    gold = {chunk.id for chunk in parts.gold}
    n = len(case.chunks)
    retrieved = _rank(case.chunks, gold)
    for entry in sorted(rerankers, key=lambda entry: entry.name != "embedding"):
        picks = entry.part(case.question, case.chunks, bench.open_embedder)
        ranked = tuple(case.chunks[index] for index in picks)
        rank = _rank(ranked, gold)
        name = f"rerank:{entry.name}"
        yield Plan(name, entry.title, ranked, f"ranks the gold chunk {rank + 1} of {n}")
        edged = arrange("edges", ranked)
        if rank:
            yield Plan(f"{name}+edges", f"{entry.title}, best at both edges", edged, _lands(edged, gold))
        for k in _CUTS:
            if k >= n:
                continue
            title = f"{entry.title}, cut to {k}"
            if rank >= k:
                yield Plan(
                    f"{name}+k:{k}", title, None, f"not tried: it would cut out the gold chunk, ranked {rank + 1}"
                )
            else:
                yield Plan(f"{name}+k:{k}", title, ranked[:k], f"keeps the gold chunk at rank {rank + 1} of {k}")
    for name in ("edges", "reverse"):
        arranged = arrange(name, case.chunks)
        yield Plan(f"ordering:{name}", orderings[name].title, arranged, _lands(arranged, gold))
    for k in _CUTS:
        if retrieved < k < n:
            note = f"keeps the gold chunk, retrieved at rank {retrieved + 1}"
            yield Plan(f"k:{k}", f"Top {k} as retrieved", case.chunks[:k], note)


def _sampled(case: Case) -> bool:
    temperature = case.params.get("temperature")
    return isinstance(temperature, int | float) and temperature > 0


def _offer(plan: Plan, as_sent: Sequence[Chunk]) -> Plan:
    """The plan, or why it is not worth a call: a remedy that sends the same prompt cannot change the answer."""
    if plan.chunks == tuple(as_sent):
        return Plan(plan.name, plan.title, None, "not tried: it leaves every chunk where it is")
    return plan


def _lands(chunks: Sequence[Chunk], gold: set[str]) -> str:
    slot = _rank(chunks, gold) + 1
    return f"puts the gold chunk at slot {slot} of {len(chunks)}"


def _rank(chunks: Sequence[Chunk], gold: set[str]) -> int:
    """0-based place of the last gold chunk: a cut must keep them all."""
    return max(index for index, chunk in enumerate(chunks) if chunk.id in gold)


def _sent_by_prefix(trials: Sequence[Trial]) -> list[Trial]:
    """Neighbours share the longest prefixes when prompts are sent in the order of their text."""
    key: Callable[[Trial], str] = lambda trial: trial.prompt.messages[-1].content  # noqa: E731
    return sorted(trials, key=key)


def _report(plan: Plan, results: Sequence[TrialResult], seed: int) -> Remedy:
    before = _by_block(results, _BEFORE)
    after = _by_block(results, plan.name)
    blocks = sorted(before.keys() & after.keys())
    if plan.chunks is None or not blocks:
        note = plan.note if plan.chunks is None else f"not tried: no calls left; {plan.note}"
        return Remedy(plan.name, plan.title, False, 0, None, None, None, None, None, note)
    pairs = [(before[block], after[block]) for block in blocks]
    gain = paired_gain([old for old, _ in pairs], [new for _, new in pairs], seed=seed)
    n = len(pairs)
    return Remedy(
        plan.name,
        plan.title,
        True,
        n,
        sum(old for old, _ in pairs) / n,
        sum(new for _, new in pairs) / n,
        gain.value,
        gain.low,
        gain.high,
        plan.note,
    )


def _by_block(results: Sequence[TrialResult], arm: str) -> dict[int, bool]:
    return {
        result.trial.block: result.verdict.outcome is Outcome.CORRECT
        for result in results
        if result.trial.arm == arm and result.verdict.outcome.scored
    }
