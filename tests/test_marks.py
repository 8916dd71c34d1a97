"""Gold proposed from the answers: matches to light up, spoilers named, the nearest chunk where nothing matches."""

from __future__ import annotations

import pytest

from lim_core.embeddings import open_embedder
from lim_core.evidence.marks import mark_gold
from lim_core.types import Case, Chunk

CHUNKS = (
    Chunk("c1", "Dashboards refresh every five minutes."),
    Chunk("c2", "Raw logs are kept for 45 days, then deleted."),
    Chunk("c3", "Alerts are sent by pager."),
    Chunk("c4", "The trial, too, lasts 45 days."),
)


def test_the_matches_are_ranges_of_the_chunks_own_text() -> None:
    marks = mark_gold(Case("a", "How long are logs kept?", CHUNKS, answers=("45 days",)))
    assert [(m.chunk_id, CHUNKS[int(m.chunk_id[1]) - 1].text[m.start : m.end]) for m in marks.marks] == [
        ("c2", "45 days"),
        ("c4", "45 days"),
    ]
    assert marks.proposed == ("c2", "c4")
    assert marks.nearest == ()


def test_a_chunk_with_the_answer_that_is_not_gold_is_a_spoiler_until_confirmed() -> None:
    case = Case("a", "How long are logs kept?", CHUNKS, answers=("45 days",), gold_ids=("c2",))
    assert mark_gold(case).spoilers == ("c4",)
    harmless = Case("a", case.question, CHUNKS, answers=case.answers, gold_ids=("c2",), harmless_ids=("c4",))
    assert mark_gold(harmless).spoilers == ()


def test_without_a_match_the_nearest_is_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    case = Case("a", "How long are raw logs stored?", CHUNKS, answers=("six and a half weeks of retention",))
    marks = mark_gold(case, open_embedder)
    assert marks.proposed == ("c2",)
    assert [near.similarity for near in marks.nearest] == sorted((n.similarity for n in marks.nearest), reverse=True)
    assert mark_gold(case).proposed == ()
