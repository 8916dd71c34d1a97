"""Search terms of a text, for BM25 and for comparing sentences."""

from __future__ import annotations

import re
import unicodedata

# Han, kana, hangul and Thai write words without spaces between them (hangul glues endings on): bigrams stand in for words.
_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_TERM = re.compile(rf"(?P<run>[{_UNSPACED}]+)|\d+(?:[.,:]\d+)*|[^\W\d_{_UNSPACED}]+")


def tokenise(text: str) -> list[str]:
    """Search terms: words and numbers, case and accents folded; pairs of characters in scripts without spaces."""
    plain = text
    if not text.isascii():
        plain = unicodedata.normalize("NFKD", text)
        plain = unicodedata.normalize("NFC", "".join(c for c in plain if not unicodedata.combining(c)))
    terms: list[str] = []
    for match in _TERM.finditer(plain.casefold()):
        run = match["run"]
        if run is None:
            terms.append(match[0])
        elif len(run) == 1:
            terms.append(run)
        else:
            terms += [run[i : i + 2] for i in range(len(run) - 1)]
    return terms
