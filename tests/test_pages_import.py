"""Getting a complaint in: pasted shapes, what lim understood, every guess overruled, gold marked, drafts kept."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from lim_core.cases import case_from_json
from lim_core.store.drafts import Drafts
from lim_core.types import Json
from lim_core.ui import shell

ROOT = Path(__file__).resolve().parents[1]
SHAPES = ROOT / "tests/fixtures/importers"
HOSTILE = "![x](http://evil.example/p.png) <script>alert(1)</script> $x^2$ :red[hi] [a](javascript:alert(1)) `c`"
LOGS = {
    "id": "logs",
    "question": "How long are raw logs kept?",
    "answers": ["45 days"],
    "chunks": [
        {"id": "a", "text": "The office opens at nine."},
        {"id": "b", "text": "Raw logs are kept\n45 days, then deleted.", "metadata": {"source": "ops.md", "page": 3}},
        {"id": "c", "text": "A trial lasts 45 days.", "score": 0.5},
        {"id": "d", "text": "Lunch is at noon."},
    ],
}


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store of its own for every test; the caches forget the one before."""
    monkeypatch.setenv("LIM_STORE", str(tmp_path / "lim.duckdb"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("LIM_BASE_URL", "LIM_API_KEY", "LIM_MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    st.cache_resource.clear()
    yield
    for job in shell.jobs().active():
        shell.jobs().cancel(job.id)
        shell.jobs().wait(job.id, timeout=60)
    shell.store().close()
    st.cache_resource.clear()


def page(**query: str) -> AppTest:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/1_Diagnose.py")
    for key, value in query.items():
        test.query_params[key] = value
    return healthy(test.run())


def healthy(test: AppTest) -> AppTest:
    assert not test.exception, [item.value for item in test.exception]
    assert not test.error, [item.value for item in test.error]
    return test


def paste(text: str) -> AppTest:
    test = page()
    test.text_area(key="case-json").set_value(text)
    return healthy(test.run())


def shape(name: str) -> AppTest:
    return paste((SHAPES / name).read_text("utf-8"))


def said(test: AppTest) -> str:
    """All that is shown as text, escapes taken away."""
    shown = [item.value for kind in ("markdown", "caption", "text", "warning", "subheader") for item in test.get(kind)]
    return " ".join(shown).replace(":small[]", "").replace("\\", "")


def labels(test: AppTest) -> list[str]:
    return [item.label.replace(":small[]", "").replace("\\", "") for item in test.expander]


def ready(test: AppTest) -> bool:
    return not test.button(key="diagnose").disabled


def case_of(test: AppTest) -> dict[str, Json]:
    """The case as it would be run, from the session."""
    from lim_core.cases import case_to_json
    from lim_core.importers import import_file
    from lim_core.ui.work import Source, Work

    work = test.session_state["work"]
    assert isinstance(work, Work)
    data = str(test.session_state["case-json"]).encode() if "case-json" in test.session_state else b""
    if "kept-source" in test.session_state and isinstance(kept := test.session_state["kept-source"], Source):
        data = kept.data
    cases = import_file(data, "pasted", work.format).cases
    picked = next((case for case in cases if case.id == work.picked), cases[0])
    return case_to_json(work.case(picked))


def draft_of(test: AppTest) -> str:
    value = test.query_params["draft"]
    return value[0] if isinstance(value, list) else value


# --- shapes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "title", "chunks", "complete"),
    [
        ("langchain_repr.txt", "LangChain documents", 6, False),
        ("langfuse_trace.json", "Langfuse traces", 0, True),
        ("ragas_rows.json", "Ragas rows", 0, True),
        ("llamaindex_nodes.json", "LlamaIndex source nodes", 0, False),
        ("chunks.csv", "CSV, TSV and tables of chunks", 0, True),
        ("log_line.txt", "Plain JSON records", 0, True),
        ("lim_case.json", "lim cases", 0, True),
        ("langchain_print.txt", "LangChain documents", 0, False),
    ],
)
def test_a_paste_says_what_it_was_taken_for(name: str, title: str, chunks: int, complete: bool) -> None:
    test = shape(name)
    assert f"{title}: " in said(test)
    assert "sure" in said(test)
    assert "read, none skipped" in said(test)
    assert ready(test) == complete
    if not complete:
        assert "The question is not known" in said(test)
        test.text_area(key="work-question").set_value("How much is a ticket for a large dog?")
        assert ready(healthy(test.run()))


def test_the_format_can_be_overruled_and_an_unknown_shape_gets_a_sentence() -> None:
    test = paste('{"a": 1}')
    assert "has no shape that is known here" in said(test)
    assert not ready(test)
    test = shape("langchain_plain.json")
    test.selectbox(key="work-format").set_value("records")
    healthy(test.run())
    assert "named by you" in said(test) or "Plain JSON records" in said(test)
    test.selectbox(key="work-format").set_value("ragas")
    healthy(test.run())
    assert not ready(test)  # it is no such thing, and says so
    assert "holds no case" in said(test)
    test.selectbox(key="work-format").set_value("auto")
    assert "LangChain documents: " in said(healthy(test.run()))


def test_of_several_cases_one_is_picked() -> None:
    test = shape("ragas_rows.json")
    first = case_of(test)["id"]
    test.selectbox(key="work-pick").set_value(1)
    healthy(test.run())
    assert case_of(test)["id"] != first
    assert test.text_area(key="work-question").value == case_of(test)["question"]


def test_skipped_records_are_listed_with_their_reason() -> None:
    lines = [json.dumps(LOGS), "{broken", json.dumps({**LOGS, "id": "more"})]
    test = paste("\n".join(lines))
    assert "2 cases read, 1 skipped" in said(test)
    rows = next(frame.value for frame in test.dataframe if "reason" in frame.value)
    assert list(rows["line"]) == [2]


def test_a_guessed_score_direction_says_why_and_is_overruled() -> None:
    test = shape("chunks.csv")
    assert "Guessed: the scores are called distance, and rise." in said(test)
    assert case_of(test)["score_direction"] == "distance"
    test.selectbox(key="work-direction").set_value("similarity: higher is better")
    healthy(test.run())
    assert case_of(test)["score_direction"] == "similarity"
    test.selectbox(key="work-direction").set_value("not known")
    healthy(test.run())
    assert "score_direction" not in case_of(test)


def test_chunks_of_one_text_and_of_one_id_are_named() -> None:
    chunks = [{"id": "a", "text": "x y"}, {"id": "a", "text": "z"}, {"id": "b", "text": "x  y"}]
    test = paste(json.dumps({"question": "q?", "chunks": chunks}))
    assert "These chunks have the same text: a, b." in said(test)
    assert "the id a stands twice" in said(test)


def test_fields_that_the_record_lacks_are_added_and_enable_their_stages() -> None:
    test = paste(json.dumps(LOGS))
    assert "Assembly will be skipped: add prompt." in said(test)
    test.text_area(key="work-prompt").set_value("The office opens at nine. How long are raw logs kept?")
    test.text_area(key="work-answer").set_value("30 days")
    test.number_input(key="work-window").set_value(8192)
    test.number_input(key="work-reported").set_value(31)
    test.selectbox(key="work-finish").set_value("length")
    healthy(test.run())
    assert "will be skipped" not in said(test)
    case = case_of(test)
    assert case["prompt"] == [{"role": "user", "content": "The office opens at nine. How long are raw logs kept?"}]
    assert (case["answer"], case["context_window"], case["finish_reason"]) == ("30 days", 8192, "length")
    assert case["usage"] == {"prompt_tokens": 31}
    test.number_input(key="work-reported").set_value(None)  # emptied again
    healthy(test.run())
    assert "usage" not in case_of(test)


# --- a prompt alone ----------------------------------------------------------------------------------------


def test_the_chunks_of_a_prompt_are_taken_with_one_click_and_the_question_can_be_changed() -> None:
    test = shape("openai_request.json")
    assert not ready(test)
    assert "6 chunks, told by numbered documents" in said(test)
    # Its chunks are there, only not confirmed, so no stage is said to lack them.
    assert "will be skipped" not in said(test)
    assert "Not in it: question, chunks, right answers, gold ids, candidates, answer given" in said(test)
    box = test.text_area(key="work-asked-case")
    assert box.value == "How much does a ticket for a large dog cost on the tram?"
    assert "Guessed: taken from the place in the prompt" in said(test)
    box.set_value("What does a large dog pay?")
    test.button(key="accept").click()
    healthy(test.run())
    assert ready(test)
    case = case_of(test)
    assert case["question"] == "What does a large dog pay?"
    assert len(case["chunks"]) == 6
    assert "needs-chunks" not in case["tags"]
    assert "The prompt as sent has 2 messages (developer, user)." in said(test)
    contents = [message["content"] for message in case["prompt"]]
    assert set(contents) <= {item.value for item in test.code}
    test.button(key="undo").click()
    assert not ready(healthy(test.run()))


# --- gold ---------------------------------------------------------------------------------------------------


def test_typed_answers_light_the_chunks_up_and_all_of_them_can_be_taken() -> None:
    test = paste(json.dumps({**LOGS, "answers": []}))
    assert "⟦" not in said(test)
    test.text_area(key="work-answers").set_value("45 days")
    healthy(test.run())
    assert any("Raw logs are kept ⟦45 days⟧, then deleted" in label for label in labels(test))
    assert "Chunk b (rank 2), chunk c (rank 3) hold the answer and are not marked yet" in said(test)
    test.button(key="mark-all").click()
    healthy(test.run())
    assert case_of(test)["gold_ids"] == ["b", "c"]
    assert "several, taken together as one case" in said(test)


def test_a_chunk_with_the_answer_that_is_not_gold_is_pointed_out_until_settled() -> None:
    test = paste(json.dumps(LOGS))
    test.checkbox(key="chunk-gold_ids-b").check()
    healthy(test.run())
    assert "Chunk c (rank 3) holds the answer and is not marked gold, and would spoil a position test" in said(test)
    test.checkbox(key="chunk-harmless_ids-c").check()
    healthy(test.run())
    assert "would spoil" not in said(test)
    assert case_of(test)["harmless_ids"] == ["c"]
    test.checkbox(key="chunk-gold_ids-c").check()  # gold after all
    healthy(test.run())
    assert case_of(test)["gold_ids"] == ["b", "c"]
    assert "harmless_ids" not in case_of(test)
    test.checkbox(key="chunk-forbidden_ids-a").check()
    healthy(test.run())
    assert case_of(test)["forbidden_ids"] == ["a"]


def test_without_a_match_the_nearest_is_offered_and_not_looked_for_unasked() -> None:
    test = paste(json.dumps({**LOGS, "answers": ["six and a half weeks"]}))
    assert "No chunk holds a right answer word for word." in said(test)
    assert test.button(key="nearest").label == "Find the nearest by meaning"
    assert not [button for button in test.button if (button.key or "").startswith("near-")]


# --- the list -------------------------------------------------------------------------------------------------


def ranks(test: AppTest) -> list[str]:
    chunks = case_of(test)["chunks"]
    assert isinstance(chunks, list)
    return [str(chunk["id"]) for chunk in chunks if isinstance(chunk, dict)]


def test_chunks_are_moved_and_the_last_change_is_taken_back() -> None:
    test = paste(json.dumps(LOGS))
    assert test.button(key="undo").disabled
    test.button(key="up-2").click()
    healthy(test.run())
    assert ranks(test) == ["a", "c", "b", "d"]
    test.button(key="down-0").click()
    healthy(test.run())
    assert ranks(test) == ["c", "a", "b", "d"]
    test.checkbox(key="chunk-gold_ids-b").check()
    healthy(test.run())
    test.button(key="undo").click()
    healthy(test.run())
    assert not test.checkbox(key="chunk-gold_ids-b").value
    assert ranks(test) == ["c", "a", "b", "d"]
    for expected in (["a", "c", "b", "d"], ["a", "b", "c", "d"]):
        test.button(key="undo").click()
        healthy(test.run())
        assert ranks(test) == expected
    assert test.button(key="undo").disabled
    assert test.button(key="up-0").disabled
    assert test.button(key="down-3").disabled


def test_a_row_says_rank_source_score_and_tokens() -> None:
    text = said(paste(json.dumps(LOGS)))
    assert "rank 2 · b · ops.md, page 3 · no score · " in text
    assert "rank 3 · c · score 0.5 · " in text


def test_a_long_id_keeps_both_ends_on_its_row_and_stands_whole_with_the_text() -> None:
    ids = ["handbooks/2026/carriage-of-animals.md#chunk-7", "handbooks/2026/carriage-of-animals.md#chunk-8"]
    chunks = [{"id": one, "text": f"Raw logs are kept {place} days."} for place, one in enumerate(ids)]
    test = paste(json.dumps({**LOGS, "chunks": chunks, "gold_ids": [ids[1]]}))
    assert "rank 1 · handbooks/20….md#chunk-7 · " in said(test)
    assert "Chunk handbooks/20….md#chunk-8 (rank 2) is gold." in said(test)
    test.session_state[f"work-text-{ids[0]}"] = True
    healthy(test.run())
    assert f"id {ids[0]}" in said(test)


def test_a_stage_asks_only_for_what_this_case_lacks() -> None:
    few = {**LOGS, "chunks": LOGS["chunks"][:1]}
    for record, wanted in ((few, "at least 4 chunks"), ({**LOGS, "answers": []}, "the right answers")):
        assert f"Position :gray[add {wanted}]" in said(paste(json.dumps(record)))
    assert "Position :gray[add the right answers and at least 4 chunks]" in said(
        paste(json.dumps({**few, "answers": []}))
    )


def test_a_paste_without_a_case_gets_a_whole_sentence() -> None:
    text = said(shape("otel_genai_ids_only_sdk.json"))
    assert "The pasted text looks like OpenTelemetry GenAI spans, but holds no case: 12 retrieved document(s)" in text


def test_the_notes_on_a_case_are_said_before_it_is_ready_too() -> None:
    note = "Note: no separator was found, so the whole text is one chunk"
    test = paste("Raw logs are kept 45 days.")
    assert said(test).count(note) == 1
    test.text_area(key="work-question").set_value("How long are raw logs kept?")
    healthy(test.run())
    assert said(test).count(note) == 1


def test_titles_of_proposed_chunks_stand_before_their_texts() -> None:
    prompt = "\n".join(f"Document [{n}](Title: Page {n}) Raw logs are kept {n}5 days." for n in (1, 2, 3))
    test = paste(f"{prompt}\n\nQuestion: How long are raw logs kept?\nAnswer:")
    assert list(test.dataframe[0].value.columns) == ["rank", "id", "title", "text"]


def test_a_long_list_is_paged_filtered_and_moved_in() -> None:
    texts = [{"id": f"n{place}", "text": f"Notice {place} of the archive."} for place in range(200)]
    texts[150] = {"id": "n150", "text": "Raw logs are kept 45 days."}
    test = paste(json.dumps({**LOGS, "chunks": texts}))
    assert len([box for box in test.checkbox if (box.key or "").startswith("chunk-gold_ids-")]) == 20
    test.number_input(key="work-page").set_value(10)
    healthy(test.run())
    assert test.checkbox(key="chunk-gold_ids-n199").label == "gold"
    test.button_group(key="work-show").set_value("with the answer")
    healthy(test.run())
    assert test.checkbox(key="chunk-gold_ids-n150")
    test.number_input(key="work-move-from").set_value(151)
    test.number_input(key="work-move-to").set_value(1)
    test.button(key="move").click()
    healthy(test.run())
    assert ranks(test)[:3] == ["n150", "n0", "n1"]


def test_hostile_text_reaches_no_markdown() -> None:
    chunks = [{"id": HOSTILE, "text": HOSTILE, "title": HOSTILE}, {"id": "b", "text": f"{HOSTILE} 45 days"}]
    record = {**LOGS, "id": HOSTILE, "question": HOSTILE, "chunks": chunks, HOSTILE: 1}
    test = paste(json.dumps(record) + "\n" + json.dumps({**record, "answers": [HOSTILE]}))
    marked = [item.value for kind in ("markdown", "caption", "subheader", "warning") for item in test.get(kind)]
    marked += [item.label for item in test.expander]
    for text in marked:
        assert "![x](" not in text
        assert "<script>" not in text
        assert ":red[hi]" not in text
        assert "](javascript" not in text


# --- drafts ---------------------------------------------------------------------------------------------------


def test_a_draft_survives_a_reload_with_its_changes(tmp_path: Path) -> None:
    test = shape("ragas_rows.json")
    test.selectbox(key="work-pick").set_value(1)
    healthy(test.run())
    test.button(key="up-1").click()
    healthy(test.run())
    before = case_of(test)
    files = sorted((tmp_path / "drafts").iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "drafts").stat().st_mode) == 0o700
    again = page(draft=draft_of(test))  # a new session, as after a reload
    assert case_of(again) == before
    assert again.selectbox(key="work-pick").value == 1
    again.button(key="undo").click()
    healthy(again.run())
    assert ranks(again) != ranks(test)
    again.button(key="start-over").click()
    healthy(again.run())
    assert not list((tmp_path / "drafts").iterdir())
    assert not again.text_area(key="case-json").value
    assert not ready(again)


def test_a_form_and_an_upload_survive_a_reload() -> None:
    test = page()
    test.button_group(key="case-way").set_value("Form").run()
    test.text_area(key="form-question").set_value("Who signs?")
    test.text_area(key="form-chunks").set_value("one\n---\ntwo")
    healthy(test.run())
    again = page(draft=draft_of(test))
    assert again.text_area(key="form-question").value == "Who signs?"
    assert ready(again)
    test = page()
    test.button_group(key="case-way").set_value("Upload a file").run()
    data = (SHAPES / "liu.jsonl.gz").read_bytes()
    healthy(test.file_uploader(key="case-file").upload("liu.jsonl.gz", data, "application/gzip").run())
    assert ready(test)
    again = page(draft=draft_of(test))
    assert f"In hand: liu.jsonl.gz, {len(data):,} bytes." in said(again)
    assert case_of(again) == case_of(test)


def test_a_fault_of_the_disk_is_said_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "drafts").write_text("a file stands where the folder should be")
    test = paste(json.dumps(LOGS))
    assert "The draft cannot be kept in" in said(test)
    assert ready(test)


