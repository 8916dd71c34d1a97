"""Chunks found in prompts that were re-wrapped, escaped, marked up, cut and doubled."""

from __future__ import annotations

import html
import json
import random
import textwrap
import time
import unicodedata

import pytest

from lim_core.locate import locate
from lim_core.locate.canonical import canonical
from lim_core.locate.located import Found, State
from lim_core.types import Chunk, Message

TEXTS = (
    "The allotment office lends out wheelbarrows on Thursday afternoons. A deposit of 12.50 euros is due.",
    'Whoever says "mine" of a shared tool pays: 3.14 euros & a round of tea, <b>no</b> exceptions. See C:\\new\\tools.',
    "Die Gießkannen stehen im Schuppen – links, neben dem Café; Rückgabe bis 18:30 Uhr.\n\n* eine je Person\n* keine Eimer",
    "园圃管理处每周四下午出借手推车。借用超过一周者须缴纳少量费用，但道路被水淹没时除外。",
    "Seeds are swapped on the last Sunday of the month, in the big tent; bring labels, jars and patience for the queue.",
)
CHUNKS = [Chunk(f"c{i}", text, f"Leaflet {i}") for i, text in enumerate(TEXTS)]
QUESTION = "How large is the deposit for a wheelbarrow?"


def _user(text: str) -> list[Message]:
    return [Message("user", text)]


def _plain(chunks: list[Chunk] = CHUNKS) -> str:
    documents = "\n".join(f"[{i}] source: leaflet-{i}.md, page {i}\n{c.text}" for i, c in enumerate(chunks, 1))
    return f"Answer from the documents.\n\n{documents}\n\nQuestion: {QUESTION}\nAnswer:"


def _states(found: tuple[Found, ...]) -> list[str]:
    return [str(each.state) for each in found]


