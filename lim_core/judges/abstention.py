"""Whether an answer declines: says that it does not know, or that the documents do not tell.

Wordings of fourteen languages, matched on the folded text (`lim_core.folding`). Three kinds:

- refusals of an answer ("I don't know", "cannot be determined") count in the first and in the last sentence, unless the
  same sentence goes on to offer one ("..., but I think it is 14");
- statements about the documents ("the passages do not mention it") count in the first sentence only, for later ones
  usually qualify an answer that was given;
- bare words ("unknown", "N/A") count only where they are all of the answer.

A sentence that merely holds a negation is an answer: "There is no fee", "It is not known as Lutetia but as Paris".
"""

from __future__ import annotations

import re
from functools import lru_cache

from lim_core.judges.wordings import BARE, OFFERS, OPENERS, REFUSALS, STATEMENTS
from lim_core.text.folding import fold

_LONGEST = 600
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？｡])|\n+")


def is_abstention(text: str) -> bool:
    """Whether the answer declines to answer, in any of the languages known here; an empty text does not."""
    flat = fold(text.replace("’", "'").replace("‘", "'")).strip(" \t\r\n*_`\"'“”")
    if not flat:
        return False
    if flat.rstrip(" .!。") in _bare():
        return True
    sentences = [part.strip() for part in _SENTENCE.split(flat) if part and part.strip()]
    if not sentences:
        # Separators of other alphabets and control characters count as space here, not above.
        return False
    if len(sentences) > 1 and OPENERS.match(sentences[0]):
        del sentences[0]
    # A decline is short; the cut keeps a reply of one endless line cheap.
    first, last = sentences[0][:_LONGEST], sentences[-1][-_LONGEST:]
    if _declines(first, _statements()) or _declines(first, _refusals()):
        return not (len(sentences) > 1 and OFFERS.match(sentences[1]))
    return _declines(last, _refusals())


def _declines(sentence: str, pattern: re.Pattern[str]) -> bool:
    found = pattern.search(sentence)
    return found is not None and not OFFERS.search(sentence, found.end())


@lru_cache(maxsize=1)
def _statements() -> re.Pattern[str]:
    return re.compile("|".join(_folded(pattern) for pattern in STATEMENTS))


@lru_cache(maxsize=1)
def _refusals() -> re.Pattern[str]:
    return re.compile("|".join(_folded(pattern) for pattern in REFUSALS))


@lru_cache(maxsize=1)
def _bare() -> frozenset[str]:
    return frozenset(fold(word) for word in BARE)


def _folded(pattern: str) -> str:
    """A pattern in the spelling of folded text, its escapes (\\W, \\b) left alone."""
    return "".join(part if part.startswith("\\") else fold(part) for part in re.split(r"(\\.)", pattern))
