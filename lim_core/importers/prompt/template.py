"""The user's own template, learnt from a prompt as sent, so that arms are laid out in it and not in lim's.

From the prompt and the chunks in it: what stands before the first chunk and after the last, what stands between two, and
what belongs to one chunk (its number, title, tags). Numbers follow the place, titles travel with their chunk. Laying the
original chunks out in their original order gives the original prompt, byte for byte; a template for which that does not
hold is not handed out.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from lim_core.importers.prompt.in_json import escaped
from lim_core.importers.prompt.wrapping import Wrapper, learn_wrappers
from lim_core.locate.cuts import as_sent
from lim_core.locate.search import locate
from lim_core.types import Case, Chunk, Message, Prompt, Span

# Between two chunks that stand whole in a prompt there is no room for a clipped third one.
_WIDEST_GAP = 600


@dataclass(frozen=True, slots=True)
class Unit:
    """One chunk as the prompt shows it: its own text, the text as it stands there, and what is wrapped around it."""

    text: str
    raw: str
    header: Wrapper
    footer: Wrapper


@dataclass(frozen=True, slots=True)
class UserTemplate:
    """A prompt with its chunks taken out. `message` is the index of the message that held them."""

    messages: tuple[Message, ...]
    message: int
    prefix: str
    suffix: str
    joins: tuple[str, ...]
    units: Mapping[str, Unit] = field(hash=False)
    question: str
    in_json: bool
    header: Wrapper
    footer: Wrapper

    @property
    def name(self) -> str:
        """Stable name for releases and cache keys."""
        parts = (*(m.content for i, m in enumerate(self.messages) if i != self.message), self.prefix, self.suffix)
        digest = hashlib.sha256("\x1f".join((*parts, *self.joins[:1])).encode("utf-8", "replace")).hexdigest()
        return f"user-{digest[:10]}"

    def lay_out(self, question: str, chunks: Sequence[Chunk]) -> Prompt:
        """The prompt with these chunks in this order, and the span of each; no chunks leave the frame alone.

        A chunk the prompt did not hold gets the wrapper that the others share, with its own title.
        """
        parts = [self._asked(self.prefix, question)]
        length = len(parts[0])
        spans: list[Span] = []
        usual = Counter(self.joins).most_common(1)[0][0] if self.joins else "\n\n"
        for place, chunk in enumerate(chunks):
            unit = self.units.get(chunk.id)
            raw = unit.raw if unit is not None and unit.text == chunk.text else self._raw(chunk.text)
            before = (unit.header if unit else self.header).at(place, self._raw(chunk.title))
            after = (unit.footer if unit else self.footer).at(place, self._raw(chunk.title))
            start = length + len(before)
            spans.append(Span(chunk.id, self.message, start, start + len(raw)))
            join = "" if place == len(chunks) - 1 else self.joins[place] if place < len(self.joins) else usual
            parts += (before, raw, after, join)
            length = start + len(raw) + len(after) + len(join)
        parts.append(self._asked(self.suffix, question))
        content = "".join(parts)
        messages = tuple(
            Message(m.role, content if i == self.message else self._asked(m.content, question))
            for i, m in enumerate(self.messages)
        )
        return Prompt(messages, tuple(spans), self.name)

    def _asked(self, text: str, question: str) -> str:
        return text if question == self.question or not self.question else text.replace(self.question, question)

    def _raw(self, text: str) -> str:
        return next(iter(escaped(text))) if self.in_json else text


@dataclass(frozen=True, slots=True)
class Learned:
    """A template, or the reason why there is none. `missing` are chunks that do not stand whole in the prompt."""

    template: UserTemplate | None
    reason: str
    missing: tuple[str, ...] = ()
    # Ids in the order of the prompt, which may differ from the retrieved order.
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    chunk: Chunk
    start: int
    end: int


def template_of(case: Case) -> Learned:
    """The template of a case's prompt as sent; none where part of a chunk, or no question, would be left in it."""
    if case.prompt is None:
        return Learned(None, "the prompt as sent is not known")
    learned = learn_template(case.prompt, case.chunks, case.question)
    if learned.template is None:
        return learned
    if learned.missing:
        clipped = [f for f in as_sent(case).located.found if f.chunk_id in learned.missing and f.region is not None]
        if clipped:
            reason = f"chunk {clipped[0].chunk_id[:80]} stands in the prompt as sent in part only"
            return replace(learned, template=None, reason=reason)
    if not case.question.strip():
        return learned
    # A question that only a chunk quotes moves and goes with that chunk, so the chunks are left out here.
    frame = learned.template.lay_out(case.question, ()).messages
    if locate((), frame, case.question).question is None:
        reason = (
            "the question is not in the prompt as sent outside the chunks, so arms in its template would not ask it"
        )
        return replace(learned, template=None, reason=reason)
    return learned


