"""Every error that lim raises on purpose, in one tree.

LimError
 ├─ InputError            the case or file given cannot be used               exit 2
 ├─ ConfigError           settings, endpoint, model name or key are wrong     exit 2
 │   ├─ UnknownName       a registered name that does not exist               exit 2
 │   └─ KeyMissing        a run waits for a key that is not here              exit 2
 ├─ StoreError            the store file cannot be used                       exit 2
 │   ├─ StoreBusy         another process holds the file
 │   ├─ StoreNewer        written by a newer version of lim
 │   └─ StoreFull         the disk is full or the file cannot be written
 ├─ EndpointError         the endpoint failed or told lim to wait too long    exit 3
 ├─ BudgetSpent           a cap on calls, tokens or money is reached          exit 0
 ├─ RunCancelled          the user stopped the run                            exit 130
 └─ CallFault             one request failed; becomes an `error` outcome or a retry, see `FaultKind`
     └─ ParameterRefused  a 400 that names a parameter, dropped or renamed for the next try

The message of each is one sentence that says what to do; it is shown to the user as it is.
"""

from __future__ import annotations

import traceback
from enum import StrEnum
from pathlib import Path


class LimError(Exception):
    """Root of the tree; `exit_code` is what the command line returns."""

    exit_code = 70


class InputError(LimError):
    """A case, suite or setting given by the user cannot be read."""

    exit_code = 2


class ConfigError(LimError):
    """Settings, endpoint address, model name or key are wrong: no call can succeed."""

    exit_code = 2


class UnknownName(ConfigError):
    """A name that no registry knows; the message lists those that exist."""


class KeyMissing(ConfigError):
    """The run needs a key for its endpoint and none is at hand."""


class StoreError(LimError):
    """The store file cannot be opened, read or written."""

    exit_code = 2


class StoreBusy(StoreError):
    """Another process holds the store file."""

    def __init__(self, path: str, pid: int | None) -> None:
        who = f"process {pid}" if pid is not None else "another process"
        super().__init__(f"The store {path} is held by {who}: stop it, or name another file with --store.")
        self.path = path
        self.pid = pid


class StoreNewer(StoreError):
    """The store file was written by a newer version of lim."""


class StoreFull(StoreError):
    """The disk is full, or the store file cannot be written."""


class EndpointError(LimError):
    """The endpoint is down, failed after retries, or asked to wait too long.

    `resume_after` is the wait it asked for, in seconds, where it named one.
    """

    exit_code = 3

    def __init__(self, message: str, resume_after: float | None = None) -> None:
        super().__init__(message)
        self.resume_after = resume_after


class BudgetSpent(LimError):
    """A cap on calls, tokens or money is reached; what was done counts, so this is no failure."""

    exit_code = 0


class RunCancelled(LimError):
    """The user cancelled the run; what was finished is kept."""

    exit_code = 130


class FaultKind(StrEnum):
    """Why one request gave no answer that can be scored."""

    CONTEXT_WINDOW = "context-window"  # 400: prompt (or prompt + output) over the window
    TOO_LARGE = "too-large"  # 429 for a request no window of time will admit
    RATE_LIMIT = "rate-limit"  # 429 that asks to back off
    SERVER = "server"  # 5xx
    CONNECTION = "connection"  # refused, dropped, cut in the middle
    TIMEOUT = "timeout"
    CONTENT_FILTER = "content-filter"
    TOOL_CALL = "tool-call"  # a tool call where text was asked for
    BAD_REPLY = "bad-reply"  # not JSON, or no choice in it
    PARAMETER = "parameter"  # 400 that names a parameter
    OUTPUT_BUDGET = "output-budget"  # empty text, finish_reason length
    OUTPUT_CUT = "output-cut"  # text cut by the output cap before the answer came
    PROMPT_CUT = "prompt-cut"  # the server read far fewer tokens than were sent


class CallFault(LimError):
    """One request failed.

    `retry` says whether sending the same request again can help; `wait` is the server's Retry-After in seconds.
    For `CONTEXT_WINDOW`, `window` and `needed` carry the two token counts where the server named them.
    """

    exit_code = 3

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        *,
        retry: bool = False,
        wait: float | None = None,
        window: int | None = None,
        needed: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry = retry
        self.wait = wait
        self.window = window
        self.needed = needed


class ParameterRefused(CallFault):
    """The endpoint refuses a parameter; the backend has already adapted, so the next try may pass."""

    def __init__(self, message: str, parameter: str) -> None:
        super().__init__(FaultKind.PARAMETER, message, retry=True)
        self.parameter = parameter


def where(fault: BaseException) -> str:
    """The class of an error and the lines it came through. Its message is left out: it may quote a prompt or a key."""
    frames = traceback.extract_tb(fault.__traceback__)
    lines = " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return f"{type(fault).__name__} at {lines}" if lines else type(fault).__name__
