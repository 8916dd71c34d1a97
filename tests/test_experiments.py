"""The engine of the experiments: which prompts each arm sends, and figures worked out by hand or by scipy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from lim_core.errors import InputError, UnknownName
from lim_core.experiments import Cell, Facts, Levels, Table, cells_of, experiments, roll, subjects
from lim_core.experiments.arrangements import (
    WITHOUT_EASY,
    WITHOUT_HARD,
    OrderingOptions,
    expected_gain,
    ranks_by_slot,
)
from lim_core.experiments.cells import arm_figures, matrix
from lim_core.experiments.grid import GridOptions, filler
from lim_core.experiments.positions import SLOTS, PositionOptions, slot_arms
from lim_core.experiments.shapes import CurveTest, curve_test
from lim_core.experiments.tokens import TokenOptions
from lim_core.orderings import arrange
from lim_core.stats import wilson
from lim_core.text.normalise import contains_any
from lim_core.tokens import counter_for
from lim_core.types import Case, Chunk, Trial
from tests.questions import office_case
from tests.stored import a_trial

POSITIONS, TOKENS = experiments["positions"].part, experiments["tokens"].part
ORDERINGS, GRID = experiments["orderings"].part, experiments["grid"].part
LEVELS = Levels()


# --- arms ---------------------------------------------------------------------------------------------


def ids(trial: Trial) -> list[str]:
    return [span.chunk_id for span in trial.prompt.spans]


def sent(part, options, *, cases: Sequence[Case] = (office_case(),), block: int = 0) -> dict[str, Trial]:
    ready = subjects(cases, part.templates(options), retrieved=part.needs_retrieved_gold).ready
    return {trial.arm: trial for trial in reversed(part.trials(ready[0], ready, block, options, 0))}


def without(names: Sequence[str], gold: str = "c7") -> list[str]:
    return [name for name in names if name != gold]


@pytest.mark.parametrize("block", [0, 1, 2])
def test_position_arms_send_the_same_chunks_and_keep_the_distractors_in_order(block):
    made = sent(POSITIONS, PositionOptions(), block=block)
    slots = {arm: trial for arm, trial in made.items() if arm.startswith("position:")}
    assert {arm: trial.slot for arm, trial in slots.items()} == {
        "position:first": 0, "position:q1": 3, "position:middle": 7, "position:q3": 11, "position:last": 15,
    }  # fmt: skip
    orders = {tuple(without(ids(trial))) for trial in slots.values()}
    assert len(orders) == 1
    order = list(orders.pop())
    assert sorted(order) == sorted(without([f"c{i}" for i in range(16)]))
    assert (order == without([f"c{i}" for i in range(16)])) == (block == 0)
    for trial in slots.values():
        assert ids(trial)[trial.slot] == "c7"


def test_brackets_go_with_block_0_only_and_four_times_for_a_single_case():
    single = subjects([office_case()]).ready
    several = subjects([office_case(), replace(office_case(), id="other")]).ready
    for suite, times in ((single, 4), (several, 1)):
        names = [trial.arm for trial in POSITIONS.trials(suite[0], suite, 0, PositionOptions(), 0)]
        assert (names.count("oracle"), names.count("closed-book")) == (times, times)
    later = [trial.arm for trial in POSITIONS.trials(single[0], single, 1, PositionOptions(), 0)]
    assert sorted(later) == sorted(f"position:{name}" for name in SLOTS)
    made = sent(POSITIONS, PositionOptions())
    assert ids(made["oracle"]) == ["c7"]
    assert ids(made["closed-book"]) == []
    assert made["oracle"].prompt.messages[-1].content.count("Document [") == 1


def test_template_options_are_arms_of_their_own_over_the_same_order():
    made = sent(
        POSITIONS, PositionOptions(("first", "last"), 0, ("plain", "question-twice", "every-passage+citations"))
    )
    question = office_case().question
    plain, twice, both = (
        made[f"position:first{suffix}"] for suffix in ("", "+question-twice", "+every-passage+citations")
    )
    assert ids(plain) == ids(twice) == ids(both)
    assert [t.prompt.messages[-1].content.count(question) for t in (plain, twice, both)] == [1, 2, 1]
    assert "Read every document" in both.prompt.messages[-1].content
    assert "square brackets" in both.prompt.messages[-1].content
    assert "square brackets" not in plain.prompt.messages[-1].content


@pytest.mark.parametrize("block", [0, 1])
def test_the_first_k_chunks_nest_and_the_gold_keeps_its_rank(block):
    made = sent(TOKENS, TokenOptions((10, 1, 2, 5)), block=block)
    cuts = [made[f"k:{k}"] for k in ("1", "2", "5", "10", "all")]
    assert [len(ids(trial)) for trial in cuts] == [1, 2, 5, 10, 16]
    for shorter, longer in pairwise(cuts):
        text = shorter.prompt.messages[-1].content[: shorter.prompt.spans[-1].end]
        assert longer.prompt.messages[-1].content.startswith(text)
    assert [trial.slot for trial in cuts] == [None, None, None, 7, 7]
    assert (ids(cuts[-1]) == [f"c{i}" for i in range(16)]) == (block == 0)


def test_a_sweep_takes_cases_whose_gold_was_not_retrieved_and_still_asks_the_oracle():
    case = office_case()
    gold = case.chunks[7]
    lost = replace(case, chunks=case.chunks[:5], candidates=case.chunks)
    assert [one.reason for one in roll([lost], retrieved=True).left_out] == [
        "its gold chunk is not among the retrieved ones"
    ]
    made = sent(TOKENS, TokenOptions((1, 2)), cases=[lost])
    assert ids(made["oracle"]) == [gold.id]
    assert all(made[arm].slot is None for arm in ("k:1", "k:2", "k:all"))


def test_orderings_begin_with_their_real_prompt_and_later_keep_the_golds_slot():
    options = OrderingOptions(("as-retrieved", "edges", "langchain", "reverse"), distraction=0)
    real, later = sent(ORDERINGS, options), sent(ORDERINGS, options, block=3)
    for name in options.orderings:
        arranged = [chunk.id for chunk in arrange(name, office_case().chunks)]
        arm = f"ordering:{name}"
        assert ids(real[arm]) == arranged
        assert ids(later[arm]) != arranged
        assert later[arm].slot == real[arm].slot == arranged.index("c7")
    # All arms of a later block share one order of the distractors.
    assert len({tuple(without(ids(trial))) for trial in later.values()}) == 1


def test_an_order_by_hand_puts_the_named_chunks_in_front():
    options = OrderingOptions.from_json({"orderings": ["edges"], "by_hand": ["c7", "c3"], "distraction": 0})
    assert options.orderings == ("as-retrieved", "edges", "by-hand")
    made = sent(ORDERINGS, options)
    assert ids(made["ordering:by-hand"]) == ["c7", "c3", *(f"c{i}" for i in range(16) if i not in (3, 7))]


@pytest.mark.parametrize("block", [0, 2])
@pytest.mark.parametrize(("n", "taken"), [(16, 3), (10, 3), (5, 2)])
def test_the_distraction_arms_lose_as_many_chunks_from_either_end_of_the_ranks(block, n, taken):
    case = office_case(n, 1)
    made = sent(ORDERINGS, OrderingOptions(("as-retrieved",), distraction=3), cases=[case], block=block)
    hard, easy = ids(made[WITHOUT_HARD]), ids(made[WITHOUT_EASY])
    ranked = without([chunk.id for chunk in case.chunks], "c1")
    assert len(hard) == len(easy) == n - taken
    assert set(ranked) - set(hard) == set(ranked[:taken])
    assert set(ranked) - set(easy) == set(ranked[-taken:])
    assert "c1" in hard
    assert "c1" in easy


def library(number: int, chunks: int = 12) -> Case:
    """A case whose chunks have the ids that every other case's have too, and texts of its own."""
    body = tuple(
        Chunk(
            f"c{place}",
            f"Shelf {number}.{place} of the Holm library holds {'maps and letters ' * (5 + place)}"
            f"{f'signed by keeper Arvid {number}' if place == 4 else ''}.",
        )
        for place in range(chunks)
    )
    return Case(f"lib{number}", f"Who signed shelf {number}.4?", body, answers=(f"Arvid {number}",), gold_ids=("c4",))


