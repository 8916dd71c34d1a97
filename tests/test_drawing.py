"""Figures from a stored document: right places, right intervals, nothing hostile in a label."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lim_core.drawing.diagnosis import position_chart, remedy_chart
from lim_core.drawing.prompt_strip import MAX_BARS, strip_bars, strip_chart
from lim_core.drawing.reading import AssemblyRow, ChunkRow, Reading, read_document
from lim_core.drawing.rows import assembly_rows, evidence_rows, position_rows
from lim_core.types import Status

HOSTILE = "<img src=x onerror=alert(1)><b>bold</b> & $x$ ![i](http://evil.example/p.png)"


@pytest.fixture(scope="module")
def reading() -> Reading:
    return read_document(json.loads(Path(__file__, "..", "fixtures", "document.json").resolve().read_text("utf-8")))


def test_position_curve_stands_at_the_real_slots_with_wilson_intervals(reading: Reading) -> None:
    assert reading.position is not None
    chart = position_chart(reading.position, 16)
    curve = next(trace for trace in chart.figure.data if trace.name == "gold chunk at this slot")
    assert list(curve.x) == [1, 8, 16]  # counted from 1
    assert list(curve.y) == [87.5, 0.0, 75.0]
    assert [label.strip() for label in curve.text] == ["7/8", "0/8", "6/8"]
    # Wilson 95% for 7 of 8 is .5291 to .9776 (scipy.stats.binomtest(7, 8).proportion_ci(method="wilson")).
    assert curve.error_y.arrayminus[0] == pytest.approx(87.5 - 52.91, abs=0.01)
    assert curve.error_y.array[0] == pytest.approx(97.76 - 87.5, abs=0.01)
    assert {trace.name for trace in chart.figure.data} == {"oracle 4/4", "closed-book 0/4", "gold chunk at this slot"}


def test_alt_text_tells_the_same_figures(reading: Reading) -> None:
    assert reading.position is not None
    assert reading.assembly is not None
    assert "slot 8: 0 of 8" in position_chart(reading.position, 16).alt
    assert "oracle 4 of 4" in position_chart(reading.position, 16).alt
    assert "14 whole, 1 clipped, 1 missing" in strip_chart(reading.assembly).alt
    assert "from 0% to 88%" in remedy_chart(reading.remedies).alt


def test_points_without_a_score_are_left_out(reading: Reading) -> None:
    assert reading.position is not None
    unscored = replace(reading.position.points[1], n=0, correct=0, accuracy=None, low=None, high=None)
    position = replace(reading.position, points=(reading.position.points[0], unscored), oracle=None)
    curve = position_chart(position, 16).figure.data[-1]
    assert list(curve.x) == [1]


def test_strip_is_to_token_scale_with_missing_apart(reading: Reading) -> None:
    assert reading.assembly is not None
    bars = {bar.first_rank: bar for bar in strip_bars(reading.assembly)}
    assert bars[7].gold
    assert bars[7].length == 61  # tokens of c8
    clipped = bars[11]
    assert clipped.state == "clipped"
    assert clipped.length == pytest.approx(80 * 0.55)  # only the part that was kept takes room
    assert bars[14].state == "missing"
    assert bars[14].start == 0
    traces = {trace.name: trace for trace in strip_chart(reading.assembly).figure.data}
    assert traces["clipped"].marker.pattern.shape == "/"
    assert list(traces["missing"].y) == ["missing"]
    assert set(traces["whole"].y) == {"in the prompt"}


def test_a_strip_of_5000_chunks_is_merged_and_keeps_the_gold() -> None:
    rows = tuple(
        ChunkRow(f"c{rank}", rank, "whole", 1.0, False, rank * 50, rank / 5000, 50, rank == 2500)
        for rank in range(5000)
    )
    bars = strip_bars(AssemblyRow(rows, 250_000, None))
    assert len(bars) <= MAX_BARS + 10
    gold = [bar for bar in bars if bar.gold]
    assert [bar.first_rank for bar in gold] == [2500]
    assert sum(bar.length for bar in bars) == pytest.approx(250_000)


def test_hostile_names_are_escaped_in_every_label(reading: Reading) -> None:
    assert reading.assembly is not None
    chunks = (replace(reading.assembly.chunks[0], id=HOSTILE), *reading.assembly.chunks[1:])
    remedies = (replace(reading.remedies[0], title=HOSTILE), *reading.remedies[1:])
    for chart in (strip_chart(replace(reading.assembly, chunks=chunks)), remedy_chart(remedies)):
        drawn = chart.figure.to_json()
        assert "<img" not in drawn
        assert "<b>" not in drawn.replace("\\u003c", "<").replace("<br>", "")
        assert "&lt;img" in drawn.replace("\\u0026", "&")


def test_the_tables_beside_the_charts_hold_the_same_figures(reading: Reading) -> None:
    rows = position_rows(reading)
    assert [row["slot"] for row in rows] == [1, 8, 16, None, None]
    assert [row["right"] for row in rows] == [7, 0, 6, 4, 0]
    assert rows[0]["95% interval"] == "53 to 98%"
    assert [row["state"] for row in assembly_rows(reading)].count("whole") == 14


def test_retrieval_evidence_counts_ranks_from_one(reading: Reading) -> None:
    retrieval = reading.stage("retrieval")
    assert retrieval is not None
    assert evidence_rows(retrieval, reading)[0]["rank in chunks"] == 8


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"stages": None, "position": None, "remedies": None, "calls": None},
        {
            "stages": [{"stage": "x", "status": "newer-than-this"}],
            "position": {"points": [{}]},
            "outcomes": {"correct": None},
        },
        {"stages": "text", "position": [], "also": "text", "calls": {"made": "many"}, "warnings": [1, "w"]},
    ],
)
def test_a_document_that_lacks_parts_still_reads(document: dict[str, object]) -> None:
    reading = read_document(document)  # type: ignore[arg-type]
    assert reading.cause == "UNDETERMINED"
    assert reading.calls.made == 0
    assert all(row.status is Status.UNDETERMINED for row in reading.stages)
