"""Text as the `contains` judge sees it: safe for numbers, scripts and spellings, with a way back to the original.

A text becomes a row of tokens, an alias is found where its tokens stand side by side in that row. So a boundary lies
only between characters of one class: 12 is in "共12天" and "12km", never in "112"; "port" is never in "airport".

Decisions, each one tested:

- Case, NFC or NFD, full-width forms, ligatures, curly quotes, soft hyphens, zero-width and bidi marks, Arabic and
  Hebrew vowel points do not matter; ß is ss; the Turkish i is the same letter with and without its dot.
- Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese and Tibetan match as substrings; a full stop or an enumeration
  comma of these scripts is never matched across.
- a, an, the do not matter, but one that ends the alias ("Vitamin A") or is all of it ("The The") is no article.
  An alias in capitals that is also a little English word ("US", "IT", "A") matches only in capitals, or as the whole text.
- Numbers are compared as values (`lim_core.numerals`); units, currency and percent signs of an alias must be there too,
  5% being 5 percent, €5 being 5 euros; "&" is "and". Superscripts belong to their unit (m² is neither m nor m2).
- Other punctuation, symbols and emoji are ignored; letters around an apostrophe or a hyphen are words of their own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lim_core.errors import InputError
from lim_core.text.folding import fold, fold_with_offsets
from lim_core.text.lexer import ARTICLES, BREAKS, canonical, token_pattern

# Little words that an alias in capitals must not be taken for: "US" is a country, "tell us" is not.
_LITTLE_WORDS = frozenset(
    re.findall(r"\w+", "a am an and are as at be by do go he i if in is it me my of on or so the to up us we who")
)
# Tokens that can stand for other letters in the text, so that their own need not be there.
_MAPPED = frozenset(["and", "percent", "permille"])
# What an article never stands in front of.
_JOINS = frozenset(["and", "or", "nor"])
# So many digits are looked for before a text is taken apart; more would only make the look dear.
_LOOK = 30
_OPTIONAL_ARTICLES = " (?:(?:an?|the) ){0,3}"


@dataclass(frozen=True, slots=True)
class Match:
    """An alias found in a text: half-open character range in the original text."""

    alias: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Needle:
    """An alias ready for searching. `words` and `digits` are what a folded text must hold at the least."""

    alias: str
    tokens: tuple[str, ...]
    literal: str
    words: tuple[str, ...]
    digits: re.Pattern[str] | None
    capitals: bool

    @property
    def pattern(self) -> re.Pattern[str]:
        """The needle in a row of tokens, articles between its words allowed."""
        return _compiled(self.tokens)


@dataclass(frozen=True, slots=True)
class _Row:
    """Tokens of one text joined by spaces, and where each piece of the row stands in the original."""

    text: str
    starts: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Range of the original text behind a range of the row."""
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, end - 1) - 1
        return self.spans[first][0], self.spans[last][1]


def normalise(text: str) -> str:
    """The tokens of a text without its articles, joined by single spaces; empty where nothing can be compared.

    Articles stay where dropping them would leave nothing.
    """
    return " ".join(_alias_tokens(text))


def find_aliases(aliases: Sequence[str], text: str) -> tuple[Match, ...]:
    """Every place where an alias stands in the text, by start, the longer one first; places of two aliases may overlap.

    Offsets are characters of the original text. An alias that normalises to nothing is never found.
    """
    needles = [needle for alias in dict.fromkeys(aliases) if (needle := _needle(alias)) is not None]
    folded = fold(text)
    needles = [needle for needle in needles if _possible(needle, folded)]
    if not needles:
        return ()
    row = _row(text)
    found = [match for needle in needles for match in _matches(needle, row, text)]
    return tuple(sorted(found, key=lambda match: (match.start, -match.end)))


def contains_any(aliases: Sequence[str], text: str) -> bool:
    """Whether any alias stands in the text; the quick form of `find_aliases`."""
    folded = fold(text)
    row: str | None = None
    for alias in aliases:
        needle = _needle(alias)
        if needle is None or not _possible(needle, folded):
            continue
        if needle.capitals:
            if any(True for _ in _matches(needle, _row(text), text)):
                return True
            continue
        if row is None:
            row = _joined(canonical(token) for token in token_pattern().findall(folded))
        if needle.literal in row or (len(needle.tokens) > 1 and needle.pattern.search(row)):
            return True
    return False


