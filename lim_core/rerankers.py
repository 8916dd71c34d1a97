"""Rerankers: they order chunks by the question alone and never know the gold chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lim_core.registry import Registry
from lim_core.text.terms import tokenise
from lim_core.types import Chunk, Embedder

if TYPE_CHECKING:
    from numpy.typing import NDArray

Reranker = Callable[[str, Sequence[Chunk], Callable[[], Embedder]], Sequence[int]]

rerankers: Registry[Reranker] = Registry("reranker")

# A passage of about 900 characters stays within the 256 tokens that the default embedding model reads.
PASSAGE_CHARS = 900
# A longer text is judged by this many passages, evenly spread.
MAX_PASSAGES = 64


@rerankers.register("bm25", title="BM25", order=1)
def bm25(question: str, chunks: Sequence[Chunk], open_embedder: Callable[[], Embedder]) -> Sequence[int]:
    """Best first by BM25 over title and text: words in common with the question, rare words counting more."""
    return _best_first(bm25_scores(question, [_full_text(chunk) for chunk in chunks]))


@rerankers.register("embedding", title="Embedding similarity", order=2)
def embedding(question: str, chunks: Sequence[Chunk], open_embedder: Callable[[], Embedder]) -> Sequence[int]:
    """Best first by the cosine similarity of the question to the chunk's most similar passage."""
    if len(chunks) < 2:
        return list(range(len(chunks)))
    return _best_first(passage_scores(question, [_full_text(chunk) for chunk in chunks], open_embedder()))


def bm25_scores(question: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """BM25 score of each text for the question (Lucene variant, k1 1.5, b 0.75), shape (len(texts),); 0: no word shared."""
    terms = [tokenise(text) for text in texts]
    known = {term for document in terms for term in document}
    asked = [term for term in tokenise(question) if term in known]
    if not asked:
        return np.zeros(len(texts))
    import bm25s

    index = bm25s.BM25()
    index.index(terms, show_progress=False)
    # float32 sums differ in the last bits with the order of summation; rounding keeps ties ties.
    return np.asarray(index.get_scores(asked), dtype=np.float64).round(5)


def passage_scores(question: str, texts: Sequence[str], embedder: Embedder) -> NDArray[np.float64]:
    """Cosine similarity of the question to the best passage of each text, shape (len(texts),); -1 for a blank text."""
    passages: list[str] = []
    owners: list[int] = []
    for owner, text in enumerate(texts):
        cut = passages_of(text)
        passages += cut
        owners += [owner] * len(cut)
    scores = np.full(len(texts), -1.0)
    if passages and question.strip():
        vectors = embedder([question, *passages])
        similarity = (vectors[1:] @ vectors[0]).astype(np.float64).round(5)
        np.maximum.at(scores, np.array(owners), similarity)
    return scores


def passages_of(text: str) -> list[str]:
    """A text cut at white space into passages of at most `PASSAGE_CHARS` characters, `MAX_PASSAGES` of them; [] if blank."""
    passages: list[str] = []
    start = 0
    while start < len(text):
        end = min(start + PASSAGE_CHARS, len(text))
        if end < len(text):
            space = text.rfind(" ", start + PASSAGE_CHARS // 2, end)
            end = space if space > 0 else end
        if passage := text[start:end].strip():
            passages.append(passage)
        start = end
    if len(passages) > MAX_PASSAGES:
        picks = np.linspace(0, len(passages) - 1, MAX_PASSAGES).round().astype(int)
        passages = [passages[pick] for pick in picks]
    return passages


def _full_text(chunk: Chunk) -> str:
    return f"{chunk.title}\n{chunk.text}" if chunk.title else chunk.text


def _best_first(scores: NDArray[np.float64]) -> list[int]:
    """Stable: equal scores keep the order they came in."""
    return [int(index) for index in np.argsort(-scores, kind="stable")]
