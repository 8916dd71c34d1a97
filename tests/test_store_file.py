"""The store file: private, sealed, migrated, held, on full disks, killed."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest

from lim_core.errors import StoreBusy, StoreError, StoreFull, StoreNewer
from lim_core.store import RunStatus, Store
from lim_core.store.database import Database
from lim_core.store.schema import MIGRATIONS
from tests.stored import a_document, a_trial, put, raw, script, start


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "lim.duckdb"


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


def test_a_log_left_empty_by_a_kill_does_no_harm(path: Path) -> None:
    with Store.open(path) as store:
        start(store)
    path.with_name("lim.duckdb.wal").touch(mode=0o600)
    with Store.open(path) as store:
        assert store.runs().total == 1


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
        "run_cases",
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
        if "no room left" not in str(full):
            raise
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
