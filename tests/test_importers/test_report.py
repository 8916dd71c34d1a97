"""The import report says what was understood, guessed, repaired and left out; nothing happens in silence."""

from __future__ import annotations

import json

import pytest

from lim_core.errors import InputError, UnknownName
from lim_core.importers import Imported, import_file, report_json, report_text
from lim_core.types import Json


def read(value: Json, name: str = "paste") -> Imported:
    return import_file(json.dumps(value).encode(), name)


def _documents(*scores: float | None, name: str = "score") -> Json:
    return [
        {"page_content": f"text {n}", "metadata": {} if score is None else {name: score}}
        for n, score in enumerate(scores)
    ]


@pytest.mark.parametrize(
    ("scores", "name", "direction", "why"),
    [
        ((0.9, 0.8, 0.8, 0.1), "score", "similarity", "fall"),
        ((0.1, 0.2, 0.7), "score", "distance", "rise"),
        ((0.5, 0.9, 0.1), "score", None, "neither up nor down"),
        ((0.5, 0.5), "score", None, "equal"),
        ((0.3, 0.1, 0.2), "distance", "distance", "called distance"),
        ((0.9, 0.5, 0.1), "distance", None, "yet they fall"),
        ((0.2, 0.9, 0.4), "similarity_score", "similarity", "called similarity_score"),
    ],
)
def test_the_direction_of_scores_is_guessed_with_its_reason(
    scores: tuple[float, ...], name: str, direction: str | None, why: str
) -> None:
    imported = read(_documents(*scores, name=name))
    assert imported.cases[0].score_direction == direction
    (guess,) = imported.report.cases[0].guesses
    assert guess.field == "score_direction"
    assert why in guess.why
    # The list is never sorted: rank is the order of the file.
    assert [chunk.text for chunk in imported.cases[0].chunks] == [f"text {n}" for n in range(len(scores))]


def test_lines_that_cannot_be_read_are_skipped_with_line_and_reason() -> None:
    data = b'{"question": "q1", "chunks": ["a"]}\nnot json\n{"question": "q2", "chunks": ["b"]}\n{"other": 1}\n'
    imported = import_file(data, "suite.jsonl")
    assert [(case.id, case.question) for case in imported.cases] == [("suite-1", "q1"), ("suite-2", "q2")]
    assert [(skip.line, "JSON" in skip.reason) for skip in imported.report.skipped] == [(2, True), (4, False)]
    text = report_text(imported.report)
    assert "read 2 cases, skipped 2" in text
    assert "skipped line 2:" in text


def test_ids_and_scores_are_repaired_in_the_open() -> None:
    data = b"""{"question": "q", "answers": ["a"], "chunks": [
        {"id": 1, "text": "one", "score": NaN}, {"id": 1, "text": "two"}, {"id": "b", "text": "one"}]}"""
    imported = import_file(data, "paste")
    (case,) = imported.cases
    assert [chunk.id for chunk in case.chunks] == ["1", "1#2", "b"]
    assert case.chunks[0].score is None
    (report,) = imported.report.cases
    notes = " ".join(report.notes)
    assert "stands twice" in notes
    assert "numbers were turned into strings" in notes
    assert "not a finite number" in notes
    assert report.same_text == (("1", "b"),)


def test_foreign_ids_and_scores_too() -> None:
    data = b'[{"id": 7, "page_content": "a", "metadata": {}}, {"id": 7, "page_content": "b", "metadata": {"score": 1e999}}]'
    imported = import_file(data, "paste")
    assert [chunk.id for chunk in imported.cases[0].chunks] == ["7", "7#2"]
    assert imported.report.cases[0].renamed == (("7", "7#2"),)
    assert "2 id(s) are numbers" in " ".join(imported.report.cases[0].notes)


def test_missing_fields_and_the_stages_they_disable() -> None:
    (report,) = read(_documents(None, None)).report.cases
    assert {one.stage for one in report.disabled} == {"truncation", "retrieval", "assembly", "position"}
    assert "question" in report.missing
    # Without scores there is no direction to miss.
    assert "score_direction" not in (*report.missing, *report.found)
    assert "score_direction" in read(_documents(0.5, 0.5)).report.cases[0].missing
    full = read({
        "question": "q", "answers": ["a"], "chunks": ["a", "b", "c", "d"], "prompt": "p", "usage": {"prompt_tokens": 9},
    })  # fmt: skip
    assert full.report.cases[0].disabled == ()


def test_reference_texts_that_were_not_retrieved_become_the_corpus() -> None:
    row = {"user_input": "q", "retrieved_contexts": ["the first text here"], "reference": "x",
           "reference_contexts": ["a reference that nobody retrieved"]}  # fmt: skip
    imported = read([row])
    (case,) = imported.cases
    assert case.corpus is not None
    assert case.gold_ids == (case.corpus[0].id,)
    assert any("none of the retrieved chunks" in note for note in imported.report.cases[0].notes)


def test_an_empty_list_of_contexts_is_a_retriever_that_found_nothing() -> None:
    (case,) = read([{"user_input": "q", "retrieved_contexts": [], "response": "r", "reference": "x"}]).cases
    assert case.chunks == ()
    assert "needs-chunks" not in case.tags


def test_candidates_and_final_list_side_by_side() -> None:
    documents = _documents(0.9, 0.8, 0.7)
    assert isinstance(documents, list)
    imported = read({"query": "q", "retrieved": documents, "reranked": [documents[2], documents[0]]})
    (case,) = imported.cases
    assert [chunk.text for chunk in case.chunks] == ["text 2", "text 0"]
    assert [chunk.id for chunk in case.chunks] == ["c1", "c2"]
    assert [(c.id, c.text) for c in case.candidates or ()][::2] == [("c2", "text 0"), ("c1", "text 2")]
    assert "reranked was taken for the chunks" in imported.report.cases[0].notes[0]


def test_the_report_is_strict_json_and_plain_lines() -> None:
    imported = read([{"page_content": "a\x1b[31m\u202e\ud800", "metadata": {"x": float("inf")}, "id": "e\x1b[0m"}])
    json.dumps(report_json(imported.report), allow_nan=False).encode()
    text = report_text(imported.report)
    assert "\x1b" not in text
    text.encode()


def test_a_format_can_be_named_and_must_exist() -> None:
    with pytest.raises(UnknownName, match="Did you mean ragas"):
        import_file(b"[]", "paste", "raggas")
    with pytest.raises(InputError, match="Ragas"):
        import_file(b'[{"page_content": "a"}]', "paste", "ragas")
    imported = import_file(b"a\n---\nb", "paste", "text")
    assert [chunk.text for chunk in imported.cases[0].chunks] == ["a", "b"]


def test_a_log_line_and_a_notebook_variable() -> None:
    log = b'2026-05-02 INFO payload={"question": "q?", "documents": [{"page_content": "a", "metadata": {}}], "answer": "10"}'
    (case,) = import_file(log, "paste").cases
    assert (case.question, case.answer, len(case.chunks)) == ("q?", "10", 1)
    printed = b"{'question': 'q?', 'context': [Document(id='x', page_content='it\\'s \"so\"', metadata={'a': None})]}"
    (case,) = import_file(printed, "paste").cases
    assert (case.question, case.chunks[0].id, case.chunks[0].text) == ("q?", "x", 'it\'s "so"')


def test_nothing_is_opened_that_a_file_names() -> None:
    imported = import_file(
        b'[{"page_content": "file:///etc/passwd", "metadata": {"source": "http://localhost/x"}}]', "paste"
    )
    assert imported.cases[0].chunks[0].text == "file:///etc/passwd"
