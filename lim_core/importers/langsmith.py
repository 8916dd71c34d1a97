"""LangSmith runs, nested by child_runs or flat by parent_run_id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lim_core.importers.drafts.draft import Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.chunk_shapes import any_chunks
from lim_core.importers.shapes.fields import (
    answer_in,
    dig,
    expected_in,
    first,
    label,
    listed,
    mapping,
    opened,
    question_in,
    text,
    whole,
)
from lim_core.importers.shapes.generation import generation_in, replied_model
from lim_core.importers.shapes.messages import Turn, read_messages
from lim_core.importers.shapes.search import find_rows, see_rows
from lim_core.importers.shapes.spans import Span, SpanKind, kind_by_name, start_key
from lim_core.importers.shapes.trace import cases_of
from lim_core.types import Json

_KINDS = frozenset({"chain", "llm", "chat_model", "retriever", "tool", "prompt", "parser", "embedding"})
_PARAMS = ("temperature", "top_p", "seed", "stop", "max_tokens", "max_completion_tokens")


@importers.register("langsmith", title="LangSmith runs", order=20)
class LangSmith:
    """Runs exported from LangSmith; a flat list is linked by parent_run_id."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By run_type beside inputs or ids of a run."""
        return see_rows(source, _is_run, 0.97, "run_type with inputs and outputs")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a question of each trace."""
        found = find_rows(source, _is_run)
        spans: list[Span] = []
        seen: set[str] = set()
        for hit in found.hits:
            for run, parent in _flatten(mapping(hit.value)):
                span = _span(run, parent, hit.line)
                # Nested exports list the same run twice: once by itself, once as a child.
                if span.id and span.id in seen:
                    continue
                seen.add(span.id)
                spans.append(span)
        return cases_of(spans, found.skipped)


def _is_run(row: Mapping[str, Json]) -> bool:
    if label(row.get("run_type")) not in _KINDS:
        return False
    return any(name in row for name in ("inputs", "outputs", "trace_id", "dotted_order", "parent_run_id", "child_runs"))


def _flatten(run: Mapping[str, Json], parent: str = "") -> Iterator[tuple[Mapping[str, Json], str]]:
    stack: list[tuple[Mapping[str, Json], str]] = [(run, parent)]
    while stack:
        item, above = stack.pop()
        yield item, above
        own = label(item.get("id"))
        stack += [(child, own) for child in reversed(listed(item.get("child_runs"))) if isinstance(child, Mapping)]


def _span(run: Mapping[str, Json], parent: str, line: int | None) -> Span:
    inputs, outputs = opened(run.get("inputs")), opened(run.get("outputs"))
    name = label(run.get("name"))
    kind: SpanKind = "other"
    if run.get("run_type") == "retriever":
        kind = "reranker" if kind_by_name(name) == "reranker" else "retriever"
    elif run.get("run_type") in ("llm", "chat_model"):
        kind = "llm"
    elif kind_by_name(name) == "reranker":
        kind = "reranker"
    documents = any_chunks(outputs) if kind in ("retriever", "reranker") else None
    before = any_chunks(inputs) if kind == "reranker" else None
    prompt = _prompt(inputs) if kind == "llm" else None
    settings = mapping(dig(run, "extra.invocation_params")) or mapping(dig(run, "extra.metadata"))
    return Span(
        id=label(run.get("id")),
        parent=label(run.get("parent_run_id")) or parent,
        trace=label(run.get("trace_id")),
        kind=kind,
        name=name,
        start=start_key(first(run, "start_time", "dotted_order")),
        asked=question_in(inputs) if kind != "llm" else None,
        said=answer_in(outputs) if kind not in ("retriever", "reranker") else None,
        documents=documents,
        before=before,
        prompt=prompt,
        model=_model(run, settings) or (replied_model(outputs) if kind == "llm" else None),
        finish_reason=_finish(outputs),
        usage=_usage(run, outputs),
        params={key: settings[key] for key in _PARAMS if settings.get(key) is not None},
        max_output_tokens=whole(first(settings, "max_tokens", "max_completion_tokens", "ls_max_tokens")),
        expected=expected_in(mapping(run.get("reference_outputs"))),
        line=line,
    )


def _prompt(inputs: Json) -> str | tuple[Turn, ...] | None:
    turns = read_messages(inputs)
    if turns is not None:
        return turns
    prompts = mapping(inputs).get("prompts")
    if isinstance(prompts, list) and prompts and isinstance(prompts[0], str):
        return prompts[0]
    return text(first(mapping(inputs), "prompt", "input", "text")) if isinstance(inputs, Mapping) else text(inputs)


def _model(run: Mapping[str, Json], settings: Mapping[str, Json]) -> str | None:
    found = first(settings, "model", "model_name", "ls_model_name") or dig(run, "extra.metadata.ls_model_name")
    return label(found) or None


def _finish(outputs: Json) -> str | None:
    choice = listed(mapping(outputs).get("choices"))
    if choice:
        return label(mapping(choice[0]).get("finish_reason")) or None
    generation = generation_in(outputs)
    found = dig(generation, "generation_info.finish_reason") or dig(
        generation, "message.kwargs.response_metadata.finish_reason"
    )
    return label(found) or None


def _usage(run: Mapping[str, Json], outputs: Json) -> Mapping[str, Json]:
    told = (
        mapping(dig(generation_in(outputs), "message.kwargs.usage_metadata"))
        or mapping(mapping(outputs).get("usage_metadata"))
        or mapping(mapping(outputs).get("usage"))
        or mapping(dig(outputs, "llm_output.token_usage"))
    )
    return {
        "prompt_tokens": whole(first(told, "input_tokens", "prompt_tokens") or run.get("prompt_tokens")),
        "completion_tokens": whole(first(told, "output_tokens", "completion_tokens") or run.get("completion_tokens")),
        "cached_prompt_tokens": whole(dig(told, "input_token_details.cache_read")),
        "reasoning_tokens": whole(dig(told, "output_token_details.reasoning")),
    }
