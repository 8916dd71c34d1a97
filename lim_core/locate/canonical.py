"""Text reduced to the characters that survive a template, each with its place in the original.

What a pipeline changes on the way into a prompt is white space, line breaks, quotes, Markdown marks, HTML tags and
entities, backslash escapes, letter case and the Unicode form of accents. All of these are taken out or folded, on the
chunk and on the prompt alike; letters, digits and the punctuation that carries meaning (3.14 is not 314) stay.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Any run of backslashes, for a prompt that was put into JSON twice shows each escape with two or four of them.
_ESCAPE = re.compile(
    # From the start of the run only, or a long run would be read again from each of its backslashes.
    r"(?<!\\)\\++(?:u[dD][89abAB][0-9a-fA-F]{2}\\++u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[nrtbf])"
)
_TAG = (
    r"/?(?:a|b|blockquote|br|code|div|em|h[1-6]|hr|i|li|ol|p|pre|span|strong|sub|sup|table|tbody|td|th|thead|tr|u|ul)"
    r"(?:\s[^<>]{0,200}?)?/?"
)
_MARKUP = re.compile(
    rf"<{_TAG}\\{{0,4}}>|&(?:amp;)?lt;{_TAG}&(?:amp;)?gt;|&(?:amp;)?(?:#\d{{1,7}}|#[xX][0-9a-fA-F]{{1,6}}|[a-zA-Z]{{2,31}});",
    re.IGNORECASE,
)
_HEX = re.compile(r"u([0-9a-fA-F]{4})")
# Marks of Markdown and quotation, bullets, and characters without width.
_DROPPED = "\\*_`#>|~\"'‘’‚‛“”„‟«»‹›•‣◦⁃∙·\u00ad\u200b\u200c\u200d\u2060\ufeff\ufffe\uffff"
_DASHES = "‐‑‒–—―−－"
_BMP = 0x10000


@dataclass(frozen=True, slots=True, eq=False)
class Canonical:
    """The reduced text and, for each of its characters, the 0-based index of its source in the original."""

    text: str
    codes: NDArray[np.uint32]
    places: NDArray[np.int64]
    length: int

    def start(self, at: int) -> int:
        """Where in the original the reduced character `at` begins; the original's length past the last."""
        return int(self.places[at]) if at < len(self.places) else self.length

    def end(self, at: int) -> int:
        """Where in the original the reduced text up to `at`, exclusive, ends."""
        return int(self.places[at - 1]) + 1 if at > 0 else 0


def canonical(text: str) -> Canonical:
    """Reduce a text; one pass over its characters, with a table."""
    source = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    codes = source
    if "\\" in text or "&" in text or "<" in text:
        codes = source.copy()
        if "\\" in text:
            for match in _ESCAPE.finditer(text):
                _replace(codes, match, _unescape(match[0]))
        if "&" in text or "<" in text:
            for match in _MARKUP.finditer(text):
                _replace(codes, match, _unmark(match[0]))
    table = _table()
    reduced = np.where(codes < _BMP, table[np.minimum(codes, _BMP - 1)], codes)
    places = np.flatnonzero(reduced)
    kept = reduced[places].astype(np.uint32)
    return Canonical(kept.tobytes().decode("utf-32-le", "surrogatepass"), kept, places, len(text))


def _replace(codes: NDArray[np.uint32], match: re.Match[str], char: str) -> None:
    codes[match.start() : match.end()] = 0
    # The last place, so that text kept up to here includes the whole escape.
    if char:
        codes[match.end() - 1] = ord(char)


def _unescape(escape: str) -> str:
    units = [int(unit, 16) for unit in _HEX.findall(escape)]
    if not units:
        return ""
    if len(units) == 2:
        return chr(0x10000 + ((units[0] - 0xD800) << 10) + (units[1] - 0xDC00))
    return chr(units[0])


def _unmark(mark: str) -> str:
    if mark.startswith("<") or "&" in mark[1:]:
        return ""
    char = html.unescape(html.unescape(mark))
    return char if len(char) == 1 else ""


@lru_cache(maxsize=1)
def _table() -> NDArray[np.uint32]:
    """For each code of the basic plane the folded code, 0 for one that is dropped.

    A character that unfolds into several (a ligature, a fraction) is folded to its first on both sides. Hangul
    syllables stay whole, for their first letter alone would make different words equal.
    """
    table = np.zeros(_BMP, dtype=np.uint32)
    for code in range(1, _BMP):
        char = chr(code)
        category = unicodedata.category(char)
        if char.isspace() or category in ("Cc", "Cn", "Mn", "Me") or char in _DROPPED:
            continue
        if char in _DASHES:
            table[code] = ord("-")
        elif 0xAC00 <= code <= 0xD7A3:
            table[code] = code
        else:
            folded = (unicodedata.normalize("NFKD", char) or char).casefold()
            # A spacing accent unfolds to a space first; it is a mark, not text.
            table[code] = 0 if not folded or folded[0].isspace() else ord(folded[0])
    return table
