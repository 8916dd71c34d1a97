"""The rule behind the scripted model: where the gold document stands decides how likely the answer is right.

The rule sees nothing but the prompt. It reads the default layout, "Document [i](Title: T) text" and a last "Question: ...",
and takes for gold the first document that holds one of the needles (or, where no needle is given, the one that shares most
words with the question). The draw is a hash of seed and prompt: the same prompt gets the same answer, as from a greedy model.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from lim_core.errors import ConfigError

_DOCUMENT = re.compile(r"^Document \[(\d+)\](?:\(Title: (.*?)\))? ?", re.MULTILINE)
_QUESTION = re.compile(r"^Question: ?(.*)$", re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_WORD = re.compile(r"\w{3,}")
_TOKEN = re.compile(r"\s?[^\W_]{1,8}|\s?[^\w\s]|_|\s")
DECLINED = "The documents do not say."

# Accuracy at relative depth 0, 0.5, 1 of the slots, as named shapes of the edge and middle accuracy.
_SHAPES = {
    "u": ("edge", "middle", "edge"),
    "flat": ("edge", "edge", "edge"),
    "primacy": ("edge", "middle", "middle"),
    "recency": ("middle", "middle", "edge"),
    "inverted": ("middle", "edge", "middle"),
    "distracted": ("middle", "middle", "middle"),
}


@dataclass(frozen=True, slots=True)
class Sheet:
    """What the rule reads from a prompt: the documents' texts in order, and the last question."""

    documents: tuple[str, ...]
    question: str


@dataclass(frozen=True, slots=True)
class Profile:
    """Probability of a right answer by the gold's relative slot in [0, 1], linear between the points."""

    points: tuple[tuple[float, float], ...]

    def at(self, depth: float) -> float:
        """The probability at one relative slot."""
        index = bisect_right(self.points, (depth, 2.0))
        if index == 0:
            return self.points[0][1]
        if index == len(self.points):
            return self.points[-1][1]
        (x0, y0), (x1, y1) = self.points[index - 1], self.points[index]
        return y0 + (y1 - y0) * (depth - x0) / (x1 - x0)


def read_profile(shape: str, edge: float, middle: float) -> Profile:
    """A named shape, or points as "0:0.9, 0.5:0.2, 1:0.9" (relative slot: probability).

    Raises:
        ConfigError: no such shape, or points that are no probabilities by rising slot.
    """
    if shape in _SHAPES:
        values = {"edge": edge, "middle": middle}
        points = tuple((x, values[name]) for x, name in zip((0.0, 0.5, 1.0), _SHAPES[shape], strict=True))
    else:
        try:
            pairs = [pair.split(":") for pair in shape.split(",")]
            points = tuple((float(x), float(y)) for x, y in pairs)
        except ValueError:
            names = ", ".join(_SHAPES)
            raise ConfigError(
                f"The profile {shape!r} is neither of {names} nor points like 0:0.9,0.5:0.2,1:0.9."
            ) from None
    depths = [x for x, _ in points]
    if sorted(set(depths)) != depths or not all(0 <= x <= 1 and 0 <= y <= 1 for x, y in points):
        raise ConfigError("A profile's slots must rise from 0 to 1, and its probabilities lie from 0 to 1.")
    return Profile(points)


@dataclass(frozen=True, slots=True)
class Rule:
    """How the scripted model answers; see the module's docstring. `oracle` and `closed_book` are probabilities too."""

    profile: Profile
    oracle: float
    closed_book: float
    needles: tuple[str, ...]
    seed: int

    def answer(self, prompt: str, sending: int = 0) -> str:
        """The answer to a prompt; `sending` tells repeated prompts apart where each is to be drawn anew."""
        sheet = read_sheet(prompt)
        gold = self._gold(sheet)
        draw = _draw(f"{self.seed}\n{sending}\n{prompt}")
        if gold is None:
            return self.needles[0] if self.needles and draw < self.closed_book else _wrong(sheet, gold, self.needles)
        n = len(sheet.documents)
        chance = self.oracle if n == 1 else self.profile.at(gold / (n - 1))
        return self._right(sheet, gold) if draw < chance else _wrong(sheet, gold, self.needles)

    def _gold(self, sheet: Sheet) -> int | None:
        if self.needles:
            lowered = [needle.casefold() for needle in self.needles]
            holds = (
                i for i, text in enumerate(sheet.documents) if any(needle in text.casefold() for needle in lowered)
            )
            return next(holds, None)
        asked = _words(sheet.question)
        shared = [len(asked & _words(text)) for text in sheet.documents]
        return shared.index(max(shared)) if shared and max(shared) > 0 else None

    def _right(self, sheet: Sheet, gold: int) -> str:
        text = sheet.documents[gold]
        found = (needle for needle in self.needles if needle.casefold() in text.casefold())
        return next(found, None) or _best_sentence(text, sheet.question)


def read_sheet(prompt: str) -> Sheet:
    """Documents and question of a prompt in the default layout; text around them is passed over."""
    questions = list(_QUESTION.finditer(prompt))
    asked = questions[-1] if questions else None
    question = asked[1].strip() if asked is not None else prompt.strip().rsplit("\n", 1)[-1]
    # A question repeated in front of the documents ends nothing; the one behind the last document does.
    marks = list(_DOCUMENT.finditer(prompt))
    stop = asked.start() if asked is not None and marks and asked.start() > marks[-1].start() else len(prompt)
    ends = [mark.start() for mark in marks[1:]] + [stop]
    texts = tuple(
        f"{mark[2] or ''}\n{prompt[mark.end() : end].strip()}" for mark, end in zip(marks, ends, strict=False)
    )
    return Sheet(texts, question)


def split_tokens(text: str) -> list[str]:
    """The scripted tokenizer: pieces of up to eight letters with the space before them; they join to the text again."""
    return _TOKEN.findall(text)


def shared_prefix(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the common prefix of two token lists, by halving: slices compare at C speed."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        mid = (low + high + 1) // 2
        if a[low:mid] == b[low:mid]:
            low = mid
        else:
            high = mid - 1
    return low


def _draw(text: str) -> float:
    return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big") / 2**64


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _best_sentence(text: str, question: str) -> str:
    asked = _words(question)
    body = text.split("\n", 1)[-1]
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(body) if sentence.strip()]
    return max(sentences, key=lambda sentence: len(asked & _words(sentence)), default=DECLINED)


def _wrong(sheet: Sheet, gold: int | None, needles: tuple[str, ...]) -> str:
    """A sentence of the nearest other document that gives nothing away, as a distracted model would say it."""
    order = sorted((i for i in range(len(sheet.documents)) if i != gold), key=lambda i: abs(i - (gold or 0)))
    for i in order:
        sentence = _best_sentence(sheet.documents[i], sheet.question)
        if not any(needle.casefold() in sentence.casefold() for needle in needles):
            return sentence
    return DECLINED
