"""OpenInference spans, as Phoenix and its instrumentors write them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lim_core.importers.drafts.draft import DraftChunk, Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.attributes import RawSpan, find_spans, unflatten
from lim_core.importers.shapes.fields import (
    answer_in,
    dig,
    first,
    label,
    listed,
    mapping,
    number,
    opened,
    question_in,
    text,
    whole,
)
from lim_core.importers.shapes.generation import replied_model
from lim_core.importers.shapes.messages import Turn, read_messages
from lim_core.importers.shapes.spans import Span, SpanKind, start_key
from lim_core.importers.shapes.trace import cases_of
from lim_core.types import Json

_PREFIXES = ("openinference.", "retrieval.", "llm.", "reranker.", "input.value", "output.value", "embedding.")
_NESTED = frozenset({"openinference", "retrieval", "llm", "reranker"})
_NODE_ID = re.compile(r"\bid_=([^\s,)>]+)")
_KINDS: Mapping[str, SpanKind] = {"RETRIEVER": "retriever", "RERANKER": "reranker", "LLM": "llm"}


@importers.register("openinference", title="OpenInference and Phoenix spans", order=50)
class OpenInference:
    """Spans with flattened or nested attributes, rows of a Phoenix data frame, or OTLP-JSON."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By attributes in OpenInference's names."""
        spans, named = find_spans(source, _PREFIXES)
        named += sum(bool(_NESTED & set(span.attributes)) for span in spans)
        if not named:
            return None
        return Sighting(0.96, min(span.hit.depth for span in spans), "spans with retrieval, reranker or llm attributes")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a question of each trace."""
        spans, _ = find_spans(source, _PREFIXES)
        return cases_of([_span(span) for span in spans])


def _span(raw: RawSpan) -> Span:
    attributes = unflatten(raw.attributes)
    retrieved, lost = _documents(dig(attributes, "retrieval.documents"))
    reranked, lost_too = _documents(dig(attributes, "reranker.output_documents"))
    before, _ = _documents(dig(attributes, "reranker.input_documents"))
    prompt = _prompt(attributes)
    kind = _kind(raw, attributes, reranked, retrieved, prompt)
    params = mapping(opened(dig(attributes, "llm.invocation_parameters")))
    said = dig(attributes, "llm.output_messages")
    query = text(dig(attributes, "reranker.query")) if kind == "reranker" else None
    return Span(
        id=raw.id,
        parent=raw.parent,
        trace=raw.trace,
        kind=kind,
        name=raw.name,
        start=start_key(raw.start),
        asked=query or (question_in(dig(attributes, "input.value")) if kind != "llm" else None),
        said=_said(said, dig(attributes, "output.value")) if kind not in ("retriever", "reranker") else None,
        documents=_scored(reranked if kind == "reranker" else retrieved),
        before=before,
        textless=lost + lost_too,
        prompt=prompt if kind == "llm" else None,
        model=label(first(mapping(attributes.get("llm")), "model_name", "model"))
        or (replied_model(opened(dig(attributes, "output.value"))) if kind == "llm" else None),
        finish_reason=label(dig(attributes, "llm.finish_reason")) or None,
        usage={
            "prompt_tokens": whole(_leaf(dig(attributes, "llm.token_count.prompt"))),
            "completion_tokens": whole(_leaf(dig(attributes, "llm.token_count.completion"))),
            "cached_prompt_tokens": whole(dig(attributes, "llm.token_count.prompt_details.cache_read")),
            "reasoning_tokens": whole(dig(attributes, "llm.token_count.completion_details.reasoning")),
        },
        params={
            name: params[name] for name in ("temperature", "top_p", "seed", "stop") if params.get(name) is not None
        },
        max_output_tokens=whole(first(params, "max_tokens", "max_completion_tokens", "max_output_tokens")),
        line=raw.hit.line,
        notes=_notes(retrieved),
        passed_ids=_passed_ids(attributes) if kind in ("retriever", "reranker") else (),
    )


def _kind(
    raw: RawSpan,
    attributes: Mapping[str, Json],
    reranked: tuple[DraftChunk, ...] | None,
    retrieved: tuple[DraftChunk, ...] | None,
    prompt: str | tuple[Turn, ...] | None,
) -> SpanKind:
    if reranked:
        return "reranker"
    if retrieved:
        return "retriever"
    named = label(dig(attributes, "openinference.span.kind")) or raw.kind
    if prompt is None and _passed_ids(attributes):
        return "retriever" if named.upper() == "RETRIEVER" else "reranker"
    return _KINDS.get(named.upper(), "llm" if prompt is not None else "other")


def _passed_ids(attributes: Mapping[str, Json]) -> tuple[str, ...]:
    """LlamaIndex's postprocessors record printed nodes, `<NodeWithScore(node=TextNode(id_=n1), score=0.8)>`."""
    value = opened(dig(attributes, "output.value"))
    found = [_NODE_ID.search(item) if isinstance(item, str) else None for item in listed(value)]
    return tuple(match.group(1) for match in found if match) if found and all(found) else ()


def _documents(value: Json) -> tuple[tuple[DraftChunk, ...] | None, int]:
    """Documents with text, and how many came without."""
    found: list[DraftChunk] = []
    lost = 0
    items = listed(opened(value))
    for item in items:
        record = unflatten(mapping(item))
        inner = mapping(record.get("document")) or record
        body = text(_leaf(inner.get("content")))
        if body is None:
            lost += 1
            continue
        metadata = mapping(opened(inner.get("metadata")))
        found.append(
            DraftChunk(
                body, inner.get("id"), label(metadata.get("title")), inner.get("score"), metadata, score_name="score"
            )
        )
    return (tuple(found) or None), lost


def _scored(chunks: tuple[DraftChunk, ...] | None) -> tuple[DraftChunk, ...] | None:
    """Scores that are all zero are what an instrumentor writes for none."""
    if chunks and all(number(chunk.score) == 0 for chunk in chunks):
        return tuple(DraftChunk(c.text, c.id, c.title, None, c.metadata) for c in chunks)
    return chunks


def _notes(chunks: tuple[DraftChunk, ...] | None) -> tuple[str, ...]:
    if chunks and all(number(chunk.score) == 0 for chunk in chunks):
        return ("all scores are 0, which is what is written where there is none: they are taken as unknown",)
    return ()


def _prompt(attributes: Mapping[str, Json]) -> str | tuple[Turn, ...] | None:
    turns = read_messages(dig(attributes, "llm.input_messages"))
    if turns is not None:
        return turns
    prompts = listed(dig(attributes, "llm.prompts"))
    if prompts:
        return text(dig(prompts[0], "prompt.text") if isinstance(prompts[0], Mapping) else prompts[0])
    template = dig(attributes, "llm.prompt_template.template")
    if isinstance(template, str) and template.strip():
        filled = template
        for name, value in mapping(opened(dig(attributes, "llm.prompt_template.variables"))).items():
            filled = filled.replace("{" + name + "}", value if isinstance(value, str) else label(value))
        return filled
    if label(dig(attributes, "openinference.span.kind")).upper() == "LLM":
        value = opened(dig(attributes, "input.value"))
        return read_messages(value) or text(value)
    return None


def _said(messages: Json, output: Json) -> str | None:
    turns = read_messages(messages)
    said = " ".join(turn["content"] for turn in turns).strip() if turns else ""
    return said or answer_in(output)


def _leaf(value: Json) -> Json:
    return value.get("") if isinstance(value, Mapping) else value
