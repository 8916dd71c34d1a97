"""What was found of the retrieved chunks in a prompt as it was sent."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """What became of a chunk on the way into the prompt. The values are part of the JSON contract."""

    WHOLE = "whole"
    CLIPPED = "clipped"
    MISSING = "missing"
    DOUBLED = "doubled"


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of the prompt: 0-based message and half-open character range in its original text."""

    message: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Found:
    """One chunk in the prompt. `share` is the share of its characters kept, `kept` their text, `region` None if missing.

    `copies` lists every stretch where it stands. `lost_head` and `lost_tail` say which end of a clipped chunk is gone.
    """

    chunk_id: str
    state: State
    share: float
    kept: str = ""
    region: Region | None = None
    copies: tuple[Region, ...] = ()
    lost_head: bool = False
    lost_tail: bool = False


@dataclass(frozen=True, slots=True)
class Located:
    """All chunks, in the order given, and what the prompt's edges show.

    `begins_inside` and `ends_inside` are the ids of chunks inside which a message begins or ends. `seam` names the two
    chunks, possibly one, between which text was cut out of the middle: the first breaks off where the second sets in.
    `question` is None if the question is not in the prompt; `ends_in_question` says that the last message breaks off in it.
    """

    found: tuple[Found, ...]
    begins_inside: str | None = None
    ends_inside: str | None = None
    seam: tuple[str, str] | None = None
    question: Region | None = None
    ends_in_question: bool = False
