"""Runs and trials in the store."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lim_core.cases import case_from_json, case_to_json
from lim_core.errors import InputError
from lim_core.store import Rescore, Store
from lim_core.store.encoding import storable, to_json, without_credentials
from lim_core.types import Message, Outcome
from tests.stored import RELEASE, ROOT, SETTINGS, a_case, a_document, a_trial, put, raw, start


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "lim.duckdb"


def test_a_run_from_start_to_document(path: Path) -> None:
    with Store.open(path) as store:
        before = time.time()
        start(store)
        running = store.run("r1")
        assert running is not None
        assert (running.status, running.cause, running.calls, running.has_document) == ("running", None, None, False)
        assert before <= running.created_at.timestamp() <= time.time()
        assert running.created_at.utcoffset() is not None
        put(store, *(a_trial(number) for number in range(3)))
        store.save_document("r1", a_document("r1"))
        store.set_status("r1", "done", "all well")
        done = store.run("r1")
        assert done is not None
        assert (done.status, done.cause, done.calls, done.seconds) == ("done", "LOST_IN_THE_MIDDLE", 28, 12.5)
        assert (done.note, done.kind, done.case_id, done.model) == ("all well", "diagnosis", "ferry", "scripted")
        assert done.created_at == running.created_at < done.updated_at
        assert done.settings == SETTINGS == store.settings("r1")
        assert done.release == {**RELEASE, "seen": True}
        assert store.document("r1") == a_document("r1")
        assert store.case("r1") == a_case()
        # A change of status is a new row.
        statuses = raw(store, "SELECT status FROM runs ORDER BY row")
        assert statuses == [("running",), ("running",), ("done",)]
        assert raw(store, "SELECT stage, status, cause, advice FROM findings ORDER BY position") == [
            ("truncation", "pass", None, None),
            ("position", "fail", "LOST_IN_THE_MIDDLE", "Cut."),
        ]
        assert raw(store, "SELECT name, tried, n, before, after, gain, low FROM remedies") == [
            ("rerank:bm25", True, 8, 0.125, 0.875, 0.75, None)
        ]
    with Store.open(path) as again:
        assert again.document("r1") == a_document("r1")
        assert again.run("r1") == done


def test_what_is_not_there(path: Path) -> None:
    with Store.open(path) as store:
        assert store.run("nobody") is None
        assert store.document("nobody") is None
        assert store.trials("nobody") == []
        assert store.arms("nobody") == ()
        for act in (
            lambda: store.case("nobody"),
            lambda: store.settings("nobody"),
            lambda: store.sink("nobody", "contains", "1"),
            lambda: store.set_status("nobody", "done"),
            lambda: store.save_document("nobody", a_document("nobody")),
            lambda: store.delete("nobody"),
            lambda: store.export_json("nobody"),
            lambda: store.prompt("nobody"),
        ):
            with pytest.raises(InputError):
                act()
        for bad in ("", "../up", "a/b", "a\x00b", "x" * 81, ".hidden"):
            with pytest.raises(InputError, match="run id"):
                start(store, bad)
        with pytest.raises(ValueError, match="finished"):
            store.set_status("r1", "finished")


def test_a_run_is_started_again_with_its_own_case_only(path: Path) -> None:
    with Store.open(path) as store:
        start(store)
        store.set_status("r1", "waiting", "no key")
        store.start_run("r1", a_case(), {**SETTINGS, "max_calls": 400}, RELEASE)
        run = store.run("r1")
        assert run is not None
        assert (run.status, run.settings["max_calls"]) == ("running", 400)
        assert store.runs().total == 1
        with pytest.raises(InputError, match="another case"):
            start(store, "r1", a_case(question="And the first one?"))
        start(store, "r2")
        assert raw(store, "SELECT count(*) FROM cases") == [(1,)]


def test_the_list_filters_pages_and_counts(path: Path) -> None:
    with Store.open(path) as store:
        for number in range(25):
            case = a_case(f"case-{number}", f"Question {number} about Ærø, 100% sure?")
            start(store, f"r{number:02}", case)
            if number % 2:
                cause = "DISTRACTED" if number % 3 else "NO_FAULT_FOUND"
                store.save_document(f"r{number:02}", a_document("x", cause), "done")
        page = store.runs(limit=10)
        assert page.total == 25
        assert [row.id for row in page.rows] == [f"r{number:02}" for number in range(24, 14, -1)]
        assert [row.id for row in store.runs(limit=10, offset=20).rows] == ["r04", "r03", "r02", "r01", "r00"]
        assert store.runs(limit=10, offset=99).total == 25
        assert store.runs(status="done").total == 12
        assert store.runs(cause="DISTRACTED").total == 8
        assert store.runs(cause="DISTRACTED", status="running").total == 0
        assert store.runs(model="other").total == 0
        assert store.runs(text="ærø, 100% SURE").total == 25
        assert store.runs(text="question 7 ").rows[0].case_id == "case-7"
        # Wildcards and quotes are text.
        assert store.runs(text="100_").total == store.runs(text="'; DROP TABLE runs; --").total == 0
        assert store.runs().total == 25


def test_the_question_is_clipped_in_the_list_and_whole_in_the_case(path: Path) -> None:
    with Store.open(path) as store:
        start(store, "r1", a_case(question="why " * 5000))
        assert len(store.runs().rows[0].question) == 500
        assert store.case("r1").question == "why " * 5000


def test_trials_come_back_as_they_went_in(path: Path) -> None:
    with Store.open(path) as store:
        start(store)
        first = a_trial(0, arm="position:first")
        put(
            store,
            first,
            a_trial(1, arm="position:middle", outcome=Outcome.WRONG),
            a_trial(2, arm="position:middle", fault="timeout", text=""),
        )
        rows = store.trials("r1")
        assert [row.seq for row in rows] == [0, 1, 2]
        row = rows[0]
        assert (row.arm, row.block, row.repeat, row.slot, row.depth) == ("position:first", 0, 0, 0, 0.125)
        assert (row.outcome, row.reason, row.answer) == (Outcome.CORRECT, "an alias matches", "At 21:40. (0)")
        assert (row.prompt_tokens, row.cached_prompt_tokens, row.completion_tokens) == (100, 40, 7)
        assert (row.seconds, row.cached, row.fault, row.judge, row.judge_version) == (
            0.25,
            False,
            None,
            "contains",
            "1",
        )
        assert store.prompt(row.call_id) == first.call.messages
        assert [row.seq for row in store.trials("r1", arm="position:middle")] == [1, 2]
        assert [row.seq for row in store.trials("r1", outcome="error")] == [2]
        assert [row.seq for row in store.trials("r1", limit=1, offset=1)] == [1]
        assert store.count_trials("r1", arm="position:middle", outcome=Outcome.WRONG) == 1
        arms = store.arms("r1")
        assert [(arm.arm, arm.trials, arm.correct, arm.wrong, arm.error) for arm in arms] == [
            ("position:first", 1, 1, 0, 0),
            ("position:middle", 2, 0, 1, 1),
        ]


def test_a_resumed_run_serves_answers_not_faults_and_doubles_nothing(path: Path) -> None:
    answered = a_trial(0)
    failed = a_trial(1, fault="server", text="", key="k1")
    with Store.open(path) as store:
        start(store)
        put(store, answered, failed)
        store.set_status("r1", "interrupted")
    with Store.open(path) as store:
        start(store)
        cache = store.cache("r1")
        assert cache.find(answered.call.key) == answered.call
        assert cache.find("k1") is None
        assert cache.find("never sent") is None
        served = a_trial(0, call_id=answered.call.id, key=answered.call.key, cached=True)
        sent_anew = a_trial(1, key="k1")
        put(store, served, sent_anew)
        rows = store.trials("r1")
        # The first trial stays as it was paid for, the failed call gives way to the one that worked.
        assert [(row.seq, row.cached, row.call_id) for row in rows] == [
            (0, False, answered.call.id),
            (2, False, sent_anew.call.id),
        ]
        assert raw(store, "SELECT count(*), count(DISTINCT id) FROM calls") == [(3, 3)]
        assert store.cache("r1").find("k1") == sent_anew.call


def test_one_key_may_be_sent_again_and_the_newest_answer_is_served(path: Path) -> None:
    with Store.open(path) as store:
        start(store)
        put(store, a_trial(0, key="k"), a_trial(1, key="k"))
        found = store.cache("r1").find("k")
        assert found is not None
        assert found.text == "At 21:40. (1)"


def test_the_cache_of_a_run_is_its_own(path: Path) -> None:
    with Store.open(path) as store:
        start(store, "r1")
        start(store, "r2")
        put(store, a_trial(0), run_id="r1")
        assert store.cache("r2").find("key-position:first-0") is None


def test_a_judge_run_again_costs_no_call_and_keeps_the_old_score(path: Path) -> None:
    with Store.open(path) as store:
        start(store)
        put(store, a_trial(0), a_trial(1))
        store.add_scores("r1", "liu", "1", [Rescore(1, Outcome.WRONG, "no alias")])
        assert [(row.outcome.value, row.judge) for row in store.trials("r1")] == [
            ("correct", "contains"),
            ("wrong", "liu"),
        ]
        assert raw(store, "SELECT count(*), count(DISTINCT key) FROM scores") == [(3, 3)]
        assert raw(store, "SELECT count(*) FROM calls") == [(2,)]
        # The same judge in a new version, over a resumed run: a new score on the same trial.
        first = store.trials("r1")[0]
        sink = store.sink("r1", "contains", "2")
        sink.put(a_trial(0, call_id=first.call_id, outcome=Outcome.ABSTAINED, cached=True))
        sink.flush()
        assert [(row.seq, row.outcome.value, row.judge_version) for row in store.trials("r1")] == [
            (0, "abstained", "2"),
            (1, "wrong", "1"),
        ]


def test_put_returns_at_once_and_is_committed_within_moments(path: Path) -> None:
    with Store.open(path) as store:
        start(store)
        sink = store.sink("r1", "contains", "1")
        began = time.perf_counter()
        for number in range(1000):
            sink.put(a_trial(number))
        assert time.perf_counter() - began < 1.0
        until = time.monotonic() + 5
        while raw(store, "SELECT count(*) FROM trials") != [(1000,)]:
            assert time.monotonic() < until
            time.sleep(0.02)
        assert [row.seq for row in store.trials("r1", limit=2000)] == list(range(1000))


def test_many_threads_read_and_write(path: Path) -> None:
    failures: list[BaseException] = []
    with Store.open(path) as store:

        def session(number: int) -> None:
            try:
                run_id = f"t{number}"
                start(store, run_id)
                sink = store.sink(run_id, "contains", "1")
                for index in range(20):
                    sink.put(a_trial(index))
                    assert store.run(run_id) is not None
                    assert store.runs(limit=5).total >= 1
                    if index % 10 == 9:
                        assert len(store.trials(run_id)) == index + 1
                store.save_document(run_id, a_document(run_id), "done")
            except BaseException as fault:  # noqa: BLE001
                failures.append(fault)

        threads = [threading.Thread(target=session, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert store.runs(status="done").total == 4
        assert raw(store, "SELECT count(*), count(DISTINCT call_id) FROM trials") == [(80, 80)]


def test_hostile_text_is_kept(path: Path) -> None:
    nasty = "nul \x00, half \ud83d emoji, \u202e override, 'quote', \"; DROP TABLE runs;--"
    case = a_case("id \x00 \ud800", nasty)
    with Store.open(path) as store:
        start(store, "r1", case)
        put(store, a_trial(0, arm=f"own:{nasty}", text=nasty, prompt=nasty, params={"stop": [nasty]}))
        store.save_document("r1", {**a_document("r1"), "summary": nasty, "gap": float("nan")}, "done")
        store.set_status("r1", "failed", nasty)
        row = store.trials("r1")[0]
        assert row.answer == storable(nasty) == nasty.replace("\ud83d", "\ufffd")
        # What is compared or sent again is kept to the letter.
        assert store.prompt(row.call_id) == (Message("user", nasty),)
        assert store.case("r1") == case_from_json(case_to_json(case)).case
        document = store.document("r1")
        assert document is not None
        assert (document["summary"], document["gap"]) == (nasty, None)
        assert store.runs(text="half").total == 1
        exported = json.loads(store.export_json("r1"))
        assert exported["calls"][0]["messages"] == [{"role": "user", "content": nasty}]
        assert store.trials("r1", arm=f"own:{nasty}") == [row]
        assert (store.run(nasty), store.document(nasty), store.trials(nasty)) == (None, None, [])


def test_no_credential_reaches_the_file(path: Path) -> None:
    planted = "sk-planted-0123456789"
    settings = {
        **SETTINGS,
        "api_key": planted,
        "base_url": f"https://user:{planted}@models.example.net/v1",
        "headers": {"Authorization": f"Bearer {planted}", "max_tokens": 5},
    }
    case = a_case()
    case = type(case)(
        id="ferry", question=case.question, chunks=case.chunks, params={"api_key": planted, "max_tokens": 9}
    )
    with Store.open(path) as store:
        store.start_run("r1", case, settings, {"token": planted, "model": "m"})
        put(store, a_trial(0, params={"api-key": planted, "max_tokens": 16}))
        assert store.settings("r1")["headers"] == {"max_tokens": 5}
        assert store.settings("r1")["base_url"] == "https://models.example.net/v1"
        assert store.case("r1").params == {"max_tokens": 9}
        assert planted not in store.export_json("r1")
        # The same case is still the same case.
        store.start_run("r1", case, settings, {})
        assert planted.encode() not in path.with_name("lim.duckdb.wal").read_bytes()
    assert planted.encode() not in path.read_bytes()


def test_lists_stay_quick_with_a_thousand_runs_and_many_trials(path: Path) -> None:
    with Store.open(path) as store:
        start(store, "r0")
        put(store, a_trial(0), run_id="r0")
        store.save_document("r0", a_document("r0"), "done")
        with store._database.write() as cursor:
            many = "SELECT * REPLACE ('r' || i AS run_id) FROM {} CROSS JOIN range(1, 1000) AS t(i)"
            cursor.execute(f"INSERT INTO runs SELECT * EXCLUDE (i) FROM ({many.format('runs')})")  # noqa: S608
            for table, extra in (("trials", "call_id"), ("scores", "key")):
                cursor.execute(
                    f"""INSERT INTO {table} SELECT * EXCLUDE (i) REPLACE ('r' || (i // 100) AS run_id, i % 100 AS seq,
                        'c' || i AS {extra}, i % 100 AS {"block" if table == "trials" else "row"})
                        FROM {table} CROSS JOIN range(100, 100000) AS t(i)"""  # noqa: S608
                )
            cursor.execute(
                "INSERT INTO calls SELECT * EXCLUDE (i) REPLACE ('c' || i AS id) "
                "FROM calls CROSS JOIN range(100, 100000) AS t(i)"
            )
        assert raw(store, "SELECT count(*) FROM trials") == [(99_901,)]

        def seconds(act: object) -> float:
            best = 9.0
            for _ in range(3):
                began = time.perf_counter()
                act()  # type: ignore[operator]
                best = min(best, time.perf_counter() - began)
            return best

        assert store.runs(text="ferry", status="done").total == 1000
        assert store.count_trials("r500") == 100
        # Generous, for busy machines: a million trials took 57, 14, 58, 18 and 5 ms.
        assert seconds(lambda: store.runs(limit=50, text="ferry")) < 0.5
        assert seconds(lambda: store.run("r500")) < 0.5
        assert seconds(lambda: store.trials("r500", limit=100)) < 1.0
        assert seconds(lambda: store.arms("r500")) < 1.0
        assert seconds(lambda: store.prompt("c50050")) < 1.0
        store.delete("r500")
        assert store.count_trials("r500") == 0
        assert raw(store, "SELECT count(*) FROM calls") == [(99_801,)]


def test_json_is_strict_and_names_of_credentials_are_dropped() -> None:
    assert to_json({"a": float("inf"), "b": (1, 2), "c": Outcome.WRONG}) == '{"a": null, "b": [1, 2], "c": "wrong"}'
    kept = {"max_tokens": 1, "prompt_tokens": 2, "tokenizer": "x", "keyword": "k", "stop": ["key"], "monkey": 1}
    assert without_credentials(kept) == kept
    dropped = {
        "api_key": 1,
        "API-KEY": 1,
        "apikey": 1,
        "Authorization": 1,
        "password": 1,
        "access_token": 1,
        "x-api-key": 1,
    }
    assert without_credentials({**dropped, "deep": [{"secret": 1, "n": 2}]}) == {"deep": [{"n": 2}]}
    assert without_credentials(["https://u:p@h/v1", "mail me@home"]) == ["https://h/v1", "mail me@home"]


def test_importing_the_store_loads_no_database() -> None:
    code = (
        "import sys, lim_core.store, lim_core.config, lim_core.jobs\n"
        "print([m for m in ('duckdb', 'pyarrow', 'numpy', 'pandas', 'streamlit') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
