"""Stage 1: did prompt and output fit the window, and did the server read all that was sent?

A cut is certain where the prompt as sent begins or ends inside a chunk (or ends inside the question), where the server
reports fewer tokens than `READ_SHARE` of the lower end of our count, or where the question alone is longer than the
window. A count over the window alone is no proof: windows are often set wrongly, and then nothing was cut.
"""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.evidence import gold_of
from lim_core.locate.cuts import AsSent, Cut, Loss, as_sent, gold_lost, would_lose
from lim_core.prompts import lay_out
from lim_core.stages.registry import stages
from lim_core.tokens import READ_SHARE
from lim_core.types import Bench, Case, Cause, Finding, Json, Prompt, Status, TokenCount

# Silent cuts of servers drop the start: Ollama and llama.cpp keep the last tokens, vLLM's truncate_prompt_tokens too.
_SERVER_CUT = Cut.START


@stages.register("truncation", title="Truncation", order=1)
def truncation(case: Case, bench: Bench, earlier: Mapping[str, Finding]) -> Finding:
    """Compares the prompt with the window, with what the server says it read, and with the chunks it should hold."""
    # No server reads a prompt of no tokens: 0 stands for "not counted", as in templates and on some gateways.
    reported = (case.usage.prompt_tokens or None) if case.usage else None
    if case.prompt is None and case.context_window is None and reported is None and not _said_nothing(case):
        return Finding(
            "truncation",
            Status.SKIPPED,
            "Neither the prompt as sent, nor the window, nor the tokens the server read are known.",
            {},
            ("prompt", "context_window", "usage"),
            advice="Add the prompt as sent, or the context window, or usage.prompt_tokens.",
        )
    return _Check(case, bench, reported).finding()


