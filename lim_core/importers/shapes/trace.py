"""From the spans of a trace to cases: which retrieval fed which model call, and what was asked.

A trace may hold several questions, each with retrievers, a reranker and model calls. Every model call whose prompt holds
retrieved text is an answer; each retrieval belongs to the first answer after it that holds one of its documents.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lim_core.importers.drafts.draft import Draft, DraftChunk, Reading, Skipped
from lim_core.importers.prompt.question import MARKED, find_question
from lim_core.importers.shapes.fields import label
from lim_core.importers.shapes.messages import Turn
from lim_core.importers.shapes.spans import Span
from lim_core.types import Message

_PROBE = 160
_DEEPEST = 200
# A trace of an hour-long agent must not cost its square: beyond this only what stands near a call is looked for.
_MOST_LOOKUPS = 200_000
_NEXT_CALLS = 50


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

    @property
    def lead(self) -> Span:
        """The span that stands for the group."""
        return self.call or self.retrievals[-1]


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
        self.retrieved_at = [self.place[id(span)] for span in self.retrievals]
        self.held = self._held()
        self.expected = next((span.expected for span in spans if span.expected), ())
        self.root_asked = next((s.asked for s in spans if s.kind == "other" and not s.parent and s.asked), None)
        # How many answers stand under each span; set once the groups are known.
        self.answers_under: dict[int, int] = {}

    def _up(self, span: Span) -> list[Span]:
        """Parents of a span, the nearest first."""
        chain: list[Span] = []
        seen = {span.id}
        at = self.by_id.get(span.parent)
        while at is not None and at.id not in seen and len(chain) < _DEEPEST:
            chain.append(at)
            seen.add(at.id)
            at = self.by_id.get(at.parent)
        return chain

    def _held(self) -> dict[int, set[str]]:
        """For each model call the retrieved texts that stand in its prompt."""
        texts = {c.text: _probe(c.text) for r in self.retrievals for c in r.documents or () if c.text.strip()}
        held: dict[int, set[str]] = {}
        near = len(texts) * len(self.calls) > _MOST_LOOKUPS
        for call in self.calls:
            prompt = _flat(call.prompt)
            wanted = self._before(call) if near else texts
            held[id(call)] = {text for text in wanted if texts[text] in prompt}
        return held

    def _before(self, call: Span) -> set[str]:
        """Texts of the retrievals just before a call; all a huge trace can be searched for."""
        end = bisect_right(self.retrieved_at, self.place[id(call)])
        lately = self.retrievals[max(0, end - 4) : end]
        return {c.text for span in lately for c in (span.documents or ())[:50] if c.text.strip()}

    def drafts(self) -> list[Draft]:
        if not self.retrievals:
            return [self._draft(_Group(call, []), only=len(self.calls) == 1) for call in self.calls]
        groups = self._groups()
        for group in groups:
            for parent in self.ancestors[id(group.lead)]:
                self.answers_under[id(parent)] = self.answers_under.get(id(parent), 0) + 1
        return [self._draft(group, only=len(groups) == 1) for group in groups]

    def _groups(self) -> list[_Group]:
        users = [call for call in self.calls if self.held[id(call)]]
        if not users and self.calls:
            # Nothing retrieved stands in any prompt: the loss itself is the news, so the last call is kept with it.
            users = [self.calls[-1]]
        places = [self.place[id(call)] for call in users]
        groups = {id(call): _Group(call, []) for call in users}
        alone = _Group(None, [])
        for retrieval in self.retrievals:
            begin = bisect_right(places, self.place[id(retrieval)])
            after = users[begin : begin + _NEXT_CALLS]
            holding = next((call for call in after if self._holds(call, retrieval)), None)
            chosen = holding or self._nearest(retrieval, after)
            (groups[id(chosen)] if chosen is not None else alone).retrievals.append(retrieval)
        found: list[_Group] = []
        waiting = 0
        for group in groups.values():
            if group.retrievals:
                found.append(group)
                group.more_calls += waiting
                waiting = 0
            elif found:
                found[-1].more_calls += 1
            else:
                waiting += 1
        return [*found, *self._split(alone)]

    def _nearest(self, retrieval: Span, after: Sequence[Span]) -> Span | None:
        """The call that shares the closest ancestor with the retrieval; a tie goes to the earliest."""
        above = [{id(parent) for parent in self.ancestors[id(call)]} for call in after]
        for parent in self.ancestors[id(retrieval)]:
            for call, chain in zip(after, above, strict=True):
                if id(parent) in chain:
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

    def _holds(self, call: Span, retrieval: Span) -> bool:
        held = self.held[id(call)]
        return any(chunk.text in held for chunk in retrieval.documents or ())

    # --- one case ---

    def _draft(self, group: _Group, only: bool) -> Draft:
        chunks, candidates, notes = self._lists(group.retrievals)
        call = group.call
        question, why = self._question(group)
        if group.more_calls:
            notes.append(
                f"{group.more_calls} more model call(s) hold these documents: the prompt kept is the first of several calls"
            )
        if call is not None and group.retrievals and not any(self._holds(call, r) for r in group.retrievals):
            notes.append("no retrieved document stands in the prompt of the model call")
        textless = sum(span.textless for span in group.retrievals)
        if textless:
            notes.append(f"{textless} document(s) came without text and are left out: export them with their contents")
        for span in (*group.retrievals, *((call,) if call else ())):
            notes += [note for note in span.notes if note not in notes]
        key = self.key if only and self.key else group.lead.id
        return Draft(
            line=group.lead.line,
            id=key or None,
            question=question,
            question_why=why,
            answers=self.expected,
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
        own = {id(span) for span in retrievals}
        nested = any(id(parent) in own for span in retrievals for parent in self.ancestors[id(span)])
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
        found: str | None = None
        for parent in self.ancestors[id(group.lead)]:
            if self.answers_under.get(id(parent), 0) > 1:
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
        return self.root_asked, "taken from the root of the trace" if self.root_asked else ""

    def _outer_answer(self, group: _Group) -> str | None:
        return next((parent.said for parent in self.ancestors[id(group.lead)] if parent.said), None)


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
