"""Folds scored trials into the figures of an arm: n, correct, accuracy, interval."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from lim_core.stats import wilson
from lim_core.types import ArmScore, Json, Outcome, TrialResult


def arm_score(arm: str, results: Iterable[TrialResult], index: int | None = None) -> ArmScore:
    """Score one arm from its trials; unscored ones are left out.

    The interval is Wilson 95% on observations, where identical replies to an identical prompt are one: a server that
    answers deterministically adds nothing by answering again.
    """
    mine = [result for result in results if result.trial.arm == arm]
    scored = [result for result in mine if result.verdict.outcome.scored]
    correct = sum(result.verdict.outcome is Outcome.CORRECT for result in scored)
    distinct = {
        (result.trial.prompt.messages, result.call.text, result.verdict.outcome is Outcome.CORRECT) for result in scored
    }
    right = sum(is_right for _, _, is_right in distinct)
    interval = wilson(right, len(distinct)) if distinct else None
    depth = next((result.depth for result in mine if result.depth is not None), None)
    return ArmScore(
        arm=arm,
        index=index,
        depth=depth,
        n=len(scored),
        correct=correct,
        distinct=len(distinct),
        accuracy=correct / len(scored) if scored else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
    )


def score_json(score: ArmScore) -> dict[str, Json]:
    """The arm as the JSON contract writes it."""
    return asdict(score)


def outcome_counts(results: Iterable[TrialResult]) -> dict[str, int]:
    """How many trials had each outcome, every outcome named."""
    tally = Tally(result.verdict.outcome.value for result in results)
    return {outcome.value: tally[outcome.value] for outcome in Outcome}


def unscored_shares(results: Sequence[TrialResult]) -> Mapping[str, float]:
    """Share of unscored trials by arm."""
    total = Tally(result.trial.arm for result in results)
    lost = Tally(result.trial.arm for result in results if not result.verdict.outcome.scored)
    return {arm: lost[arm] / count for arm, count in total.items()}
