"""The prompt strip: every chunk of the prompt as sent, to token scale. No Streamlit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lim_core.drawing.figures import THEMED, Chart, Palette, plain
from lim_core.drawing.reading import AssemblyRow, ChunkRow
from lim_core.drawing.words import percent

# Above this many chunks a strip has no room for a bar each; neighbours of one state are drawn as one.
MAX_BARS = 300


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
        height=330 if some_missing else 240,
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
