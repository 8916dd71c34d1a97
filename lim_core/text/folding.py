"""Folding of a text for comparison: one spelling for case, composition, width and invisible marks, at C speed."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

# Superscripts, fractions and circled numbers keep their form: NFKC would turn m² into m2 and 2½ into 21/2.
SUPERSCRIPTS = "\u00b2\u00b3\u00b9\u2070\u2074-\u2079"
OTHER_NUMBERS = "\u00bc-\u00be\u2150-\u215f\u2189\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\U0001f100-\U0001f10c"

# Soft hyphen, joiners, zero-width, bidi controls, variation selectors, tags; tatweel, Arabic and Hebrew vowel points.
_IGNORED = (
    "\u00ad\u034f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u061c\u0640\u064b-\u0652\u0670\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U000e0000-\U000e0fff"
)
_INVISIBLE = re.compile(f"[{_IGNORED}]+")
_KEPT = re.compile(f"([{SUPERSCRIPTS}{OTHER_NUMBERS}])")
# No-break and thin spaces between groups of three digits are grouping marks; NFKC would make them plain spaces.
_GROUPING_SPACE = re.compile(r"[\u00a0\u2009\u202f](?<=\d.)(?=\d{3}(?!\d))")
# One character for one. NFKC would glue the trade mark to its word; modifier apostrophes are letters to Unicode.
_SWAPS = {"\u2122": " ", "\u2120": " ", "\u02b9": "'", "\u02bb": "'", "\u02bc": "'", "\ua78c": "'"}
_SWAPS |= {"\u0374": "'", "\u066b": ".", "\u066c": ","}
_SWAPPED = re.compile(f"[{''.join(_SWAPS)}]")
# What the rules above could touch; most texts hold none of it, and one look is cheaper than five.
# The presentation forms are those whose NFKC has vowel points.
_RARE = re.compile(
    f"[{_IGNORED}{SUPERSCRIPTS}{OTHER_NUMBERS}{''.join(_SWAPS)}\u00a0\u2009\u202f\ufb1d-\ufdff\ufe70-\ufe7f]"
)
_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")
_FOREIGN_DIGIT_BLOCKS = re.compile("[\u0660-\u1c59\ua620-\uabf9\U000104a0-\U0001fbf9]")
# Second halves that compose with what stands before them, though they are no marks: jamo, half-width sound marks.
_COMPOSING = "\u1160-\u11ff\ud7b0-\ud7ff\uff9e\uff9f\uffa0-\uffdc"


# Above the first plane one range is close enough (old scripts and Adlam) and keeps the class quick to test.
_LAST = 0x10000
_HIGH_LETTERS = "\U00010000-\U0001cfff\U0001e000-\U0001efff"
_LETTERS = ("Lu", "Ll", "Lt", "Lm", "Lo", "Nl")


def fold(text: str) -> str:
    """The text in its one spelling; ASCII keeps its length."""
    if text.isascii():
        return text.lower()
    return _fold(_swap(text)) if _RARE.search(text) else _fold_plain(text)


def fold_with_offsets(text: str) -> tuple[str, list[tuple[int, int]] | None]:
    """The folded text and, for each of its characters, the half-open range it came from; None where that is its own."""
    if text.isascii():
        return text.lower(), None
    pieces: list[str] = []
    offsets: list[tuple[int, int]] = []
    for cluster in _clusters().finditer(_swap(text)):
        if plain := cluster[1]:
            piece = plain.lower()
            offsets.extend(pairwise(range(cluster.start(), cluster.end() + 1)))
        else:
            piece = _fold_cluster(cluster[0])
            offsets.extend([cluster.span()] * len(piece))
        pieces.append(piece)
    return "".join(pieces), offsets


def is_blank(text: str) -> bool:
    """Whether a text has nothing to see: empty, spaces, or invisible marks only."""
    return not _INVISIBLE.sub("", text).strip()


@lru_cache(maxsize=2)
def mark_ranges(last: int = _LAST) -> str:
    """Every combining mark below `last`, as the inside of a character class (the re module has no class for them)."""
    return _ranges(c for c in range(0x300, last) if unicodedata.category(chr(c))[0] == "M")


@lru_cache(maxsize=1)
def letter_ranges(without: str) -> str:
    """Every letter that is not in the class `without`, as the inside of a character class."""
    left_out = re.compile(f"[{without}{SUPERSCRIPTS}{OTHER_NUMBERS}]")
    letters = (c for c in range(0x41, _LAST) if unicodedata.category(chr(c)) in _LETTERS)
    return _ranges(c for c in letters if not left_out.match(chr(c))) + _HIGH_LETTERS


def _ranges(codes: Iterable[int]) -> str:
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


@lru_cache(maxsize=1)
def _clusters() -> re.Pattern[str]:
    # Here the marks of rare scripts count too: normalisation puts marks in order.
    follows = f"[{mark_ranges(0x20000)}{_COMPOSING}{_IGNORED}]"
    return re.compile(f"([\\x00-\\x7f]+)(?!{follows})|(?s:.){follows}*")


def _swap(text: str) -> str:
    text = _GROUPING_SPACE.sub("_", text)
    return _SWAPPED.sub(lambda found: _SWAPS[found[0]], text)


def _fold(text: str) -> str:
    if len(parts := _KEPT.split(text)) > 1:
        return "".join(part if index % 2 else _fold(part) for index, part in enumerate(parts))
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    return _fold_plain(_INVISIBLE.sub("", text))


def _fold_plain(text: str) -> str:
    """Fold a text without anything rare in it."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = unicodedata.normalize("NFKC", text).replace("\u0131", "i").replace("i\u0307", "i")
    if _FOREIGN_DIGIT_BLOCKS.search(text):
        text = _FOREIGN_DIGIT.sub(lambda found: str(unicodedata.decimal(found[0])), text)
    return text


@lru_cache(maxsize=8192)
def _fold_cluster(cluster: str) -> str:
    return sys.intern(_fold(cluster))
