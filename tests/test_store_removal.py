"""Deleting runs, and taking them out as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lim_core.errors import InputError
from lim_core.store import Store
from tests.stored import SETTINGS, a_case, a_document, a_trial, put, raw, start


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "lim.duckdb"


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
