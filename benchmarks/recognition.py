"""How well the importers recognise what people paste: every fixture, and 200 seeded mutations of them.

A mutation renames keys that a shape does not need, reorders keys, puts the file into an envelope, or takes scores away.
Right is: the shape of the original, and the texts of every chunk list in the original order. Prints one line a failure and
the totals; exits 1 where fewer than 98% are right or another shape was claimed.

    python benchmarks/recognition.py [--mutations 200] [--seed 7]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lim_core.errors import InputError
from lim_core.importers import import_file

FIXTURES = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "importers"
# By the beginning of a fixture's name: the format it must be recognised as. "" is no case at all, said in one sentence.
EXPECTED = {
    "langchain": "langchain",
    "langsmith": "langsmith",
    "llamaindex": "llamaindex",
    "haystack": "haystack",
    "openinference": "openinference",
    "otel_genai_ids_only": "",
    "otel_genai": "otel-genai",
    "langfuse": "langfuse",
    "ragas": "ragas",
    "deepeval": "deepeval",
    "promptfoo": "promptfoo",
    "ragchecker": "ragchecker",
    "longbench": "longbench",
    "liu": "liu",
    "openai": "chat",
    "anthropic": "chat",
    "chunks.csv": "table",
    "chunks.tsv": "table",
    "chunks_": "text",
    "prompt.txt": "text",
    "lim_": "lim",
    "records": "records",
    "log_line": "records",
}
# Keys whose absence or other name must not matter.
OPTIONAL = frozenset(
    """type source page file_name mimetype start_char_idx end_char_idx embedding sparse_embedding extra tags error end_time
    status_code status_message latency totalCost public htmlPath costDetails domain sub_domain difficulty length next_cursor
    label cost latencyMs promptIdx testIdx created object system_fingerprint service_tier logprobs level environment
    completionStartTime version metadata_separator metadata_template text_template additional_metadata comments source_file
    name description score_direction events links resource""".split()  # noqa: SIM905 - a table of words
)
SCORES = frozenset({"score", "distance", "similarity"})


@dataclass(frozen=True)
class Seen:
    """What an import made of a file: its format ("" for a refusal) and every list of texts."""

    format: str
    texts: tuple[tuple[str, ...], ...]


def expected_format(name: str) -> str:
    """The format a fixture must be recognised as."""
    return next(shape for start, shape in EXPECTED.items() if name.startswith(start))


def see(data: bytes, name: str) -> Seen:
    """Import and keep what counts; proposals count where a prompt came alone."""
    try:
        imported = import_file(data, name)
    except InputError:
        return Seen("", ())
    lists: list[tuple[str, ...]] = []
    for case in imported.cases:
        proposal = imported.proposals.get(case.id)
        lists.append(tuple(c.text for c in (proposal.chunks if proposal and not case.chunks else case.chunks)))
        lists.append(tuple(c.text for c in case.candidates or ()))
    return Seen(imported.report.format, tuple(lists))


def mutate(value: Any, rng: random.Random, kind: str) -> Any:
    """One mutation, all through a value."""
    if isinstance(value, list):
        return [mutate(item, rng, kind) for item in value]
    if not isinstance(value, dict):
        return value
    items = [(key, mutate(inner, rng, kind)) for key, inner in value.items()]
    if kind == "reorder":
        rng.shuffle(items)
    elif kind == "rename":
        known = value.get("type") in KEPT_TYPES
        items = [(f"x_{k}" if k in OPTIONAL and not known and rng.random() < 0.7 else k, v) for k, v in items]
    elif kind == "no-scores":
        items = [(k, v) for k, v in items if k.rpartition(".")[2] not in SCORES]
    return dict(items)


# Objects in which `type` or `name` is what the shape is known by.
KEPT_TYPES = frozenset({"constructor", "message", "text", "RETRIEVER", "GENERATION", "SPAN", "human", "system", "ai"})


def mutants(count: int, seed: int) -> list[tuple[str, str, bytes]]:
    """Name of the fixture, what was done to it, and the file."""
    rng = random.Random(seed)
    names = sorted(p.name for p in FIXTURES.iterdir() if p.suffix in (".json", ".jsonl") and expected_format(p.name))
    names = [name for name in names if "utf16" not in name and "bom" not in name]
    made: list[tuple[str, str, bytes]] = []
    kinds = ("rename", "reorder", "nest", "no-scores")
    for number in range(count):
        name, kind = names[number % len(names)], kinds[(number // len(names) + number) % len(kinds)]
        text = (FIXTURES / name).read_text("utf-8")
        lines = name.endswith(".jsonl")
        values = [json.loads(line) for line in text.splitlines()] if lines else [json.loads(text)]
        values = [_nested(value, rng) if kind == "nest" else mutate(value, rng, kind) for value in values]
        separator = "\n" if lines else ""
        made.append((name, kind, separator.join(json.dumps(value) for value in values).encode()))
    return made


def _nested(value: Any, rng: random.Random) -> Any:
    for _ in range(rng.randint(1, 2)):
        name = rng.choice(["data", "payload", "body_json", "export", "items", "trace_export"])
        value = {name: value, "exported_at": "2026-05-02T09:00:00Z"} if rng.random() < 0.7 else [value]
    return value


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    started = time.perf_counter()
    right = wrong = total = 0
    for path in sorted(FIXTURES.iterdir()):
        seen, want = see(path.read_bytes(), path.name), expected_format(path.name)
        total += 1
        right += seen.format == want
        wrong += seen.format not in (want, "")
        if seen.format != want:
            print(f"fixture {path.name}: {seen.format or 'refused'} instead of {want}")
    fixtures = total
    for name, kind, data in mutants(given.mutations, given.seed):
        want = see((FIXTURES / name).read_bytes(), name)
        seen = see(data, name)
        total += 1
        wrong += seen.format not in (want.format, "")
        # Field order is no part of JSON's meaning, but a data frame saved by columns is ordered by it.
        good = seen.format == want.format and sorted(seen.texts) == sorted(want.texts)
        right += good
        if not good:
            sizes = f"{[len(t) for t in seen.texts]} for {[len(t) for t in want.texts]}"
            print(f"{kind} of {name}: {seen.format or 'refused'}, {sizes}")
    share = right / total
    print(
        f"{fixtures} fixtures and {total - fixtures} mutations: right {right}/{total} = {share:.1%}, wrong shape {wrong},"
    )
    print(f"{time.perf_counter() - started:.1f} s")
    return 0 if share >= 0.98 and wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
