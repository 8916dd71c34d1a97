"""Sentences and their content words: what a passage is about, in a form that two passages can be compared by."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from lim_core.text.normalise import find_aliases
from lim_core.text.terms import tokenise

# English, German, French, Spanish: words that say nothing about the subject; accents are folded.
_STOP = frozenset(
    re.findall(
        r"\w+",
        """a an and any are as at be been being but by can could did do does for from had has have he her his how i if in into
    is it its many may me much must my no nor not of on only or our shall she should so some such than that the their them
    then there these they this those to until up upon us was we were what when where which while who whom whose why will
    with would you your
    aber als am an auch auf aus bei bis das dass dem den der des die dies diese ein eine einem einen einer eines er es fur
    hat ich ihr im in ist kann mit nach nicht nur ob oder sich sie sind so um und viel viele von vor wann war was wer wie
    wird wo zu zum zur welche welcher welches
    au aux avec ce ces cette combien comment dans de des du elle en est et il ils la le les leur mais ne on ou par pas pour
    quand que quel quelle quelles quels qui sa se ses son sont sur un une
    al como con cual cuales cuando cuanto cuantos de del donde el ella en es esta este ha la las lo los mas no o para pero
    por que quien se son su sus un una y""",
    )
)
_ABBREVIATION = re.compile(
    r"(?:\b[^\W\d_]|\b(?:no|nr|dr|mr|mrs|ms|st|prof|fig|art|sec|vol|approx|ca|bzw|etc|p\.m|a\.m))\.$", re.I
)
_END = re.compile(r"(?<=[.!?])[\"'”’)]*\s+|(?<=[。！？])|\n+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its half-open character range in the text it comes from."""

    text: str
    start: int
    end: int


def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text; decimal points and common abbreviations do not end one."""
    found: list[Sentence] = []
    start = 0
    for match in _END.finditer(text):
        if "\n" not in match[0] and _ABBREVIATION.search(text[max(start, match.start() - 12) : match.start()]):
            continue
        piece = text[start : match.start()]
        if piece.strip():
            found.append(Sentence(piece, start, match.start()))
        start = match.end()
    if text[start:].strip():
        found.append(Sentence(text[start:], start, len(text)))
    return tuple(found)


def content_words(text: str) -> frozenset[str]:
    """Stems of the words that carry meaning; numbers as they are, pairs of characters in scripts without spaces."""
    return frozenset(stem(term) for term in tokenise(text) if term not in _STOP)


def stem(term: str) -> str:
    """A crude stem, enough to let permit and permits, cost and costs, open and opening agree."""
    for ending, instead, least in (("ies", "y", 3), ("ing", "", 4), ("ed", "", 4), ("es", "e", 3), ("s", "", 3)):
        if term.endswith(ending) and len(term) - len(ending) >= least and not term.endswith("ss"):
            term = term[: -len(ending)] + instead
            break
    return term[:-1] if term.endswith("e") and len(term) > 4 else term


def states_answer(question: str, answers: Sequence[str], text: str, title: str = "") -> bool:
    """Whether an accepted answer stands in a sentence about the question: one that has half its content words.

    A number such as 12 stands in many texts that have nothing to do with the question. The words of the title count for
    every sentence.
    """
    asked = content_words(question)
    around = content_words(title)
    matches = find_aliases(answers, text)
    starts = sorted(match.start for match in matches)
    for sentence in sentences(text) if matches else ():
        first = bisect_left(starts, sentence.start)
        if first < len(starts) and starts[first] < sentence.end:
            about = content_words(sentence.text) | around
            if 2 * len(asked & about) >= len(asked):
                return True
    return False
