"""Position curves: accuracy or context use by slot, several runs laid over one another, beside published ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lim_core.drawing.figures import (
    THEMED,
    Chart,
    Palette,
    SideLabel,
    arm_hover,
    fraction,
    lay_out,
    plain,
    say_instead,
    share_axis,
    side_labels,
    stroke,
    whiskers,
    wrap,
)
from lim_core.drawing.overlays import Overlay, aside, slot_axis, slot_shares
from lim_core.drawing.references import Reference
from lim_core.drawing.words import arm_words, clip, interval, percent
from lim_core.experiments.cells import ArmFigures
from lim_core.experiments.positions import CLOSED, ORACLE
from lim_core.types import Json

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Below this distance between oracle and closed-book the context-use ratio divides noise by noise.
LEAST_SPAN = 0.05


def used_share(accuracy: float, oracle: float | None, closed_book: float | None) -> float | None:
    """(accuracy - closed-book) / (oracle - closed-book), None where the two are no more than LEAST_SPAN apart."""
    if oracle is None or closed_book is None or _too_close(oracle, closed_book):
        return None
    return (accuracy - closed_book) / (oracle - closed_book)


def why_no_context_use(overlay: Overlay) -> str:
    """Why an overlay has no context-use ratio; empty where it has."""
    oracle, closed = _accuracy(overlay.result.oracle), _accuracy(overlay.result.closed_book)
    if oracle is None or closed is None:
        return "oracle and closed-book were not both measured"
    if _too_close(oracle, closed):
        return f"oracle ({percent(oracle)}) is not more than 5 points above closed-book ({percent(closed)})"
    return ""


def position_curves(
    overlays: Sequence[Overlay],
    references: Sequence[Reference] = (),
    context_use: bool = False,
    colours: Palette = THEMED,
) -> Chart:
    """Accuracy by slot with 95% intervals, or the share of the context's use with the brackets taken as exact.

    Oracle and closed-book lines are those of the first overlay; the table has all. References are faint, dotted, and named as
    published.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    drawn = [one for one in overlays if not context_use or not why_no_context_use(one)]
    several = len(overlays) > 1
    labels: list[SideLabel] = []
    if context_use and drawn:
        labels = [SideLabel(100, "as oracle", colours.good), SideLabel(0, "as closed-<br>book", colours.grey)]
        for label, dash in zip(labels, ("dash", "dot"), strict=True):
            figure.add_hline(y=label.y, line={"dash": dash, "color": label.colour, "width": 1.5})
    elif overlays and not context_use:
        labels = _add_brackets(figure, overlays[0], several, colours)
    extremes = [0.0, 100.0]
    for place, reference in enumerate(references):
        extremes += _add_reference(figure, place, reference, context_use, colours)
    for place, overlay in enumerate(overlays):
        if overlay in drawn:
            extremes += _add_curve(figure, place, overlay, len(overlays), context_use, colours)
    published = 54 + 20 * len(references) if references else 0
    lay_out(
        figure,
        320 + 20 * len(overlays) * several + published,
        right=74 if labels else 8,
        legend=several or bool(references),
    )
    if references:
        _legend_of_references(figure, references)
    share_axis(figure, "share of context use" if context_use else "right answers")
    if context_use:
        low, high = max(-200.0, min(extremes)), min(300.0, max(extremes))
        figure.update_yaxes(range=[low - 6, high + 6], tickmode="auto", nticks=6, ticktext=None, ticksuffix="%")
    side_labels(figure, labels)
    slot_axis(figure, overlays)
    reasons = [f"{one.label}: {why_no_context_use(one)}" for one in overlays if one not in drawn]
    if not any(point.n for one in drawn for point in one.points):
        say_instead(figure, f"Not drawn. {'; '.join(reasons)}." if reasons else "Nothing is scored yet.", colours)
    elif reasons:
        _note_below(figure, f"Not drawn: {'; '.join(reasons)}.")
    return Chart(figure, _alt(overlays, references, context_use, reasons))


