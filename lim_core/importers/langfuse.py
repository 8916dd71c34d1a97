"""Langfuse traces in their three exports, and bare observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lim_core.importers.drafts.draft import Reading, Sighting, Skipped
from lim_core.importers.files.source import Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.chunk_shapes import any_chunks
from lim_core.importers.shapes.fields import answer_in, first, label, listed, mapping, opened, question_in, text, whole
from lim_core.importers.shapes.messages import Turn, read_messages
from lim_core.importers.shapes.search import Hit, find_rows, see_rows
from lim_core.importers.shapes.spans import Span, SpanKind, kind_by_name, start_key
from lim_core.importers.shapes.trace import cases_of
from lim_core.types import Json

_TYPES = frozenset(
    {
        "SPAN",
        "GENERATION",
        "EVENT",
        "RETRIEVER",
        "AGENT",
        "TOOL",
        "CHAIN",
        "EMBEDDING",
        "EVALUATOR",
        "GUARDRAIL",
    }
)
_LINKS = ("traceId", "trace_id", "parentObservationId", "parent_observation_id", "usageDetails", "usage_details")
# The web download leaves contents out from this many observations on.
_CONTENTS_UP_TO = 350
_ROOT = "trace:"
_PARAMS = ("temperature", "top_p", "seed", "stop")


@importers.register("langfuse", title="Langfuse traces", order=70)
class Langfuse:
    """A trace with its observations, the web download with or without the trace, or a list of observations."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By a list of observations, or observations by themselves."""
        traces = see_rows(source, _is_trace, 0.97, "observations with type and traceId")
        return traces or see_rows(source, _is_observation, 0.95, "observations with type and traceId")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a question of each trace."""
        found = find_rows(source, _is_trace)
        if found.hits:
            spans: list[Span] = []
            for number, hit in enumerate(found.hits, 1):
                spans += _trace(mapping(hit.value), hit, number)
            return _reading(spans, found.skipped)
        found = find_rows(source, _is_observation)
        return _reading([_observation(mapping(hit.value), hit, "") for hit in found.hits], found.skipped)


def _is_observation(row: Mapping[str, Json]) -> bool:
    return label(row.get("type")) in _TYPES and any(name in row for name in _LINKS)


def _is_trace(row: Mapping[str, Json]) -> bool:
    found = row.get("observations")
    return isinstance(found, list) and any(isinstance(item, Mapping) and _is_observation(item) for item in found[:50])


def _reading(spans: Sequence[Span], skipped: Sequence[Skipped]) -> Reading:
    observations = [span for span in spans if not span.id.startswith(_ROOT)]
    empty = [span for span in observations if span.bare]
    notes = []
    if observations and len(empty) * 2 > len(observations):
        notes.append(
            f"{len(empty)} of {len(observations)} observations came without input and output, as the web download does from "
            f"{_CONTENTS_UP_TO} observations on: fetch the trace through the API"
        )
    return cases_of(spans, skipped, notes)


def _trace(record: Mapping[str, Json], hit: Hit, number: int) -> list[Span]:
    trace = mapping(record.get("trace")) or record
    items = [mapping(item) for item in listed(record.get("observations"))]
    key = label(trace.get("id")) or next((label(first(item, "traceId", "trace_id")) for item in items), "")
    key = key or f"trace-{number}"
    root = Span(
        id=_ROOT + key,
        trace=key,
        name=label(trace.get("name")),
        asked=question_in(trace.get("input")),
        said=answer_in(trace.get("output")),
        line=hit.line,
    )
    return [root, *(_observation(item, hit, root.id, key) for item in items)]


def _observation(row: Mapping[str, Json], hit: Hit, root: str, trace: str = "") -> Span:
    # The second version of the API returns contents as raw strings.
    given, told = opened(row.get("input")), opened(row.get("output"))
    name = label(row.get("name"))
    kind = _kind(row, name, given, told)
    params = mapping(opened(first(row, "modelParameters", "model_parameters")))
    usage = mapping(first(row, "usageDetails", "usage_details")) or mapping(row.get("usage"))
    documents = any_chunks(told) if kind in ("retriever", "reranker") else None
    return Span(
        id=label(row.get("id")),
        parent=label(first(row, "parentObservationId", "parent_observation_id")) or root,
        trace=trace or label(first(row, "traceId", "trace_id")),
        kind=kind,
        name=name,
        start=start_key(first(row, "startTime", "start_time")),
        asked=question_in(given) if kind != "llm" else None,
        said=answer_in(told) if kind not in ("retriever", "reranker") else None,
        documents=documents,
        before=any_chunks(given) if kind == "reranker" else None,
        prompt=_prompt(given) if kind == "llm" else None,
        model=label(row.get("model")) or None,
        finish_reason=label(first(mapping(told), "finish_reason", "finishReason")) or None,
        usage={
            "prompt_tokens": whole(first(usage, "input", "prompt_tokens", "promptTokens", "input_tokens")),
            "completion_tokens": whole(
                first(usage, "output", "completion_tokens", "completionTokens", "output_tokens")
            ),
            "cached_prompt_tokens": whole(first(usage, "input_cached_tokens", "cache_read_input_tokens")),
            "reasoning_tokens": whole(usage.get("output_reasoning_tokens")),
        },
        params={key: params[key] for key in _PARAMS if params.get(key) is not None},
        max_output_tokens=whole(first(params, "max_tokens", "max_completion_tokens", "maxTokens")),
        line=hit.line,
        bare="input" not in row and "output" not in row,
    )


def _kind(row: Mapping[str, Json], name: str, given: Json, told: Json) -> SpanKind:
    """By type where it is telling; older SDKs log retrieval as SPAN, so name and shape decide there."""
    named = kind_by_name(name)
    kind = row.get("type")
    if kind == "RETRIEVER":
        return "reranker" if named == "reranker" else "retriever"
    if kind == "GENERATION":
        return "llm"
    if kind in ("SPAN", "TOOL", "CHAIN"):
        if named != "other" and any_chunks(told):
            return named
        documents = any_chunks(told)
        listing = (
            told if isinstance(told, list) else first(mapping(told), "documents", "docs", "source_nodes", "chunks")
        )
        plain = isinstance(listing, list) and all(isinstance(item, Mapping) for item in listing)
        if documents and plain and read_messages(told) is None and kind != "CHAIN":
            return "retriever"
    return "other"


def _prompt(given: Json) -> str | tuple[Turn, ...] | None:
    turns = read_messages(given)
    if turns is not None:
        return turns
    if isinstance(given, str):
        return text(given)
    return text(first(mapping(given), "prompt", "input", "text"))
