"""From drafts to cases that pass lim's own checks, with every repair and guess on record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lim_core.cases import NEEDS_CHUNKS, NEEDS_QUESTION, case_from_json
from lim_core.errors import InputError
from lim_core.importers.drafts.chunk_ids import Named, name_lists
from lim_core.importers.drafts.direction import guess_direction
from lim_core.importers.drafts.draft import Draft, DraftChunk, Skipped
from lim_core.importers.drafts.report import CaseReport, Guess, disabled_stages
from lim_core.importers.prompt.proposal import Proposal, propose
from lim_core.importers.shapes.fields import label, listed, number
from lim_core.types import Case, Json

_FIELDS = (
    "answers",
    "gold_ids",
    "candidates",
    "score_direction",
    "prompt",
    "answer",
    "usage",
    "finish_reason",
    "context_window",
    "max_output_tokens",
    "model",
)
# A right answer of more words is a sentence, which no reply repeats word by word.
_LONG_ANSWER = 8
_MAX_PROPOSALS = 50


@dataclass(frozen=True, slots=True)
class Built:
    """A case with its part of the report."""

    case: Case
    report: CaseReport


class Builder:
    """Builds the cases of one file; ids are unique among them."""

    def __init__(self, format: str, stem: str) -> None:
        self._format = format
        self._stem = stem
        self._ids: set[str] = set()
        self._copies: dict[str, int] = {}
        self._proposed = 0

    def build(self, draft: Draft, position: int, of: int) -> Built | Skipped:
        """Build one case; a draft that holds neither chunks nor a prompt, or cannot be used, is skipped with its reason."""
        if draft.own is not None:
            return self._own(draft, draft.own, position, of)
        if draft.chunks is None and draft.prompt is None:
            return Skipped("neither chunks nor a prompt", draft.line, draft.place)
        guesses: list[Guess] = []
        notes = [*draft.notes, *_oddities([*(draft.chunks or ()), *(draft.candidates or ())])]
        named = name_lists(draft.chunks or (), draft.candidates, draft.gold_texts)
        record: dict[str, Json] = {
            "question": draft.question or "",
            "answers": list(draft.answers),
            "chunks": [_chunk(chunk) for chunk in named.chunks],
            "gold_ids": list(_gold(draft, named)),
            "tags": [*draft.tags, f"from:{self._format}"],
        }
        if named.candidates is not None:
            record["candidates"] = [_chunk(chunk) for chunk in named.candidates]
        if named.extra_gold:
            record["corpus"] = [_chunk(chunk) for chunk in named.extra_gold]
            notes.append(
                f"{len(named.extra_gold)} reference text(s) are in none of the retrieved chunks: kept as the corpus, as gold"
            )
        scored = _scored(named)
        direction = guess_direction(scored, "candidate" if scored is named.candidates else "chunk")
        if direction is not None:
            guesses.append(direction)
            record["score_direction"] = direction.value or None
        record |= _plain_fields(draft)
        self._finish(record, draft, position, of)
        return self._checked(record, draft, named, guesses, notes)

    def _finish(self, record: dict[str, Json], draft: Draft, position: int, of: int) -> None:
        record["id"] = self._fresh(label(draft.id), position, of)
        tags = [tag for tag in listed(record.get("tags")) if isinstance(tag, str)]
        if not record.get("question"):
            tags.append(NEEDS_QUESTION)
        if not record.get("chunks") and record.get("prompt") and draft.chunks is None:
            tags.append(NEEDS_CHUNKS)
        record["tags"] = list(dict.fromkeys(tags))

    def _fresh(self, wanted: str, position: int, of: int) -> str:
        base = wanted[:200] or (f"{self._stem}-{position}" if of > 1 else self._stem)
        copy = self._copies.get(base, 1)
        fresh = base if copy == 1 else f"{base}#{copy}"
        while fresh in self._ids:
            copy += 1
            fresh = f"{base}#{copy}"
        self._copies[base] = copy
        self._ids.add(fresh)
        return fresh

    def _checked(
        self, record: Mapping[str, Json], draft: Draft, named: Named, guesses: list[Guess], notes: list[str]
    ) -> Built | Skipped:
        try:
            loaded = case_from_json(record)
        except InputError as error:
            return Skipped(str(error), draft.line, draft.place)
        case = loaded.case
        if draft.question_why:
            guesses.insert(0, Guess("question", case.question, draft.question_why))
        notes += [warning for warning in loaded.warnings if warning not in notes]
        long = [answer for answer in case.answers if len(answer.split()) > _LONG_ANSWER]
        if long:
            notes.append("a right answer is a whole sentence, which lim looks for word by word: shorten it to the fact")
        return Built(case, self._reported(case, draft, named, guesses, notes))

    def _reported(
        self, case: Case, draft: Draft, named: Named, guesses: Sequence[Guess], notes: Sequence[str]
    ) -> CaseReport:
        present = {"question": bool(case.question), "chunks": bool(case.chunks)}
        present |= {name: bool(getattr(case, name)) for name in _FIELDS}
        present["scores"] = any(chunk.score is not None for chunk in case.chunks)
        if not present["scores"]:
            del present["score_direction"]  # without scores there is nothing to direct
        present["ids"] = any(chunk.id is not None for chunk in draft.chunks or ()) or draft.own is not None
        return CaseReport(
            case_id=case.id,
            line=draft.line,
            place=draft.place,
            found=tuple(name for name, there in present.items() if there),
            missing=tuple(name for name, there in present.items() if not there),
            disabled=disabled_stages(case),
            guesses=tuple(guesses),
            same_text=_same_text(case),
            renamed=named.renamed,
            notes=tuple(notes),
            proposal=self._proposal(case),
        )

    def _proposal(self, case: Case) -> Proposal | None:
        """Chunks and question out of the prompt, where one of them is missing."""
        if (
            case.prompt is None
            or not {NEEDS_CHUNKS, NEEDS_QUESTION} & set(case.tags)
            or self._proposed >= _MAX_PROPOSALS
        ):
            return None
        self._proposed += 1
        return propose(case.prompt)

    def _own(self, draft: Draft, own: Mapping[str, Json], position: int, of: int) -> Built | Skipped:
        record = dict(own)
        if record.get("chunks") is None:
            if not record.get("prompt"):
                return Skipped("neither chunks nor a prompt", draft.line, draft.place)
            record["chunks"] = []
        self._finish(
            record, Draft(id=own.get("id"), chunks=() if own.get("chunks") is not None else None), position, of
        )
        named = Named((), None, (), (), {})
        return self._checked(record, draft, named, [], list(draft.notes))


def _chunk(chunk: DraftChunk) -> dict[str, Json]:
    """The chunk as a case file has it; a score that is no number is left out."""
    found: dict[str, Json] = {"id": label(chunk.id), "text": chunk.text}
    if chunk.title:
        found["title"] = chunk.title
    score = number(chunk.score)
    if score is not None:
        found["score"] = score
    if chunk.metadata:
        found["metadata"] = dict(chunk.metadata)
    return found


def _oddities(chunks: Sequence[DraftChunk]) -> list[str]:
    """What is repaired in the ids and scores of a file, a line for each kind."""
    notes: list[str] = []
    numbered = sum(isinstance(chunk.id, int | float) and not isinstance(chunk.id, bool) for chunk in chunks)
    if numbered:
        notes.append(f"{numbered} id(s) are numbers and were turned into strings")
    unscored = sum(chunk.score is not None and number(chunk.score) is None for chunk in chunks)
    if unscored:
        notes.append(f"{unscored} score(s) are no finite number and count as unknown")
    return notes


def _scored(named: Named) -> Sequence[DraftChunk]:
    """The list whose order the scores made: candidates where the chunks only carry the candidates' scores on."""
    before = {label(chunk.id): number(chunk.score) for chunk in named.candidates or ()}
    carried = all(number(chunk.score) == before.get(label(chunk.id)) for chunk in named.chunks)
    return named.candidates if named.candidates and carried else named.chunks


