"""Length by position: a square for each prompt length and depth, shaded by how often the reader was right."""

from __future__ import annotations

from lim_core.drawing.figures import THEMED, Chart, Palette, arm_hover, fraction, lay_out, say_instead
from lim_core.drawing.words import count, interval, percent
from lim_core.experiments.grid import GridResult
from lim_core.types import Json

# Pixels of a row of squares, and the least size of a square that has room for its count.
_ROW, _LOW_ROW, _MANY_DEPTHS = 46, 22, 11
_LEAST_FOR_TEXT = 30
# Width of the plot on a phone, which the squares must fit into.
_NARROW = 290


def length_grid(result: GridResult, colours: Palette = THEMED) -> Chart:
    """Squares by length (columns) and depth (rows): the fuller, the more often right; k/n inside, n and interval on hover.

    A dotted line stands behind the operating range. Each square carries its arm's name as customdata[0], so that a click finds
    its trials. They are markers because Streamlit reports no selection of a heatmap.
    """
    import plotly.graph_objects as go

    lengths = sorted({cell.length for cell in result.cells})
    depths = sorted({cell.depth for cell in result.cells})
    column = {length: place for place, length in enumerate(lengths)}
    row = _ROW if len(depths) <= _MANY_DEPTHS else _LOW_ROW
    size = max(8, min(row - 6, _NARROW // max(1, len(lengths)) - 6))
    x = [column[cell.length] for cell in result.cells]
    y = [cell.depth * 100 for cell in result.cells]
    figure = go.Figure()
    # The frame below keeps a square with no right answer in sight.
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            mode="markers",
            marker={"symbol": "square-open", "size": size, "color": colours.grey, "line": {"width": 1}},
            hoverinfo="skip",
        )
    )
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            mode="markers+text",
            name="cells",
            marker={
                "symbol": "square",
                "size": size,
                "color": colours.accent,
                # No stronger than this, so that the ink of the text stays legible in light and dark.
                "opacity": [0.6 * (cell.figures.accuracy or 0) for cell in result.cells],
            },
            text=[_inside(fraction(cell.figures)) if size >= _LEAST_FOR_TEXT else "" for cell in result.cells],
            textposition="middle center",
            textfont={"size": 11, "color": colours.ink},
            customdata=[
                [
                    cell.figures.arm,
                    f"{cell.length:,}",
                    percent(cell.depth),
                    arm_hover(cell.figures, result.unit),
                ]
                for cell in result.cells
            ],
            hovertemplate=("%{customdata[1]} tokens, %{customdata[2]} of the way<br>%{customdata[3]}<extra></extra>"),
        )
    )
    kept = percent(result.threshold)
    note, tint = f"no length keeps its worst depth at {kept}", colours.ink
    if result.operating_range in column:
        note, tint = f"dotted: operating range, worst depth {kept} or more", colours.good
        figure.add_vline(
            x=column[result.operating_range or 0] + 0.5, line={"color": colours.good, "width": 1.5, "dash": "dot"}
        )
    if result.cells:
        figure.add_annotation(
            xref="paper",
            yref="paper",
            x=0,
            y=1,
            yanchor="bottom",
            xanchor="left",
            showarrow=False,
            text=note,
            font={"size": 12, "color": tint},
        )
    lay_out(figure, 92 + row * max(1, len(depths)), top=30)
    labelled = depths[:: max(1, -(-len(depths) // _MANY_DEPTHS))]
    half = 50 / max(1, len(depths) - 1)
    figure.update_xaxes(
        tickvals=list(range(len(lengths))),
        ticktext=[f"{length:,}" for length in lengths],
        range=[-0.55, max(1, len(lengths)) - 0.45],
        title_text="prompt length, tokens",
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(
        range=[100 + half, -half],
        tickvals=[depth * 100 for depth in labelled],
        ticktext=[percent(depth) for depth in labelled],
        title_text="place of the gold chunk",
        showgrid=False,
        zeroline=False,
    )
    if not result.cells:
        figure.update_layout(height=160)
        say_instead(figure, "No length has finished yet.", colours)
    said = "; ".join(
        f"{cell.length:,} tokens, {percent(cell.depth)} of the way: {fraction(cell.figures)}" for cell in result.cells
    )
    end = "none" if result.operating_range is None else f"up to {result.operating_range:,} tokens"
    return Chart(
        figure,
        f"Right answers by prompt length and place of the gold chunk. {said or 'None'}. "
        f"Operating range for {percent(result.threshold)}: {end}.",
    )


def grid_rows(result: GridResult) -> list[dict[str, Json]]:
    """Every cell's figures."""
    return [
        {
            "length, tokens": cell.length,
            "depth": percent(cell.depth),
            "right": cell.figures.right,
            "trials": cell.figures.trials,
            "n": cell.figures.n,
            "unit": result.unit,
            "accuracy": percent(cell.figures.accuracy),
            "95% interval": interval(cell.figures.low, cell.figures.high),
            "median prompt tokens": cell.figures.prompt_tokens,
        }
        for cell in result.cells
    ]


def range_rows(result: GridResult) -> list[dict[str, Json]]:
    """Each length's worst depth and whether it keeps the threshold; its interval allows for its having been picked."""
    return [
        {
            "length, tokens": row.length,
            "tokens as the server counted": count(None if row.prompt_tokens is None else round(row.prompt_tokens)),
            "worst depth": percent(row.worst_depth),
            "accuracy there": percent(row.worst.value if row.worst else None),
            "95% interval": interval(row.worst.low, row.worst.high) if row.worst else interval(None, None),
            "n": row.worst.n if row.worst else 0,
            f"keeps {percent(result.threshold)}": {True: "yes", False: "no", None: "open"}[row.holds],
        }
        for row in result.rows
    ]


def _inside(text: str) -> str:
    """A count on two lines where one would not fit into a square."""
    return text.replace(", ", "<br>")
