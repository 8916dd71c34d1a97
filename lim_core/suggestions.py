"""Evidence in other words: a chunk that seems to state the answer though no accepted wording stands in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lim_core.errors import ConfigError
from lim_core.rerankers import bm25_scores, passage_scores
from lim_core.sentences import sentences
from lim_core.types import Bench, Case, Chunk, Json

# Embedding costs some 10 ms a passage on two cores; of a larger corpus only the best by BM25 are looked at.
MOST_TEXTS = 200
# Measured on invented sentences with all-MiniLM-L6-v2, see tests/test_suggestions.py.
_CLOSE = 0.55
_GAIN = 0.04


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A chunk to confirm as gold, or none. `similarity` is the cosine of its best sentence to question and answer.

    `corpus_ranks` are the ranks by embedding of that chunk in the corpus. `obstacle` says why nothing could be looked at.
    """

    chunk_id: str | None
    similarity: float | None = None
    corpus_ranks: dict[str, Json] = field(default_factory=dict)
    obstacle: str | None = None

    def to_json(self) -> dict[str, Json]:
        """As the evidence keeps it."""
        return {"id": self.chunk_id, "similarity": self.similarity, "obstacle": self.obstacle}


def suggest(case: Case, bench: Bench) -> Suggestion:
    """The chunk, candidate or corpus entry with the sentence most like the question with its answer.

    Being on the subject is not enough, for every distractor is: the answer must bring the sentence nearer to the question
    than it was without it. Opens the embedder.
    """
    texts: dict[str, Chunk] = {}
    for part in (case.chunks, case.candidates or (), case.corpus or ()):
        for chunk in part:
            texts.setdefault(chunk.id, chunk)
    chunks = _nearest(case, list(texts.values()))
    if not chunks or not case.answers:
        return Suggestion(None)
    try:
        embedder = bench.open_embedder()
    except ConfigError as error:
        return Suggestion(None, obstacle=str(error))
    lines = [(chunk.id, s.text) for chunk in chunks for s in sentences(chunk.text)[:20] if len(s.text) < 600]
    if not lines:
        return Suggestion(None)
    asked = passage_scores(case.question, [text for _, text in lines], embedder)
    best = Suggestion(None)
    for answer in case.answers[:4]:
        answered = passage_scores(f"{case.question} {answer}", [text for _, text in lines], embedder)
        for at, (chunk_id, _) in enumerate(lines):
            similarity = float(answered[at])
            if (
                similarity >= _CLOSE
                and similarity - float(asked[at]) >= _GAIN
                and similarity > (best.similarity or 0.0)
            ):
                best = Suggestion(chunk_id, round(similarity, 4))
    return best


def _nearest(case: Case, chunks: Sequence[Chunk]) -> list[Chunk]:
    if len(chunks) <= MOST_TEXTS:
        return list(chunks)
    scores = bm25_scores(f"{case.question} {' '.join(case.answers[:4])}", [f"{c.title}\n{c.text}" for c in chunks])
    return [chunks[int(at)] for at in sorted((-scores).argsort(kind="stable")[:MOST_TEXTS])]
