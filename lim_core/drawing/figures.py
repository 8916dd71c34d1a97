"""What every chart shares: colours by meaning, the figure with its words, axes of shares. No Streamlit.

Colours come in as a palette; for the app it holds the placeholders that the theme fills in the browser, so a switch between
light and dark recolours the chart at once. All labels from documents and models are escaped: Plotly renders some HTML.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from lim_core.drawing.words import clip

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
