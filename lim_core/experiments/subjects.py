"""The cases of a suite made ready for an experiment, and why some cannot take part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lim_core import arms
from lim_core.errors import InputError
from lim_core.evidence import Gold, gold_of
from lim_core.experiments.cells import Facts
from lim_core.judges import check_answers
from lim_core.prompts import DEFAULT_LAYOUT, Layout
from lim_core.types import Case, Chunk, Frame

PLAIN = "plain"
SINGLE_BLOCKS = 8
# Template options, each of which can be an arm of its own or be joined with "+".
TEMPLATE_OPTIONS = {
    "question-twice": "question before and after the documents",
    "every-passage": "told to read every passage",
    "citations": "asked to cite",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """A case that can take part: its chunks parted into gold and distractors, the template its arms are laid out in."""

    case: Case
    parts: arms.Split
    frame: Frame
    # The evidence itself, also where it was not retrieved.
    evidence: tuple[Chunk, ...]
    note: str = ""

    @property
    def facts(self) -> Facts:
        """What the analysis needs to know of it."""
        return _facts(self.case, [chunk.id for chunk in self.parts.gold])


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A case that cannot take part, and what it lacks."""

    case_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Subjects:
    """The cases that take part, in file order, and those that do not."""

    ready: tuple[Subject, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True)
class Roll:
    """What the analysis needs to know of the cases that take part, in file order, and those that do not."""

    facts: tuple[Facts, ...]
    left_out: tuple[LeftOut, ...]


def roll(cases: Sequence[Case], *, retrieved: bool = True) -> Roll:
    """The facts of every case that takes part: `subjects` without making any ready to be sent, to read a run back."""
    checks = [_check(case, retrieved) for case in cases]
    return Roll(
        tuple(_facts(check.case, check.gold_ids) for check in checks if not check.lack),
        tuple(LeftOut(check.case.id, check.lack) for check in checks if check.lack),
    )


def subjects(cases: Sequence[Case], templates: Sequence[str] = (PLAIN,), *, retrieved: bool = True) -> Subjects:
    """Part every case; where template options are compared, all arms use lim's own template, so that only options differ.

    With `retrieved`, a case whose gold is not among its chunks cannot take part.

    Raises:
        InputError: no case can take part; the message says what the first one lacks.
    """
    own = tuple(templates) == (PLAIN,)
    ready: list[Subject] = []
    left_out: list[LeftOut] = []
    for case in cases:
        check = _check(case, retrieved)
        if check.lack:
            left_out.append(LeftOut(case.id, check.lack))
            continue
        framing = arms.frame_of(case) if own else arms.Framing(DEFAULT_LAYOUT)
        ids = check.gold_ids
        known = {chunk.id: chunk for part in (case.corpus, case.candidates, case.chunks) for chunk in part or ()}
        evidence = tuple(known[one] for one in ids)
        ready.append(Subject(case, arms.split(case.chunks, ids), framing.frame, evidence, framing.note))
    if not ready:
        lacks = f"{left_out[0].case_id}: {left_out[0].reason}" if left_out else "the suite is empty"
        raise InputError(f"No case of the suite can take part ({lacks}).")
    return Subjects(tuple(ready), tuple(left_out))


def blocks_for(suite: Sequence[Subject | Facts], asked: int) -> int:
    """Distractor orders a case: as many as asked for; else one in a suite, where cases are the repeats, eight for one case."""
    return asked or (SINGLE_BLOCKS if len(suite) == 1 else 1)


def layout(template: str) -> Layout:
    """lim's template with the options named in `template`, joined with "+"; "plain" has none.

    Raises:
        InputError: an option that does not exist.
    """
    made = DEFAULT_LAYOUT
    for name in template.split("+"):
        if name == "question-twice":
            made = replace(made, question_position="before_and_after")
        elif name == "every-passage":
            made = replace(made, use_every_passage=True)
        elif name == "citations":
            made = replace(made, citations=True)
        elif name != PLAIN:
            known = ", ".join((PLAIN, *TEMPLATE_OPTIONS))
            raise InputError(f"There is no template option {name!r}: choose from {known}, joined with +.")
    return made


def frame_for(subject: Subject, template: str) -> Frame:
    """The frame of one arm: the subject's own for "plain", else lim's template with the options."""
    return subject.frame if template == PLAIN else layout(template)


def arm_name(name: str, template: str) -> str:
    """The arm's name with its template options, as stored."""
    return name if template == PLAIN else f"{name}+{template}"


@dataclass(frozen=True, slots=True)
class _Checked:
    """A case with the ids of its gold, or with what it lacks to take part."""

    case: Case
    gold_ids: tuple[str, ...] = ()
    lack: str = ""


def _check(case: Case, wanted: bool) -> _Checked:
    if not case.answers:
        return _Checked(case, lack="it has no answers")
    if not case.chunks:
        return _Checked(case, lack="it has no chunks")
    try:
        check_answers(case)
    except InputError as error:
        return _Checked(case, lack=str(error).rstrip("."))
    gold = gold_of(case)
    return _Checked(case, gold.ids, _lack(case, gold, wanted))


def _facts(case: Case, gold_ids: Sequence[str]) -> Facts:
    ranks = tuple(index for index, chunk in enumerate(case.chunks) if chunk.id in gold_ids)
    return Facts(case.id, len(case.chunks), ranks, case.tags)


def _lack(case: Case, gold: Gold, wanted: bool) -> str:
    retrieved = {chunk.id for chunk in case.chunks}
    if gold.ambiguous:
        return "several chunks hold an answer and none is marked as gold"
    if not gold.ids:
        return "no chunk holds an answer"
    if wanted and not retrieved.issuperset(gold.ids):
        return "its gold chunk is not among the retrieved ones"
    if gold.spoilers:
        return f"the chunk {gold.spoilers[0]} holds an answer too and is not marked as gold or harmless"
    return ""
