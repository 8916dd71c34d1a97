"""OpenTelemetry GenAI spans, with the older names of OpenLLMetry and those of TruLens."""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.importers.drafts.draft import DraftChunk, Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.attributes import RawSpan, find_spans, unflatten
from lim_core.importers.shapes.chunk_shapes import any_chunk
from lim_core.importers.shapes.fields import (
    answer_in,
    dig,
    first,
    label,
    listed,
    mapping,
    opened,
    question_in,
    text,
    whole,
)
from lim_core.importers.shapes.messages import Turn, content_text, read_messages
from lim_core.importers.shapes.spans import Span, SpanKind, kind_by_name, start_key
from lim_core.importers.shapes.trace import cases_of
from lim_core.types import Json

_PREFIXES = ("gen_ai.", "ai.observability.")
_CHATS = frozenset({"chat", "text_completion", "generate_content", "completion"})


@importers.register("otel-genai", title="OpenTelemetry GenAI spans", order=60)
class OtelGenAi:
    """Spans with gen_ai attributes, plain or in OTLP-JSON. Documents and messages are opt-in and often absent."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By attributes in the GenAI names."""
        spans, named = find_spans(source, _PREFIXES)
        named += sum("gen_ai" in span.attributes for span in spans)
        if not named:
            return None
        return Sighting(0.95, min(span.hit.depth for span in spans), "spans with gen_ai attributes")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a question of each trace."""
        raw, _ = find_spans(source, _PREFIXES)
        spans = [_span(item) for item in raw]
        notes: list[str] = []
        lost = sum(span.textless for span in spans)
        if lost and not any(span.documents for span in spans):
            notes.append(
                f"{lost} retrieved document(s) have an id and a score but no text, as the standard names only those two: "
                "record their content as well, or add the texts by hand"
            )
        if not any(span.prompt for span in spans):
            notes.append("no prompt was recorded: turn on the capture of message content to get it")
        return cases_of(spans, (), notes)


def _span(raw: RawSpan) -> Span:
    attributes = unflatten(raw.attributes)
    documents, lost = _documents(attributes)
    prompt = _prompt(attributes)
    kind = _kind(raw, attributes, documents, lost, prompt)
    query = first(
        {
            "a": dig(attributes, "gen_ai.retrieval.query.text"),
            "b": dig(attributes, "gen_ai.retrieval.query"),
            "c": dig(attributes, "ai.observability.retrieval.query_text"),
            "d": dig(attributes, "ai.observability.record_root.input"),
            "e": dig(attributes, "input.value"),
        },
        *"abcde",
    )
    said = read_messages(opened(dig(attributes, "gen_ai.output.messages")))
    answer = " ".join(turn["content"] for turn in said).strip() if said else answer_in(_completion(attributes))
    usage = mapping(dig(attributes, "gen_ai.usage"))
    request = mapping(dig(attributes, "gen_ai.request"))
    reasons = listed(opened(dig(attributes, "gen_ai.response.finish_reasons")))
    return Span(
        id=raw.id,
        parent=raw.parent,
        trace=raw.trace,
        kind=kind,
        name=raw.name,
        start=start_key(raw.start),
        asked=question_in(query) if kind != "llm" else None,
        said=answer if kind not in ("retriever", "reranker") else None,
        documents=documents,
        textless=lost,
        prompt=prompt if kind == "llm" else None,
        model=label(request.get("model")) or label(dig(attributes, "gen_ai.response.model")) or None,
        finish_reason=label(reasons[0]) if reasons else None,
        usage={
            "prompt_tokens": whole(first(usage, "input_tokens", "prompt_tokens")),
            "completion_tokens": whole(first(usage, "output_tokens", "completion_tokens")),
            "cached_prompt_tokens": whole(dig(usage, "cache_read.input_tokens")),
        },
        params={name: request[name] for name in ("temperature", "top_p", "seed") if request.get(name) is not None},
        max_output_tokens=whole(request.get("max_tokens")),
        line=raw.hit.line,
    )


def _kind(
    raw: RawSpan,
    attributes: Mapping[str, Json],
    documents: tuple[DraftChunk, ...] | None,
    lost: int,
    prompt: str | tuple[Turn, ...] | None,
) -> SpanKind:
    operation = label(dig(attributes, "gen_ai.operation.name"))
    if documents or lost or operation == "retrieval":
        return "reranker" if kind_by_name(raw.name) == "reranker" else "retriever"
    return "llm" if operation in _CHATS or (prompt is not None and operation in ("", "invoke_model")) else "other"


def _documents(attributes: Mapping[str, Json]) -> tuple[tuple[DraftChunk, ...] | None, int]:
    value = opened(dig(attributes, "gen_ai.retrieval.documents"))
    if value is None:
        value = opened(dig(attributes, "ai.observability.retrieval.retrieved_contexts"))
    found: list[DraftChunk] = []
    lost = 0
    for item in listed(value):
        opened_item = opened(item)
        chunk = any_chunk(unflatten(opened_item) if isinstance(opened_item, Mapping) else opened_item)
        if chunk is None or not chunk.text.strip():
            lost += 1
        else:
            found.append(chunk)
    return (tuple(found) or None), lost


def _prompt(attributes: Mapping[str, Json]) -> str | tuple[Turn, ...] | None:
    value = opened(dig(attributes, "gen_ai.input.messages"))
    if value is None:
        # OpenLLMetry numbers its messages; unflattened they are a list.
        value = opened(dig(attributes, "gen_ai.prompt"))
    turns = read_messages(value)
    if turns is None:
        return text(value)
    system = content_text(opened(dig(attributes, "gen_ai.system_instructions")))
    lead: tuple[Turn, ...] = ({"role": "system", "content": system},) if system else ()
    return (*lead, *turns)


def _completion(attributes: Mapping[str, Json]) -> Json:
    return opened(first(mapping(attributes.get("gen_ai")), "completion", "output"))
