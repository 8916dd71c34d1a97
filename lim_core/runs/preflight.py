"""What a run will likely cost, estimated without loading a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lim_core import arms
from lim_core.evidence import gold_of
from lim_core.experiments import experiments, subjects
from lim_core.prompts import lay_out
from lim_core.runs.settings import EMBEDDED, RunSettings, price_of
from lim_core.tokens import counter_for
from lim_core.types import Case, Usage

# Prompt tokens a second of the embedded model on two cores and seconds a call of a remote one; only for this estimate.
_EMBEDDED_TOKENS_A_SECOND = 400.0
_REMOTE_SECONDS = 1.5
_ANSWER_TOKENS = 16
# Neighbouring prompts share prefixes, so about three fifths of the tokens are read anew (facts: cost of a sweep).
_READ_ANEW = 0.6
_CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a run will likely cost: calls (few if an early stage settles it), prompt tokens and seconds at most."""

    calls_low: int
    calls_high: int
    prompt_tokens: int
    seconds: float
    cost: float | None = None
    notes: tuple[str, ...] = ()


def preflight(case: Case, settings: RunSettings) -> Preflight:
    """Estimate calls, tokens, time and cost of a diagnosis without loading a model; upper ends, cost None if unpriced."""
    wanted = settings.stages is None or "position" in settings.stages
    gold = gold_of(case)
    if not wanted or not case.answers or not case.chunks or not gold.ids or gold.spoilers:
        return Preflight(
            0, 0, 0, 0.0, None, ("No model is called: the position test is not wanted or lacks its fields.",)
        )
    counter = counter_for(case.model)
    one = counter.count_messages(lay_out(case.question, case.chunks).messages).n
    slots = arms.named_slots(arms.split(case.chunks, gold.ids))
    low = 8 + 6 * len(slots)
    high = min(settings.max_calls or 10_000, 8 + 64 * len(slots) + 48)
    tokens = one * high
    if settings.model == EMBEDDED:
        # Neighbouring prompts share prefixes, so about three fifths of the tokens are read anew (facts: cost of a sweep).
        seconds = 0.6 * tokens / _EMBEDDED_TOKENS_A_SECOND
        notes: tuple[str, ...] = ("The embedded model is small: its verdict holds for itself.",)
    else:
        seconds = high * _REMOTE_SECONDS
        notes = ()
    price = price_of(settings)
    cost = price.cost(Usage(tokens, high * _ANSWER_TOKENS)) if price is not None else None
    return Preflight(low, high, tokens, seconds, cost, notes)


def preflight_experiment(kind: str, cases: Sequence[Case], settings: RunSettings) -> Preflight:
    """Calls, tokens, time and cost of an experiment; the calls are exact but for equal prompts, which are sent once.

    Raises:
        InputError: no case can take part, or an option cannot be used.
    """
    part = experiments[kind].part
    options = part.read(settings.plan)
    chosen = subjects(cases, part.templates(options), retrieved=part.needs_retrieved_gold)
    prompts = [
        trial.prompt
        for block in range(part.blocks(chosen.ready, options))
        for subject in chosen.ready
        for trial in part.trials(subject, chosen.ready, block, options, settings.seed)
    ]
    tokens = sum(len(message.content) for prompt in prompts for message in prompt.messages) // _CHARACTERS_A_TOKEN
    notes = [f"{one.case_id} stays out: {one.reason}." for one in chosen.left_out[:5]]
    if len(chosen.left_out) > 5:
        notes.append(f"{len(chosen.left_out) - 5} more cases stay out.")
    if settings.model == EMBEDDED:
        seconds = _READ_ANEW * tokens / _EMBEDDED_TOKENS_A_SECOND
        notes.append("The embedded model is small: what is measured holds for itself.")
    else:
        seconds = len(prompts) * _REMOTE_SECONDS
    price = price_of(settings)
    cost = price.cost(Usage(tokens, len(prompts) * _ANSWER_TOKENS)) if price is not None else None
    return Preflight(len(prompts), len(prompts), tokens, seconds, cost, tuple(notes))
