"""Stage 4: with oracle and closed-book as brackets, does moving the gold chunk change the answer?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lim_core.evidence import gold_of
from lim_core.stages.position.as_sent import chunks_sent
from lim_core.stages.position.course import Course
from lim_core.stages.position.verdict import conclude
from lim_core.stages.registry import stages
from lim_core.types import Bench, Case, Finding, Outcome, Status


@stages.register("position", title="Position", order=4)
def position(case: Case, bench: Bench, earlier: Mapping[str, Finding]) -> Finding:
    """Moves the gold chunk through the slots in distinct distractor orders, with oracle and closed-book beside it."""
    obstacle = _obstacle(case, bench)
    if obstacle is not None:
        return obstacle
    tested = chunks_sent(case, earlier.get("assembly"))
    course = Course(tested, bench, earlier)
    finding = conclude(course, course.run())
    kept = {chunk.id for chunk in tested.chunks}
    left_out = [chunk.id for chunk in case.chunks if chunk.id not in kept]
    if not left_out:
        return finding
    note = f" Tested are the {len(kept)} chunks that were sent; {len(left_out)} retrieved ones were left out of the prompt."
    return replace(finding, summary=finding.summary + note, evidence={**finding.evidence, "left_out": left_out})


def _obstacle(case: Case, bench: Bench) -> Finding | None:
    """Why the test cannot, or need not, be run."""
    if not case.answers:
        return _skipped("The right answer is not given, so no reply can be scored.", "answers")
    if not case.chunks:
        return _skipped("There are no chunks to move.", "chunks")
    if case.answerable is False:
        return _skipped("The case is marked as not answerable, so no chunk is expected to give the answer.")
    gold = gold_of(case)
    if gold.ambiguous:
        names = ", ".join(gold.ambiguous)
        return _skipped(
            f"Several chunks hold the answer ({names}) and none is marked gold: mark the gold chunk.", "gold_ids"
        )
    present = {chunk.id for chunk in case.chunks}
    if not present.intersection(gold.ids):
        return _skipped("The gold chunk is not among the retrieved chunks, so there is nothing to move.", "gold_ids")
    if gold.spoilers:
        names = ", ".join(gold.spoilers)
        return _skipped(
            f"A chunk that is not marked gold holds the answer too ({names}): mark it gold, or confirm it as harmless, "
            "for it would spoil the test.",
            "gold_ids",
        )
    if case.answer is not None and bench.judge(case, case.answer).outcome is Outcome.CORRECT:
        return Finding(
            "position",
            Status.UNDETERMINED,
            "The recorded answer counts as right by the answers given, so there is no failure to explain.",
            advice="Correct the answers, or add the alias that tells the wrong answer from the right one.",
        )
    return None


def _skipped(summary: str, *missing: str) -> Finding:
    return Finding("position", Status.SKIPPED, summary, missing_fields=missing)