@pytest.mark.parametrize("block", [0, 1])
def test_grid_prompts_have_the_length_asked_for_at_evenly_spaced_depths(block):
    options = GridOptions((250, 500, 1000, 2000, 50_000), depths=5)
    cases = [library(number) for number in range(1, 10)]
    made = sent(GRID, options, cases=cases, block=block)
    assert {arm.rsplit(":", 1)[0] for arm in made} == {"grid:250", "grid:500", "grid:1000", "grid:2000"}
    counter = counter_for(None)
    for length in (250, 500, 1000, 2000):
        row = {float(arm.rsplit(":", 1)[1]): trial for arm, trial in made.items() if arm.startswith(f"grid:{length}:")}
        assert sorted(row) == [0, 25, 50, 75, 100]
        last = len(ids(row[0])) - 1
        for depth, trial in row.items():
            assert trial.slot == round(depth / 100 * last)
            assert sorted(ids(trial)) == sorted(ids(row[0]))
            assert 0.75 * length <= counter.count_messages(trial.prompt.messages).n <= 1.25 * length


def test_where_slots_are_few_the_last_one_is_the_depth_of_100():
    case = replace(library(1, 5), chunks=library(1, 5).chunks[2:])
    length = (
        counter_for(None)
        .count_messages(sent(POSITIONS, PositionOptions(), cases=[case])["position:first"].prompt.messages)
        .n
    )
    made = sent(GRID, GridOptions((length,), depths=5), cases=[case])
    assert {arm.rsplit(":", 1)[1]: trial.slot for arm, trial in made.items()} == {"0": 0, "50": 1, "100": 2}


