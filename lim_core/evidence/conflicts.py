"""Chunks that contradict the right answer: another value for the very thing asked.

Made to be precise rather than complete. A sentence of another chunk contradicts the sentence with the right answer only
if it has every word of the question that the gold chunk has (so it is about the same entity and attribute), has exactly
one other value of the same kind and unit, and differs otherwise in little, and not in its scope ("for charities").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from lim_core.text.normalise import contains_any, find_aliases
from lim_core.text.sentences import Sentence, content_words, sentences, stem
from lim_core.text.values import Value, later_of, values
from lim_core.types import Case, Chunk

# Words in which two statements of one fact may differ: how old they are, and how an amount is put.
_NEUTRAL = frozenset(
    stem(word)
    for word in re.findall(
        r"\w+",
        """january february march april may june july august september october november december year month
    new old former formerly current currently now today previous previously earlier since until till effective valid
    applies apply applied starting start begin amended updated revised raised reduced increased lowered changed set fixed
    amount amounts total cost costs price fee fees charge charged charges pay paid payable euro euros dollar dollars pound
    according notice tariff schedule edition version rule rules regulation decision council resolution page note number
    located situated named called appointed elected head""",
    )
)
_SCOPES = re.compile(
    r"\b(?:for|on|in|at|during|with|without|under|over|if|when|unless|except|after|before|above|below|within|"
    r"für|bei|während|pour|pendant|para|durante)\s+((?:[\w'-]+\s*){1,4})",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?:[^\W\d_a-z][\w.'’-]*)(?:\s+(?:de|von|van|der|of|la|le)?\s*[^\W\d_a-z][\w.'’-]*){0,3}")
_MOST_SENTENCES = 400
_MOST_STATEMENTS = 5


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two chunks with different values for what is asked; `right` is the accepted one, `other` the one against it.

    `other_forms` are the ways in which an answer may give the other value. `later_id` is None where dates do not tell.
    """

    right_id: str
    other_id: str
    right: str
    other: str
    other_forms: tuple[str, ...]
    later_id: str | None


@dataclass(frozen=True, slots=True)
class _Statement:
    """The sentence of a chunk that gives the right answer, and what another one must share to speak of the same thing."""

    chunk: Chunk
    sentence: str
    answer: str
    value: Value | None
    subject: frozenset[str]
    rest: frozenset[str]
    around: frozenset[str]


def find_conflicts(case: Case, gold: Sequence[Chunk]) -> tuple[Conflict, ...]:
    """Chunks of the case that contradict a gold chunk, each once, in retrieved order."""
    asked = content_words(case.question)
    right = [statement for chunk in gold for statement in islice(_statements(case, chunk, asked), _MOST_STATEMENTS)]
    if not right:
        return ()
    gold_ids = {chunk.id for chunk in gold}
    found: list[Conflict] = []
    for chunk in case.chunks:
        # A chunk that holds the right answer too tells the model both; it is no witness against it.
        if chunk.id in gold_ids or not any(_may_mention(r.subject, f"{chunk.title} {chunk.text}") for r in right):
            continue
        if contains_any(case.answers, chunk.text):
            continue
        conflict = next((c for statement in right if (c := _contradiction(statement, chunk, asked))), None)
        if conflict is not None:
            found.append(conflict)
    return tuple(found)


def told_other_value(case: Case, conflict: Conflict) -> bool:
    """Whether the recorded answer gives the other value and not the right one."""
    answer = case.answer
    return answer is not None and contains_any(conflict.other_forms, answer) and not contains_any(case.answers, answer)


