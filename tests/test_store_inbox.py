"""Runs written beside a held store, and taken in by its owner."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from lim_core.errors import InputError
from lim_core.store import RunStatus, Store
from tests.stored import a_case, a_document, a_trial, put, raw, script, start


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "lim.duckdb"


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
