"""What every chart shares: colours by meaning, the figure with its words, axes of shares. No Streamlit.

Colours come in as a palette; for the app it holds the placeholders that the theme fills in the browser, so a switch between
light and dark recolours the chart at once. All labels from documents and models are escaped: Plotly renders some HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap as fold
from typing import TYPE_CHECKING

from lim_core.drawing.words import clip, interval, tally
from lim_core.experiments.cells import ArmFigures

if TYPE_CHECKING:
    import plotly.graph_objects as go

TICKS = [0, 25, 50, 75, 100]
TICK_WORDS = [f"{tick}%" for tick in TICKS]


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by their meaning."""

    accent: str
    good: str
    bad: str
    unsure: str
    grey: str
    pale: str
    ink: str
    on_accent: str


# Streamlit's browser side puts the theme's chartCategoricalColors, in order, in place of these.
THEMED = Palette("#000001", "#000002", "#000003", "#000004", "#000005", "#000006", "#000007", "#000008")


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure with the words that stand for it where it cannot be seen."""

    figure: go.Figure
    alt: str


def plain(text: str, length: int = 60) -> str:
    """Untrusted text as a Plotly label: on one line, clipped, with its HTML escaped."""
    return escape(clip(text, length), quote=False)


@dataclass(frozen=True, slots=True)
class Stroke:
    """How one of several series looks: colour, dash and symbol all differ, so that none stands alone."""

    colour: str
    dash: str
    symbol: str


def stroke(place: int, colours: Palette) -> Stroke:
    """The look of the series at `place`, counted from 0."""
    looks = (
        (colours.accent, "solid", "circle"),
        (colours.ink, "dash", "square"),
        (colours.unsure, "dashdot", "diamond"),
        (colours.accent, "longdash", "triangle-up"),
        (colours.ink, "dot", "cross"),
        (colours.unsure, "solid", "triangle-down"),
    )
    return Stroke(*looks[place % len(looks)])


@dataclass(frozen=True, slots=True)
class SideLabel:
    """A direct label right of the plot, at the height `y` that it belongs to."""

    y: float
    text: str
    colour: str


def lay_out(figure: go.Figure, height: int, *, right: int = 8, top: int = 12, legend: bool = False) -> None:
    """Margins in pixels, a legend above the plot if wanted, and no dragging: on a phone it would catch the scrolling."""
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": right, "t": 34 if legend else top, "b": 8},
        showlegend=legend,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 12}},
        hoverlabel={"align": "left"},
        dragmode=False,
    )


def share_axis(figure: go.Figure, title: str = "right answers") -> None:
    """The upright axis of shares, drawn in percent."""
    figure.update_yaxes(range=[-6, 106], tickvals=TICKS, ticktext=TICK_WORDS, title_text=title, zeroline=False)


def side_labels(figure: go.Figure, labels: Sequence[SideLabel], gap: float = 14) -> None:
    """Write labels right of the plot, moved apart to at least `gap` in units of the upright axis."""
    placed = -1e9
    for label in sorted(labels, key=lambda one: one.y):
        placed = max(label.y, placed + gap)
        figure.add_annotation(
            xref="paper",
            x=1,
            xanchor="left",
            xshift=6,
            y=placed,
            yanchor="middle",
            align="left",
            showarrow=False,
            text=label.text,
            font={"size": 11, "color": label.colour},
        )


def say_instead(figure: go.Figure, text: str, colours: Palette) -> None:
    """A sentence of our own in place of marks, for a figure that has nothing to draw."""
    figure.add_annotation(
        xref="paper",
        yref="paper",
        x=0.5,
        y=0.5,
        showarrow=False,
        text=wrap(text, 44),
        font={"size": 13, "color": colours.ink},
    )


def wrap(text: str, width: int) -> str:
    """Untrusted or long text over several lines of a figure, escaped."""
    return "<br>".join(escape(line, quote=False) for line in fold(text, width))


def fraction(figures: ArmFigures) -> str:
    """How often an arm was right, as charts label it."""
    return tally(figures.right, figures.trials, figures.n, figures.accuracy)


def arm_hover(figures: ArmFigures, unit: str) -> str:
    """An arm's accuracy with n and interval, for the hover text."""
    return f"{fraction(figures)} right of {figures.n} {unit}s, 95% interval {interval(figures.low, figures.high)}"


def whiskers(values: Sequence[float], lows: Sequence[float], highs: Sequence[float], colour: str) -> dict[str, object]:
    """Error bars from interval ends, in the units of the axis."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - value for value, high in zip(values, highs, strict=True)],
        "arrayminus": [value - low for value, low in zip(values, lows, strict=True)],
        "color": colour,
        "thickness": 1.2,
        "width": 4,
    }


def head_rows(figure: go.Figure, headings: Sequence[str], colours: Palette) -> None:
    """Rows one unit high from the top down, each with its heading at its top left."""
    for place, text in enumerate(headings):
        figure.add_annotation(
            xref="paper",
            x=0,
            xanchor="left",
            y=place + 0.04,
            yanchor="top",
            align="left",
            showarrow=False,
            text=text,
            font={"size": 12, "color": colours.ink},
        )
    figure.update_yaxes(range=[max(1, len(headings)), 0], visible=False)
