"""The table of background jobs."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import threading
import weakref

import pytest

from lim_core.errors import EndpointError, InputError, RunCancelled
from lim_core.jobs import INTERNAL_ERROR, JobContext, Jobs, JobState
from lim_core.types import Progress


def test_a_job_reports_and_ends_with_its_result() -> None:
    jobs, reported, go_on = Jobs(), threading.Event(), threading.Event()

    def work(context: JobContext) -> object:
        context.report(Progress("position", calls=3))
        reported.set()
        go_on.wait(5)
        return context.job_id

    started = jobs.start("a", work)
    assert started.state is JobState.RUNNING
    assert reported.wait(5)
    # Any session that asks sees the same job.
    seen = jobs.get("a")
    assert seen is not None
    assert seen.progress == Progress("position", calls=3)
    assert seen == jobs.active()[0]
    go_on.set()
    ended = jobs.wait("a", 5)
    assert ended is not None
    assert (ended.state, ended.result, ended.error) == (JobState.DONE, "a", None)
    assert ended.started_at is not None
    assert ended.ended_at is not None
    assert ended.queued_at <= ended.started_at <= ended.ended_at
    assert jobs.active() == ()
    assert jobs.get("b") is None
    assert jobs.wait("b") is None


def test_jobs_of_one_lane_run_one_at_a_time_and_others_pass_them() -> None:
    jobs = Jobs(at_once=3)
    gate = threading.Event()
    for name in ("a", "b"):
        jobs.start(name, lambda context: gate.wait(5), "embedded")
    jobs.start("c", lambda context: None)
    assert jobs.wait("c", 5) is not None
    states = {view.id: view.state for view in jobs.all()}
    assert states == {"a": JobState.RUNNING, "b": JobState.QUEUED, "c": JobState.DONE}
    gate.set()
    ended = jobs.wait("b", 5)
    assert ended is not None
    assert ended.state is JobState.DONE


def test_no_more_than_the_bound_run_at_once_and_the_rest_in_order() -> None:
    jobs = Jobs(at_once=2)
    lock, running, most, order = threading.Lock(), 0, 0, list[str]()
    gates = {f"j{i}": threading.Event() for i in range(6)}

    def work(context: JobContext) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            order.append(context.job_id)
        gates[context.job_id].wait(5)
        with lock:
            running -= 1

    views = [jobs.start(name, work) for name in gates]
    assert [view.state for view in views] == [JobState.RUNNING] * 2 + [JobState.QUEUED] * 4
    assert [view.ahead for view in views] == [0, 0, 0, 1, 2, 3]
    for name, gate in gates.items():
        gate.set()
        assert jobs.wait(name, 5).state is JobState.DONE  # type: ignore[union-attr]
    assert most == 2
    assert order[2:] == ["j2", "j3", "j4", "j5"]


def test_starting_an_active_job_again_shows_it_and_starting_an_ended_one_runs_it_anew() -> None:
    jobs, gate, runs = Jobs(), threading.Event(), list[int]()

    def work(context: JobContext) -> None:
        runs.append(1)
        gate.wait(5)

    jobs.start("a", work)
    assert jobs.start("a", work).state is JobState.RUNNING
    gate.set()
    jobs.wait("a", 5)
    assert len(runs) == 1
    jobs.start("a", work)
    jobs.wait("a", 5)
    assert len(runs) == 2


def test_cancel_reaches_a_running_job_and_ends_a_queued_one_at_once() -> None:
    jobs, entered, ran = Jobs(at_once=1), threading.Event(), threading.Event()

    def polls(context: JobContext) -> str:
        entered.set()
        while not context.cancelled():
            threading.Event().wait(0.005)
        return "partial"

    jobs.start("running", polls)
    jobs.start("queued", lambda context: ran.set())
    assert entered.wait(5)
    assert jobs.cancel("queued")
    queued = jobs.get("queued")
    assert queued is not None
    assert queued.state is JobState.CANCELLED
    assert jobs.cancel("running")
    ended = jobs.wait("running", 5)
    assert ended is not None
    # What was done before the cancel is kept.
    assert (ended.state, ended.result) == (JobState.CANCELLED, "partial")
    assert not ran.is_set()
    assert not jobs.cancel("running")
    assert not jobs.cancel("nobody")


def test_a_cancel_that_comes_too_late_does_not_undo_a_finished_job() -> None:
    jobs, entered, gate = Jobs(), threading.Event(), threading.Event()

    def never_looks(context: JobContext) -> str:
        entered.set()
        gate.wait(5)
        return "whole"

    jobs.start("a", never_looks)
    entered.wait(5)
    jobs.cancel("a")
    assert jobs.get("a").cancelling  # type: ignore[union-attr]
    gate.set()
    assert jobs.wait("a", 5).state is JobState.DONE  # type: ignore[union-attr]


def test_an_error_of_lim_keeps_its_sentence() -> None:
    jobs = Jobs()

    def fails(context: JobContext) -> None:
        raise EndpointError("The endpoint is down: start it.")

    def stops(context: JobContext) -> None:
        raise RunCancelled("stopped")

    jobs.start("a", fails)
    jobs.start("b", stops)
    failed, stopped = jobs.wait("a", 5), jobs.wait("b", 5)
    assert failed is not None
    assert stopped is not None
    assert (failed.state, failed.error) == (JobState.FAILED, "The endpoint is down: start it.")
    assert failed.error_kind == "EndpointError"
    assert (stopped.state, stopped.error) == (JobState.CANCELLED, None)


def test_a_bug_is_an_internal_error_and_the_log_has_no_text_of_it(caplog: pytest.LogCaptureFixture) -> None:
    jobs = Jobs(at_once=1)

    def breaks(context: JobContext) -> None:
        raise KeyError("sk-planted The patient's letter")

    with caplog.at_level(logging.DEBUG):
        jobs.start("a", breaks)
        failed = jobs.wait("a", 5)
    assert failed is not None
    assert (failed.state, failed.error, failed.error_kind) == (JobState.FAILED, INTERNAL_ERROR, "KeyError")
    assert "planted" not in caplog.text
    assert "patient" not in caplog.text
    assert "KeyError" in caplog.text
    assert "test_jobs.py" in caplog.text
    # The slot is free again.
    jobs.start("b", lambda context: 1)
    assert jobs.wait("b", 5).state is JobState.DONE  # type: ignore[union-attr]


def test_the_queue_is_bounded() -> None:
    jobs, gate = Jobs(at_once=1, queue=2), threading.Event()
    for name in ("a", "b", "c"):
        jobs.start(name, lambda context: gate.wait(5))
    with pytest.raises(InputError, match="waiting"):
        jobs.start("d", lambda context: None)
    assert jobs.get("d") is None
    gate.set()
    for name in ("a", "b", "c"):
        jobs.wait(name, 5)
    jobs.start("d", lambda context: None)
    jobs.wait("d", 5)


def test_ended_jobs_let_go_of_their_work_and_the_table_does_not_grow_for_ever() -> None:
    class Heavy:
        pass

    jobs, heavy = Jobs(), Heavy()
    gone = weakref.ref(heavy)

    def work(context: JobContext, held: Heavy = heavy) -> None:
        return None

    jobs.start("a", work)
    jobs.wait("a", 5)
    del work, heavy
    gc.collect()
    assert gone() is None
    for index in range(230):
        jobs.start(str(index), lambda context: None)
        jobs.wait(str(index), 5)
    assert len(jobs.all()) <= 201
    assert jobs.all()[-1].id == "229"


def test_many_threads_start_cancel_and_look_at_the_same_table() -> None:
    jobs, failures = Jobs(at_once=3, queue=10_000), list[BaseException]()

    def session(number: int) -> None:
        try:
            for index in range(40):
                job_id = f"{number}-{index}"
                jobs.start(job_id, lambda context: context.report(Progress("x")))
                if index % 3 == 0:
                    jobs.cancel(job_id)
                jobs.all()
                assert jobs.wait(job_id, 10).state.ended  # type: ignore[union-attr]
        except BaseException as fault:  # noqa: BLE001
            failures.append(fault)

    threads = [threading.Thread(target=session, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert jobs.active() == ()


def test_a_hanging_job_does_not_keep_the_process_alive() -> None:
    code = (
        "import threading\nfrom lim_core.jobs import Jobs\n"
        "jobs = Jobs()\njobs.start('a', lambda context: threading.Event().wait())\nprint('end')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (0, "end\n")
