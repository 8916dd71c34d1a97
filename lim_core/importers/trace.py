"""From the spans of a trace to cases: which retrieval fed which model call, and what was asked.

A trace may hold several questions, each with retrievers, a reranker and model calls. Every model call whose prompt holds
retrieved text is an answer; each retrieval belongs to the first answer after it that holds one of its documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from lim_core.importers.draft import Draft, DraftChunk, Reading, Skipped
from lim_core.importers.fields import label
from lim_core.importers.messages import Turn
from lim_core.importers.question import MARKED, find_question
from lim_core.types import Json, Message

SpanKind = Literal["retriever", "reranker", "llm", "other"]
_PROBE = 160


@dataclass(frozen=True, slots=True)
class Span:
    """One span in common words. `asked` is its input read as a question, `said` its output read as an answer."""

    id: str
    parent: str = ""
    trace: str = ""
    kind: SpanKind = "other"
    name: str = ""
    start: str = ""
    asked: str | None = None
    said: str | None = None
    documents: tuple[DraftChunk, ...] | None = None
    before: tuple[DraftChunk, ...] | None = None
    textless: int = 0
    prompt: str | tuple[Turn, ...] | None = None
    model: str | None = None
    finish_reason: str | None = None
    usage: Mapping[str, Json] = field(default_factory=dict)
    params: Mapping[str, Json] = field(default_factory=dict)
    max_output_tokens: int | None = None
    expected: tuple[str, ...] = ()
    line: int | None = None
    notes: tuple[str, ...] = ()
    # The export left its contents out.
    bare: bool = False
    # Ids of the documents it passed on, where it names them without their texts.
    passed_ids: tuple[str, ...] = ()


def start_key(value: Json) -> str:
    """A start time as a string that sorts: ISO times as they are, numbers padded."""
    if isinstance(value, str):
        return f"{int(value):030d}" if value.isascii() and value.isdecimal() and len(value) < 30 else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:030.6f}"
    return ""


def kind_by_name(name: str) -> SpanKind:
    """What a span without a kind probably is, by its name."""
    low = name.lower()
    if "rerank" in low or "re-rank" in low or "compressor" in low:
        return "reranker"
    if any(word in low for word in ("retriev", "vector_search", "similarity_search", "search_kb", "knowledge_base")):
        return "retriever"
    return "other"


def cases_of(spans: Sequence[Span], skipped: Sequence[Skipped] = (), notes: Sequence[str] = ()) -> Reading:
    """Group spans by trace and make one case a question."""
    traces: dict[str, list[Span]] = {}
    roots = _Roots(spans)
    for span in spans:
        traces.setdefault(span.trace or roots.of(span), []).append(span)
    drafts: list[Draft] = []
    lost = list(skipped)
    for key, members in traces.items():
        # A stable sort: spans without a time keep the order of the file.
        ordered = _resolved([span for _, span in sorted(enumerate(members), key=lambda pair: (pair[1].start, pair[0]))])
        made = _Trace(key, ordered).drafts()
        drafts += made
        if not made:
            line = ordered[0].line
            lost.append(Skipped("a trace with neither retrieved documents nor a prompt", line, f"trace {key}"[:80]))
    return Reading(tuple(drafts), tuple(lost), tuple(notes))


def _resolved(spans: Sequence[Span]) -> list[Span]:
    """Spans that only name the documents they passed on get them from the retrievals of the same trace."""
    known = {label(chunk.id): chunk for span in spans for chunk in span.documents or () if label(chunk.id)}
    return [
        replace(span, documents=tuple(known[key] for key in span.passed_ids if key in known) or None)
        if span.passed_ids and not span.documents
        else span
        for span in spans
    ]


class _Roots:
    """The root of each span by its parents, for exports without trace ids; loops end where they began."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._parents = {span.id: span.parent for span in spans if span.id}

    def of(self, span: Span) -> str:
        seen: set[str] = set()
        at = span.id
        while at not in seen and self._parents.get(at):
            seen.add(at)
            at = self._parents[at]
            if len(seen) > 10_000:
                break
        return at


@dataclass(slots=True)
class _Group:
    """A model call, or none, and the retrievals that fed it."""

    call: Span | None
    retrievals: list[Span]
    more_calls: int = 0