def test_filler_is_the_cases_own_then_the_others_whatever_their_ids_and_holds_no_answer():
    first, second = library(1), library(2)
    spoiled = replace(second, chunks=(Chunk("x", "A copy of the list names Arvid 1 too."), *second.chunks))
    ready = subjects([first, spoiled]).ready
    kept = filler(ready[0], ready)
    assert [chunk.id for chunk in kept[:11]] == [f"c{place}" for place in range(12) if place != 4]
    assert [chunk.text for chunk in kept[11:]] == [chunk.text for chunk in second.chunks]
    assert len({chunk.id for chunk in kept}) == len(kept) == 23
    assert not any(contains_any(first.answers, chunk.text) for chunk in kept)


def test_cases_that_cannot_take_part_say_what_they_lack():
    case = office_case()
    suite = [
        replace(case, id="no-answers", answers=()),
        replace(case, id="no-gold", answers=("Nobody at all",), gold_ids=()),
        replace(case, id="spoiled", answers=(*case.answers, "Ivo Stanek")),
        case,
    ]
    found = subjects(suite)
    reasons = {one.case_id: one.reason for one in found.left_out}
    assert reasons["no-answers"] == "it has no answers"
    assert reasons["no-gold"] == "no chunk holds an answer"
    assert reasons["spoiled"].startswith("the chunk c3 holds an answer too")
    assert [one.case.id for one in found.ready] == ["offices"]
    again = roll(suite)
    assert again.left_out == found.left_out
    assert again.facts == tuple(one.facts for one in found.ready) == (Facts("offices", 16, (7,)),)
    with pytest.raises(InputError, match=r"no-answers: it has no answers"):
        subjects(suite[:1])


@pytest.mark.parametrize(
    ("kind", "plan"),
    [
        ("positions", {"positions": ["top"]}),
        ("positions", {"positions": []}),
        ("positions", {"blocks": -1}),
        ("positions", {"templates": ["loud"]}),
        ("tokens", {"k": [0, 1]}),
        ("tokens", {"k": [True]}),
        ("tokens", {"templates": ["plain", "citations"]}),
        ("orderings", {"orderings": ["sideways"]}),
        ("orderings", {"orderings": ["by-hand"]}),
        ("orderings", {"orderings": ["edges", "reverse"], "templates": ["plain", "citations", "every-passage"]}),
        ("grid", {"lengths": [10]}),
        ("grid", {"depths": 1}),
        ("grid", {"threshold": 1.5}),
    ],
)
def test_options_that_cannot_be_used_are_refused(kind, plan):
    with pytest.raises((InputError, UnknownName)):
        experiments[kind].part.read(plan)


# --- cells and figures --------------------------------------------------------------------------------


def cell(
    case_id: str, arm: str, right: int, n: int = 1, *, block: int = 0, empty: int = 0, slot=None, tokens=100.0
) -> Cell:
    return Cell(case_id, arm, block, slot, None, right, n - right, 0, empty, 0, right, n - right, tokens, 5.0, 0.5)


def planted(columns: Mapping[str, Sequence[int]], *, ranks: Sequence[int] = (), chunks: int = 5) -> Table:
    """One trial a case and arm; a column lists the cases' outcomes, its arm's slot is its place."""
    cases = len(next(iter(columns.values())))
    cells = [
        cell(f"case{row}", arm, values[row], slot=slot)
        for row in range(cases)
        for slot, (arm, values) in enumerate(columns.items())
    ]
    facts = [Facts(f"case{row}", chunks, (ranks[row] if ranks else 2,)) for row in range(cases)]
    return Table(tuple(cells), tuple(facts))


def first_right(right: int, n: int = 40) -> list[int]:
    return [1] * right + [0] * (n - right)


def curve(*right: int, n: int = 40) -> Table:
    """Slots first to last with so many of n cases right, always the first ones."""
    return planted({f"position:{name}": first_right(k, n) for name, k in zip(SLOTS, right, strict=True)})


def judged(table: Table) -> CurveTest:
    return POSITIONS.analyse(table, PositionOptions(), LEVELS).curves[0].test


