"""The figures of a diagnosis: answers by slot, remedies before and after."""

from __future__ import annotations

from collections.abc import Sequence

from lim_core.drawing.figures import THEMED, TICK_WORDS, TICKS, Chart, Palette, plain
from lim_core.drawing.reading import PointRow, PositionRow, RemedyRow
from lim_core.drawing.words import arm_words, interval, percent, points


def position_chart(position: PositionRow, chunks: int | None, colours: Palette = THEMED) -> Chart:
    """Accuracy by slot with Wilson 95% intervals, n at each point, oracle and closed-book as lines.

    `chunks` is how many chunks the prompt holds; the axis runs over all slots, counted from 1.
    """
    import plotly.graph_objects as go

    shown = [row for row in position.points if row.index is not None and row.accuracy is not None]
    last = max([chunks or 1, *((row.index or 0) + 1 for row in shown)])
    figure = go.Figure()
    for row, name, dash, colour in (
        (position.oracle, "oracle", "dash", colours.good),
        (position.closed_book, "closed-book", "dot", colours.grey),
    ):
        if row is None or row.accuracy is None:
            continue
        figure.add_trace(
            go.Scatter(
                x=[0.5, last + 0.5],
                y=[row.accuracy * 100] * 2,
                mode="lines",
                name=f"{name} {row.correct}/{row.n}",
                line={"dash": dash, "color": colour, "width": 1.5},
                hovertemplate=f"{name}: {row.correct} of {row.n} right, {interval(row.low, row.high)}<extra></extra>",
            )
        )
    figure.add_trace(
        go.Scatter(
            x=[(row.index or 0) + 1 for row in shown],
            y=[(row.accuracy or 0) * 100 for row in shown],
            mode="lines+markers+text",
            name="gold chunk at this slot",
            line={"color": colours.accent, "width": 2},
            marker={"color": colours.accent, "size": 9},
            # En spaces keep the label off the error bar.
            text=[f"\u2002{row.correct}/{row.n}\u2002" for row in shown],
            textfont={"color": colours.ink, "size": 12},
            textposition=[_beside(row, last) for row in shown],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [((row.high or 0) - (row.accuracy or 0)) * 100 for row in shown],
                "arrayminus": [((row.accuracy or 0) - (row.low or 0)) * 100 for row in shown],
                "color": colours.accent,
                "thickness": 1.2,
                "width": 5,
            },
            customdata=[
                [arm_words(row.arm), percent(row.depth), row.correct, row.n, interval(row.low, row.high), row.distinct]
                for row in shown
            ],
            hovertemplate=(
                "%{customdata[0]}: chunk %{x}, token depth %{customdata[1]}<br>%{customdata[2]} of %{customdata[3]} right, "
                "95% interval %{customdata[4]}<br>%{customdata[5]} distinct observations<extra></extra>"
            ),
        )
    )
    figure.update_layout(
        height=330,
        margin={"l": 8, "r": 8, "t": 34, "b": 8},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 12}},
        hoverlabel={"align": "left"},
        dragmode=False,
    )
    figure.update_yaxes(range=[-6, 108], tickvals=TICKS, ticktext=TICK_WORDS, title_text="right answers")
    figure.update_xaxes(
        range=[0.4, last + 0.6],
        tickvals=[(row.index or 0) + 1 for row in shown],
        ticktext=[f"{(row.index or 0) + 1}<br>{arm_words(row.arm)}<br>{percent(row.depth)} deep" for row in shown]
        if len(shown) <= 5
        else [str((row.index or 0) + 1) for row in shown],
        title_text=f"slot of the gold chunk, of {last}",
        showgrid=False,
        zeroline=False,
    )
    return Chart(figure, _position_alt(position, shown))


def remedy_chart(remedies: Sequence[RemedyRow], colours: Palette = THEMED) -> Chart:
    """Accuracy before (hollow) and after (filled) each remedy that was tried, with its paired gain in words."""
    import plotly.graph_objects as go

    tried = [row for row in remedies if row.tried and row.before is not None and row.after is not None]
    names = [plain(row.title, 44) for row in tried]
    figure = go.Figure()
    for row, name in zip(tried, names, strict=True):
        figure.add_trace(
            go.Scatter(
                x=[(row.before or 0) * 100, (row.after or 0) * 100],
                y=[name, name],
                mode="lines",
                line={"color": colours.grey, "width": 2},
                showlegend=False,
                hoverinfo="skip",
            )
        )
    said = [[points(row.gain), interval(row.low, row.high, "pts"), row.n] for row in tried]
    hover = "%{y}: %{x:.0f}%<br>gain %{customdata[0]}, 95% %{customdata[1]}, n = %{customdata[2]}<extra></extra>"
    for label, values, symbol in (
        ("before", [row.before for row in tried], "circle-open"),
        ("after", [row.after for row in tried], "circle"),
    ):
        figure.add_trace(
            go.Scatter(
                x=[(value or 0) * 100 for value in values],
                y=names,
                mode="markers",
                name=label,
                marker={
                    "symbol": symbol,
                    "size": 11,
                    "color": colours.accent,
                    "line": {"width": 2, "color": colours.accent},
                },
                customdata=said,
                hovertemplate=hover,
            )
        )
    figure.update_layout(
        height=90 + 40 * max(1, len(tried)),
        margin={"l": 8, "r": 8, "t": 30, "b": 8},
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "font": {"size": 12}},
        dragmode=False,
    )
    figure.update_xaxes(range=[-4, 104], tickvals=TICKS, ticktext=TICK_WORDS, title_text="right answers")
    figure.update_yaxes(autorange="reversed", automargin=True)
    words = "; ".join(f"{row.title} from {percent(row.before)} to {percent(row.after)}" for row in tried)
    return Chart(figure, f"Remedies tried: {words}.")


def _beside(row: PointRow, last: int) -> str:
    """Where the k/n label goes, so that it neither leaves the frame nor sits on the error bar."""
    vertical = "top" if (row.accuracy or 0) < 0.1 else "bottom" if (row.accuracy or 0) > 0.9 else "middle"
    return f"{vertical} {'left' if (row.index or 0) + 1 >= last and last > 1 else 'right'}"


def _position_alt(position: PositionRow, shown: Sequence[PointRow]) -> str:
    slots = "; ".join(f"slot {(row.index or 0) + 1}: {row.correct} of {row.n}" for row in shown)
    lines = [
        f"{name} {row.correct} of {row.n}"
        for name, row in (("oracle", position.oracle), ("closed-book", position.closed_book))
        if row is not None
    ]
    return f"Right answers by slot of the gold chunk. {slots}. {', '.join(lines)}."
