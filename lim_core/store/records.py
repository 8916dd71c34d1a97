"""What the store hands out: frozen rows, in the units of `lim_core.types`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from lim_core.types import Json, Outcome


class RunStatus(StrEnum):
    """How far a run has come. `interrupted`: its process ended while it was running; it can be resumed."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of the list of runs; times are aware and in UTC.

    `question` is clipped to 500 characters (the case holds it whole). `cause`, `summary` and `seconds` are None until a
    document is saved; `calls` counts HTTP requests and is None while unknown.
    """

    id: str
    created_at: datetime
    updated_at: datetime
    kind: str
    case_id: str
    question: str
    status: RunStatus
    cause: str | None
    summary: str | None
    model: str | None
    calls: int | None
    seconds: float | None
    note: str
    settings: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunRecord(RunSummary):
    """One run with its release; `has_document` says whether a result was saved."""

    release: Mapping[str, Json] = field(default_factory=dict)
    has_document: bool = False


@dataclass(frozen=True, slots=True)
class RunPage:
    """One page of the list of runs, newest first, and how many runs match in all."""

    rows: tuple[RunSummary, ...]
    total: int


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One trial with its answer and its newest score. `seq` counts a run's trials from 0 in the order they finished.

    `seconds` is the latency of the call that was really sent, also where `cached` says that no request was sent now.
    """

    seq: int
    case_id: str
    arm: str
    block: int
    repeat: int
    slot: int | None
    depth: float | None
    outcome: Outcome
    reason: str
    answer: str
    prompt_tokens: int | None
    cached_prompt_tokens: int | None
    completion_tokens: int | None
    seconds: float
    cached: bool
    fault: str | None
    call_id: str
    judge: str
    judge_version: str


@dataclass(frozen=True, slots=True)
class ArmRow:
    """How the trials of one arm came out."""

    arm: str
    slot: int | None
    trials: int
    correct: int
    wrong: int
    abstained: int
    empty: int
    error: int


@dataclass(frozen=True, slots=True)
class Rescore:
    """A new verdict on a stored trial, from a judge run again over its answer."""

    seq: int
    outcome: Outcome
    reason: str
