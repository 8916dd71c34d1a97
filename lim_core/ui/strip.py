"""The stage strip: a light with a word for each stage, and the evidence behind the one that is picked."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from lim_core.drawing.reading import Reading, StageRow
from lim_core.drawing.words import SIGNS, arm_words, cause_words, count, interval, percent, stage_words
from lim_core.types import Json, Status
from lim_core.ui import views

# Keys of the evidence whose value needs a unit beside its name.
_LABELS: Mapping[str, str] = {
    "prompt_tokens": "prompt length, tokens",
    "low": "lower end of the count, tokens",
    "high": "upper end of the count, tokens",
    "token_source": "counted by",
    "reported_tokens": "prompt tokens the server reported",
    "context_window": "context window, tokens",
    "max_output_tokens": "output budget, tokens",
    "cut_end": "cut at",
    "lost_chunk_ids": "chunks lost",
    "system_survives": "system text survives",
    "question_survives": "question survives",
    "gold_ids": "gold chunks",
    "found_by": "found by",
}


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
    for conflict in _conflicts(row.evidence):
        views.note(conflict)


def evidence_rows(row: StageRow, reading: Reading) -> list[views.Row]:
    """A stage's evidence as table rows, in the words of the page."""
    if row.stage == "assembly" and reading.assembly is not None:
        return assembly_rows(reading)
    if row.stage == "position" and reading.position is not None:
        return position_rows(reading)
    if row.stage == "retrieval":
        return _retrieval_rows(row.evidence)
    return [
        {"what": _LABELS.get(name, name.replace("_", " ")), "value": _say(value)}
        for name, value in row.evidence.items()
        if not isinstance(value, Mapping)
    ]


def position_rows(reading: Reading) -> list[views.Row]:
    """The figures of the position curve, brackets included."""
    if reading.position is None:
        return []
    brackets = (reading.position.oracle, reading.position.closed_book)
    return [
        {
            "arm": arm_words(point.arm),
            "slot": None if point.index is None else point.index + 1,
            "token depth": percent(point.depth),
            "right": point.correct,
            "n": point.n,
            "distinct": point.distinct,
            "accuracy": percent(point.accuracy),
            "95% interval": interval(point.low, point.high),
        }
        for point in (*reading.position.points, *(bracket for bracket in brackets if bracket is not None))
    ]


def assembly_rows(reading: Reading) -> list[views.Row]:
    """The figures of the prompt strip."""
    if reading.assembly is None:
        return []
    return [
        {
            "rank": chunk.rank + 1,
            "chunk": chunk.id,
            "gold": "gold" if chunk.gold else "",
            "state": chunk.state,
            "kept": percent(chunk.share),
            "answer lost": "yes" if chunk.answer_lost else "",
            "token offset": chunk.token_offset,
            "depth": percent(chunk.depth),
            "tokens": chunk.tokens,
        }
        for chunk in reading.assembly.chunks
    ]


def _retrieval_rows(evidence: Mapping[str, Json]) -> list[views.Row]:
    """One row a gold chunk: its rank, counted from 1, in each list it is in."""
    lists = {name: evidence.get(f"{name}_ranks") for name in ("chunk", "candidate", "corpus")}
    ids: dict[str, None] = {}
    gold = evidence.get("gold_ids")
    if isinstance(gold, list | tuple):
        ids.update((str(item), None) for item in gold)
    for ranks in lists.values():
        if isinstance(ranks, Mapping):
            ids.update((str(item), None) for item in ranks)
    titles = {"chunk": "rank in chunks", "candidate": "rank in candidates", "corpus": "rank in corpus"}
    found = evidence.get("found_by")
    return [
        {
            "chunk": item,
            "found by": str(found).replace("_", " ") if found else "–",
            **{
                titles[name]: rank + 1
                if isinstance(ranks, Mapping) and isinstance(rank := ranks.get(item), int)
                else None
                for name, ranks in lists.items()
            },
        }
        for item in ids
    ]


def _conflicts(evidence: Mapping[str, Json]) -> list[str]:
    conflicts = evidence.get("conflicts")
    if not isinstance(conflicts, list | tuple):
        return []
    lines = []
    for conflict in conflicts:
        if isinstance(conflict, Mapping):
            ids, values = _say(conflict.get("ids")), _say(conflict.get("values"))
            later = conflict.get("later_id")
            lines.append(f"Conflict to look at: {ids} say {values}." + (f" {later} is dated later." if later else ""))
    return lines


def _say(value: Json) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_say(item)}" for name, item in value.items())
    return ", ".join(_say(item) for item in value) or "none"


def also_line(reading: Reading) -> str:
    """The causes found besides the one that is blamed."""
    return "Also seen: " + "; ".join(cause_words(cause).lower() for cause in reading.also) + "."
