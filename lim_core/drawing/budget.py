"""Accuracy against tokens: the reader and the evidence over growing k, and how the trials of each cut came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lim_core.drawing.figures import (
    THEMED,
    Chart,
    Palette,
    SideLabel,
    arm_hover,
    fraction,
    lay_out,
    say_instead,
    share_axis,
    side_labels,
    whiskers,
)
from lim_core.drawing.words import OUTCOME_SHAPES, interval, percent, points
from lim_core.experiments.cells import ArmFigures
from lim_core.experiments.tokens import KPoint, TokenResult, k_words
from lim_core.types import Json, Outcome

if TYPE_CHECKING:
    import plotly.graph_objects as go


def token_curve(result: TokenResult, colours: Palette = THEMED) -> Chart:
    """Reader accuracy with 95% intervals and evidence recall against median prompt tokens, k beside each point.

    Closed-book is the left end, oracle the mark to reach at its own length; the knee wears a ring. Where the server reported
    no tokens the cuts stand evenly spaced, and the axis says so.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    cuts = [point for point in result.points if point.figures.accuracy is not None]
    closed, oracle = (
        bracket if bracket is not None and bracket.accuracy is not None else None
        for bracket in (result.closed_book, result.oracle)
    )
    known = all(one.prompt_tokens is not None for one in (*(cut.figures for cut in cuts), closed, oracle) if one)
    places = {id(cut): (cut.figures.prompt_tokens or 0) if known else index + 1.0 for index, cut in enumerate(cuts)}
    bracket_places = [(one.prompt_tokens or 0) if one and known else 0.0 for one in (closed, oracle)]
    knee = None if result.knee is None else result.points[result.knee]
    labels: list[SideLabel] = []
    if closed is not None:
        _bracket(figure, closed, bracket_places[0], "square-open", colours.grey, result.unit)
        if cuts:
            figure.add_trace(
                go.Scatter(
                    x=[bracket_places[0], places[id(cuts[0])]],
                    y=[(closed.accuracy or 0) * 100, (cuts[0].figures.accuracy or 0) * 100],
                    mode="lines",
                    line={"color": colours.grey, "dash": "dot", "width": 1.5},
                    hoverinfo="skip",
                )
            )
    if oracle is not None:
        _bracket(figure, oracle, bracket_places[1], "star", colours.good, result.unit)
    if cuts:
        x = [places[id(cut)] for cut in cuts]
        recall = [cut.recall.value * 100 for cut in cuts]
        figure.add_trace(
            go.Scatter(
                x=x,
                y=recall,
                mode="lines+markers",
                name="evidence recall",
                line={"color": colours.ink, "dash": "dash", "width": 1.2},
                marker={"color": colours.ink, "symbol": "diamond-open", "size": 8},
                customdata=[[k_words(cut.k), cut.recall.n, interval(cut.recall.low, cut.recall.high)] for cut in cuts],
                hovertemplate=(
                    "k = %{customdata[0]}: the whole evidence is there in %{y:.0f}% of %{customdata[1]} cases, "
                    "95% interval %{customdata[2]}<extra></extra>"
                ),
            )
        )
        values = [(cut.figures.accuracy or 0) * 100 for cut in cuts]
        figure.add_trace(
            go.Scatter(
                x=x,
                y=values,
                mode="lines+markers+text",
                name="reader",
                line={"color": colours.accent, "width": 2},
                marker={"color": colours.accent, "size": 9},
                # The en space keeps the label off the marker and the ring.
                text=[f"\u2002{k_words(cut.k)}{' knee' * (cut is knee)}\u2002" for cut in cuts],
                textposition=["bottom right"] * (len(cuts) - 1) + ["bottom left"],
                textfont={"size": 12, "color": colours.accent},
                error_y=whiskers(
                    values,
                    [(cut.figures.low or 0) * 100 for cut in cuts],
                    [(cut.figures.high or 0) * 100 for cut in cuts],
                    colours.accent,
                ),
                customdata=[
                    [k_words(cut.k), arm_hover(cut.figures, result.unit), _tokens(cut.figures)] for cut in cuts
                ],
                hovertemplate="k = %{customdata[0]}, %{customdata[2]}<br>reader %{customdata[1]}<extra></extra>",
            )
        )
        labels.append(SideLabel(values[-1], "reader", colours.accent))
        labels.append(SideLabel(recall[-1], "evidence<br>recall", colours.ink))
    if knee is not None and id(knee) in places:
        figure.add_trace(
            go.Scatter(
                x=[places[id(knee)]],
                y=[(knee.figures.accuracy or 0) * 100],
                mode="markers",
                name="knee",
                marker={"symbol": "circle-open", "size": 19, "color": colours.accent, "line": {"width": 2}},
                hoverinfo="skip",
            )
        )
    lay_out(figure, 340, right=66)
    share_axis(figure)
    # Room below zero for the label of closed-book.
    figure.update_yaxes(range=[-12, 106])
    side_labels(figure, labels)
    far = max([*places.values(), *bracket_places, 1.0])
    figure.update_xaxes(range=[-0.04 * far, 1.06 * far], title_text="prompt tokens, median", showgrid=False, nticks=6)
    if not known:
        figure.update_xaxes(showticklabels=False, title_text="cuts in order (the server reported no tokens)")
    if not cuts:
        say_instead(figure, "Nothing is scored yet.", colours)
    return Chart(figure, _alt(result))


