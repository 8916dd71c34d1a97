"""Prompt tokens read over the trie bound: named slots and every slot, against a shuffled order, in one run.

The bound is the number of nodes in the token trie of the prompts: each distinct prefix read once. An order of sending is as
good as its tokens read, which the server reports (prompt tokens minus those from its cache).

    python benchmarks/prefix_reuse.py [--model embedded|scripted] [--chunks 20] [--blocks 2]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lim_core import arms
from lim_core.backends import ModelSpec, open_model
from lim_core.judges import judges
from lim_core.runner import Runner
from lim_core.types import Budget, Case, Chunk, Model, Trial

WORDS = [
    "ferry",
    "permit",
    "harbour",
    "archive",
    "ledger",
    "bakery",
    "window",
    "orchard",
    "signal",
    "courtyard",
    "lantern",
    "census",
    "quarry",
    "chapel",
    "meadow",
]


def build(chunks: int) -> Case:
    rng = random.Random(3)
    texts = [" ".join(rng.choice(WORDS) for _ in range(40)) + "." for _ in range(chunks)]
    return Case("prefix", "Which word comes first?", tuple(Chunk(f"c{i}", t, f"Note {i}") for i, t in enumerate(texts)))


def trie_bound(model: Model, trials: Sequence[Trial]) -> int:
    """Nodes of the trie of the prompts, in tokens: characters shared by neighbours in sorted order, counted as tokens."""
    texts = sorted(trial.prompt.messages[0].content for trial in trials)
    total = 0
    before = ""
    for text in texts:
        shared = next(
            (i for i, (a, b) in enumerate(zip(before, text, strict=False)) if a != b), min(len(before), len(text))
        )
        total += model.counter.count(text).n - model.counter.count(text[:shared]).n
        before = text
    return total


def read_tokens(model: Model, case: Case, blocks: Sequence[Sequence[Trial]]) -> tuple[int, int]:
    sent = read = 0
    with Runner(lambda: model, {case.id: case}, judges["contains"].part, budget=Budget(calls=None)) as runner:
        for trials in blocks:
            for result in runner.run(trials, "bench"):
                usage = result.call.usage
                sent += usage.prompt_tokens or 0
                read += (usage.prompt_tokens or 0) - (usage.cached_prompt_tokens or 0)
    return sent, read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--chunks", type=int, default=20)
    parser.add_argument("--blocks", type=int, default=2)
    arguments = parser.parse_args()
    case = build(arguments.chunks)
    parts = arms.split(case.chunks, ("c0",))
    options = {"slots": 1} if arguments.model == "scripted" else {}
    model = open_model(ModelSpec(arguments.model, options=options))
    print(f"{model.name}, {arguments.chunks} chunks, {arguments.blocks} blocks, {model.slots} slot")
    for name, slots in (
        ("first/q1/middle/q3/last", ("first", "q1", "middle", "q3", "last")),
        ("every slot", ("all",)),
    ):
        orders = list(islice(arms.distractor_orders(parts.distractors, 1), arguments.blocks))
        wanted = arms.named_slots(parts, slots)
        blocks = [arms.position_block(case, parts, order, block, wanted) for block, order in enumerate(orders)]
        bound = sum(trie_bound(model, block) for block in blocks)
        sent, read = read_tokens(model, case, blocks)
        naive = [random.Random(block).sample(list(trials), len(trials)) for block, trials in enumerate(blocks)]
        _, naive_read = read_tokens(model, case, naive)
        print(
            f"  {name:<24} sent {sent}, bound {bound}, read {read} = {read / bound:.3f} of the bound; "
            f"shuffled order read {naive_read} = {naive_read / bound:.3f}; saved {1 - read / naive_read:.0%}, "
            f"read over sent {read / sent:.3f}"
        )
    model.close()


if __name__ == "__main__":
    main()
