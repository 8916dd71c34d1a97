"""What position charts share: the curves laid over one another, where their slots lie, and the axis of slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from lim_core.arms import NAMED_SLOTS
from lim_core.drawing.figures import fraction, plain
from lim_core.drawing.words import arm_words
from lim_core.experiments.cells import ArmFigures
from lim_core.experiments.positions import Curve, PositionResult
from lim_core.experiments.subjects import PLAIN

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Up to this many slots, each has its own name and count below the axis.
NAMED_TICKS = 7
_MOST_TICKS = 8


@dataclass(frozen=True, slots=True)
class Overlay:
    """One curve to draw: the template's curve of a result, under a label such as the run's model."""

    label: str
    result: PositionResult
    template: str = PLAIN

    @property
    def curve(self) -> Curve | None:
        """The curve of the template, None where the result has none."""
        return next((curve for curve in self.result.curves if curve.template == self.template), None)

    @property
    def points(self) -> tuple[ArmFigures, ...]:
        """Its slots from first to last, unscored ones too."""
        return () if self.curve is None else self.curve.points


def overlays_of(label: str, result: PositionResult) -> tuple[Overlay, ...]:
    """One overlay a template of the result, the template named where there are several."""
    several = len(result.curves) > 1
    return tuple(
        Overlay(f"{label}, {curve.template}" if several else label, result, curve.template) for curve in result.curves
    )


def slot_shares(points: Sequence[ArmFigures]) -> tuple[float, ...]:
    """Where each slot lies, as a share of the way from first slot to last.

    Named slots lie where they were asked for, numbered ones by their mean index; where the last slot was not measured, by
    token depth.
    """
    names = [point.arm.removeprefix("position:").split("+", 1)[0] for point in points]
    ends = [point.index for name, point in zip(names, points, strict=True) if name == "last"]
    if not ends and {int(name) for name in names if name.isdecimal()} >= set(range(len(points))):
        ends = [point.index for point in points]
    last = max((end for end in ends if end is not None), default=0.0)
    return tuple(
        NAMED_SLOTS[name]
        if name in NAMED_SLOTS
        else min(1.0, point.index / last)
        if last and point.index is not None
        else point.depth or 0.0
        for name, point in zip(names, points, strict=True)
    )


def aside(place: int, total: int) -> float:
    """A small step sideways, so that the intervals of several overlays stand side by side."""
    return (place - (total - 1) / 2) * 0.014


def slot_axis(figure: go.Figure, overlays: Sequence[Overlay], *, counts: bool = True) -> None:
    """The axis of places. A single curve's slots are named below it, with their counts where they are few enough."""
    ticks = list(NAMED_SLOTS.values())
    words = ["first", "25%", "middle", "75%", "last"]
    title = "place of the gold chunk"
    if len(overlays) == 1 and overlays[0].points:
        points = overlays[0].points
        names = [_slot_words(point) for point in points]
        every = ceil(len(points) / _MOST_TICKS) if len(points) > NAMED_TICKS else 1
        ticks, words = list(slot_shares(points))[::every], names[::every]
        if counts and every == 1:
            words = [f"{name}<br>{fraction(point)}" for name, point in zip(names, points, strict=True)]
            title = f"place of the gold chunk, right of n {overlays[0].result.unit}s"
    ns = [point.n for overlay in overlays for point in overlay.points if point.n]
    if counts and ns and "right of n" not in title:
        amount = f"{min(ns)}" if min(ns) == max(ns) else f"{min(ns)} to {max(ns)}"
        title = f"place of the gold chunk, n = {amount} at each"
    figure.update_xaxes(
        range=[-0.07, 1.07],
        tickvals=ticks,
        ticktext=words,
        tickangle=0,
        title_text=title,
        showgrid=False,
        zeroline=False,
    )


def _slot_words(point: ArmFigures) -> str:
    """A slot's name without its template; numbered ones by number alone."""
    return plain(arm_words(point.arm.split("+", 1)[0]).removeprefix("slot "), 12)
