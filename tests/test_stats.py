"""Intervals and tests against scipy, statsmodels or exact enumeration."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy import optimize
from scipy import stats as reference
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.contingency_tables import cochrans_q
from statsmodels.stats.contingency_tables import mcnemar as mcnemar_reference
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import normal_sample_size_one_tail
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import ttost_paired

from lim_core import stats


def test_importing_stats_loads_no_scipy() -> None:
    code = "import sys, lim_core.stats, lim_core.stats.stop_rule; sys.exit('scipy' in sys.modules or 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 3), (3, 3), (2, 7), (7, 8), (20, 20), (1400, 2655)])
def test_wilson_is_statsmodels_wilson(k: int, n: int) -> None:
    got = stats.wilson(k, n)
    low, high = proportion_confint(k, n, method="wilson")
    assert (got.low, got.high) == pytest.approx((low, high), abs=1e-12)
    assert (got.value, got.n) == (k / n, n)
    assert 0 <= got.low <= got.value <= got.high <= 1


def test_wilson_on_three_of_three_promises_no_more_than_it_may() -> None:
    assert stats.wilson(3, 3).low == pytest.approx(0.44, abs=0.005)
    assert stats.wilson(0, 3).high == pytest.approx(0.56, abs=0.005)


@pytest.mark.parametrize(("k", "n"), [(0, 0), (-1, 3), (4, 3)])
def test_wilson_refuses_impossible_counts(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="wilson needs"):
        stats.wilson(k, n)


def _score_by_likelihood(gained: int, lost: int, n: int, d: float) -> float:
    """Tango's statistic from the constrained likelihood maximised numerically, not by its closed form."""

    def minus_log_likelihood(q: float) -> float:
        cells = ((gained, q + d), (lost, q), (n - gained - lost, 1 - 2 * q - d))
        return -sum(count * math.log(max(p, 1e-300)) for count, p in cells if count)

    low, high = max(0.0, -d), (1 - d) / 2
    q = optimize.minimize_scalar(minus_log_likelihood, bounds=(low, high), method="bounded", options={"xatol": 1e-13}).x
    return (gained - lost - n * d) / math.sqrt(n * (2 * q + d - d * d))


@pytest.mark.parametrize(
    ("gained", "lost", "n"), [(5, 1, 8), (3, 2, 20), (8, 0, 8), (0, 0, 10), (0, 4, 9), (40, 25, 120), (1, 0, 44)]
)
def test_tango_inverts_the_constrained_score(gained: int, lost: int, n: int) -> None:
    got = stats.tango(gained, lost, n)
    z = reference.norm.ppf(0.975)
    for end, sign in ((got.low, 1), (got.high, -1)):
        if abs(end) < 1:
            assert _score_by_likelihood(gained, lost, n, end) == pytest.approx(sign * z, abs=2e-3)
    assert got.low < got.value or got.value == -1
    assert got.high > got.value or got.value == 1
    mirrored = stats.tango(lost, gained, n)
    assert (mirrored.low, mirrored.high) == pytest.approx((-got.high, -got.low), abs=1e-9)


@pytest.mark.parametrize("n", [8, 15])
def test_tango_covers_at_small_n(n: int) -> None:
    intervals = {(b, c): stats.tango(b, c, n) for b in range(n + 1) for c in range(n + 1 - b)}
    coverage = []
    for up, down in itertools.product((0.02, 0.1, 0.3, 0.5, 0.8), (0.0, 0.02, 0.1, 0.19)):
        cells = [up, down, 1 - up - down]
        covered = 0.0
        for (b, c), got in intervals.items():
            if got.low - 1e-9 <= up - down <= got.high + 1e-9:
                covered += reference.multinomial.pmf([b, c, n - b - c], n, cells)
        coverage.append(covered)
    assert np.mean(coverage) > 0.945
    assert min(coverage) > 0.9


@pytest.mark.parametrize(("n", "p"), list(itertools.product((1, 5, 12), (0.0, 0.05, 0.3, 0.5, 0.9, 1.0))))
def test_betting_interval_covers_whatever_the_share(n: int, p: float) -> None:
    covered = 0.0
    for k in range(n + 1):
        got = stats.betting_interval([0.0, 1.0], [n - k, k], 0.0, 1.0)
        covered += float(reference.binom.pmf(k, n, p)) * (got.low <= p <= got.high)
    assert covered >= 0.95


def test_betting_interval_scales_with_its_bounds_and_narrows_with_n() -> None:
    unit = stats.betting_interval([0.0, 0.5, 1.0], [3, 5, 9], 0.0, 1.0)
    wide = stats.betting_interval([-1.0, 0.0, 1.0], [3, 5, 9], -1.0, 1.0)
    assert (wide.low, wide.high) == pytest.approx((2 * unit.low - 1, 2 * unit.high - 1))
    more = stats.betting_interval([0.0, 0.5, 1.0], [300, 500, 900], 0.0, 1.0)
    assert more.high - more.low < 0.3 * (unit.high - unit.low)


