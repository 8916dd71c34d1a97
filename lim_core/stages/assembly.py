"""Stage 3: is each retrieved chunk in the prompt as it was sent?"""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.evidence import gold_of
from lim_core.locate.cuts import answer_lost, as_sent
from lim_core.locate.located import Found, State
from lim_core.stages.registry import stages
from lim_core.text.normalise import find_aliases
from lim_core.text.sentences import states_answer
from lim_core.tokens import Place, token_offsets
from lim_core.types import Bench, Case, Cause, Chunk, Finding, Json, Status


@stages.register("assembly", title="Assembly", order=3)
def assembly(case: Case, bench: Bench, earlier: Mapping[str, Finding]) -> Finding:
    """Looks for every retrieved chunk in the prompt as sent: whole, clipped, missing or doubled, and where it stands."""
    if case.prompt is None or not case.chunks:
        lacking = "prompt" if case.prompt is None else "chunks"
        said = (
            "The prompt as sent is not known." if case.prompt is None else "There are no retrieved chunks to look for."
        )
        return Finding("assembly", Status.SKIPPED, said, {}, (lacking,), advice=f"Add the field {lacking}.")
    return _Check(case, bench, earlier.get("truncation")).finding()


class _Check:
    def __init__(self, case: Case, bench: Bench, truncation: Finding | None) -> None:
        self.case = case
        self.sent = as_sent(case)
        self.found = self.sent.located.found
        self.chunks = {chunk.id: chunk for chunk in case.chunks}
        self.gold = [one for one in gold_of(case).ids if one in self.chunks]
        # What stage 1 has put down to a cut at the edge is not blamed again.
        told = truncation.evidence.get("lost_chunk_ids") if truncation is not None else None
        self.cut_off = {str(one) for one in told} if isinstance(told, list | tuple) else set()
        messages = case.prompt or ()
        there = [each for each in self.found if each.region is not None]
        offsets = token_offsets(
            messages,
            [Place(r.message, at) for each in there if (r := each.region) for at in (r.start, r.end)],
            bench.counter,
        )
        self.total = offsets.total.n
        self.start = {each.chunk_id: offsets.before[2 * i] for i, each in enumerate(there)}
        self.tokens = {each.chunk_id: offsets.before[2 * i + 1] - offsets.before[2 * i] for i, each in enumerate(there)}

    def finding(self) -> Finding:
        """The cause if the gold was lost inside the prompt, else what became of the rest."""
        lost = [each for each in self.found if each.chunk_id in self.gold and self._is_lost(each)]
        here = [each for each in lost if each.chunk_id not in self.cut_off]
        if here:
            return self._gold_lost(here[0])
        if lost:
            return self._say(
                Status.PASS, "The gold chunk went with the cut that truncation found; inside it nothing is lost."
            )
        unsure = [each for each in self.found if each.chunk_id in self.gold and self._maybe_lost(each)]
        if unsure:
            return self._say(
                Status.UNDETERMINED,
                f"Gold chunk {unsure[0].chunk_id} is in the prompt only to {unsure[0].share:.0%}; "
                "without the right answers it is unknown whether the evidence is in that part.",
                advice="Add the right answers.",
            )
        gone = [f for f in self.found if f.state in (State.MISSING, State.CLIPPED) and f.chunk_id not in self.cut_off]
        if gone and not self.gold:
            return self._say(
                Status.UNDETERMINED,
                f"{self._counts()} Which of them holds the evidence is unknown.",
                advice="Mark the gold chunk, or add the right answers.",
            )
        return self._say(Status.PASS, self._counts())

    def _gold_lost(self, lost: Found) -> Finding:
        chunk = self.chunks[lost.chunk_id]
        elsewhere = self._stated_elsewhere()
        if lost.state is State.MISSING:
            what = f"Gold chunk {chunk.id} was retrieved but is not in the prompt as sent"
        elif self.case.answers:
            what = f"Gold chunk {chunk.id} was clipped to {lost.share:.0%} in the prompt as sent; the answer was in the rest"
        else:
            what = f"Gold chunk {chunk.id} was clipped to {lost.share:.0%} in the prompt as sent"
        if elsewhere is not None:
            return self._say(
                Status.UNDETERMINED,
                f"{what}; but {elsewhere} gives an accepted answer there.",
                also=(Cause.ASSEMBLY_LOSS,),
                advice="Mark that as gold too, or confirm it as harmless.",
            )
        if self.sent.located.seam is not None:
            what += "; text was cut out of its middle"
        return self._say(
            Status.FAIL,
            f"{what}.",
            Cause.ASSEMBLY_LOSS,
            advice="Look at the step that builds the prompt: its limits per chunk, its filters, its removal of doubles.",
        )

    def _is_lost(self, each: Found) -> bool:
        if each.state is State.MISSING:
            return True
        return bool(answer_lost(self.case, self.chunks[each.chunk_id], each))

    def _maybe_lost(self, each: Found) -> bool:
        return each.state is State.CLIPPED and answer_lost(self.case, self.chunks[each.chunk_id], each) is None

    def _stated_elsewhere(self) -> str | None:
        """What else in the prompt answers the question: an overlapping chunk, a summary, a rewritten chunk."""
        case = self.case
        for each in self.found:
            chunk = self.chunks[each.chunk_id]
            if each.chunk_id in self.gold or each.chunk_id in case.harmless_ids or each.state is State.MISSING:
                continue
            if states_answer(case.question, case.answers, each.kept, chunk.title):
                return f"chunk {each.chunk_id}"
        taken = [r for each in self.found for r in each.copies]
        for at, message in enumerate(case.prompt or ()):
            for match in find_aliases(case.answers, message.content):
                inside = any(r.message == at and r.start < match.end and match.start < r.end for r in taken)
                line_start = message.content.rfind("\n", 0, match.start) + 1
                line_end = message.content.find("\n", match.end)
                line = message.content[max(line_start, match.start - 400) : line_end if line_end >= 0 else None][:1200]
                if not inside and case.question not in line and states_answer(case.question, case.answers, line):
                    return "text outside the chunks"
        return None

    def _counts(self) -> str:
        by_state = {state: [f for f in self.found if f.state is state] for state in State}
        total = len(self.found)
        if len(by_state[State.WHOLE]) == total:
            return f"All {total} chunks are in the prompt, whole."
        parts = [f"{len(by_state[state])} {state}" for state in State if by_state[state]]
        text = f"Of {total} chunks: {', '.join(parts)}."
        if self.gold and all(f.state in (State.WHOLE, State.DOUBLED) for f in self.found if f.chunk_id in self.gold):
            text += " The gold chunk is whole."
        if self.cut_off:
            text += f" {len(self.cut_off)} went with the cut that truncation found."
        return text

    def _say(
        self,
        status: Status,
        summary: str,
        cause: Cause | None = None,
        also: tuple[Cause, ...] = (),
        advice: str = "",
    ) -> Finding:
        evidence: dict[str, Json] = {
            "chunks": [self._row(each) for each in self.found],
            "prompt_tokens": self.total,
            "seam": list(self.sent.located.seam) if self.sent.located.seam else None,
        }
        return Finding("assembly", status, summary, evidence, (), cause, also, advice)

    def _row(self, each: Found) -> dict[str, Json]:
        chunk: Chunk = self.chunks[each.chunk_id]
        offset = self.start.get(each.chunk_id)
        return {
            "id": each.chunk_id,
            "state": str(each.state),
            "share": round(each.share, 4),
            "answer_lost": answer_lost(self.case, chunk, each),
            "token_offset": offset,
            "depth": None if offset is None or not self.total else round(offset / self.total, 4),
            "tokens": self.tokens.get(each.chunk_id, 0),
            "copies": [{"message": r.message, "start": r.start, "end": r.end} for r in each.copies],
        }
