"""Counters against the real OpenAI tables; the estimate's band against four kinds of text in many scripts."""

from __future__ import annotations

import heapq
import inspect
import time
from collections.abc import Sequence

import pytest

from lim_core.tokens import (
    EstimateCounter,
    Observed,
    OpenAICounter,
    Place,
    calibrated,
    counter_for,
    token_offsets,
    token_spans,
)
from lim_core.types import Message, Prompt, Span, TokenCount

TEXTS = {
    "english": "The allotment office lends out wheelbarrows on Thursday afternoons. Whoever keeps one longer than a week "
    "pays a small charge, unless the path to the sheds was flooded. Seeds are swapped on the last Sunday of the month.",
    "german": "Die Kleingartenverwaltung verleiht donnerstags nachmittags Schubkarren. Wer eine Karre länger als eine Woche "
    "behält, zahlt eine Säumnisgebühr, sofern der Zugangsweg nicht überschwemmt war.",
    "french": "Le bureau des jardins prête des brouettes le jeudi après-midi. Celui qui garde une brouette plus d'une semaine "
    "paie une petite somme, sauf si le chemin était inondé.",
    "russian": "Садовое управление выдаёт тачки по четвергам во второй половине дня. Кто держит тачку дольше недели, платит "
    "небольшой сбор, если дорога к сараям не была затоплена.",
    "arabic": "يعير مكتب الحدائق عربات اليد بعد ظهر كل يوم خميس. "
    "ومن يحتفظ بعربة أكثر من أسبوع يدفع رسما صغيرا، ما لم يكن الطريق مغمورا.",
    "chinese": "园圃管理处每周四下午出借手推车。借用超过一周者须缴纳少量费用，但通往工具房的道路被水淹没时除外。",
    "japanese": "菜園事務所では木曜日の午後に手押し車を貸し出しています。一週間を超えて借りる場合は料金がかかります。",
    "korean": "텃밭 사무소는 목요일 오후에 손수레를 빌려 줍니다. 일주일이 넘으면 소액의 요금을 냅니다.",
    "numbers": "2025-01-07 14:30 3,481.20 -17.5% 0049 351 555 0142; 12 19 23 31 47; lot 77120394; 6/8; 1.0e-3",
    "code": inspect.getsource(heapq)[2000:5000],
    "json": '[{"id": "k-3", "score": 0.812, "metadata": {"page": 7, "path": "garden/tools.md"}, "text": "Barrow: 2 days."}]',
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base", "voyage3_base"])
def test_the_band_holds_the_true_count(name: str, encoding: str) -> None:
    truth = OpenAICounter(encoding).count(TEXTS[name]).n
    estimate = EstimateCounter().count(TEXTS[name])
    assert estimate.low <= truth <= estimate.high, estimate
    assert estimate.low <= estimate.n <= estimate.high
    assert not estimate.exact


def test_the_band_says_something() -> None:
    """English prose is estimated to within some 60%, so that a prompt cut to half its length is noticed."""
    estimate = EstimateCounter().count(TEXTS["english"] * 20)
    assert estimate.high < 1.6 * estimate.low


def test_known_counts() -> None:
    """Counts published with the tables: "hello world" is two tokens in both."""
    assert counter_for("gpt-4o").count("hello world") == TokenCount(2, 2, 2, "bpe-openai:o200k_base")
    assert counter_for("gpt-4").count("hello world") == TokenCount(2, 2, 2, "bpe-openai:cl100k_base")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("gpt-4o", "bpe-openai:o200k_base"),
        ("gpt-4o-mini-2024-07-18", "bpe-openai:o200k_base"),
        ("openai/gpt-4.1-mini", "bpe-openai:o200k_base"),
        ("ft:gpt-4o-mini:shop::abc", "bpe-openai:o200k_base"),
        ("o3-mini", "bpe-openai:o200k_base"),
        ("gpt-5.1", "bpe-openai:o200k_base"),
        ("gpt-oss-20b", "bpe-openai:o200k_base"),
        ("gpt-4-turbo", "bpe-openai:cl100k_base"),
        ("gpt-35-turbo", "bpe-openai:cl100k_base"),
        ("gpt-4orca", "estimate"),
        ("llama3.1:8b", "estimate"),
        ("embedded", "estimate"),
        ("", "estimate"),
        (None, "estimate"),
    ],
)
def test_counter_by_model_name(name: str | None, source: str) -> None:
    assert counter_for(name).source == source


