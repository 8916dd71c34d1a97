"""The import report: what was understood of a file, what was guessed, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lim_core.importers.drafts.draft import Skipped
from lim_core.importers.prompt.proposal import Proposal
from lim_core.types import Case, Json

_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Disabled:
    """A stage that cannot run on a case, and the fields that would enable it."""

    stage: str
    needs: str


@dataclass(frozen=True, slots=True)
class Guess:
    """Something the file does not say outright: the field, the value taken ("" for none), and from what."""

    field: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class CaseReport:
    """What was understood of one case. `line` counts from 1, None where the file has no lines to count.

    `same_text` are groups of ids that share a text; `renamed` are pairs of old and new id of a chunk whose id stood twice.
    """

    case_id: str
    line: int | None
    place: str
    found: tuple[str, ...]
    missing: tuple[str, ...]
    disabled: tuple[Disabled, ...]
    guesses: tuple[Guess, ...]
    same_text: tuple[tuple[str, ...], ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    proposal: Proposal | None = None


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was understood of a file. `sure` is in [0, 1]; `others` are further shapes it could be, the likeliest first."""

    name: str
    format: str
    title: str
    sure: float
    why: str
    others: tuple[tuple[str, float], ...]
    kind: str
    packing: str
    encoding: str
    read: int
    skipped: tuple[Skipped, ...]
    cases: tuple[CaseReport, ...]
    notes: tuple[str, ...] = ()


def disabled_stages(case: Case) -> tuple[Disabled, ...]:
    """Stages that the absent fields of a case disable."""
    found: list[Disabled] = []
    cut_short = case.finish_reason in ("length", "max_tokens")
    reported = case.usage.prompt_tokens if case.usage is not None else None
    if case.prompt is None and case.context_window is None and not reported and not cut_short:
        found.append(Disabled("truncation", "prompt, context_window or usage"))
    if not case.answers and not case.gold_ids:
        found.append(Disabled("retrieval", "answers or gold_ids"))
    if case.prompt is None:
        found.append(Disabled("assembly", "prompt"))
    if not case.answers or len(case.chunks) < 4:
        wanted = [] if case.answers else ["answers"]
        wanted += [] if len(case.chunks) >= 4 else ["at least 4 chunks"]
        found.append(Disabled("position", " and ".join(wanted)))
    return tuple(found)


def report_text(report: ImportReport) -> str:
    """The report for people, plain text, one fact a line; long lists are cut with their length said."""
    lines = [
        f"{_plain(report.name)}: {report.title}, {_sureness(report.sure)} ({report.why})",
        f"read {report.read} {'case' if report.read == 1 else 'cases'}, skipped {len(report.skipped)}"
        + "".join(f", {word}" for word in (report.packing, report.kind, report.encoding) if word),
    ]
    if report.others:
        lines.append("could also be: " + ", ".join(f"{name} ({sure:.0%})" for name, sure in report.others))
    lines += [f"note: {_plain(note)}" for note in report.notes]
    lines += _cut([_skip_line(skip) for skip in report.skipped], "skipped")
    for case in report.cases[:_SHOWN]:
        lines += _case_lines(case)
    if len(report.cases) > _SHOWN:
        lines.append(f"... and {len(report.cases) - _SHOWN} more cases")
    return "\n".join(lines)


def report_json(report: ImportReport) -> dict[str, Json]:
    """The report as one JSON object, nothing cut."""
    return {
        "name": report.name,
        "format": report.format,
        "title": report.title,
        "sure": round(report.sure, 3),
        "why": report.why,
        "others": [{"format": name, "sure": round(sure, 3)} for name, sure in report.others],
        "kind": report.kind,
        "packing": report.packing or None,
        "encoding": report.encoding,
        "read": report.read,
        "skipped": [{"line": s.line, "place": s.place or None, "reason": s.reason} for s in report.skipped],
        "notes": list(report.notes),
        "cases": [_case_json(case) for case in report.cases],
    }


def _case_json(case: CaseReport) -> Mapping[str, Json]:
    proposal = case.proposal
    return {
        "case_id": case.case_id,
        "line": case.line,
        "place": case.place or None,
        "found": list(case.found),
        "missing": list(case.missing),
        "disabled": [{"stage": one.stage, "needs": one.needs} for one in case.disabled],
        "guesses": [{"field": g.field, "value": g.value or None, "why": g.why} for g in case.guesses],
        "same_text": [list(group) for group in case.same_text],
        "renamed": [{"from": old, "to": new} for old, new in case.renamed],
        "notes": list(case.notes),
        "proposal": None
        if proposal is None
        else {
            "how": proposal.how,
            "sure": round(proposal.sure, 3),
            "question": proposal.question,
            "question_why": proposal.question_why or None,
            "chunks": [{"id": c.id, "text": c.text, "title": c.title} for c in proposal.chunks],
        },
    }


def _case_lines(case: CaseReport) -> list[str]:
    where = f" (line {case.line})" if case.line is not None else f" ({case.place})" if case.place else ""
    lines = [f"case {_plain(case.case_id)}{where}: has {', '.join(case.found) or 'nothing'}"]
    if case.missing:
        lines.append(f"  lacks {', '.join(case.missing)}")
    lines += [f"  {one.stage} will be skipped: add {one.needs}" for one in case.disabled]
    lines += [f"  guessed {g.field}: {_plain(g.value) or 'unknown'} ({_plain(g.why)})" for g in case.guesses]
    lines += _cut([f"same text: {', '.join(map(_plain, group))}" for group in case.same_text], "groups", "  ")
    lines += _cut([f"id {_plain(a)} stands twice, now {_plain(b)}" for a, b in case.renamed], "renamed ids", "  ")
    lines += _cut([f"note: {_plain(note)}" for note in case.notes], "notes", "  ")
    if case.proposal is not None:
        count = len(case.proposal.chunks)
        lines.append(f"  {count} chunks are proposed from the prompt ({case.proposal.how}): confirm them")
        if case.proposal.question:
            lines.append(f"  question proposed: {_plain(case.proposal.question)} ({case.proposal.question_why})")
    return lines


def _skip_line(skip: Skipped) -> str:
    where = f"line {skip.line}" if skip.line is not None else skip.place
    return f"skipped {_plain(where)}: {_plain(skip.reason)}" if where else f"skipped: {_plain(skip.reason)}"


def _cut(lines: Sequence[str], what: str, indent: str = "") -> list[str]:
    shown = [indent + line for line in lines[:_SHOWN]]
    return [*shown, f"{indent}... and {len(lines) - _SHOWN} more {what}"] if len(lines) > _SHOWN else shown


def _sureness(sure: float) -> str:
    return "recognised" if sure >= 0.85 else "probably" if sure >= 0.6 else "a guess"


def _plain(text: str) -> str:
    """One line of printable text, cut at 200 characters; files are hostile."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[:400]).split())
    return line if len(line) <= 200 else f"{line[:200]}..."
