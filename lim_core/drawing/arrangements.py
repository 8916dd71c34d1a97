"""Orderings side by side: paired gains over the first of them, and accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lim_core.drawing.figures import (
    THEMED,
    TICK_WORDS,
    TICKS,
    Chart,
    Palette,
    fraction,
    head_rows,
    lay_out,
    plain,
    say_instead,
    whiskers,
)
from lim_core.drawing.words import arm_words, clip, interval, percent, points
from lim_core.experiments.arrangements import OrderingResult
from lim_core.experiments.cells import ArmFigures
from lim_core.types import Estimate, Json

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Pixels of a row, and where a dot lies in it.
_ROW, _DOT = 62, 0.78


def gains(result: OrderingResult, colours: Palette = THEMED) -> Chart:
    """Paired gain over the first arm in points, with 95% interval and n; a star marks the winner.

    The distraction test stands below as a diamond: without the best-ranked distractors against without the worst-ranked.
    """
    import plotly.graph_objects as go

    rows = _gain_lines(result)
    ends = [abs(end) for row in rows for end in (row.value, row.low, row.high) if end is not None]
    reach = max(0.1, *ends) if ends else 0.1
    figure = _dots(rows, colours)
    # The zero line stops short of the words above each dot.
    figure.add_trace(
        go.Scatter(
            x=[0, 0, None] * len(rows),
            y=[end for place in range(len(rows)) for end in (place + 0.58, place + 0.98, None)],
            mode="lines",
            name="zero",
            line={"color": colours.grey, "width": 1},
            hoverinfo="skip",
        )
    )
    figure.update_xaxes(
        range=[-108 * reach, 108 * reach], title_text=f"gain over {plain(_baseline(result), 40)}, points", nticks=7
    )
    if not rows:
        say_instead(figure, "No second order has finished yet.", colours)
    said = "; ".join(f"{clip(row.name, 60)}: {row.said}" for row in rows)
    end = f"Winner: {arm_words(result.winner)}" if result.winner else f"No winner: {result.reason or 'none is shown'}"
    return Chart(figure, f"Paired gain over {_baseline(result)}. {said or 'None'}. {end}.")


def gain_rows(result: OrderingResult) -> list[dict[str, Json]]:
    """Paired gains with n, interval and p, the distraction test as the last row."""
    rows: list[dict[str, Json]] = [
        {
            "arm": arm_words(row.arm),
            "against": _baseline(result),
            "paired gain": points(row.gain.value if row.gain else None),
            "95% interval": interval(row.gain.low, row.gain.high, "pts") if row.gain else interval(None, None),
            "n": row.gain.n if row.gain else 0,
            "unit": result.unit,
            "p": row.p,
            "p after Holm": row.p_holm,
            "winner": "winner" if row.arm == result.winner else "",
        }
        for row in result.arms[1:]
    ]
    found = result.distraction
    if found is not None:
        gain = found.gain
        rows.append(
            {
                "arm": f"without the {found.taken} best-ranked distractors",
                "against": f"without the {found.taken} worst-ranked",
                "paired gain": points(gain.value if gain else None),
                "95% interval": interval(gain.low, gain.high, "pts") if gain else interval(None, None),
                "n": gain.n if gain else 0,
                "unit": result.unit,
                "p": None,
                "p after Holm": None,
                "winner": "",
            }
        )
    return rows


def accuracies(result: OrderingResult, colours: Palette = THEMED) -> Chart:
    """Right answers of each arm with 95% interval and n, the distraction test's arms as diamonds."""
    rows = [
        _Line(
            arm_words(arm.arm),
            f"{fraction(arm)} right, 95% interval {interval(arm.low, arm.high)}",
            arm.accuracy,
            arm.low,
            arm.high,
            "diamond" if arm.arm.startswith("distraction:") else "star" if arm.arm == result.winner else "circle",
        )
        for arm in _all_arms(result)
    ]
    figure = _dots(rows, colours)
    figure.update_xaxes(range=[-4, 104], tickvals=TICKS, ticktext=TICK_WORDS, title_text="right answers")
    if not rows:
        say_instead(figure, "No order has finished yet.", colours)
    said = "; ".join(f"{clip(row.name, 60)}: {row.said}" for row in rows)
    return Chart(figure, f"Right answers by ordering. {said or 'None'}.")