CHANGES = {
    "as it is": lambda text: text,
    "re-wrapped": lambda text: "\n".join(textwrap.wrap(text, 37)),
    "one line": lambda text: " ".join(text.split()),
    "double spaces": lambda text: text.replace(" ", "  "),
    "quoted lines": lambda text: "\n".join("> " + line for line in text.split("\n")),
    "JSON": json.dumps,
    "JSON in JSON": lambda text: json.dumps(json.dumps({"a": text})),
    "JSON, not ASCII": lambda text: json.dumps({"a": text}, ensure_ascii=False),
    "HTML": html.escape,
    "HTML twice": lambda text: html.escape(html.escape(text)),
    "Markdown escapes": lambda text: "".join("\\" + c if c in "*_[]()#+-.!<>" else c for c in text),
    "bold": lambda text: text.replace("wheelbarrows", "**wheelbarrows**").replace("tea", "_tea_"),
    "NFD": lambda text: unicodedata.normalize("NFD", text),
    "curly quotes": lambda text: text.replace('"', "”"),
    "lower case": str.lower,
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
    "Windows line ends": lambda text: text.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_all_chunks_are_whole_whatever_the_template_does(change: str) -> None:
    prompt = CHANGES[change](_plain())
    located = locate(CHUNKS, _user(prompt), QUESTION)
    assert _states(located.found) == ["whole"] * 5
    assert located.begins_inside is located.ends_inside is located.seam is None
    assert located.question is not None
    starts = [each.region.start for each in located.found if each.region]
    assert starts == sorted(starts)


def test_offsets_are_those_of_the_original_prompt() -> None:
    prompt = _plain()
    for each, text in zip(locate(CHUNKS, _user(prompt)).found, TEXTS, strict=True):
        assert each.region is not None
        shown = prompt[each.region.start : each.region.end]
        assert text.startswith(shown[:20])
        assert shown.rstrip(".。") in text


@pytest.mark.parametrize("cut", range(30, 480, 30))
def test_a_cut_at_the_end(cut: int) -> None:
    prompt = "\n".join(TEXTS)
    located = locate(CHUNKS, _user(prompt[:cut]), QUESTION)
    at = 0
    for each, text in zip(located.found, TEXTS, strict=True):
        kept = max(0, min(len(text), cut - at))
        at += len(text) + 1
        if kept == len(text):
            assert each.state is State.WHOLE
        elif kept > 20:
            assert each.state is State.CLIPPED
            assert located.ends_inside == each.chunk_id
            assert each.lost_tail
            assert not each.lost_head
            assert abs(each.share - kept / len(text)) < 0.1
            assert each.kept[:18] == text[:18]
        elif kept < 8:
            assert each.state is State.MISSING


def test_a_cut_at_the_start() -> None:
    prompt = _plain()
    at = prompt.index("Gießkannen")
    located = locate(CHUNKS, _user(prompt[at:]), QUESTION)
    assert _states(located.found) == ["missing", "missing", "clipped", "whole", "whole"]
    assert located.begins_inside == "c2"
    assert located.ends_inside is None
    assert located.found[2].lost_head


@pytest.mark.parametrize(
    "mark", ["", "...", " … ", "[truncated]", "\n[... 1200 characters omitted ...]\n", "<truncated>"]
)
def test_marks_of_a_cut_are_part_of_the_edge(mark: str) -> None:
    prompt = "\n".join(TEXTS)
    assert locate(CHUNKS, _user(prompt[:70] + mark), QUESTION).ends_inside == "c0"
    assert locate(CHUNKS, _user(mark + prompt[40:]), QUESTION).begins_inside == "c0"


@pytest.mark.parametrize("mark", ["", " ... ", "\n[... truncated ...]\n"])
def test_a_cut_in_the_middle_leaves_a_seam(mark: str) -> None:
    prompt = _plain()
    first, second = prompt.index("deposit of"), prompt.index("Sunday of")
    located = locate(CHUNKS, _user(prompt[:first] + mark + prompt[second:]), QUESTION)
    assert located.seam == ("c0", "c4")
    assert _states(located.found) == ["clipped", "missing", "missing", "missing", "clipped"]
    assert located.begins_inside is located.ends_inside is None


def test_every_chunk_trimmed_by_the_assembler_is_clipped() -> None:
    about = "about tools and their care. " * 3
    chunks = [Chunk(f"c{i}", f"Leaflet {i} of the garden office, {about}" + f"{i}" * 40) for i in range(20)]
    prompt = "\n".join(f"[{i}] {c.text[:60]}..." for i, c in enumerate(chunks)) + f"\n\nQuestion: {QUESTION}"
    located = locate(chunks, _user(prompt), QUESTION)
    assert set(_states(located.found)) == {"clipped"}
    assert all(0.2 < each.share < 0.5 for each in located.found)
    assert located.ends_inside is None


def test_a_cut_inside_an_escape_or_a_question() -> None:
    prompt = json.dumps("\n".join(TEXTS))
    at = prompt.index("\\u501f\\u7528")
    assert locate(CHUNKS, _user(prompt[: at + 10]), QUESTION).ends_inside == "c3"
    broken = _plain()[: -len("\nAnswer:") - 12]
    located = locate(CHUNKS, _user(broken), QUESTION)
    assert located.question is None
    assert located.ends_in_question


def test_near_duplicates_are_told_apart() -> None:
    base = "A stall at the spring market costs {} euros a day, cleaning included, and must be paid for in advance at counter 4."
    chunks = [Chunk(f"f{fee}", base.format(fee)) for fee in (40, 45, 4.5)]
    located = locate(chunks, _user("Documents:\n" + chunks[1].text + "\n\nQuestion: ..."))
    assert _states(located.found) == ["missing", "whole", "missing"]


def test_decimal_points_count() -> None:
    chunks = [Chunk("a", "The toll is 3.14 crowns."), Chunk("b", "The toll is 314 crowns.")]
    assert _states(locate(chunks, _user("x The toll is 314 crowns. y")).found) == ["missing", "whole"]


def test_an_edited_value_is_no_whole_chunk() -> None:
    chunk = Chunk(
        "a", "The deposit for a wheelbarrow is 12.50 euros and is given back when the barrow is returned clean."
    )
    found = locate([chunk], _user("Doc: " + chunk.text.replace("12.50", "99.00") + " End.")).found[0]
    assert found.state is State.CLIPPED
    assert "12.50" not in found.kept
    assert found.share > 0.8


def test_changed_punctuation_is_whole() -> None:
    chunk = Chunk("a", "Opening hours (summer): Monday, Tuesday; closed on public holidays!")
    prompt = "Opening hours [summer] - Monday, Tuesday, closed on public holidays. Thanks."
    assert locate([chunk], _user(prompt)).found[0].state is State.WHOLE


def test_a_chunk_inside_a_longer_one() -> None:
    long, short = TEXTS[0], TEXTS[0][: TEXTS[0].index(" A deposit")]
    chunks = [Chunk("short", short), Chunk("long", long)]
    assert _states(locate(chunks, _user(f"1 {long}")).found) == ["whole", "whole"]
    assert _states(locate(chunks, _user(f"1 {long} 2 {short}")).found) == ["whole", "whole"]
    assert _states(locate(chunks, _user(f"1 {long} 2 {short} 3 {short}")).found) == ["doubled", "whole"]
    assert _states(locate(chunks, _user(f"2 {short}")).found) == ["whole", "missing"]


def test_doubled_and_identical_chunks() -> None:
    chunks = [Chunk("a", TEXTS[0]), Chunk("b", TEXTS[0]), Chunk("c", TEXTS[4])]
    prompt = f"{TEXTS[0]}\n{TEXTS[0]}\n{TEXTS[4]}\n{TEXTS[4]}"
    located = locate(chunks, _user(prompt))
    assert _states(located.found) == ["whole", "whole", "doubled"]
    assert located.found[0].region != located.found[1].region
    assert len(located.found[2].copies) == 2
    assert _states(locate(chunks, _user(TEXTS[0])).found) == ["whole", "whole", "missing"]


def test_boilerplate_does_not_stand_for_a_chunk() -> None:
    head = "Municipal gardens, leaflet for tenants, edition of spring. "
    chunks = [Chunk(f"c{i}", head + text) for i, text in enumerate(TEXTS)]
    prompt = "\n".join(c.text for c in chunks if c.id != "c3")
    assert _states(locate(chunks, _user(prompt)).found) == ["whole", "whole", "whole", "missing", "whole"]


def test_tiny_chunks_need_a_word_of_their_own() -> None:
    chunks = [Chunk("a", "12"), Chunk("b", "Yes."), Chunk("c", "四")]
    assert _states(locate(chunks, _user("112 euros, Yes.men, 周四")).found) == ["missing", "whole", "whole"]
    assert _states(locate(chunks, _user("It is 12.")).found) == ["whole", "missing", "missing"]


def test_empty_and_odd_chunks() -> None:
    chunks = [Chunk("a", ""), Chunk("b", " \n"), Chunk("c", "***"), Chunk("d", "\ud800"), Chunk("e", TEXTS[0])]
    assert _states(locate(chunks, _user(f"*** {TEXTS[0]}")).found)[:3] == ["whole", "whole", "whole"]
    assert locate(chunks, _user("")).found[2].state is State.MISSING
    assert locate(chunks, ()).found[4].state is State.MISSING
    assert locate([], _user("x")).found == ()


def test_several_messages() -> None:
    messages = [Message("system", f"Rules. {TEXTS[4]}"), Message("user", TEXTS[0]), Message("user", QUESTION)]
    located = locate(CHUNKS, messages, QUESTION)
    assert _states(located.found) == ["whole", "missing", "missing", "missing", "whole"]
    assert located.found[0].region is not None
    assert located.found[0].region.message == 1
    assert located.found[4].region is not None
    assert located.found[4].region.message == 0
    assert located.question is not None
    assert located.question.message == 2


def test_a_chunk_split_over_two_messages_is_whole() -> None:
    messages = [Message("user", TEXTS[0][:50]), Message("user", TEXTS[0][50:])]
    assert locate(CHUNKS[:1], messages).found[0].state is State.WHOLE


def test_a_question_is_found_without_its_mark() -> None:
    assert locate((), _user("Q: " + QUESTION.rstrip("?") + "\nA:"), QUESTION).question is not None
    assert locate((), _user("Q: something else"), QUESTION).question is None


def test_the_reduction_keeps_places() -> None:
    side = canonical('a\\u00e9 "b" &amp; c')
    assert side.text == "aeb&c"
    assert [side.start(i) for i in range(5)] == [0, 6, 9, 16, 18]


WORDS = ["".join(random.Random(n).choices("abcdefghijklmnopqrstuvwxyz", k=3 + n % 7)) for n in range(3000)]


def _random_chunks(number: int, words: int) -> list[Chunk]:
    dice = random.Random(5)
    return [Chunk(f"c{i}", " ".join(dice.choices(WORDS, k=words)) + f" {i}.") for i in range(number)]


def _seconds(chunks: list[Chunk], prompt: str) -> float:
    started = time.perf_counter()
    locate(chunks, _user(prompt), QUESTION)
    return time.perf_counter() - started


def test_five_thousand_chunks_in_seconds() -> None:
    chunks = _random_chunks(5000, 60)
    prompt = "\n".join(chunk.text for chunk in chunks)
    assert _seconds(chunks, prompt) < 10
    assert _seconds(chunks, prompt[: len(prompt) // 2]) < 10


def test_a_long_chunk() -> None:
    chunk = Chunk("long", "The gate is green. " * 9000 + "The deposit is 12.50 euros. " + "The gate is red. " * 3000)
    found = locate([chunk], _user("Doc: " + chunk.text + " End")).found[0]
    assert found.state is State.WHOLE
    assert _seconds([chunk], chunk.text[:100_000]) < 3


@pytest.mark.parametrize("unit", ["a", "ab ", "0", "\\n", "&amp;", "<b>"])
def test_repetitive_text_is_not_quadratic(unit: str) -> None:
    chunks = [Chunk(str(i), unit * 20_000 + str(i)) for i in range(10)]
    assert _seconds(chunks, unit * 60_000) < 8


@pytest.mark.parametrize("unit", [" ", ".", "...", "[", "(...", "<a", "&", "\\"])
def test_marks_of_a_cut_are_looked_for_in_linear_time(unit: str) -> None:
    prompt = unit * 50_000 + TEXTS[0] + unit * 50_000 + "x" + unit * 50_000
    assert locate(CHUNKS, _user(prompt), QUESTION).found[0].state is State.WHOLE
    assert _seconds(CHUNKS, prompt) < 5
