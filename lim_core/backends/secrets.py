"""Keeps keys out of every text."""

from __future__ import annotations

from urllib.parse import quote

# Shorter strings are no keys; striking them would chew up ordinary words.
_SHORTEST = 6


def strike(text: str, key: str | None) -> str:
    """`text` with the literal key, plain or percent-encoded, replaced by `[key]`."""
    if key is None or len(key) < _SHORTEST:
        return text
    for form in {key, quote(key, safe="")}:
        text = text.replace(form, "[key]")
    return text