def token_rows(result: TokenResult) -> list[dict[str, Json]]:
    """Closed-book, every cut and oracle: the figures of the curve."""
    return [
        {
            "k": entry.word,
            "median prompt tokens": entry.figures.prompt_tokens,
            "right": entry.figures.right,
            "trials": entry.figures.trials,
            "n": entry.figures.n,
            "unit": result.unit,
            "accuracy": percent(entry.figures.accuracy),
            "95% interval": interval(entry.figures.low, entry.figures.high),
            "evidence recall": percent(entry.cut.recall.value if entry.cut else None),
            "recall, 95%": interval(entry.cut.recall.low, entry.cut.recall.high) if entry.cut else interval(None, None),
            "recall, n cases": entry.cut.recall.n if entry.cut else None,
            "mark": _mark(result, entry.cut),
        }
        for entry in _entries(result)
    ]


def outcomes_by_k(result: TokenResult, colours: Palette = THEMED) -> Chart:
    """Trials of each cut by outcome, stacked, with their counts; each outcome has a hatch of its own."""
    import plotly.graph_objects as go

    entries = _entries(result)
    names = [entry.word.replace("closed-book", "closed-<br>book") for entry in entries]
    most = max((_total(entry.figures) for entry in entries), default=0)
    figure = go.Figure()
    for outcome, colour, hatch in (
        (Outcome.CORRECT, colours.good, ""),
        (Outcome.WRONG, colours.bad, "/"),
        (Outcome.ABSTAINED, colours.unsure, "."),
        (Outcome.EMPTY, colours.pale, ""),
        (Outcome.ERROR, colours.grey, "x"),
    ):
        counts = [_count(entry.figures, outcome) for entry in entries]
        if not any(counts):
            continue
        figure.add_trace(
            go.Bar(
                x=list(range(len(entries))),
                y=counts,
                name=OUTCOME_SHAPES[outcome],
                marker={
                    "color": colour,
                    "line": {"color": colours.grey, "width": 0.5},
                    "pattern": {
                        "shape": hatch,
                        "bgcolor": colour,
                        "fgcolor": colours.on_accent,
                        "fgopacity": 0.4,
                        "size": 7,
                        "solidity": 0.2,
                    },
                },
                # A count that its bar is too low for is left to the table.
                text=[str(amount) if amount >= 0.07 * most else "" for amount in counts],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                textfont={"size": 12, "color": colours.ink if outcome is Outcome.EMPTY else colours.on_accent},
                customdata=[[entry.word, _total(entry.figures)] for entry in entries],
                hovertemplate=f"%{{customdata[0]}}: %{{y}} of %{{customdata[1]}} trials {outcome.value}<extra></extra>",
            )
        )
    lay_out(figure, 320, legend=True)
    figure.update_layout(barmode="stack", bargap=0.25, legend={"traceorder": "normal"})
    figure.update_xaxes(
        tickvals=list(range(len(entries))),
        ticktext=names,
        tickangle=0,
        title_text="chunks sent (k)",
        range=[-0.6, max(len(entries), 1) - 0.4],
    )
    figure.update_yaxes(title_text="trials", rangemode="tozero", nticks=5)
    if not most:
        say_instead(figure, "No trial has finished yet.", colours)
    said = "; ".join(
        f"{entry.word}: "
        + ", ".join(f"{_count(entry.figures, one)} {one.value}" for one in Outcome if _count(entry.figures, one))
        for entry in entries
    )
    return Chart(figure, f"Outcomes of the trials by number of chunks sent. {said or 'None'}.")


