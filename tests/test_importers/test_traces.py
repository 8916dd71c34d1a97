"""Traces: one case a question, with candidates, reranked list and prompt as sent told apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lim_core.importers import Imported, import_file
from lim_core.types import Json

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "importers"
FIRST = "How much does a ticket for a large dog cost on the tram?"
SECOND = "What does the monthly pass cost?"


def load(name: str) -> Imported:
    return import_file((FIXTURES / name).read_bytes(), name)


def read(value: Json, name: str = "trace.json") -> Imported:
    return import_file(json.dumps(value).encode(), name)


@pytest.mark.parametrize(
    "name",
    [
        "langsmith_nested.json",
        "langsmith_flat.jsonl",
        "openinference_langchain_sdk.jsonl",
        "openinference_langchain_rest.json",
        "openinference_langchain_otlp.json",
        "openinference_langchain_frame.json",
    ],
)
def test_a_trace_of_two_questions_is_two_cases(name: str) -> None:
    first, second = sorted(load(name).cases, key=lambda case: case.question)
    assert (first.question, second.question) == (FIRST, SECOND)
    assert [len(case.chunks) for case in (first, second)] == [5, 3]
    assert [len(case.candidates or ()) for case in (first, second)] == [12, 4]
    assert (first.answer, second.answer) == ("Dogs ride free.", "It costs 90 crowns.")
    for case in (first, second):
        assert case.prompt is not None
        assert case.question in case.prompt[-1].content
        assert all(chunk.text in case.prompt[-1].content for chunk in case.chunks)
        # The reranked list carries the ids of the candidates it was cut from.
        assert {chunk.id for chunk in case.chunks} <= {chunk.id for chunk in case.candidates or ()}
        assert case.usage is not None
        # The settings of the runs name no model; the reply does.
        assert (case.usage.prompt_tokens, case.finish_reason, case.model) == (350, "stop", "m-large")


@pytest.mark.parametrize("form", ["sdk.jsonl", "rest.json", "otlp.json", "frame.json"])
def test_llamaindex_postprocessor_is_followed_by_the_ids_it_prints(form: str) -> None:
    (case,) = load(f"openinference_llamaindex_{form}").cases
    assert [chunk.id for chunk in case.chunks] == ["tram-07", "tram-06", "tram-05", "tram-04", "tram-03"]
    assert case.model is None  # the spans say "unknown"
    (guess,) = load(f"openinference_llamaindex_{form}").report.cases[0].guesses
    # The list that was sent on is in the reverse order, so it says whose order counted.
    assert guess.why == "the scores fall from the first candidate to the last"
    assert [chunk.id for chunk in case.candidates or ()][8:] == ["tram-09", "tram-10", "tram-11", "tram-12"]
    assert case.question == FIRST
    assert case.score_direction == "similarity"


@pytest.mark.parametrize("name", ["langfuse_trace.json", "langfuse_legacy.json", "langfuse_download.json"])
def test_langfuse_in_three_exports(name: str) -> None:
    imported = load(name)
    (case,) = imported.cases
    assert (len(case.chunks), len(case.candidates or ()), case.question) == (5, 12, FIRST)
    assert case.model == "m-large"
    guessed = [guess.field for guess in imported.report.cases[0].guesses]
    assert guessed == (["question"] if name == "langfuse_download.json" else [])


def test_observations_of_the_second_api_version_are_opened_from_their_strings() -> None:
    imported = load("langfuse_observations_v2.json")
    (case,) = imported.cases
    assert (len(case.chunks), case.question, case.answer) == (12, FIRST, "Dogs ride free.")


def test_langfuse_download_without_contents_is_said_to_be_so() -> None:
    observations: list[Json] = [
        {"id": f"o{n}", "traceId": "t", "type": "GENERATION" if n % 2 else "RETRIEVER", "parentObservationId": None}
        for n in range(360)
    ]
    whole: list[Json] = [
        {"id": "r", "traceId": "t", "type": "RETRIEVER", "input": "q", "output": [{"page_content": "text one"}]},
        *observations,
    ]
    imported = read({"observations": whole, "scores": []})
    assert "from 350 observations on" in imported.report.notes[0]


def _openinference(documents: int, score: float | None) -> Json:
    attributes: dict[str, Json] = {"openinference.span.kind": "RETRIEVER", "input.value": "q"}
    # Written in the order of text, as a careless exporter does.
    for number in sorted(range(documents), key=str):
        attributes[f"retrieval.documents.{number}.document.content"] = f"document {number}"
        attributes[f"retrieval.documents.{number}.document.metadata"] = json.dumps({"page": number})
        if score is not None:
            attributes[f"retrieval.documents.{number}.document.score"] = score
    return {"name": "r", "context": {"trace_id": "t", "span_id": "s"}, "parent_id": None, "attributes": attributes}


def test_documents_are_numbered_not_spelt() -> None:
    (case,) = read(_openinference(23, None)).cases
    assert [chunk.text for chunk in case.chunks] == [f"document {number}" for number in range(23)]
    assert case.chunks[11].metadata == {"page": 11}


def test_scores_that_are_all_zero_are_none() -> None:
    imported = read(_openinference(4, 0.0))
    assert [chunk.score for chunk in imported.cases[0].chunks] == [None] * 4
    assert any("all scores are 0" in note for note in imported.report.cases[0].notes)


def _run(key: str, kind: str, parent: str | None, start: int, inputs: Json, outputs: Json, name: str = "x") -> Json:
    return {
        "id": key, "trace_id": "t", "parent_run_id": parent, "run_type": kind, "name": name,
        "start_time": f"2026-05-02T09:00:{start:02d}",
        "inputs": inputs, "outputs": outputs,
    }  # fmt: skip


def _documents(*texts: str) -> Json:
    return {"documents": [{"page_content": text, "metadata": {}} for text in texts]}


def test_nothing_retrieved_in_the_prompt_is_kept_as_news() -> None:
    imported = read([
        _run("a", "chain", None, 0, {"question": "Why?"}, {"output": "No idea"}),
        _run("b", "retriever", "a", 1, {"query": "why"}, _documents("the cause is rain", "another text here")),
        _run("c", "llm", "a", 2, {"messages": [{"role": "user", "content": "Why?"}]}, {"output": "No idea"}),
    ])  # fmt: skip
    (case,) = imported.cases
    assert (case.question, len(case.chunks), case.answer) == ("Why?", 2, "No idea")
    assert "no retrieved document stands in the prompt of the model call" in imported.report.cases[0].notes


def test_a_query_rewriter_is_not_the_answer_and_several_calls_are_said() -> None:
    imported = read([
        _run("a", "chain", None, 0, {"question": "Why?"}, {"output": "Rain"}),
        _run("r", "llm", "a", 1, {"messages": [{"role": "user", "content": "Rewrite: Why?"}]}, {"output": "cause"}),
        _run("b", "retriever", "a", 2, {"query": "cause"}, _documents("the cause is rain", "another text here")),
        _run("c", "llm", "a", 3, {"messages": [{"role": "user", "content": "the cause is rain\nWhy?"}]}, {"output": "Rain"}),
        _run("d", "llm", "a", 4, {"messages": [{"role": "user", "content": "another text here. Refine"}]}, {"output": "R"}),
    ])  # fmt: skip
    (case,) = imported.cases
    assert case.prompt is not None
    assert case.prompt[0].content == "the cause is rain\nWhy?"
    assert any("first of several calls" in note for note in imported.report.cases[0].notes)


def test_parents_in_a_circle_end() -> None:
    imported = read([
        _run("a", "retriever", "b", 0, {"query": "q"}, _documents("text one", "text two")),
        _run("b", "chain", "a", 0, {"question": "Why?"}, {}),
    ])  # fmt: skip
    assert len(imported.cases) == 1
