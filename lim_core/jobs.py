"""A table of background runs: bounded at once, with progress, cancel and error. Knows nothing of pages or sessions."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from lim_core.errors import InputError, LimError, RunCancelled
from lim_core.errors import where as where  # the pages' own edge takes it from here
from lim_core.types import Progress

log = logging.getLogger(__name__)

KEPT_ENDED = 200
INTERNAL_ERROR = "An internal error stopped the run; what was finished is kept, and the log says where it happened."


class JobState(StrEnum):
    """How far a job has come; the last three are ends."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self in (JobState.DONE, JobState.CANCELLED, JobState.FAILED)


@dataclass(frozen=True, slots=True)
class JobView:
    """A snapshot of one job, the same for every session. Times are epoch seconds.

    `error` is a sentence to show, `error_kind` the name of the error's class; `ahead` counts the jobs queued before it.
    """

    id: str
    state: JobState
    queued_at: float
    started_at: float | None = None
    ended_at: float | None = None
    progress: Progress | None = None
    cancelling: bool = False
    error: str | None = None
    error_kind: str | None = None
    result: object = None
    ahead: int = 0


class JobContext:
    """What a running job is given: where to report, and whether to stop."""

    def __init__(self, job_id: str, publish: Callable[[Progress], None], stop: threading.Event) -> None:
        self.job_id = job_id
        self._publish = publish
        self._stop = stop
        self.saw_cancel = False

    def report(self, progress: Progress) -> None:
        """Show this progress in place of the one before."""
        self._publish(progress)

    def cancelled(self) -> bool:
        """Whether the job shall stop; a job that returns after it saw a yes here counts as cancelled."""
        if self._stop.is_set():
            self.saw_cancel = True
        return self.saw_cancel


Work = Callable[[JobContext], object]


@dataclass(slots=True)
class _Job:
    view: JobView
    work: Work | None
    lane: str
    stop: threading.Event
    ended: threading.Event


class Jobs:
    """Background jobs by id, each in a daemon thread, `at_once` at a time and the rest in a queue.

    Jobs of one lane run one at a time: two runs on the model in this process would load it twice and halve each other.

    Threads are daemons because an endpoint that hangs must not keep the process from ending; a job cut off that way is
    found in the store as interrupted.
    """

    def __init__(self, at_once: int = 2, queue: int = 50) -> None:
        if at_once < 1:
            raise ValueError("at least one job must be able to run")
        self._at_once = at_once
        self._queue = queue
        self._lock = threading.Lock()  # guards everything below; sessions and job threads all come here
        self._jobs: dict[str, _Job] = {}
        self._waiting: deque[str] = deque()
        self._running: list[str] = []  # the lanes of the jobs that run

    def start(self, job_id: str, work: Work, lane: str = "") -> JobView:
        """Run `work` in the background, or show the job of this id where it is already queued or running.

        Raises:
            InputError: too many jobs are queued.
        """
        with self._lock:
            known = self._jobs.get(job_id)
            if known is not None and not known.view.state.ended:
                return self._seen(known)
            if len(self._waiting) >= self._queue and not self._free(lane):
                raise InputError(f"{self._queue} runs are waiting already: cancel some, or try again later.")
            self._jobs.pop(job_id, None)  # a resumed run moves to the end of the table
            view = JobView(job_id, JobState.QUEUED, queued_at=time.time())
            job = _Job(view, work, lane, threading.Event(), threading.Event())
            self._jobs[job_id] = job
            self._waiting.append(job_id)
            self._forget_oldest()
            self._fill()
            return self._seen(job)

    def get(self, job_id: str) -> JobView | None:
        """The job's present state, None where this process has no such job."""
        with self._lock:
            job = self._jobs.get(job_id)
            return None if job is None else self._seen(job)

    def all(self) -> tuple[JobView, ...]:
        """Every job of this process, oldest first; of the ended ones the last 200."""
        with self._lock:
            return tuple(self._seen(job) for job in self._jobs.values())

    def active(self) -> tuple[JobView, ...]:
        """The jobs that are queued or running, oldest first."""
        return tuple(view for view in self.all() if not view.state.ended)

    def cancel(self, job_id: str) -> bool:
        """Ask a job to stop; a queued one is cancelled at once. False where there is nothing to stop."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.view.state.ended:
                return False
            job.stop.set()
            if job.view.state is JobState.QUEUED:
                self._waiting.remove(job_id)
                job.work = None
                self._end(job, JobState.CANCELLED)
            else:
                job.view = replace(job.view, cancelling=True)
            return True

    def wait(self, job_id: str, timeout: float | None = None) -> JobView | None:
        """Wait until the job has ended, at most `timeout` seconds; returns its state then."""
        with self._lock:
            job = self._jobs.get(job_id)
        if job is None:
            return None
        job.ended.wait(timeout)
        with self._lock:
            return self._seen(job)

    def _fill(self) -> None:
        for job_id in tuple(self._waiting):
            job = self._jobs[job_id]
            if not self._free(job.lane):
                continue
            self._waiting.remove(job_id)
            job.view = replace(job.view, state=JobState.RUNNING, started_at=time.time())
            self._running.append(job.lane)
            threading.Thread(target=self._run, args=(job,), name=f"lim-job-{job.view.id}", daemon=True).start()

    def _free(self, lane: str) -> bool:
        """Whether a job of this lane could run now; the lane without a name is as wide as the table."""
        return len(self._running) < self._at_once and (not lane or lane not in self._running)

    def _run(self, job: _Job) -> None:
        context = JobContext(job.view.id, lambda progress: self._publish(job, progress), job.stop)
        # The work may hold a case of megabytes; the table keeps ended jobs, so it lets go of it.
        work, job.work = job.work, None
        state, error, kind, result = JobState.FAILED, INTERNAL_ERROR, "", None
        try:
            result = work(context) if work is not None else None
            state = JobState.CANCELLED if context.saw_cancel else JobState.DONE
            error = kind = ""
        except RunCancelled:
            state, error, kind = JobState.CANCELLED, "", ""
        except LimError as fault:
            error, kind = str(fault), type(fault).__name__
        # The job's edge: shown as an internal error, the process goes on. Base exceptions too, for a thread that ends with
        # one prints its message, which may quote a prompt.
        except BaseException as fault:  # noqa: BLE001
            kind = type(fault).__name__
            log.error("job %s failed: %s", job.view.id, where(fault))
        finally:
            with self._lock:
                self._running.remove(job.lane)
                self._end(job, state, error or None, kind or None, result)
                self._fill()

    def _publish(self, job: _Job, progress: Progress) -> None:
        with self._lock:
            job.view = replace(job.view, progress=progress)

    def _end(
        self,
        job: _Job,
        state: JobState,
        error: str | None = None,
        kind: str | None = None,
        result: object = None,
    ) -> None:
        job.view = replace(
            job.view,
            state=state,
            ended_at=time.time(),
            cancelling=False,
            error=error,
            error_kind=kind,
            result=result,
        )
        job.ended.set()

    def _seen(self, job: _Job) -> JobView:
        if job.view.state is not JobState.QUEUED:
            return job.view
        return replace(job.view, ahead=self._waiting.index(job.view.id))

    def _forget_oldest(self) -> None:
        ended = [job_id for job_id, job in self._jobs.items() if job.view.state.ended]
        for job_id in ended[: max(0, len(ended) - KEPT_ENDED)]:
            del self._jobs[job_id]
