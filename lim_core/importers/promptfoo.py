"""promptfoo: configurations in YAML or JSON, lists of tests, and results."""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.importers.drafts.draft import Draft, DraftChunk, Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.importers.prompt.prompt_chunks import split_context
from lim_core.importers.registry import importers
from lim_core.importers.shapes.chunk_shapes import any_chunks
from lim_core.importers.shapes.fields import dig, first, label, listed, mapping, opened, strings, text, whole
from lim_core.importers.shapes.messages import Turn, read_messages
from lim_core.importers.shapes.search import Hit, read_rows, see_rows
from lim_core.types import Json

_QUESTIONS = ("query", "question", "user_query", "user_question", "input", "prompt", "user_input", "message")
_CONTEXTS = ("context", "contexts", "documents", "docs", "passages", "chunks", "retrieved", "sources")
# Assertions whose value is the expected answer, the plainest first.
_TELLING = ("contains-any", "icontains-any", "contains", "icontains", "equals", "contains-all", "icontains-all")
_LOOSER = ("context-recall", "factuality", "similar", "answer-relevance", "model-graded-factuality", "llm-rubric")


@importers.register("promptfoo", title="promptfoo tests and results", order=100)
class Promptfoo:
    """Test cases with vars and assert, from a configuration, a list of tests or a results file. No file:// is opened."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By vars beside assert, response or the other fields of a test."""
        return see_rows(source, _is_test, 0.95, "vars with assert, response or a prompt")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a test or result."""
        return read_rows(source, _is_test, _draft)


def _is_test(row: Mapping[str, Json]) -> bool:
    if not isinstance(row.get("vars"), Mapping):
        return False
    marks = ("assert", "description", "providerOutput", "response", "testCase", "gradingResult", "promptIdx", "testIdx")
    return any(name in row for name in (*marks, "success", "threshold", "metadata", "options")) or len(row) == 1


def _draft(row: Mapping[str, Json], hit: Hit) -> Draft | str:
    test = mapping(row.get("testCase"))
    values = mapping(row.get("vars"))
    outside = [name for name, value in values.items() if isinstance(value, str) and value.startswith("file://")]
    name = next((key for key in _QUESTIONS if key not in outside and text(values.get(key))), None)
    question = text(values.get(name)) if name else None
    chunks, how = _chunks(values, outside)
    prompt = _prompt(row)
    if question is None and chunks is None and prompt is None:
        if outside:
            return f"its vars {', '.join(outside)[:80]} are files, which are not opened: put the texts in their place"
        return "neither a question, a context nor a prompt among its vars"
    notes = [f"the variable {one} is a file and is not opened" for one in outside]
    notes += [how] if how else []
    asserts = listed(row.get("assert")) or listed(test.get("assert"))
    answers, from_where = _answers(asserts)
    if from_where:
        notes.append(f"the right answer was taken from the assertion {from_where}")
    usage = mapping(dig(row, "response.tokenUsage")) or mapping(row.get("tokenUsage"))
    metadata = mapping(row.get("metadata")) or mapping(test.get("metadata"))
    provider = row.get("provider")
    return Draft(
        id=first(metadata, "case_id", "id") or first(row, "id"),
        question=question,
        answers=answers,
        chunks=chunks,
        prompt=prompt,
        answer=text(first(row, "providerOutput") or dig(row, "response.output")),
        model=label(mapping(provider).get("id") if isinstance(provider, Mapping) else provider) or None,
        finish_reason=label(dig(row, "response.finishReason")) or None,
        usage={
            "prompt_tokens": whole(usage.get("prompt")) or None,
            "completion_tokens": whole(usage.get("completion")) or None,
        },
        notes=tuple(notes),
    )


def _chunks(values: Mapping[str, Json], outside: list[str]) -> tuple[tuple[DraftChunk, ...] | None, str]:
    name = next((key for key in _CONTEXTS if values.get(key) is not None and key not in outside), None)
    if name is None:
        return None, ""
    value = opened(values[name])
    if isinstance(value, str):
        parts = split_context(value)
        how = f"the variable {name} was split into {len(parts)} chunk(s)" if len(parts) > 1 else ""
        return tuple(DraftChunk(part) for part in parts), how
    return any_chunks(value) or (), ""


def _answers(asserts: object) -> tuple[tuple[str, ...], str]:
    items = [mapping(item) for item in asserts] if isinstance(asserts, list) else []
    for group in (_TELLING, _LOOSER):
        for kind in group:
            for item in items:
                found = strings(item.get("value"))
                if item.get("type") == kind and found and not found[0].startswith(("file://", "javascript:")):
                    return found, kind
    return (), ""


def _prompt(row: Mapping[str, Json]) -> str | tuple[Turn, ...] | None:
    raw = first(mapping(row.get("prompt")), "raw", "text")
    return read_messages(opened(raw)) or text(raw)