# --- paired gains -----------------------------------------------------------------------------------


def test_paired_gain_of_eight_equal_pairs_is_not_certain() -> None:
    got = stats.paired_gain([False] * 8, [True] * 8)
    assert (got.value, got.high, got.n) == (1.0, 1.0, 8)
    assert 0.2 < got.low < 0.6
    nothing = stats.paired_gain([True] * 8, [True] * 8)
    assert nothing.low < -0.2
    assert nothing.high > 0.2


def test_paired_gain_of_many_equal_pairs_still_has_a_width() -> None:
    assert stats.paired_gain([0] * 400, [1] * 400).low < 1
    assert stats.paired_gain([0.5] * 40, [0.75] * 40).low < 0.25 < stats.paired_gain([0.5] * 40, [0.75] * 40).high


def test_paired_gain_of_many_cases_is_the_percentile_bootstrap() -> None:
    rng = np.random.default_rng(4)
    before, after = rng.random(80) < 0.4, rng.random(80) < 0.7
    got = stats.paired_gain(list(before), list(after), seed=3, draws=20_000)
    gains = after.astype(float) - before
    want = reference.bootstrap(
        (gains,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(0)
    ).confidence_interval
    assert (got.low, got.high) == pytest.approx((want.low, want.high), abs=0.02)
    assert got.value == pytest.approx(gains.mean())
    assert got == stats.paired_gain(list(before), list(after), seed=3, draws=20_000)


def test_paired_gain_counts_cases_not_repeats() -> None:
    before, after, units = [], [], []
    for case in range(6):
        for _ in range(50):
            before.append(0)
            after.append(case % 2)
            units.append(f"case {case}")
    got = stats.paired_gain(before, after, units=units)
    assert (got.value, got.n) == (0.5, 6)
    assert got == stats.paired_gain([0] * 6, [0, 1] * 3)


def test_paired_gain_averages_repeats_in_a_case() -> None:
    got = stats.paired_gain([0, 0, 1, 0], [1, 0, 1, 1], units=["a", "a", "b", "b"])
    assert (got.value, got.n) == (0.5, 2)
    # Two cases, however often repeated, pin down next to nothing.
    assert got.low < -0.7
    assert got.high > 0.9


def test_paired_gain_refuses_what_is_no_pair() -> None:
    with pytest.raises(ValueError, match="as many values"):
        stats.paired_gain([1], [])
    with pytest.raises(ValueError, match="at least one pair"):
        stats.paired_gain([], [])


# --- clusters and the worst slot ---------------------------------------------------------------------


def test_clustered_se_is_statsmodels_cluster_robust() -> None:
    rng = np.random.default_rng(2)
    clusters = np.repeat(np.arange(25), rng.integers(1, 7, size=25))
    x = (rng.random(len(clusters)) < np.repeat(rng.random(25), np.bincount(clusters))).astype(float)
    fit = OLS(x, np.ones((len(x), 1))).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    assert stats.clustered_se(list(x), list(clusters)) == pytest.approx(float(fit.bse[0]), rel=1e-9)


def test_clustered_se_of_single_cells_is_the_plain_one() -> None:
    x = [0.0, 1.0, 1.0, 0.0, 1.0]
    assert stats.clustered_se(x, list("abcde")) == pytest.approx(np.std(x, ddof=1) / math.sqrt(5))


def test_clustered_mean_knows_that_copies_add_nothing() -> None:
    once = stats.clustered_mean([0, 1, 1, 0, 1, 1], list(range(6)))
    copies = stats.clustered_mean([0, 1, 1, 0, 1, 1] * 9, list(range(6)) * 9)
    assert (copies.low, copies.high, copies.n) == pytest.approx((once.low, once.high, 6))
    assert once.high - once.low > 0.5
    assert stats.clustered_mean([1, 1, 1], ["a", "a", "a"]).low < 0.5


def test_clustered_mean_of_many_clusters_uses_student_t() -> None:
    rng = np.random.default_rng(8)
    x = rng.random(60)
    got = stats.clustered_mean(list(x), list(range(60)))
    low, high = reference.t.interval(0.95, 59, loc=x.mean(), scale=reference.sem(x))
    assert (got.low, got.high) == pytest.approx((low, high), rel=1e-9)


@pytest.mark.parametrize("shares", [(0.5, 0.5, 0.5), (0.9, 0.9, 0.9), (0.8, 0.3, 0.8), (0.1, 0.15, 0.9)])
def test_worst_position_covers_although_it_was_picked(shares: tuple[float, ...]) -> None:
    n, truly_worst = 10, min(shares)
    of_worst = of_picked = 0.0
    for counts in itertools.product(range(n + 1), repeat=3):
        weight = math.prod(float(reference.binom.pmf(k, n, p)) for k, p in zip(counts, shares, strict=True))
        got = stats.worst_position(counts, [n] * 3)
        of_worst += weight * (got.estimate.low <= truly_worst <= got.estimate.high)
        of_picked += weight * (got.estimate.low <= shares[got.index] <= got.estimate.high)
    assert min(of_worst, of_picked) >= 0.95


def test_worst_of_seven_slots_needs_more_than_a_plain_interval() -> None:
    correct = np.random.default_rng(3).binomial(30, 0.5, size=(4000, 7))
    plain = covered = 0
    for counts in correct:
        got = stats.worst_position([int(k) for k in counts], [30] * 7)
        covered += got.estimate.low <= 0.5 <= got.estimate.high
        naive = stats.wilson(int(counts.min()), 30)
        plain += naive.low <= 0.5 <= naive.high
    assert plain / 4000 < 0.9
    assert covered / 4000 >= 0.945


# --- tests -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "table", [(4, 4, 0, 18), (3, 3, 0, 3), (4, 4, 0, 4), (6, 6, 0, 3), (5, 9, 7, 30), (0, 4, 3, 5), (2, 3, 0, 0)]
)
def test_fisher_is_scipy_fisher(table: tuple[int, int, int, int]) -> None:
    k1, n1, k2, n2 = table
    want = reference.fisher_exact([[k1, n1 - k1], [k2, n2 - k2]], alternative="greater").pvalue if n2 else 1.0
    assert stats.fisher_one_sided(k1, n1, k2, n2) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (5, 5), (9, 2), (2, 9), (87, 11), (300, 240)])
