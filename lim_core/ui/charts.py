"""Plotly figures from the rows of a document. No Streamlit.

Colours come in as a palette; for the app it holds the placeholders that the theme fills in the browser, so a switch between
light and dark recolours the chart at once. All labels from documents and models are escaped: Plotly renders some HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from lim_core.ui.reading import AssemblyRow, ChunkRow, PointRow, PositionRow, RemedyRow
from lim_core.ui.words import arm_words, clip, interval, percent, points

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Above this many chunks a strip has no room for a bar each; neighbours of one state are drawn as one.
MAX_BARS = 300
_TICKS = [0, 25, 50, 75, 100]
_TICK_WORDS = [f"{tick}%" for tick in _TICKS]


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


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of the prompt strip: a chunk, or a run of neighbours in one state. Offsets in tokens, `ranks` 0-based."""

    start: float
    length: float
    state: str
    gold: bool
    first_rank: int
    last_rank: int
    label: str


def plain(text: str, length: int = 60) -> str:
    """Untrusted text as a Plotly label: on one line, clipped, with its HTML escaped."""
    return escape(clip(text, length), quote=False)


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
            text=[f"{row.correct}/{row.n}" for row in shown],
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
    figure.update_yaxes(range=[-6, 108], tickvals=_TICKS, ticktext=_TICK_WORDS, title_text="right answers")
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


def strip_bars(assembly: AssemblyRow) -> tuple[Bar, ...]:
    """The bars of the prompt strip, at most about MAX_BARS of them; gold chunks always keep their own.

    Chunks that are missing come last, laid end to end past the prompt's own length.
    """
    inside = sorted(
        (row for row in assembly.chunks if row.token_offset is not None and row.state != "missing"),
        key=lambda row: row.token_offset or 0,
    )
    missing = [row for row in assembly.chunks if row.token_offset is None or row.state == "missing"]
    bars = [_bar(row, row.token_offset or 0) for row in inside]
    offset = 0.0
    for row in missing:
        bars.append(_bar(row, offset, missing=True))
        offset += row.tokens or 1
    if len(bars) <= MAX_BARS:
        return tuple(bars)
    return _merge(bars, len(bars) // MAX_BARS + 1)


def strip_chart(assembly: AssemblyRow, colours: Palette = THEMED) -> Chart:
    """The prompt to token scale: one bar a chunk, gold in the accent colour, clipped ones hatched, missing ones below."""
    import plotly.graph_objects as go

    bars = strip_bars(assembly)
    figure = go.Figure()
    lanes = ("missing", "in the prompt")
    looks = (
        ("whole", "whole", colours.pale, ""),
        ("clipped", "clipped", colours.pale, "/"),
        ("doubled", "doubled", colours.pale, "x"),
        ("gold", "gold", colours.accent, ""),
        ("gold clipped", "gold, clipped", colours.accent, "/"),
        ("missing", "missing", "rgba(0,0,0,0)", ""),
    )
    for kind, name, colour, hatch in looks:
        chosen = [bar for bar in bars if _kind(bar) == kind]
        if not chosen:
            continue
        figure.add_trace(
            go.Bar(
                base=[bar.start for bar in chosen],
                x=[bar.length for bar in chosen],
                y=[lanes[0] if bar.state == "missing" else lanes[1] for bar in chosen],
                orientation="h",
                name=name,
                marker={
                    "color": colour,
                    "line": {"color": [colours.accent if bar.gold else colours.grey for bar in chosen], "width": 1},
                    "pattern": {"shape": hatch, "fgcolor": colours.grey, "size": 6, "solidity": 0.3},
                },
                width=0.62,
                customdata=[[bar.label, bar.length] for bar in chosen],
                hovertemplate="%{customdata[0]}<br>%{customdata[1]:,.0f} tokens<extra></extra>",
                text=[
                    str(bar.first_rank + 1) if bar.first_rank == bar.last_rank and len(bars) <= 40 else ""
                    for bar in chosen
                ],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                textfont={"size": 11, "color": colours.on_accent if kind.startswith("gold") else colours.ink},
                cliponaxis=False,
            )
        )
    some_missing = any(bar.state == "missing" for bar in bars)
    total = assembly.prompt_tokens or int(max((bar.start + bar.length for bar in bars), default=1))
    figure.update_layout(
        height=330,
        barmode="overlay",
        margin={"l": 8, "r": 8, "t": 34, "b": 8},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 12}},
        uniformtext={"mode": "hide", "minsize": 9},
        dragmode=False,
        hoverlabel={"align": "left"},
    )
    figure.update_xaxes(
        range=[0, total * 1.01], title_text="token of the prompt as sent", showgrid=False, zeroline=False
    )
    figure.update_yaxes(
        categoryorder="array", categoryarray=lanes if some_missing else lanes[1:], showgrid=False, tickangle=0
    )
    return Chart(figure, _strip_alt(assembly))


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
    figure.update_xaxes(range=[-4, 104], tickvals=_TICKS, ticktext=_TICK_WORDS, title_text="right answers")
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


def _strip_alt(assembly: AssemblyRow) -> str:
    states: dict[str, int] = {}
    for row in assembly.chunks:
        states[row.state] = states.get(row.state, 0) + 1
    gold = [str(row.rank + 1) for row in assembly.chunks if row.gold]
    counted = ", ".join(f"{amount} {state}" for state, amount in states.items())
    return f"Chunks in the prompt as sent: {counted}. Gold chunk by rank: {', '.join(gold) or 'unknown'}."


def _bar(row: ChunkRow, start: float, *, missing: bool = False) -> Bar:
    kept = 1.0 if missing or row.share is None else row.share
    state = "missing" if missing else row.state
    said = f"{percent(row.share)} kept" if state == "clipped" else state
    where = "" if missing or row.depth is None else f", depth {percent(row.depth)}"
    label = f"{plain(row.id, 40)}: rank {row.rank + 1}, {said}{where}{', gold' if row.gold else ''}"
    return Bar(start, max(1.0, (row.tokens or 1) * kept), state, row.gold, row.rank, row.rank, label)


def _merge(bars: Sequence[Bar], size: int) -> tuple[Bar, ...]:
    """Runs of up to `size` neighbours of one state as one bar each."""
    merged: list[Bar] = []
    run = 0
    for bar in bars:
        last = merged[-1] if merged else None
        if last is None or bar.gold or last.gold or last.state != bar.state or run >= size:
            merged.append(bar)
            run = 1
            continue
        run += 1
        low, high = min(last.first_rank, bar.first_rank), max(last.last_rank, bar.last_rank)
        end = bar.start + bar.length
        label = f"{run} chunks between rank {low + 1} and {high + 1}, {bar.state}"
        merged[-1] = Bar(last.start, end - last.start, bar.state, False, low, high, label)
    return tuple(merged)


def _kind(bar: Bar) -> str:
    if bar.state == "missing":
        return "missing"
    if bar.gold:
        return "gold clipped" if bar.state == "clipped" else "gold"
    return bar.state if bar.state in ("clipped", "doubled") else "whole"
