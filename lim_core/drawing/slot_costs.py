"""What each slot of a position curve costs: seconds and prompt tokens."""

from __future__ import annotations

from collections.abc import Sequence

from lim_core.drawing.figures import THEMED, Chart, Palette, lay_out, plain, say_instead, stroke
from lim_core.drawing.overlays import NAMED_TICKS, Overlay, aside, slot_axis, slot_shares
from lim_core.drawing.words import arm_words, duration
from lim_core.types import Json


def position_cost(overlays: Sequence[Overlay], colours: Palette = THEMED) -> Chart:
    """What each slot costs: median seconds of the calls really sent above, median prompt tokens below, both from zero."""
    import plotly.graph_objects as go

    figure = go.Figure()
    several = len(overlays) > 1
    said: list[str] = []
    for place, overlay in enumerate(overlays):
        look = stroke(place, colours)
        for axis, values, words in (
            ("y", [point.seconds for point in overlay.points], duration),
            ("y2", [point.prompt_tokens for point in overlay.points], _tokens),
        ):
            found = [
                (share, value, point)
                for share, value, point in zip(slot_shares(overlay.points), values, overlay.points, strict=True)
                if value is not None
            ]
            if not found:
                continue
            said.append(
                f"{overlay.label}, {'seconds' if axis == 'y' else 'prompt tokens'}: "
                + ", ".join(f"{arm_words(point.arm)} {words(value)}" for _, value, point in found)
            )
            figure.add_trace(
                go.Scatter(
                    x=[share + aside(place, len(overlays)) for share, _, _ in found],
                    y=[value for _, value, _ in found],
                    yaxis=axis,
                    mode="lines+markers" if several or len(found) > NAMED_TICKS else "lines+markers+text",
                    name=plain(overlay.label, 40),
                    legendgroup=str(place),
                    showlegend=axis == "y2",
                    line={"color": look.colour, "dash": look.dash, "width": 1.5},
                    marker={"color": look.colour, "symbol": look.symbol, "size": 7},
                    text=[words(value) for _, value, _ in found],
                    textposition="bottom center",
                    textfont={"size": 11, "color": colours.ink},
                    cliponaxis=False,
                    customdata=[
                        [plain(overlay.label), plain(arm_words(point.arm)), words(value)] for _, value, point in found
                    ],
                    hovertemplate="%{customdata[0]}<br>%{customdata[1]}: %{customdata[2]}<extra></extra>",
                )
            )
    lay_out(figure, 250 + 20 * len(overlays) * several, legend=several)
    figure.update_layout(
        yaxis={"domain": [0.57, 1], "rangemode": "tozero", "nticks": 4, "title": {"text": "seconds"}},
        yaxis2={"domain": [0, 0.43], "rangemode": "tozero", "nticks": 4, "title": {"text": "tokens"}, "anchor": "x"},
    )
    slot_axis(figure, overlays, counts=False)
    figure.update_xaxes(anchor="y2")
    if not said:
        say_instead(figure, "No call was timed and no tokens were reported.", colours)
    return Chart(figure, f"Median seconds and prompt tokens by slot of the gold chunk. {'; '.join(said) or 'None'}.")


def cost_rows(overlays: Sequence[Overlay]) -> list[dict[str, Json]]:
    """Medians by slot; seconds are those of calls that were really sent."""
    return [
        {
            "curve": overlay.label,
            "arm": arm_words(point.arm),
            "median seconds": point.seconds,
            "median prompt tokens": point.prompt_tokens,
            "median completion tokens": point.completion_tokens,
            "n": point.n,
        }
        for overlay in overlays
        for point in overlay.points
    ]


def _tokens(value: float) -> str:
    return f"{value:,.0f}"