def test_trials_are_folded_by_case_arm_and_block():
    first, again, wrong = a_trial(0), a_trial(1), a_trial(3)
    failed = a_trial(2, fault="timeout", text="")
    (cell0, cell1) = cells_of([first, again, failed, wrong])
    assert (cell0.block, cell0.correct, cell0.error, cell0.n, cell0.trials) == (0, 2, 1, 2, 3)
    assert cell0.prompt_tokens == pytest.approx((100 + 101 + 102) / 3)
    assert cell0.seconds == 0.25
    assert (cell1.block, cell1.n) == (1, 1)


@pytest.mark.parametrize("right", [0, 5, 8])
def test_units_of_0_and_1_have_wilsons_interval(right):
    figures = arm_figures(planted({"position:first": first_right(right, 8)}), "position:first")
    expected = stats.binomtest(right, 8).proportion_ci(method="wilson")
    assert (figures.n, figures.trials, figures.right, figures.accuracy) == (8, 8, right, right / 8)
    assert (figures.low, figures.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_repeats_are_averaged_inside_their_case_first():
    shares = [0, 1, 2, 3, 4] * 8
    cells = [cell(f"case{row}", "a", right, 4, block=0) for row, right in enumerate(shares)]
    # A second block of the same case is one more repeat, not one more unit.
    cells += [cell(f"case{row}", "a", right, 4, block=1) for row, right in enumerate(shares)]
    table = Table(tuple(cells), tuple(Facts(f"case{row}", 5, (0,)) for row in range(40)))
    figures = arm_figures(table, "a")
    values = np.array(shares) / 4
    half = stats.t.ppf(0.975, 39) * stats.sem(values)
    assert (figures.n, figures.trials) == (40, 320)
    assert figures.accuracy == pytest.approx(0.5)
    assert (figures.low, figures.high) == pytest.approx((0.5 - half, 0.5 + half))


def test_with_one_case_the_unit_is_the_block_and_each_sending_of_a_bracket():
    cells = [cell("only", "position:first", int(block < 6), block=block) for block in range(8)]
    cells.append(cell("only", "oracle", 3, 4))
    table = Table(tuple(cells), (Facts("only", 5, (0,)),))
    slots, oracle = arm_figures(table, "position:first"), arm_figures(table, "oracle")
    expected = stats.binomtest(3, 4).proportion_ci(method="wilson")
    assert (slots.n, slots.accuracy) == (8, 0.75)
    assert (oracle.n, oracle.accuracy) == (4, 0.75)
    assert (oracle.low, oracle.high) == pytest.approx((expected.low, expected.high))


def test_unscored_trials_are_counted_and_never_averaged():
    cells = (cell("a", "x", 1), cell("b", "x", 0, 0, empty=1), cell("c", "x", 0))
    table = Table(cells, tuple(Facts(name, 5, (0,)) for name in "abc"))
    figures = arm_figures(table, "x")
    assert (figures.n, figures.accuracy, figures.outcomes.empty) == (2, 0.5, 1)
    grid = matrix(table, ["x"])
    assert grid.units == ("a", "b", "c")
    assert math.isnan(grid.values[1, 0])


# --- position curves ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "shape"),
    [
        ((36, 16, 14, 16, 34), "u"),
        ((38, 16, 15, 14, 15), "primacy"),
        ((14, 15, 14, 16, 38), "recency"),
        ((12, 36, 38, 36, 14), "inverted"),
        ((40, 39, 38, 4, 2), "cliff"),
        ((40, 39, 3, 2, 2), "cliff"),
        ((40, 40, 40, 40, 40), "flat"),
        ((20, 20, 20, 20, 20), "flat"),
        ((26, 20, 18, 21, 25), "unclear"),
    ],
)
def test_a_planted_shape_is_named(right, shape):
    rng = np.random.default_rng(1)
    columns = {f"position:{name}": first_right(k) for name, k in zip(SLOTS, right, strict=True)}
    if shape != "flat":
        # Which cases are right differs by slot.
        columns = {arm: list(rng.permutation(values)) for arm, values in columns.items()}
    assert judged(planted(columns)).shape == shape


def test_flat_is_shown_by_equivalence_and_not_by_a_large_p():
    few, many = judged(curve(5, 5, 5, 5, 5, n=5)), judged(curve(40, 40, 40, 40, 40))
    assert few.p_any == many.p_any == 1.0
    assert (few.shape, many.shape) == ("unclear", "flat")
    assert few.reason == "5 cases do not settle it"
    assert few.more is not None
    assert few.more > 0
    assert many.more is None


