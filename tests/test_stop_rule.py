"""The position test: fair under equal accuracy whatever the dependence, quick where there is an effect."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy import stats as reference

from lim_core.stats import slot_bets
from lim_core.stats.stop_rule import SlotCount, SlotTest, find_cliff

OUTCOMES = np.array(list(itertools.product((0, 1), repeat=3)))  # first, middle, last, in the order of kinds 0..7


def _equal_laws() -> list[np.ndarray]:
    """Laws of one block with equal accuracy of the three slots: independent, and as dependent as can be."""
    laws = []
    for p in (0.3, 0.5, 0.9):
        laws.append(np.prod(np.where(OUTCOMES == 1, p, 1 - p), axis=1))
        # First and last always alike, the middle on its own: exchangeable bets fail here.
        alike = np.where(OUTCOMES[:, 0] == 1, p, 1 - p) * np.where(OUTCOMES[:, 1] == 1, p, 1 - p)
        laws.append(np.where(OUTCOMES[:, 0] == OUTCOMES[:, 2], alike, 0.0))
    # Edges always the opposite of the middle, and the two edges always opposite.
    laws.append(np.array([0, 0, 0.5, 0, 0, 0.5, 0, 0]))
    laws.append(np.array([0, 0.25, 0, 0.25, 0.25, 0, 0.25, 0]))
    # Random laws, tilted until all three accuracies agree.
    rng = np.random.default_rng(7)
    for _ in range(4):
        law = rng.dirichlet(np.full(8, 0.4))
        for _ in range(4000):
            for slot in range(3):
                share = law @ OUTCOMES[:, slot]
                law = law * np.where(OUTCOMES[:, slot] == 1, 0.5 / share, 0.5 / (1 - share))
        laws.append(law)
    return laws


LAWS = _equal_laws()


def _blocks(test: SlotTest, first: int | None, middle: int | None, last: int | None, times: int = 1) -> SlotTest:
    for _ in range(times):
        test.add(*(None if right is None else bool(right) for right in (first, middle, last)))
    return test


def _counts(sequences: np.ndarray) -> np.ndarray:
    return np.cumsum(np.eye(8, dtype=np.int64)[sequences], axis=1)


# All right and all wrong pay alike, so seven classes of outcome will do: every course of six blocks.
SEVEN = np.array(list(itertools.product(range(7), repeat=6)))


@cache
def _log_e_of_seven() -> np.ndarray:
    return slot_bets.log_e_values(_counts(SEVEN))


@pytest.mark.parametrize("law", LAWS)
def test_laws_of_the_null_have_equal_accuracy(law: np.ndarray) -> None:
    assert law.sum() == pytest.approx(1)
    assert law @ OUTCOMES == pytest.approx([law @ OUTCOMES[:, 0]] * 3, abs=1e-9)


# --- validity -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_the_e_value_has_mean_one_under_every_null_law(law: np.ndarray) -> None:
    sequences = np.array(list(itertools.product(range(8), repeat=4)))
    weight = law[sequences].prod(axis=1)
    e = np.exp(slot_bets.log_e_values(_counts(sequences)[:, -1]))
    assert weight @ e == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("alpha", [0.1, 0.3])
def test_ever_reaching_one_over_alpha_is_as_rare_as_promised(law: np.ndarray, alpha: float) -> None:
    merged = law.copy()
    merged[0] += merged[7]
    weight = merged[SEVEN].prod(axis=1)
    assert weight.sum() == pytest.approx(1)
    assert weight[_log_e_of_seven().max(axis=1) >= -math.log(alpha)].sum() <= alpha


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("dropped", [0, 1, 2])
def test_a_block_with_an_unscored_arm_is_a_fair_bet_too(law: np.ndarray, dropped: int) -> None:
    mean = 0.0
    for outcome, weight in zip(OUTCOMES, law, strict=True):
        arms = [None if slot == dropped else int(right) for slot, right in enumerate(outcome)]
        mean += weight * _blocks(SlotTest(), *arms).e_value
    assert mean == pytest.approx(1.0, abs=1e-9)


def test_no_outcome_ruins_the_mixture() -> None:
    counts = np.eye(slot_bets.KINDS, dtype=np.int64) * 500
    assert np.isfinite(slot_bets.log_e_values(counts)).all()


@pytest.mark.parametrize("p", [0.3, 0.5, 0.9])
@pytest.mark.parametrize("dependent", [False, True])
def test_false_alarms_within_64_blocks(p: float, dependent: bool) -> None:
    correlation = np.array([[1, 0.2, 0.9], [0.2, 1, 0.2], [0.9, 0.2, 1]]) if dependent else np.eye(3)
    normal = np.random.default_rng(5).standard_normal((3000, 64, 3)) @ np.linalg.cholesky(correlation).T
    kinds = (normal < reference.norm.ppf(p)) @ np.array([4, 2, 1])
    ever = (slot_bets.log_e_values(_counts(kinds)) >= math.log(20)).any(axis=1)
    assert ever.mean() <= 0.05
    assert ever.mean() > 0.005  # a test that never fires has no error rate to boast of


@pytest.mark.parametrize("delta", [0.1, 0.2, 0.4])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("edge", [0, 2])
def test_flat_is_fair_where_one_edge_is_just_delta_away(delta: float, sign: int, edge: int) -> None:
    # That edge and the middle differ by delta; the other edge always copies the middle.
    law = np.zeros(8)
    better, worse = (0.6, 0.6 - delta) if sign > 0 else (0.6 - delta, 0.6)
    for edge_right, middle_right in itertools.product((0, 1), repeat=2):
        outcome = [middle_right] * 3
        outcome[edge] = edge_right
        weight = (better if edge_right else 1 - better) * (worse if middle_right else 1 - worse)
        law[outcome[0] * 4 + outcome[1] * 2 + outcome[2]] += weight
    sequences = np.array(list(itertools.product(range(8), repeat=4)))
    wealth = np.exp(slot_bets.log_flat_wealth(_counts(sequences)[:, -1], delta))
    assert law[sequences].prod(axis=1) @ wealth <= 1 + 1e-9


def test_the_gap_interval_covers_at_every_look() -> None:
    law = np.prod(np.where(OUTCOMES == 1, [0.8, 0.5, 0.6], 1 - np.array([0.8, 0.5, 0.6])), axis=1)
    missed = 0.0
    for bag in itertools.combinations_with_replacement(range(8), 4):
        test = SlotTest()
        for kind in bag:
            _blocks(test, *OUTCOMES[kind])
        repeats = np.bincount(bag, minlength=8)
        interval = test.gap_interval
        assert interval is not None
        missed += reference.multinomial.pmf(repeats, 4, law) * (not interval.low <= 0.2 <= interval.high)
    assert missed <= 0.05


# --- what it sees ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "shape", "most"),
    [((1, 0, 1), "u", 5), ((0, 0, 1), "recency", 6), ((1, 0, 0), "primacy", 6), ((0, 1, 0), "inverted", 9)],
)
def test_a_clean_effect_is_seen_and_named_soon(block: tuple[int, int, int], shape: str, most: int) -> None:
    test = SlotTest()
    while not test.done:
        assert test.shape == "unclear"
        _blocks(test, *block)
    assert (test.effect, test.flat, test.shape) == (True, False, shape)
    assert test.blocks <= most
    assert test.e_value >= 20
    assert test.more_blocks == 0


def test_figures_of_a_clean_u() -> None:
    test = _blocks(SlotTest(), 1, 0, 1, 7)
    assert (test.gap, test.first_gain, test.last_gain, test.complete_blocks) == (1.0, 1.0, 1.0, 7)
    interval = test.gap_interval
    assert interval is not None
    assert 0 < interval.low < 0.5
    assert interval.high == 1.0


def test_one_block_never_gives_a_verdict() -> None:
    for outcome in OUTCOMES:
        test = _blocks(SlotTest(), *outcome)
        assert not test.effect
        assert not test.flat
        assert test.e_value <= 2


def test_agreement_is_called_flat_and_not_too_soon() -> None:
    test = SlotTest()
    while not test.flat:
        _blocks(test, 1, 1, 1)
    assert test.blocks == 16
    assert (test.effect, test.shape, test.done) == (False, "flat", True)
    assert test.e_value == pytest.approx(1.0)


def test_a_wider_delta_is_flat_sooner_and_a_smaller_alpha_later() -> None:
    def blocks_to_flat(alpha: float, delta: float) -> int:
        test = SlotTest(alpha, delta)
        while not test.flat:
            _blocks(test, 0, 0, 0)
        return test.blocks

    assert blocks_to_flat(0.05, 0.4) < blocks_to_flat(0.05, 0.2) < blocks_to_flat(0.01, 0.2)


def test_the_evidence_of_an_effect_is_banked() -> None:
    test = _blocks(SlotTest(), 1, 0, 1, 5)
    banked = test.e_value
    _blocks(test, 0, 1, 0, 3)
    assert test.effect
    assert test.e_value == banked
    assert test.gap == pytest.approx(2 / 8)


def test_an_unsure_shape_is_not_named_and_the_wait_ends() -> None:
    # Last is clearly better; first is better about half as often: u or recency, nobody can tell yet.
    test = SlotTest()
    for block in [(0, 0, 1), (1, 0, 1)] * 4:
        _blocks(test, *block)
        if test.effect:
            break
    assert test.effect
    assert test.shape == "unclear"
    assert test.shape_support < 0.8
    assert not test.done
    assert test.more_blocks == 12
    while not test.done:
        _blocks(test, *((0, 0, 1) if test.blocks % 2 else (1, 0, 1)))
    assert test.more_blocks == 0
    assert test.blocks <= 18
    named = _blocks(test, 1, 0, 1, 30)
    assert named.shape == "u"


@pytest.mark.parametrize(
    ("first", "last", "shape"),
    [
        (0.8, 0.8, "u"),
        (0.8, 0.4, "u"),
        (0.8, 0.39, "primacy"),
        (0.0, 0.9, "recency"),
        (-0.1, 0.9, "recency"),
        (0.5, -0.5, "primacy"),
        (-0.6, -0.7, "inverted"),
        (-0.7, -0.05, "recency"),
        (0.0, -0.7, "primacy"),
        (0.0, 0.0, "unclear"),
        (math.nan, 0.5, "unclear"),
    ],
)
def test_names_of_shapes(first: float, last: float, shape: str) -> None:
    code = slot_bets.shape_codes(np.array(first), np.array(last))
    assert slot_bets.SHAPES[int(code)] == shape


# --- unscored arms ----------------------------------------------------------------------------------------


def test_an_unscored_arm_drops_its_pairs_and_no_more() -> None:
    test = _blocks(SlotTest(), 1, 0, None, 2)
    _blocks(test, None, 0, 1, 1)
    assert (test.blocks, test.complete_blocks) == (3, 0)
    assert (test.first_gain, test.last_gain) == (1.0, 1.0)
    assert test.gap is None
    assert test.gap_interval is None
    assert test.e_value > 2
    _blocks(test, None, None, 1, 4)
    assert test.blocks == 7
    assert test.last_gain == 1.0


def test_an_edge_that_was_never_scored_is_neither_flat_nor_named() -> None:
    test = _blocks(SlotTest(), None, 1, 1, 60)
    assert not test.flat
    assert test.more_blocks is None
    lost = _blocks(SlotTest(), 1, 0, None, 8)
    assert lost.effect
    assert lost.shape == "unclear"


def test_unscored_arms_slow_it_down_but_do_not_stop_it() -> None:
    whole, holed = SlotTest(), SlotTest()
    while not whole.effect:
        _blocks(whole, 1, 0, 1)
    while not holed.effect:
        _blocks(holed, *((1, 0, 1) if holed.blocks % 2 else (None, 0, 1)))
    assert whole.blocks <= holed.blocks <= 8


# --- forecast ----------------------------------------------------------------------------------------------


def test_the_forecast_is_about_right() -> None:
    kinds = (np.random.default_rng(1).random((300, 128, 3)) < [0.9, 0.5, 0.9]) @ np.array([4, 2, 1])
    hit = slot_bets.log_e_values(_counts(kinds)) >= math.log(20)
    in_time, asked = 0, 0
    for row, when in zip(kinds, hit, strict=True):
        test = SlotTest()
        for kind in row[:8]:
            _blocks(test, *OUTCOMES[kind])
        more = test.more_blocks
        if not test.effect and more is not None:
            asked += 1
            in_time += bool(when[: 8 + more].any())
    assert asked > 150
    assert 0.35 < in_time / asked < 0.75


def test_the_forecast_of_nothing_is_unknown_and_of_agreement_is_flat() -> None:
    assert SlotTest().more_blocks is None
    agreed = _blocks(SlotTest(), 1, 1, 1, 10)
    assert agreed.more_blocks == 6
    contrary = SlotTest(delta=0.02)
    for kind in list(range(8)) * 3:
        _blocks(contrary, *OUTCOMES[kind])
    assert contrary.more_blocks is None


@pytest.mark.parametrize(("alpha", "delta"), [(0, 0.2), (1, 0.2), (0.05, 0), (0.05, 1)])
def test_impossible_settings_are_refused(alpha: float, delta: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        SlotTest(alpha, delta)


# --- cliff -----------------------------------------------------------------------------------------------------


def _curve(*correct: int, n: int = 8) -> list[SlotCount]:
    return [SlotCount(index * 4, n, k) for index, k in enumerate(correct)]


def test_a_collapse_past_a_slot_is_a_cliff() -> None:
    got = find_cliff(_curve(8, 8, 7, 0, 1), effect=True)
    assert got is not None
    assert got.last_read == 8
    assert (got.before.n, got.after.n) == (24, 16)
    assert got.before.value == pytest.approx(23 / 24)
    assert got.after.high < got.before.low
    early = find_cliff(_curve(8, 8, 0, 1, 0), effect=True)
    assert early is not None
    assert early.last_read == 4


@pytest.mark.parametrize(
    "correct",
    [
        (8, 0, 0, 0, 8),  # u
        (8, 1, 0, 1, 0),  # primacy: only the first slot is read
        (0, 0, 0, 1, 8),  # recency
        (8, 7, 7, 8, 0),  # only the very last is lost
        (8, 6, 4, 2, 0),  # a slope
        (8, 8, 8, 7, 8),  # flat
        (0, 0, 0, 0, 0),
    ],
)
def test_other_curves_are_no_cliff(correct: tuple[int, ...]) -> None:
    assert find_cliff(_curve(*correct), effect=True) is None


def test_a_cliff_needs_an_effect_five_slots_and_enough_calls() -> None:
    assert find_cliff(_curve(8, 8, 7, 0, 1), effect=False) is None
    assert find_cliff(_curve(8, 8, 0, 0), effect=True) is None
    assert find_cliff([*_curve(8, 8, 0, 0), SlotCount(30, 0, 0)], effect=True) is None
    assert find_cliff(_curve(1, 1, 1, 0, 0, n=1), effect=True) is None


def test_a_cliff_is_found_whatever_the_order_of_the_slots() -> None:
    assert find_cliff(_curve(8, 8, 7, 0, 1)[::-1], effect=True) == find_cliff(_curve(8, 8, 7, 0, 1), effect=True)
