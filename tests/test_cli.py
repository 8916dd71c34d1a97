"""The command line as a script meets it: exit codes, one line of error, strict JSON, the store, resume."""

import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lim_core import runs
from lim_core.cases import case_to_json
from lim_core.cli import main
from lim_core.prompts import lay_out
from lim_core.store import Store
from tests.questions import office_case

ROOT = Path(__file__).resolve().parents[1]
PLANTED = "sk-planted-0123456789abcdef"


@pytest.fixture
def home(tmp_path):
    """An environment with nothing of the user's in it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LIM_", "OPENAI_"))}
    return kept | {"LIM_STORE": str(tmp_path / "lim.duckdb"), "HF_HUB_OFFLINE": "1"}


def script(home, *arguments, stdin: bytes = b"", **environment):
    """The command as a process of its own, as a script starts it."""
    return subprocess.run(
        [sys.executable, "-m", "lim_core", *map(str, arguments)],
        cwd=ROOT,
        env=home | environment,
        input=stdin,
        capture_output=True,
        timeout=120,
    )


def lim(home, *arguments, stdin: bytes = b"", **environment):
    """The same command in this process, which loads the embedding model once: exit code and the bytes it wrote."""
    given, out, err = (io.TextIOWrapper(io.BytesIO(part), encoding="utf-8") for part in (stdin, b"", b""))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - home.keys():
            patch.delenv(name)
        for name, value in (home | environment).items():
            patch.setenv(name, value)
        for name, stream in (("stdin", given), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        try:
            code = main([*map(str, arguments)])
        except SystemExit as left:
            code = left.code
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    out.flush()
    err.flush()
    return subprocess.CompletedProcess(arguments, code, out.buffer.getvalue(), err.buffer.getvalue())


def case_bytes(**changes) -> bytes:
    return json.dumps(case_to_json(office_case(**changes))).encode()


def strict(text: bytes) -> dict:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not strict JSON")

    return json.loads(text, parse_constant=refuse)


KEYS = {
    "schema", "run_id", "case_id", "cause", "also", "summary", "tested_model", "same_model", "stages", "position",
    "remedies", "outcomes", "calls", "release",
}  # fmt: skip
CALL_KEYS = {
    "made", "failed", "retried", "cached", "prompt_tokens", "cached_prompt_tokens", "completion_tokens", "cost", "seconds",
}  # fmt: skip
POINT_KEYS = {"arm", "index", "depth", "n", "correct", "accuracy", "low", "high"}


def test_diagnose_prints_the_contract_and_stores_the_run(home):
    done = script(home, "diagnose", "-", "--model", "scripted", "--json", stdin=case_bytes())
    assert done.returncode == 0, done.stderr
    document = strict(done.stdout)
    assert document.keys() >= KEYS
    assert document["calls"].keys() >= CALL_KEYS
    assert document["cause"] == "LOST_IN_THE_MIDDLE"
    assert [stage["stage"] for stage in document["stages"]] == ["truncation", "retrieval", "assembly", "position"]
    for point in document["position"]["points"]:
        assert point.keys() >= POINT_KEYS
        assert 0 <= point["low"] <= point["accuracy"] <= point["high"] <= 1
    assert {"oracle", "closed_book", "e_value", "gap", "shape", "blocks"} <= document["position"].keys()
    for remedy in document["remedies"]:
        assert {"name", "tried", "n", "before", "after", "gain", "low", "high"} <= remedy.keys()

    run = document["run_id"]
    shown = lim(home, "runs", "show", run, "--json")
    assert strict(shown.stdout) == document
    listed = strict(lim(home, "runs", "list", "--json").stdout)
    assert [row["id"] for row in listed["runs"]] == [run]
    assert listed["runs"][0]["cause"] == "LOST_IN_THE_MIDDLE"


def test_without_json_it_prints_five_plain_lines(home):
    done = lim(home, "diagnose", "-", "--model", "scripted", "--no-store", stdin=case_bytes())
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("lim: LOST_IN_THE_MIDDLE")
    assert "not stored" in lines[4]


def test_early_stages_load_no_model(home):
    code = (
        "import sys; from lim_core.cli import main; "
        "code = main(['diagnose', '-', '--stages', 'truncation,retrieval,assembly', '--no-store', '--json']); "
        "heavy = {'torch', 'sentence_transformers', 'xllamacpp', 'openai', 'streamlit', 'duckdb'} & set(sys.modules); "
        "sys.stderr.write(f'heavy={sorted(heavy)}'); sys.exit(code)"
    )
    for gold in ({}, {"answers": ("in other words",), "gold_ids": ()}):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=home, input=case_bytes(**gold), capture_output=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert b"heavy=[]" in done.stderr
        assert strict(done.stdout)["run_id"] is None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"not json", "JSON"),
        (b"[]", "case"),
        (b'{"question": 5, "chunks": []}', "question"),
        (b'{"chunks": []}', "question"),
        (b'{"question": "Why?"}', "chunks"),
        (b'{"question": "Why?", "chunks": []}\n{"question": "How?", "chunks": []}', "case"),
        (b'{"question": "Why?", "chunks": [{"id": "twin", "text": "a"}, {"id": "twin", "text": "b"}]}', "twin"),
        (b'{"question": "Why?", "chunks": ["' + b"x" * 21 * 1024 * 1024 + b'"]}', "20 MB"),
        (b'{"question": "Why?", "chunks": ' + b"[" * 200_000, ""),
    ],
)
def test_bad_input_is_one_line_and_exit_2(home, body, words):
    done = lim(home, "diagnose", "-", "--no-store", stdin=body)
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.decode().count("\n") == 1
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "changes",
    [{"answers": ()}, {"gold_ids": ()}, {"gold_ids": ("nowhere",)}, {"chunks": (), "gold_ids": ()}],
    ids=["no answers", "no gold id", "gold id in no list", "no chunks"],
)
def test_thin_cases_work(home, changes):
    done = lim(home, "diagnose", "-", "--no-store", "--json", "--model", "scripted", stdin=case_bytes(**changes))
    assert done.returncode == 0, done.stderr
    strict(done.stdout)


def test_a_window_smaller_than_the_question_is_truncated(home):
    case = office_case()
    sent = lay_out(case.question, case.chunks).messages
    body = case_bytes(context_window=4, prompt=sent)
    done = lim(home, "diagnose", "-", "--no-store", "--json", stdin=body)
    assert done.returncode == 0
    assert strict(done.stdout)["cause"] == "TRUNCATED"


def test_unknown_names_and_missing_files_say_what_exists(home, tmp_path):
    for arguments, words in (
        (("diagnose", tmp_path / "no.json"), "cannot be read"),
        (("diagnose", "-", "--stages", "positon"), "Did you mean position"),
        (("diagnose", "-", "--judge", "contain"), "Did you mean contains"),
        (("diagnose", "-", "--alpha", "2"), "alpha"),
        (("runs", "show", "nothing"), "no run nothing"),
        (("runs", "resume", "nothing"), "no run nothing"),
    ):
        done = lim(home, *arguments, stdin=case_bytes())
        assert done.returncode == 2, arguments
        assert words in done.stderr.decode()


def test_output_is_utf_8_whatever_the_locale(home):
    body = '{"question": "庚?", "chunks": ["庚 106元"], "answers": ["106元"], "id": "庚"}'.encode()
    early = ("diagnose", "-", "--no-store", "--stages", "truncation,retrieval,assembly")
    narrow = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = script(home, *early, "--json", stdin=body, **narrow)
    assert done.returncode == 0, done.stderr
    assert strict(done.stdout)["case_id"] == "庚"
    assert script(home, *early, stdin=body, **narrow).returncode == 0


def test_closed_and_full_outputs_are_no_internal_error(home, tmp_path):
    case = tmp_path / "case.json"
    case.write_bytes(case_bytes())
    command = f"{sys.executable} -m lim_core diagnose %s --no-store --json --stages truncation"
    for redirected, code, words in (
        (f"{command % case} >&-", 0, ""),
        (f"{command % case} >/dev/full", 2, "cannot be written"),
        (f"{command % '-'} <&-", 2, "Standard input is closed"),
    ):
        done = subprocess.run(["sh", "-c", redirected], cwd=ROOT, env=home, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stderr
        assert words in done.stderr
        assert "Internal error" not in done.stderr


def test_wrong_arguments_are_one_line(home):
    for arguments in (("diagnose", "-", "--bogus"), ("diagnose",), ("runs", "show"), ("diagnose", "-", "--seed", "x")):
        done = lim(home, *arguments)
        assert done.returncode == 2
        assert done.stderr.decode().count("\n") == 1


def test_an_endpoint_that_is_down_is_exit_3_with_the_json_so_far(home):
    done = lim(
        home, "diagnose", "-", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--json", stdin=case_bytes()
    )
    assert done.returncode == 3
    document = strict(done.stdout)
    assert document["cause"] == "UNDETERMINED"
    assert document["run_id"]
    assert strict(lim(home, "runs", "list", "--json").stdout)["runs"][0]["status"] == "failed"


def test_a_held_store_is_exit_2_and_the_default_one_takes_an_inbox(home, tmp_path):
    store = home["LIM_STORE"]
    hold = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import sys; from pathlib import Path; from lim_core.store import Store; s = Store.open(Path({store!r})); "
            "print('held', flush=True); sys.stdin.read(); print(','.join(s.take_in()), flush=True); s.close()",
        ],
        cwd=ROOT,
        env=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert hold.stdout is not None
    assert hold.stdout.readline() == "held\n"
    named = lim(home, "diagnose", "-", "--store", store, "--model", "scripted", stdin=case_bytes())
    assert named.returncode == 2
    assert str(hold.pid) in named.stderr.decode()
    default = lim(home, "diagnose", "-", "--model", "scripted", "--json", stdin=case_bytes())
    assert default.returncode == 0
    assert str(hold.pid) in default.stderr.decode()
    run = strict(default.stdout)["run_id"]
    assert (tmp_path / "inbox" / f"{run}.duckdb").exists()
    with hold:
        taken, _ = hold.communicate("", timeout=30)
    assert taken.strip() == run
    assert strict(lim(home, "runs", "show", run, "--json").stdout)["run_id"] == run


READING = (
    ("list",), ("show", "r1"), ("export", "r1", "--out", "out.json"), ("delete", "r1"), ("delete", "--older-than", "3"),
    ("resume", "r1"), ("rejudge", "r1", "--judge", "liu"),
)  # fmt: skip


def test_commands_that_read_make_no_store(tmp_path, capsys):
    missing = tmp_path / "typo.duckdb"
    for act in READING:
        assert main(["runs", *act, "--store", str(missing)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line == f"lim: There is no store {missing}: name the file that the runs were stored in."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limit", ["0", "-3"])
def test_a_list_of_no_runs_is_refused(limit, capsys):
    assert main(["runs", "list", "--limit", limit]) == 2
    assert capsys.readouterr().err == f"lim: limit is {limit}: give a whole number above 0.\n"


def test_without_the_app_the_command_line_owns_the_store(home, tmp_path):
    """A run beside another goes to the inbox and is listed afterwards; one that was killed is called interrupted."""
    slow = subprocess.Popen(
        [sys.executable, "-m", "lim_core", "diagnose", "-", "--model", "scripted", "--rpm", "10"],
        cwd=ROOT,
        env=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert slow.stdin is not None
    assert slow.stderr is not None
    slow.stdin.write(case_bytes(id="killed"))
    slow.stdin.close()
    while b"position" not in slow.stderr.readline():
        pass
    beside = lim(home, "diagnose", "-", "--stages", "truncation", "--json", stdin=case_bytes(id="beside"))
    assert beside.returncode == 0
    slow.kill()
    slow.wait(30)
    slow.stderr.close()
    rows = strict(lim(home, "runs", "list", "--json").stdout)["runs"]
    assert {row["case_id"]: row["status"] for row in rows} == {"killed": "interrupted", "beside": "done"}
    assert not list((tmp_path / "inbox").glob("*.duckdb"))


def test_resume_pays_for_nothing_twice(home):
    capped = script(home, "diagnose", "-", "--model", "scripted", "--max-calls", "12", "--json", stdin=case_bytes())
    first = strict(capped.stdout)
    assert first["cause"] == "UNDETERMINED"
    assert first["calls"]["made"] == 12
    resumed = lim(home, "runs", "resume", first["run_id"], "--max-calls", "200", "--json")
    assert resumed.returncode == 0, resumed.stderr
    second = strict(resumed.stdout)
    assert second["cause"] == "LOST_IN_THE_MIDDLE"
    assert second["run_id"] == first["run_id"]
    assert second["calls"]["cached"] >= 12
    whole = strict(lim(home, "diagnose", "-", "--model", "scripted", "--no-store", "--json", stdin=case_bytes()).stdout)
    for name in ("made", "prompt_tokens", "completion_tokens", "failed", "retried"):
        assert second["calls"][name] == whole["calls"][name], name
    assert second["calls"]["seconds"] > first["calls"]["seconds"]


def test_a_resumed_run_counts_its_retries_and_keeps_its_warnings_and_its_cap_counts_anew(home):
    body = json.loads(case_bytes())
    body["gold_ids"].append("nowhere")
    given = ("--model", "scripted", "--json")
    first = strict(lim(home, "diagnose", "-", "--max-calls", "12", *given, stdin=json.dumps(body).encode()).stdout)
    assert any("nowhere" in warning for warning in first["warnings"])
    again = strict(lim(home, "runs", "resume", first["run_id"], "--max-calls", "5", "--json").stdout)
    assert again["warnings"] == first["warnings"]
    assert again["calls"]["made"] == 12 + 5
    assert again["stopped"].startswith("The cap of 5 calls")
    listed = strict(lim(home, "runs", "list", "--json").stdout)["runs"]
    assert [row["calls"] for row in listed] == [17]


def test_a_run_that_was_killed_is_counted_from_its_trials_when_it_goes_on(home):
    with Store.open(Path(home["LIM_STORE"])) as store:
        case = office_case()
        options = {"needles": list(case.answers), "edge": 1.0, "middle": 0.0, "slots": 1}
        faults = ["ok", "server", *["ok"] * 7, "content-filter"]
        settings = runs.RunSettings(model="scripted", options=options, warnings=("a bad line",))
        whole = runs.run_diagnosis(case, settings, store=None, run_id="whole").document
        capped = replace(settings, max_calls=12, options={**options, "faults": faults})
        first = runs.run_diagnosis(case, capped, store=store, run_id="killed").document
        assert [first["calls"][name] for name in ("made", "failed", "retried")] == [12, 2, 1]
        # What a process leaves that ends without a document: its trials, and a run that seems to be going.
        store.start_run("killed", case, settings.to_json(), {})
        store.mark_interrupted()
        second = runs.resume_run(store, "killed").document
    assert second["warnings"] == ["a bad line"]
    # One request was tried again, and the one that was filtered is sent anew.
    assert [second["calls"][name] for name in ("made", "failed", "retried")] == [whole["calls"]["made"] + 2, 2, 1]
    assert second["calls"]["completion_tokens"] == whole["calls"]["completion_tokens"]


def test_interrupted_is_exit_130_and_keeps_what_was_done(home):
    import time

    process = subprocess.Popen(
        [sys.executable, "-m", "lim_core", "diagnose", "-", "--model", "scripted", "--rpm", "10", "--json"],
        cwd=ROOT,
        env=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(case_bytes())
    process.stdin.close()
    while b"position" not in process.stderr.readline():
        pass
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    with process.stdout, process.stderr:
        out = process.stdout.read()
        process.stderr.read()
    assert process.wait(30) == 130
    document = strict(out)
    assert document["cause"] == "UNDETERMINED"
    assert 0 < document["calls"]["made"] <= 10
    assert strict(lim(home, "runs", "list", "--json").stdout)["runs"][0]["status"] == "cancelled"


def test_import_writes_cases_and_a_report(home, tmp_path):
    row = {"user_input": "How many days?", "retrieved_contexts": ["Carers get 12 days.", "Sick pay starts late."],
           "reference_contexts": ["Carers get 12 days."], "response": "10", "reference": "12 days"}  # fmt: skip
    source = tmp_path / "rows.json"
    source.write_text(json.dumps([row]), encoding="utf-8")
    printed = lim(home, "import", source)
    assert printed.returncode == 0, printed.stderr
    case = strict(printed.stdout)
    assert case["question"] == "How many days?"
    assert [chunk["text"] for chunk in case["chunks"]] == row["retrieved_contexts"]
    assert b"agas" in printed.stderr
    out = tmp_path / "cases.jsonl"
    written = lim(home, "import", source, "--out", out)
    assert written.returncode == 0
    assert b"agas" in written.stdout
    assert strict(out.read_bytes()) == case
    ready = lim(home, "diagnose", out, "--stages", "truncation,retrieval,assembly", "--no-store", "--json")
    assert ready.returncode == 0, ready.stderr
    assert lim(home, "import", "-", stdin=b"\x00\x01\x02").returncode == 2


def test_a_prompt_alone_is_kept_and_diagnose_says_what_it_needs(home, tmp_path):
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "Context:\n[1] Carers get 12 days.\n[2] No more.\n\nQ: How many?"}],
    }
    done = lim(home, "import", "-", stdin=json.dumps(body).encode())
    assert done.returncode == 0, done.stderr
    case = strict(done.stdout)
    assert case["chunks"] == []
    assert "needs-chunks" in case["tags"]
    assert lim(home, "diagnose", "-", "--no-store", stdin=done.stdout).returncode == 2


def test_export_and_delete(home, tmp_path):
    import pyarrow.parquet as pq

    run = strict(lim(home, "diagnose", "-", "--model", "scripted", "--json", stdin=case_bytes()).stdout)["run_id"]
    out = tmp_path / "run.json"
    assert lim(home, "runs", "export", run, "--format", "json", "--out", out).returncode == 0
    assert strict(out.read_bytes())
    table = tmp_path / "run.parquet"
    assert lim(home, "runs", "export", run, "--format", "parquet", "--out", table).returncode == 0
    assert pq.read_table(table).num_rows > 20
    assert lim(home, "runs", "export", run, "--out", tmp_path / "no" / "x.json").returncode == 2
    assert lim(home, "runs", "delete", run).returncode == 0
    assert strict(lim(home, "runs", "list", "--json").stdout)["total"] == 0
    assert lim(home, "runs", "delete").returncode == 2


def test_a_planted_key_is_found_nowhere(home, tmp_path):
    """The key goes to an endpoint that throws it back in its error; it must reach no output and no file."""
    from lim_core.backends import ModelSpec, open_model

    model = open_model(ModelSpec("scripted", options={"faults": ["unauthorised"] * 5}), PLANTED)
    try:
        base_url = model.server.base_url  # type: ignore[attr-defined]
        done = script(
            home, "diagnose", "-", "--model", "scripted", "--base-url", base_url, "--json", stdin=case_bytes(),
            LIM_API_KEY=PLANTED, OPENAI_API_KEY="sk-other-0123456789abcdef",
        )  # fmt: skip
        assert done.returncode == 2
        seen = [request.authorization for request in model.server.traffic.seen]  # type: ignore[attr-defined]
        assert seen
        assert set(seen) == {PLANTED}
        assert PLANTED.encode() not in done.stdout + done.stderr
        for file in tmp_path.rglob("*"):
            assert not file.is_file() or PLANTED.encode() not in file.read_bytes()
    finally:
        model.close()
