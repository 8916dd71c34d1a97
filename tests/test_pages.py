"""The pages' glue: what they draw, what they refuse, where they lead. The logic below them has tests of its own."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from lim_core.cases import case_from_json
from lim_core.errors import InputError
from lim_core.jobs import JobState
from lim_core.store import Store
from lim_core.types import Case
from lim_core.ui import shell, views
from lim_core.ui.model_form import check_allowed
from lim_core.ui.running import start_diagnosis
from lim_core.ui.samples import list_samples

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "pages").glob("*.py"))
FILES = [ROOT / "app.py", *PAGES]
DOCUMENT = json.loads((ROOT / "tests/fixtures/document.json").read_text("utf-8"))
HOSTILE = "![x](http://evil.example/p.png) <script>alert(1)</script> $x^2$ :red[hi] [a](javascript:alert(1)) `c` **b**"


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


def page(name: str, **query: str) -> AppTest:
    """A page as a cold link opens it: app.py is where the tree begins, but it is not run first."""
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    if name != "app.py":
        test.switch_page(name)
    for key, value in query.items():
        test.query_params[key] = value
    return test.run()


def healthy(test: AppTest) -> AppTest:
    assert not test.exception, [item.value for item in test.exception]
    assert not test.error, [item.value for item in test.error]
    return test


def case(question: str = "How many days are raw logs kept?", chunks: int = 5) -> Case:
    texts = [f"Notice {place}: the office opens at {place} o'clock." for place in range(1, chunks)]
    listed = [{"id": f"c{place}", "text": text} for place, text in enumerate([*texts, "Raw logs are kept 45 days."], 1)]
    return case_from_json(
        {"id": "logs", "question": question, "answers": ["45 days"], "chunks": listed, "gold_ids": []}
    ).case


def stored(run_id: str = "run-1", question: str = "How many days are raw logs kept?", status: str = "done") -> str:
    """A finished run in the store, with the document of the fixture."""
    store: Store = shell.store()
    store.start_run(run_id, case(question), {"model": "embedded", "judge": "contains"}, {})
    store.save_document(run_id, {**DOCUMENT, "run_id": run_id, "question": question})
    store.set_status(run_id, status)
    return run_id


# --- rules for every page ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_page_opens_the_shell_first_and_holds_no_logic(path: Path) -> None:
    source = path.read_text("utf-8")
    body = ast.parse(source).body
    first = next(node for node in body[1:] if not isinstance(node, ast.Import | ast.ImportFrom))
    assert isinstance(first, ast.Expr)
    assert ast.unparse(first).startswith("shell.open_page(")
    assert len(source.splitlines()) < 120
    assert not [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    names = {alias.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import) for alias in node.names}
    modules = {node.module or "" for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in names | modules if name.startswith("pages")]


def test_every_room_of_the_navigation_exists() -> None:
    assert {ROOT / room.path for room in shell.ROOMS} == set(FILES)


@pytest.mark.parametrize("path", ["app.py", *(f"pages/{path.name}" for path in PAGES)])
def test_first_paint_loads_nothing_heavy(path: str, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        f"test = AppTest.from_file({str(ROOT / 'app.py')!r}, default_timeout=60)\n"
        f"test = (test if {path!r} == 'app.py' else test.switch_page({path!r})).run()\n"
        "assert not test.error and not test.exception, [e.value for e in test.error]\n"
        "heavy = {'torch', 'sentence_transformers', 'xllamacpp', 'openai', 'bm25s', 'transformers', 'scipy'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "LIM_STORE": str(tmp_path / "lim.duckdb"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_only_the_views_show_untrusted_text() -> None:
    """No module draws raw HTML, and none but `views` and `shell` opens a heading or an alert with a bare variable."""
    for path in [*(ROOT / "lim_core/ui").glob("*.py"), *FILES]:
        source = path.read_text("utf-8")
        assert "unsafe_allow_html=True" not in source
        assert "st.html" not in source
        assert "st.write(" not in source
        assert "st.table(" not in source, "st.table reads Markdown in its cells"


# --- links --------------------------------------------------------------------------------------------


def test_a_link_survives_the_way_there_and_back() -> None:
    link = shell.RunLink("20261130-ab12", "case 7", 3)
    assert shell.RunLink.from_query(link.to_query()) == link
    assert shell.RunLink.from_query({}) == shell.RunLink()
    assert shell.RunLink(run="a").to_query() == {"run": "a"}


@pytest.mark.parametrize(
    "query",
    [
        {"run": ""},
        {"run": "../x"},
        {"run": "a b"},
        {"run": "x" * 81},
        {"position": "-1"},
        {"position": "١"},
        {"case": ""},
    ],
)
def test_a_link_that_lim_never_made_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(InputError, match="copy it again"):
        shell.RunLink.from_query(query)


@pytest.mark.parametrize(
    ("address", "url", "loopback"),
    [
        ("http://localhost:8501/Diagnose", "http://localhost:8501/Diagnose?run=r1", True),
        ("http://127.0.0.1:8501/Runs", "http://127.0.0.1:8501/Diagnose?run=r1", True),
        ("https://lim.example/tools/lim/Runs", "https://lim.example/tools/lim/Diagnose?run=r1", False),
        ("https://lim.example/", "https://lim.example/Diagnose?run=r1", False),
    ],
)
def test_the_link_uses_the_address_of_the_browser(address: str, url: str, loopback: bool) -> None:
    assert shell.share(shell.RunLink(run="r1"), address) == shell.Shared(url, loopback)


def test_an_unknown_run_gets_a_clear_sentence() -> None:
    test = page("pages/1_Diagnose.py", run="nosuchrun")
    assert "There is no run nosuchrun" in unescaped(test.error[0].value)


def test_a_bad_run_id_gets_a_clear_sentence_and_no_echo() -> None:
    test = page("pages/1_Diagnose.py", run="<script>alert(1)</script>")
    assert "does not hold a valid run id" in unescaped(test.error[0].value)
    assert "script" not in test.error[0].value


# --- a stored result ------------------------------------------------------------------------------------


def test_a_cold_link_draws_the_whole_result() -> None:
    test = healthy(page("pages/1_Diagnose.py", run=stored()))
    assert "right 7 of 8 first, 0 of 8 in the middle" in " ".join(item.value for item in test.text)
    strip = test.button_group(key="run-1-stage")
    assert strip.value == "position"  # the stage that lost the answer is open
    assert len(test.get("plotly_chart")) == 3
    assert "e = 31.9" in unescaped(" ".join(item.value for item in test.caption))
    codes = [item.value for item in test.code]
    assert any("def arrange(question, texts)" in code for code in codes)
    assert any(code.startswith("lim: LOST_IN_THE_MIDDLE") for code in codes)  # the summary to copy


def test_an_interrupted_run_can_be_continued() -> None:
    test = page("pages/1_Diagnose.py", run=stored(status="interrupted"))
    assert "was interrupted" in unescaped(test.warning[0].value)
    assert [button.label for button in test.button if button.key == "continue"] == ["Continue"]


def test_hostile_text_reaches_no_markdown() -> None:
    run_id = stored(question=HOSTILE)
    document = {**DOCUMENT, "summary": HOSTILE, "also": [HOSTILE], "warnings": [HOSTILE], "tested_model": HOSTILE}
    document["stages"] = [{**stage, "summary": HOSTILE, "advice": HOSTILE} for stage in DOCUMENT["stages"]]
    document["remedies"] = [{**remedy, "title": HOSTILE, "note": HOSTILE} for remedy in DOCUMENT["remedies"]]
    shell.store().save_document(run_id, document)
    for name in ("pages/1_Diagnose.py", "pages/6_Runs.py", "app.py"):
        test = healthy(page(name, run=run_id) if name != "app.py" else page(name))
        marked = [
            item.value for kind in ("markdown", "caption", "header", "subheader", "warning") for item in test.get(kind)
        ]
        marked += [item.label for item in test.expander]
        for text in marked:
            assert "![x](" not in text
            assert "<script>" not in text
            assert ":red[hi]" not in text
            assert "](javascript" not in text


def unescaped(text: str) -> str:
    return text.replace(":small[]", "").replace("\\", "")


def test_escaping_keeps_the_text() -> None:
    assert unescaped(views.escape(HOSTILE)) == HOSTILE.replace("\\", "")


# --- the list of runs -------------------------------------------------------------------------------------


def test_runs_are_filtered_picked_and_deleted() -> None:
    stored("run-1")
    stored("run-2", question="Who signs the lease?")
    test = healthy(page("pages/6_Runs.py"))
    assert list(test.dataframe[0].value["run"]) == ["run-2", "run-1"]
    test.text_input(key="text").set_value("lease").run()
    assert list(test.dataframe[0].value["run"]) == ["run-2"]
    test.session_state["runs"] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    healthy(test.run())
    assert test.query_params["run"] in ("run-2", ["run-2"])
    test.button(key="delete").click().run()
    assert shell.store().run("run-2") is None
    assert shell.store().run("run-1") is not None


def test_exports_hold_the_run() -> None:
    from lim_core.ui.runs_list import exported

    run_id = stored()
    assert json.loads(shell.store().export_json(run_id))["document"]["cause"] == "LOST_IN_THE_MIDDLE"
    assert exported(shell.store().export_parquet, run_id).startswith(b"PAR1")


# --- a new case ---------------------------------------------------------------------------------------------


def fill(test: AppTest) -> AppTest:
    test.button_group(key="case-way").set_value("Form").run()
    test.text_area(key="form-question").set_value("How long are raw logs kept?").run()
    test.text_area(key="form-answers").set_value("45 days\nforty-five days")
    chunks = "\n---\n".join(
        ["The office opens at nine.", "Raw logs are kept 45 days.", "Lunch is at noon.", "Doors lock at six."]
    )
    test.text_area(key="form-chunks").set_value(chunks)
    return test.run()


def test_the_form_makes_a_case_and_says_what_it_enables() -> None:
    test = healthy(page("pages/1_Diagnose.py"))
    assert test.button(key="diagnose").disabled
    fill(test)
    healthy(test)
    assert not test.button(key="diagnose").disabled
    said = " ".join(item.value for item in test.markdown)
    assert "Position :gray[answers and chunks are there]" in said
    assert "Assembly :gray[add the prompt as sent]" in said


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "The question is not known"),
        ("[]", "no shape that is known"),
        ('{"chunks": []}', "no shape that is known"),
        ('{"question": "q"}', "no shape that is known"),
        ('{"question": 7, "chunks": []}', "question must be a text"),
        ('{"question": "", "chunks": ["a"]}', "The question is not known"),
    ],
)
def test_a_bad_case_is_refused_in_one_sentence(text: str, word: str) -> None:
    test = page("pages/1_Diagnose.py")
    test.text_area(key="case-json").set_value(text).run()
    assert not test.exception
    assert test.button(key="diagnose").disabled
    assert word in " ".join(unescaped(item.value) for item in test.warning)


def test_an_uploaded_file_is_read() -> None:
    test = page("pages/1_Diagnose.py")
    test.button_group(key="case-way").set_value("Upload a file").run()
    body = json.dumps({"question": "q?", "chunks": ["a", "b"], "answers": ["a"]}).encode("utf-16")
    test.file_uploader(key="case-file").upload("case.json", body, "application/json").run()
    healthy(test)
    assert not test.button(key="diagnose").disabled


def test_the_button_starts_a_run_and_goes_to_its_link() -> None:
    """A case without right answers costs no call, so this runs the real thing without loading a model."""
    test = page("pages/1_Diagnose.py")
    body = {"id": "no-answers", "question": "How long?", "chunks": ["one", "two"], "prompt": "one How long?"}
    test.text_area(key="case-json").set_value(json.dumps(body)).run()
    test.button(key="diagnose").click().run()
    (job,) = shell.jobs().all()
    ended = shell.jobs().wait(job.id, timeout=60)
    assert ended is not None
    assert ended.state is JobState.DONE, ended.error
    shown = healthy(page("pages/1_Diagnose.py", run=job.id))
    assert "How long?" in " ".join(item.value for item in shown.text)
    again = shown.button(key="again").click().run()
    healthy(again)
    assert len(shell.jobs().all()) == 2


def test_home_offers_the_samples_and_the_last_runs() -> None:
    run_id = stored()
    test = healthy(page("app.py"))
    assert len([button for button in test.button if (button.key or "").startswith("sample-")]) == len(list_samples())
    links = [item.proto.page_link if hasattr(item.proto, "page_link") else item.proto for item in test.get("page_link")]
    assert any(run_id in str(link) for link in links)


# --- models -------------------------------------------------------------------------------------------------


def test_a_key_belongs_to_the_address_it_was_typed_for() -> None:
    test = page("pages/7_Models.py")
    test.button_group(key="model-way").set_value("Endpoint").run()
    test.text_input(key="model-url").set_value("http://127.0.0.1:9/v1")
    test.text_input(key="model-name").set_value("some-model")
    test.text_input(key="model-key-0").set_value("sk-planted-key-123456")
    healthy(test.button(key="use-endpoint").click().run())
    assert test.session_state["model-keys"] == {"http://127.0.0.1:9/v1": "sk-planted-key-123456"}
    assert test.session_state["model-choice"].base_url == "http://127.0.0.1:9/v1"
    # The next address starts with an empty box, and nothing is filed for it.
    test.text_input(key="model-url").set_value("http://127.0.0.2:9/v1")
    assert not test.text_input(key="model-key-1").value
    healthy(test.button(key="use-endpoint").click().run())
    assert list(test.session_state["model-keys"]) == ["http://127.0.0.1:9/v1"]


def test_a_wrong_address_is_refused_without_an_echo_of_its_password() -> None:
    test = page("pages/7_Models.py")
    test.button_group(key="model-way").set_value("Endpoint").run()
    test.text_input(key="model-url").set_value("http://user:hidden@127.0.0.1:9/v1")
    test.text_input(key="model-name").set_value("m")
    test.button(key="test-endpoint").click().run()
    assert test.error
    assert "hidden" not in test.error[0].value


def test_a_server_open_to_others_calls_listed_addresses_only(monkeypatch: pytest.MonkeyPatch) -> None:
    check_allowed("http://127.0.0.1:9/v1")  # bound to loopback: anything goes
    monkeypatch.setattr(st, "get_option", lambda name: "0.0.0.0")  # noqa: S104
    monkeypatch.setenv("LIM_BASE_URL", "http://models.example/v1")
    check_allowed("http://models.example/v1/")
    from lim_core.errors import ConfigError

    with pytest.raises(ConfigError, match="open to others"):
        check_allowed("http://169.254.169.254/latest")


def test_a_run_started_here_never_stores_the_key(tmp_path: Path) -> None:
    from lim_core.runs import RunSettings

    settings = RunSettings(model="m", base_url="http://127.0.0.1:9/v1", stages=("truncation", "retrieval"))
    run_id = start_diagnosis(case(), settings)
    shell.jobs().wait(run_id, timeout=60)
    assert "sk-" not in shell.store().export_json(run_id)
