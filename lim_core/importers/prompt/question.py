"""Finds the question in a prompt as sent."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lim_core.types import Message

_MARKER = re.compile(
    r"^[ \t#*>]*(?:the |user(?:'s)? |current |latest )?(?:question|query|user input|user message|q|frage|pregunta|request)"
    r"(?: is)?[ \t*]*(?:[:：][ \t*]*|\n)(?P<rest>[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_TAG = re.compile(r"<(question|query|user_query|user_question|user_input|user_message)>", re.IGNORECASE)
_STOP = re.compile(
    r"\n[ \t]*\n|\n[ \t#*]*(?:helpful |final |your |short )*(?:answer|antwort|response|reply|a)[ \t*]*[:：]|</", re.I
)
# "Now answer: ..." is an order; what follows its colon is the question.
_ORDER = re.compile(r"\A(?:\w{1,20} ){0,3}\w{1,20}:\s+(?=\S)")
MARKED = "taken from the place in the prompt that is marked as the question"
# A question is longer than nothing and shorter than a document.
_LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class Marker:
    """A question that is announced: its text, and where its line and the text itself begin."""

    question: str
    line_start: int
    start: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was guessed, and from what."""

    question: str
    why: str


def find_marker(text: str, start: int = 0) -> Marker | None:
    """The last `Question: ...` line or <question> tag from `start` on."""
    for match in _last(_TAG, text, start):
        close = text.find(f"</{match.group(1)}>", match.end(), match.end() + _LONGEST + 200)
        question = text[match.end() : close].strip() if close >= 0 else ""
        if question:
            return Marker(question, text.rfind("\n", 0, match.start()) + 1, match.end())
    for match in _last(_MARKER, text, start):
        begin = match.start("rest")
        rest = match.group("rest").strip()
        if not rest:
            after = re.compile(r"\s*").match(text, match.end())
            begin = after.end() if after else match.end()
        limit = min(len(text), begin + _LONGEST + 200)
        stop = _STOP.search(text, begin, limit)
        question = text[begin : stop.start() if stop else limit].strip().strip("*").strip()
        if question and len(question) <= _LONGEST:
            return Marker(question, match.start(), begin)
    return None


def _last(pattern: re.Pattern[str], text: str, start: int) -> Iterator[re.Match[str]]:
    """The last matches of a pattern, the very last first."""
    return reversed(deque(pattern.finditer(text, start), maxlen=50))


def find_question(messages: Sequence[Message], taken: int | None = None, end: int = 0, start: int = 0) -> Asked | None:
    """The question of a prompt; `taken` is the message that holds the chunks, between `start` and `end` in it."""
    outside = [
        (message.role, part)
        for index, message in enumerate(messages)
        for part in ((message.content[end:], message.content[:start]) if index == taken else (message.content,))
    ]
    for _, text in outside:
        marker = find_marker(text)
        if marker is not None:
            return Asked(marker.question, MARKED)
    others = [m for index, m in enumerate(messages) if index != taken and m.role == "user" and m.content.strip()]
    if others and len(others[-1].content) <= _LONGEST:
        return Asked(others[-1].content.strip(), "taken from the last user message")
    for _, text in outside:
        asked = [part.strip() for part in re.split(r"\n\s*\n|\n", text) if part.strip().endswith(("?", "？"))]
        if asked and len(asked[-1]) <= _LONGEST:
            return Asked(
                _ORDER.sub("", asked[-1]), "taken from the last line of the prompt that ends in a question mark"
            )
    return None