def test_a_file_that_was_uploaded_goes_with_its_draft() -> None:
    test = page()
    test.button_group(key="case-way").set_value("Upload a file").run()
    test.file_uploader(key="case-file").upload("logs.json", json.dumps(LOGS).encode(), "application/json").run()
    assert ready(healthy(test))
    test.button(key="start-over").click()
    healthy(test.run())
    test.button_group(key="case-way").set_value("Upload a file").run()
    assert not ready(healthy(test))
    assert "In hand" not in said(test)


def test_a_draft_of_nobody_is_refused_and_old_ones_go(tmp_path: Path) -> None:
    for wrong in ("0" * 32, "../../etc/passwd", "x"):
        assert "This draft is not here any more" in said(page(draft=wrong))
    drafts = Drafts(tmp_path / "drafts")
    drafts.save("a" * 32, {"way": "Paste"})
    drafts.save_source("a" * 32, b"x")
    drafts.save("b" * 32, {"way": "Paste"})
    assert drafts.load("a" * 32) is not None
    for path in (tmp_path / "drafts").glob("a*"):
        os.utime(path, (1, 1))
    assert drafts.load("a" * 32) is None
    assert drafts.sweep() == 2
    assert drafts.load("b" * 32) is not None


def test_the_form_opens_as_a_list(tmp_path: Path) -> None:
    test = page()
    test.button_group(key="case-way").set_value("Form").run()
    test.text_area(key="form-question").set_value("Who signs?")
    test.text_area(key="form-chunks").set_value("one\n---\ntwo")
    healthy(test.run())
    test.button(key="form-arrange").click()
    healthy(test.run())
    (draft,) = [path.stem for path in (tmp_path / "drafts").glob("*.json") if b'"lim"' in path.read_bytes()]
    again = page(draft=draft)
    assert ranks(again) == ["c1", "c2"]
    again.button(key="up-1").click()
    assert ranks(healthy(again.run())) == ["c2", "c1"]


