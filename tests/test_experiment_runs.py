"""Experiments over real HTTP on the scripted model with a planted position profile: run, stored, resumed, read back."""

from __future__ import annotations

import json
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from lim_core.cases import case_to_json
from lim_core.cases.fields import few
from lim_core.errors import BudgetSpent, InputError
from lim_core.importers import import_file
from lim_core.runs import (
    RunSettings,
    load_experiment,
    preflight_experiment,
    rejudge,
    resume_run,
    run_experiment,
)
from lim_core.store import RunStatus, Store
from lim_core.store.database import Database
from lim_core.store.schema import MIGRATIONS, version_of
from lim_core.types import Case, Json, Message
from tests.questions import office_case
from tests.stored import a_case, a_document, a_trial, put, raw, start
from tests.test_cli import lim, strict

# Right at the very ends, wrong at every other slot: the same answers whatever the draws.
ENDS = "0:1,0.05:0,0.95:0,1:1"
START = "0:1,0.05:0,1:0"
PLANS: Mapping[str, Mapping[str, Json]] = {
    "positions": {},
    "tokens": {"k": [1, 2, 5, 10]},
    "orderings": {"orderings": ["as-retrieved", "edges", "reverse"], "distraction": 2},
    "grid": {"lengths": [150, 250], "depths": 3},
}
PROFILES = {"positions": ENDS, "tokens": "flat", "orderings": START, "grid": "flat"}


def suite(n: int = 12) -> tuple[Case, ...]:
    """Cases whose gold chunk is ranked last; it is known to the scripted model by the words it shares with the question."""
    cases = []
    for gold in range(n):
        case = office_case(16, gold, id=f"office{gold}")
        moved = (*case.chunks[:gold], *case.chunks[gold + 1 :], case.chunks[gold])
        cases.append(replace(case, chunks=moved))
    return tuple(cases)


def settings(kind: str = "positions", *, max_calls: int | None = 2_000, **options: Json) -> RunSettings:
    rule = {"profile": PROFILES[kind], "edge": 1.0, "middle": 0.0, **options}
    return RunSettings(model="scripted", options=rule, max_calls=max_calls, plan=PLANS[kind])


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "lim.duckdb") as opened:
        yield opened


def plain(value: Json) -> Json:
    """As strict JSON gives it back."""
    return json.loads(json.dumps(value, allow_nan=False))


def timeless(value: Json) -> Json:
    """Without latencies, which no two runs share."""
    if isinstance(value, Mapping):
        return {name: timeless(part) for name, part in value.items() if name != "seconds"}
    if isinstance(value, list):
        return [timeless(part) for part in value]
    return value


def whole(kind: str, cases: Sequence[Case], tmp_path: Path) -> Mapping[str, Json]:
    """The document of the same experiment, never interrupted, in a store of its own."""
    with Store.open(tmp_path / "whole.duckdb") as other:
        return plain(run_experiment(kind, "offices", cases, settings(kind), store=other, run_id="whole").document)


@pytest.mark.parametrize("kind", PLANS)
def test_an_experiment_is_stored_and_read_back_as_it_was_told(store, kind):
    cases = suite()
    outcome = run_experiment(kind, "offices", cases, settings(kind), store=store, run_id="r1")
    assert outcome.exit_code == 0
    document = plain(outcome.document)
    assert plain(store.document("r1")) == document
    assert store.suite("r1") == cases

    view = load_experiment(store, "r1")
    assert plain(asdict(view.result)) == document["result"]
    assert plain(asdict(view.options)) == document["options"]
    assert (view.kind, view.name, view.summary) == (kind, "offices", document["summary"])
    assert view.run.status is RunStatus.DONE
    planned = preflight_experiment(kind, cases, settings(kind)).calls_high
    assert view.trials == view.planned == planned == store.count_trials("r1") == sum(document["outcomes"].values())
    assert document["calls"]["made"] + document["calls"]["cached"] == planned
    assert store.runs(kind=kind).total == 1
    assert store.runs(kind="diagnosis").total == 0


