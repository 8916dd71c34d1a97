"""Each case's own curve as small multiples in one figure: the swings that an average hides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from lim_core.drawing.figures import THEMED, Chart, Palette, lay_out, plain, say_instead
from lim_core.drawing.overlays import slot_shares
from lim_core.drawing.words import arm_words, clip_middle, percent
from lim_core.experiments.positions import PositionResult, Swing
from lim_core.types import Json

# In the order drawn; a case counts as right at a slot where more than half of its scored trials there are.
PATTERNS = (
    "right everywhere",
    "lost inside",
    "right at the start only",
    "right at the end only",
    "right inside only",
    "no pattern",
    "wrong everywhere",
    "not scored at every slot",
)
_RIGHT = 0.5
# Pixels of a row of panels and of a heading, and where a panel's curve lies within its row (shares from the top).
_ROW, _HEADING = 66, 34
_TITLE, _TOP, _BOTTOM = 0.14, 0.38, 0.9
_SIDE = 0.08
_TITLE_LENGTH = 13


def pattern(swing: Swing) -> str:
    """Which of PATTERNS a case's curve shows."""
    values = swing.values
    if not values or any(value is None for value in values):
        return "not scored at every slot"
    right = [value is not None and value > _RIGHT for value in values]
    if all(right):
        return "right everywhere"
    if not any(right):
        return "wrong everywhere"
    if right[0] and right[-1]:
        return "lost inside"
    if not right[0] and not right[-1]:
        return "right inside only"
    changes = sum(before != after for before, after in pairwise(right))
    if changes > 1:
        return "no pattern"
    return "right at the start only" if right[0] else "right at the end only"


def swings(result: PositionResult, columns: int = 5, colours: Palette = THEMED) -> Chart:
    """One small panel a case, wrong at its foot and right at its head, cases of one pattern together.

    A filled circle is right, a cross is wrong, an open circle in between is a case whose trials disagree.
    """
    import plotly.graph_objects as go

    shares = slot_shares(result.curves[0].points) if result.curves else ()
    trimmed = _shared_start([swing.case_id for swing in result.swings])
    figure = go.Figure()
    rails: list[float | None] = []
    rail_heights: list[float | None] = []
    x: list[float | None] = []
    y: list[float | None] = []
    symbols: list[str] = []
    tints: list[str] = []
    hover: list[list[str]] = []
    title_x, title_y, titles = [], [], []
    head_y, heads = [], []
    depth = 0.0
    for group in _groups(result.swings):
        amount = len(group.swings)
        heads.append(f"<b>{group.name}</b> · {amount} {'case' if amount == 1 else 'cases'}")
        head_y.append(-(depth + _HEADING * 0.55))
        depth += _HEADING
        for place, swing in enumerate(group.swings):
            row, column = divmod(place, columns)
            top = depth + row * _ROW
            title_x.append(column + _SIDE / 2)
            title_y.append(-(top + _TITLE * _ROW))
            titles.append(plain(clip_middle(swing.case_id[trimmed:], _TITLE_LENGTH)))
            left, width = column + _SIDE, 1 - 2 * _SIDE
            for level in (_TOP, _BOTTOM):
                rails += [left, left + width, None]
                rail_heights += [-(top + level * _ROW)] * 2 + [None]
            for share, value, point in zip(shares, swing.values, result.curves[0].points, strict=True):
                x.append(left + share * width)
                y.append(None if value is None else -(top + (_BOTTOM - (_BOTTOM - _TOP) * value) * _ROW))
                symbols.append("circle" if value == 1 else "x" if value == 0 else "circle-open")
                tints.append(colours.accent if value else colours.bad)
                hover.append([plain(swing.case_id), plain(arm_words(point.arm)), percent(value)])
            x.append(None)
            y.append(None)
            symbols.append("circle")
            tints.append(colours.accent)
            hover.append(["", "", ""])
        depth += _ROW * -(-amount // columns)
    figure.add_trace(
        go.Scatter(x=rails, y=rail_heights, mode="lines", line={"color": colours.pale, "width": 1}, hoverinfo="skip")
    )
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            mode="lines+markers",
            line={"color": colours.grey, "width": 1.2},
            marker={"color": tints, "symbol": symbols, "size": 6, "line": {"width": 0}},
            customdata=hover,
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}: %{customdata[2]} right<extra></extra>",
        )
    )
    for text_x, text_y, text, size in (([0.0] * len(heads), head_y, heads, 13), (title_x, title_y, titles, 10)):
        figure.add_trace(
            go.Scatter(
                x=text_x,
                y=text_y,
                mode="text",
                text=text,
                textposition="middle right",
                textfont={"size": size, "color": colours.ink},
                hoverinfo="skip",
                cliponaxis=False,
            )
        )
    lay_out(figure, round(depth) + 20 if result.swings else 120, top=4)
    figure.update_xaxes(visible=False, range=[0, columns], fixedrange=True)
    figure.update_yaxes(visible=False, range=[-max(depth, 1), 0], fixedrange=True)
    if not result.swings:
        say_instead(figure, "No case is scored yet.", colours)
    counted = ", ".join(f"{row['pattern']} {row['cases']}" for row in swing_counts(result))
    return Chart(figure, f"Each case's right answers by slot, cases of one pattern together: {counted or 'no case'}.")


def swing_counts(result: PositionResult) -> list[dict[str, Json]]:
    """How many cases show each pattern, those that none shows left out."""
    total = len(result.swings)
    return [
        {
            "pattern": group.name,
            "cases": len(group.swings),
            "of n": total,
            "which": ", ".join(swing.case_id for swing in group.swings),
        }
        for group in _groups(result.swings)
    ]


def swing_rows(result: PositionResult) -> list[dict[str, Json]]:
    """Each case's share right at each slot, in the order drawn."""
    slots = [arm_words(point.arm) for point in result.curves[0].points] if result.curves else []
    return [
        {
            "case": swing.case_id,
            "pattern": group.name,
            **{slot: percent(value) for slot, value in zip(slots, swing.values, strict=True)},
        }
        for group in _groups(result.swings)
        for swing in group.swings
    ]


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    swings: tuple[Swing, ...]


def _groups(found: Sequence[Swing]) -> list[_Group]:
    """Patterns that occur, in the order of PATTERNS; within one, cases of like curves stand together."""
    by_name = {name: [swing for swing in found if pattern(swing) == name] for name in PATTERNS}

    def likeness(swing: Swing) -> tuple[tuple[float, ...], str]:
        return tuple(-1.0 if value is None else -value for value in swing.values), swing.case_id

    return [_Group(name, tuple(sorted(group, key=likeness))) for name, group in by_name.items() if group]


def _shared_start(ids: Sequence[str]) -> int:
    """Length of what all ids begin with, up to a separator: titles have little room."""
    if len(ids) < 2:
        return 0
    first, last = min(ids), max(ids)
    start = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
    return max((start.rfind(mark) for mark in "-_/:. "), default=-1) + 1