def curve_rows(overlays: Sequence[Overlay], references: Sequence[Reference] = ()) -> list[dict[str, Json]]:
    """The figures of the curves: slots and brackets of every overlay, then the published points, named as such."""
    rows: list[dict[str, Json]] = []
    for overlay in overlays:
        result = overlay.result
        oracle, closed = _accuracy(result.oracle), _accuracy(result.closed_book)
        shares: list[float | None] = list(slot_shares(overlay.points))
        brackets = [bracket for bracket in (result.oracle, result.closed_book) if bracket is not None]
        for point, share in zip((*overlay.points, *brackets), [*shares, *(None for _ in brackets)], strict=True):
            used = None
            if share is not None and point.accuracy is not None:
                used = used_share(point.accuracy, oracle, closed)
            rows.append(
                {
                    "curve": overlay.label,
                    "arm": arm_words(point.arm),
                    "place": percent(share),
                    "token depth": percent(point.depth),
                    "right": point.right,
                    "trials": point.trials,
                    "n": point.n,
                    "unit": result.unit,
                    "accuracy": percent(point.accuracy),
                    "95% interval": interval(point.low, point.high),
                    "context use": percent(used),
                    "source": "measured",
                }
            )
    for reference in references:
        for published in reference.points:
            rows.append(
                {
                    "curve": reference.label,
                    "arm": f"document {published.index + 1}",
                    "place": percent(reference.share(published)),
                    "token depth": percent(None),
                    "right": None,
                    "trials": None,
                    "n": reference.questions,
                    "unit": "question",
                    "accuracy": f"{published.accuracy:.1%}",
                    "95% interval": "not published",
                    "context use": percent(used_share(published.accuracy, reference.oracle, reference.closed_book)),
                    "source": f"published, not measured here: {reference.source}",
                }
            )
    return rows


def _too_close(oracle: float, closed_book: float) -> bool:
    # Rounded, for 0.55 - 0.5 is a little more than 0.05 in binary.
    return round(oracle - closed_book, 9) <= LEAST_SPAN


def _accuracy(bracket: ArmFigures | None) -> float | None:
    return None if bracket is None else bracket.accuracy


def _add_brackets(figure: go.Figure, overlay: Overlay, several: bool, colours: Palette) -> list[SideLabel]:
    """The oracle and closed-book lines of one overlay, and their labels; in its own colour where there are several."""
    labels = []
    for bracket, name, dash, colour in (
        (overlay.result.oracle, ORACLE, "dash", colours.good),
        (overlay.result.closed_book, CLOSED, "dot", colours.grey),
    ):
        if bracket is None or bracket.accuracy is None:
            continue
        shown = stroke(0, colours).colour if several else colour
        figure.add_hline(y=bracket.accuracy * 100, line={"dash": dash, "color": shown, "width": 1.5})
        words = name.replace("closed-book", "closed-<br>book")
        labels.append(SideLabel(bracket.accuracy * 100, f"{words}<br>{fraction(bracket)}", shown))
    return labels


def _add_curve(
    figure: go.Figure, place: int, overlay: Overlay, total: int, context: bool, colours: Palette
) -> list[float]:
    """Draw one overlay; returns the ends of its intervals, in percent."""
    import plotly.graph_objects as go

    oracle, closed = _accuracy(overlay.result.oracle), _accuracy(overlay.result.closed_book)

    def height(value: float) -> float:
        used = used_share(value, oracle, closed) if context else value
        return (used or 0.0) * 100

    shown = [
        (share, point)
        for share, point in zip(slot_shares(overlay.points), overlay.points, strict=True)
        if point.accuracy is not None
    ]
    look = stroke(place, colours)
    values = [height(point.accuracy or 0) for _, point in shown]
    lows = [height(point.low or 0) for _, point in shown]
    highs = [height(point.high or 0) for _, point in shown]
    figure.add_trace(
        go.Scatter(
            x=[share + aside(place, total) for share, _ in shown],
            y=values,
            mode="lines+markers",
            name=plain(overlay.label, 40),
            line={"color": look.colour, "dash": look.dash, "width": 2},
            marker={"color": look.colour, "symbol": look.symbol, "size": 9},
            error_y=whiskers(values, lows, highs, look.colour),
            customdata=[
                [plain(overlay.label), plain(arm_words(point.arm)), arm_hover(point, overlay.result.unit), used]
                for (_, point), used in zip(
                    shown, [f"<br>context use {value:.0f}%" if context else "" for value in values], strict=True
                )
            ],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}: %{customdata[2]}%{customdata[3]}<extra></extra>",
        )
    )
    return [*lows, *highs]


