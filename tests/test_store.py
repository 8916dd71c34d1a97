"""The store, on real files, with real second processes, kills and full disks."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lim_core.cases import case_from_json, case_to_json
from lim_core.errors import InputError, StoreBusy, StoreError, StoreFull, StoreNewer
from lim_core.store import Rescore, RunStatus, Store
from lim_core.store.database import Database
from lim_core.store.encoding import storable, to_json, without_credentials
from lim_core.store.schema import MIGRATIONS
from lim_core.types import Message, Outcome
from tests.stored import RELEASE, SETTINGS, a_case, a_document, a_trial, start

ROOT = Path(__file__).parents[1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "lim.duckdb"


def script(act: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.stored", act, str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def put(store: Store, *results: object, run_id: str = "r1") -> None:
    sink = store.sink(run_id, "contains", "1")
    for result in results:
        sink.put(result)  # type: ignore[arg-type]
    sink.flush()


def raw(store: Store, query: str) -> list[tuple[object, ...]]:
    with store._database.cursor() as cursor:
        return cursor.execute(query).fetchall()


# --- the file ---------------------------------------------------------------------------------------


def test_file_and_folder_are_private_the_log_too(path: Path) -> None:
    old = os.umask(0o022)
    try:
        with Store.open(path) as store:
            start(store)
            put(store, a_trial())
            wal = path.with_name("lim.duckdb.wal")
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(wal.stat().st_mode) == 0o600
            store._database.checkpoint()
            put(store, a_trial(1))
            assert stat.S_IMODE(wal.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert [child.name for child in path.parent.iterdir()] == ["lim.duckdb"]
    finally:
        os.umask(old)


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "made-by-mktemp"
    path.touch()
    with Store.open(path) as store:
        start(store)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_tables_are_those_of_the_design(path: Path) -> None:
    with Store.open(path) as store:
        names = {name for (name,) in raw(store, "SELECT table_name FROM duckdb_tables()")}
    assert names == {
        *("runs", "cases", "arms", "trials", "scores", "findings", "remedies", "releases", "calls"),
        "schema_versions",
    }


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "ATTACH '/tmp/lim-other.duckdb' AS other",
        "COPY runs TO '/tmp/lim-out.csv'",
        "SET enable_external_access = true",
        "SET threads = 1",
        "INSTALL httpfs",
    ],
)
def test_external_access_is_off_and_stays_off(path: Path, query: str) -> None:
    with Store.open(path) as store, pytest.raises(StoreError):
        raw(store, query)


def test_a_file_that_is_no_store_is_named_and_left_alone(tmp_path: Path) -> None:
    import duckdb

    text = tmp_path / "notes.txt"
    text.write_text("not a database " * 1000)
    with pytest.raises(StoreError, match=r"notes\.txt"):
        Store.open(text)
    assert text.read_text().startswith("not a database")
    other = tmp_path / "other.duckdb"
    with duckdb.connect(str(other)) as connection:
        connection.execute("CREATE TABLE invoices (n INTEGER)")
    with pytest.raises(StoreError, match="not a store of lim"):
        Store.open(other)
    with pytest.raises(StoreError):
        Store.open(tmp_path)
    with pytest.raises(StoreFull, match="name another file"):
        Store.open(text / "below" / "x.duckdb")


def test_a_newer_store_is_refused_and_not_touched(path: Path) -> None:
    with Store.open(path) as store, store._database.write() as cursor:
        cursor.execute("INSERT INTO schema_versions VALUES (?, 'm099_later', 0)", [len(MIGRATIONS) + 1])
    before = path.read_bytes()
    with pytest.raises(StoreNewer, match="update lim"):
        Store.open(path)
    assert path.read_bytes() == before
    assert [child.name for child in path.parent.iterdir()] == ["lim.duckdb"]


def test_an_older_store_is_copied_then_migrated(path: Path) -> None:
    def m002_colour(cursor: object) -> None:
        cursor.execute("ALTER TABLE runs ADD COLUMN colour VARCHAR DEFAULT 'blue'")  # type: ignore[attr-defined]

    with Store.open(path) as store:
        start(store)
        put(store, a_trial())
    migrated = Database.open(path, [*MIGRATIONS, m002_colour])
    with migrated.cursor() as cursor:
        assert cursor.execute("SELECT DISTINCT colour FROM runs").fetchall() == [("blue",)]
        assert cursor.execute("SELECT max(version) FROM schema_versions").fetchall() == [(len(MIGRATIONS) + 1,)]
    migrated.close()
    copy = path.with_name(f"lim.duckdb.v{len(MIGRATIONS)}")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with pytest.raises(StoreNewer):
        Store.open(path)
    with Store.open(copy) as older:
        assert older.count_trials("r1") == 1


def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    def m002_breaks(cursor: object) -> None:
        cursor.execute("ALTER TABLE runs ADD COLUMN colour VARCHAR")  # type: ignore[attr-defined]
        cursor.execute("SELECT * FROM no_such_table")  # type: ignore[attr-defined]

    with Store.open(path) as store:
        start(store)
    with pytest.raises(StoreError):
        Database.open(path, [*MIGRATIONS, m002_breaks])
    with Store.open(path) as store:
        assert store.runs().total == 1
        assert raw(store, "SELECT * FROM duckdb_columns() WHERE column_name = 'colour'") == []


def test_a_store_held_by_another_process_is_busy_with_its_pid(path: Path) -> None:
    holder = script("hold", path)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreBusy, match=str(holder.pid)) as busy:
            Store.open(path)
        assert busy.value.pid == holder.pid
    finally:
        holder.kill()
        holder.communicate()
    with Store.open(path) as store:
        assert store.mark_interrupted() == ("r1",)


def test_a_closed_store_says_so_and_closes_twice(path: Path) -> None:
    store = Store.open(path)
    start(store)
    sink = store.sink("r1", "contains", "1")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.runs()
    with pytest.raises(StoreError, match="closed"):
        sink.put(a_trial())


# --- runs -------------------------------------------------------------------------------------------


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
        store.start_run("r1", "diagnosis", a_case(), {**SETTINGS, "max_calls": 400}, RELEASE)
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


# --- trials -----------------------------------------------------------------------------------------


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
        store.start_run("r1", "diagnosis", case, settings, {"token": planted, "model": "m"})
        put(store, a_trial(0, params={"api-key": planted, "max_tokens": 16}))
        assert store.settings("r1")["headers"] == {"max_tokens": 5}
        assert store.settings("r1")["base_url"] == "https://models.example.net/v1"
        assert store.case("r1").params == {"max_tokens": 9}
        assert planted not in store.export_json("r1")
        # The same case is still the same case.
        store.start_run("r1", "diagnosis", case, settings, {})
        assert planted.encode() not in path.with_name("lim.duckdb.wal").read_bytes()
    assert planted.encode() not in path.read_bytes()


# --- kills, full disks, exit --------------------------------------------------------------------------


def test_kill_9_at_any_moment_loses_no_committed_trial(path: Path) -> None:
    dice = random.Random(4)
    promised = 0
    for _ in range(3):
        writer = script("write", path)
        assert writer.stdout is not None
        line = writer.stdout.readline()
        assert line, writer.communicate()[1]
        time.sleep(dice.uniform(0.0, 0.4))
        writer.kill()
        rest = writer.communicate()[0].splitlines()
        promised = max(promised, int(line), *(int(count) for count in rest if count))
        with Store.open(path) as store:
            kept = store.count_trials("r1")
            assert kept >= promised
            assert [row.seq for row in store.trials("r1", limit=kept)] == list(range(kept))
            whole = "SELECT count(*) FROM trials JOIN calls ON call_id = id JOIN scores USING (run_id, seq)"
            assert raw(store, whole) == [(kept,)]
            assert store.mark_interrupted() == ("r1",)
            run = store.run("r1")
            assert run is not None
            assert (run.status, run.calls) == (RunStatus.INTERRUPTED, kept)
            promised = kept


def test_what_is_pending_is_committed_at_exit(path: Path) -> None:
    done = script("leave", path)
    _, errors = done.communicate(timeout=60)
    assert (done.returncode, errors) == (0, "")
    with Store.open(path) as store:
        assert store.count_trials("r1") == 50


def test_a_file_that_may_not_grow_is_a_full_store_and_goes_on_once_it_may(path: Path) -> None:
    full = script("fill", path)
    out, errors = full.communicate(timeout=120)
    assert (full.returncode, errors) == (0, "")
    committed, put_in_all, message = out.split(" ", 2)
    assert int(committed) > 0
    assert "no room left" in message
    with Store.open(path) as store:
        assert store.count_trials("r1") == int(put_in_all)


@pytest.fixture
def small_disk(tmp_path: Path) -> object:
    folder = tmp_path / "small"
    folder.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root; the growth limit of a process is tested all the same")
    mounted = subprocess.run([mount, "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], check=False)
    if mounted.returncode:
        pytest.skip("mounting a small disk is not permitted here")
    yield folder
    subprocess.run([umount, "-l", str(folder)], check=True)


def fill(store: Store) -> tuple[int, int]:
    """Put trials until the disk is full; returns how many were committed and how many put."""
    sink = store.sink("r1", "contains", "1")
    committed = number = 0
    try:
        while number < 20_000:
            sink.put(a_trial(number, prompt=os.urandom(1500).hex()))
            number += 1
            if number % 20 == 0:
                sink.flush()
                committed = number
    except StoreFull as full:
        assert "no room left" in str(full)
        return committed, number
    pytest.fail("the disk was never full")


def test_a_full_disk_is_reported_at_flush_and_put_and_loses_nothing_committed(small_disk: Path) -> None:
    path = small_disk / "lim.duckdb"
    store = Store.open(path)
    start(store)
    committed, number = fill(store)
    assert committed > 0
    with pytest.raises(StoreFull):
        store.sink("r1", "contains", "1").put(a_trial(number))
    with pytest.raises(StoreFull):
        store.set_status("r1", "failed")
    assert store.count_trials("r1") >= committed
    with pytest.raises(StoreFull):
        store.close()
    with Store.open(path) as again:
        assert committed <= again.count_trials("r1") <= number + 1
        assert again.document("r1") is None


def test_a_disk_that_has_room_again_is_used_again_by_the_same_store(small_disk: Path) -> None:
    path = small_disk / "lim.duckdb"
    with Store.open(path) as store:
        start(store)
        _, number = fill(store)
        # A checkpoint that fails is fatal to DuckDB's connection: the file has to be opened anew.
        with pytest.raises(StoreFull):
            store._database.checkpoint()
        subprocess.run(["mount", "-o", "remount,size=60m", str(small_disk)], check=True)
        store.flush()
        assert store.count_trials("r1") == number
        store.save_document("r1", a_document("r1"), "done")
    with Store.open(path) as again:
        assert again.count_trials("r1") == number
        assert again.run("r1").status == "done"  # type: ignore[union-attr]


# --- deleting -----------------------------------------------------------------------------------------


def test_delete_removes_the_run_and_the_calls_nobody_else_uses(path: Path) -> None:
    shared = a_trial(0)
    with Store.open(path) as store:
        start(store, "r1")
        start(store, "r2")
        start(store, "r3", a_case("other", "Another question?"))
        put(store, shared, a_trial(1), run_id="r1")
        put(store, a_trial(0, call_id=shared.call.id, key=shared.call.key, cached=True), run_id="r2")
        assert raw(store, "SELECT count(*) FROM calls") == [(2,)]
        store.save_document("r1", a_document("r1"), "done")
        store.delete("r1")
        assert store.run("r1") is None
        assert store.trials("r1") == []
        assert raw(store, "SELECT id FROM calls") == [(shared.call.id,)]
        for table in ("runs", "trials", "scores", "arms", "findings", "remedies", "releases"):
            assert raw(store, f"SELECT count(*) FROM {table} WHERE run_id = 'r1'") == [(0,)]  # noqa: S608
        assert store.case("r2") == a_case()
        store.delete("r3")
        assert raw(store, "SELECT count(*) FROM cases") == [(1,)]
        store.delete("r2")
        assert raw(store, "SELECT count(*) FROM calls") == [(0,)]
        assert raw(store, "SELECT count(*) FROM cases") == [(0,)]


def test_trials_of_a_run_deleted_meanwhile_are_let_go(path: Path) -> None:
    with Store.open(path) as store:
        start(store)
        sink = store.sink("r1", "contains", "1")
        sink.put(a_trial(0))
        store.delete("r1")
        sink.put(a_trial(1))
        sink.flush()
        assert raw(store, "SELECT (SELECT count(*) FROM trials) + (SELECT count(*) FROM calls)") == [(0,)]
        start(store)
        put(store, a_trial(2))
        assert store.count_trials("r1") == 1


def test_retention_spares_young_and_running_runs(path: Path) -> None:
    with Store.open(path) as store:
        for run_id, age, status in (("old", 40, "done"), ("going", 40, "running"), ("young", 1, "done")):
            start(store, run_id)
            put(store, a_trial(0), run_id=run_id)
            store.set_status(run_id, status)
            with store._database.write() as cursor:
                cursor.execute("UPDATE runs SET added_at = added_at - ? WHERE run_id = ?", [age * 86_400, run_id])
        assert store.delete_older_than(30) == 1
        assert {row.id for row in store.runs().rows} == {"going", "young"}
        assert store.delete_older_than(30) == 0
        assert store.delete_older_than(0.5) == 1
        for bad in (-1.0, float("nan")):
            with pytest.raises(InputError):
                store.delete_older_than(bad)


def test_deleting_beside_an_open_reader(path: Path) -> None:
    with Store.open(path) as store:
        start(store)
        put(store, *(a_trial(number) for number in range(50)))
        with store._database.cursor() as reader:
            reader.begin()
            assert reader.execute("SELECT count(*) FROM trials").fetchall() == [(50,)]
            store.delete("r1")
            assert reader.execute("SELECT count(*) FROM trials").fetchall() == [(50,)]
        assert store.count_trials("r1") == 0


# --- exports ------------------------------------------------------------------------------------------


def test_the_json_export_is_strict_and_whole(path: Path) -> None:
    with Store.open(path) as store:
        start(store)
        put(store, a_trial(0), a_trial(1, fault="timeout", text=""))
        store.save_document("r1", a_document("r1"), "done")
        text = store.export_json("r1")
    exported = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert exported["run"]["id"] == "r1"
    assert exported["run"]["settings"] == SETTINGS
    assert exported["document"] == a_document("r1")
    assert exported["case"]["question"] == a_case().question
    assert [trial["outcome"] for trial in exported["trials"]] == ["correct", "error"]
    assert exported["calls"][0]["messages"] == [{"role": "user", "content": "Document [1] ... Question 0"}]
    assert {trial["call_id"] for trial in exported["trials"]} == {call["id"] for call in exported["calls"]}


def test_the_parquet_export_reads_back(path: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    out = tmp_path / "trials.parquet"
    with Store.open(path) as store:
        start(store)
        put(store, *(a_trial(number) for number in range(30)), a_trial(30, fault="timeout", text="nul \x00"))
        rows = store.trials("r1")
        store.export_parquet("r1", out)
        store.export_parquet("r1", out)
        with pytest.raises(InputError, match="cannot be written"):
            store.export_parquet("r1", tmp_path / "no-folder" / "x.parquet")
    table = pq.read_table(out)
    assert table.num_rows == 31
    assert set(table.column_names) == {"run_id", "model", *(type(rows[0]).__dataclass_fields__)}
    read = table.to_pylist()
    for row, back in zip(rows, read, strict=True):
        assert {name: getattr(row, name) for name in type(row).__dataclass_fields__} == {
            name: back[name] for name in type(row).__dataclass_fields__
        }
    assert read[0]["run_id"] == "r1"
    assert [child.name for child in tmp_path.iterdir() if child.name.startswith(".lim")] == []


def test_an_empty_run_exports_too(path: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    with Store.open(path) as store:
        start(store)
        store.export_parquet("r1", tmp_path / "x.parquet")
        assert json.loads(store.export_json("r1"))["document"] is None
    assert pq.read_table(tmp_path / "x.parquet").num_rows == 0


# --- the inbox ----------------------------------------------------------------------------------------


def write_inbox(path: Path, run_id: str, trials: int = 3, status: str | None = "done") -> Path:
    with Store.open_inbox(run_id, beside=path) as store:
        start(store, run_id)
        put(store, *(a_trial(number) for number in range(trials)), run_id=run_id)
        if status is not None:
            store.save_document(run_id, a_document(run_id), status)
        return store.path


def test_the_owner_takes_a_run_in_once(path: Path) -> None:
    with Store.open(path) as owner:
        start(owner, "own")
        put(owner, a_trial(0), run_id="own")
        file = write_inbox(path, "guest")
        assert file == path.parent / "inbox" / "guest.duckdb"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        copy = file.read_bytes()
        assert owner.take_in() == ("guest",)
        assert list(file.parent.iterdir()) == []
        assert owner.take_in() == ()
        guest = owner.run("guest")
        assert guest is not None
        assert (guest.status, guest.cause, guest.release["seen"]) == ("done", "LOST_IN_THE_MIDDLE", True)
        assert owner.document("guest") == a_document("guest")
        assert owner.case("guest") == a_case()
        assert [row.seq for row in owner.trials("guest")] == [0, 1, 2]
        assert owner.prompt(owner.trials("guest")[2].call_id)[0].content.endswith("Question 2")
        assert raw(owner, "SELECT count(*) FROM findings") == [(2,)]
        # As after a crash between the commit and the removal of the file.
        file.write_bytes(copy)
        assert owner.take_in() == ()
        assert not file.exists()
        assert raw(owner, "SELECT count(*) FROM trials") == [(4,)]
        assert raw(owner, "SELECT count(*) FROM calls") == [(4,)]
        assert raw(owner, "SELECT count(*) FROM cases") == [(1,)]
        assert owner.runs().total == 2
        # A taken-in run goes on like any other.
        start(owner, "guest")
        put(owner, a_trial(9), run_id="guest")
        assert [row.seq for row in owner.trials("guest")] == [0, 1, 2, 3]


def test_a_crash_before_the_commit_leaves_the_file_for_the_next_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lim_core.store import inbox

    with Store.open(path) as owner:
        file = write_inbox(path, "guest")
        copy_rows = inbox._copy_rows

        def dies(*arguments: object, **options: object) -> None:
            if "calls" in arguments:
                raise KeyboardInterrupt
            copy_rows(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(inbox, "_copy_rows", dies)
        with pytest.raises(KeyboardInterrupt):
            owner.take_in()
        assert owner.runs().total == 0
        assert file.exists()
        monkeypatch.setattr(inbox, "_copy_rows", copy_rows)
        assert owner.take_in() == ("guest",)
        assert owner.count_trials("guest") == 3


def test_a_file_still_being_written_is_left_alone_and_a_dead_writers_run_is_interrupted(path: Path) -> None:
    with Store.open(path) as owner:
        file = path.parent / "inbox" / "r1.duckdb"
        writer = script("write", file)
        assert writer.stdout is not None
        assert writer.stdout.readline()
        assert owner.take_in() == ()
        assert writer.poll() is None
        with Store.open_inbox("mine", beside=path) as mine:
            start(mine, "mine")
            assert owner.take_in() == ()
        writer.kill()
        writer.communicate()
        assert set(owner.take_in()) == {"mine", "r1"}
        run = owner.run("r1")
        assert run is not None
        assert run.status == RunStatus.INTERRUPTED
        assert run.calls == owner.count_trials("r1") >= 7


def test_an_inbox_file_that_cannot_be_read_is_kept_and_does_not_stop_the_others(path: Path) -> None:
    with Store.open(path) as owner:
        write_inbox(path, "good")
        broken = path.parent / "inbox" / "broken.duckdb"
        broken.write_text("x" * 5000)
        made = Store.open_inbox("just-made", beside=path)
        made.close()
        assert owner.take_in() == ("good",)
        assert broken.exists()
        assert made.path.exists()
        day_old = time.time() - 100_000
        os.utime(made.path, (day_old, day_old))
        owner.take_in()


def test_with_no_inbox_there_is_nothing_to_take_in(path: Path) -> None:
    with Store.open(path) as owner:
        assert owner.take_in() == ()
    with pytest.raises(InputError):
        Store.open_inbox("../../x", beside=path)


def test_interrupted_runs_are_those_without_a_job(path: Path) -> None:
    with Store.open(path) as store:
        for run_id in ("a", "b", "c"):
            start(store, run_id)
        store.set_status("c", "waiting")
        assert store.mark_interrupted(alive={"b"}) == ("a",)
        assert [store.run(run_id).status.value for run_id in "abc"] == [  # type: ignore[union-attr]
            "interrupted",
            "running",
            "waiting",
        ]
        assert store.mark_interrupted(alive={"b"}) == ()


# --- size ---------------------------------------------------------------------------------------------


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


# --- encoding -----------------------------------------------------------------------------------------


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
    code = "import sys, lim_core.store, lim_core.config, lim_core.jobs\nprint([m for m in ('duckdb', 'pyarrow', 'numpy', 'pandas', 'streamlit') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
