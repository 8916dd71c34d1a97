"""Changes that a user makes to a case: each gives a new case, the old one stays for undo."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from lim_core.cases.case_files import NEEDS_QUESTION
from lim_core.errors import InputError
from lim_core.types import Case, Message, ScoreDirection, Usage


class Tick(StrEnum):
    """What a chunk can be ticked as; the values are the fields of a case that hold the ids."""

    GOLD = "gold_ids"
    HARMLESS = "harmless_ids"
    FORBIDDEN = "forbidden_ids"


def asked(case: Case, question: str) -> Case:
    """The case with another question; the mark of a missing one goes with the first letter of it."""
    question = question.strip()
    others = tuple(tag for tag in case.tags if tag != NEEDS_QUESTION)
    return replace(case, question=question, tags=others if question else (*others, NEEDS_QUESTION))


def answered(case: Case, lines: str) -> Case:
    """The case with these right answers, one a line."""
    return replace(case, answers=tuple(dict.fromkeys(line.strip() for line in lines.splitlines() if line.strip())))


def directed(case: Case, direction: ScoreDirection | None) -> Case:
    """The case with its scores read this way."""
    return replace(case, score_direction=direction)


def ticked(case: Case, tick: Tick, chunk_id: str, on: bool) -> Case:
    """The case with one chunk ticked or not; ids are kept in the order of the chunks. Gold and harmless exclude each other."""
    ids = {field: set(getattr(case, field)) for field in Tick}
    if on:
        ids[tick].add(chunk_id)
        if tick in (Tick.GOLD, Tick.HARMLESS):
            ids[Tick.HARMLESS if tick is Tick.GOLD else Tick.GOLD].discard(chunk_id)
    else:
        ids[tick].discard(chunk_id)
    return replace(
        case,
        gold_ids=_in_order(case, ids[Tick.GOLD], case.gold_ids),
        harmless_ids=_in_order(case, ids[Tick.HARMLESS], case.harmless_ids),
        forbidden_ids=_in_order(case, ids[Tick.FORBIDDEN], case.forbidden_ids),
    )


def marked(case: Case, gold: tuple[str, ...]) -> Case:
    """The case with these chunks ticked as gold, beside those that are already."""
    for one in gold:
        case = ticked(case, Tick.GOLD, one, True)
    return case


def moved(case: Case, start: int, end: int) -> Case:
    """The case with the chunk at rank `start` moved to rank `end`, both from 0; the others keep their order.

    Raises:
        InputError: there is no such rank.
    """
    total = len(case.chunks)
    if not (0 <= start < total and 0 <= end < total):
        raise InputError(f"The case has {total} chunks: give ranks from 1 to {total}.")
    chunks = list(case.chunks)
    chunks.insert(end, chunks.pop(start))
    return replace(case, chunks=tuple(chunks))


def prompted(case: Case, text: str) -> Case:
    """The case with its prompt as sent: one user message, or none where the text is blank."""
    return replace(case, prompt=(Message("user", text),) if text.strip() else None)


def told(case: Case, answer: str) -> Case:
    """The case with the answer that the bot gave; blank is unknown."""
    return replace(case, answer=answer.strip() or None)


def sized(case: Case, window: int | None, budget: int | None, reported: int | None) -> Case:
    """The case with its context window, its output budget and the prompt tokens that the server reported; None is unknown."""
    usage = replace(case.usage or Usage(), prompt_tokens=reported)
    return replace(case, context_window=window, max_output_tokens=budget, usage=None if usage == Usage() else usage)


def ended(case: Case, reason: str | None, model: str) -> Case:
    """The case with its finish reason and the model that gave the answer; blank is unknown."""
    return replace(case, finish_reason=reason, model=model.strip() or None)


def _in_order(case: Case, ids: set[str], before: tuple[str, ...]) -> tuple[str, ...]:
    """Retrieved ones by rank, then those of the other lists as they stood."""
    retrieved = tuple(chunk.id for chunk in case.chunks if chunk.id in ids)
    rest = [one for one in before if one in ids]
    rest += [chunk.id for part in (case.candidates or (), case.corpus or ()) for chunk in part if chunk.id in ids]
    return tuple(dict.fromkeys((*retrieved, *rest)))
