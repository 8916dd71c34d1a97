"""Where a prompt was cut, or would be, and what was lost with the part cut off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lim_core.locate.located import Found, Located, State
from lim_core.locate.search import locate
from lim_core.text.normalise import contains_any
from lim_core.tokens import Place, token_offsets
from lim_core.types import Case, Chunk, Counter, Json, Prompt, Span

_SYSTEM_ROLES = ("system", "developer")


class Cut(StrEnum):
    """Which part of a prompt is dropped. The values are part of the JSON contract."""

    START = "start"
    MIDDLE = "middle"
    END = "end"


@dataclass(frozen=True, slots=True)
class AsSent:
    """What the prompt as sent shows of a cut.

    `cut_end` is START or END where it begins or ends inside a chunk (or ends inside the question), MIDDLE where text was
    cut out between two chunks that break off. A chunk that an assembler clipped like others inside the prompt is no cut.
    `system_survives` is None where nothing tells whether there was any system text.
    """

    located: Located
    spans: tuple[Span, ...]
    cut_end: Cut | None
    edge_id: str | None
    lost_ids: tuple[str, ...]
    system_survives: bool | None
    question_survives: bool
    question_lost_at_edge: bool

    def edge_words(self) -> str:
        """How the prompt shows its cut, as the rest of a sentence."""
        if self.edge_id is None:
            return "ends inside the question"
        return f"{'begins' if self.cut_end is Cut.START else 'ends'} inside chunk {self.edge_id}"


@dataclass(frozen=True, slots=True)
class Loss:
    """What a cut to the limit would drop: chunks wholly or in part, any system text, any of the question.

    `system` is None where the prompt has no system message.
    """

    chunk_ids: tuple[str, ...]
    system: bool | None
    question: bool | None

    def to_json(self) -> dict[str, Json]:
        """As the evidence keeps it."""
        return {"chunk_ids": list(self.chunk_ids), "system": self.system, "question": self.question}


class _Latest:
    """What was found for the case asked about last: stages 1 and 3 ask for the same one in turn.

    One pair, replaced as a whole, so that a thread sees either the old or the new one.
    """

    pair: tuple[Case, AsSent] | None = None


def as_sent(case: Case) -> AsSent:
    """Find the chunks and the question in the prompt as sent, and read its edges."""
    latest = _Latest.pair
    if latest is not None and latest[0] is case:
        return latest[1]
    sent = _as_sent(case)
    _Latest.pair = (case, sent)
    return sent


def _as_sent(case: Case) -> AsSent:
    messages = case.prompt or ()
    located = locate(case.chunks, messages, case.question)
    spans = tuple(
        Span(f.chunk_id, f.region.message, f.region.start, f.region.end) for f in located.found if f.region is not None
    )
    system = any(message.role in _SYSTEM_ROLES and message.content.strip() for message in messages)
    starts, ends = located.begins_inside, located.ends_inside
    inner = [f for f in located.found if f.state is State.CLIPPED and f.chunk_id not in (starts, ends)]
    if any(f.lost_head for f in inner) and located.seam is None:
        starts = None
    if any(f.lost_tail for f in inner) and located.seam is None:
        ends = None
    question = located.question is not None
    cut: Cut | None = None
    edge: str | None = None
    if ends is not None:
        cut, edge = Cut.END, ends
    elif located.ends_in_question:
        cut = Cut.END
    if starts is not None and (cut is None or not question):
        cut, edge = (Cut.START, starts) if cut is None else (cut, edge)
    if cut is None and located.seam is not None:
        cut = Cut.MIDDLE
    return AsSent(
        located,
        spans,
        cut,
        edge,
        _lost_with_edge(case, located.found, cut, edge) if cut in (Cut.START, Cut.END) else (),
        False if cut is Cut.START and not system else (True if system else None),
        question,
        cut is Cut.END and not question,
    )


def answer_lost(case: Case, chunk: Chunk, found: Found) -> bool | None:
    """Whether an accepted answer that the chunk holds is gone from the prompt; None where it holds none, or none is known."""
    if found.state in (State.WHOLE, State.DOUBLED):
        return False
    if not case.answers or not contains_any(case.answers, chunk.text):
        return None
    return not contains_any(case.answers, found.kept)


def gold_lost(case: Case, sent: AsSent, gold: Sequence[str]) -> tuple[str, ...] | None:
    """The gold chunks that a cut took the answer from; () if it survived, None where that cannot be said.

    A clipped gold chunk that keeps an accepted answer survives. Several gold chunks are needed together.
    """
    found = {each.chunk_id: each for each in sent.located.found}
    chunks = {chunk.id: chunk for chunk in case.chunks}
    mine = [one for one in gold if one in chunks]
    if not mine:
        return None
    lost, open_ = [], False
    for one in mine:
        if one not in sent.lost_ids:
            continue
        gone = answer_lost(case, chunks[one], found[one])
        if gone or (gone is None and found[one].state is State.MISSING):
            lost.append(one)
        elif gone is None:
            open_ = True
    return None if open_ and not lost else tuple(lost)


def would_lose(
    case: Case, prompt: Prompt, tokens: int, limit: int, counter: Counter, sent: AsSent | None
) -> Mapping[Cut, Loss]:
    """What would go if a prompt of so many tokens were cut to `limit` at its start, its end or in its middle."""
    messages = prompt.messages
    places = [Place(span.message, at) for span in prompt.spans for at in (span.start, span.end)]
    asked = sent.located.question if sent is not None else None
    if asked is not None:
        places += [Place(asked.message, asked.start), Place(asked.message, asked.end)]
    elif sent is None and messages:
        at = messages[-1].content.rfind(case.question)
        places += [Place(len(messages) - 1, at), Place(len(messages) - 1, at + len(case.question))] if at >= 0 else []
    has_question = len(places) > 2 * len(prompt.spans)
    system = [at for at, message in enumerate(messages) if message.role in _SYSTEM_ROLES and message.content.strip()]
    places += [place for at in system for place in (Place(at, 0), Place(at, len(messages[at].content)))]
    excess = max(0, tokens - limit)
    if not excess:
        nothing = Loss((), False if system else None, False if has_question else None)
        return dict.fromkeys(Cut, nothing)
    before = token_offsets(messages, places, counter).before
    ranges = list(zip(before[::2], before[1::2], strict=True))
    chunk_ranges = ranges[: len(prompt.spans)]
    question_ranges = ranges[len(prompt.spans) :][: int(has_question)]
    system_ranges = ranges[len(prompt.spans) + int(has_question) :]
    dropped = {
        Cut.START: (0, excess),
        Cut.END: (tokens - excess, tokens),
        Cut.MIDDLE: (limit // 2, limit // 2 + excess),
    }

    def touched(cut: Cut, ranges: Sequence[tuple[int, int]]) -> bool:
        return any(max(start, dropped[cut][0]) < min(max(end, start + 1), dropped[cut][1]) for start, end in ranges)

    return {
        cut: Loss(
            tuple(
                dict.fromkeys(
                    span.chunk_id
                    for span, reach in zip(prompt.spans, chunk_ranges, strict=True)
                    if touched(cut, [reach])
                )
            ),
            touched(cut, system_ranges) if system_ranges else None,
            touched(cut, question_ranges) if question_ranges else None,
        )
        for cut in Cut
    }


def _lost_with_edge(case: Case, found: Sequence[Found], cut: Cut | None, edge: str | None) -> tuple[str, ...]:
    """The clipped chunk at the edge, and the missing ones that stood beyond it.

    Which those are follows from the order of the chunks that are there: as retrieved, or reversed. Where that does not
    show, all missing ones count as lost with the cut.
    """
    ranks = {chunk.id: rank for rank, chunk in enumerate(case.chunks)}
    there = sorted(
        (f for f in found if f.region), key=lambda f: (f.region.message, f.region.start) if f.region else (0, 0)
    )
    order = [ranks[f.chunk_id] for f in there]
    missing = [f.chunk_id for f in found if f.state is State.MISSING]
    rising, falling = order == sorted(order), order == sorted(order, reverse=True)
    if len(order) > 1 and (rising or falling):
        # Rising and cut at the start, or falling and cut at the end: the lost ones rank before the edge.
        first = rising == (cut is Cut.START)
        bound = order[0] if cut is Cut.START else order[-1]
        missing = [one for one in missing if (ranks[one] < bound) == first]
    gone = {*missing, *([edge] if edge else ())}
    return tuple(chunk.id for chunk in case.chunks if chunk.id in gone)