# --- from a run -------------------------------------------------------------------------------------------------


def test_a_run_with_an_open_gold_leads_to_the_form(tmp_path: Path) -> None:
    document = json.loads((ROOT / "tests/fixtures/document.json").read_text("utf-8"))
    store = shell.store()
    for run_id, record in (("spoiled", {**LOGS, "gold_ids": ["b"]}), ("meant", {**LOGS, "answers": ["six weeks"]})):
        store.start_run(run_id, case_from_json(record).case, {"model": "embedded", "judge": "contains"}, {})
        changed = {**document, "run_id": run_id}
        if run_id == "meant":
            stages = [
                {
                    **stage,
                    "evidence": {**stage["evidence"], "suggestion": {"id": "b", "similarity": 0.7, "obstacle": None}},
                }
                if stage["stage"] == "retrieval"
                else stage
                for stage in document["stages"]
            ]
            changed["stages"] = stages
        store.save_document(run_id, changed)
        store.set_status(run_id, "done")
    test = page(run="spoiled")
    assert "c: not marked gold, yet with the answer in it." in said(test)
    test = page(run="meant")
    assert "Chunk b seems to state the answer in other words." in said(test)
    test.button(key="confirm-meant").click()
    healthy(test.run())
    (draft,) = [path.stem for path in (tmp_path / "drafts").glob("*.json")]
    again = page(draft=draft)
    assert "The run found that chunk b (rank 2) seems to state the answer" in said(again)
    again.button(key="mark-suggested").click()
    healthy(again.run())
    assert case_of(again)["gold_ids"] == ["b"]


def test_without_the_answer_word_for_word_the_nearest_by_meaning_is_found_on_a_click_and_marked() -> None:
    record = {
        **LOGS,
        "answers": ["six weeks and three days"],
        "chunks": [
            {"id": "a", "text": "The office opens at nine."},
            {"id": "b", "text": "Unprocessed log files are deleted after 45 days."},
            {"id": "c", "text": "A violin has four strings."},
            {"id": "d", "text": "Lunch is at noon."},
        ],
    }
    test = paste(json.dumps(record))
    assert "No chunk holds a right answer word for word." in said(test)
    assert "cosine" not in said(test)
    test.button(key="nearest").click()
    healthy(test.run(timeout=200))
    assert "chunk b (rank 2), cosine 0." in said(test)
    assert "a proposal to check" in said(test)
    assert len([button for button in test.button if (button.key or "").startswith("near-")]) == 3
    test.button(key="near-0").click()
    healthy(test.run())
    assert case_of(test)["gold_ids"] == ["b"]
    assert "Chunk b (rank 2) is gold." in said(test)
    assert "cosine" not in said(test)
