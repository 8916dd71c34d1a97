"""Every fixture, serialised by the library whose shape it is, becomes the case it was made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from lim_core.errors import InputError
from lim_core.importers import Imported, import_file
from lim_core.types import Case, ScoreDirection

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "importers"
QUESTION = "How much does a ticket for a large dog cost on the tram?"
GOLD = "Dogs larger than a cat need a ticket at the child fare, 1.40 crowns a ride."
FIRST = "Single tickets are valid for 90 minutes from the first validation."
SIGNAL = 'A driver who sees an open door signal "T3" must halt at the next stop.\nNo exceptions are made.'


def load(name: str) -> Imported:
    return import_file((FIXTURES / name).read_bytes(), name)


def only(name: str) -> Case:
    (case,) = load(name).cases
    return case


DOCUMENTS = {
    "langchain_plain.json": "langchain",
    "langchain_constructor.json": "langchain",
    "langchain_pairs.json": "langchain",
    "langchain_repr.txt": "langchain",
    "langchain_print.txt": "langchain",
    "langchain_lines.jsonl": "langchain",
    "langchain_utf16.json": "langchain",
    "langchain_bom.json": "langchain",
    "langchain_plain.json.gz": "langchain",
    "llamaindex_nodes.json": "llamaindex",
    "llamaindex_documents_no_score.json": "llamaindex",
    "llamaindex_repr.txt": "llamaindex",
    "llamaindex_response.json": "llamaindex",
    "haystack_flat.json": "haystack",
    "haystack_nested.json": "haystack",
    "haystack_repr.txt": "haystack",
    "ragchecker.json": "ragchecker",
    "longbench_retrieved.json": "longbench",
    "liu.jsonl": "liu",
    "liu.jsonl.gz": "liu",
    "chunks.csv": "table",
    "chunks.tsv": "table",
    "chunks_separated.txt": "text",
    "chunks_headed.md": "text",
    "records.json": "records",
    "log_line.txt": "records",
    "lim_case.json": "lim",
    "otel_genai_otlp.json": "otel-genai",
    "otel_genai_sdk.json": "otel-genai",
}


@pytest.mark.parametrize(("name", "format"), DOCUMENTS.items())
def test_twelve_chunks_come_back_in_order_whatever_the_shape(name: str, format: str) -> None:
    imported = load(name)
    assert imported.report.format == format
    texts = [chunk.text for chunk in imported.cases[0].chunks]
    assert len(texts) == 12
    assert texts[0] == FIRST
    assert texts[4] == GOLD
    # More than nine documents: the tenth does not slip behind the first. Escapes and line breaks survive.
    assert texts[9].startswith("The monthly pass")
    assert texts[7] == SIGNAL


def test_scores_of_a_langchain_pair_rise_and_are_taken_for_distances_openly() -> None:
    imported = load("langchain_pairs.json")
    assert imported.cases[0].score_direction is ScoreDirection.DISTANCE
    assert imported.cases[0].chunks[0].score == pytest.approx(0.11)
    (guess,) = imported.report.cases[0].guesses
    assert guess.field == "score_direction"
    assert "rise" in guess.why


def test_falling_scores_are_similarities_and_missing_ones_are_no_guess() -> None:
    assert only("llamaindex_nodes.json").score_direction is ScoreDirection.SIMILARITY
    imported = load("llamaindex_documents_no_score.json")
    assert imported.cases[0].score_direction is None
    assert imported.report.cases[0].guesses == ()


def test_a_chain_output_brings_its_question_and_answer() -> None:
    case = only("langchain_chain_output.json")
    assert (case.question, case.answer, len(case.chunks)) == (QUESTION, "Dogs ride free.", 6)


def test_haystack_meta_is_metadata_flat_or_nested() -> None:
    for name in ("haystack_flat.json", "haystack_nested.json", "haystack_repr.txt"):
        assert only(name).chunks[1].metadata == {"source": "carriage.md", "page": 2}, name


@pytest.mark.parametrize(
    "name",
    ["ragas_rows.json", "ragas_rows.jsonl", "ragas_rows.csv", "ragas_frame_columns.json", "ragas_old_names.json"],
)
def test_ragas_rows(name: str) -> None:
    imported = load(name)
    assert imported.report.format == "ragas"
    first, second = imported.cases
    assert (first.question, first.answers, first.answer) == (QUESTION, ("1.40 crowns",), "Dogs ride free.")
    assert [len(case.chunks) for case in (first, second)] == [6, 4]
    assert first.chunks[4].text == GOLD
    if name != "ragas_old_names.json":
        assert first.gold_ids == (first.chunks[4].id,) == ("tram-05",)


@pytest.mark.parametrize("name", ["deepeval_snake.json", "deepeval_camel.json", "deepeval_saved.json"])
def test_deepeval_keeps_the_ideal_context_apart_from_the_retrieved_one(name: str) -> None:
    first, second = load(name).cases
    assert [len(case.chunks) for case in (first, second)] == [6, 4]
    assert first.gold_ids == (first.chunks[4].id,)
    assert first.answers == ("1.40 crowns",)


def test_liu_gold_has_neither_id_nor_score() -> None:
    imported = load("liu.jsonl.gz")
    case = imported.cases[0]
    (gold,) = case.gold_ids
    assert next(c for c in case.chunks if c.id == gold).text == GOLD
    assert next(c for c in case.chunks if c.id == gold).score is None
    assert case.chunks[0].score == pytest.approx(0.89)
    assert case.answers == ("1.40 crowns", "1.40")
    assert imported.report.packing == "gzip"


def test_longbench_takes_the_text_of_the_right_choice() -> None:
    assert only("longbench.jsonl").answers == ("1.40 crowns a ride",)
    assert len(only("longbench.jsonl").chunks) == 1


def test_promptfoo_reads_the_context_variable_and_skips_files_without_opening_them() -> None:
    imported = load("promptfoo_config.yaml")
    (case,) = imported.cases
    assert (case.id, case.question, len(case.chunks), case.answers) == ("tram-q1", QUESTION, 6, ("1.40",))
    (skip,) = imported.report.skipped
    assert "not opened" in skip.reason
    result = only("promptfoo_results.json")
    assert result.usage is not None
    assert (result.usage.prompt_tokens, result.finish_reason, result.prompt is not None) == (350, "stop", True)


@pytest.mark.parametrize("name", ["openai_pair.json", "openai_request.json", "anthropic_lines.jsonl", "prompt.txt"])
def test_a_prompt_alone_waits_for_its_chunks_with_a_proposal(name: str) -> None:
    imported = load(name)
    (case,) = imported.cases
    assert case.chunks == ()
    assert {"needs-chunks", "needs-question"} <= set(case.tags)
    proposal = imported.proposals[case.id]
    assert proposal.question == QUESTION
    assert len(proposal.chunks) == 6
    assert proposal.chunks[4].text == GOLD


def test_bodies_bring_model_usage_and_finish_reason() -> None:
    case = only("openai_pair.json")
    assert case.usage is not None
    assert (case.model, case.finish_reason, case.answer) == ("m-large", "stop", "Dogs ride free.")
    assert (case.usage.prompt_tokens, case.usage.cached_prompt_tokens, case.max_output_tokens) == (410, 128, 400)
    other = only("anthropic_lines.jsonl")
    assert other.prompt is not None
    assert (other.prompt[0].role, other.finish_reason, other.max_output_tokens) == ("system", "stop", 256)


@pytest.mark.parametrize("name", ["otel_genai_ids_only_otlp.json", "otel_genai_ids_only_sdk.json"])
def test_documents_without_text_are_said_to_be_so(name: str) -> None:
    with pytest.raises(InputError, match="12 retrieved document"):
        load(name)
