"""The stored JSON document of a diagnosis, read into frozen rows for the pages.

Documents come out of a file that may be old or edited, so every field is checked for its type; what is absent or of another
type reads as unknown. Shares are in [0, 1], tokens in tokens of the tested model, indices 0-based as in the document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lim_core.types import Json, Status


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage's finding."""

    stage: str
    status: Status
    summary: str
    evidence: Mapping[str, Json]
    missing_fields: tuple[str, ...]
    cause: str | None
    advice: str


@dataclass(frozen=True, slots=True)
class PointRow:
    """One arm's accuracy with its Wilson 95% interval; `distinct` counts observations."""

    arm: str
    index: int | None
    depth: float | None
    n: int
    correct: int
    distinct: int
    accuracy: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class PositionRow:
    """The position test: its points by slot, the two brackets and how it ended."""

    points: tuple[PointRow, ...]
    oracle: PointRow | None
    closed_book: PointRow | None
    e_value: float | None
    gap: float | None
    shape: str
    blocks: int
    reason: str
    more_calls: int | None


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """One retrieved chunk in the prompt as sent; `rank` is its 0-based place in the retrieved list."""

    id: str
    rank: int
    state: str
    share: float | None
    answer_lost: bool
    token_offset: int | None
    depth: float | None
    tokens: int | None
    gold: bool


@dataclass(frozen=True, slots=True)
class AssemblyRow:
    """The prompt as sent: its chunks in retrieved order and its length."""

    chunks: tuple[ChunkRow, ...]
    prompt_tokens: int | None
    context_window: int | None


@dataclass(frozen=True, slots=True)
class RemedyRow:
    """A remedy with its accuracy before and after and its paired gain (bootstrap 95%)."""

    name: str
    title: str
    tried: bool
    n: int
    before: float | None
    after: float | None
    gain: float | None
    low: float | None
    high: float | None
    note: str


@dataclass(frozen=True, slots=True)
class CallsRow:
    """What the run spent."""

    made: int
    failed: int
    retried: int
    cached: int
    prompt_tokens: int
    cached_prompt_tokens: int
    completion_tokens: int
    seconds: float
    cost: float | None


@dataclass(frozen=True, slots=True)
class Reading:
    """A whole document."""

    run_id: str | None
    case_id: str
    question: str
    cause: str
    also: tuple[str, ...]
    summary: str
    tested_model: str
    same_model: bool | None
    stages: tuple[StageRow, ...]
    position: PositionRow | None
    assembly: AssemblyRow | None
    remedies: tuple[RemedyRow, ...]
    outcomes: Mapping[str, int]
    calls: CallsRow
    warnings: tuple[str, ...]

    def stage(self, name: str) -> StageRow | None:
        """The finding of one stage, or None where it is not in the document."""
        return next((row for row in self.stages if row.stage == name), None)


def read_document(document: Mapping[str, Json]) -> Reading:
    """Read the object that `diagnose --json` prints (design.md section 8)."""
    stages = tuple(_stage(item) for item in _maps(document.get("stages")))
    outcomes = _map(document.get("outcomes"))
    return Reading(
        run_id=_maybe_text(document.get("run_id")),
        case_id=_text(document.get("case_id")),
        question=_text(document.get("question")),
        cause=_text(document.get("cause")) or "UNDETERMINED",
        also=_texts(document.get("also")),
        summary=_text(document.get("summary")),
        tested_model=_text(document.get("tested_model")),
        same_model=_maybe_bool(document.get("same_model")),
        stages=stages,
        position=_position(document.get("position")),
        assembly=_assembly({row.stage: row.evidence for row in stages}),
        remedies=tuple(_remedy(item) for item in _maps(document.get("remedies"))),
        outcomes={name: whole(count) or 0 for name, count in outcomes.items()},
        calls=_calls(_map(document.get("calls"))),
        warnings=_texts(document.get("warnings")),
    )


def whole(value: Json) -> int | None:
    """A whole number, or None for anything else."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def number(value: Json) -> float | None:
    """A number, or None for anything else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


