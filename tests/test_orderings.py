"""Orderings are permutations and do exactly what their names say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lim_core.errors import InputError, UnknownName
from lim_core.orderings import arrange, date_of, orderings, score_direction
from lim_core.types import Chunk, ScoreDirection


def ranked(n: int) -> list[Chunk]:
    return [Chunk(str(rank), f"text {rank}") for rank in range(1, n + 1)]


def ids(name: str, chunks: list[Chunk], seed: int = 0) -> str:
    return " ".join(chunk.id for chunk in arrange(name, chunks, seed))


@pytest.mark.parametrize("entry", list(orderings), ids=lambda entry: entry.name)
@pytest.mark.parametrize("n", [0, 1, 2, 7, 30])
def test_every_ordering_is_a_permutation(entry, n):
    chunks = ranked(n)
    assert sorted(chunk.id for chunk in arrange(entry.name, chunks, 3)) == sorted(chunk.id for chunk in chunks)
    assert entry.help


# The table of LangChain's and Haystack's real output, by number of chunks.
@pytest.mark.parametrize(
    ("n", "langchain", "edges"),
    [
        (1, "1", "1"),
        (2, "2 1", "1 2"),
        (3, "1 3 2", "1 3 2"),
        (4, "2 4 3 1", "1 3 4 2"),
        (5, "1 3 5 4 2", "1 3 5 4 2"),
        (6, "2 4 6 5 3 1", "1 3 5 6 4 2"),
        (7, "1 3 5 7 6 4 2", "1 3 5 7 6 4 2"),
    ],
)
def test_langchain_parity_trap_and_edges(n, langchain, edges):
    assert ids("langchain", ranked(n)) == langchain
    assert ids("edges", ranked(n)) == edges


def test_reverse_puts_the_best_last():
    assert ids("reverse", ranked(4)) == "4 3 2 1"


def test_a_middle_rank_stays_in_the_middle_under_orderings_by_rank():
    chunks = ranked(16)
    edges = [chunk.id for chunk in arrange("edges", chunks)]
    reverse = [chunk.id for chunk in arrange("reverse", chunks)]
    assert edges.index("8") == 12
    assert reverse.index("8") == 8


def test_score_goes_by_the_direction_the_scores_show():
    falling = [Chunk("a", "", score=0.9), Chunk("b", "", score=0.5), Chunk("c", ""), Chunk("d", "", score=0.7)]
    assert ids("score", falling) == "a d b c"
    rising = [
        Chunk("a", "", score=0.1),
        Chunk("b", "", score=0.5),
        Chunk("c", "", score=0.9),
        Chunk("d", "", score=1.0),
    ]
    assert score_direction(rising) is ScoreDirection.DISTANCE
    assert ids("score", rising) == "a b c d"


def test_no_direction_is_guessed_from_ties_or_noise():
    assert score_direction([Chunk("a", "", score=0.5), Chunk("b", "", score=0.5)]) is None
    assert score_direction([Chunk("a", "", score=s) for s in (0.5, 0.7, 0.4, 0.8)][:4]) is None
    assert score_direction([Chunk("a", "")]) is None


def test_document_order_groups_sources_and_sorts_sections_as_numbers():
    chunks = [
        Chunk("b10", "", metadata={"source": "b.md", "section": "2.10"}),
        Chunk("a2", "", metadata={"source": "a.md", "page": 2}),
        Chunk("b9", "", metadata={"source": "b.md", "section": "2.9"}),
        Chunk("a1", "", metadata={"source": "a.md", "page": 1}),
    ]
    assert ids("document-order", chunks) == "b9 b10 a1 a2"


def test_chronological_reads_iso_dates_and_unix_seconds():
    chunks = [
        Chunk("new", "", metadata={"date": "2026-02-01"}),
        Chunk("none", ""),
        Chunk("old", "", metadata={"updated_at": "2019-05-04T10:00:00Z"}),
        Chunk("mid", "", metadata={"timestamp": 1_600_000_000}),
    ]
    assert ids("chronological", chunks) == "none old mid new"
    assert date_of(Chunk("x", "", metadata={"date": "last week"})) is None


@given(st.integers(0, 40), st.integers(0, 10**6))
def test_random_depends_on_the_seed_alone(n, seed):
    assert ids("random", ranked(n), seed) == ids("random", ranked(n), seed)


def test_an_unknown_ordering_suggests_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean edges"):
        arrange("edgs", ranked(3))


def test_a_lossy_ordering_is_refused():
    orderings.register("test-lossy", title="loses one")(lambda chunks, seed: chunks[1:])
    try:
        with pytest.raises(InputError, match="not a permutation"):
            arrange("test-lossy", ranked(3))
    finally:
        del orderings._entries["test-lossy"]