def _gold(draft: Draft, named: Named) -> tuple[str, ...]:
    """Ids of the gold chunks: marked ones, named ones by their new id, and those of the reference texts."""
    found = [label(chunk.id) for chunk in named.chunks if chunk.gold]
    found += [named.ids.get(label(one), label(one)) for one in draft.gold_ids]
    found += named.gold
    return tuple(dict.fromkeys(one for one in found if one))


def _plain_fields(draft: Draft) -> dict[str, Json]:
    usage = {name: count for name, count in draft.usage.items() if count is not None}
    prompt: Json = draft.prompt if isinstance(draft.prompt, str) else None
    if isinstance(draft.prompt, tuple):
        prompt = [dict(turn) for turn in draft.prompt]
    found: dict[str, Json] = {
        "prompt": prompt,
        "answer": draft.answer,
        # LlamaIndex writes "unknown" for a model without a name: no model at all, and none that differs from another.
        "model": None if (draft.model or "").lower() == "unknown" else draft.model,
        "finish_reason": draft.finish_reason,
        "usage": usage or None,
        "params": dict(draft.params) or None,
        "max_output_tokens": draft.max_output_tokens or None,
        "answerable": draft.answerable,
    }
    return {name: value for name, value in found.items() if value is not None}


def _same_text(case: Case) -> tuple[tuple[str, ...], ...]:
    groups: dict[str, list[str]] = {}
    for chunk in case.chunks:
        groups.setdefault(" ".join(chunk.text.split()), []).append(chunk.id)
    return tuple(tuple(ids) for ids in groups.values() if len(ids) > 1)
