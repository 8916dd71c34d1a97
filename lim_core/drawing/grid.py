"""Length by position: a cell for each prompt length and depth, shaded by how often the reader was right."""

from __future__ import annotations

from lim_core.drawing.figures import THEMED, Chart, Palette, arm_hover, fraction, lay_out, say_instead
from lim_core.drawing.words import count, interval, percent
from lim_core.experiments.cells import ArmFigures
from lim_core.experiments.grid import GridResult
from lim_core.types import Json

# Pixels of a row of cells; below the second of them an interval has no room under its count.
_ROW, _LOW_ROW, _MANY_DEPTHS = 46, 22, 11
# The widest row of cells whose counts and intervals a phone can show side by side.
_WORDY_LENGTHS = 5


def length_grid(result: GridResult, colours: Palette = THEMED) -> Chart:
    """Cells by length (columns) and depth (rows): the fuller, the more often right; k/n and its interval inside.

    A dotted line stands behind the operating range. Each cell carries its arm's name as customdata[0], so that a click finds
    its trials. They are bars because Streamlit reports no selection of a heatmap.
    """
    import plotly.graph_objects as go

    lengths = sorted({cell.length for cell in result.cells})
    depths = sorted({cell.depth for cell in result.cells})
    column = {length: place for place, length in enumerate(lengths)}
    row = _ROW if len(depths) <= _MANY_DEPTHS else _LOW_ROW
    # By rank, as the lengths are: few documents leave out some depths, and cells must not cover each other.
    place = {depth: rank for rank, depth in enumerate(depths)}
    where = {
        "x": [column[cell.length] for cell in result.cells],
        "base": [place[cell.depth] - 0.45 for cell in result.cells],
        "y": [0.9] * len(result.cells),
        "width": 0.9,
    }
    # Spelled out, because Plotly's click on a bar fails where a bar trace has no text style of its own for both.
    inked = {"textfont": {"color": colours.ink}}
    figure = go.Figure()
    # The frame keeps a cell with no right answer in sight.
    figure.add_trace(
        go.Bar(
            **where,
            marker={"color": "rgba(0,0,0,0)", "line": {"width": 1, "color": colours.grey}},
            hoverinfo="skip",
            selected=inked,
            unselected={**inked, "marker": {"opacity": 1}},
        )
    )
    wordy = row == _ROW and len(lengths) <= _WORDY_LENGTHS
    figure.add_trace(
        go.Bar(
            **where,
            name="cells",
            selected=inked,
            unselected=inked,
            marker={
                "color": colours.accent,
                # No stronger than this, so that the ink of the text stays legible in light and dark.
                "opacity": [0.6 * (cell.figures.accuracy or 0) for cell in result.cells],
                "line": {"width": 0},
            },
            text=[_inside(cell.figures, wordy) for cell in result.cells],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
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
    figure.update_layout(barmode="overlay")
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
    figure.update_xaxes(
        tickvals=list(range(len(lengths))),
        ticktext=[f"{length:,}" for length in lengths],
        range=[-0.55, max(1, len(lengths)) - 0.45],
        title_text="prompt length, tokens",
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(
        range=[max(1, len(depths)) - 0.45, -0.55],
        tickvals=[place[depth] for depth in labelled],
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


def _inside(figures: ArmFigures, wordy: bool) -> str:
    """A cell's count and, where there is room and something was scored, its interval below."""
    counted = fraction(figures).replace(", ", "<br>")
    return f"{counted}<br>{interval(figures.low, figures.high)}" if wordy and figures.n else counted