def test_the_gap_and_the_worst_slot_are_those_worked_out_by_hand():
    found = judged(curve(36, 16, 10, 16, 34))
    assert found.n == 40
    assert found.gap.value == pytest.approx((36 + 34) / 80 - (16 + 10 + 16) / 120)
    assert found.worst_arm == "position:middle"
    # Wilson of the picked slot at 1 - .05/5 above, and the least Wilson low end below.
    high = stats.binomtest(10, 40).proportion_ci(1 - 0.05 / 5, "wilson").high
    low = stats.binomtest(10, 40).proportion_ci(0.95, "wilson").low
    assert (found.worst.low, found.worst.high) == pytest.approx((low, high))


def test_too_many_unscored_trials_leave_the_shape_unclear_with_the_reason():
    cells = [
        cell(f"case{row}", f"position:{name}", 0, 0, empty=1, slot=slot)
        if row < 9 and slot < 5
        else cell(f"case{row}", f"position:{name}", int(slot in (0, 4)), slot=slot)
        for row in range(40)
        for slot, name in enumerate(SLOTS)
    ]
    table = Table(tuple(cells), tuple(Facts(f"case{row}", 5, (2,)) for row in range(40)))
    found = judged(table)
    assert (found.shape, found.reason, found.n) == ("unclear", "45 of 200 trials gave nothing to score", 31)
    # Without the nine cases the same answers are a clear U.
    assert judged(table.only(f"case{row}" for row in range(9, 40))).shape == "u"


def test_an_arm_that_loses_20_points_more_than_another_leaves_it_unclear():
    cells = [
        cell(f"case{row}", f"position:{name}", 0, 0, empty=1, slot=slot)
        if row < 9 and name == "middle"
        else cell(f"case{row}", f"position:{name}", int(slot in (0, 4)), slot=slot)
        for row in range(40)
        for slot, name in enumerate(SLOTS)
    ]
    found = judged(Table(tuple(cells), tuple(Facts(f"case{row}", 5, (2,)) for row in range(40))))
    assert found.shape == "unclear"
    assert "22% of the trials of position:middle" in found.reason


def blocks_of_one_case(values: Mapping[str, int], blocks: int, order: Sequence[int] = ()) -> Table:
    cells = [
        cell("only", f"position:{name}", value, block=block, slot=slot)
        for block in (order or range(blocks))
        for slot, (name, value) in enumerate(values.items())
    ]
    return Table(tuple(cells), (Facts("only", 10, (2,)),))


def test_one_case_is_tested_over_its_blocks_at_first_middle_and_last():
    # The second of four slots is not the middle one.
    table = blocks_of_one_case({"first": 1, "q1": 1, "middle": 0, "last": 1}, 8)
    found = judged(table)
    assert (found.shape, found.unit, found.n) == ("u", "block", 8)
    assert found.e_value >= 20
    shuffled = blocks_of_one_case({"first": 1, "q1": 1, "middle": 0, "last": 1}, 8, [5, 2, 7, 0, 1, 6, 3, 4])
    assert judged(shuffled).e_value == found.e_value


def test_figures_do_not_depend_on_the_order_in_which_trials_finished():
    rng = np.random.default_rng(3)
    arms = [f"position:{name}" for name in SLOTS]
    table = planted({arm: [int(v) for v in rng.random(40) < 0.6] for arm in arms})
    mixed = Table(tuple(table.cells[int(at)] for at in rng.permutation(len(table.cells))), table.facts)
    assert mixed.cells != table.cells
    before = POSITIONS.analyse(table, PositionOptions(), LEVELS)
    assert 0 < before.curves[0].test.p_any < 1
    assert POSITIONS.analyse(mixed, PositionOptions(), LEVELS) == before


def test_a_cliff_is_named_only_after_an_effect_was_shown():
    fall = {"first": 1, "q1": 1, "middle": 1, "q3": 0, "last": 0}
    early, late = judged(blocks_of_one_case(fall, 2)), judged(blocks_of_one_case(fall, 12))
    assert early.e_value < 20
    assert early.shape == "unclear"
    assert late.e_value >= 20
    assert (late.shape, late.reason) == ("cliff", "")


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (curve(1, 0, 0, 0, 1, n=1).only(["case0"]), "one block proves nothing"),
        (
            planted({"position:first": first_right(9), "position:last": first_right(30)}),
            "fewer than three distinct slots",
        ),
        (Table((), (Facts("a", 5, (0,)), Facts("b", 5, (0,)))), "no trial has finished yet"),
    ],
)
def test_too_little_is_unclear_and_says_why(table, reason):
    assert judged(table).reason == reason