@pytest.mark.parametrize("kind", PLANS)
def test_the_planted_profile_is_found(store, kind):
    run_experiment(kind, "offices", suite(), settings(kind), store=store, run_id="r1")
    result = load_experiment(store, "r1").result
    if kind == "positions":
        (curve,) = result.curves
        assert [(point.right, point.n) for point in curve.points] == [(12, 12), (0, 12), (0, 12), (0, 12), (12, 12)]
        assert curve.test.shape == "u"
        assert curve.test.gap.value == 1.0
        assert [point.index for point in curve.points] == [0, 3, 7, 11, 15]
        assert (result.oracle.accuracy, result.closed_book.accuracy) == (1.0, 0.0)
        assert result.closed_book.outcomes.abstained == 12
    elif kind == "tokens":
        assert [point.figures.accuracy for point in result.points] == [point.recall.value for point in result.points]
        assert [point.recall.value for point in result.points] == [0, 0, 0, 0, 1]
        assert (result.best, result.knee) == (4, 4)
        sizes = [point.figures.prompt_tokens for point in result.points]
        assert sizes == sorted(sizes)
        assert result.closed_book.prompt_tokens < sizes[0]
    elif kind == "orderings":
        assert {row.arm: row.figures.accuracy for row in result.arms} == {
            "ordering:as-retrieved": 0, "ordering:edges": 0, "ordering:reverse": 1,
        }  # fmt: skip
        assert result.winner == "ordering:reverse"
        assert result.distraction.gain.value == 0
    else:
        assert (result.operating_range, result.shown_range) == (250, 250)
        assert [cell.depth for cell in result.cells] == [0, 0.5, 1.0] * 2


def test_cells_hold_every_trial_once_with_its_newest_score(store):
    run_experiment("positions", "offices", suite(4), settings(), store=store, run_id="r1")
    counted = Counter((row.case_id, row.arm, row.block, row.outcome.value) for row in store.trials("r1"))
    told: Counter[tuple[str, str, int, str]] = Counter()
    for cell in store.cells("r1"):
        for outcome in ("correct", "wrong", "abstained", "empty", "error"):
            told[cell.case_id, cell.arm, cell.block, outcome] += getattr(cell, outcome)
    assert +told == counted
    assert len(store.cells("r1")) == 4 * 7


def test_without_a_store_the_figures_are_the_same(tmp_path):
    outcome = run_experiment("positions", "offices", suite(4), settings(), store=None, run_id="unused")
    assert outcome.document["run_id"] is None
    assert timeless(plain(outcome.document["result"])) == timeless(whole("positions", suite(4), tmp_path)["result"])


@pytest.mark.parametrize("kind", PLANS)
def test_a_cancelled_run_goes_on_where_it_was_and_pays_for_nothing_twice(store, tmp_path, kind):
    cases = suite(6)
    seen = []
    first = run_experiment(
        kind,
        "offices",
        cases,
        settings(kind, latency=0.02, slots=2),
        store=store,
        run_id="r1",
        report=seen.append,
        cancelled=lambda: bool(seen) and seen[-1].calls >= 8,
    )
    assert first.exit_code == 130
    assert "cancelled" in first.document["stopped"]
    half = load_experiment(store, "r1")
    assert half.run.status is RunStatus.CANCELLED
    assert 8 <= half.trials < half.planned
    assert plain(asdict(half.result)) == plain(first.document["result"])
    said = f"Unfinished, {half.trials} of {half.planned} trials: no result yet"
    assert first.document["summary"].startswith(said)
    assert half.caution.startswith(said)
    sent = raw(store, "SELECT count(*) FROM calls")[0][0]

    second = resume_run(store, "r1")
    assert second.stopped is None
    assert load_experiment(store, "r1").caution == ""
    assert "Unfinished" not in second.document["summary"]
    uncut = whole(kind, cases, tmp_path)
    assert timeless(plain(second.document["result"])) == timeless(uncut["result"])
    assert second.document["outcomes"] == uncut["outcomes"]
    assert store.count_trials("r1") == half.planned
    # Every call once: those of the first part are answered from the store.
    assert raw(store, "SELECT count(*), count(DISTINCT key) FROM calls") == [(uncut["calls"]["made"],) * 2]
    assert 0 < sent < uncut["calls"]["made"]
    # Beside them, only what was in flight when the run was cancelled.
    assert 0 <= second.document["calls"]["made"] - uncut["calls"]["made"] <= 2