class _Trace:
    def __init__(self, key: str, spans: Sequence[Span]) -> None:
        self.key = key
        self.spans = spans
        self.place = {id(span): index for index, span in enumerate(spans)}
        self.by_id = {span.id: span for span in spans if span.id}
        self.retrievals = [span for span in spans if span.kind in ("retriever", "reranker") and span.documents]
        self.ancestors = {id(span): self._up(span) for span in spans}
        calls = [span for span in spans if span.kind == "llm" and span.prompt is not None]
        outer = {id(parent) for call in calls for parent in self.ancestors[id(call)]}
        # Of model calls inside one another the innermost is what was really sent.
        self.calls = [call for call in calls if id(call) not in outer]

    def _up(self, span: Span) -> list[Span]:
        """Parents of a span, the nearest first."""
        chain: list[Span] = []
        seen = {span.id}
        at = self.by_id.get(span.parent)
        while at is not None and at.id not in seen and len(chain) < 200:
            chain.append(at)
            seen.add(at.id)
            at = self.by_id.get(at.parent)
        return chain

    def drafts(self) -> list[Draft]:
        if not self.retrievals:
            return [self._draft(_Group(call, []), only=len(self.calls) == 1) for call in self.calls]
        groups = self._groups()
        return [self._draft(group, only=len(groups) == 1) for group in groups]

    def _groups(self) -> list[_Group]:
        prompts = {id(call): _flat(call.prompt) for call in self.calls}
        users = [call for call in self.calls if any(self._holds(prompts[id(call)], r) for r in self.retrievals)]
        if not users and self.calls:
            # Nothing retrieved stands in any prompt: the loss itself is the news, so the last call is kept with it.
            users = [self.calls[-1]]
        groups = {id(call): _Group(call, []) for call in users}
        alone = _Group(None, [])
        for retrieval in self.retrievals:
            after = [call for call in users if self.place[id(call)] > self.place[id(retrieval)]]
            holding = [call for call in after if self._holds(prompts[id(call)], retrieval)]
            near = self._nearest(retrieval, after)
            chosen = holding[0] if holding else near
            (groups[id(chosen)] if chosen is not None else alone).retrievals.append(retrieval)
        found = [group for group in groups.values() if group.retrievals]
        for group in groups.values():
            if not group.retrievals and found:
                earlier = [g for g in found if g.call and self.place[id(g.call)] < self.place[id(group.call)]]
                (earlier or found)[-1].more_calls += 1
        return [*found, *self._split(alone)]

    def _nearest(self, retrieval: Span, after: Sequence[Span]) -> Span | None:
        """The call that shares the closest ancestor with the retrieval; a tie goes to the earliest."""
        for parent in self.ancestors[id(retrieval)]:
            for call in after:
                if parent in self.ancestors[id(call)]:
                    return call
        return after[0] if after else None

    def _split(self, group: _Group) -> list[_Group]:
        """Retrievals that fed no call: one group a question."""
        parts: dict[str, _Group] = {}
        last = ""
        for retrieval in group.retrievals:
            last = (retrieval.asked or last) if retrieval.kind == "retriever" or not last else last
            parts.setdefault(last, _Group(None, [])).retrievals.append(retrieval)
        return list(parts.values())

    @staticmethod
    def _holds(prompt: str, retrieval: Span) -> bool:
        return any(_probe(chunk.text) in prompt for chunk in retrieval.documents or () if chunk.text.strip())

    # --- one case ---

    def _draft(self, group: _Group, only: bool) -> Draft:
        chunks, candidates, notes = self._lists(group.retrievals)
        call = group.call
        question, why = self._question(group)
        if group.more_calls:
            notes.append(
                f"{group.more_calls} more model call(s) hold these documents: the prompt kept is the first of several calls"
            )
        if (
            call is not None
            and group.retrievals
            and not any(self._holds(_flat(call.prompt), r) for r in group.retrievals)
        ):
            notes.append("no retrieved document stands in the prompt of the model call")
        textless = sum(span.textless for span in group.retrievals)
        if textless:
            notes.append(f"{textless} document(s) came without text and are left out: export them with their contents")
        for span in (*group.retrievals, *((call,) if call else ())):
            notes += [note for note in span.notes if note not in notes]
        lead = call or (group.retrievals[-1] if group.retrievals else None)
        key = self.key if only and self.key else (lead.id if lead else "")
        expected = next((span.expected for span in self.spans if span.expected), ())
        return Draft(
            line=lead.line if lead else None,
            id=key or None,
            question=question,
            question_why=why,
            answers=expected,
            chunks=chunks,
            candidates=candidates,
            prompt=call.prompt if call else None,
            answer=(call.said if call else None) or self._outer_answer(group),
            model=call.model if call else None,
            finish_reason=call.finish_reason if call else None,
            usage=call.usage if call else {},
            params=call.params if call else {},
            max_output_tokens=call.max_output_tokens if call else None,
            notes=tuple(notes),
        )

    def _lists(
        self, retrievals: Sequence[Span]
    ) -> tuple[tuple[DraftChunk, ...] | None, tuple[DraftChunk, ...] | None, list[str]]:
        """The list that was used and the longer one before it, told apart by containment and by reranker spans."""
        if not retrievals:
            return None, None, []
        notes: list[str] = []
        # An outer span starts before what runs inside it, but its output is the later one.
        ordered = sorted(retrievals, key=lambda span: (span.kind == "reranker", -len(self.ancestors[id(span)])))
        nested = any(other in self.ancestors[id(span)] for span in retrievals for other in retrievals)
        if not nested:
            ordered = sorted(retrievals, key=lambda span: (span.kind == "reranker", self.place[id(span)]))
        current: tuple[DraftChunk, ...] = ()
        earlier: tuple[DraftChunk, ...] | None = None
        joined = 0
        for span in ordered:
            documents = tuple(chunk for chunk in span.documents or () if chunk.text.strip())
            if not documents:
                continue
            if not current:
                current = documents
                if span.kind == "reranker" and span.before:
                    earlier = span.before
                continue
            before, now = [c.text for c in current], [c.text for c in documents]
            if now == before:
                continue
            if span.kind == "reranker" or set(now) <= set(before):
                earlier = span.before or current
                current = documents
            else:
                joined += 1
                known = set(before)
                current = (*current, *(chunk for chunk in documents if chunk.text not in known))
        if joined:
            notes.append(f"the results of {joined + 1} retrievals are joined in the order they ran, doubles left out")
        return current, earlier, notes

    def _question(self, group: _Group) -> tuple[str | None, str]:
        """What was asked: the outermost span around this answer alone, else the retriever's query."""
        lead = group.call or group.retrievals[-1]
        other_calls = [call for call in self.calls if call is not group.call and self._is_answer(call, group)]
        found: str | None = None
        for parent in self.ancestors[id(lead)]:
            if any(parent in self.ancestors[id(call)] for call in other_calls):
                break
            found = parent.asked or found
        if found:
            return found, ""
        marked = find_question([Message(turn["role"], turn["content"]) for turn in _turns(group.call)])
        if marked is not None and marked.why == MARKED:
            return marked.question, marked.why
        queries = [span.asked for span in group.retrievals if span.asked]
        if queries:
            return queries[0], "taken from the query that the retriever was given, which may be a rewritten one"
        root = next(
            (span.asked for span in self.spans if span.kind == "other" and not span.parent and span.asked), None
        )
        return root, "taken from the root of the trace" if root else ""

    def _is_answer(self, call: Span, group: _Group) -> bool:
        """Whether another call answers another question: it holds documents that this group did not retrieve."""
        own = {chunk.text for span in group.retrievals for chunk in span.documents or ()}
        prompt = _flat(call.prompt)
        return any(
            chunk.text not in own and chunk.text.strip() and _probe(chunk.text) in prompt
            for span in self.retrievals
            if span not in group.retrievals
            for chunk in span.documents or ()
        )

    def _outer_answer(self, group: _Group) -> str | None:
        lead = group.call or group.retrievals[-1]
        return next((parent.said for parent in self.ancestors[id(lead)] if parent.said), None)


def _turns(call: Span | None) -> tuple[Turn, ...]:
    if call is None or call.prompt is None:
        return ()
    return ({"role": "user", "content": call.prompt},) if isinstance(call.prompt, str) else call.prompt


def _probe(text: str) -> str:
    """Enough of a text to find it in a prompt; blanks are folded, for templates strip and indent."""
    return " ".join(text[: 4 * _PROBE].split())[:_PROBE]


def _flat(prompt: str | tuple[Turn, ...] | None) -> str:
    if prompt is None:
        return ""
    text = prompt if isinstance(prompt, str) else "\n".join(turn["content"] for turn in prompt)
    return " ".join(text.split())