def check_aliases(aliases: Sequence[str]) -> None:
    """Refuse aliases that nothing can be compared with.

    Raises:
        InputError: an alias normalises to nothing.
    """
    for index, alias in enumerate(aliases):
        if _needle(alias) is None:
            raise InputError(
                f"answers[{index}] {alias[:40]!r} holds no letter or digit to look for: write it in words or remove it."
            )


def _joined(pieces: Iterable[str]) -> str:
    return f" {' '.join(pieces)} "


def _row(text: str) -> _Row:
    folded, offsets = fold_with_offsets(text)
    pieces: list[str] = []
    starts: list[int] = []
    spans: list[tuple[int, int]] = []
    at = 1
    for found in token_pattern().finditer(folded):
        piece = canonical(found[0])
        pieces.append(piece)
        starts.append(at)
        at += len(piece) + 1
        if offsets is None:
            spans.append(found.span())
        else:
            spans.append((offsets[found.start()][0], offsets[found.end() - 1][1]))
    return _Row(_joined(pieces), tuple(starts), tuple(spans))


def _matches(needle: _Needle, row: _Row, text: str) -> list[Match]:
    """Places of one needle; a needle in capitals only where the text has capitals or is nothing else."""
    whole = row.text.strip() == needle.literal.strip()
    found = []
    for place in needle.pattern.finditer(row.text):
        start, end = row.original(place.start() + 1, place.end())
        if not needle.capitals or whole or text[start:end].isupper():
            found.append(Match(needle.alias, start, end))
    return found


def _alias_tokens(alias: str) -> list[str]:
    """Tokens of an alias without the articles that do not matter and without breaks at its ends."""
    row = _joined(canonical(token) for token in token_pattern().findall(fold(alias))).split()
    while row and row[0] in BREAKS:
        row.pop(0)
    while row and row[-1] in BREAKS:
        row.pop()
    # A capital A inside a text that is not all capitals is a name ("Vitamin A tablets"), unless it opens it.
    named = " A " in alias.strip() and not alias.isupper()
    kept = [
        word
        for index, word in enumerate(row)
        if word not in ARTICLES
        or index == len(row) - 1
        # "A&B", "A or B", "A. B": a letter in a list, no article.
        or row[index + 1] in _JOINS
        or row[index + 1] in BREAKS
        or (named and word == "a" and index > 0)
    ]
    return row if all(word in ARTICLES for word in kept) else kept


@lru_cache(maxsize=4096)
def _needle(alias: str) -> _Needle | None:
    tokens = tuple(_alias_tokens(alias))
    if not tokens:
        return None
    words = sorted({t for t in tokens if t.isalpha() and t not in _MAPPED}, key=len, reverse=True)
    number = max((t for t in tokens if t[-1:].isdecimal()), key=len, default=None)
    letters = "".join(character for character in alias if character.isalpha())
    return _Needle(
        alias=alias,
        tokens=tokens,
        literal=_joined(tokens),
        words=tuple(words),
        digits=_digits(number) if number else None,
        capitals=len(tokens) == 1 and tokens[0] in _LITTLE_WORDS and letters.isupper(),
    )


@lru_cache(maxsize=4096)
def _compiled(tokens: tuple[str, ...]) -> re.Pattern[str]:
    body = _OPTIONAL_ARTICLES.join(re.escape(token) for token in tokens)
    return re.compile(f" {body}(?= )")


@lru_cache(maxsize=4096)
def _digits(number: str) -> re.Pattern[str]:
    """What any spelling of a number must hold: its digits in order, at most a separator between two."""
    digits = re.sub(r"\D", "", number).lstrip("0") or "0"
    tail = "" if "." in number or len(digits) > _LOOK else "(?![0-9])"
    digits = digits[:_LOOK]
    return re.compile("(?<![1-9])" + "[.,:'’_ e+−–-]?".join(digits) + tail if digits != "0" else "0")


def _possible(needle: _Needle, folded: str) -> bool:
    """Whether a folded text can hold the needle at all: cheap, and never wrong when it says no."""
    for word in needle.words:
        if word not in folded and ("." not in folded or word not in folded.replace(".", "")):
            return False
    return needle.digits is None or needle.digits.search(folded) is not None
