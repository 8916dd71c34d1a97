"""Invented runs for the tests of the store, also run as a script by the tests that need a second process."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from lim_core.store import Store
from lim_core.types import Call, Case, Chunk, Json, Message, Outcome, Prompt, Trial, TrialResult, Usage, Verdict

ROOT = Path(__file__).parents[1]
SETTINGS: Mapping[str, Json] = {"model": "scripted", "judge": "contains", "seed": 0, "stages": None}
RELEASE: Mapping[str, Json] = {"provider": "scripted", "template": "plain-1"}


def a_case(case_id: str = "ferry", question: str = "When does the last ferry leave Skarvik?") -> Case:
    """A small case."""
    chunks = (Chunk("c1", "The last ferry leaves Skarvik at 21:40."), Chunk("c2", "The kiosk sells maps.", score=0.5))
    return Case(id=case_id, question=question, chunks=chunks, answers=("21:40",), gold_ids=("c1",))


def a_trial(
    number: int = 0,
    *,
    arm: str = "position:first",
    outcome: Outcome = Outcome.CORRECT,
    text: str | None = None,
    fault: str | None = None,
    prompt: str | None = None,
    call_id: str | None = None,
    key: str | None = None,
    cached: bool = False,
    params: Mapping[str, Json] | None = None,
) -> TrialResult:
    """Trial number `number`: block number // 3, repeat 0."""
    messages = (Message("user", prompt if prompt is not None else f"Document [1] ... Question {number}"),)
    call = Call(
        id=call_id or uuid.uuid4().hex,
        key=key or f"key-{arm}-{number}",
        endpoint="https://models.example.net/v1",
        model="scripted",
        messages=messages,
        params={"temperature": 0} if params is None else params,
        repeat=0,
        text=f"At 21:40. ({number})" if text is None else text,
        finish_reason="stop",
        usage=Usage(100 + number, 7, 40, None),
        seconds=0.25,
        retries=0,
        fault=fault,
        fault_text=None if fault is None else "the endpoint hung up",
        started_at=1_700_000_000.0 + number,
    )
    trial = Trial("ferry", arm, number // 3, 0, Prompt(messages, template="plain-1"), slot=0)
    verdict = Verdict(Outcome.ERROR if fault else outcome, "an alias matches")
    return TrialResult(trial, call, verdict, cached, depth=0.125)


def a_document(run_id: str, cause: str = "LOST_IN_THE_MIDDLE", made: int = 28) -> dict[str, Json]:
    """What `diagnose --json` prints, with two stages and a remedy."""
    return {
        "schema": 1,
        "run_id": run_id,
        "case_id": "ferry",
        "cause": cause,
        "also": [],
        "summary": "The answer is lost in the middle.",
        "tested_model": "scripted",
        "same_model": None,
        "stages": [
            {
                "stage": "truncation",
                "status": "pass",
                "summary": "It fits.",
                "evidence": {"low": 1},
                "missing_fields": [],
            },
            {
                "stage": "position",
                "status": "fail",
                "summary": "Lost.",
                "evidence": {},
                "cause": cause,
                "advice": "Cut.",
            },
        ],
        "remedies": [
            {
                "name": "rerank:bm25",
                "title": "BM25",
                "tried": True,
                "n": 8,
                "before": 0.125,
                "after": 0.875,
                "gain": 0.75,
            }
        ],
        "calls": {"made": made, "seconds": 12.5},
        "release": {"provider": "scripted", "template": "plain-1", "seen": True},
    }


def start(store: Store, run_id: str = "r1", case: Case | None = None) -> None:
    """Start a run of the sample case."""
    store.start_run(run_id, case or a_case(), SETTINGS, RELEASE)


def script(act: str, path: Path) -> subprocess.Popen[str]:
    """This module as a second process."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.stored", act, str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def put(store: Store, *results: TrialResult, run_id: str = "r1") -> None:
    """Put and wait for the commit."""
    sink = store.sink(run_id, "contains", "1")
    for result in results:
        sink.put(result)
    sink.flush()


def raw(store: Store, query: str) -> list[tuple[object, ...]]:
    """What the tables really hold."""
    with store._database.cursor() as cursor:
        return cursor.execute(query).fetchall()


def _write_for_ever(path: Path) -> None:
    # Tells after each flush how many trials are committed; killed by the test.
    with Store.open(path) as store:
        start(store)
        sink = store.sink("r1", "contains", "1")
        number = store.count_trials("r1")
        while True:
            for _ in range(7):
                sink.put(a_trial(number, prompt="p" * 3000))
                number += 1
            sink.flush()
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


def _hold(path: Path) -> None:
    with Store.open(path) as store:
        start(store)
        sys.stdout.write("held\n")
        sys.stdout.flush()
        time.sleep(60)


def _put_and_leave(path: Path) -> None:
    # Neither flushed nor closed: the exit hook has to do it.
    store = Store.open(path)
    start(store)
    sink = store.sink("r1", "contains", "1")
    for number in range(50):
        sink.put(a_trial(number))


def _fill(path: Path) -> None:
    # Writes until a file may not grow any more, then says what was committed and how it ended.
    import resource
    import signal

    from lim_core.errors import StoreFull

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = Store.open(path)
    start(store)
    sink = store.sink("r1", "contains", "1")
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))
    committed = number = 0
    try:
        while number < 20_000:
            for _ in range(20):
                sink.put(a_trial(number, prompt=uuid.uuid4().hex * 100))
                number += 1
            sink.flush()
            committed = number
    except StoreFull as full:
        sys.stdout.write(f"{committed} {number} {full}\n")
        sys.stdout.flush()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    # Room again: what was put and not committed goes in now.
    sink.flush()
    store.close()


if __name__ == "__main__":
    acts = {"write": _write_for_ever, "hold": _hold, "leave": _put_and_leave, "fill": _fill}
    acts[sys.argv[1]](Path(sys.argv[2]))
