"""Stages in order, the cause, the remedies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lim_core.errors import LimError, RunCancelled
from lim_core.remedies import TREATABLE, try_remedies
from lim_core.stages import stages
from lim_core.types import Bench, Case, Cause, Finding, Json, Progress, Remedy, Status

# Stages that send calls; they are spared once an earlier stage has found the cause.
PAID = frozenset({"position"})

NOT_ASKED = "Not asked for."

_PLAIN = {
    Cause.TRUNCATED: "The prompt was cut before the model read it all",
    Cause.OUTPUT_BUDGET: "The answer had no room",
    Cause.RANKED_OUT: "The evidence was found but ranked out",
    Cause.NOT_RETRIEVED: "The evidence was not retrieved",
    Cause.MISSING_DOCUMENT: "The document is missing from the corpus",
    Cause.CONFLICTING_SOURCES: "Two sources disagree and the other one was told",
    Cause.ASSEMBLY_LOSS: "The evidence was lost when the prompt was put together",
    Cause.LOST_IN_THE_MIDDLE: "Lost in the middle",
    Cause.POSITION_SENSITIVE: "The answer depends on where its chunk stands",
    Cause.DISTRACTED: "Too much else in the prompt",
    Cause.PROMPT_SENSITIVE: "The template as sent loses the answer",
    Cause.NOT_REPRODUCED: "The wrong answer did not come back",
    Cause.CLOSED_BOOK_KNOWN: "The model knows this without the documents",
    Cause.CANNOT_ANSWER: "The model cannot answer this even from the gold chunk alone",
    Cause.UNGROUNDED: "Cited chunks do not support the claims",
    Cause.POLICY: "A forbidden text was used",
    Cause.OPERATIONS: "A budget was missed",
    Cause.NO_FAULT_FOUND: "No fault found",
    Cause.UNDETERMINED: "Undetermined",
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings, one cause, what else was seen, and the remedies tried. `stopped` is why it ended early, if it did.

    A run that failed or was cancelled has the cause UNDETERMINED, with what was certain already in `also`; one that only met
    its cap keeps its cause.
    """

    findings: tuple[Finding, ...]
    cause: Cause
    also: tuple[Cause, ...]
    summary: str
    remedies: tuple[Remedy, ...] = ()
    stopped: LimError | None = None


def diagnose(case: Case, bench: Bench, only: Sequence[str] | None = None) -> Iterator[Finding | Diagnosis]:
    """Run the stages in order, yield each finding as it is made, and the diagnosis last.

    `only` names the stages asked for; the others are skipped and said to be. An endpoint that fails, or a cancel, ends the
    run with what is known so far.
    """
    earlier: dict[str, Finding] = {}
    for entry in stages:
        bench.report(Progress(stage=entry.name))
        finding = _spared(entry.name, earlier, bench, only) or entry.part(case, bench, earlier)
        earlier[entry.name] = finding
        yield finding
    findings = tuple(earlier.values())
    certain = first_cause(findings)
    remedies: tuple[Remedy, ...] = ()
    if certain in TREATABLE and bench.runner.stopped is None:
        bench.report(Progress(stage="remedies"))
        left_out = _ids(earlier.get("position"), "left_out") or ()
        sent = replace(case, chunks=tuple(chunk for chunk in case.chunks if chunk.id not in left_out))
        remedies = try_remedies(sent, bench, _ids(earlier.get("position"), "order_as_sent"))
    stopped = bench.runner.stopped
    cause = Cause.UNDETERMINED if _broken_off(stopped) else certain
    seen = dict.fromkeys((certain, *(c for f in findings for c in (f.cause, *f.also) if c is not None)))
    also = tuple(each for each in seen if each not in (cause, Cause.UNDETERMINED))
    yield Diagnosis(findings, cause, also, summarise(certain, findings, remedies, stopped), remedies, stopped)


def first_cause(findings: Sequence[Finding]) -> Cause:
    """The cause of the first stage that names one; undetermined where none does."""
    return next((finding.cause for finding in findings if finding.cause is not None), Cause.UNDETERMINED)


def summarise(
    cause: Cause, findings: Sequence[Finding], remedies: Sequence[Remedy], stopped: LimError | None = None
) -> str:
    """One or two sentences: the cause in plain words, what it rests on, and the remedy seen to help most.

    `cause` is the one that is certain, also where the run was broken off: then it is told as what was certain by then.
    """
    telling = next((finding for finding in findings if finding.cause is cause), None)
    if telling is not None and _broken_off(stopped):
        text = f"Undetermined: {stopped} Certain by then: {cause.value}. {_PLAIN[cause]}: {telling.summary}"
    elif telling is not None:
        text = f"{_PLAIN[cause]}: {telling.summary}"
    elif stopped is not None:
        text = f"Undetermined: {stopped}"
    else:
        text = f"Undetermined: {_what_is_open(findings)}"
    best = best_remedy(remedies)
    if best is not None and best.before is not None and best.after is not None:
        text += f" {best.title} brought it from {best.before:.0%} to {best.after:.0%} right here (n = {best.n})."
    return text


def _what_is_open(findings: Sequence[Finding]) -> str:
    """What no stage could settle: the last open question, else what the calls showed, else the last lack of a field."""
    asked = [finding for finding in findings if finding.summary != NOT_ASKED]
    unsettled = [finding.summary for finding in asked if finding.status is Status.UNDETERMINED]
    measured = [finding.summary for finding in asked if finding.stage in PAID and finding.status is Status.PASS]
    lacking = [finding.summary for finding in asked if finding.status is Status.SKIPPED]
    for told in (unsettled, measured, lacking):
        if told:
            return told[-1]
    if not asked:
        return "no stage was run."
    names = ", ".join(finding.stage for finding in asked)
    return f"nothing was lost in {names}, and the other stages were not asked for."


def best_remedy(remedies: Sequence[Remedy]) -> Remedy | None:
    """The tried remedy with the largest gain whose interval is above zero, or None."""
    helped = [r for r in remedies if r.tried and r.gain is not None and r.low is not None and r.low > 0]
    return max(helped, key=lambda r: (r.gain or 0.0, r.low or 0.0), default=None)


def _broken_off(stopped: LimError | None) -> bool:
    """Whether the run ended as a failure or a cancel; a cap that was reached is an end like any other."""
    return stopped is not None and stopped.exit_code != 0


def cancelled(diagnosis: Diagnosis) -> bool:
    """Whether the user stopped it."""
    return isinstance(diagnosis.stopped, RunCancelled)


def _spared(name: str, earlier: Mapping[str, Finding], bench: Bench, only: Sequence[str] | None) -> Finding | None:
    if only is not None and name not in only:
        return Finding(name, Status.SKIPPED, NOT_ASKED)
    if name not in PAID or bench.all_stages:
        return None
    cause = first_cause(tuple(earlier.values()))
    if cause is not Cause.UNDETERMINED:
        return Finding(name, Status.SKIPPED, f"Not needed: {cause.value} was found before any call.")
    return None


def _ids(position: Finding | None, name: str) -> list[str] | None:
    """Chunk ids that the position test noted under this name in its evidence; None where it did not."""
    value: Json = position.evidence.get(name) if position is not None else None
    return [str(each) for each in value] if isinstance(value, list) else None
