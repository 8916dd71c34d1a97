"""Stage 2: is the evidence among the retrieved chunks; if not, where was it lost; do two chunks disagree?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from lim_core.evidence import Gold, copies, gold_of, holders, holds_answer
from lim_core.evidence.conflicts import Conflict, find_conflicts, told_other_value
from lim_core.evidence.suggestions import MOST_TEXTS, Suggestion, suggest
from lim_core.rerankers import bm25_scores, passage_scores
from lim_core.stages.registry import stages
from lim_core.text.sentences import states_answer
from lim_core.types import Bench, Case, Cause, Chunk, Finding, Json, Status

FoundBy = Literal["gold_id", "alias", "embedding"]


@stages.register("retrieval", title="Retrieval", order=2)
def retrieval(case: Case, bench: Bench, earlier: Mapping[str, Finding]) -> Finding:
    """Looks for the evidence by gold id, else by the accepted answers, in the chunks, the candidates and the corpus."""
    check = _Check(case, bench)
    if case.answerable is False:
        return check.not_answerable()
    if not case.gold_ids and not case.answers:
        return check.nothing_to_look_for()
    return check.finding()


class _Check:
    def __init__(self, case: Case, bench: Bench) -> None:
        self.case = case
        self.bench = bench
        self.gold: Gold = gold_of(case)
        self.chunk_ids = {chunk.id for chunk in case.chunks}
        self.ids: tuple[str, ...] = self.gold.ids or self.gold.ambiguous
        self.found_by: FoundBy | None = self.gold.found_by or ("alias" if self.gold.ambiguous else None)
        if not self.ids:
            self._look_further()
        self.conflicts: tuple[Conflict, ...] = ()
        self.suggestion: Suggestion | None = None

    def not_answerable(self) -> Finding:
        """A case that no document answers: nothing can be lost, unless a chunk does hold an answer."""
        found = holders(self.case, self.case.chunks)
        if found:
            return self._say(
                Status.UNDETERMINED,
                f"The case is marked as not answerable, but chunk {found[0]} holds an accepted answer.",
                advice="Correct the answers, or take the mark away.",
            )
        self.ids, self.found_by = (), None
        return self._say(Status.PASS, "The case is marked as not answerable: no chunk is expected to hold an answer.")

    def nothing_to_look_for(self) -> Finding:
        """No gold id and no answer: only an empty result says something."""
        if not self.case.chunks and not self.case.candidates:
            return self._say(
                Status.FAIL, "The retriever returned no chunks at all.", Cause.NOT_RETRIEVED, advice=_RETRIEVER
            )
        said = "Without gold ids or right answers the evidence cannot be looked for."
        return self._say(
            Status.SKIPPED,
            said,
            missing=("gold_ids", "answers"),
            advice="Add the right answers, or mark the gold chunk.",
        )

    def finding(self) -> Finding:
        """By the rules of design.md, section 3."""
        here = [one for one in self.ids if one in self.chunk_ids]
        if here:
            return self._among_chunks(here)
        spoiler = self._other_evidence()
        if spoiler is not None:
            return self._say(
                Status.UNDETERMINED,
                f"{self._names()} was not retrieved, but chunk {spoiler} "
                + ("has its text." if spoiler in copies(self.case, self.gold.ids) else "states an accepted answer."),
                also=(self._where_lost(),),
                advice=f"Mark chunk {spoiler} as gold too, or confirm it as harmless.",
            )
        if not self.ids and not self.case.gold_ids:
            self.suggestion = suggest(self.case, self.bench)
            if self.suggestion.chunk_id is not None:
                self.ids, self.found_by = (self.suggestion.chunk_id,), "embedding"
                return self._say(
                    Status.UNDETERMINED,
                    f"No chunk holds an accepted answer word for word; chunk {self.suggestion.chunk_id} seems to state it.",
                    also=(self._where_lost(),) if self.suggestion.chunk_id not in self.chunk_ids else (),
                    advice=f"Confirm chunk {self.suggestion.chunk_id} as gold, or add the wording it uses to the answers.",
                )
        return self._lost()

    def _among_chunks(self, here: Sequence[str]) -> Finding:
        gold = [chunk for chunk in self.case.chunks if chunk.id in here]
        self.conflicts = find_conflicts(self.case, gold)
        ranks = {chunk.id: rank for rank, chunk in enumerate(self.case.chunks)}
        # Which of several is missed matters where the ones at hand do not hold the answer.
        absent = [one for one in self.gold.ids if one not in self.chunk_ids]
        holding = [chunk.id for chunk in gold if holds_answer(self.case, chunk)]
        if absent and self.case.answers and not holding:
            where = self._where_lost(absent)
            if any(holds_answer(self.case, chunk) for chunk in self._elsewhere() if chunk.id in absent):
                return self._say(
                    Status.FAIL,
                    f"Of the gold chunks {', '.join(absent)} with the answer did not reach the chunks.",
                    where,
                    advice=_ADVICE[where],
                )
            return self._say(
                Status.UNDETERMINED,
                f"Of the gold chunks {', '.join(absent)} did not reach the chunks; whether they are needed is unknown.",
                also=(where,),
                advice="Keep in gold_ids only the chunks that the answer needs.",
            )
        told = next((conflict for conflict in self.conflicts if told_other_value(self.case, conflict)), None)
        if told is not None:
            return self._say(
                Status.FAIL,
                f"The answer repeats {told.other} from chunk {told.other_id}; chunk {told.right_id} says {told.right}."
                + _dated(told),
                Cause.CONFLICTING_SOURCES,
                advice="Take the outdated document out of the index, or filter by date before the prompt is built.",
            )
        if self.gold.ambiguous:
            summary = (
                f"{len(here)} chunks hold an accepted answer: {', '.join(here[:5])}{' …' if len(here) > 5 else ''}."
            )
            advice = "Mark the gold chunk, and confirm the others as harmless."
        else:
            summary = f"{self._names(here)} was retrieved, at rank {ranks[here[0]] + 1} of {len(ranks)}."
            advice = (
                "" if holding or not self.case.answers else "No accepted answer stands in it word for word: check both."
            )
        if absent:
            summary += f" Not retrieved: {', '.join(absent)}."
        also: tuple[Cause, ...] = (self._where_lost(absent),) if absent else ()
        if self.conflicts:
            first = self.conflicts[0]
            summary += (
                f" Chunk {first.other_id} says {first.other} where {first.right_id} says {first.right}.{_dated(first)}"
            )
            also = (*also, Cause.CONFLICTING_SOURCES)
        return self._say(Status.PASS, summary, also=also, advice=advice)

    def _lost(self) -> Finding:
        cause = self._where_lost()
        if cause is Cause.RANKED_OUT:
            ranks = {chunk.id: rank for rank, chunk in enumerate(self.case.candidates or ())}
            best = min((one for one in self.ids if one in ranks), key=lambda one: ranks[one])
            said = f"{self._names((best,))} was a candidate, at rank {ranks[best] + 1} of {len(ranks)}, and was ranked out."
        elif cause is Cause.MISSING_DOCUMENT:
            said = f"{self._names() if self._wanted() else 'An accepted answer'} is nowhere in the corpus."
        elif self.case.corpus is not None:
            lists = "chunks nor the candidates" if self.case.candidates is not None else "retrieved chunks"
            said = f"{self._names()} is in the corpus, but not among the {lists}."
        else:
            said = f"{self._names() if self._wanted() else 'An accepted answer'} is in none of the chunks; "
            said += "whether the document exists is unknown, for no corpus was given."
        return self._say(Status.FAIL, said, cause, advice=_ADVICE[cause])

    def _where_lost(self, ids: Sequence[str] | None = None) -> Cause:
        wanted = set(self.ids if ids is None else ids)
        if wanted & {chunk.id for chunk in self.case.candidates or ()}:
            return Cause.RANKED_OUT
        if self.case.corpus is not None and not wanted & {chunk.id for chunk in self.case.corpus}:
            return Cause.MISSING_DOCUMENT
        return Cause.NOT_RETRIEVED

    def _look_further(self) -> None:
        """By answer among the candidates, then in the corpus; sentences about the question go before mere mentions."""
        for part in (self.case.candidates, self.case.corpus):
            found = [chunk for chunk in part or () if holds_answer(self.case, chunk)]
            about = [c for c in found if states_answer(self.case.question, self.case.answers, c.text, c.title)]
            if about or found:
                self.ids, self.found_by = tuple(chunk.id for chunk in about or found), "alias"
                return

    def _other_evidence(self) -> str | None:
        """A retrieved chunk that is not gold but answers the question all the same."""
        case = self.case
        spoilers, same = set(self.gold.spoilers), copies(case, self.gold.ids)
        return next(
            (
                c.id
                for c in case.chunks
                if c.id in spoilers and (c.id in same or states_answer(case.question, case.answers, c.text, c.title))
            ),
            None,
        )

    def _elsewhere(self) -> tuple[Chunk, ...]:
        return (*(self.case.candidates or ()), *(self.case.corpus or ()))

    def _wanted(self) -> tuple[str, ...]:
        return self.ids or self.case.gold_ids

    def _names(self, ids: Sequence[str] | None = None) -> str:
        wanted = list(self._wanted() if ids is None else ids)
        shown = ", ".join(wanted[:5]) + (" …" if len(wanted) > 5 else "")
        if self.found_by == "alias":
            return f"Chunk {shown}, which holds an accepted answer," if len(wanted) == 1 else f"Each of {shown}"
        return f"Gold chunk {shown}" if len(wanted) == 1 else f"Each of the gold chunks {shown}"

    def _corpus_ranks(self) -> dict[str, Json]:
        """BM25 ranks by the question. None for a chunk that shares no word with it: its place would be chance."""
        corpus = self.case.corpus
        wanted = set(self._wanted())
        if corpus is None or not any(chunk.id in wanted for chunk in corpus):
            return {}
        texts = [f"{chunk.title}\n{chunk.text}" for chunk in corpus]
        scores = bm25_scores(self.case.question, texts)
        found = [at for at, chunk in enumerate(corpus) if chunk.id in wanted]
        if self.found_by == "embedding" and len(corpus) <= MOST_TEXTS and any(scores[at] <= 0 for at in found):
            # The embedder is open at this point; it ranks chunks that share no word with the question.
            scores = passage_scores(self.case.question, texts, self.bench.open_embedder()) + 1.0
        return {
            corpus[at].id: int((scores > scores[at]).sum() + (scores[:at] == scores[at]).sum())
            if scores[at] > 0
            else None
            for at in found
        }

    def _say(
        self,
        status: Status,
        summary: str,
        cause: Cause | None = None,
        also: tuple[Cause, ...] = (),
        missing: tuple[str, ...] = (),
        advice: str = "",
    ) -> Finding:
        wanted = set(self._wanted())
        evidence: dict[str, Json] = {
            "gold_ids": list(self._wanted()),
            "found_by": self.found_by,
            "chunk_ranks": _ranks(self.case.chunks, wanted),
            "candidate_ranks": _ranks(self.case.candidates or (), wanted),
            "corpus_ranks": self._corpus_ranks(),
            "conflicts": [
                {"ids": [c.right_id, c.other_id], "values": [c.right, c.other], "later_id": c.later_id}
                for c in self.conflicts
            ],
            "suggestion": self.suggestion.to_json() if self.suggestion is not None else None,
        }
        return Finding("retrieval", status, summary, evidence, missing, cause, also, advice)


_RETRIEVER = "Look at the retriever: filters, language, embedding model, query."
_ADVICE = {
    Cause.RANKED_OUT: "Raise top-k, or use another reranker, so that the gold chunk makes the cut.",
    Cause.NOT_RETRIEVED: f"{_RETRIEVER} Give the corpus and the candidates to see how far the chunk was from the cut.",
    Cause.MISSING_DOCUMENT: "Add the document to the corpus, or check that it was split and indexed.",
}


def _ranks(chunks: Sequence[Chunk], wanted: set[str]) -> dict[str, Json]:
    return {chunk.id: rank for rank, chunk in enumerate(chunks) if chunk.id in wanted}


def _dated(conflict: Conflict) -> str:
    return f" {conflict.later_id} is dated later." if conflict.later_id is not None else ""