def test_mcnemar_is_statsmodels_and_mid_p_is_its_formula(gained: int, lost: int) -> None:
    want = mcnemar_reference([[10, gained], [lost, 10]], exact=True).pvalue if gained + lost else 1.0
    assert stats.mcnemar(gained, lost) == pytest.approx(min(1.0, want), rel=1e-9)
    fewer, total = min(gained, lost), gained + lost
    mid = 2 * (reference.binom.cdf(fewer, total, 0.5) - 0.5 * reference.binom.pmf(fewer, total, 0.5))
    assert stats.mcnemar(gained, lost, mid_p=True) == pytest.approx(mid, rel=1e-9)
    one_sided = reference.binomtest(gained, total, 0.5, alternative="greater").pvalue if total else 1.0
    assert stats.sign_test(gained, lost) == pytest.approx(one_sided, rel=1e-9)


def test_mcnemar_gives_the_published_figure() -> None:
    assert stats.mcnemar(87, 11) == pytest.approx(8e-16, rel=0.1)


def test_cochran_q_is_statsmodels() -> None:
    x = (np.random.default_rng(5).random((40, 5)) < [0.9, 0.6, 0.5, 0.6, 0.8]).astype(float)
    want = cochrans_q(x)
    got = stats.cochran_q(x)
    assert (got.statistic, got.p, got.n) == pytest.approx((want.statistic, want.pvalue, 40))


def test_cochran_q_of_rows_all_alike_says_nothing() -> None:
    assert stats.cochran_q(np.array([[1.0, 1, 1], [0, 0, 0]])).p == 1.0
    with pytest.raises(ValueError, match="0 and 1"):
        stats.cochran_q(np.array([[0.5, 1, 1]]))


def test_holm_is_statsmodels_in_the_order_given() -> None:
    p = [0.04, 0.001, 0.2, 0.012, 0.9, 0.03]
    assert stats.holm(p) == pytest.approx(tuple(multipletests(p, method="holm")[1]))
    assert stats.holm([]) == ()


def test_permutation_test_agrees_with_every_permutation() -> None:
    x = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 1], [1, 1, 1], [0, 0, 1], [1, 0, 1]], dtype=float)
    orders = list(itertools.permutations(range(3)))
    spreads, ends = [], []
    for choice in itertools.product(orders, repeat=len(x)):
        means = np.array([row[list(order)] for row, order in zip(x, choice, strict=True)]).mean(axis=0)
        spreads.append(means.max() - means.min())
        ends.append((means[0] + means[2]) / 2 - means[1])
    means = x.mean(axis=0)
    spread, gain = means.max() - means.min(), (means[0] + means[2]) / 2 - means[1]
    got = stats.permutation_test(x, draws=20_000)
    assert (got.spread, got.ends_gain, got.n) == pytest.approx((spread, gain, 6))
    assert got.p_any == pytest.approx(np.mean(np.array(spreads) >= spread - 1e-12), abs=0.01)
    assert got.p_ends == pytest.approx(np.mean(np.array(ends) >= gain - 1e-12), abs=0.01)


