"""The stage strip: a light with a word for each stage, and the evidence behind the one that is picked."""

from __future__ import annotations

import streamlit as st

from lim_core.drawing.reading import Reading, StageRow
from lim_core.drawing.rows import conflict_lines, evidence_rows
from lim_core.drawing.words import SIGNS, stage_words
from lim_core.types import Status
from lim_core.ui import views


def stage_strip(reading: Reading, key: str) -> None:
    """Draw the lights, and below them the evidence of the picked stage: first the one that lost the answer."""
    if not reading.stages:
        return
    rows = {row.stage: row for row in reading.stages}
    blamed = next((row.stage for row in reading.stages if row.cause == reading.cause), None)
    failed = next((row.stage for row in reading.stages if row.status is not Status.PASS), None)
    picked = st.segmented_control(
        "Stages, in order. Pick one to see its evidence.",
        list(rows),
        format_func=lambda stage: _light(rows[stage]),
        default=blamed or failed or reading.stages[0].stage,
        required=True,
        key=f"{key}-stage",
        wrap=True,
    )
    row = rows.get(picked or "")
    if row is not None:
        with st.container(border=True, gap="xsmall"):
            _evidence(row, reading)


def _light(row: StageRow) -> str:
    look = SIGNS[row.status]
    return f":{look.colour}[{look.icon}] {views.escape(stage_words(row.stage))} · {look.word}"


def _evidence(row: StageRow, reading: Reading) -> None:
    views.line(row.summary or "Nothing was said.")
    if row.advice:
        views.note(f"Next: {row.advice}")
    if row.missing_fields:
        views.note(f"Would say more with: {', '.join(row.missing_fields)}.")
    rows = evidence_rows(row, reading)
    if rows:
        views.table(rows, alt=f"Evidence of the stage {stage_words(row.stage)}")
    for conflict in conflict_lines(row.evidence):
        views.note(conflict)