_STATUSES = frozenset(status.value for status in Status)


def _stage(item: Mapping[str, Json]) -> StageRow:
    word = _text(item.get("status"))
    return StageRow(
        stage=_text(item.get("stage")),
        status=Status(word) if word in _STATUSES else Status.UNDETERMINED,
        summary=_text(item.get("summary")),
        evidence=_map(item.get("evidence")),
        missing_fields=_texts(item.get("missing_fields")),
        cause=_maybe_text(item.get("cause")),
        advice=_text(item.get("advice")),
    )


def _point(item: Mapping[str, Json]) -> PointRow:
    n = whole(item.get("n")) or 0
    return PointRow(
        arm=_text(item.get("arm")),
        index=whole(item.get("index")),
        depth=number(item.get("depth")),
        n=n,
        correct=whole(item.get("correct")) or 0,
        distinct=whole(item.get("distinct")) or n,
        accuracy=number(item.get("accuracy")),
        low=number(item.get("low")),
        high=number(item.get("high")),
    )


def _position(value: Json) -> PositionRow | None:
    item = _map(value)
    if not item:
        return None
    points = sorted(
        (_point(point) for point in _maps(item.get("points"))), key=lambda p: (p.index is None, p.index or 0)
    )
    oracle, closed = _map(item.get("oracle")), _map(item.get("closed_book"))
    return PositionRow(
        points=tuple(points),
        oracle=_point(oracle) if oracle else None,
        closed_book=_point(closed) if closed else None,
        e_value=number(item.get("e_value")),
        gap=number(item.get("gap")),
        shape=_text(item.get("shape")),
        blocks=whole(item.get("blocks")) or 0,
        reason=_text(item.get("reason")),
        more_calls=whole(item.get("more_calls")),
    )


def _assembly(evidence: Mapping[str, Mapping[str, Json]]) -> AssemblyRow | None:
    found = evidence.get("assembly", {})
    chunks = _maps(found.get("chunks"))
    if not chunks:
        return None
    gold = set(_texts(evidence.get("retrieval", {}).get("gold_ids")))
    truncation = evidence.get("truncation", {})
    rows = tuple(
        ChunkRow(
            id=_text(item.get("id")),
            rank=rank,
            state=_text(item.get("state")),
            share=number(item.get("share")),
            answer_lost=item.get("answer_lost") is True,
            token_offset=whole(item.get("token_offset")),
            depth=number(item.get("depth")),
            tokens=whole(item.get("tokens")),
            gold=item.get("id") in gold,
        )
        for rank, item in enumerate(chunks)
    )
    total = whole(found.get("prompt_tokens")) or whole(truncation.get("prompt_tokens"))
    return AssemblyRow(rows, total, whole(truncation.get("context_window")))


def _remedy(item: Mapping[str, Json]) -> RemedyRow:
    name = _text(item.get("name"))
    return RemedyRow(
        name=name,
        title=_text(item.get("title")) or name,
        tried=item.get("tried") is True,
        n=whole(item.get("n")) or 0,
        before=number(item.get("before")),
        after=number(item.get("after")),
        gain=number(item.get("gain")),
        low=number(item.get("low")),
        high=number(item.get("high")),
        note=_text(item.get("note")),
    )


def _calls(item: Mapping[str, Json]) -> CallsRow:
    def count(name: str) -> int:
        return whole(item.get(name)) or 0

    return CallsRow(
        made=count("made"),
        failed=count("failed"),
        retried=count("retried"),
        cached=count("cached"),
        prompt_tokens=count("prompt_tokens"),
        cached_prompt_tokens=count("cached_prompt_tokens"),
        completion_tokens=count("completion_tokens"),
        seconds=number(item.get("seconds")) or 0.0,
        cost=number(item.get("cost")),
    )


def _map(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _maps(value: Json) -> tuple[Mapping[str, Json], ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    return tuple(item for item in value if isinstance(item, Mapping))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _maybe_text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _maybe_bool(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None


def _texts(value: Json) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    return tuple(item for item in value if isinstance(item, str))
