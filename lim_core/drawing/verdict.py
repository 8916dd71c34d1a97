"""The verdict of a diagnosis in words: its title, its sentence, what it rests on. No Streamlit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lim_core.drawing.reading import PositionRow, Reading
from lim_core.drawing.words import OUTCOME_SHAPES, SHAPES, cause_words, count, duration, percent, points
from lim_core.types import Status

# The longest opening of a summary that reads as a title, in characters.
_TITLE = 80
_CAUSE_STATUS = {
    "NO_FAULT_FOUND": Status.PASS,
    "UNDETERMINED": Status.UNDETERMINED,
    "NOT_REPRODUCED": Status.UNDETERMINED,
    "CLOSED_BOOK_KNOWN": Status.UNDETERMINED,
}


def cause_status(cause: str) -> Status:
    """The status whose sign a cause is shown with."""
    return _CAUSE_STATUS.get(cause, Status.FAIL)


@dataclass(frozen=True, slots=True)
class Headline:
    """The verdict for the eye: the cause in a few words, then the sentence."""

    title: str
    text: str


def headline(reading: Reading) -> Headline:
    """The summary's own opening words as the title; where it has none, the cause in plain words."""
    opening, colon, rest = reading.summary.partition(": ")
    if colon and len(opening) <= _TITLE and rest.strip():
        return Headline(opening, rest[0].upper() + rest[1:])
    return Headline(cause_words(reading.cause), reading.summary)


def rests_on(reading: Reading) -> str:
    """What the verdict rests on, in one line of figures with their units."""
    calls, position = reading.calls, reading.position
    parts = []
    if position is not None:
        if position.blocks:
            parts.append(f"{position.blocks} blocks")
        if position.e_value is not None:
            parts.append(f"e = {position.e_value:,.1f}")
    parts.append(f"{count(calls.made)} calls" if calls.made else "no calls")
    if calls.prompt_tokens:
        cached = f" ({percent(calls.cached_prompt_tokens / calls.prompt_tokens)} from the server's cache)"
        parts.append(f"{count(calls.prompt_tokens)} prompt tokens{cached if calls.cached_prompt_tokens else ''}")
    if reading.tested_model and calls.made:
        same = {True: "the case's own model", False: "not the case's model", None: "the case's model is unknown"}
        parts.append(f"{reading.tested_model}, {same[reading.same_model]}")
    parts.append(duration(calls.seconds))
    return " · ".join(parts)


def shape_line(position: PositionRow) -> str:
    """What the position curve shows: its shape, its gap, why it ended, how many calls would likely settle it."""
    said = [SHAPES.get(position.shape, position.shape)]
    if position.gap is not None:
        said.append(f"gap (first + last) / 2 - middle = {points(position.gap)}")
    if position.reason:
        said.append(position.reason.rstrip("."))
    if position.more_calls is not None:
        said.append(f"about {count(position.more_calls)} more calls would likely settle it")
    return "; ".join(said) + ". Bars: Wilson 95%."


def also_line(reading: Reading) -> str:
    """The causes found besides the one that is blamed."""
    return "Also seen: " + "; ".join(cause_words(cause).lower() for cause in reading.also) + "."


def outcome_line(outcomes: Mapping[str, int]) -> str:
    """All trials by outcome, each with its shape."""
    return " · ".join(f"{OUTCOME_SHAPES.get(name, name)} {count(amount)}" for name, amount in outcomes.items())
