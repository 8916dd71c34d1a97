"""Rerankers on words alone and, with the packaged model, on meaning."""

from __future__ import annotations

import os

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"

from lim_core.embeddings import open_embedder
from lim_core.errors import ConfigError
from lim_core.rerankers import bm25_scores, passages_of, rerankers
from lim_core.text.terms import tokenise
from lim_core.types import Chunk, Embedder


def _closed() -> Embedder:
    raise AssertionError("bm25 opened the embedder")


def _chunks(*texts: str) -> list[Chunk]:
    return [Chunk(f"c{i}", text) for i, text in enumerate(texts)]


def test_bm25_puts_the_words_asked_for_first() -> None:
    chunks = _chunks("Bins are emptied on Mondays.", "The ferry leaves at noon.", "A ferry ticket costs 7 euros.")
    assert list(rerankers["bm25"].part("What does a ferry ticket cost?", chunks, _closed)) == [2, 1, 0]


def test_bm25_ties_keep_their_order() -> None:
    chunks = _chunks("same words here", "other", "same words here", "same words here")
    assert list(rerankers["bm25"].part("same words", chunks, _closed)) == [0, 2, 3, 1]


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("", ["a", "b"]),
        ("nothing shared", ["alpha", "beta"]),
        ("ferry", []),
        ("ferry", ["ferry"]),
        ("ferry", [""]),
        ("ferry", ["", "", ""]),
        ("?!", ["...", "--"]),
    ],
)
def test_bm25_copes_with_little(question: str, texts: list[str]) -> None:
    assert list(rerankers["bm25"].part(question, _chunks(*texts), _closed)) == list(range(len(texts)))


def test_bm25_reads_titles() -> None:
    chunks = [Chunk("a", "It costs 7 euros."), Chunk("b", "It costs 9 euros.", title="Ferry ticket")]
    assert rerankers["bm25"].part("ferry ticket", chunks, _closed)[0] == 1


def test_bm25_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    bm25_scores("ferry", ["a ferry"] * 50)
    assert capfd.readouterr() == ("", "")


def test_words_of_many_scripts() -> None:
    assert tokenise("Café CAFÉ cafe\u0301 3.14") == ["cafe", "cafe", "cafe", "3.14"]
    assert tokenise("街头集市") == ["街头", "头集", "集市"]
    assert tokenise("共12天") == ["共", "12", "天"]
    assert tokenise("يوم الخميس") == ["يوم", "الخميس"]


def test_chinese_is_found_by_pairs() -> None:
    chunks = _chunks("图书馆周一闭馆。", "停车证费用为三十元。", "街头集市许可费用为四十五元。")
    assert rerankers["bm25"].part("街头集市的许可费用是多少？", chunks, _closed)[0] == 2


def test_passages_keep_all_words() -> None:
    text = " ".join(f"word{i}" for i in range(1000))
    passages = passages_of(text)
    assert " ".join(passages).split() == text.split()
    assert max(map(len, passages)) <= 900
    assert passages_of(" \n ") == []
    assert passages_of("x" * 2000) == ["x" * 900, "x" * 900, "x" * 200]
    assert len(passages_of("x" * 900 * 500)) == 64


def test_embedding_finds_other_words() -> None:
    chunks = _chunks(
        "Bins are emptied on Mondays.",
        "The boat across the river departs at midday.",
        "The library lends maps.",
        "",
    )
    order = list(rerankers["embedding"].part("When does the ferry leave?", chunks, open_embedder))
    assert order[0] == 1
    assert order[-1] == 3
    assert sorted(order) == [0, 1, 2, 3]
    assert order == list(rerankers["embedding"].part("When does the ferry leave?", chunks, open_embedder))


def test_embedding_finds_a_fact_deep_in_a_long_chunk() -> None:
    filler = "The committee discussed the colour of the benches at length. " * 60
    chunks = _chunks(filler * 2, filler + "The boat across the river departs at midday. " + filler)
    assert rerankers["embedding"].part("When does the ferry leave?", chunks, open_embedder)[0] == 1


def test_a_single_chunk_needs_no_model() -> None:
    assert list(rerankers["embedding"].part("q", _chunks("a"), _closed)) == [0]


def test_vectors_are_unit_and_long_texts_are_pooled() -> None:
    embedder = open_embedder()
    vectors = embedder(["short", "", "ferry " * 3000, "x" * 200_000])
    assert vectors.shape == (4, 384)
    assert (abs((vectors**2).sum(axis=1) - 1) < 1e-3).all()
    assert embedder([]).shape == (0, 384)
    # What stands beyond the 256 tokens that the model reads still counts.
    start, changed = embedder(["ferry " * 400, "ferry " * 300 + "volcano eruption lava " * 300])
    assert float(start @ changed) < 0.9


def test_embedders_are_opened_once_and_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    assert open_embedder() is open_embedder()
    assert capfd.readouterr() == ("", "")


def test_a_folder_without_a_model_is_refused(tmp_path: object) -> None:
    with pytest.raises(ConfigError, match="folder that holds"):
        open_embedder(str(tmp_path))
