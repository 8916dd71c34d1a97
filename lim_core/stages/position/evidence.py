"""What the position test saw, as the JSON of its finding (design: `position` of `diagnose --json`)."""

from __future__ import annotations

from lim_core.scores import outcome_counts, score_json
from lim_core.stages.position.course import Course, End
from lim_core.types import Json


def evidence_of(course: Course, end: End, shape: str | None = None) -> dict[str, Json]:
    """Points by slot, brackets, the test's figures and how it ended; figures of a test that was not run are null."""
    slots = sorted(course.slots, key=lambda slot: slot.index)
    points: list[Json] = [score_json(course.score(slot)) for slot in slots]
    ran = bool(course.results)
    gap = course.test.gap_interval
    return {
        "points": points if ran else [],
        "oracle": _bracket(course, "oracle"),
        "closed_book": _bracket(course, "closed-book"),
        "as_sent": _bracket(course, "as-sent"),
        "oracle_plain": _bracket(course, "oracle:plain"),
        "e_value": course.test.e_value if ran else None,
        "gap": gap.value if gap is not None else None,
        "gap_low": gap.low if gap is not None else None,
        "gap_high": gap.high if gap is not None else None,
        "shape": shape or ("flat" if end.kind == "flat" else "unclear"),
        "blocks": course.blocks,
        "reason": end.reason,
        "more_calls": end.more_blocks * len(course.slots) if end.more_blocks else None,
        "own_index": course.parts.own_index,
        "order_as_sent": list(course.order) if course.own_known and course.order else None,
        "template": course.framing.frame.name,
        "template_note": course.framing.note or None,
        "outcomes": dict(outcome_counts(course.trials())),
    }


def _bracket(course: Course, arm: str) -> Json:
    sent = any(result.trial.arm == arm for result in course.brackets)
    return score_json(course.bracket(arm)) if sent else None
