"""Gold, spoilers and open questions among the chunks of a case."""

from __future__ import annotations

import time

import pytest

from lim_core.evidence import Gold, gold_of, holders
from lim_core.types import Case, Chunk


def case(*texts: str, **fields: object) -> Case:
    chunks = tuple(Chunk(f"c{i}", text) for i, text in enumerate(texts, 1))
    return Case(id="x", question="How long?", chunks=chunks, **({"answers": ("12 days",)} | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (case("Kept 12 days.", "No."), Gold(("c1",), "alias")),
        (case("Kept 112 days.", "No."), Gold((), None)),
        (case("12 days.", "No.", "About 12 days"), Gold((), None, ambiguous=("c1", "c3"))),
        (case("12 days.", "No.", "About 12 days", gold_ids=("c3",)), Gold(("c3",), "gold_id", spoilers=("c1",))),
        (
            case("12 days.", "12 days", "12 days", gold_ids=("c3",), harmless_ids=("c1",)),
            Gold(("c3",), "gold_id", spoilers=("c2",)),
        ),
        (case("12 days.", "About 12 days", harmless_ids=("c1",)), Gold(("c2",), "alias")),
        (case("12 days.", harmless_ids=("c1",)), Gold((), None)),
        (case("Kept for a fortnight.", gold_ids=("c1",)), Gold(("c1",), "gold_id")),
        (case("12 days.", gold_ids=("gone",)), Gold(("c1",), "alias")),
        (case("A fortnight.", "No.", "A\n fortnight.", gold_ids=("c1",)), Gold(("c1",), "gold_id", spoilers=("c3",))),
        (case("A fortnight.", "A fortnight.", gold_ids=("c1",), harmless_ids=("c2",)), Gold(("c1",), "gold_id")),
        (case("", "", gold_ids=("c1",)), Gold(("c1",), "gold_id")),
        (case("No.", gold_ids=("gone",)), Gold((), None)),
        (case("a", "b", "c", gold_ids=("c3", "gone", "c1")), Gold(("c3", "c1"), "gold_id")),
        (case("No.", gold_ids=("k",), candidates=(Chunk("k", "12 days"),)), Gold(("k",), "gold_id")),
        (case("12 days", gold_ids=("k",), corpus=(Chunk("k", "12 days"),)), Gold(("k",), "gold_id", spoilers=("c1",))),
        # Only retrieved chunks are searched by alias: the rest is the retrieval stage's work.
        (case("No.", corpus=(Chunk("k", "12 days"),)), Gold((), None)),
        (case(answers=()), Gold((), None)),
        (case("12 days", answers=()), Gold((), None)),
        (case("12 days", answers=(), gold_ids=("c1",)), Gold(("c1",), "gold_id")),
        (case("x", "*", answers=("*",)), Gold((), None)),
    ],
)
def test_gold(given: Case, expected: Gold) -> None:
    assert gold_of(given) == expected


def test_a_title_counts_for_the_prompt_shows_it() -> None:
    titled = Chunk("t", "Kept for a while.", title="Kept 12 days")
    assert holders(case(), [titled, Chunk("u", "12"), Chunk("v", "days", title="12")]) == ("t",)


def test_five_thousand_chunks_are_quick() -> None:
    texts = [f"Rule {i}: the clerk of room {i * 7} keeps the paper for {i} weeks and no longer." for i in range(4999)]
    many = case(*texts, "Kept 12 days.")
    gold_of(many)
    start = time.perf_counter()
    assert gold_of(many) == Gold(("c5000",), "alias")
    assert time.perf_counter() - start < 1.0