def test_cases_without_every_slot_stay_out_of_the_test_and_it_says_so():
    table = curve(6, 6, 6, 6, 6, n=6)
    gone = {f"case{row}" for row in range(2)}
    short = Table(
        tuple(one for one in table.cells if one.case_id not in gone or one.arm != "position:last"), table.facts
    )
    assert judged(short).reason == "4 cases do not settle it, and only they of 6 are scored at every slot"
    none = Table(
        tuple(one for one in table.cells if (one.arm == "position:last") == (one.case_id in gone)), table.facts
    )
    assert judged(none).reason == "no case is scored at every slot"


def test_slots_are_sorted_by_where_they_stand_named_or_numbered():
    case = office_case()
    ready = subjects([case, replace(case, id="short", chunks=case.chunks[:10])]).ready
    for names in (("last", "12", "first", "middle", "2"), ("all",)):
        options = PositionOptions(names)
        cells = [
            cell(trial.case_id, trial.arm, 1, slot=trial.slot)
            for subject in reversed(ready)
            for trial in POSITIONS.trials(subject, ready, 0, options, 0)
        ]
        table = Table(tuple(cells), tuple(subject.facts for subject in ready))
        found = slot_arms(table, "plain")
        if names == ("all",):
            assert found == tuple(f"position:{slot}" for slot in range(16))
        else:
            assert found == tuple(f"position:{name}" for name in ("first", "2", "middle", "12", "last"))


def test_swings_are_each_cases_own_values():
    result = POSITIONS.analyse(curve(2, 1, 0, 1, 2, n=2), PositionOptions(), LEVELS)
    assert [(swing.case_id, swing.values) for swing in result.swings] == [
        ("case0", (1.0, 1.0, 0.0, 1.0, 1.0)),
        ("case1", (1.0, 0.0, 0.0, 0.0, 1.0)),
    ]


def test_a_flat_suite_is_called_anything_else_at_most_as_often_as_alpha_says():
    rng = np.random.default_rng(20)
    draws, named = 120, 0
    arms = [f"position:{name}" for name in SLOTS]
    for draw in range(draws):
        chance = np.clip(rng.choice([0.3, 0.5, 0.7, 0.9]) + rng.normal(0, 0.2, size=(40, 1)), 0.02, 0.98)
        answers = (rng.random((40, 5)) < chance).astype(int)
        table = planted({arm: [int(v) for v in answers[:, place]] for place, arm in enumerate(arms)})
        named += curve_test(table, arms, Levels(seed=draw), "case").shape not in ("flat", "unclear")
    # More than so many would happen once in a thousand if the rate were alpha.
    assert named <= stats.binom.ppf(0.999, draws, LEVELS.alpha)


# --- tokens -------------------------------------------------------------------------------------------


def cuts(right: Mapping[str, int], tokens: Mapping[str, float], n: int = 40) -> Table:
    cells = [cell(f"case{row}", arm, int(row < k), tokens=tokens[arm]) for row in range(n) for arm, k in right.items()]
    ranks = [(0,), (2,), (5,), ()]
    return Table(tuple(cells), tuple(Facts(f"case{row}", 12, ranks[row % 4]) for row in range(n)))


SIZES = {"k:1": 150.0, "k:3": 400.0, "k:5": 640.0, "k:all": 1600.0}


@pytest.mark.parametrize(
    ("right", "knee"),
    [
        # best .85, one standard error .0565: from .7935 on
        ({"k:1": 20, "k:3": 31, "k:5": 32, "k:all": 34}, 2),
        ({"k:1": 20, "k:3": 32, "k:5": 33, "k:all": 34}, 1),
        # best 1.0 has no error: nothing less will do
        ({"k:1": 39, "k:3": 39, "k:5": 40, "k:all": 40}, 2),
        # more chunks do harm
        ({"k:1": 10, "k:3": 36, "k:5": 20, "k:all": 12}, 1),
    ],
)
def test_the_knee_is_the_smallest_cut_within_one_standard_error_of_the_best(right, knee):
    result = TOKENS.analyse(cuts(right, SIZES), TokenOptions((1, 3, 5)), LEVELS)
    assert result.knee == knee
    assert result.reason == ""


def test_recall_and_what_the_knee_saves():
    table = cuts({"k:1": 10, "k:3": 36, "k:5": 30, "k:all": 22}, SIZES)
    result = TOKENS.analyse(table, TokenOptions((1, 3, 5)), LEVELS)
    assert [point.k for point in result.points] == [1, 3, 5, None]
    assert [point.recall.value for point in result.points] == [0.25, 0.5, 0.5, 0.75]
    expected = stats.binomtest(20, 40).proportion_ci(method="wilson")
    assert (result.points[1].recall.low, result.points[1].recall.high) == pytest.approx((expected.low, expected.high))
    assert (result.saving.tokens, result.saving.share) == (1200.0, 0.75)
    # 14 of 40 gained, none lost.
    assert result.saving.gain.value == pytest.approx(14 / 40)
    assert result.saving.p == pytest.approx(stats.binomtest(14, 14).pvalue)
    assert "1,200 prompt tokens a call saved (75%)" in TOKENS.summary(result)