def accuracy_rows(result: OrderingResult) -> list[dict[str, Json]]:
    """Each arm's accuracy, outcomes and cost."""
    return [
        {
            "arm": arm_words(arm.arm),
            "right": arm.right,
            "trials": arm.trials,
            "n": arm.n,
            "unit": result.unit,
            "accuracy": percent(arm.accuracy),
            "95% interval": interval(arm.low, arm.high),
            "wrong": arm.outcomes.wrong,
            "abstained": arm.outcomes.abstained,
            "empty": arm.outcomes.empty,
            "error": arm.outcomes.error,
            "median prompt tokens": arm.prompt_tokens,
            "median seconds": arm.seconds,
        }
        for arm in _all_arms(result)
    ]


@dataclass(frozen=True, slots=True)
class _Line:
    """One row of a dot chart: its name, its figures in words and as shares, its symbol."""

    name: str
    said: str
    value: float | None
    low: float | None
    high: float | None
    symbol: str


def _gain_lines(result: OrderingResult) -> list[_Line]:
    lines = []
    for row in result.arms[1:]:
        winner = row.arm == result.winner
        said = _gain_words(row.gain) + ("" if row.p_holm is None else f", p = {row.p_holm:.2g} after Holm")
        lines.append(_gain_line(arm_words(row.arm) + (": winner" if winner else ""), said, row.gain, winner))
    found = result.distraction
    if found is not None:
        name = f"without {found.taken} best-ranked distractors, not {found.taken} worst"
        lines.append(_gain_line(name, _gain_words(found.gain), found.gain, False, "diamond"))
    return lines


def _gain_line(name: str, said: str, gain: Estimate | None, winner: bool, symbol: str = "circle") -> _Line:
    mark = "star" if winner else symbol
    if gain is None:
        return _Line(name, said, None, None, None, mark)
    return _Line(name, said, gain.value, gain.low, gain.high, mark)


def _gain_words(gain: Estimate | None) -> str:
    if gain is None:
        return "no pair is scored in both"
    return f"{points(gain.value)} [{interval(gain.low, gain.high, 'pts')}], n = {gain.n}"


def _baseline(result: OrderingResult) -> str:
    return arm_words(result.arms[0].arm) if result.arms else "the order as retrieved"


def _all_arms(result: OrderingResult) -> list[ArmFigures]:
    arms = [row.figures for row in result.arms]
    if result.distraction is not None:
        arms += [result.distraction.without_hard, result.distraction.without_easy]
    return arms


def _dots(rows: Sequence[_Line], colours: Palette) -> go.Figure:
    """Dots with intervals, each below its name and its figures in words: at 380 pixels no name fits to the left."""
    import plotly.graph_objects as go

    shown = [(place, row) for place, row in enumerate(rows) if row.value is not None]
    values = [(row.value or 0) * 100 for _, row in shown]
    tints = [colours.good if row.symbol == "star" else colours.accent for _, row in shown]
    figure = go.Figure()
    for place in range(len(rows)):
        figure.add_hline(y=place + _DOT, line={"color": colours.pale, "width": 1}, layer="below")
    figure.add_trace(
        go.Scatter(
            x=values,
            y=[place + _DOT for place, _ in shown],
            mode="markers",
            marker={
                "symbol": [row.symbol for _, row in shown],
                "size": [14 if row.symbol == "star" else 10 for _, row in shown],
                "color": tints,
                "opacity": 1,
            },
            error_x=whiskers(
                values,
                [(row.low or 0) * 100 for _, row in shown],
                [(row.high or 0) * 100 for _, row in shown],
                colours.accent,
            ),
            customdata=[[plain(row.name), plain(row.said, 90)] for _, row in shown],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
        )
    )
    head_rows(figure, [f"{plain(row.name, 52)}<br>{plain(row.said, 90)}" for row in rows], colours)
    lay_out(figure, 60 + _ROW * max(1, len(rows)), top=4)
    figure.update_xaxes(zeroline=False, showgrid=False)
    return figure
