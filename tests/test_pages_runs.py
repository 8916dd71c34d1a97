"""Prices, caps, keys, the queue and the inbox on the pages, with the real store, real jobs and a real endpoint on loopback."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import TextInput

from lim_core.backends.chat import ChatClient
from lim_core.backends.scripted import ScriptedOptions, read_script
from lim_core.backends.scripted_server import ScriptedServer
from lim_core.cases import case_to_json
from lim_core.errors import ConfigError
from lim_core.jobs import INTERNAL_ERROR, JobContext, JobState
from lim_core.prices import FILE_NAME, Price, PriceTable, read_prices, write_prices
from lim_core.runs import RunSettings, diagnosis
from lim_core.store import Store
from lim_core.types import Bench, Case, Reply, Request
from lim_core.ui import shell
from lim_core.ui.model_form import ModelChoice
from lim_core.ui.price_form import price_words, table_of
from lim_core.ui.resuming import stop
from lim_core.ui.running import start_diagnosis
from tests.questions import office_case

ROOT = Path(__file__).resolve().parents[1]
DIAGNOSE, RUNS, MODELS = "pages/1_Diagnose.py", "pages/6_Runs.py", "pages/7_Models.py"
KEY = "sk-planted-0123456789abcdef"
# Enough calls for the verdict, and none left for the remedies: they would load the embedding model in that process too.
QUICK = ("--model", "scripted", "--max-calls", "26")


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store of its own for every test; the caches forget the one before."""
    monkeypatch.setenv("LIM_STORE", str(tmp_path / "lim.duckdb"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("LIM_BASE_URL", "LIM_API_KEY", "LIM_MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    st.cache_resource.clear()
    yield
    restart()


def restart() -> None:
    """As when the server ends: its jobs go, its store closes, and the next use opens both anew."""
    for job in shell.jobs().active():
        shell.jobs().cancel(job.id)
        shell.jobs().wait(job.id, timeout=60)
    shell.store().close()
    st.cache_resource.clear()


def page(name: str, on: ModelChoice | None = None, key: str | None = None, **query: str) -> AppTest:
    """A page as a cold link opens it, in a session that tests `on` an endpoint and holds `key` for it."""
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page(name)
    if on is not None:
        test.session_state["model-choice"] = test.session_state["model-endpoint"] = on
        if key is not None:
            test.session_state["model-keys"] = {on.base_url: key}
    for parameter, value in query.items():
        test.query_params[parameter] = value
    return test.run()


def healthy(test: AppTest) -> AppTest:
    assert not test.exception, [item.value for item in test.exception]
    assert not test.error, [item.value for item in test.error]
    return test


def said(test: AppTest) -> str:
    """Everything the page says, without the escapes."""
    kinds = ("text", "caption", "warning", "error", "markdown", "success")
    return unescaped(" ".join(str(item.value) for kind in kinds for item in test.get(kind)))


def unescaped(text: str) -> str:
    return text.replace(":small[]", "").replace("\\", "")


def endpoint(latency: float = 0.0, key: str | None = KEY) -> ScriptedServer:
    """It reads the edges of a prompt and not its middle, and wants a key."""
    return ScriptedServer(read_script(ScriptedOptions(profile="u", edge=1.0, middle=0.0, latency=latency), key=key))


def settings(server: ScriptedServer, **changes: object) -> RunSettings:
    return RunSettings(model="scripted", base_url=server.base_url, **changes)  # type: ignore[arg-type]


def end(run_id: str, state: JobState = JobState.DONE) -> None:
    job = shell.jobs().wait(run_id, timeout=60)
    assert job is not None
    assert job.state is state, job.error


def at(server: ScriptedServer) -> ModelChoice:
    return ModelChoice("scripted", server.base_url)


def fill(test: AppTest) -> AppTest:
    test.session_state["case-way"] = "Form"
    test.run()
    case = office_case()
    test.text_area(key="form-question").set_value(case.question).run()
    test.text_area(key="form-answers").set_value(case.answers[0])
    test.text_area(key="form-chunks").set_value("\n---\n".join(chunk.text for chunk in case.chunks))
    return test.run()


# --- prices ---------------------------------------------------------------------------------------------


def edit(test: AppTest, rows: list[dict[str, object]], turn: int = 0) -> AppTest:
    test.session_state[f"prices-{turn}"] = {"edited_rows": {}, "added_rows": rows, "deleted_rows": []}
    return test.button(key="prices-save").click().run()


def test_prices_typed_here_are_kept_and_shown_for_the_model_of_the_session(tmp_path: Path) -> None:
    test = healthy(page(MODELS, ModelChoice("big-model", "http://127.0.0.1:9/v1")))
    assert "Price of big-model: unknown." in said(test)
    test.text_input(key="prices-currency-0").set_value("EUR")
    rows = [
        {"model": " big-model ", "input": 2.5, "cached input": None, "output": 10},
        {"model": "free-model", "input": 0, "cached input": 0, "output": 0},
        {"model": "unknown-model"},
    ]
    healthy(edit(test, rows))
    assert read_prices(tmp_path) == PriceTable("EUR", {"big-model": Price(2.5, 10.0), "free-model": Price(0, 0, 0)})
    assert "Price of big-model: 2.5 input, 10 output, EUR per million tokens." in said(test)
    assert "The prices are saved." in said(test)
    # A row that is emptied is unknown again, not free.
    test.session_state["prices-1"] = {
        "edited_rows": {"0": {"input": None, "output": None}},
        "added_rows": [],
        "deleted_rows": [],
    }
    healthy(test.button(key="prices-save").click().run())
    assert read_prices(tmp_path).find("big-model") is None
    assert "Price of big-model: unknown." in said(test)


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ([{"input": 1, "output": 1}], "Row 2 of the prices has no model"),
        ([{"model": "m", "input": 1}], "The price of m needs both input and output"),
        ([{"model": "m", "cached input": 1}], "The price of m needs both input and output"),
        ([{"model": "m", "input": 1, "output": 1}, {"model": "m ", "input": 2, "output": 2}], "names m twice"),
        ([{"model": "m", "input": -1, "output": 1}], "The input price of m must be a number of 0 or more"),
    ],
)
def test_a_wrong_price_is_refused_in_one_sentence_and_nothing_is_kept(
    tmp_path: Path, rows: list[dict[str, object]], word: str
) -> None:
    write_prices(tmp_path, PriceTable("USD", {"kept": Price(1.0, 2.0)}))
    test = edit(page(MODELS), rows)
    assert not test.exception
    assert word in said(test)
    assert read_prices(tmp_path) == PriceTable("USD", {"kept": Price(1.0, 2.0)})


def test_a_table_that_another_session_changed_is_not_overwritten(tmp_path: Path) -> None:
    test = page(MODELS)
    write_prices(tmp_path, PriceTable("USD", {"theirs": Price(1.0, 2.0)}))
    edit(test, [{"model": "mine", "input": 1, "output": 1}])
    assert "were changed elsewhere" in said(test)
    assert list(read_prices(tmp_path).models) == ["theirs"]
    healthy(edit(test.run(), [{"model": "mine", "input": 1, "output": 1}], turn=1))
    assert sorted(read_prices(tmp_path).models) == ["mine", "theirs"]


def test_a_broken_table_is_said_and_the_rest_of_the_page_stands(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("{")
    test = page(MODELS)
    assert "mend it or delete it" in said(test)
    assert test.button_group(key="model-way").value == "Embedded"


def test_words_and_currency_of_a_price() -> None:
    table = table_of([{"model": "m", "input": 0.075, "cached input": 0.01, "output": 1200}], " EUR ")
    assert price_words(table, "m") == "0.075 input, 0.01 cached input, 1,200 output, EUR per million tokens"
    assert price_words(table, "M") == "unknown"
    with pytest.raises(ConfigError, match="currency"):
        table_of([], " ")


# --- settings ---------------------------------------------------------------------------------------------


def test_caps_and_limits_go_into_the_run(tmp_path: Path) -> None:
    write_prices(tmp_path, PriceTable("EUR", {"scripted": Price(2.0, 8.0)}))
    with endpoint() as server:
        test = fill(page(DIAGNOSE, at(server), KEY))
        healthy(test)
        assert "EUR by the price table" in said(test)
        numbers = {
            "start-calls": 40, "start-tokens": 90_000, "start-money": 1.5, "start-flight": 3, "start-rpm": 6000,
            "start-tpm": 5_000_000, "start-alpha": 0.1, "start-delta": 0.3, "start-seed": 7,
        }  # fmt: skip
        for key, value in numbers.items():
            test.number_input(key=key).set_value(value)
        test.selectbox(key="start-judge").set_value("liu")
        test.button(key="diagnose").click().run()
        (job,) = shell.jobs().all()
        end(job.id)
        kept = RunSettings.from_json(shell.store().settings(job.id))
        assert kept == settings(
            server, judge="liu", alpha=0.1, delta=0.3, seed=7, max_calls=40, max_tokens=90_000, max_cost=1.5,
            in_flight=3, requests_per_minute=6000, tokens_per_minute=5_000_000, keyed=True,
        )  # fmt: skip
        assert server.traffic.most_in_flight <= 3
        assert 0 < server.traffic.chats <= 40


def test_without_a_price_the_estimate_says_so_and_no_cap_on_money_is_taken() -> None:
    with endpoint() as server:
        test = fill(page(DIAGNOSE, at(server), KEY))
        assert "price unknown" in said(test)
        assert test.number_input(key="start-money").disabled
        test.session_state["start-money"] = 2.0
        test.number_input(key="start-calls").set_value(12).run()
        test.button(key="diagnose").click().run()
        (job,) = shell.jobs().all()
        end(job.id)
        assert shell.store().settings(job.id)["max_cost"] is None


def test_what_the_connection_test_found_goes_into_runs_on_that_endpoint_only() -> None:
    with endpoint() as server, endpoint() as other:
        test = page(MODELS)
        test.button_group(key="model-way").set_value("Endpoint").run()
        test.text_input(key="model-url").set_value(server.base_url)
        test.text_input(key="model-name").set_value("scripted")
        test.text_input(key="model-key-0").set_value(KEY)
        healthy(test.button(key="test-endpoint").click().run())
        healthy(test.button(key="use-endpoint").click().run())
        test.switch_page(DIAGNOSE)
        fill(test.run())
        test.number_input(key="start-calls").set_value(12)
        test.button(key="diagnose").click().run()
        (job,) = shell.jobs().all()
        end(job.id)
        assert shell.store().settings(job.id)["options"] == {"context_window": 16384, "server_tokens": True}
        assert len(other.traffic.seen) == 0


# --- the inbox ----------------------------------------------------------------------------------------------


def lim(store: Path, *arguments: str, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    """The command line in a process of its own."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("LIM_", "OPENAI_"))}
    return subprocess.run(
        [sys.executable, "-m", "lim_core", *arguments],
        cwd=ROOT,
        env=environ | {"LIM_STORE": str(store), "HF_HUB_OFFLINE": "1"},
        input=stdin,
        capture_output=True,
        timeout=120,
        check=False,
    )


def case_bytes() -> bytes:
    import json

    return json.dumps(case_to_json(office_case())).encode()


def test_a_run_of_the_command_line_appears_on_a_page_that_is_opened_after_it(tmp_path: Path) -> None:
    test = healthy(page(RUNS))
    assert "No runs match." in said(test)
    done = lim(tmp_path / "lim.duckdb", "diagnose", "-", *QUICK, stdin=case_bytes())
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "inbox").glob("*.duckdb")
    assert file.stem in done.stderr.decode()
    # The very session goes on: no restart.
    healthy(test.run())
    assert list(test.dataframe[0].value["run"]) == [file.stem]
    assert list(test.dataframe[0].value["result"]) == ["Lost in the middle of the prompt"]
    assert not file.exists()
    # A cold link to it opens as well.
    assert "Trials" in [item.value for item in healthy(page(DIAGNOSE, run=file.stem)).subheader]


def test_a_run_that_is_being_written_is_left_alone_and_pages_open(tmp_path: Path) -> None:
    page(RUNS)
    code = (
        "import sys, pathlib\nfrom lim_core.store import Store\nfrom tests.questions import office_case\n"
        f"store = Store.open_inbox('guest', beside=pathlib.Path({str(tmp_path / 'lim.duckdb')!r}))\n"
        "store.start_run('guest', office_case(),"
        " {'model': 'm', 'base_url': 'http://127.0.0.1:9/v1', 'keyed': True}, {})\n"
        "print('written', flush=True)\nsys.stdin.read(1)\nimport os\nos._exit(9)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdin is not None
        assert writer.stdout.readline() == b"written\n"
        assert "No runs match." in said(healthy(page(RUNS)))
        writer.stdin.write(b"x")
    # Its process died: what it wrote is taken in, and as it went with a key, it waits for that.
    test = healthy(page(RUNS))
    assert list(test.dataframe[0].value["status"]) == ["waiting for its key"]


@pytest.mark.parametrize("url", ["ftp://x", "http://user:pass@[", 7, None, "javascript:alert(1)"])
def test_an_address_from_the_inbox_that_is_none_stops_no_page(tmp_path: Path, url: object) -> None:
    with Store.open_inbox("guest", beside=tmp_path / "lim.duckdb") as guest:
        body = {"model": "m", "base_url": url, "keyed": True}
        guest.start_run("guest", office_case(), body, {})  # type: ignore[arg-type]
    test = healthy(page(RUNS))
    assert list(test.dataframe[0].value["status"]) == ["waiting for its key"]
    assert not page(DIAGNOSE, run="guest").exception


def test_two_sessions_take_the_inbox_in_once(tmp_path: Path) -> None:
    with Store.open_inbox("guest", beside=tmp_path / "lim.duckdb") as guest:
        guest.start_run("guest", office_case(), {"model": "m"}, {})
        guest.set_status("guest", "done")
    shell.store()
    threads = [threading.Thread(target=shell.take_in) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shell.take_in()
    assert shell.store().runs().total == 1
    assert list((tmp_path / "inbox").iterdir()) == []


# --- keys, caps, the queue ------------------------------------------------------------------------------------


def test_a_run_whose_key_is_gone_waits_asks_for_it_and_goes_on_without_paying_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with endpoint() as server:
        with monkeypatch.context() as environment:
            environment.setenv("LIM_BASE_URL", server.base_url)
            environment.setenv("LIM_API_KEY", KEY)
            run_id = start_diagnosis(office_case(), settings(server, max_calls=12))
            end(run_id)
        asked = len(server.traffic.seen)
        # As its process leaves it that is killed in the middle.
        shell.store().set_status(run_id, "running")
        restart()
        listed = healthy(page(RUNS))
        assert list(listed.dataframe[0].value["status"]) == ["waiting for its key"]
        test = healthy(page(DIAGNOSE, run=run_id))
        assert "waits for its key" in said(test)
        assert server.base_url in unescaped(key_box(test).label)
        assert test.button(key="again").disabled
        # Nothing typed, nothing sent.
        test.button(key="continue").click().run()
        assert "box for the key is empty" in said(test)
        assert len(server.traffic.seen) == asked
        # A wrong key is refused by the endpoint, and can be typed again.
        test = page(DIAGNOSE, run=run_id)
        key_box(test).set_value("sk-wrong-key-0000000000")
        test.button(key="continue").click().run()
        shell.jobs().wait(run_id, timeout=60)
        assert len(server.traffic.seen) > asked
        assert server.traffic.chats == 12
        healthy(test.run())
        assert "This run ended early" in said(test)
        assert not key_box(test).value
        key_box(test).set_value(KEY)
        test.number_input(key=f"resume-calls-{run_id}").set_value(200)
        test.button(key="continue").click().run()
        end(run_id)
        assert test.session_state["model-keys"] == {server.base_url: KEY}
        document = shell.store().document(run_id)
        assert document is not None
        calls = document["calls"]
        assert isinstance(calls, dict)
        assert document["cause"] == "LOST_IN_THE_MIDDLE"
        assert calls["cached"] >= 12
        # Each answer was paid for once; beside those, the requests in flight with the wrong key were sent.
        assert calls["made"] - server.traffic.chats in range(1, 5)
        assert KEY not in shell.store().export_json(run_id)
        # Another browser does not have it, and needs none to look.
        assert "waits for its key" not in said(healthy(page(DIAGNOSE, run=run_id)))


def key_box(test: AppTest) -> TextInput:
    (box,) = [item for item in test.text_input if (item.key or "").startswith("resume-key")]
    return box


def test_the_queue_is_shown_and_a_queued_run_can_be_cancelled_and_is_not_lost() -> None:
    gate = threading.Event()

    def waits(job: JobContext) -> object:
        return gate.wait(30)

    for name in ("a", "b"):
        shell.jobs().start(name, waits)
    early = RunSettings(stages=("truncation", "retrieval"))
    first, second = (start_diagnosis(office_case(), early) for _ in range(2))
    listed = healthy(page(RUNS))
    assert dict(zip(listed.dataframe[0].value["run"], listed.dataframe[0].value["status"], strict=True)) == {
        second: "queued, number 2 in line",
        first: "queued, number 1 in line",
    }
    stop(second)
    run = shell.store().run(second)
    assert run is not None
    assert run.status == "cancelled"
    gate.set()
    end(first)
    test = healthy(page(DIAGNOSE, run=second))
    assert "was cancelled" in said(test)
    test.button(key="continue").click().run()
    end(second)
    run = shell.store().run(second)
    assert run is not None
    assert run.status == "done"


def test_a_capped_run_says_so_and_goes_on_with_a_higher_cap() -> None:
    with endpoint(key=None) as server:
        run_id = start_diagnosis(office_case(), settings(server, max_calls=20))
        end(run_id)
        assert server.traffic.chats == 20
        test = healthy(page(DIAGNOSE, run=run_id))
        assert "The cap of 20 calls is reached. What was finished is kept" in said(test)
        assert test.number_input(key=f"resume-calls-{run_id}").value == 40
        test.number_input(key=f"resume-calls-{run_id}").set_value(200)
        test.button(key="continue").click().run()
        end(run_id)
        document = shell.store().document(run_id)
        assert document is not None
        assert document["stopped"] is None
        assert document["cause"] == "LOST_IN_THE_MIDDLE"
        calls = document["calls"]
        assert isinstance(calls, dict)
        assert calls["cached"] >= 20  # what was finished is served from the store
        assert shell.store().settings(run_id)["max_calls"] == 200
        assert not [item for item in healthy(page(DIAGNOSE, run=run_id)).button if item.key == "continue"]


# --- re-scoring, deleting -------------------------------------------------------------------------------------


def test_a_run_is_scored_again_at_no_calls() -> None:
    with endpoint(key=None) as server:
        run_id = start_diagnosis(office_case(), settings(server))
        end(run_id)
        paid = server.traffic.chats
        before = shell.store().trials(run_id)
        test = healthy(page(RUNS, run=run_id))
        test.selectbox(key="rescore-judge").set_value("liu").run()
        healthy(test.button(key="rescore-go").click().run())
        after = shell.store().trials(run_id)
        assert server.traffic.chats == paid
        assert {row.judge for row in before} == {"contains"}
        assert {row.judge for row in after} == {"liu"}
        assert [row.answer for row in after] == [row.answer for row in before]
        tally = {outcome: sum(row.outcome == outcome for row in after) for outcome in {row.outcome for row in after}}
        assert "Scored by liu" in said(test)
        assert all(f"{amount}" in said(test) for amount in tally.values())


def test_old_runs_are_deleted_once_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    store = shell.store()
    now = time.time()
    for name, age in (("old-run", 100), ("new-run", 10)):
        with monkeypatch.context() as past:
            past.setattr(time, "time", lambda age=age: now - age * 86_400)
            store.start_run(name, office_case(), {"model": "embedded"}, {})
            store.set_status(name, "done")
    test = healthy(page(RUNS, run="old-run"))
    assert test.button(key="old-delete").disabled
    test.checkbox(key="old-sure").check().run()
    healthy(test.button(key="old-delete").click().run())
    assert store.run("old-run") is None
    assert store.run("new-run") is not None
    assert "Deleted: 1 runs older than 90 days." in said(test)


# --- the log --------------------------------------------------------------------------------------------------


class Leak(BaseException):
    """As a library in another language raises it: no Exception."""


@pytest.mark.parametrize("place", ["while a model is called", "in a stage", "deeper than an exception"])
def test_an_error_inside_a_run_leaves_no_prompt_and_no_key_in_the_log(
    place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async def breaks(self: ChatClient, request: Request) -> Reply:
        raise RuntimeError(f"{self.key} {request.messages[-1].content}")

    def breaks_here(case: Case, bench: Bench, only: object) -> object:
        raise (RuntimeError if place == "in a stage" else Leak)(f"{KEY} {case.question} {case.chunks}")

    if place == "while a model is called":
        monkeypatch.setattr(ChatClient, "send", breaks)
    else:
        monkeypatch.setattr(diagnosis, "diagnose", breaks_here)
    with endpoint() as server, caplog.at_level(logging.DEBUG):
        test = fill(page(DIAGNOSE, at(server), KEY))
        test.button(key="diagnose").click().run()
        (job,) = shell.jobs().all()
        shell.jobs().wait(job.id, timeout=60)
        run = shell.store().run(job.id)
        assert run is not None
        assert run.status == "failed"
        shown = said(page(DIAGNOSE, at(server), KEY, run=job.id))
        assert "nternal error" in shown
    printed = capfd.readouterr()
    for text in (caplog.text, printed.out, printed.err):
        assert KEY not in text
        assert "Lindholm" not in text
        assert "Who signs" not in text
    if place != "while a model is called":
        assert run.note == INTERNAL_ERROR
        assert "test_pages_runs.py" in caplog.text  # the class and the lines
    assert KEY not in shell.store().export_json(job.id)
