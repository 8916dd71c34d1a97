"""Writes data/handbook-suite.jsonl from benchmarks/suite_documents.json: invented handbooks, ranked by lim's own rerankers.

Each question retrieves from its own handbook, by BM25 or by embedding as its entry says, with the words of `query` where the
user's first message was not the question itself. The same documents give the same bytes.

    python benchmarks/make_suite.py [--out data/handbook-suite.jsonl]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lim_core.cases import case_to_json
from lim_core.embeddings import open_embedder
from lim_core.evidence import gold_of
from lim_core.evidence.conflicts import find_conflicts
from lim_core.rerankers import bm25_scores, passage_scores
from lim_core.text.normalise import contains_any
from lim_core.types import Case, Chunk, ScoreDirection

DOCUMENTS = ROOT / "benchmarks" / "suite_documents.json"
SUITE = ROOT / "data" / "handbook-suite.jsonl"
# Chunks of a case: drawn by the case's id, so that prompts differ in length and a case keeps its own.
FEWEST, MOST = 12, 20
# Length of the ranked list that the chunks are the head of.
CANDIDATES = 28
SHORTEST_ANSWER = 3
WORDS = range(33, 53)
KINDS = ("person", "amount", "time", "thing")


@dataclass(frozen=True, slots=True)
class Ask:
    """A question about one paragraph. `query` is what the retriever searches with."""

    id: str
    question: str
    answers: tuple[str, ...]
    kind: str
    ranker: str
    query: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph of a handbook and the question about it, if any."""

    chunk: Chunk
    ask: Ask | None


@dataclass(frozen=True, slots=True)
class Handbook:
    """Paragraphs of one source, in document order."""

    source: str
    paragraphs: tuple[Paragraph, ...]


def read_handbooks(path: Path) -> tuple[Handbook, ...]:
    """The handbooks of a documents file; a missing field is a KeyError that names it."""
    return tuple(
        Handbook(
            book["source"],
            tuple(
                Paragraph(
                    Chunk(
                        entry["id"],
                        entry["text"],
                        entry["title"],
                        metadata={"source": book["name"], "section": entry["section"], "date": entry["date"]},
                    ),
                    _ask(entry["asks"]) if "asks" in entry else None,
                )
                for entry in book["paragraphs"]
            ),
        )
        for book in json.loads(path.read_text(encoding="utf-8"))
    )


def _ask(entry: dict) -> Ask:
    question = entry["question"]
    query = entry.get("query", question)
    return Ask(entry["id"], question, tuple(entry["answers"]), entry["kind"], entry["ranker"], query)


def faults_of_documents(books: Sequence[Handbook]) -> Iterator[str]:
    """What is wrong with the documents, one sentence each."""
    every = [paragraph for book in books for paragraph in book.paragraphs]
    asks = [paragraph.ask for paragraph in every if paragraph.ask]
    for what, names in (("paragraph", [p.chunk.id for p in every]), ("question", [ask.id for ask in asks])):
        yield from (f"The {what} id {name} stands {n} times." for name, n in Counter(names).items() if n > 1)
    for book in books:
        if len(book.paragraphs) < CANDIDATES:
            yield f"{book.source} has {len(book.paragraphs)} paragraphs, and {CANDIDATES} are ranked."
        for paragraph in book.paragraphs:
            words = len(paragraph.chunk.text.split())
            if words not in WORDS:
                yield f"{paragraph.chunk.id} has {words} words, not {WORDS.start} to {WORDS.stop - 1}."
            if paragraph.ask:
                yield from _faults_of_ask(paragraph.ask, paragraph.chunk, every)
                if not paragraph.ask.id.startswith(f"{book.source}-"):
                    yield f"{paragraph.ask.id} does not begin with its source {book.source}."


def _faults_of_ask(ask: Ask, gold: Chunk, every: Sequence[Paragraph]) -> Iterator[str]:
    if ask.kind not in KINDS:
        yield f"{ask.id} asks for {ask.kind!r}, which is none of {', '.join(KINDS)}."
    if ask.ranker not in ("bm25", "embedding"):
        yield f"{ask.id} names the ranker {ask.ranker!r}: give bm25 or embedding."
    if not contains_any(ask.answers, gold.text):
        yield f"{ask.id}: no answer stands in {gold.id}."
    for answer in ask.answers:
        if len(answer) < SHORTEST_ANSWER:
            yield f"{ask.id}: the answer {answer!r} is shorter than {SHORTEST_ANSWER} characters."
        if contains_any((answer,), ask.question) or contains_any((answer,), ask.query):
            yield f"{ask.id}: the answer {answer!r} stands in the question or query."
        for other in every:
            if other.chunk is not gold and contains_any((answer,), f"{other.chunk.title}\n{other.chunk.text}"):
                yield f"{ask.id}: the answer {answer!r} stands in {other.chunk.id} too."