def test_permutation_edges_agree_with_the_exact_distribution() -> None:
    x = (np.random.default_rng(9).random((30, 5)) < [0.8, 0.5, 0.4, 0.5, 0.6]).astype(float)
    got = stats.permutation_test(x, draws=20_000, seed=1)
    for p, edge in ((got.p_first, 0), (got.p_last, 4)):
        others = [edge, 1, 2, 3]
        exact = np.array([1.0])  # distribution of a sum of independent coins, one a case
        for share in x[:, others].mean(axis=1):
            exact = np.convolve(exact, [1 - share, share])
        assert p == pytest.approx(exact[int(x[:, edge].sum()) :].sum(), abs=0.01)
    assert got.p_u == max(got.p_first, got.p_last)


def test_primacy_alone_is_no_u() -> None:
    x = np.zeros((20, 5))
    x[:, 0] = 1
    got = stats.permutation_test(x)
    assert got.p_any < 0.01
    assert got.p_ends < 0.01
    assert got.p_first < 0.01
    assert got.p_last == 1.0
    assert got.p_u == 1.0


def test_permutation_test_keeps_its_level_where_position_does_nothing() -> None:
    rng = np.random.default_rng(6)
    p_any, p_u = [], []
    for seed in range(200):
        x = (rng.random((15, 3)) < rng.random((15, 1))).astype(float)
        got = stats.permutation_test(x, draws=199, seed=seed)
        p_any.append(got.p_any)
        p_u.append(got.p_u)
    assert np.mean(np.array(p_any) <= 0.05) <= 0.09
    assert np.mean(np.array(p_u) <= 0.05) <= 0.05


def test_a_case_with_an_unscored_slot_is_dropped_whole() -> None:
    x = np.array([[1, 0, 1], [1, np.nan, 1], [1, 0, 1]])
    assert stats.permutation_test(x, draws=99).n == 2
    assert stats.cochran_q(x).n == 2
    with pytest.raises(ValueError, match="no unit"):
        stats.cochran_q(np.full((2, 3), np.nan))


# --- equivalence and size ----------------------------------------------------------------------------------


def test_tost_agrees_with_statsmodels_on_a_suite() -> None:
    rng = np.random.default_rng(11)
    before = (rng.random(300) < 0.7).astype(float)
    flips = rng.random(300)
    after = np.where(flips < 0.1, 1 - before, before)
    for delta in (0.02, 0.03, 0.05, 0.08, 0.1, 0.2):
        p = ttost_paired(after, before, -delta, delta)[0]
        if abs(p - 0.05) > 0.02:
            assert stats.tost(list(before), list(after), delta).shown == (p <= 0.05)


def test_agreement_of_a_few_pairs_is_not_equivalence() -> None:
    assert not stats.tost([1] * 5, [1] * 5, 0.2).shown
    assert stats.tost([1] * 40, [1] * 40, 0.2).shown
    assert not stats.tost([0] * 40, [1] * 40, 0.2).shown


@pytest.mark.parametrize(
    ("gain", "discordant", "pairs"),
    [
        (0.2, 0.2, 37),
        (0.2, 0.3, 57),
        (0.2, 0.4, 77),
        (0.2, 0.475, 91),
        (0.1, 0.3, 234),
        (0.3, 0.4, 33),
        (0.05, 0.1, 312),
    ],
)
def test_pairs_needed_gives_connors_figures(gain: float, discordant: float, pairs: int) -> None:
    assert abs(stats.pairs_needed(gain, discordant) - pairs) <= 1
    assert stats.pairs_needed(-gain, discordant) == stats.pairs_needed(gain, discordant)


def test_pairs_needed_gives_the_power_it_promises() -> None:
    n = stats.pairs_needed(0.2, 0.4)
    power = sum(
        reference.multinomial.pmf([b, c, n - b - c], n, [0.3, 0.1, 0.6])
        for b in range(n + 1)
        for c in range(n + 1 - b)
        if stats.mcnemar(b, c, mid_p=True) <= 0.05
    )
    assert power == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(("delta", "discordant", "pairs"), [(0.1, 0.3, 257), (0.2, 0.3, 65)])
def test_flat_pairs_needed(delta: float, discordant: float, pairs: int) -> None:
    assert stats.flat_pairs_needed(delta, discordant) == pairs


def test_cases_needed_is_the_normal_formula_and_repeats_help_only_the_noise() -> None:
    want = normal_sample_size_one_tail(0.2, 0.8, 0.025, std_null=math.sqrt(0.1 + 2 * 0.15 / 3))
    assert stats.cases_needed(0.2, 0.1, 0.15, 3) == math.ceil(want)
    assert stats.cases_needed(0.2, 0.1, 0.0, 1) == stats.cases_needed(0.2, 0.1, 0.0, 50)
