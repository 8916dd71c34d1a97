"""The suite in data/: read without a warning, one gold chunk a case, no spoiler, and gold ranks that differ."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lim_core.cases import MAX_BYTES, case_from_json, case_to_json, read_suite
from lim_core.evidence import gold_of, holders
from lim_core.evidence.conflicts import find_conflicts
from lim_core.orderings import arrange, date_of, score_direction
from lim_core.text.normalise import contains_any
from lim_core.types import Case, ScoreDirection

SUITE = Path(__file__).resolve().parents[1] / "data" / "handbook-suite.jsonl"
LOADED = read_suite(SUITE.read_bytes(), SUITE.name)
CASES = LOADED.cases
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)


def gold_rank(case: Case) -> int:
    return [chunk.id for chunk in case.chunks].index(case.gold_ids[0])


def test_the_suite_is_read_without_a_warning() -> None:
    assert LOADED.warnings == ()
    assert len(CASES) >= 40
    assert SUITE.stat().st_size < 3_000_000 < MAX_BYTES


def test_the_sources_share_the_suite() -> None:
    sources = Counter(tag for case in CASES for tag in case.tags if tag.startswith("source:"))
    assert len(sources) == 4
    assert min(sources.values()) >= 8
    assert all("suite:handbook" in case.tags for case in CASES)


def test_the_gold_is_ranked_first_middle_and_late() -> None:
    thirds = Counter(3 * gold_rank(case) // len(case.chunks) for case in CASES)
    assert len({gold_rank(case) for case in CASES}) >= 4
    assert thirds[1] >= 8
    assert thirds[2] >= 3
    assert 5 <= sum(gold_rank(case) == 0 for case in CASES) <= len(CASES) // 2


def test_prompts_differ_in_length() -> None:
    assert len({len(case.chunks) for case in CASES}) >= 5


@each_case
def test_a_case_is_a_plain_case_file(case: Case) -> None:
    again = case_from_json(case_to_json(case))
    assert again.case == case
    assert again.warnings == ()


@each_case
def test_one_chunk_holds_the_answer(case: Case) -> None:
    assert 12 <= len(case.chunks) <= 20
    gold = gold_of(case)
    assert gold.ids == case.gold_ids
    assert gold.found_by == "gold_id"
    assert gold.spoilers == ()
    assert holders(case, case.chunks) == case.gold_ids
    assert holders(case, case.candidates or ()) == case.gold_ids
    assert not contains_any(case.answers, case.question)
    assert all(len(answer) >= 3 for answer in case.answers)


@each_case
def test_no_other_chunk_contradicts_the_gold(case: Case) -> None:
    assert find_conflicts(case, [chunk for chunk in case.chunks if chunk.id in case.gold_ids]) == ()


@each_case
def test_chunks_head_the_ranked_list(case: Case) -> None:
    ranked = case.candidates
    assert ranked is not None
    assert len(ranked) == 28
    assert ranked[: len(case.chunks)] == case.chunks
    assert case.score_direction is score_direction(ranked) is ScoreDirection.SIMILARITY
    assert arrange("score", case.chunks) == case.chunks


@each_case
def test_source_and_date_make_orders_of_their_own(case: Case) -> None:
    assert all(date_of(chunk) is not None for chunk in case.chunks)
    by_place, by_date = arrange("document-order", case.chunks), arrange("chronological", case.chunks)
    assert len({case.chunks, by_place, by_date}) == 3
    sections = [[int(part) for part in str(chunk.metadata["section"]).split(".")] for chunk in by_place]
    assert sections == sorted(sections)
