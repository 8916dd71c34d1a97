"""Chunks found in a text: where each stands and what it says."""

from __future__ import annotations

from dataclasses import dataclass

# More than this in one prompt is no list of chunks.
MAX_PIECES = 5_000


@dataclass(frozen=True, slots=True)
class Piece:
    """One chunk in a text: its half-open range there, its text (unescaped where it stood in JSON) and its title."""

    start: int
    end: int
    text: str
    title: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Pieces:
    """All chunks found by one custom. `sure` is in [0, 1]."""

    pieces: tuple[Piece, ...]
    how: str
    sure: float


def trimmed(text: str, start: int, end: int, title: str = "", key: str = "") -> Piece | None:
    """A piece without the blanks at its edges; None where nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return Piece(start, end, text[start:end], title[:200], key[:200]) if end > start else None


def words(table: str) -> frozenset[str]:
    """A table of words, written with blanks between them."""
    return frozenset(table.split())
