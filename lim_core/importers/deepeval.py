"""DeepEval test cases."""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.importers.drafts.draft import Draft, DraftChunk, Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.fields import first, listed, mapping, strings, text
from lim_core.importers.shapes.search import Hit, read_rows, see_rows
from lim_core.types import Json

_RETRIEVED = ("retrieval_context", "retrievalContext")
_EXPECTED = ("expected_output", "expectedOutput")
_ACTUAL = ("actual_output", "actualOutput")


@importers.register("deepeval", title="DeepEval test cases", order=90)
class DeepEval:
    """LLMTestCase objects in snake or camel case. `context` is the ideal text, `retrieval_context` what came back."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By input beside an actual or expected output or a retrieval context."""
        return see_rows(source, _is_row, 0.94, "input with actual_output, expected_output or retrieval_context")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a test case."""
        return read_rows(source, _is_row, _draft)


def _is_row(row: Mapping[str, Json]) -> bool:
    has = sum(any(name in row for name in names) for names in (_RETRIEVED, _EXPECTED, _ACTUAL))
    return has >= 2 or (has == 1 and isinstance(row.get("input"), str))


def _draft(row: Mapping[str, Json], hit: Hit) -> Draft | str:
    retrieved = first(row, *_RETRIEVED)
    question = text(row.get("input"))
    if retrieved is None and question is None:
        return "neither an input nor a retrieval context"
    chunks = [chunk for chunk in (_chunk(item) for item in listed(retrieved)) if chunk is not None]
    ideal = (_chunk(item) for item in listed(row.get("context")))
    metadata = mapping(first(row, "metadata", "additional_metadata", "additionalMetadata"))
    return Draft(
        id=first(metadata, "case_id", "id", "case") or row.get("name"),
        question=question,
        answers=strings(first(row, *_EXPECTED)),
        chunks=None if retrieved is None else tuple(chunks),
        gold_texts=tuple(chunk.text for chunk in ideal if chunk is not None),
        answer=text(first(row, *_ACTUAL)),
        tags=strings(row.get("tags")),
    )


def _chunk(item: Json) -> DraftChunk | None:
    if isinstance(item, str):
        return DraftChunk(item)
    record = mapping(item)
    body = text(first(record, "context", "text", "content"))
    source = record.get("source")
    return None if body is None else DraftChunk(body, metadata={} if source is None else {"source": source})
