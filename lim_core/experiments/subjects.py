"""The cases of a suite made ready for an experiment, and why some cannot take part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lim_core import arms
from lim_core.errors import InputError
from lim_core.evidence import gold_of
from lim_core.experiments.cells import Facts
from lim_core.judges import check_answers
from lim_core.prompts import DEFAULT_LAYOUT, Layout
from lim_core.types import Case, Chunk, Frame

PLAIN = "plain"
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
        gold = {chunk.id for chunk in self.parts.gold}
        ranks = tuple(index for index, chunk in enumerate(self.case.chunks) if chunk.id in gold)
        return Facts(self.case.id, len(self.case.chunks), ranks, self.case.tags)


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
        lack = _lack(case, retrieved)
        if lack:
            left_out.append(LeftOut(case.id, lack))
            continue
        framing = arms.frame_of(case) if own else arms.Framing(DEFAULT_LAYOUT)
        ids = gold_of(case).ids
        known = {chunk.id: chunk for part in (case.corpus, case.candidates, case.chunks) for chunk in part or ()}
        evidence = tuple(known[one] for one in ids)
        ready.append(Subject(case, arms.split(case.chunks, ids), framing.frame, evidence, framing.note))
    if not ready:
        lacks = f"{left_out[0].case_id}: {left_out[0].reason}" if left_out else "the suite is empty"
        raise InputError(f"No case of the suite can take part ({lacks}).")
    return Subjects(tuple(ready), tuple(left_out))


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


def _lack(case: Case, wanted: bool) -> str:
    if not case.answers:
        return "it has no answers"
    if not case.chunks:
        return "it has no chunks"
    try:
        check_answers(case)
    except InputError as error:
        return str(error).rstrip(".")
    gold = gold_of(case)
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
