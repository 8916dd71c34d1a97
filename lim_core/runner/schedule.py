"""The order in which trials are sent, so that an endpoint that caches prefixes reads each token once."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence

from lim_core.types import Trial

# Providers that cache by themselves do so from 1,024 prompt tokens on (OpenAI cookbook, prompt caching): 4 characters each.
WARM_CHARACTERS = 4096


def shared_prefix(one: str, other: str) -> int:
    """Characters that two texts share from their start."""
    return len(os.path.commonprefix([one, other]))  # noqa: RUF071 - by character is what is wanted


def warm_ups(trials: Sequence[Trial]) -> dict[int, int]:
    """Which trial waits for which earlier one, by index in `trials`, so that a shared prefix is read once.

    Of the trials of one case and block, the one whose prompt shares most with the others is sent first; those that share a
    long prefix with it follow when its answer has come, and so has its cache entry. Trials that are not worth waiting are
    absent. The leader always comes before its followers in the order of sending: see `prefix_first`.
    """
    groups: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for index, trial in enumerate(trials):
        if len(_text(trial)) >= WARM_CHARACTERS:
            groups[trial.case_id, trial.block].append(index)
    waits: dict[int, int] = {}
    for members in groups.values():
        first, *rest = members
        for index in rest:
            if shared_prefix(_text(trials[first]), _text(trials[index])) >= WARM_CHARACTERS:
                waits[index] = first
    return waits


def prefix_first(trials: Sequence[Trial]) -> list[Trial]:
    """The trials with the best warm-up of each case and block moved to the front of its group, others in their order."""
    groups: defaultdict[tuple[str, int], list[Trial]] = defaultdict(list)
    for trial in trials:
        groups[trial.case_id, trial.block].append(trial)
    ordered: list[Trial] = []
    for group in groups.values():
        texts = [_text(trial) for trial in group]
        if len(group) > 2 and min(map(len, texts)) >= WARM_CHARACTERS:
            shared = [sum(shared_prefix(text, other) for other in texts) for text in texts]
            best = shared.index(max(shared))
            group = [group[best], *group[:best], *group[best + 1 :]]
        ordered += group
    return ordered


def _text(trial: Trial) -> str:
    return "\n".join(message.content for message in trial.prompt.messages)