@pytest.mark.parametrize(("kind", "may"), [("positions", True), ("tokens", False), ("orderings", False)])
def test_one_case_may_be_looked_at_while_it_grows_only_by_the_rule_that_allows_it(store, kind, may):
    def cancelled():
        return store.count_trials("r1") > 1

    run_experiment(kind, "offices", suite(1), settings(kind), store=store, run_id="r1", cancelled=cancelled)
    half = load_experiment(store, "r1")
    assert half.run.status is RunStatus.CANCELLED
    assert (half.caution == "") is may


def test_a_run_that_a_cap_ended_says_so_and_has_no_result_in_the_lists_once_it_goes_on(store):
    outcome = run_experiment("tokens", "offices", suite(6), settings("tokens", max_calls=20), store=store, run_id="r1")
    capped = load_experiment(store, "r1")
    assert capped.run.status is RunStatus.DONE
    said = f"Ended by its cap at {capped.trials} of {capped.planned} trials. As it stands: "
    assert capped.standing.startswith(said)
    assert outcome.document["summary"].startswith(said)
    # Narrowed to a case or two, it stays a part of a run that did not end.
    assert replace(capped, table=capped.table.tagged("no such tag"), trials=1, planned=1).standing.startswith(said)

    def die(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        resume_run(store, "r1", max_calls=2_000, report=die)
    store.mark_interrupted()
    assert store.runs(limit=1).rows[0].summary is None
    assert load_experiment(store, "r1").caution.startswith("Unfinished, ")


def test_notes_name_their_case_and_stay_few(store):
    lost = [replace(suite(1)[0], id=f"office{n}", prompt=(Message("user", "Which office? Ask."),)) for n in range(60)]
    run_experiment("tokens", "offices", lost, settings("tokens"), store=store, run_id="r1")
    warnings = load_experiment(store, "r1").warnings
    assert len(warnings) == 51
    assert warnings[0].startswith("office0: ")
    assert warnings[-1] == "There are 10 more warnings like these."
    # What the file was warned of, and cut to, is not cut and counted once more; nor are the notes when the run goes on.
    told = few(f"oddity {n}." for n in range(200))
    assert told[-1] == "There are 150 more warnings like these."
    warned = replace(settings("tokens", max_calls=20), warnings=told)
    run_experiment("tokens", "offices", lost, warned, store=store, run_id="r3")
    assert load_experiment(store, "r3").warnings == (*told, *warnings)
    resume_run(store, "r3", max_calls=5_000)
    assert load_experiment(store, "r3").warnings == (*told, *warnings)
    # A suite without prompts as sent lacks nothing.
    run_experiment("tokens", "offices", suite(2), settings("tokens"), store=store, run_id="r2")
    assert load_experiment(store, "r2").warnings == ()


def test_what_reading_the_suite_warned_of_is_kept(store, home):
    odd = suite(2)[1]
    body = lines([*suite(1), odd]).replace(b'"chunks":', b'"chunk_sise":4,"chunks":')
    done = lim(home, "sweep", "-", "--model", "scripted", "--json", stdin=body)
    document = strict(done.stdout)
    assert any("chunk_sise" in warning for warning in document["warnings"])
    shown = strict(lim(home, "runs", "show", document["run_id"], "--json").stdout)
    assert shown["warnings"] == document["warnings"]


def test_a_run_whose_process_died_is_marked_and_goes_on(tmp_path):
    class Died(Exception):
        """Stands for the end of the process: nothing of the run's own catches it."""

    seen = []

    def die(progress):
        seen.append(progress)
        if progress.calls >= 20:
            raise Died

    path, plan = tmp_path / "lim.duckdb", settings(slots=2, latency=0.02)
    with Store.open(path) as store, pytest.raises(Died):
        run_experiment("positions", "offices", suite(6), plan, store=store, run_id="r1", report=die)
    with Store.open(path) as store:
        assert store.run("r1").status is RunStatus.RUNNING
        assert store.mark_interrupted() == ("r1",)
        assert store.document("r1") is None
        half = load_experiment(store, "r1")
        assert 0 < half.trials < half.planned == 42
        done = resume_run(store, "r1")
        assert done.stopped is None
        assert raw(store, "SELECT count(*), count(DISTINCT key) FROM calls") == [(42, 42)]
        assert timeless(plain(done.document["result"])) == timeless(whole("positions", suite(6), tmp_path)["result"])


def test_scoring_the_answers_anew_changes_the_curve_at_no_calls(store):
    # "contains" wants whole words, "liu" any substring: half a surname is right for the second alone.
    cases = [replace(case, answers=(case.answers[0][:-2],)) for case in suite()]
    run_experiment("positions", "offices", cases, settings(), store=store, run_id="r1")
    before = load_experiment(store, "r1").result.curves[0]
    assert [point.right for point in before.points] == [0] * 5
    calls = raw(store, "SELECT count(*) FROM calls")
    assert rejudge(store, "r1", "liu")["correct"] == 3 * 12  # both ends and the oracle
    after = load_experiment(store, "r1")
    assert [point.right for point in after.result.curves[0].points] == [12, 0, 0, 0, 12]
    assert (before.test.shape, after.result.curves[0].test.shape) == ("flat", "u")
    assert after.trials == after.planned == 84
    # Lists and the document tell the new result too.
    assert store.runs(limit=1).rows[0].summary == after.standing
    assert plain(store.document("r1")["result"]) == plain(asdict(after.result))
    assert raw(store, "SELECT count(*) FROM calls") == calls
    rejudge(store, "r1", "contains")
    assert load_experiment(store, "r1").result.curves[0] == before


def test_a_cap_stops_cleanly_and_the_partial_result_says_so(store, tmp_path):
    capped = run_experiment("positions", "offices", suite(6), settings(max_calls=15), store=store, run_id="r1")
    assert isinstance(capped.stopped, BudgetSpent)
    assert capped.exit_code == 0
    assert "The cap of 15 calls is reached" in capped.document["stopped"]
    assert capped.document["stopped"] in capped.document["summary"]
    assert capped.document["calls"]["made"] == 15
    view = load_experiment(store, "r1")
    assert (view.trials, view.planned, view.run.status) == (15, 42, RunStatus.DONE)
    more = resume_run(store, "r1", max_calls=100)
    assert more.stopped is None
    assert timeless(plain(more.document["result"])) == timeless(whole("positions", suite(6), tmp_path)["result"])


def test_a_run_is_that_of_its_suite_and_ids_stand_once(store):
    run_experiment("positions", "offices", suite(2), settings(), store=store, run_id="r1")
    with pytest.raises(InputError, match="belongs to another"):
        run_experiment("positions", "offices", suite(3), settings(), store=store, run_id="r1")
    with pytest.raises(InputError, match="'office1'"):
        run_experiment("positions", "offices", suite(2) + suite(2)[1:], settings(), store=store, run_id="r2")
    assert store.run("r2") is None
    with pytest.raises(InputError, match="no run nothing"):
        load_experiment(store, "nothing")
    start(store, "d1")
    with pytest.raises(InputError, match="diagnosis"):
        load_experiment(store, "d1")


def test_deleting_a_run_removes_the_cases_that_no_other_run_has(store):
    run_experiment("positions", "offices", suite(3), settings(), store=store, run_id="r1")
    run_experiment("tokens", "offices", suite(2), settings("tokens"), store=store, run_id="r2")
    start(store, "d1", suite(3)[2])
    assert raw(store, "SELECT count(*) FROM cases") == [(3,)]
    store.delete("r1")
    assert raw(store, "SELECT run_id, count(*) FROM run_cases GROUP BY run_id") == [("r2", 2)]
    assert raw(store, "SELECT case_id FROM cases ORDER BY case_id") == [("office0",), ("office1",), ("office2",)]
    store.delete("d1")
    assert raw(store, "SELECT case_id FROM cases ORDER BY case_id") == [("office0",), ("office1",)]
    assert load_experiment(store, "r2").trials == load_experiment(store, "r2").planned
    store.delete("r2")
    for table in ("runs", "run_cases", "cases", "trials", "scores", "calls", "arms", "releases"):
        assert raw(store, f"SELECT count(*) FROM {table}") == [(0,)], table  # noqa: S608


def test_an_inbox_run_is_taken_in_with_its_suite(tmp_path):
    path = tmp_path / "lim.duckdb"
    with Store.open(path) as owner:
        run_experiment("positions", "offices", suite(2), settings(), store=owner, run_id="own")
        with Store.open_inbox("guest", beside=path) as guest:
            done = run_experiment("positions", "offices", suite(4), settings(), store=guest, run_id="guest")
        assert owner.take_in() == ("guest",)
        assert owner.suite("guest") == suite(4)
        # The two cases that both suites have are kept once.
        assert raw(owner, "SELECT count(*) FROM cases") == [(4,)]
        view = load_experiment(owner, "guest")
        assert plain(asdict(view.result)) == plain(done.document["result"])
        assert view.trials == view.planned == 28


def test_an_export_holds_the_cases_and_imports_as_many(store):
    run_experiment("positions", "offices", suite(3), settings(), store=store, run_id="r1")
    exported = strict(store.export_json("r1").encode())
    assert exported["case"] is None
    assert [case["id"] for case in exported["cases"]] == ["office0", "office1", "office2"]
    assert exported["document"]["kind"] == exported["run"]["kind"] == "positions"
    assert len(exported["trials"]) == len(exported["calls"]) == 21
    assert import_file(store.export_json("r1").encode(), "run.json").cases == suite(3)


def test_a_store_of_the_first_version_is_copied_and_takes_experiments_then(tmp_path):
    path, now = tmp_path / "old.duckdb", tmp_path / "now.duckdb"
    with Store.open(now) as store:
        start(store, "d1")
        put(store, a_trial(0), a_trial(1), run_id="d1")
        store.save_document("d1", a_document("d1"), "done")
        tables = ("runs", "cases", "arms", "trials", "scores", "calls", "findings", "remedies", "releases")
        rows = {table: raw(store, f"SELECT * FROM {table}") for table in tables}  # noqa: S608
    old = Database.open(path, MIGRATIONS[:1])
    with old.write() as cursor:
        assert version_of(cursor) == 1
        for table, body in rows.items():
            marks = ", ".join("?" for _ in body[0])
            cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", body)  # noqa: S608
    old.close()
    before = path.read_bytes()

    with Store.open(path) as store:
        copy = path.with_name("old.duckdb.v1")
        assert copy.read_bytes() == before
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert raw(store, "SELECT max(version) FROM schema_versions") == [(len(MIGRATIONS),)]
        assert store.suite("d1") == (a_case(),)
        assert len(store.trials("d1")) == 2
        assert store.document("d1") == a_document("d1")
        run_experiment("positions", "offices", suite(2), settings(), store=store, run_id="r1")
        assert load_experiment(store, "r1").trials == 14
        assert store.runs().total == 2


# --- the command line ---------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path):
    return {"LIM_STORE": str(tmp_path / "cli" / "lim.duckdb"), "HF_HUB_OFFLINE": "1", "PATH": "", "HOME": str(tmp_path)}


def lines(cases: Sequence[Case]) -> bytes:
    return "\n".join(json.dumps(case_to_json(case)) for case in cases).encode()


COMMANDS = {
    "positions": ("sweep", "--positions", "first,middle,last"),
    "tokens": ("topk", "--k", "1,5"),
    "orderings": ("orderings", "--orderings", "edges", "--distraction", "2"),
    "grid": ("grid", "--lengths", "150,250", "--depths", "3", "--threshold", "0.5"),
}
KEYS = {
    "schema", "kind", "run_id", "suite", "cases", "left_out", "summary", "tested_model", "options", "result", "outcomes",
    "calls", "release", "warnings", "stopped",
}  # fmt: skip


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_command_prints_strict_json_and_stores_the_run(home, tmp_path, kind):
    file = tmp_path / "offices.jsonl"
    file.write_bytes(lines(suite(3)))
    name, *options = COMMANDS[kind]
    done = lim(home, name, file, "--model", "scripted", *options, "--json")
    assert done.returncode == 0, done.stderr
    document = strict(done.stdout)
    assert document.keys() >= KEYS
    assert (document["kind"], document["suite"], document["cases"]) == (kind, "offices", 3)
    assert "cause" not in document
    shown = lim(home, "runs", "show", document["run_id"], "--json")
    assert strict(shown.stdout) == document
    told = lim(home, "runs", "show", document["run_id"]).stdout.decode().splitlines()
    assert told[0].startswith(f"lim: {kind} over offices, 3 cases - ")
    assert any(", n = 3" in line for line in told[3:])
    row = strict(lim(home, "runs", "list", "--json").stdout)["runs"][0]
    assert (row["id"], row["kind"], row["cause"]) == (document["run_id"], kind, None)


def test_a_suite_from_standard_input_and_a_case_left_out_with_its_reason(home):
    cases = [*suite(2), replace(office_case(id="lost"), answers=("Nobody",), gold_ids=())]
    done = lim(home, "sweep", "-", "--model", "scripted", "--no-store", "--json", stdin=lines(cases))
    assert done.returncode == 0, done.stderr
    document = strict(done.stdout)
    assert (document["suite"], document["run_id"], document["cases"]) == ("standard input", None, 2)
    assert document["left_out"] == [{"case_id": "lost", "reason": "no chunk holds an answer"}]
    assert b"lost stays out: no chunk holds an answer." in done.stderr


@pytest.mark.parametrize(
    ("body", "arguments", "words"),
    [
        (b"", (), "empty"),
        (b"not json", (), "JSON"),
        (lines([office_case(answers=())]), (), "it has no answers"),
        (lines([office_case(), office_case()]), (), "several cases with the id"),
        (lines(suite(2)), ("--positions", "top"), "'top'"),
        (lines(suite(2)), ("--positions", ""), "No position"),
        (lines(suite(2)), ("--blocks", "-1"), "blocks is -1"),
        (lines(suite(2)), ("--templates", "loud"), "'loud'"),
    ],
)
def test_what_cannot_be_run_is_one_sentence_and_exit_2(home, body, arguments, words):
    done = lim(home, "sweep", "-", "--model", "scripted", *arguments, stdin=body)
    assert done.returncode == 2
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("lim: ")
    assert words in line
    assert strict(lim(home, "runs", "list", "--json").stdout)["total"] == 0


def test_one_case_is_a_suite_of_its_own_blocks(home):
    done = lim(home, "sweep", "-", "--model", "scripted", "--no-store", stdin=lines(suite(1)))
    assert done.returncode == 0, done.stderr
    told = done.stdout.decode()
    assert told.startswith("lim: positions over standard input, 1 case - ")
    assert "(8 blocks, ends minus middle" in told
    assert told.count(", n = 8\n") == 5
    assert "oracle: 4/4 right" in told


def test_numbers_that_are_none_are_refused_by_the_parser(home):
    done = lim(home, "topk", "-", "--k", "1,two", stdin=lines(suite(1)))
    assert done.returncode == 2
    assert "'1,two' is no list of whole numbers" in done.stderr.decode()


def test_a_plan_over_the_cap_is_told_before_and_ends_with_exit_0(home):
    done = lim(home, "sweep", "-", "--model", "scripted", "--max-calls", "5", "--json", stdin=lines(suite(2)))
    assert done.returncode == 0
    assert b"The plan has 14 trials and the cap is 5 calls" in done.stderr
    assert "The cap of 5 calls is reached" in strict(done.stdout)["stopped"]


def test_an_endpoint_that_is_down_is_exit_3_with_the_json_so_far(home):
    done = lim(
        home, "sweep", "-", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--json", stdin=lines(suite(2))
    )
    assert done.returncode == 3
    document = strict(done.stdout)
    assert document["result"]["curves"][0]["test"]["shape"] == "unclear"
    assert "no trial has finished yet" in document["summary"]
    assert document["stopped"]