class _Check:
    def __init__(self, case: Case, bench: Bench, reported: int | None) -> None:
        self.case = case
        self.reported = reported
        self.window = case.context_window
        self.gold = gold_of(case).ids
        self.sent: AsSent | None = as_sent(case) if case.prompt is not None else None
        own = lay_out(case.question, case.chunks)
        self.prompt = Prompt(case.prompt, self.sent.spans) if case.prompt is not None and self.sent else own
        self.count: TokenCount = bench.counter.count_messages(self.prompt.messages)
        self.question = bench.counter.count(case.question)
        limits = [limit for limit in (self.window, reported if self._read_less() else None) if limit is not None]
        self.losses = (
            would_lose(case, self.prompt, self.count.n, min(limits), bench.counter, self.sent) if limits else None
        )
        self.cut_end: Cut | None = self.sent.cut_end if self.sent else None

    def finding(self) -> Finding:
        """The first of the rules that applies."""
        if _said_nothing(self.case):
            return self._say(
                Status.FAIL,
                "The reply ended at its length limit before a word was said.",
                Cause.OUTPUT_BUDGET,
                advice="Raise max_output_tokens, or lower the reasoning effort.",
            )
        if self.window is not None and self.question.low > self.window:
            return self._say(
                Status.FAIL,
                f"The question alone takes {_tokens(self.question)}, more than the window of {self.window:,}.",
                Cause.TRUNCATED,
                lost=tuple(chunk.id for chunk in self.case.chunks),
                advice="Use a model with a larger window.",
            )
        if self.sent is not None and self.sent.cut_end in (Cut.START, Cut.END):
            return self._clipped(self.sent)
        if self._read_less():
            return self._read_too_little()
        if self.window is not None and self.count.low > self.window and not self._read_all():
            return self._over_window(self.window)
        return self._output_budget() or self._fits()

    def _clipped(self, sent: AsSent) -> Finding:
        where = f"The prompt as sent {sent.edge_words()}"
        lost_gold = gold_lost(self.case, sent, self.gold)
        advice = "Send fewer or shorter chunks, or raise the limit at which the prompt is cut."
        if lost_gold:
            return self._say(
                Status.FAIL, f"{where}: {_names(lost_gold)} with the answer was lost.", Cause.TRUNCATED,
                lost=sent.lost_ids, advice=advice,
            )  # fmt: skip
        if sent.question_lost_at_edge:
            return self._say(
                Status.FAIL,
                f"{where}, and the question behind it was lost.",
                Cause.TRUNCATED,
                lost=sent.lost_ids,
                advice=advice,
            )
        if lost_gold is None:
            return self._say(
                Status.UNDETERMINED,
                f"{where}; whether the evidence was lost is unknown.",
                also=(Cause.TRUNCATED,),
                lost=sent.lost_ids,
                advice="Mark the gold chunk, or add the right answers.",
            )
        return self._say(
            Status.PASS,
            f"{where}, but the evidence survived.",
            also=(Cause.TRUNCATED,),
            lost=sent.lost_ids,
            advice=advice,
        )

    def _read_too_little(self) -> Finding:
        told = f"The server read {self.reported:,} of {_tokens(self.count)} sent"
        advice = (
            "Raise the server's window (on Ollama: num_ctx), or send fewer chunks; it cut the prompt without an error."
        )
        if self.case.prompt is None:
            return self._say(
                Status.UNDETERMINED,
                f"The server read {self.reported:,} tokens; these chunks take {_tokens(self.count)} in our layout.",
                also=(Cause.TRUNCATED,),
                advice="Add the prompt as sent: without it, chunks left out look the same as chunks cut off.",
            )
        if self.losses is None or not self.gold:
            return self._say(
                Status.UNDETERMINED,
                f"{told}; whether the evidence was lost is unknown.",
                also=(Cause.TRUNCATED,),
                advice="Mark the gold chunk, or add the right answers.",
            )
        ends = [cut for cut, loss in self.losses.items() if set(self.gold) & set(loss.chunk_ids)]
        likely = self.losses[_SERVER_CUT]
        if len(ends) == len(self.losses) or _SERVER_CUT in ends:
            self.cut_end = _SERVER_CUT
            how = (
                "whichever part was dropped" if len(ends) == len(self.losses) else "with the start, which servers drop"
            )
            return self._say(
                Status.FAIL,
                f"{told}: {_names(self.gold)} was lost {how}.",
                Cause.TRUNCATED,
                lost=likely.chunk_ids,
                survives=likely,
                advice=advice,
            )
        kept = "survives" if not ends else f"survives unless the {' or '.join(ends)} was dropped"
        return self._say(
            Status.UNDETERMINED, f"{told}; {_names(self.gold)} {kept}.", also=(Cause.TRUNCATED,), advice=advice
        )

    def _over_window(self, window: int) -> Finding:
        whose = "The prompt as sent" if self.case.prompt is not None else "A prompt of these chunks, in our layout,"
        return self._say(
            Status.UNDETERMINED,
            f"{whose} takes {_tokens(self.count)}, more than the window of {window:,}; what was read is unknown.",
            also=(Cause.TRUNCATED,),
            advice="Add usage.prompt_tokens: it tells whether the server read all of it.",
        )

    def _output_budget(self) -> Finding | None:
        window, budget = self.window, self.case.max_output_tokens
        if window is None or not budget or (self.reported or 0) > window:
            return None
        fits = self.count.high <= window or self._read_all() or (self.reported is not None and self.reported <= window)
        prompt = self.reported if self.reported is not None and self.case.prompt is not None else self.count.low
        if prompt + budget <= window or not fits:
            return None
        summary = f"The prompt fits the window of {window:,}, but not together with an output of {budget:,} tokens."
        if self.case.answer and self.case.answer.strip() and self.case.finish_reason == "stop":
            return self._say(
                Status.PASS, f"{summary} The answer came to its end all the same.", also=(Cause.OUTPUT_BUDGET,)
            )
        return self._say(
            Status.FAIL, summary, Cause.OUTPUT_BUDGET, advice="Lower max_output_tokens, or send fewer chunks."
        )

    def _fits(self) -> Finding:
        also = (Cause.OUTPUT_BUDGET,) if self.case.finish_reason == "length" else ()
        notes = ["The answer was cut at its length limit."] if also else []
        if self.sent is not None and self.sent.cut_end is Cut.MIDDLE:
            notes.append("Text was cut out of the middle of the prompt as sent; see assembly.")
            return self._say(Status.UNDETERMINED, " ".join(notes), also=also)
        if self.sent is not None and not self.sent.question_survives:
            notes.append("Warning: the question is not in the prompt as sent.")
        if self.window is not None and self.count.high > self.window and not self._read_all():
            return self._say(
                Status.UNDETERMINED,
                f"The prompt takes {_tokens(self.count)}: whether it fits the window of {self.window:,} is not certain.",
                also=also,
                advice="Add usage.prompt_tokens.",
            )
        if self.reported is not None and self.case.prompt is not None:
            said = f"The server read {self.reported:,} tokens, all that was sent."
        elif self.window is not None:
            whose = "The prompt" if self.case.prompt is not None else "A prompt of these chunks, in our layout,"
            said = f"{whose} takes {_tokens(self.count)} and fits the window of {self.window:,}."
        else:
            said = "The prompt as sent begins and ends outside the chunks."
        return self._say(Status.PASS, " ".join([said, *notes]), also=also)

    def _read_less(self) -> bool:
        return self.reported is not None and self.reported < READ_SHARE * self.count.low

    def _read_all(self) -> bool:
        return self.case.prompt is not None and self.reported is not None and not self._read_less()

    def _say(
        self,
        status: Status,
        summary: str,
        cause: Cause | None = None,
        also: tuple[Cause, ...] = (),
        lost: tuple[str, ...] = (),
        survives: Loss | None = None,
        advice: str = "",
    ) -> Finding:
        sent = self.sent
        evidence: dict[str, Json] = {
            "prompt_tokens": self.count.n,
            "low": self.count.low,
            "high": self.count.high,
            "token_source": self.count.source,
            "reported_tokens": self.reported,
            "context_window": self.window,
            "max_output_tokens": self.case.max_output_tokens,
            "cut_end": str(self.cut_end) if self.cut_end else None,
            "lost_chunk_ids": list(lost),
            "system_survives": not survives.system if survives else (sent.system_survives if sent else None),
            "question_survives": not survives.question if survives else (sent.question_survives if sent else None),
            "layout": "as-sent" if self.case.prompt is not None else "own",
            "would_lose": {str(cut): loss.to_json() for cut, loss in self.losses.items()} if self.losses else None,
        }
        return Finding("truncation", status, summary, evidence, (), cause, also, advice)


def _said_nothing(case: Case) -> bool:
    """Finished for length with no text: all of the output budget went elsewhere, mostly into reasoning."""
    if case.finish_reason not in ("length", "max_tokens"):
        return False
    if case.answer is not None:
        return not case.answer.strip()
    usage = case.usage
    spoken = None if usage is None else usage.completion_tokens
    return spoken is not None and spoken <= (usage.reasoning_tokens or 0 if usage else 0)


def _tokens(count: TokenCount) -> str:
    return f"{count.n:,} tokens" if count.exact else f"{count.low:,} to {count.high:,} tokens"


def _names(ids: tuple[str, ...]) -> str:
    return ("gold chunk " if len(ids) == 1 else "gold chunks ") + ", ".join(ids)