def learn_template(messages: Sequence[Message], chunks: Sequence[Chunk], question: str = "") -> Learned:
    """Learn the template around `chunks`, of which at least two must stand whole in one message.

    A chunk with text that is missing altogether is let in, for arms can show it; where it may be clipped, nothing is learnt.
    """
    wanted = [chunk for chunk in chunks if chunk.text.strip()]
    found = [_places(message.content, wanted) for message in messages]
    if not found or max(map(len, found)) < 2:
        return Learned(None, "fewer than two chunks stand whole in one message of the prompt")
    message = max(range(len(found)), key=lambda index: len(found[index]))
    places = sorted(found[message], key=lambda place: place.start)
    text = messages[message].content
    here = {place.chunk.id for place in places}
    missing = tuple(chunk.id for chunk in wanted if chunk.id not in here)
    gaps = [text[a.end : b.start] for a, b in pairwise(places)]
    if missing and max(map(len, gaps)) > _WIDEST_GAP:
        return Learned(None, f"chunk {missing[0][:80]} may stand clipped between two others", missing)
    own = [_own_words(place.chunk) for place in places]
    titles = [place.chunk.title for place in places]
    wrapped = learn_wrappers(text[: places[0].start], gaps, text[places[-1].end :], own, titles)
    template = UserTemplate(
        messages=tuple(messages),
        message=message,
        prefix=wrapped.prefix,
        suffix=wrapped.suffix,
        joins=wrapped.joins,
        units={
            place.chunk.id: Unit(place.chunk.text, text[place.start : place.end], header, footer)
            for place, header, footer in zip(places, wrapped.headers, wrapped.footers, strict=True)
        },
        question=question,
        in_json=all(text[place.start - 1 : place.start] == '"' == text[place.end : place.end + 1] for place in places),
        header=wrapped.header,
        footer=wrapped.footer,
    )
    order = tuple(place.chunk.id for place in places)
    again = template.lay_out(question, [place.chunk for place in places])
    if again.messages != tuple(messages):
        return Learned(None, "the prompt cannot be rebuilt from its parts", missing, order)
    return Learned(template, "", missing, order)


def _own_words(chunk: Chunk) -> tuple[str, ...]:
    values = [value for value in chunk.metadata.values() if isinstance(value, str)]
    return tuple(word for word in (chunk.title, chunk.id, *values[:50]) if word)


def _places(text: str, chunks: Sequence[Chunk]) -> list[_Place]:
    """Where chunks stand whole, each at a place of its own; longer ones first, so that no part is taken for another."""
    taken: list[tuple[int, int]] = []
    found: list[_Place] = []
    for chunk in sorted(chunks, key=lambda chunk: -len(chunk.text)):
        for raw in dict.fromkeys((chunk.text, chunk.text.strip(), *escaped(chunk.text))):
            start = _free(text, raw, taken)
            if start >= 0:
                taken.append((start, start + len(raw)))
                found.append(_Place(chunk, start, start + len(raw)))
                break
    return found


def _free(text: str, raw: str, taken: Sequence[tuple[int, int]]) -> int:
    at = text.find(raw)
    for _ in range(1_000):
        if at < 0:
            return -1
        clash = next((end for start, end in taken if start < at + len(raw) and at < end), None)
        if clash is None:
            return at
        at = text.find(raw, max(clash, at + 1))
    return -1