def _add_reference(figure: go.Figure, place: int, reference: Reference, context: bool, colours: Palette) -> list[float]:
    """Draw one published curve; returns its values in percent."""
    import plotly.graph_objects as go

    heights = [
        used_share(point.accuracy, reference.oracle, reference.closed_book) if context else point.accuracy
        for point in reference.points
    ]
    shown = [(point, value * 100) for point, value in zip(reference.points, heights, strict=True) if value is not None]
    symbols = ("circle-open", "square-open", "diamond-open", "triangle-up-open", "triangle-down-open", "cross-open")
    figure.add_trace(
        go.Scatter(
            x=[reference.share(point) for point, _ in shown],
            y=[value for _, value in shown],
            mode="lines+markers",
            name=plain(reference.label),
            legend="legend2",
            opacity=0.7,
            line={"color": colours.grey, "dash": "dot", "width": 1},
            marker={"color": colours.grey, "symbol": symbols[place % len(symbols)], "size": 6},
            customdata=[
                [plain(reference.label), point.index + 1, reference.questions, plain(reference.source, 90)]
                for point, _ in shown
            ],
            hovertemplate=(
                "%{customdata[0]}: document %{customdata[1]}, %{y:.1f}%, n = %{customdata[2]}<br>"
                "published, not measured here: %{customdata[3]}<extra></extra>"
            ),
        )
    )
    return [value for _, value in shown]


def _note_below(figure: go.Figure, text: str) -> None:
    """A small note under the title of the axis of slots."""
    lines = wrap(text, 56)
    title = f"{figure.layout.xaxis.title.text}<br><span style='font-size:11px'>{lines}</span>"
    figure.update_layout(xaxis_title_text=title, height=figure.layout.height + 16 * (lines.count("<br>") + 1))


def _legend_of_references(figure: go.Figure, references: Sequence[Reference]) -> None:
    sources = "; ".join(dict.fromkeys(reference.source for reference in references))
    figure.update_layout(
        showlegend=True,
        legend2={
            "orientation": "h",
            "x": 0,
            "xref": "container",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "font": {"size": 11},
            "title": {
                "text": wrap(f"Published, not measured here: {sources}", 56),
                "side": "top",
                "font": {"size": 11},
            },
        },
    )


def _alt(overlays: Sequence[Overlay], references: Sequence[Reference], context: bool, reasons: Sequence[str]) -> str:
    """The chart's figures in words."""
    said = []
    for overlay in overlays:
        oracle, closed = _accuracy(overlay.result.oracle), _accuracy(overlay.result.closed_book)
        slots = []
        for point in overlay.points:
            used = used_share(point.accuracy, oracle, closed) if context and point.accuracy is not None else None
            slots.append(f"{arm_words(point.arm)} {fraction(point)}" + (f" ({percent(used)})" if context else ""))
        brackets = [
            f"{bracket.arm} {fraction(bracket)}"
            for bracket in (overlay.result.oracle, overlay.result.closed_book)
            if bracket is not None
        ]
        said.append(f"{clip(overlay.label, 60)}: {', '.join([*slots, *brackets]) or 'no slot'}")
    what = "Share of the context's use" if context else "Right answers"
    words = [f"{what} by slot of the gold chunk. {'; '.join(said) or 'No curve'}."]
    if reasons:
        words.append(f"No context use: {'; '.join(reasons)}.")
    if references:
        names = "; ".join(reference.label for reference in references)
        words.append(f"Published, not measured here: {names} ({references[0].source}).")
    return " ".join(words)
