"""Whether scores are similarities or distances, guessed from their order and their name; never acted on in silence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lim_core.importers.drafts.draft import DraftChunk
from lim_core.importers.drafts.report import Guess
from lim_core.importers.shapes.fields import number


def guess_direction(chunks: Sequence[DraftChunk], called: str = "chunk") -> Guess | None:
    """The direction with the reason; None where there are no scores. An empty value means that nothing can be told.

    `called` is what one of the list is called in the reason.
    """
    scored = [(score, chunk) for chunk in chunks if (score := number(chunk.score)) is not None]
    if not scored:
        return None
    values = [score for score, _ in scored]
    names = {chunk.score_name.lower() for _, chunk in scored if chunk.score_name}
    distance = any("dist" in name or name in ("l2", "euclidean") for name in names)
    similar = any("simil" in name or "relevan" in name or "certainty" in name for name in names)
    falling = all(a >= b for a, b in pairwise(values))
    rising = all(a <= b for a, b in pairwise(values))
    if distance and not falling:
        return Guess(
            "score_direction", "distance", f"the scores are called {_one(names)}" + (", and rise" if rising else "")
        )
    if distance and len(set(values)) > 1:
        return Guess("score_direction", "", f"called {_one(names)}, yet they fall from first to last: say which it is")
    if len(set(values)) < 2:
        known = "distance" if distance else "similarity" if similar else ""
        return Guess(
            "score_direction", known, f"called {_one(names)}" if known else "all scores are equal, or there is one"
        )
    if falling:
        return Guess("score_direction", "similarity", f"the scores fall from the first {called} to the last")
    if rising and not similar:
        return Guess(
            "score_direction", "distance", f"the scores rise from the first {called} to the last: smaller is nearer"
        )
    if similar:
        return Guess(
            "score_direction", "similarity", f"the scores are called {_one(names)}, though the list is not sorted"
        )
    return Guess(
        "score_direction", "", f"the scores follow the order of the {called}s neither up nor down: say which it is"
    )


def _one(names: set[str]) -> str:
    return min(names) if names else "score"