def outcome_rows(result: TokenResult) -> list[dict[str, Json]]:
    """Trials of each cut by outcome."""
    return [
        {
            "k": entry.word,
            **{outcome.value: _count(entry.figures, outcome) for outcome in Outcome},
            "trials in all": _total(entry.figures),
        }
        for entry in _entries(result)
    ]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One prompt length: a cut, or a bracket where `cut` is None."""

    word: str
    figures: ArmFigures
    cut: KPoint | None = None


def _entries(result: TokenResult) -> Sequence[_Entry]:
    entries = [_Entry(k_words(point.k), point.figures, point) for point in result.points]
    if result.closed_book is not None:
        entries.insert(0, _Entry("closed-book", result.closed_book))
    if result.oracle is not None:
        entries.append(_Entry("oracle", result.oracle))
    return entries


def _mark(result: TokenResult, cut: KPoint | None) -> str:
    marks = [
        word
        for word, place in (("best", result.best), ("knee", result.knee))
        if cut is not None and place is not None and result.points[place] is cut
    ]
    return ", ".join(marks)


def _count(figures: ArmFigures, outcome: Outcome) -> int:
    return {
        Outcome.CORRECT: figures.outcomes.correct,
        Outcome.WRONG: figures.outcomes.wrong,
        Outcome.ABSTAINED: figures.outcomes.abstained,
        Outcome.EMPTY: figures.outcomes.empty,
        Outcome.ERROR: figures.outcomes.error,
    }[outcome]


def _total(figures: ArmFigures) -> int:
    return sum(_count(figures, outcome) for outcome in Outcome)


def _tokens(figures: ArmFigures) -> str:
    return "tokens unknown" if figures.prompt_tokens is None else f"{figures.prompt_tokens:,.0f} prompt tokens"


def _bracket(figure: go.Figure, bracket: ArmFigures, x: float, symbol: str, colour: str, unit: str) -> None:
    import plotly.graph_objects as go

    value = (bracket.accuracy or 0) * 100
    figure.add_trace(
        go.Scatter(
            x=[x],
            y=[value],
            mode="markers+text",
            name=bracket.arm,
            marker={"color": colour, "symbol": symbol, "size": 12},
            text=[bracket.arm],
            textposition="bottom right",
            textfont={"size": 12, "color": colour},
            error_y=whiskers([value], [(bracket.low or 0) * 100], [(bracket.high or 0) * 100], colour),
            customdata=[[arm_hover(bracket, unit), _tokens(bracket)]],
            hovertemplate=f"{bracket.arm}, %{{customdata[1]}}<br>%{{customdata[0]}}<extra></extra>",
        )
    )


def _alt(result: TokenResult) -> str:
    said = "; ".join(
        f"{'k = ' if entry.cut else ''}{entry.word}, {_tokens(entry.figures)}: reader {fraction(entry.figures)}"
        + (f", evidence in {percent(entry.cut.recall.value)} of {entry.cut.recall.n}" if entry.cut else "")
        for entry in _entries(result)
    )
    if result.knee is None:
        end = f"No knee: {result.reason}."
    else:
        end = f"Knee at k = {k_words(result.points[result.knee].k)}"
        if result.saving is not None:
            gain = result.saving.gain
            end += f", {result.saving.tokens:,.0f} prompt tokens a call saved, change {points(gain.value)}"
            end += f" [{interval(gain.low, gain.high, 'pts')}], n = {gain.n}"
        end += "."
    return f"Reader accuracy and evidence recall against prompt tokens. {said or 'Nothing finished'}. {end}"
