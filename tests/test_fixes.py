"""The code that a remedy is copied as does what was tried."""

from __future__ import annotations

import ast

import pytest

from lim_core.drawing.fixes import code_for
from lim_core.orderings import arrange
from lim_core.types import Chunk

TEXTS = ["the cat sat", "sensor logs are kept 45 days", "dogs run", "logs of logs kept long", "no match here"]


def run(name: str) -> list[int]:
    code = code_for(name)[0].code.split("# texts =")[0]
    scope: dict[str, object] = {}
    exec(code, scope)  # noqa: S102 - the code that users are to run
    order = scope["arrange"]("how long are sensor logs kept", TEXTS)  # type: ignore[operator]
    return list(order)


@pytest.mark.parametrize("ordering", ["edges", "reverse"])
def test_orderings_are_the_ones_that_were_tried(ordering: str) -> None:
    chunks = [Chunk(str(place), text) for place, text in enumerate(TEXTS)]
    assert run(f"ordering:{ordering}") == [int(chunk.id) for chunk in arrange(ordering, chunks)]


def test_a_cut_keeps_the_best() -> None:
    assert run("k:3") == [0, 1, 2]


def test_bm25_ranks_the_evidence_first_and_cuts() -> None:
    assert run("rerank:bm25+k:2") == [1, 3]


def test_steps_are_chained_in_their_order() -> None:
    best_first = run("rerank:bm25")
    assert run("rerank:bm25+edges") == [*best_first[0::2], *best_first[1::2][::-1]]


@pytest.mark.parametrize("name", ["rerank:embedding", "rerank:bm25+edges", "k:5", "ordering:reverse"])
def test_every_framework_gets_code_that_parses(name: str) -> None:
    fixes = code_for(name)
    assert [fix.title for fix in fixes] == ["Plain Python", "LangChain", "LlamaIndex", "Haystack"]
    for fix in fixes:
        ast.parse(fix.code)


@pytest.mark.parametrize("name", ["", "rerank:oracle", "k:five", "ordering:edges+mystery", "__import__('os')"])
def test_an_unknown_step_gives_no_code(name: str) -> None:
    assert code_for(name) == ()
