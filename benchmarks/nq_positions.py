"""Real passages: accuracy at first, middle and last, with oracle and closed-book, random and hard distractors.

Reads NaturalQuestions-Open oracle rows (Liu et al. 2024) from ../shared/data, which is not part of the product.

    python benchmarks/nq_positions.py [--questions 40] [--documents 10] [--seed 0]
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lim_core.judges import judges
from lim_core.text.normalise import contains_any

from lim_core import arms
from lim_core.backends import open_model, spec_for
from lim_core.runner import Runner
from lim_core.stats import wilson
from lim_core.types import Budget, Case, Chunk, Outcome

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "nq-open-oracle.jsonl.gz"


def rows() -> list[dict]:
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def build(all_rows: list[dict], picks: list[int], documents: int, kind: str, seed: int) -> list[Case]:
    """Cases whose distractors are other questions' gold passages without an answer of this one."""
    import bm25s

    texts = [row["ctxs"][0]["text"] for row in all_rows]
    ranker = bm25s.BM25()
    ranker.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    rng = random.Random(seed)
    cases = []
    for pick in picks:
        row = all_rows[pick]
        if kind == "hard":
            query = bm25s.tokenize([row["question"]], show_progress=False)
            near, _ = ranker.retrieve(query, k=60, show_progress=False)
            others = [int(index) for index in near[0]]
        else:
            others = rng.sample(range(len(all_rows)), 200)
        fit = [i for i in others if i != pick and not contains_any(row["answers"], f"{texts[i]}")]
        chosen = [pick, *fit[: documents - 1]]
        chunks = tuple(Chunk(f"d{i}", texts[i], all_rows[i]["ctxs"][0]["title"]) for i in chosen)
        answers = tuple(answer for answer in row["answers"] if answer.strip("* "))
        cases.append(Case(f"nq{pick}-{kind}", row["question"], chunks, answers=answers, gold_ids=(f"d{pick}",)))
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--documents", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--base-url")
    arguments = parser.parse_args()
    if not DATA.exists():
        print(f"skipped: {DATA.name} is not beside the project")
        return
    all_rows = rows()
    picks = random.Random(arguments.seed).sample(range(len(all_rows)), arguments.questions)
    model = open_model(spec_for(arguments.model, arguments.base_url))
    print(f"{arguments.questions} questions, {arguments.documents} documents, {model.name}, judge contains")
    for kind in ("random", "hard"):
        cases = build(all_rows, picks, arguments.documents, kind, arguments.seed)
        trials = []
        for case in cases:
            parts = arms.split(case.chunks, case.gold_ids)
            slots = arms.named_slots(parts)
            trials += arms.closed(case, range(1)) + arms.oracle(case, parts, range(1))
            trials += arms.position_block(case, parts, parts.distractors, 0, slots)
        started = time.monotonic()
        scores: dict[str, list[Outcome]] = defaultdict(list)
        with Runner(
            lambda: model, {case.id: case for case in cases}, judges["contains"].part, budget=Budget(calls=None)
        ) as run:
            for result in run.run(trials, kind):
                scores[result.trial.arm].append(result.verdict.outcome)
            tally = run.tally
        seconds = time.monotonic() - started
        print(f"\n{kind} distractors: {tally.made} calls, {seconds:.0f} s")
        print(f"  prompt tokens {tally.prompt_tokens}, of which from the cache {tally.cached_prompt_tokens}")
        print(f"  {'arm':<16}{'n':>4}{'right':>7}{'accuracy':>10}   95% interval   unscored")
        for arm in ("closed-book", "oracle", "position:first", "position:middle", "position:last"):
            outcomes = scores[arm]
            scored = [outcome for outcome in outcomes if outcome.scored]
            right = sum(outcome is Outcome.CORRECT for outcome in scored)
            interval = wilson(right, len(scored))
            print(
                f"  {arm:<16}{len(scored):>4}{right:>7}{interval.value:>10.3f}   [{interval.low:.2f}, {interval.high:.2f}]"
                f"{len(outcomes) - len(scored):>11}"
            )
    model.close()


if __name__ == "__main__":
    main()
