"""Evidence in other words: a chunk that seems to state the answer though no accepted wording stands in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lim_core.errors import ConfigError
from lim_core.rerankers import bm25_scores
from lim_core.text.sentences import sentences
from lim_core.text.values import Value, values
from lim_core.types import Bench, Case, Chunk, Json

# Embedding costs some 10 ms a passage on two cores; of a larger corpus only the best by BM25 are looked at.
MOST_TEXTS = 200
# Longer stretches without a full stop are tables or lists, not statements.
_LONGEST = 600
# A choice, not a measured error rate: set by hand with all-MiniLM-L6-v2 on six invented questions, each with one paraphrase
# of its answer and three sentences on the same subject. Four of the six pass and none of the eighteen others, on the very
# sentences it was set on; other texts may do worse, so a suggestion is always for the user to confirm.
_CLOSE = 0.58
_GAIN = 0.015


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A chunk to confirm as gold, or none. `similarity` is the cosine of its best sentence to question and answer.

    `obstacle` says why nothing could be looked at.
    """

    chunk_id: str | None
    similarity: float | None = None
    obstacle: str | None = None

    def to_json(self) -> dict[str, Json]:
        """As the evidence keeps it."""
        return {"id": self.chunk_id, "similarity": self.similarity, "obstacle": self.obstacle}


def suggest(case: Case, bench: Bench) -> Suggestion:
    """The chunk, candidate or corpus entry with the sentence most like the question with its answer.

    Being on the subject is not enough, for every distractor is: the answer must bring the sentence nearer to the question
    than it was without it, and a sentence with another value of the same kind is out. Opens the embedder.
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
    lines = _lines(case, chunks)
    if not lines:
        return Suggestion(None)
    answers = case.answers[:4]
    vectors = embedder(
        [case.question, *(f"{case.question} {answer}" for answer in answers), *(line.text for line in lines)]
    )
    queries, found = vectors[: len(answers) + 1], vectors[len(answers) + 1 :]
    asked = found @ queries[0]
    best = Suggestion(None)
    for answer, query in zip(answers, queries[1:], strict=True):
        wanted, answered = values(answer), found @ query
        for at, line in enumerate(lines):
            similarity = float(answered[at])
            near = similarity >= _CLOSE and similarity - float(asked[at]) >= _GAIN
            if near and similarity > (best.similarity or 0.0) and not _contradicts(wanted, values(line.text)):
                best = Suggestion(line.chunk_id, round(similarity, 4))
    return best


@dataclass(frozen=True, slots=True)
class _Line:
    chunk_id: str
    text: str


def _lines(case: Case, chunks: Sequence[Chunk]) -> list[_Line]:
    """Sentences to look at; of many those that share most with question and answers."""
    lines = [_Line(chunk.id, s.text) for chunk in chunks for s in sentences(chunk.text) if len(s.text) < _LONGEST]
    if len(lines) <= MOST_TEXTS:
        return lines
    scores = bm25_scores(f"{case.question} {' '.join(case.answers[:4])}", [line.text for line in lines])
    return [lines[int(at)] for at in sorted((-scores).argsort(kind="stable")[:MOST_TEXTS])]


def _contradicts(wanted: Sequence[Value], there: Sequence[Value]) -> bool:
    """Whether values of the answer's kind are there, and none is the answer's."""
    rivals = [value for value in there if value.kind in {one.kind for one in wanted}]
    return bool(rivals) and not {value.key for value in rivals} & {one.key for one in wanted}


def _nearest(case: Case, chunks: Sequence[Chunk]) -> list[Chunk]:
    if len(chunks) <= MOST_TEXTS:
        return list(chunks)
    scores = bm25_scores(f"{case.question} {' '.join(case.answers[:4])}", [f"{c.title}\n{c.text}" for c in chunks])
    return [chunks[int(at)] for at in sorted((-scores).argsort(kind="stable")[:MOST_TEXTS])]
