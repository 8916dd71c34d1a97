"""A result, read from the top: verdict, stages, position curve and prompt strip, remedies, trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from lim_core.drawing.diagnosis import position_chart, remedy_chart
from lim_core.drawing.prompt_strip import strip_chart
from lim_core.drawing.reading import Reading, RemedyRow, read_document
from lim_core.drawing.words import (
    OUTCOME_SHAPES,
    SHAPES,
    SIGNS,
    cause_words,
    count,
    duration,
    interval,
    percent,
    points,
)
from lim_core.types import Json, Status
from lim_core.ui import views
from lim_core.ui.confirm import offer_confirmation
from lim_core.ui.fixes import code_for
from lim_core.ui.strip import also_line, assembly_rows, position_rows, stage_strip

# The longest opening of a summary that reads as a title, in characters.
_TITLE = 80
_CAUSE_STATUS = {
    "NO_FAULT_FOUND": Status.PASS,
    "UNDETERMINED": Status.UNDETERMINED,
    "NOT_REPRODUCED": Status.UNDETERMINED,
    "CLOSED_BOOK_KNOWN": Status.UNDETERMINED,
}


def show_result(document: Mapping[str, Json], key: str) -> Reading:
    """Draw everything that the document holds; `key` keeps the widgets of two results apart."""
    reading = read_document(document)
    _verdict(reading)
    stage_strip(reading, key)
    offer_confirmation(document, key)
    _pictures(reading, key)
    _remedies(reading, key)
    return reading


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


def _verdict(reading: Reading) -> None:
    look = SIGNS[cause_status(reading.cause)]
    with st.container(border=True, gap="xsmall"):
        said = headline(reading)
        st.header(views.sign(look, views.escape(said.title)), anchor=False)
        views.line(said.text)
        views.note(f"{reading.cause} · rests on {rests_on(reading)}")
        if reading.also:
            views.note(also_line(reading))
        for warning in reading.warnings:
            views.note(f"Note: {warning}")


def _pictures(reading: Reading, key: str) -> None:
    if reading.position is None and reading.assembly is None:
        return
    left, right = st.columns(2, gap="medium")
    with left:
        st.subheader("Answers by slot of the evidence", anchor=False)
        _position(reading, key)
    with right:
        st.subheader("The prompt as sent", anchor=False)
        if reading.assembly is None:
            _absent(reading, "assembly")
        else:
            views.chart(strip_chart(reading.assembly), assembly_rows(reading), key=f"{key}-strip")
            views.note("Numbers are ranks in the retrieved list; widths are tokens.")


def _position(reading: Reading, key: str) -> None:
    position = reading.position
    if position is None or not position.points:
        _absent(reading, "position")
        return
    total = max(((point.index or 0) + 1 for point in position.points), default=1)
    views.chart(position_chart(position, total), position_rows(reading), key=f"{key}-curve")
    said = [SHAPES.get(position.shape, position.shape)]
    if position.gap is not None:
        said.append(f"gap (first + last) / 2 - middle = {points(position.gap)}")
    if position.reason:
        said.append(position.reason.rstrip("."))
    if position.more_calls is not None:
        said.append(f"about {count(position.more_calls)} more calls would likely settle it")
    views.note("; ".join(said) + ". Bars: Wilson 95%.")


def _absent(reading: Reading, stage: str) -> None:
    row = reading.stage(stage)
    views.note(row.summary if row is not None and row.summary else "This stage was not run.")
    if row is not None and row.missing_fields:
        views.note(f"It needs: {', '.join(row.missing_fields)}.")


def remedy_rows(reading: Reading) -> list[views.Row]:
    """The figures of the remedies."""
    return [
        {
            "remedy": row.title,
            "before": percent(row.before),
            "after": percent(row.after),
            "paired gain": points(row.gain),
            "95% interval": interval(row.low, row.high, "pts"),
            "n, blocks": row.n if row.tried else None,
            "tried": "tried on this case" if row.tried else "not tried",
            "note": row.note,
        }
        for row in reading.remedies
    ]


def _remedies(reading: Reading, key: str) -> None:
    if not reading.remedies:
        return
    st.subheader("Remedies", anchor=False)
    left, right = st.columns(2, gap="medium")
    with left:
        if any(row.tried for row in reading.remedies):
            views.chart(remedy_chart(reading.remedies), remedy_rows(reading), key=f"{key}-remedies")
        else:
            views.table(remedy_rows(reading), alt="Remedies, none of them tried")
    with right:
        for place, row in enumerate(reading.remedies):
            _remedy(row, f"{key}-remedy-{place}")


def _remedy(row: RemedyRow, key: str) -> None:
    if row.tried:
        gain = f"gain {points(row.gain)} ({interval(row.low, row.high, 'pts')})"
        said = f"{percent(row.before)} → {percent(row.after)}, {gain}, n = {row.n}"
    else:
        said = "not tried"
    with st.expander(f"Use it: **{views.escape(row.title)}** · {views.escape(said)}", icon=":material/code:", key=key):
        if row.note:
            views.note(row.note)
        fixes = code_for(row.name)
        if not fixes:
            views.note("lim has no code for this remedy.")
            return
        if not row.tried:
            views.note("Not tried on this case: measure it before you ship it.")
        for tab, fix in zip(st.tabs([fix.title for fix in fixes], key=f"{key}-code"), fixes, strict=True):
            tab.code(fix.code, language="python", height=340)


def outcome_line(outcomes: Mapping[str, int]) -> str:
    """All trials by outcome, each with its shape."""
    return " · ".join(f"{OUTCOME_SHAPES.get(name, name)} {count(amount)}" for name, amount in outcomes.items())
