"""Intervals and tests, each with its formula and source. Pure functions; no number leaves without its interval and n.

The sequential test of the slots is in stop_rule.py.
"""

from lim_core.stats.intervals import (
    WorstPosition,
    betting_interval,
    clustered_mean,
    clustered_se,
    paired_gain,
    tango,
    wilson,
    worst_position,
)
from lim_core.stats.significance import (
    Equivalence,
    PositionTest,
    TestResult,
    cases_needed,
    cochran_q,
    fisher_one_sided,
    flat_pairs_needed,
    holm,
    mcnemar,
    pairs_needed,
    permutation_test,
    sign_test,
    tost,
)

__all__ = [
    "Equivalence",
    "PositionTest",
    "TestResult",
    "WorstPosition",
    "betting_interval",
    "cases_needed",
    "clustered_mean",
    "clustered_se",
    "cochran_q",
    "fisher_one_sided",
    "flat_pairs_needed",
    "holm",
    "mcnemar",
    "paired_gain",
    "pairs_needed",
    "permutation_test",
    "sign_test",
    "tango",
    "tost",
    "wilson",
    "worst_position",
]
