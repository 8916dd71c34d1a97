"""Figures of the experiments: exactly the numbers of the result, nothing hostile in a label, nothing to draw is no failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from lim_core.drawing.arrangements import accuracies, accuracy_rows, gain_rows, gains
from lim_core.drawing.budget import outcome_rows, outcomes_by_k, token_curve, token_rows
from lim_core.drawing.curves import curve_rows, position_curves, used_share, why_no_context_use
from lim_core.drawing.figures import Chart
from lim_core.drawing.grid import grid_rows, length_grid, range_rows
from lim_core.drawing.overlays import Overlay, overlays_of, slot_shares
from lim_core.drawing.rank_strip import rank_rows, rank_strip
from lim_core.drawing.references import PUBLISHED, read_references
from lim_core.drawing.slot_costs import cost_rows, position_cost
from lim_core.drawing.swings import pattern, swing_counts, swing_rows, swings
from lim_core.drawing.words import arm_words, clip_middle, interval, points
from lim_core.errors import InputError
from lim_core.experiments.arrangements import OrderingOptions, OrderingResult, Orderings
from lim_core.experiments.cells import Cell, Facts, Table
from lim_core.experiments.grid import GridOptions, GridResult, LengthByPosition, grid_arm
from lim_core.experiments.options import Levels
from lim_core.experiments.positions import PositionOptions, PositionResult, Positions, Swing
from lim_core.experiments.tokens import TokenOptions, TokenResult, Tokens

HOSTILE = "<img src=x onerror=alert(1)><b>bold</b> & [a](http://evil.example)"
NAMED = ("first", "q1", "middle", "q3", "last")
SLOTS = dict(zip(NAMED, (0, 4, 7, 11, 15), strict=True))
TOKENS = {"k:1": 120.0, "k:2": 200.0, "k:5": 430.0, "k:all": 1250.0, "oracle": 125.0, "closed-book": 40.0}
EMPTY = Table((), ())


def cell(case: str, arm: str, outcome: str, slot: int | None = None, tokens: float | None = 900.0) -> Cell:
    counts = {name: int(name == outcome) for name in ("correct", "wrong", "abstained", "empty", "error")}
    depth = None if slot is None else slot / 16
    scored = counts["wrong"] + counts["abstained"]
    return Cell(case, arm, 0, slot, depth, **counts, replies_right=counts["correct"], replies_other=scored,
                prompt_tokens=tokens, completion_tokens=9.0, seconds=1.5)  # fmt: skip


def table(outcomes: Mapping[str, str], slots: Mapping[str, int] | None = None, names: str = "case") -> Table:
    """Arms to a letter a case: c correct, w wrong, a abstained, e empty, x error."""
    words = {"c": "correct", "w": "wrong", "a": "abstained", "e": "empty", "x": "error"}
    n = max(len(line) for line in outcomes.values())
    cells = tuple(
        cell(f"{names}-{place}", arm, words[letter], (slots or {}).get(arm), TOKENS.get(arm, 900.0))
        for arm, line in outcomes.items()
        for place, letter in enumerate(line)
    )
    return Table(cells, tuple(Facts(f"{names}-{place}", 16, (place % 4,)) for place in range(n)))


def positions(
    outcomes: Mapping[str, str], templates: tuple[str, ...] = ("plain",), names: str = "case"
) -> PositionResult:
    slots = {arm: SLOTS.get(arm.removeprefix("position:").split("+")[0], 0) for arm in outcomes if ":" in arm}
    made = table(outcomes, slots, names) if outcomes else EMPTY
    return Positions().analyse(made, PositionOptions(templates=templates), Levels())


CURVE = {
    "position:first": "cccccccw",
    "position:q1": "ccccwwww",
    "position:middle": "cwwwwwww",
    "position:q3": "ccccwwwc",
    "position:last": "ccccccwc",
    "oracle": "cccccccc",
    "closed-book": "wwwwwwcc",
}


@pytest.fixture(scope="module")
def curve() -> PositionResult:
    return positions(CURVE)


@pytest.fixture(scope="module")
def tokens() -> TokenResult:
    lines = {
        "closed-book": "wwwwwwwwwa",
        "k:1": "ccwwwwaaew",
        "k:2": "cccccccwww",
        "k:5": "cccccccccx",
        "k:all": "ccccccwwww",
        "oracle": "cccccccccc",
    }
    return Tokens().analyse(table(lines), TokenOptions((1, 2, 5)), Levels())


@pytest.fixture(scope="module")
def ordered() -> OrderingResult:
    lines = {
        "ordering:as-retrieved": "w" * 12 + "cc",
        "ordering:edges": "c" + "w" * 11 + "cc",
        "ordering:reverse": "c" * 14,
        "distraction:without-hard": "c" * 10 + "wwww",
        "distraction:without-easy": "w" * 10 + "cccc",
    }
    return Orderings().analyse(table(lines), OrderingOptions(("as-retrieved", "edges", "reverse")), Levels())


@pytest.fixture(scope="module")
def gridded() -> GridResult:
    lines = {
        grid_arm(length, depth): "c" * right + "w" * (10 - right)
        for length, rights in ((500, (10, 9, 10)), (1000, (9, 2, 0)))
        for depth, right in zip((0.0, 0.5, 1.0), rights, strict=True)
    }
    return LengthByPosition().analyse(table(lines), GridOptions((500, 1000), 3), Levels())


def trace(chart: Chart, name: str) -> object:
    return next(one for one in chart.figure.data if one.name == name)


def test_the_curve_has_the_result_s_numbers(curve: PositionResult) -> None:
    chart = position_curves([Overlay("gemma", curve)])
    drawn = trace(chart, "gemma")
    assert list(drawn.x) == [0, 0.25, 0.5, 0.75, 1]
    assert list(drawn.y) == [87.5, 50, 12.5, 62.5, 87.5]
    # Wilson 95% for 7 of 8 is .5291 to .9776 (scipy.stats.binomtest(7, 8).proportion_ci(method="wilson")).
    assert drawn.error_y.arrayminus[0] == pytest.approx(87.5 - 52.91, abs=0.01)
    assert drawn.error_y.array[0] == pytest.approx(97.76 - 87.5, abs=0.01)
    assert list(chart.figure.layout.xaxis.ticktext)[2] == "middle<br>1/8"
    assert [shape.y0 for shape in chart.figure.layout.shapes] == [100, 25]
    assert "middle 1/8" in chart.alt
    assert "closed-book 2/8" in chart.alt
    rows = {str(row["arm"]): row for row in curve_rows([Overlay("gemma", curve)])}
    assert rows["middle"]["accuracy"] == "12%"
    assert rows["first"]["95% interval"] == "53 to 98%"
    assert rows["middle"]["context use"] == "-17%"
    assert rows["oracle"]["context use"] == "–"


def test_context_use_is_a_share_of_the_way_from_closed_book_to_oracle(curve: PositionResult) -> None:
    assert used_share(0.6, 0.9, 0.1) == pytest.approx(0.625)
    assert used_share(0.6, 0.55, 0.5) is None  # a span of .05 is too short
    assert used_share(0.6, None, 0.1) is None
    drawn = trace(position_curves([Overlay("gemma", curve)], context_use=True), "gemma")
    assert list(drawn.y) == pytest.approx([83.33, 33.33, -16.67, 50, 83.33], abs=0.01)


def test_context_use_is_not_drawn_where_oracle_is_no_better_than_closed_book(curve: PositionResult) -> None:
    flat = Overlay(HOSTILE, positions({**CURVE, "oracle": "ccwwwwww"}))
    assert "not more than 5 points" in why_no_context_use(flat)
    alone = position_curves([flat], context_use=True)
    assert not alone.figure.data
    assert "Not drawn" in alone.figure.layout.annotations[-1].text
    both = position_curves([Overlay("gemma", curve), flat], context_use=True)
    assert [one.name for one in both.figure.data] == ["gemma"]
    assert "Not drawn" in both.figure.layout.xaxis.title.text
    assert "No context use" in both.alt


def test_overlays_differ_by_more_than_colour() -> None:
    lines = {**CURVE, **{f"{arm}+citations": line for arm, line in CURVE.items() if ":" in arm}}
    overlays = overlays_of("gemma", positions(lines, ("plain", "citations")))
    assert [one.label for one in overlays] == ["gemma, plain", "gemma, citations"]
    first, second = position_curves(overlays).figure.data
    assert list(first.y) == list(second.y)
    assert first.marker.symbol != second.marker.symbol
    assert first.line.dash != second.line.dash
    assert first.x[0] < second.x[0]  # side by side


def test_published_curves_are_named_as_such(curve: PositionResult) -> None:
    references = read_references()
    chosen = next(one for one in references if one.model == "GPT-3.5-Turbo" and one.documents == 20)
    assert chosen.points[2].index == 9
    assert chosen.points[2].accuracy == pytest.approx(0.538)
    assert (chosen.oracle, chosen.closed_book, chosen.questions) == (0.883, 0.561, 2655)
    chart = position_curves([Overlay("gemma", curve)], [chosen])
    drawn = trace(chart, "GPT-3.5-Turbo, 20 documents")
    assert drawn.line.dash == "dot"
    assert list(drawn.x)[2] == pytest.approx(9 / 19)
    assert list(drawn.y)[2] == pytest.approx(53.8)
    assert "Published, not measured here" in chart.figure.layout.legend2.title.text
    assert "Published, not measured here" in chart.alt
    last = curve_rows([Overlay("gemma", curve)], [chosen])[-1]
    assert str(last["source"]).startswith("published, not measured here: Liu et al. 2023")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("gold_index", "place", "has no column gold_index"),
        ("62.9", "many", "give a number"),
        ("62.9", "nan", "from 0 to 100"),
        ("62.9", "162.9", "from 0 to 100"),
        ("10,0,62.9", "10,10,62.9", "from 0 to 9"),
        ("10,0,62.9", "1.5,0,62.9", "from 2"),
        ("10,0,62.9", "10.5,0,62.9", "whole number"),
        ("Claude-1.3,10,0", ",10,0", "model is empty"),
    ],
)
def test_a_broken_reference_file_gets_one_sentence(tmp_path: Path, old: str, new: str, said: str) -> None:
    copy = tmp_path / "curves.csv"
    copy.write_text(PUBLISHED.read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(InputError, match=said):
        read_references(copy)


def test_a_missing_or_binary_reference_file_gets_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_references(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        read_references(tmp_path / "binary.csv")


def test_numbered_slots_lie_by_their_index() -> None:
    every = {f"position:{index}": "cw" for index in range(4)}
    made = table(every, {arm: index for index, arm in enumerate(every)})
    points = Positions().analyse(made, PositionOptions(("all",)), Levels()).curves[0].points
    assert slot_shares(points) == pytest.approx((0, 1 / 3, 2 / 3, 1))
    # Without the last slot nobody knows where it is: token depth stands in.
    some = table({"position:4": "cw", "position:8": "cc"}, {"position:4": 4, "position:8": 8})
    points = Positions().analyse(some, PositionOptions(("4", "8")), Levels()).curves[0].points
    assert slot_shares(points) == (0.25, 0.5)


def test_cost_shows_medians_by_slot(curve: PositionResult) -> None:
    seconds, prompt = position_cost([Overlay("gemma", curve)]).figure.data
    assert list(seconds.y) == [1.5] * 5
    assert list(prompt.y) == [900] * 5
    assert cost_rows([Overlay("gemma", curve)])[0]["median prompt tokens"] == 900


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ((1, 1, 1), "right everywhere"),
        ((0, 0, 0.5), "wrong everywhere"),
        ((1, 0, 1), "lost inside"),
        ((1, 1, 0), "right at the start only"),
        ((0, 1, 1), "right at the end only"),
        ((0, 1, 0), "right inside only"),
        ((1, 0, 1, 0), "no pattern"),
        ((1, None, 1), "not scored at every slot"),
        ((), "not scored at every slot"),
    ],
)
def test_patterns(values: tuple[float | None, ...], name: str) -> None:
    assert pattern(Swing("case", values)) == name


def test_swings_show_every_case_once_and_like_ones_together(curve: PositionResult) -> None:
    counts = {str(row["pattern"]): row["cases"] for row in swing_counts(curve)}
    assert sum(int(str(amount)) for amount in counts.values()) == 8
    assert counts["lost inside"] == 5
    assert counts["right everywhere"] == 1
    names = [row["pattern"] for row in swing_rows(curve)]
    assert names == sorted(names, key=names.index)
    chart = swings(curve, columns=3)
    _, lines, _, titles = chart.figure.data
    assert sorted(titles.text) == [str(place) for place in range(8)]  # "case-" is shared by all, so it is left out
    right = [entry for entry in lines.customdata if entry[2] == "100%"]
    assert len(right) == 7 + 4 + 1 + 5 + 7
    assert "lost inside 5" in chart.alt


def test_the_token_curve_has_the_result_s_numbers(tokens: TokenResult) -> None:
    chart = token_curve(tokens)
    reader = trace(chart, "reader")
    assert list(reader.x) == [120, 200, 430, 1250]
    assert list(reader.y) == pytest.approx([100 * 2 / 9, 70, 100, 60])
    assert [label.strip() for label in reader.text] == ["1", "2", "5 knee", "all"]
    assert list(trace(chart, "evidence recall").y) == [30, 60, 100, 100]
    assert list(trace(chart, "oracle").x) == [125]
    assert list(trace(chart, "closed-book").x) == [40]
    assert list(trace(chart, "knee").x) == [430]
    assert "Knee at k = 5" in chart.alt
    rows = {str(row["k"]): row for row in token_rows(tokens)}
    assert rows["5"]["mark"] == "best, knee"
    assert rows["1"]["n"] == 9
    assert rows["1"]["evidence recall"] == "30%"
    assert rows["oracle"]["evidence recall"] == "–"


def test_outcomes_are_counted_by_kind(tokens: TokenResult) -> None:
    chart = outcomes_by_k(tokens)
    assert list(trace(chart, "◆ wrong").y) == [9, 5, 3, 0, 4, 0]
    assert list(trace(chart, "✕ error").y) == [0, 0, 0, 1, 0, 0]
    hatches = [one.marker.pattern.shape or one.marker.color for one in chart.figure.data]
    assert len(set(hatches)) == 5
    first = outcome_rows(tokens)[1]
    assert (first["k"], first["correct"], first["abstained"], first["empty"], first["trials in all"]) == (
        "1",
        2,
        2,
        1,
        10,
    )


def test_unreported_tokens_are_said_and_not_made_up(tokens: TokenResult) -> None:
    cells = tuple(cell(f"case-{place}", arm, "correct", tokens=None) for arm in ("k:1", "k:all") for place in range(3))
    facts = tuple(Facts(f"case-{place}", 16, (0,)) for place in range(3))
    chart = token_curve(Tokens().analyse(Table(cells, facts), TokenOptions((1,)), Levels()))
    assert "reported no tokens" in chart.figure.layout.xaxis.title.text
    assert list(trace(chart, "reader").x) == [1, 2]
    assert "reported no tokens" not in token_curve(tokens).figure.layout.xaxis.title.text


def test_the_rank_strip_shows_the_parity_trap() -> None:
    cells = {
        (entry[0], entry[1]): entry[2]
        for entry in rank_strip(["as-retrieved", "langchain"], 4).figure.data[0].customdata
    }
    assert [cells["langchain", slot] for slot in range(1, 5)] == [2, 4, 3, 1]
    assert rank_rows(["langchain"], 4)[0]["best chunk"] == "last"
    assert rank_rows(["langchain"], 5)[0]["best chunk"] == "first"
    assert rank_rows(["edges"], 5)[0]["slot 5"] == 2
    assert "langchain: best chunk last" in rank_strip(["langchain"], 4).alt


def test_an_ordering_that_needs_the_chunks_is_not_guessed() -> None:
    assert rank_rows(["by-hand"], 3) == [{"ordering": "by-hand", "best chunk": "depends on the chunks"}]
    assert rank_rows(["by-hand"], 3, {"by-hand": (2, 0, 1)})[0]["best chunk"] == "slot 2 of 3"


def test_gains_have_the_result_s_numbers_and_mark_the_winner(ordered: OrderingResult) -> None:
    chart = gains(ordered)
    dots = chart.figure.data[0]
    assert list(dots.x) == pytest.approx([100 / 14, 100 * 12 / 14, 100 * 6 / 14])
    assert list(dots.marker.symbol) == ["circle", "star", "diamond"]
    best = ordered.arms[2].gain
    assert best is not None
    assert dots.error_x.arrayminus[1] == pytest.approx((best.value - best.low) * 100)
    assert "Winner: reverse" in chart.alt
    rows = gain_rows(ordered)
    assert [row["winner"] for row in rows] == ["", "winner", ""]
    assert [row["n"] for row in rows] == [14, 14, 14]
    shares = accuracies(ordered).figure.data[0]
    assert list(shares.x) == pytest.approx([100 * right / 14 for right in (2, 3, 14, 10, 4)])
    assert [row["right"] for row in accuracy_rows(ordered)] == [2, 3, 14, 10, 4]


def test_each_cell_of_the_grid_names_its_arm_and_its_interval(gridded: GridResult) -> None:
    chart = length_grid(gridded)
    cells = trace(chart, "cells")
    assert [entry[0] for entry in cells.customdata] == [one.figures.arm for one in gridded.cells]
    assert list(cells.x) == [0, 0, 0, 1, 1, 1]
    middles = [base + height / 2 for base, height in zip(cells.base, cells.y, strict=True)]
    assert middles == pytest.approx([0, 1, 2] * 2)
    assert list(chart.figure.layout.yaxis.ticktext) == ["0%", "50%", "100%"]
    assert max(cells.y) < 1  # no cell covers its neighbour
    assert cells.width < 1
    assert list(cells.text) == [
        "10/10<br>72 to 100%",
        "9/10<br>60 to 98%",
        "10/10<br>72 to 100%",
        "9/10<br>60 to 98%",
        "2/10<br>6 to 51%",
        "0/10<br>0 to 28%",
    ]
    opacity = cells.marker.opacity
    assert opacity[0] > opacity[1] > opacity[4] > opacity[5] == 0
    assert [shape.x0 for shape in chart.figure.layout.shapes] == [0.5]  # behind 500 tokens
    assert "up to 500 tokens" in chart.alt
    assert [row["right"] for row in grid_rows(gridded)] == [10, 9, 10, 9, 2, 0]
    assert [row["worst depth"] for row in range_rows(gridded)] == ["50%", "100%"]
    assert range_rows(gridded)[1]["keeps 70%"] == "no"


def test_no_cell_covers_another_where_few_documents_leave_out_depths() -> None:
    depths = (0.0, 0.25, 0.75, 1.0)
    cells = {grid_arm(500, depth): "cw" for depth in depths}
    drawn = trace(length_grid(LengthByPosition().analyse(table(cells), GridOptions((500,)), Levels())), "cells")
    spans = sorted((base, base + height) for base, height in zip(drawn.base, drawn.y, strict=True))
    assert len(spans) == len(depths)
    assert all(end < start for (_, end), (start, _) in pairwise(spans))


def test_no_difference_is_minus_zero() -> None:
    assert points(-0.001) == "+0 pts"
    assert interval(-0.001, 0.08, "pts") == "+0 to +8 pts"


def test_no_hostile_text_reaches_a_label() -> None:
    hostile = positions(CURVE, names=HOSTILE)
    references = [
        type(one)(HOSTILE, one.documents, one.points, one.oracle, one.closed_book, one.questions, HOSTILE)
        for one in read_references()[:1]
    ]
    overlays = [Overlay(HOSTILE, hostile), Overlay(HOSTILE, positions({**CURVE, "oracle": "wwwwwwww"}))]
    charts = [
        position_curves(overlays, references),
        position_curves(overlays, references, context_use=True),
        position_cost(overlays),
        swings(hostile),
        rank_strip([HOSTILE], 3, {HOSTILE: (0, 1, 2)}),
    ]
    for chart in charts:
        texts = [text for text in strings(chart.figure.to_plotly_json()) if "img" in text]
        assert texts
        assert not [text for text in texts if "<img" in text or "<b>bold" in text]


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from strings(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from strings(one)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_what_is_not_scored_is_not_drawn_as_zero(n: int) -> None:
    def arms(*names: str) -> Table:
        return table(dict.fromkeys(names, "e" * n)) if n else EMPTY

    curve = [Overlay("gemma", Positions().analyse(arms(*CURVE), PositionOptions(), Levels()))]
    for context_use in (False, True):
        chart = position_curves(curve, context_use=context_use)
        assert [list(one.y) for one in chart.figure.data] == ([] if context_use else [[]])
        assert len(chart.figure.layout.annotations) == 1
        assert not chart.figure.layout.shapes
    assert len(curve_rows(curve)) == (7 if n else 0)
    assert {row["accuracy"] for row in curve_rows(curve)} <= {"–"}
    assert len(position_cost(curve).figure.data) == (2 if n else 0)
    assert {row["pattern"] for row in swing_counts(curve[0].result)} <= {"not scored at every slot"}
    assert swings(curve[0].result).alt.endswith(".")

    sweep = Tokens().analyse(arms("k:1", "k:all", "oracle", "closed-book"), TokenOptions((1,)), Levels())
    assert not token_curve(sweep).figure.data
    assert [one.name for one in outcomes_by_k(sweep).figure.data] == (["○ empty"] if n else [])
    assert {row["accuracy"] for row in token_rows(sweep)} <= {"–"}

    names = ("ordering:as-retrieved", "ordering:edges", "distraction:without-hard", "distraction:without-easy")
    order = Orderings().analyse(arms(*names), OrderingOptions(("as-retrieved", "edges")), Levels())
    assert not gains(order).figure.data[0].x
    assert "No winner" in gains(order).alt
    assert not accuracies(order).figure.data[0].x
    assert {row["paired gain"] for row in gain_rows(order)} == {"–"}

    lengths = LengthByPosition().analyse(arms(grid_arm(500, 0.0)), GridOptions((500,)), Levels())
    assert list(trace(length_grid(lengths), "cells").text) == (["–"] if n else [])
    assert [row["keeps 70%"] for row in range_rows(lengths)] == (["open"] if n else [])


def test_no_curve_and_no_ordering_are_said() -> None:
    assert "Nothing is scored yet" in position_curves([]).figure.layout.annotations[0].text
    assert position_curves([], context_use=True).alt.endswith(".")
    assert "No ordering" in rank_strip([], 0).figure.layout.annotations[0].text
    assert rank_rows(["edges"], 1)[0]["best chunk"] == "first"


def test_one_point_is_drawn() -> None:
    chart = position_curves([Overlay("gemma", positions({"position:first": "c", "oracle": "c"}))])
    assert list(trace(chart, "gemma").y) == [100]
    assert list(chart.figure.layout.xaxis.ticktext) == ["first<br>1/1"]


@pytest.mark.parametrize(
    ("arm", "words"),
    [
        ("position:2+question-twice", "slot 3, question-twice"),
        ("k:all", "all chunks"),
        ("k:5", "k = 5"),
        ("ordering:edges+citations+every-passage", "edges, citations, every-passage"),
        ("grid:500:25", "500 tokens, 25% of the way"),
        ("distraction:without-hard", "without the best-ranked distractors"),
        ("closed-book", "closed-book"),
    ],
)
def test_arms_have_words(arm: str, words: str) -> None:
    assert arm_words(arm) == words


def test_ids_are_cut_in_the_middle() -> None:
    assert clip_middle("handbook-museum-opening-03", 13) == "hand…ening-03"
    assert clip_middle("short", 13) == "short"
