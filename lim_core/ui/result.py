"""A result, read from the top: verdict, stages, position curve and prompt strip, remedies, trials."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from lim_core.drawing.diagnosis import position_chart, remedy_chart
from lim_core.drawing.fixes import code_for
from lim_core.drawing.prompt_strip import strip_chart
from lim_core.drawing.reading import Reading, RemedyRow, read_document
from lim_core.drawing.rows import assembly_rows, position_rows, remedy_rows
from lim_core.drawing.verdict import also_line, cause_status, headline, rests_on, shape_line
from lim_core.drawing.words import SIGNS, interval, percent, points
from lim_core.types import Json
from lim_core.ui import views
from lim_core.ui.confirm import offer_confirmation
from lim_core.ui.strip import stage_strip


def show_result(document: Mapping[str, Json], key: str) -> Reading:
    """Draw everything that the document holds; `key` keeps the widgets of two results apart."""
    reading = read_document(document)
    _verdict(reading)
    stage_strip(reading, key)
    offer_confirmation(document, key)
    _pictures(reading, key)
    _remedies(reading, key)
    return reading


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
    views.note(shape_line(position))


def _absent(reading: Reading, stage: str) -> None:
    row = reading.stage(stage)
    views.note(row.summary if row is not None and row.summary else "This stage was not run.")
    if row is not None and row.missing_fields:
        views.note(f"It needs: {', '.join(row.missing_fields)}.")


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
