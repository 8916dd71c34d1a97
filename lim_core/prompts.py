"""Lays chunks out in a prompt and says where each one stands in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lim_core.types import Chunk, Message, Prompt, Span

# Part of every release identity and cache key by way of the text; the number is for people.
TEMPLATE_VERSION = "lim-qa-1"

_TASK = "Answer the question with a short answer taken only from the documents below. Some documents may be irrelevant."
_EVERY_PASSAGE = " Read every document before you answer; the answer may stand in any of them."
_CITE = " After the answer, name the document that holds it in square brackets, like [2]."


@dataclass(frozen=True, slots=True)
class Layout:
    """Template options, each of which can be an arm of its own.

    `before_and_after` repeats the question ahead of the documents (query-aware contextualization, Liu et al. 2024,
    section 4.2).
    """

    question_position: Literal["after", "before_and_after"] = "after"
    use_every_passage: bool = False
    citations: bool = False

    @property
    def name(self) -> str:
        """Stable name for stores and links, `lim-qa-1` plus the options that differ from the default."""
        parts = [TEMPLATE_VERSION]
        if self.question_position != "after":
            parts.append("question-twice")
        if self.use_every_passage:
            parts.append("every-passage")
        if self.citations:
            parts.append("citations")
        return "+".join(parts)

    def lay_out(self, question: str, chunks: Sequence[Chunk]) -> Prompt:
        """These chunks, in this order, in lim's own template with these options; see the function of this name."""
        return lay_out(question, chunks, self)


DEFAULT_LAYOUT = Layout()


def lay_out(question: str, chunks: Sequence[Chunk], layout: Layout = DEFAULT_LAYOUT) -> Prompt:
    """One user message: task, documents in the given order, question.

    Documents are numbered from 1 in presentation order, so the number never reveals the retrieval rank (the layout of
    Liu et al. 2024, section 2.1). The span of a chunk covers its text alone, not its number or title.
    """
    head = _TASK + (_EVERY_PASSAGE if layout.use_every_passage else "") + (_CITE if layout.citations else "")
    parts = [head, "\n\n"]
    length = len(head) + 2
    if layout.question_position == "before_and_after":
        early = f"Question: {question}\n\n"
        parts.append(early)
        length += len(early)
    spans: list[Span] = []
    for number, chunk in enumerate(chunks, 1):
        label = f"Document [{number}](Title: {chunk.title}) " if chunk.title else f"Document [{number}] "
        start = length + len(label)
        spans.append(Span(chunk.id, 0, start, start + len(chunk.text)))
        parts += (label, chunk.text, "\n")
        length = start + len(chunk.text) + 1
    parts.append(f"\n{_ask(question)}" if chunks else _ask(question))
    return Prompt((Message("user", "".join(parts)),), tuple(spans), layout.name)


def closed_book(question: str) -> Prompt:
    """The question alone, without task sentence or documents (closed-book setting of Liu et al. 2024)."""
    return Prompt((Message("user", _ask(question)),), (), f"{TEMPLATE_VERSION}+closed-book")


def as_sent(messages: Sequence[Message]) -> Prompt:
    """The prompt that production sent, unchanged."""
    return Prompt(tuple(messages), (), "as-sent")


def _ask(question: str) -> str:
    return f"Question: {question}\nAnswer:"
