"""Finds the chunks in a text that was assembled from them: the context of a prompt, or pasted chunks.

Each detector looks for one custom of laying chunks out and says how sure it is; the surest wins. What they find is a
proposal for the user to confirm, never taken in silence.
"""

from __future__ import annotations

from collections.abc import Callable

from lim_core.importers.prompt.in_json import in_json
from lim_core.importers.prompt.numbered import numbered
from lim_core.importers.prompt.piece_ends import RULE
from lim_core.importers.prompt.pieces import Pieces
from lim_core.importers.prompt.separated import empty_lines, headed, separated
from lim_core.importers.prompt.tagged import tagged

# Longer texts are no single prompt; looking through them would cost more than it could bring.
MAX_CHARACTERS = 4_000_000


def find_pieces(text: str) -> Pieces | None:
    """The most convincing chunks in a text, at least two of them, or one in a tag made for it; None where there are none."""
    if len(text) > MAX_CHARACTERS:
        return None
    found = [pieces for detect in _DETECTORS if (pieces := detect(text)) is not None]
    return max(found, key=lambda pieces: pieces.sure, default=None)


def split_context(text: str) -> list[str]:
    """The chunks of a context that holds nothing else: by the customs of prompts, else by lines of dashes, else whole."""
    found = find_pieces(text)
    if found is not None and found.sure >= 0.6:
        return [piece.text for piece in found.pieces]
    parts = [part.strip() for part in RULE.split(text) if part.strip()]
    return parts or ([text.strip()] if text.strip() else [])


_DETECTORS: tuple[Callable[[str], Pieces | None], ...] = (
    in_json,
    tagged,
    numbered,
    separated,
    headed,
    empty_lines,
)
