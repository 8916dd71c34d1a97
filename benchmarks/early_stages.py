"""Stages 1 to 3 without embeddings: seconds for 200 chunks in a 60,000-token prompt, and for larger and harsher cases.

Run: python -m benchmarks.early_stages
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lim_core.judges import judges
from lim_core.prompts import lay_out
from lim_core.stages import stages
from lim_core.tokens import counter_for
from lim_core.types import Bench, Case, Chunk, Embedder, Finding, Message, Model, Trial, TrialResult, Usage

EARLY = ("truncation", "retrieval", "assembly")
QUESTION = "What is the fee for a market stall permit?"
GOLD = "The fee for a market stall permit is 45 euros per day. "
ROUNDS = 5


class _NoRunner:
    def run(self, trials: Sequence[Trial], stage: str) -> Iterator[TrialResult]:
        raise AssertionError("an early stage sent a call")


def _no_model() -> Model:
    raise AssertionError("an early stage opened the model")


def _no_embedder() -> Embedder:
    raise AssertionError("an early stage opened the embedder")


def _bench(model: str | None) -> Bench:
    return Bench(_no_model, _no_embedder, _NoRunner(), counter_for(model), judges["contains"].part, None, "embedded")


def _case(chunks: int, words: int) -> Case:
    """Invented prose: frequent short words and rare long ones, about 1.3 tokens a word."""
    dice = random.Random(1)
    common = re.findall(
        r"\w+", "the of a and for office is to day council river gate in water road market must town by rule"
    )
    rare = ["".join(dice.choices("abcdefghilmnoprstu", k=dice.randint(5, 10))) for _ in range(3000)]
    parts = []
    for number in range(chunks):
        text = " ".join(dice.choice(common) if dice.random() < 0.8 else dice.choice(rare) for _ in range(words))
        parts.append(Chunk(f"c{number}", (GOLD if number == chunks // 2 else "") + text + f" {number}."))
    sent = lay_out(QUESTION, parts).messages
    return Case(
        "bench", QUESTION, tuple(parts), ("45 euros",), prompt=sent, corpus=tuple(parts), context_window=128_000
    )


def _seconds(case: Case, bench: Bench) -> tuple[float, dict[str, float], Finding]:
    found: dict[str, Finding] = {}
    each = {}
    for name in EARLY:
        started = time.perf_counter()
        found[name] = stages[name].part(case, bench, found)
        each[name] = time.perf_counter() - started
    return sum(each.values()), each, found["truncation"]


def _print(title: str, case: Case, bench: Bench) -> None:
    # A new object each time: what was found for the last case is kept for the next stage.
    runs = [_seconds(replace(case), bench) for _ in range(ROUNDS)]
    total, each, finding = sorted(runs, key=lambda run: run[0])[ROUNDS // 2]
    shares = "  ".join(f"{name} {seconds:.3f}" for name, seconds in each.items())
    tokens = finding.evidence["prompt_tokens"]
    print(f"{title:44} {tokens:>9,} tokens  {total:7.3f} s   {shares}   first run {runs[0][0]:.3f} s")


def main() -> None:
    """Print the median of five runs for each case, and the first run, which also fills tables."""
    base = _case(200, 220)
    print(f"{'case':44} {'prompt':>16}  {'median':>9}   each stage")
    for model in (None, "gpt-4o"):
        bench = _bench(model)
        _print(f"200 chunks, whole, {bench.counter.source}", base, bench)
    bench = _bench(None)
    text = base.prompt[0].content if base.prompt else ""
    _print(
        "200 chunks, cut in half at the start", replace(base, prompt=(Message("user", text[len(text) // 2 :]),)), bench
    )
    _print("200 chunks, as JSON in JSON", replace(base, prompt=(Message("user", json.dumps(json.dumps(text))),)), bench)
    clipped = "\n".join(chunk.text[:200] for chunk in base.chunks)
    _print("200 chunks, each clipped to 200 characters", replace(base, prompt=(Message("user", clipped),)), bench)
    _print("200 chunks, server read a third", replace(base, usage=Usage(20_000)), bench)
    large = _case(5000, 80)
    _print("5,000 chunks, whole", large, bench)
    _print("one chunk of 200,000 characters", _case(1, 38_000), bench)


if __name__ == "__main__":
    main()
