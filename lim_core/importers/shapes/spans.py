"""One span of a trace in common words, whoever recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lim_core.importers.drafts.draft import DraftChunk
from lim_core.importers.shapes.messages import Turn
from lim_core.types import Json

SpanKind = Literal["retriever", "reranker", "llm", "other"]


@dataclass(frozen=True, slots=True)
class Span:
    """One span in common words. `asked` is its input read as a question, `said` its output read as an answer."""

    id: str
    parent: str = ""
    trace: str = ""
    kind: SpanKind = "other"
    name: str = ""
    start: str = ""
    asked: str | None = None
    said: str | None = None
    documents: tuple[DraftChunk, ...] | None = None
    before: tuple[DraftChunk, ...] | None = None
    textless: int = 0
    prompt: str | tuple[Turn, ...] | None = None
    model: str | None = None
    finish_reason: str | None = None
    usage: Mapping[str, Json] = field(default_factory=dict)
    params: Mapping[str, Json] = field(default_factory=dict)
    max_output_tokens: int | None = None
    expected: tuple[str, ...] = ()
    line: int | None = None
    notes: tuple[str, ...] = ()
    # The export left its contents out.
    bare: bool = False
    # Ids of the documents it passed on, where it names them without their texts.
    passed_ids: tuple[str, ...] = ()


def start_key(value: Json) -> str:
    """A start time as a string that sorts: ISO times as they are, numbers padded."""
    if isinstance(value, str):
        return f"{int(value):030d}" if value.isascii() and value.isdecimal() and len(value) < 30 else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:030.6f}"
    return ""


def kind_by_name(name: str) -> SpanKind:
    """What a span without a kind probably is, by its name."""
    low = name.lower()
    if "rerank" in low or "re-rank" in low or "compressor" in low:
        return "reranker"
    if any(word in low for word in ("retriev", "vector_search", "similarity_search", "search_kb", "knowledge_base")):
        return "retriever"
    return "other"