def test_cuts_are_compared_over_the_cases_that_were_sent_all_of_them():
    # A sweep cut off: thirty cases have the smallest cut only, and are wrong there.
    full, rest = cuts({"k:1": 10, "k:all": 10}, SIZES, 10), cuts({"k:1": 0}, SIZES, 40)
    cells = (*full.cells, *(one for one in rest.cells if int(one.case_id[4:]) >= 10))
    result = TOKENS.analyse(Table(cells, rest.facts), TokenOptions((1,)), LEVELS)
    assert result.points[0].figures.accuracy == 0.25
    assert result.knee == 0


def test_without_the_arm_of_all_chunks_nothing_is_said_to_be_saved():
    result = TOKENS.analyse(cuts({"k:1": 20, "k:3": 38, "k:5": 38}, SIZES), TokenOptions((1, 3, 5)), LEVELS)
    assert result.knee == 1
    assert result.saving is None
    assert "all chunks" not in TOKENS.summary(result)


def test_one_observation_a_cut_names_no_knee():
    result = TOKENS.analyse(cuts({"k:1": 0, "k:all": 1}, SIZES, 1), TokenOptions((1,)), LEVELS)
    assert result.knee is None
    assert "fewer than two" in result.reason


# --- orderings ----------------------------------------------------------------------------------------


def orders(**right: Sequence[int]) -> Table:
    return planted({f"ordering:{name.replace('_', '-')}": values for name, values in right.items()})


COMPARED = OrderingOptions(("as-retrieved", "edges", "reverse", "langchain"), distraction=0)


def test_p_values_are_exact_and_holms():
    base = first_right(20)
    result = ORDERINGS.analyse(
        orders(as_retrieved=base, edges=first_right(32), reverse=first_right(26), langchain=first_right(12)),
        COMPARED,
        LEVELS,
    )
    raw = [stats.binomtest(k, k).pvalue for k in (12, 6, 8)]
    assert [row.p for row in result.arms[1:]] == pytest.approx(raw)
    # Sorted: 12 changes x 3, 8 changes x 2, 6 changes x 1, never falling.
    first, third = 3 * raw[0], 2 * raw[2]
    assert [row.p_holm for row in result.arms[1:]] == pytest.approx([first, max(third, raw[1]), third])
    assert [row.gain.value for row in result.arms[1:]] == pytest.approx([0.3, 0.15, -0.2])
    assert (result.arms[0].gain, result.arms[0].p) == (None, None)
    assert result.winner == "ordering:edges"


def test_an_interval_above_zero_is_no_winner_unless_holm_agrees():
    table = orders(
        as_retrieved=first_right(20), edges=first_right(25), reverse=first_right(20), langchain=first_right(20)
    )
    result = ORDERINGS.analyse(table, COMPARED, LEVELS)
    assert result.arms[1].gain.low > 0
    assert result.arms[1].p_holm > 0.05
    assert (result.winner, result.reason) == (None, "no gain holds over 40 cases after Holm")


def test_many_unscored_trials_name_no_winner():
    table = orders(as_retrieved=first_right(4), edges=first_right(40), reverse=first_right(4), langchain=first_right(4))
    lost = tuple(
        replace(one, correct=0, wrong=0, empty=1)
        if one.arm == "ordering:reverse" and int(one.case_id[4:]) < 10
        else one
        for one in table.cells
    )
    assert ORDERINGS.analyse(table, COMPARED, LEVELS).winner == "ordering:edges"
    result = ORDERINGS.analyse(Table(lost, table.facts), COMPARED, LEVELS)
    assert result.winner is None
    assert "25% of the trials of ordering:reverse" in result.reason


def test_distraction_is_the_paired_difference_at_equal_volume():
    table = planted(
        {"ordering:as-retrieved": first_right(10), WITHOUT_HARD: first_right(30), WITHOUT_EASY: first_right(12)},
        chunks=9,
    )
    result = ORDERINGS.analyse(table, OrderingOptions(("as-retrieved",), distraction=3), LEVELS)
    assert result.distraction.gain.value == pytest.approx(18 / 40)
    assert result.distraction.taken == 3
    assert "filter or rerank before you reorder" in ORDERINGS.summary(result)
    short = Table(table.cells, tuple(replace(fact, chunks=5) for fact in table.facts))
    assert ORDERINGS.analyse(short, OrderingOptions(("as-retrieved",), distraction=3), LEVELS).distraction.taken == 2