def rank(ask: Ask, chunks: Sequence[Chunk]) -> list[Chunk]:
    """The chunks best first, each with its score; ties keep their order in the handbook."""
    texts = [f"{chunk.title}\n{chunk.text}" for chunk in chunks]
    scores = (
        bm25_scores(ask.query, texts) if ask.ranker == "bm25" else passage_scores(ask.query, texts, open_embedder())
    )
    # Four digits: the last ones differ between machines.
    scored = [
        Chunk(chunk.id, chunk.text, chunk.title, round(float(score), 4), metadata=chunk.metadata)
        for chunk, score in zip(chunks, scores, strict=True)
    ]
    return sorted(scored, key=lambda chunk: -(chunk.score or 0.0))


def build(book: Handbook) -> list[Case]:
    """The cases of one handbook, in document order of their gold paragraphs."""
    chunks = [paragraph.chunk for paragraph in book.paragraphs]
    cases = []
    for paragraph in book.paragraphs:
        ask = paragraph.ask
        if ask is None:
            continue
        ranked = rank(ask, chunks)[:CANDIDATES]
        kept = random.Random(ask.id).randint(FEWEST, MOST)
        cases.append(
            Case(
                ask.id,
                ask.question,
                tuple(ranked[:kept]),
                answers=ask.answers,
                gold_ids=(paragraph.chunk.id,),
                candidates=tuple(ranked),
                score_direction=ScoreDirection.SIMILARITY,
                tags=("suite:handbook", f"source:{book.source}", f"asks:{ask.kind}", f"ranker:{ask.ranker}"),
            )
        )
    return cases


def gold_rank(case: Case) -> int | None:
    """0-based rank of the gold chunk among the chunks; None where it was cut off."""
    return next((rank for rank, chunk in enumerate(case.chunks) if chunk.id in case.gold_ids), None)


def faults_of_case(case: Case) -> Iterator[str]:
    """What is wrong with a built case, one sentence each."""
    if gold_rank(case) is None:
        place = [chunk.id for chunk in case.candidates or ()].index(case.gold_ids[0]) if _is_candidate(case) else None
        ranked = "not among the candidates" if place is None else f"ranked {place + 1}"
        yield f"{case.id}: the gold chunk is {ranked}, and {len(case.chunks)} chunks are kept: change query or ranker."
        return
    gold = gold_of(case)
    if gold.spoilers:
        yield f"{case.id}: {', '.join(gold.spoilers)} hold the answer too."
    for conflict in find_conflicts(case, [chunk for chunk in case.chunks if chunk.id in gold.ids]):
        yield f"{case.id}: {conflict.other_id} gives {conflict.other!r} for what is asked."


def _is_candidate(case: Case) -> bool:
    return any(chunk.id in case.gold_ids for chunk in case.candidates or ())


def show_spread(cases: Sequence[Case]) -> None:
    """Prints how far down the gold chunks are ranked, in all and by where in the list that is."""
    ranks = {case.id: rank for case in cases if (rank := gold_rank(case)) is not None}
    sizes = {case.id: len(case.chunks) for case in cases}
    thirds = Counter(min(2, 3 * rank // sizes[name]) for name, rank in ranks.items())
    print(f"{len(cases)} cases, {min(sizes.values())} to {max(sizes.values())} chunks")
    print(f"gold ranked first {sum(not rank for rank in ranks.values())}, ", end="")
    print(f"in the first, middle, last third {thirds[0]}, {thirds[1]}, {thirds[2]}")
    print("gold ranks:", " ".join(f"{rank + 1}x{n}" for rank, n in sorted(Counter(ranks.values()).items())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=SUITE)
    arguments = parser.parse_args()
    books = read_handbooks(DOCUMENTS)
    faults = list(faults_of_documents(books))
    cases = [] if faults else [case for book in books for case in build(book)]
    faults += [fault for case in cases for fault in faults_of_case(case)]
    if faults:
        sys.exit("\n".join(faults))
    lines = [json.dumps(case_to_json(case), ensure_ascii=False) + "\n" for case in cases]
    arguments.out.write_text("".join(lines), encoding="utf-8", newline="\n")
    show_spread(cases)
    print(f"wrote {arguments.out} ({arguments.out.stat().st_size / 1e6:.2f} MB)")


if __name__ == "__main__":
    main()
