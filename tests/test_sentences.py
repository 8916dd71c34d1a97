"""Sentences, content words, and whether a passage answers the question."""

from __future__ import annotations

import time

import pytest

from lim_core.evidence.conflicts import find_conflicts
from lim_core.text.sentences import content_words, sentences, states_answer
from lim_core.types import Case, Chunk


def test_sentences_keep_their_places() -> None:
    text = "It costs 3.50 euros. Ask Dr. Alder in room No. 4! Open?\nYes 请进。谢谢。"
    found = sentences(text)
    assert [s.text.strip() for s in found] == [
        "It costs 3.50 euros.",
        "Ask Dr. Alder in room No. 4!",
        "Open?",
        "Yes 请进。",
        "谢谢。",
    ]
    assert all(text[s.start : s.end] == s.text for s in found)
    assert sentences("") == ()
    assert sentences(" \n ") == ()


def test_forms_of_a_word_agree() -> None:
    assert content_words("What do the permits cost?") == content_words("permit costs")
    assert content_words("opening") == content_words("opens") == content_words("opened")
    assert content_words("libraries") == content_words("library")
    assert content_words("the of and") == frozenset()


@pytest.mark.parametrize(
    ("text", "title", "states"),
    [
        ("A market stall permit costs 45 euros.", "", True),
        ("It costs 45 euros.", "Market stall permit", True),
        ("A season ticket costs 45 euros. Market stall permits are at counter 4.", "", False),
        ("A market stall permit costs 145 euros.", "", False),
    ],
)
def test_an_answer_counts_where_the_question_is_spoken_of(text: str, title: str, states: bool) -> None:
    assert states_answer("What does a market stall permit cost?", ("45 euros", "45"), text, title) is states


@pytest.mark.parametrize("unit", ["a. ", "45 ", "45 euros. ", "market stall permit 45 euros ", "No. "])
def test_long_texts_take_linear_time(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    question = "What does a market stall permit cost?"
    chunks = (Chunk("gold", "A market stall permit costs 40 euros. " + text), Chunk("x", text))
    started = time.perf_counter()
    states_answer(question, ("45 euros",), text)
    find_conflicts(Case("k", question, chunks, ("40 euros",)), chunks[:1])
    assert time.perf_counter() - started < 10
