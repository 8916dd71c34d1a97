"""The judges, each from both sides; their normaliser and the abstention detector have tests of their own."""

from __future__ import annotations

import gzip
import json
import re
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lim_core.errors import UnknownName
from lim_core.judges import (
    best_subspan_em,
    contains,
    judge_version,
    judges,
    liu,
)
from lim_core.text.normalise import contains_any
from lim_core.types import Case, Chunk, Outcome


def case(*answers: str) -> Case:
    return Case(id="x", question="How long?", chunks=(), answers=answers)


# Letters, digits, marks and signs that have fooled normalisers, in any order.
ODD = st.text(
    st.sampled_from(
        "aAzßıİ́̈ °µ²½①ﬁ™'’-–−.,:%$€&+#_ \n\u00a0\u202f\u200b\u00ad017٣१８北京。、ガｶﾞกี่한한مَهहि😀🇩🇪\u202e()\"*"
    ),
    max_size=40,
)


# --- verdicts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", ["", " ", "\n\t", "\u200b\ufeff"])
@pytest.mark.parametrize("name", ["contains", "liu"])
def test_an_empty_reply_is_empty(name: str, empty: str) -> None:
    assert judges[name].part(case("12"), empty).outcome is Outcome.EMPTY


@pytest.mark.parametrize(
    ("text", "outcome", "reason"),
    [
        ("It takes 12 days.", Outcome.CORRECT, 'Contains "12 days".'),
        ("112 days", Outcome.WRONG, 'Holds none of the accepted answers ("12 days" or "a fortnight").'),
        ("I don't know.", Outcome.ABSTAINED, "The reply declines to answer."),
        ("Not 12 days but 14.", Outcome.CORRECT, 'Contains "12 days", but right after a negation: read it.'),
        (
            "I cannot say whether it is a fortnight.",
            Outcome.CORRECT,
            'Contains "a fortnight", though the reply also declines: read it.',
        ),
        ("我不知道。", Outcome.ABSTAINED, "The reply declines to answer."),
        ("Es sind 14 Tage.", Outcome.WRONG, 'Holds none of the accepted answers ("12 days" or "a fortnight").'),
    ],
)
def test_contains(text: str, outcome: Outcome, reason: str) -> None:
    verdict = contains(case("12 days", "a fortnight"), text)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("It takes 14 days [2].", Outcome.WRONG),
        ("It takes 14 days.[1][2]", Outcome.WRONG),
        ("It takes 14 days [1, 2], see [2].", Outcome.WRONG),
        ("It takes 2 days [1].", Outcome.CORRECT),
        ("[2]", Outcome.CORRECT),
        ("See [2, 9]", Outcome.CORRECT),  # there is no ninth chunk, so it is no citation
        ("<think>Perhaps 2.</think>It takes 14 days.", Outcome.WRONG),
        ("<think>Perhaps 14.</think>\n2", Outcome.CORRECT),
        ("<think>It is 2, I", Outcome.EMPTY),
    ],
)
def test_neither_a_citation_nor_a_thought_is_an_answer(text: str, outcome: Outcome) -> None:
    chunks = tuple(Chunk(f"c{i}", "x") for i in range(3))
    verdict = contains(Case(id="x", question="How many?", chunks=chunks, answers=("2",)), text)
    assert verdict.outcome is outcome
    if "[2]." in text:
        assert verdict.reason == 'Holds "2" only in what reads as a citation mark.'


def test_without_answers_nothing_can_be_scored() -> None:
    for name in ("contains", "liu"):
        assert judges[name].part(case(), "12 days").outcome is Outcome.ERROR
        assert judges[name].part(case(), "I don't know.").outcome is Outcome.ABSTAINED


def test_versions() -> None:
    assert {entry.name for entry in judges} == {"contains", "liu"}
    assert len({judge_version(entry.name) for entry in judges}) == len(judges)
    assert all(entry.help for entry in judges)
    with pytest.raises(UnknownName, match="Did you mean contains"):
        judge_version("contain")


# --- liu -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "text", "outcome"),
    [
        (["14"], "in 2014", Outcome.CORRECT),  # no word boundary
        (["314"], "3.14", Outcome.CORRECT),  # points are deleted
        (["14-year"], "the 14year rule", Outcome.CORRECT),
        (["The Beatles"], "beatles", Outcome.CORRECT),
        (["cafe"], "café", Outcome.WRONG),
        (["caf\u00e9"], "cafe\u0301", Outcome.WRONG),  # ASCII punctuation only, no composition
        (["12"], "1–2", Outcome.WRONG),  # an en dash is no ASCII punctuation
        (["12"], "It is\n12", Outcome.WRONG),  # the cut at the first newline
        (["12"], "\n12", Outcome.WRONG),
        (["12"], "  12 \nand more", Outcome.CORRECT),
        (["12"], "It is\r12", Outcome.CORRECT),  # only \n cuts
        (["12"], "I don't know.", Outcome.ABSTAINED),
        (["*"], "anything", Outcome.CORRECT),
        (["the"], "\nanything", Outcome.CORRECT),
        ([""], "x", Outcome.CORRECT),
    ],
)
def test_liu(answers: list[str], text: str, outcome: Outcome) -> None:
    assert liu(case(*answers), text).outcome is outcome


def test_liu_warns_of_its_traps() -> None:
    assert liu(case("x", "*"), "anything").reason.startswith('Warning: the answer "*" is empty once normalised')
    assert "after the first newline" in liu(case("12"), "It is\n12").reason


def _published(prediction: str, answers: list[str]) -> float:
    """The published score, from its description in the paper's repository, step by step."""

    def normal(text: str) -> str:
        text = "".join(character for character in text.lower() if character not in set(string.punctuation))
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())

    return float(any(normal(prediction).find(normal(answer)) >= 0 for answer in answers))


@given(ODD | st.text("the an.a*'\n-12", max_size=20), st.lists(ODD | st.text("the an.a*'-12", max_size=6), max_size=3))
@settings(max_examples=500, deadline=None)
def test_liu_is_the_published_score(text: str, answers: list[str]) -> None:
    assert best_subspan_em(text, answers) == _published(text, answers)
    cut = text.split("\n")[0].strip()
    verdict = liu(case(*answers), text)
    assert (verdict.outcome is Outcome.CORRECT) == (
        bool(_published(cut, answers)) and verdict.outcome is not Outcome.EMPTY
    )


def test_on_published_questions() -> None:
    """Counts of facts about the 2,655 published questions: every gold passage holds an answer, one alias matches all."""
    path = Path(__file__).parents[2] / "shared" / "data" / "nq-open-oracle.jsonl.gz"
    if not path.exists():
        pytest.skip(f"the published questions are not at {path}")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert len(rows) == 2655
    gold = [f"{row['ctxs'][0]['title']} {row['ctxs'][0]['text']}" for row in rows]
    assert all(best_subspan_em(text, row["answers"]) for text, row in zip(gold, rows, strict=True))
    assert sum(best_subspan_em("", row["answers"]) for row in rows) == 1
    # `contains` is stricter: it parts only where an answer is a piece of a longer word or number, or is nothing.
    missed = [row["answers"] for text, row in zip(gold, rows, strict=True) if not contains_any(row["answers"], text)]
    assert len(missed) < 0.02 * len(rows), missed