def _statements(case: Case, chunk: Chunk, asked: frozenset[str]) -> Iterator[_Statement]:
    matches = find_aliases(case.answers, chunk.text)[:50]
    around = content_words(f"{chunk.title} {chunk.text[:2000]}")
    for sentence in sentences(chunk.text) if matches else ():
        for match in matches:
            if not sentence.start <= match.start < sentence.end:
                continue
            start, end = match.start - sentence.start, min(match.end, sentence.end) - sentence.start
            value = next((v for v in values(sentence.text) if v.start < end and start < v.end), None)
            answer = chunk.text[match.start : match.end]
            subject = (asked & around) - content_words(answer)
            rest = _words_beside(sentence.text, values(sentence.text)) - content_words(answer)
            if len(subject) >= 2 and 2 * len(subject) >= len(asked):
                yield _Statement(chunk, sentence.text, answer, value, subject, rest, around)


def _contradiction(right: _Statement, chunk: Chunk, asked: frozenset[str]) -> Conflict | None:
    title = content_words(chunk.title)
    if not right.subject <= content_words(chunk.text) | title:
        return None
    for sentence in sentences(chunk.text)[:_MOST_SENTENCES]:
        words = content_words(sentence.text) | title
        if not right.subject <= words:
            continue
        other = _other_value(right, sentence) if right.value else _other_name(right, sentence)
        if other is None:
            continue
        rest = _words_beside(sentence.text, values(sentence.text)) - content_words(other.text)
        more = rest - right.around - asked - _NEUTRAL
        less = right.rest - rest - title - asked - _NEUTRAL
        shared = (right.rest & rest) | right.subject
        if max(len(more), len(less)) > max(1, len(shared) // 2):
            continue
        if _scoped(sentence.text, more) or _scoped(right.sentence, less):
            continue
        forms = (other.text, other.core) if right.value else (other.text,)
        shown = right.value.text if right.value else right.answer
        return Conflict(right.chunk.id, chunk.id, shown, other.text, forms, later_of(right.chunk, chunk))
    return None


def _may_mention(stems: frozenset[str], text: str) -> bool:
    """A cheap check before all words are cut out: all but the last letter of a stem stands in its word as written."""
    if not text.isascii():
        return True
    plain = text.lower()
    return all(word[:-1] in plain for word in stems)


@dataclass(frozen=True, slots=True)
class _Other:
    text: str
    core: str


def _other_value(right: _Statement, sentence: Sentence) -> _Other | None:
    value = right.value
    if value is None:
        return None
    known = {v.key for v in values(right.sentence)}
    rivals = {
        v.key: v
        for v in values(sentence.text)
        if v.kind is value.kind and v.unit == value.unit and v.key not in known and v.core not in right.subject
    }
    if len(rivals) != 1:
        return None
    rival = next(iter(rivals.values()))
    return _Other(rival.text, rival.core)


def _other_name(right: _Statement, sentence: Sentence) -> _Other | None:
    """A name in the same place: after the same two words, or at the start before the same two."""
    at = right.sentence.find(right.answer)
    if at < 0 or not right.answer[:1].isupper():
        return None
    before = re.findall(r"\w+", right.sentence[:at].lower())[-2:]
    after = re.findall(r"\w+", right.sentence[at + len(right.answer) :].lower())[:2]
    for match in _NAME.finditer(sentence.text):
        name = match[0].rstrip(".,'’-")
        ahead = re.findall(r"\w+", sentence.text[: match.start()].lower())[-2:]
        behind = re.findall(r"\w+", sentence.text[match.start() + len(name) :].lower())[:2]
        same_place = ahead == before if before else (not ahead and len(after) == 2 and behind == after)
        if same_place and len(before or after) == 2 and not content_words(name) & (right.around | right.subject):
            return _Other(name, name)
    return None


def _words_beside(sentence: str, found: Sequence[Value]) -> frozenset[str]:
    """Content words of a sentence without its values."""
    pieces, start = [], 0
    for value in found:
        pieces.append(sentence[start : value.start])
        start = max(start, value.end)
    return content_words(" ".join([*pieces, sentence[start:]]))


def _scoped(sentence: str, words: frozenset[str]) -> bool:
    """Whether one of these words narrows what the sentence speaks of."""
    return bool(words) and any(words & content_words(match[1]) for match in _SCOPES.finditer(sentence))