def falling(rows: int = 4):
    """Answers of a curve that falls from 1 at the first slot over .5 to 0 at the last: a(slot) = 1 - share."""
    half = [(1, 1, 0), (1, 0, 0)] * (rows // 2)
    columns = {arm: [row[place] for row in half] for place, arm in enumerate(("a", "b", "c"))}
    return matrix(planted(columns), ["a", "b", "c"])


def ranked(ranks: Sequence[int], chunks: int) -> Table:
    return Table((), tuple(Facts(f"case{row}", chunks, (rank,)) for row, rank in enumerate(ranks)))


@pytest.mark.parametrize(
    ("ordering", "gain"),
    [
        # five chunks, ranks 0, 1, 4. edges A C E D B puts them at 0, 4, 2: 0, -.75, +.5
        ("edges", (0 - 0.75 + 0.5) / 3),
        # reverse puts them at 4, 3, 0: -1, -.5, +1
        ("reverse", (-1 - 0.5 + 1) / 3),
        ("as-retrieved", 0.0),
    ],
)
def test_expected_gain_is_the_curve_at_the_new_slots_less_the_curve_at_the_old(ordering, gain):
    found = expected_gain(falling(), (0.0, 0.5, 1.0), ranked([0, 1, 4], 5), ordering)
    assert found.gain.value == pytest.approx(gain)
    assert found.gain.n == 3
    assert found.gain.low <= gain + 1e-9
    assert found.gain.high >= gain - 1e-9


@pytest.mark.parametrize(("chunks", "slots", "gain"), [(4, (1, 3, 2, 0), -1.0), (5, (0, 2, 4, 3, 1), 0.0)])
def test_langchain_puts_the_best_chunk_last_where_the_number_is_even(chunks, slots, gain):
    assert ranks_by_slot("langchain", chunks) == slots
    found = expected_gain(falling(), (0.0, 0.5, 1.0), ranked([0, 0, 0], chunks), "langchain").gain
    # The ends of the curve are certain here, so the interval is a point.
    assert (found.value, found.low, found.high) == pytest.approx((gain, gain, gain))


def test_expected_gain_needs_gold_ranks_and_scored_slots():
    with pytest.raises(ValueError, match="gold ranks"):
        expected_gain(falling(), (0.0, 0.5, 1.0), Table((), (Facts("a", 5, ()),)), "edges")


# --- length by position -------------------------------------------------------------------------------


def lengths(worst: Mapping[int, int], n: int = 40) -> Table:
    columns = {}
    for length, right in worst.items():
        columns |= {f"grid:{length}:{depth}": first_right(right if depth == 50 else 40, n) for depth in (0, 50, 100)}
    return planted(columns)


@pytest.mark.parametrize(
    ("worst", "reached", "shown"),
    [
        ({500: 38, 1000: 34, 2000: 20}, 1000, 1000),
        ({500: 38, 1000: 30, 2000: 20}, 1000, 500),
        # A length that fails ends the range, whatever comes after it.
        ({500: 20, 1000: 40, 2000: 40}, None, None),
        ({500: 28, 1000: 27, 2000: 40}, 500, None),
    ],
)
def test_the_operating_range_ends_before_the_first_length_whose_worst_depth_fails(worst, reached, shown):
    result = GRID.analyse(lengths(worst), GridOptions((500, 1000, 2000), 3, 0.7), LEVELS)
    assert (result.operating_range, result.shown_range) == (reached, shown)
    assert [row.worst.value for row in result.rows] == pytest.approx([right / 40 for right in worst.values()])
    holds = [row.holds for row in result.rows]
    for row, right, verdict in zip(result.rows, worst.values(), holds, strict=True):
        low = stats.binomtest(right, 40).proportion_ci(0.95, "wilson").low
        high = stats.binomtest(right, 40).proportion_ci(1 - 0.05 / 3, "wilson").high
        assert (row.worst.low, row.worst.high) == pytest.approx((low, high))
        assert verdict is (True if low >= 0.7 else False if high < 0.7 else None)
    assert ("tokens the worst depth stays" in GRID.summary(result)) == (reached is not None)
    # What a list clips is the end: whether it is shown stands first.
    assert GRID.summary(result).startswith(
        "Shown up to" if shown else "Measured, but not yet shown" if reached else "No "
    )


def test_equal_replies_to_one_prompt_are_one_observation() -> None:
    said = Cell("one", "oracle", 0, 0, None, 4, 0, 0, 0, 0, 1, 0, 100.0, 5.0, 0.5)
    figures = arm_figures(Table((said,), (Facts("one", 8, (3,)),)), "oracle")
    assert (figures.right, figures.trials, figures.n) == (4, 4, 1)
    assert figures.accuracy == 1
    assert figures.low == pytest.approx(wilson(1, 1).low)
