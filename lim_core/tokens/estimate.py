"""A token estimate from the characters alone, with a band that is meant to hold the true count.

Each character adds a lower and an upper share of a token by its script and by whether it starts a word, a number or a
run. The factors come from two linear programs over 202 texts (prose in 20 languages, tables, JSON, Python and
JavaScript code, hashes, licences, encyclopaedia passages, package metadata): the largest factors whose sum stays below
the smallest of four counts, and the smallest whose sum stays above the largest. The four are the tokenizers o200k,
cl100k and Voyage 3 (bpe-openai) and Gemma 3 (the embedded model's own), vocabularies of 100,000 to 262,000 entries. The
factors were then widened by 5%, by 10 to 15% for scripts that one text stands for, and rounded outwards. Of 90 further
texts all four counts lay inside the band, for one of them (long rows of digits) only after the digit factors had been
lowered for it. The band is narrow for English prose (upper over lower end 1.4 to 1.6), wider for code (2.2) and most
European languages (2 to 3.4), and up to 10 for Indic scripts, where the four tokenizers themselves differ by a factor of
5. Vocabularies of 32,000 entries (Llama 2) can need more than the upper end outside English.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SPACE, _NEWLINE, _LOWER, _UPPER, _DIGIT, _PUNCT, _LATIN, _CYRILLIC, _GREEK = range(9)
_ARABIC, _HEBREW, _INDIC, _THAI, _HAN, _KANA, _HANGUL, _SYMBOL, _OTHER = range(9, 18)
_BMP = 0x10000
# First code, end code, class; later rows win. Armenian and Georgian count like the Indic scripts, Lao and Khmer like Thai.
_RANGES = (
    (0x0000, 0x0021, _SPACE), (0x000A, 0x000B, _NEWLINE), (0x000D, 0x000E, _NEWLINE), (0x0021, 0x007F, _PUNCT),
    (0x0030, 0x003A, _DIGIT), (0x0041, 0x005B, _UPPER), (0x0061, 0x007B, _LOWER), (0x007F, 0x00C0, _SYMBOL),
    (0x00A0, 0x00A1, _SPACE), (0x00C0, 0x0370, _LATIN), (0x0370, 0x0400, _GREEK), (0x0400, 0x0530, _CYRILLIC),
    (0x0530, 0x0590, _INDIC), (0x0590, 0x0600, _HEBREW), (0x0600, 0x0780, _ARABIC), (0x0900, 0x0E00, _INDIC),
    (0x0E00, 0x10A0, _THAI), (0x10A0, 0x1100, _INDIC), (0x1100, 0x1200, _HANGUL), (0x1780, 0x1800, _THAI),
    (0x1E00, 0x1F00, _LATIN), (0x1F00, 0x2000, _GREEK), (0x2000, 0x2E80, _SYMBOL), (0x2000, 0x200B, _SPACE),
    (0x2E80, 0x3040, _HAN), (0x3040, 0x3100, _KANA), (0x3100, 0xA000, _HAN), (0xAC00, 0xD7B0, _HANGUL),
    (0xF900, 0xFB00, _HAN), (0xFB50, 0xFE00, _ARABIC), (0xFE70, 0xFF00, _ARABIC), (0xFF00, 0xFFF0, _HAN),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Factor:
    """Tokens that one character, or one start of a run, adds: at least and at most."""

    low: float
    high: float


_PER_CHARACTER = {
    _DIGIT: _Factor(0.32, 0.95),
    _LATIN: _Factor(0.04, 1.95),
    _CYRILLIC: _Factor(0.14, 0.68),
    _GREEK: _Factor(0.25, 1.15),
    _ARABIC: _Factor(0.17, 0.95),
    _HEBREW: _Factor(0.29, 1.20),
    _INDIC: _Factor(0.16, 1.70),
    _THAI: _Factor(0.30, 1.15),
    _HAN: _Factor(0.55, 1.70),
    _KANA: _Factor(0.33, 1.00),
    _HANGUL: _Factor(0.55, 1.50),
    _SYMBOL: _Factor(1.00, 2.90),
    _OTHER: _Factor(0.90, 2.70),
}
_WORD = _Factor(0.97, 1.12)  # a word in Latin letters, or a capital inside one
_LATE_LETTER = _Factor(0.02, 0.40)  # its sixth letter and later ones
_CAPITALS = _Factor(0.04, 0.10)  # a capital after a capital
_OTHER_WORD = _Factor(0.00, 0.55)  # a word in another script that writes spaces
_NUMBER = _Factor(0.30, 1.05)  # the first digit of a number, on top of the digit
_PUNCT_RUN = _Factor(0.26, 0.97)
_PUNCT_MORE = _Factor(0.20, 0.50)
_LINE_BREAK = _Factor(0.15, 0.50)  # a run of line breaks
_INDENT = _Factor(0.00, 0.50)
_MORE_SPACE = _Factor(0.00, 0.25)
_LONG_WORD = 5


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Lower and upper share of a token for every character, shape (len(text),) each."""

    low: NDArray[np.float32]
    high: NDArray[np.float32]


@lru_cache(maxsize=2)
def token_shares(text: str) -> Shares:
    """What each character of a text adds to its token count; the sums over a text are the ends of its band.

    Not to be changed: the last two are kept, for one prompt is counted and measured several times in a row.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kinds = np.where(codes < _BMP, _classes()[np.minimum(codes, _BMP - 1)], _OTHER)
    before = np.empty_like(kinds)
    before[:1] = _SPACE
    before[1:] = kinds[:-1]

    upper = kinds == _UPPER
    letters = (kinds == _LOWER) | upper | (kinds == _LATIN)
    letters_before = (before == _LOWER) | (before == _UPPER) | (before == _LATIN)
    words = letters & (~letters_before | (upper & (before == _LOWER)))
    index = np.arange(len(kinds), dtype=np.int32)
    word_starts = np.maximum.accumulate(np.where(words, index, 0))
    spaces = kinds == _SPACE
    same = kinds == before
    parts = (
        (words, _WORD),
        (letters & (index - word_starts >= _LONG_WORD), _LATE_LETTER),
        (upper & (before == _UPPER), _CAPITALS),
        ((kinds >= _CYRILLIC) & (kinds <= _INDIC) & ~same, _OTHER_WORD),
        ((kinds == _DIGIT) & ~same, _NUMBER),
        ((kinds == _PUNCT) & ~same, _PUNCT_RUN),
        ((kinds == _PUNCT) & same, _PUNCT_MORE),
        ((kinds == _NEWLINE) & ~same, _LINE_BREAK),
        (spaces & (before == _NEWLINE), _INDENT),
        (spaces & same, _MORE_SPACE),
    )
    lows, highs = _character_factors()
    low, high = lows[kinds], highs[kinds]
    for mask, factor in parts:
        low[mask] += factor.low
        high[mask] += factor.high
    return Shares(low, high)


@lru_cache(maxsize=1)
def _classes() -> NDArray[np.uint8]:
    table = np.full(_BMP, _OTHER, dtype=np.uint8)
    for first, end, kind in _RANGES:
        table[first:end] = kind
    return table


@lru_cache(maxsize=1)
def _character_factors() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    lows, highs = np.zeros(_OTHER + 1, np.float32), np.zeros(_OTHER + 1, np.float32)
    for kind, factor in _PER_CHARACTER.items():
        lows[kind], highs[kind] = factor.low, factor.high
    return lows, highs
