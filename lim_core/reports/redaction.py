"""Strikes the texts of a run out of the sentences that speak about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from lim_core.types import Case, Json

STRUCK = "[left out]"
# So many words in a row that also stand in a text of the run are a quotation of it.
_QUOTED_WORDS = 5
# Fields of a document that hold sentences or values read from a text; every other text in it is a name or an id.
_SENTENCES = frozenset(
    (
        "summary",
        "advice",
        "reason",
        "note",
        "obstacle",
        "template_note",
        "warnings",
        "stopped",
        "question",
        "values",
        # The options of a scripted model can hold its answers.
        "options",
    )
)
_WORD = re.compile(r"\w+")


class Redaction:
    """The texts of some cases and answers, and the act of striking them.

    A sentence loses each question, answer and conflicting value in it, and each run of five words that a text holds.
    """

    def __init__(self, cases: Sequence[Case], answers: Iterable[str], document: Mapping[str, Json]) -> None:
        whole: set[str] = set(_values(document))
        long: list[str] = []
        for case in cases:
            whole |= {case.question, *case.answers, case.answer or ""}
            long += [case.question, *case.answers, case.answer or ""]
            for chunk in (*case.chunks, *(case.candidates or ()), *(case.corpus or ())):
                whole.add(chunk.title)
                long += [chunk.title, chunk.text]
            long += [message.content for message in case.prompt or ()]
        long += answers
        words = (" ".join(text.split()) for text in whole)
        parts = sorted((re.escape(text) for text in words if text), key=len, reverse=True)
        self._whole = re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)", re.IGNORECASE) if parts else None
        self._texts = f" {' | '.join(' '.join(_WORD.findall(text.casefold())) for text in long)} "

    def strike(self, sentence: str) -> str:
        """The sentence without what it quotes."""
        said = " ".join(sentence.split())
        if self._whole is not None:
            said = self._whole.sub(STRUCK, said)
        for span in reversed(self._quotations(said)):
            said = f"{said[: span.start]}{STRUCK}{said[span.stop :]}"
        return said

    def _quotations(self, said: str) -> list[slice]:
        """Where words stand, in a row, as in one of the texts; spans do not touch."""
        words = list(_WORD.finditer(said))
        spans: list[slice] = []
        last = -1
        for place in range(len(words) - _QUOTED_WORDS + 1):
            run = words[place : place + _QUOTED_WORDS]
            if f" {' '.join(word.group().casefold() for word in run)} " not in self._texts:
                continue
            start = spans.pop().start if place <= last + 1 and spans else run[0].start()
            spans.append(slice(start, run[-1].end()))
            last = place + _QUOTED_WORDS - 1
        return spans

    def document(self, document: Mapping[str, Json]) -> Mapping[str, Json]:
        """The document of a run with its sentences struck and its question gone."""
        return {name: self._part(name, value) for name, value in document.items()}

    def _part(self, name: str, value: Json) -> Json:
        if name in _SENTENCES:
            return _each(value, self.strike)
        if isinstance(value, Mapping):
            return {key: self._part(key, item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._part(name, item) for item in value]
        return value


def _each(value: Json, act: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return act(value)
    if isinstance(value, Mapping):
        return {key: _each(item, act) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_each(item, act) for item in value]
    return value


def _values(value: Json, name: str = "") -> Iterable[str]:
    """The values that documents contradict each other in, wherever the document names them."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _values(item, key)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _values(item, name)
    elif isinstance(value, str) and name == "values":
        yield value
