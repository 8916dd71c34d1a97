"""Chunks and question back out of a prompt as sent: a proposal that the user confirms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lim_core.cases import NEEDS_CHUNKS, NEEDS_QUESTION
from lim_core.importers.prompt.prompt_chunks import find_pieces
from lim_core.importers.prompt.question import find_question
from lim_core.types import Case, Chunk, Message


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a prompt seems to hold: its chunks in the order of the prompt, and its question where one was found.

    `how` names the custom by which the chunks are laid out, `question_why` what the question was taken from; `sure` is
    in [0, 1] and is about the chunks.
    """

    chunks: tuple[Chunk, ...]
    how: str
    sure: float
    question: str | None
    question_why: str


def propose(messages: Sequence[Message]) -> Proposal | None:
    """Look for chunks in every message and for the question around them; None where no message seems to hold chunks."""
    found = [(index, pieces) for index, m in enumerate(messages) if (pieces := find_pieces(m.content)) is not None]
    if not found:
        return None
    # On a tie the later message counts: the earlier ones are instructions and turns before.
    taken, best = max(found, key=lambda pair: (pair[1].sure, pair[0]))
    asked = find_question(messages, taken, best.pieces[-1].end, best.pieces[0].start)
    chunks: list[Chunk] = []
    used: set[str] = set()
    for number, piece in enumerate(best.pieces, 1):
        key = piece.id if piece.id and piece.id not in used else f"c{number}"
        while key in used:
            key += "-2"
        used.add(key)
        chunks.append(Chunk(key, piece.text, piece.title))
    return Proposal(
        tuple(chunks),
        best.how,
        best.sure,
        asked.question if asked else None,
        asked.why if asked else "",
    )


def accept(case: Case, proposal: Proposal, question: str | None = None) -> Case:
    """The case with the proposal's chunks, confirmed by the user; `question` overrules the one proposed."""
    asked = question or case.question or proposal.question or ""
    gone = {NEEDS_CHUNKS, NEEDS_QUESTION} if asked else {NEEDS_CHUNKS}
    return replace(
        case,
        chunks=proposal.chunks,
        question=asked,
        tags=tuple(tag for tag in case.tags if tag not in gone),
    )
