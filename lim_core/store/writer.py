"""The thread that writes finished trials in groups, and the sink that feeds it."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from lim_core.errors import LimError, StoreError

log = logging.getLogger(__name__)
T = TypeVar("T")

GROUP_SECONDS = 0.1
GROUP_ROWS = 512


@dataclass(frozen=True, slots=True)
class _Failure:
    error: LimError


class Writer(Generic[T]):
    """Hands what was put to `commit` in groups, in order, at most 100 ms after it came.

    What could not be committed is kept and tried again at the next put or flush.
    """

    def __init__(self, commit: Callable[[Sequence[T]], None]) -> None:
        self._commit = commit
        self._waiting: deque[T] = deque()
        self._state = threading.Condition()  # guards everything below and _waiting
        self._accepted = 0
        self._committed = 0
        self._hurry = False
        self._retry = False
        self._closing = False
        self._failure: _Failure | None = None
        self._thread: threading.Thread | None = None

    def put(self, item: T) -> None:
        """Take one item and return at once.

        Raises:
            StoreFull: an earlier group could not be committed; this item is kept with it for the next try.
        """
        with self._state:
            if self._closing:
                raise StoreError("The store is closed: open it again.")
            self._waiting.append(item)
            self._accepted += 1
            if self._thread is None:
                # A daemon: the store's own exit hook flushes, and an abandoned writer must not hold the process up.
                self._thread = threading.Thread(target=self._work, name="lim-store-writer", daemon=True)
                self._thread.start()
            self._retry = True
            self._state.notify_all()
            if self._failure is not None:
                raise _again(self._failure.error)

    def flush(self) -> None:
        """Wait until everything put before is committed.

        Raises:
            StoreFull: it could not be committed; it is kept for the next try.
        """
        with self._state:
            goal = self._accepted
            if self._committed >= goal:
                return
            self._failure = None
            self._hurry = self._retry = True
            self._state.notify_all()
            self._state.wait_for(lambda: self._committed >= goal or self._failure is not None)
            if self._failure is not None and self._committed < goal:
                raise _again(self._failure.error)

    def close(self) -> None:
        """Commit what is left and end the thread. Idempotent.

        Raises:
            StoreFull: what was left could not be committed.
        """
        try:
            self.flush()
        finally:
            with self._state:
                self._closing = True
                self._state.notify_all()
                thread = self._thread
            if thread is not None:
                thread.join()

    def _work(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._closing or (self._waiting and self._retry))
                if self._closing:
                    return
                self._state.wait_for(
                    lambda: self._hurry or self._closing or len(self._waiting) >= GROUP_ROWS, timeout=GROUP_SECONDS
                )
                group = list(self._waiting)
                self._waiting.clear()
                self._hurry = self._retry = False
            failure: _Failure | None = None
            try:
                self._commit(group)
            except LimError as error:
                failure = _Failure(error)
            except Exception as error:  # noqa: BLE001 - the thread's edge: put and flush report it, nobody else can
                log.error("the store's writer failed: %s", type(error).__name__)
                failure = _Failure(StoreError(f"The run could not be stored ({type(error).__name__})."))
            with self._state:
                if failure is None:
                    self._committed += len(group)
                else:
                    self._waiting.extendleft(reversed(group))
                self._failure = failure
                self._retry = self._retry or (failure is None and bool(self._waiting))
                self._state.notify_all()


def _again(error: LimError) -> LimError:
    # A fresh object each time: one raised in two threads would mix their tracebacks.
    fresh = type(error).__new__(type(error), *error.args)
    fresh.__dict__.update(error.__dict__)
    fresh.__cause__ = error
    return fresh