def test_a_chat_costs_more_than_its_text() -> None:
    """OpenAI's cookbook: three tokens a message and its role, three for the reply."""
    counter = counter_for("gpt-4o")
    count = counter.count_messages([Message("system", "hello world"), Message("user", "hello world")])
    assert count.n == 4 + 2 * 4 + 3
    assert count.low == 4
    assert count.high > count.n


@pytest.mark.parametrize("text", ["", " ", "\ud800", "a" * 1_200_000, "\0", "😀" * 10])
@pytest.mark.parametrize("name", ["gpt-4o", None])
def test_odd_texts_are_counted(text: str, name: str | None) -> None:
    count = counter_for(name).count(text)
    assert 0 <= count.low <= count.n <= count.high
    assert (count.n == 0) == (text == "")


def test_calibration_narrows_the_band() -> None:
    counter = EstimateCounter()
    seen = [(Message("user", TEXTS["english"] * k),) for k in (1, 2, 3, 4, 5)]
    truth = OpenAICounter("o200k_base")
    better = calibrated(counter, [Observed(messages, truth.count_messages(messages).n) for messages in seen])
    prompt = (Message("user", TEXTS["english"] * 9),)
    before, after, true = (c.count_messages(prompt) for c in (counter, better, truth))
    assert after.low <= true.n <= after.high
    assert after.high - after.low < before.high - before.low


def test_calibration_does_not_learn_from_a_cut() -> None:
    """Neither from the prompt under test nor from a report that is itself too small."""
    counter = EstimateCounter()
    tested = (Message("user", TEXTS["english"] * 30),)
    assert calibrated(counter, [Observed(tested, 1200)], under_test=tested) is counter
    other = (Message("user", TEXTS["english"] * 29),)
    assert calibrated(counter, [Observed(other, counter.count_messages(other).low // 2)]) is counter


def test_an_exact_counter_is_not_calibrated() -> None:
    counter = counter_for("gpt-4o")
    assert calibrated(counter, [Observed((Message("user", "x " * 500),), 900)]) is counter


class _Server:
    """A server's tokenizer: exact, and every count is a request."""

    source = "server"

    def __init__(self) -> None:
        self.requests = 0
        self.inner = OpenAICounter("o200k_base")

    def count(self, text: str) -> TokenCount:
        self.requests += 1
        return self.inner.count(text)

    def count_messages(self, messages: Sequence[Message]) -> TokenCount:
        self.requests += 1
        return self.inner.count_messages(messages)


def _laid_out(chunks: int) -> Prompt:
    parts, spans, at = ["Use these documents.\n\n"], [], 22
    for number in range(chunks):
        text = TEXTS["english"] if number % 2 else TEXTS["numbers"]
        label = f"[{number}] "
        spans.append(Span(f"c{number}", 0, at + len(label), at + len(label) + len(text)))
        parts += [label, text, "\n"]
        at += len(label) + len(text) + 1
    return Prompt((Message("user", "".join(parts)),), tuple(spans))


def test_spans_agree_with_counting_each_beginning() -> None:
    prompt, counter = _laid_out(12), counter_for("gpt-4o")
    spans = token_spans(prompt, counter)
    for span, tokens in zip(prompt.spans, spans, strict=True):
        true = counter.count(prompt.messages[0].content[: span.start]).n
        assert abs(tokens.start - true) <= 12 + 4
        assert tokens.total == counter.count_messages(prompt.messages).n
    assert [s.start for s in spans] == sorted(s.start for s in spans)


def test_spans_cost_one_request() -> None:
    server = _Server()
    spans = token_spans(_laid_out(60), server)
    assert server.requests == 1
    assert len(spans) == 60
    exact = token_spans(_laid_out(60), OpenAICounter("o200k_base"))
    assert abs(spans[30].start - exact[30].start) < 0.05 * exact[30].total


def test_five_thousand_spans_are_quick() -> None:
    prompt = _laid_out(5000)
    started = time.perf_counter()
    token_spans(prompt, EstimateCounter())
    assert time.perf_counter() - started < 3


def test_offsets_over_several_messages() -> None:
    messages = (Message("system", "hello world"), Message("user", "hello world"), Message("user", ""))
    offsets = token_offsets(messages, [Place(1, 0), Place(1, 11), Place(0, 0), Place(2, 99)], counter_for("gpt-4o"))
    assert offsets.total.n == 4 + 3 * 4 + 3
    assert offsets.before[2] < offsets.before[0] < offsets.before[1] <= offsets.before[3] <= offsets.total.n


def test_offsets_of_nothing() -> None:
    assert token_offsets((), [], EstimateCounter()).before == ()
