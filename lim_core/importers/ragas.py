"""Ragas rows."""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.importers.drafts.draft import Draft, DraftChunk, Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.fields import first, listed, strings, text
from lim_core.importers.shapes.search import Hit, read_rows, see_rows
from lim_core.types import Json

_NEW = ("retrieved_contexts", "reference_contexts", "response", "reference", "retrieved_context_ids", "rubrics")
_OLD = ("answer", "ground_truth", "ground_truths")


@importers.register("ragas", title="Ragas rows", order=80)
class Ragas:
    """SingleTurnSample rows by their new names (user_input, retrieved_contexts) or the old (question, contexts)."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By the pair of names that only Ragas uses together."""
        return see_rows(source, _is_row, 0.95, "user_input with retrieved_contexts, or question with contexts")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a row."""
        return read_rows(source, _is_row, _draft)


def _is_row(row: Mapping[str, Json]) -> bool:
    if "user_input" in row or "retrieved_contexts" in row:
        return sum(name in row for name in ("user_input", *_NEW)) >= 2
    return isinstance(row.get("question"), str) and isinstance(row.get("contexts"), list)


def _draft(row: Mapping[str, Json], hit: Hit) -> Draft | str:
    question = first(row, "user_input", "question")
    if isinstance(question, list):
        return "a sample of several turns: one question with its contexts is wanted"
    contexts = first(row, "retrieved_contexts", "contexts")
    ids = listed(row.get("retrieved_context_ids"))
    chunks: list[DraftChunk] = []
    for index, item in enumerate(listed(contexts) if not isinstance(contexts, str) else (contexts,)):
        if isinstance(item, str):
            chunks.append(DraftChunk(item, ids[index] if index < len(ids) else None))
    if contexts is None and text(question) is None:
        return "neither a question nor contexts"
    return Draft(
        id=first(row, "id", "sample_id"),
        question=text(question),
        answers=strings(first(row, "reference", "ground_truths", "ground_truth")),
        chunks=None if contexts is None else tuple(chunks),
        gold_ids=tuple(listed(row.get("reference_context_ids"))),
        gold_texts=strings(row.get("reference_contexts")),
        answer=text(first(row, "response", "answer")),
    )
