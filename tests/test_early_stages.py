"""Stages 1 to 3 by their rules, on the packaged embedder and real counters; no model is called."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"

from lim_core.embeddings import open_embedder
from lim_core.judges import judges
from lim_core.prompts import lay_out
from lim_core.stages import stages
from lim_core.tokens import counter_for
from lim_core.types import (
    Bench,
    Case,
    Cause,
    Chunk,
    Embedder,
    Finding,
    Message,
    Model,
    Status,
    Trial,
    TrialResult,
    Usage,
)

QUESTION = "What is the fee for a market stall permit?"
ANSWERS = ("45 euros",)
GOLD = Chunk(
    "gold", "The fee for a market stall permit is 45 euros per day. It is paid at counter 4 before the market opens."
)
OTHERS = tuple(
    Chunk(f"d{i}", text)
    for i, text in enumerate(
        (
            "The reading room of the archive opens at nine on weekdays and is closed in August for cleaning.",
            "Dogs taller than a rain barrel must be registered by the end of January with their height.",
            "The swimming pool admits eighty bathers at a time; caps are compulsory in the deep basin.",
            "Bonfires are allowed on the last evening of April only, at least thirty metres from a roof.",
            "Books are lent for three weeks and may be renewed once by telephone, films cannot be renewed.",
            "The registry moved to the second floor of the annex, beside the lift and the drinking fountain.",
        )
    )
)
CHUNKS = (*OTHERS[:3], GOLD, *OTHERS[3:])


class _NoRunner:
    def run(self, trials: Sequence[Trial], stage: str) -> Iterator[TrialResult]:
        raise AssertionError("an early stage sent a call")


def _no_model() -> Model:
    raise AssertionError("an early stage opened the model")


def _no_embedder() -> Embedder:
    raise AssertionError("the embedder was opened without need")


BENCH = Bench(_no_model, _no_embedder, _NoRunner(), counter_for("gpt-4o"), judges["contains"].part, None, "embedded")
MEANING = replace(BENCH, open_embedder=open_embedder)


def _case(**fields: object) -> Case:
    return replace(Case("case", QUESTION, CHUNKS, ANSWERS), **fields)  # type: ignore[arg-type]


def _sent(case: Case) -> str:
    return lay_out(case.question, case.chunks).messages[0].content


def _user(text: str) -> tuple[Message, ...]:
    return (Message("user", text),)


def _run(case: Case, *names: str, bench: Bench = BENCH) -> Finding:
    found: dict[str, Finding] = {}
    for name in names:
        found[name] = stages[name].part(case, bench, found)
    return found[names[-1]]


def _truncation(case: Case, bench: Bench = BENCH) -> Finding:
    return _run(case, "truncation", bench=bench)


FULL = _sent(_case())
TOKENS = counter_for("gpt-4o").count(FULL).n


# --- the registry ---------------------------------------------------------------------------------


def test_the_package_fills_the_registry_in_order() -> None:
    assert [entry.name for entry in stages][:3] == ["truncation", "retrieval", "assembly"]
    assert all(entry.help for entry in stages)


def test_stages_load_nothing_heavy() -> None:
    code = (
        "import sys, lim_core.stages\n"
        "heavy = {'torch', 'sentence_transformers', 'bm25s', 'openai', 'bpe_openai', 'streamlit', 'duckdb'}\n"
        "heavy &= set(sys.modules)\n"
        "raise SystemExit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- truncation -----------------------------------------------------------------------------------


def test_a_healthy_prompt_passes() -> None:
    finding = _truncation(
        _case(prompt=_user(FULL), context_window=4096, max_output_tokens=256, usage=Usage(TOKENS + 7))
    )
    assert finding.status is Status.PASS
    assert finding.cause is None
    evidence = finding.evidence
    assert evidence["cut_end"] is None
    assert evidence["lost_chunk_ids"] == []
    assert evidence["question_survives"] is True
    assert evidence["system_survives"] is None
    assert evidence["token_source"] == "bpe-openai:o200k_base"
    assert set(evidence) >= {"prompt_tokens", "low", "high", "reported_tokens", "context_window", "max_output_tokens"}


def test_nothing_known_is_skipped() -> None:
    finding = _truncation(_case())
    assert finding.status is Status.SKIPPED
    assert finding.missing_fields == ("prompt", "context_window", "usage")


def test_a_start_cut_through_the_gold() -> None:
    cut = FULL[FULL.index("is paid at counter") :]
    finding = _truncation(_case(prompt=_user(cut)))
    assert (finding.status, finding.cause) == (Status.FAIL, Cause.TRUNCATED)
    assert finding.evidence["cut_end"] == "start"
    assert finding.evidence["lost_chunk_ids"] == ["d0", "d1", "d2", "gold"]
    assert finding.evidence["system_survives"] is False
    assert finding.evidence["question_survives"] is True


def test_a_start_cut_that_spares_the_answer() -> None:
    cut = FULL[FULL.index("market stall permit is 45") :]
    finding = _truncation(_case(prompt=_user(cut)))
    assert (finding.status, finding.cause, finding.also) == (Status.PASS, None, (Cause.TRUNCATED,))


def test_an_end_cut_takes_the_question() -> None:
    cut = FULL[: FULL.index("may be renewed once")]
    finding = _truncation(_case(prompt=_user(cut)))
    assert (finding.status, finding.cause) == (Status.FAIL, Cause.TRUNCATED)
    assert finding.evidence["cut_end"] == "end"
    assert finding.evidence["question_survives"] is False
    assert finding.evidence["lost_chunk_ids"] == ["d4", "d5"]


def test_an_end_cut_after_a_question_asked_first() -> None:
    prompt = f"Question: {QUESTION}\n\n" + "\n".join(f"[{i}] {c.text}" for i, c in enumerate(CHUNKS))
    spared = _truncation(_case(prompt=_user(prompt[: prompt.index("may be renewed once")])))
    assert (spared.cause, spared.also) == (None, (Cause.TRUNCATED,))
    lost = _truncation(_case(prompt=_user(prompt[: prompt.index("permit is 45")])))
    assert lost.cause is Cause.TRUNCATED


def test_a_prompt_that_breaks_off_in_the_question() -> None:
    finding = _truncation(_case(prompt=_user(FULL[: FULL.index(" permit?\nAnswer")])))
    assert finding.cause is Cause.TRUNCATED


def test_chunks_gone_from_inside_are_not_truncation() -> None:
    finding = _truncation(_case(prompt=_user(_sent(_case(chunks=OTHERS)))))
    assert (finding.status, finding.cause, finding.also) == (Status.PASS, None, ())


def test_a_missing_question_alone_is_a_warning() -> None:
    finding = _truncation(_case(prompt=_user(FULL[: FULL.index("\n\nQuestion:")])))
    assert (finding.status, finding.cause) == (Status.PASS, None)
    assert "question is not in the prompt" in finding.summary


def test_a_middle_cut_is_left_to_assembly() -> None:
    cut = FULL[: FULL.index("by the end of January")] + FULL[FULL.index("at least thirty") :]
    finding = _truncation(_case(prompt=_user(cut)))
    assert (finding.status, finding.cause) == (Status.UNDETERMINED, None)
    assert finding.evidence["cut_end"] == "middle"
    assert _run(_case(prompt=_user(cut)), "truncation", "retrieval", "assembly").cause is Cause.ASSEMBLY_LOSS


def test_chunks_trimmed_one_by_one_are_not_truncation() -> None:
    prompt = f"Question: {QUESTION}\n" + "\n".join(f"[{i}] {c.text[:30]}" for i, c in enumerate(CHUNKS))
    assert _truncation(_case(prompt=_user(prompt))).cause is None
    assert _run(_case(prompt=_user(prompt)), "truncation", "retrieval", "assembly").cause is Cause.ASSEMBLY_LOSS


def test_the_silent_cut_of_a_server() -> None:
    """HTTP 200, no flag, a third of the tokens: the start is what servers drop."""
    finding = _truncation(_case(prompt=_user(FULL), usage=Usage(TOKENS // 3)))
    assert (finding.status, finding.cause) == (Status.FAIL, Cause.TRUNCATED)
    assert finding.evidence["cut_end"] == "start"
    assert finding.evidence["reported_tokens"] == TOKENS // 3
    assert "gold" in finding.evidence["lost_chunk_ids"]  # type: ignore[operator]


def test_a_silent_cut_that_may_have_spared_the_gold() -> None:
    chunks = (*OTHERS, GOLD)
    prompt = _sent(_case(chunks=chunks))
    finding = _truncation(_case(chunks=chunks, prompt=_user(prompt), usage=Usage(int(TOKENS * 0.6))))
    assert (finding.status, finding.cause, finding.also) == (Status.UNDETERMINED, None, (Cause.TRUNCATED,))
    assert "unless the end" in finding.summary


def test_a_report_of_no_tokens_is_no_report() -> None:
    """0 is what a template or a gateway that does not count says; a cut to nothing is not what happened."""
    finding = _truncation(_case(prompt=_user(FULL), usage=Usage(0)))
    assert (finding.status, finding.cause) == (Status.PASS, None)
    assert finding.evidence["reported_tokens"] is None
    assert _truncation(_case(usage=Usage(0))).status is Status.SKIPPED


@pytest.mark.parametrize("share", [0.92, 1.0, 1.1])
def test_a_report_near_our_count_is_no_cut(share: float) -> None:
    assert _truncation(_case(prompt=_user(FULL), usage=Usage(int(TOKENS * share)))).status is Status.PASS


def test_an_estimate_does_not_accuse_within_its_band() -> None:
    bench = replace(BENCH, counter=counter_for(None))
    low = bench.counter.count_messages(_user(FULL)).low
    assert _truncation(_case(prompt=_user(FULL), usage=Usage(int(low * 0.91) + 1)), bench).cause is None
    assert _truncation(_case(prompt=_user(FULL), usage=Usage(int(low * 0.4))), bench).cause is Cause.TRUNCATED


def test_what_each_cut_would_lose() -> None:
    case = _case(prompt=(Message("system", "Answer briefly."), *_user(FULL)), context_window=TOKENS // 2)
    finding = _truncation(case)
    assert (finding.status, finding.cause, finding.also) == (Status.UNDETERMINED, None, (Cause.TRUNCATED,))
    lose = finding.evidence["would_lose"]
    assert isinstance(lose, dict)
    assert set(lose) == {"start", "middle", "end"}
    assert lose["start"]["chunk_ids"][:3] == ["d0", "d1", "d2"]
    assert (lose["start"]["system"], lose["start"]["question"]) == (True, False)
    assert lose["end"]["chunk_ids"][-1] == "d5"
    assert (lose["end"]["system"], lose["end"]["question"]) == (False, True)
    assert "gold" in lose["middle"]["chunk_ids"]
    assert (lose["middle"]["system"], lose["middle"]["question"]) == (False, False)


def test_a_prompt_that_fits_would_lose_nothing() -> None:
    lose = _truncation(_case(prompt=_user(FULL), context_window=8192)).evidence["would_lose"]
    assert isinstance(lose, dict)
    assert all(one == {"chunk_ids": [], "system": None, "question": False} for one in lose.values())


def test_without_a_prompt_our_own_layout_is_counted() -> None:
    finding = _truncation(_case(context_window=100))
    assert (finding.status, finding.cause) == (Status.UNDETERMINED, None)
    assert "in our layout" in finding.summary
    assert finding.evidence["layout"] == "own"
    assert _truncation(_case(context_window=8192)).status is Status.PASS


def test_a_window_smaller_than_the_question() -> None:
    assert _truncation(_case(context_window=5)).cause is Cause.TRUNCATED


def test_prompt_fits_but_not_with_the_output() -> None:
    tight = _case(prompt=_user(FULL), context_window=TOKENS + 100, max_output_tokens=256)
    assert _truncation(tight).cause is Cause.OUTPUT_BUDGET
    told = replace(tight, answer="45 euros", finish_reason="stop")
    assert (_truncation(told).status, _truncation(told).also) == (Status.PASS, (Cause.OUTPUT_BUDGET,))
    assert _truncation(replace(tight, max_output_tokens=20)).status is Status.PASS


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"answer": "", "finish_reason": "length"}, Cause.OUTPUT_BUDGET),
        ({"answer": " \n", "finish_reason": "length"}, Cause.OUTPUT_BUDGET),
        ({"finish_reason": "length", "usage": Usage(None, 400, None, 400)}, Cause.OUTPUT_BUDGET),
        ({"answer": "It is", "finish_reason": "length", "prompt": _user(FULL)}, None),
        ({"answer": "", "finish_reason": "stop", "prompt": _user(FULL)}, None),
    ],
)
def test_nothing_said_at_the_length_limit(fields: dict[str, object], cause: Cause | None) -> None:
    assert _truncation(_case(**fields)).cause is cause


def test_a_cut_without_known_gold_is_undetermined() -> None:
    cut = FULL[FULL.index("is paid at counter") :]
    finding = _truncation(_case(answers=(), prompt=_user(cut)))
    assert (finding.status, finding.cause, finding.also) == (Status.UNDETERMINED, None, (Cause.TRUNCATED,))


# --- retrieval ------------------------------------------------------------------------------------


def _retrieval(bench: Bench = BENCH, **fields: object) -> Finding:
    return _run(_case(**fields), "retrieval", bench=bench)


def test_found_by_id_or_by_answer() -> None:
    by_id = _retrieval(gold_ids=("gold",))
    assert (by_id.status, by_id.evidence["found_by"], by_id.evidence["chunk_ranks"]) == (
        Status.PASS,
        "gold_id",
        {"gold": 3},
    )
    by_alias = _retrieval()
    assert (by_alias.status, by_alias.evidence["found_by"]) == (Status.PASS, "alias")
    assert by_alias.evidence["gold_ids"] == ["gold"]
    assert by_alias.evidence["conflicts"] == []


@pytest.mark.parametrize("fields", [{"gold_ids": ("gold",)}, {}])
@pytest.mark.parametrize(
    ("lists", "cause"),
    [
        ({"candidates": (*OTHERS, GOLD)}, Cause.RANKED_OUT),
        ({"candidates": (*OTHERS, GOLD), "corpus": CHUNKS}, Cause.RANKED_OUT),
        ({"candidates": OTHERS, "corpus": CHUNKS}, Cause.NOT_RETRIEVED),
        ({"corpus": CHUNKS}, Cause.NOT_RETRIEVED),
        ({"corpus": OTHERS}, Cause.MISSING_DOCUMENT),
        ({"candidates": OTHERS}, Cause.NOT_RETRIEVED),
        ({}, Cause.NOT_RETRIEVED),
    ],
)
def test_where_the_evidence_was_lost(fields: dict[str, object], lists: dict[str, object], cause: Cause) -> None:
    finding = _retrieval(bench=MEANING, chunks=OTHERS, **fields, **lists)
    assert (finding.status, finding.cause) == (Status.FAIL, cause)
    if cause is Cause.NOT_RETRIEVED and "corpus" not in lists:
        assert "unknown" in finding.summary


def test_ranks_in_every_list() -> None:
    finding = _retrieval(chunks=OTHERS, candidates=(*OTHERS, GOLD), corpus=CHUNKS, gold_ids=("gold",))
    assert finding.evidence["chunk_ranks"] == {}
    assert finding.evidence["candidate_ranks"] == {"gold": 6}
    assert finding.evidence["corpus_ranks"] == {"gold": 0}


def test_a_chunk_without_the_words_has_no_rank() -> None:
    far = Chunk("gold", "Zahlbar an Schalter vier.")
    finding = _retrieval(chunks=OTHERS, corpus=(*OTHERS, far), gold_ids=("gold",), answers=())
    assert finding.evidence["corpus_ranks"] == {"gold": None}


def test_nothing_to_look_for() -> None:
    finding = _retrieval(answers=())
    assert (finding.status, finding.missing_fields) == (Status.SKIPPED, ("gold_ids", "answers"))
    assert _retrieval(answers=(), chunks=()).cause is Cause.NOT_RETRIEVED


def test_an_empty_result() -> None:
    assert _retrieval(bench=MEANING, chunks=(), corpus=CHUNKS).cause is Cause.NOT_RETRIEVED
    assert _retrieval(bench=MEANING, chunks=(), corpus=()).cause is Cause.MISSING_DOCUMENT


def test_several_chunks_with_the_answer() -> None:
    twin = Chunk("twin", GOLD.text)
    finding = _retrieval(chunks=(*CHUNKS, twin))
    assert finding.status is Status.PASS
    assert finding.evidence["gold_ids"] == ["gold", "twin"]


def test_another_chunk_states_the_answer() -> None:
    twin = Chunk("twin", GOLD.text)
    finding = _retrieval(chunks=(*OTHERS, twin), candidates=(*OTHERS, twin, GOLD), gold_ids=("gold",))
    assert (finding.status, finding.cause, finding.also) == (Status.UNDETERMINED, None, (Cause.RANKED_OUT,))
    confirmed = _retrieval(
        chunks=(*OTHERS, twin), candidates=(*OTHERS, twin, GOLD), gold_ids=("gold",), harmless_ids=("twin",)
    )
    assert confirmed.cause is Cause.RANKED_OUT


def test_the_golds_text_under_another_id_is_not_called_lost() -> None:
    """Ids often differ between the index and the retrieved list; the same text was retrieved all the same."""
    chunks = (*OTHERS, replace(GOLD, id="hit-3", text=GOLD.text.replace(" ", "\n", 1)))
    for answers in ((), ("another wording",)):
        finding = _retrieval(answers=answers, gold_ids=("gold",), chunks=chunks, corpus=CHUNKS)
        assert (finding.status, finding.cause) == (Status.UNDETERMINED, None)
        assert "hit-3" in finding.summary


def test_a_mere_mention_does_not_excuse_the_retriever() -> None:
    mention = Chunk("m", "A season ticket for the swimming pool costs 45 euros.")
    finding = _retrieval(chunks=(*OTHERS, mention), candidates=(*OTHERS, mention, GOLD), gold_ids=("gold",))
    assert finding.cause is Cause.RANKED_OUT


def test_not_answerable() -> None:
    assert _retrieval(answerable=False, answers=(), chunks=OTHERS).status is Status.PASS
    assert _retrieval(answerable=False).status is Status.UNDETERMINED


def test_one_of_two_gold_chunks_is_missing() -> None:
    fields = {"gold_ids": ("d0", "gold"), "chunks": OTHERS, "candidates": (*OTHERS, GOLD)}
    assert _retrieval(**fields).cause is Cause.RANKED_OUT
    fields = {"gold_ids": ("d0", "gold"), "candidates": CHUNKS, "chunks": (GOLD,)}
    assert _retrieval(**fields).status is Status.PASS


OLD = Chunk("old", "The fee for a market stall permit is 40 euros per day.", metadata={"date": "2019-01-01"})


def test_a_conflict_is_shown_and_blamed_only_if_told() -> None:
    shown = _retrieval(chunks=(*CHUNKS, OLD))
    assert (shown.status, shown.cause, shown.also) == (Status.PASS, None, (Cause.CONFLICTING_SOURCES,))
    assert shown.evidence["conflicts"] == [
        {"ids": ["gold", "old"], "values": ["45 euros", "40 euros"], "later_id": None}
    ]
    told = _retrieval(chunks=(*CHUNKS, OLD), answer="It costs 40 euros.")
    assert (told.status, told.cause) == (Status.FAIL, Cause.CONFLICTING_SOURCES)
    right = _retrieval(chunks=(*CHUNKS, OLD), answer="It costs 45 euros.")
    assert right.cause is None


def test_the_answer_in_other_words_is_suggested() -> None:
    chunks = (
        *OTHERS,
        Chunk("said", "Traders are charged forty-five euro for permission to run a stall on the market."),
    )
    finding = _retrieval(bench=MEANING, chunks=chunks)
    assert (finding.status, finding.cause, finding.evidence["found_by"]) == (Status.UNDETERMINED, None, "embedding")
    assert finding.evidence["gold_ids"] == ["said"]


def test_a_distractor_is_not_suggested() -> None:
    chunks = (*OTHERS, Chunk("other", "A permit for street music costs 30 euros."))
    finding = _retrieval(bench=MEANING, chunks=chunks, corpus=chunks)
    assert finding.cause is Cause.MISSING_DOCUMENT
    assert finding.evidence["found_by"] is None


# --- assembly -------------------------------------------------------------------------------------


def _assembly(**fields: object) -> Finding:
    return _run(_case(**fields), "truncation", "retrieval", "assembly", bench=MEANING)


def test_all_chunks_are_there() -> None:
    finding = _assembly(prompt=_user(FULL))
    assert finding.status is Status.PASS
    rows = finding.evidence["chunks"]
    assert isinstance(rows, list)
    assert [row["id"] for row in rows] == [chunk.id for chunk in CHUNKS]
    assert {row["state"] for row in rows} == {"whole"}
    offsets = [row["token_offset"] for row in rows]
    assert offsets == sorted(offsets)
    true = counter_for("gpt-4o").count(FULL[: FULL.index(GOLD.text)]).n
    assert abs(offsets[3] - true) <= 12
    assert abs(rows[3]["depth"] - true / TOKENS) < 0.05
    assert abs(rows[3]["tokens"] - counter_for("gpt-4o").count(GOLD.text).n) <= 2
    assert abs(int(str(finding.evidence["prompt_tokens"])) - TOKENS) < 12


def test_the_gold_was_left_out() -> None:
    finding = _assembly(prompt=_user(_sent(_case(chunks=OTHERS))))
    assert (finding.status, finding.cause) == (Status.FAIL, Cause.ASSEMBLY_LOSS)
    row = finding.evidence["chunks"][3]  # type: ignore[index, call-overload]
    assert (row["state"], row["share"], row["answer_lost"], row["token_offset"], row["depth"]) == (
        "missing",
        0.0,
        True,
        None,
        None,
    )


def test_the_gold_was_clipped() -> None:
    short = replace(GOLD, text=GOLD.text[: GOLD.text.index(" 45 euros")])
    finding = _assembly(prompt=_user(_sent(_case(chunks=(*OTHERS[:3], short, *OTHERS[3:])))))
    assert finding.cause is Cause.ASSEMBLY_LOSS
    tail = replace(GOLD, text=GOLD.text[: GOLD.text.index(" It is paid")])
    spared = _assembly(prompt=_user(_sent(_case(chunks=(*OTHERS[:3], tail, *OTHERS[3:])))))
    assert (spared.status, spared.cause) == (Status.PASS, None)
    unknown = _assembly(
        answers=(), gold_ids=("gold",), prompt=_user(_sent(_case(chunks=(*OTHERS[:3], tail, *OTHERS[3:]))))
    )
    assert (unknown.status, unknown.cause) == (Status.UNDETERMINED, None)


def test_other_chunks_may_be_missing_or_doubled() -> None:
    finding = _assembly(prompt=_user(_sent(_case(chunks=(GOLD, *OTHERS[:4], OTHERS[0])))))
    assert (finding.status, finding.cause) == (Status.PASS, None)
    states = [row["state"] for row in finding.evidence["chunks"]]  # type: ignore[union-attr, index, call-overload]
    assert states == ["doubled", "whole", "whole", "whole", "whole", "missing", "missing"]


def test_what_truncation_took_is_not_blamed_twice() -> None:
    finding = _assembly(prompt=_user(FULL[FULL.index("is paid at counter") :]))
    assert (finding.status, finding.cause) == (Status.PASS, None)


def test_missing_chunks_without_known_gold() -> None:
    finding = _assembly(answers=(), prompt=_user(_sent(_case(chunks=OTHERS))))
    assert (finding.status, finding.cause) == (Status.UNDETERMINED, None)


def test_a_rewritten_gold_is_not_called_lost() -> None:
    prompt = FULL.replace(GOLD.text, "Summary: market stall permit, fee 45 euros.")
    finding = _assembly(prompt=_user(prompt))
    assert (finding.status, finding.cause, finding.also) == (Status.UNDETERMINED, None, (Cause.ASSEMBLY_LOSS,))


def test_assembly_needs_a_prompt_and_chunks() -> None:
    assert _assembly().missing_fields == ("prompt",)
    assert _assembly(prompt=_user("x"), chunks=(), answerable=False, answers=()).missing_fields == ("chunks",)
