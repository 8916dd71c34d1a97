"""Reading, checking and writing case files."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lim_core.cases import (
    MAX_BYTES,
    LoadedCase,
    case_from_json,
    case_to_json,
    check_ready,
    read_case,
    read_suite,
)
from lim_core.errors import InputError
from lim_core.types import Case, Chunk, Message, ScoreDirection, Usage

SMALL: dict[str, Any] = {"question": "How long?", "chunks": [{"id": "c1", "text": "12 days"}]}
FULL: dict[str, Any] = {
    "id": "case-7",
    "question": "How long is it kept?",
    "answers": ["12 days", "12 Tage"],
    "chunks": [
        {
            "id": "c1",
            "text": "Kept 12 days.",
            "title": "Rules",
            "score": 0.8,
            "metadata": {"page": 3, "path": ["a", None]},
        },
        {"id": "c2", "text": "Nothing.", "score": -1},
    ],
    "gold_ids": ["c1"],
    "candidates": [{"id": "c1", "text": "Kept 12 days."}],
    "corpus": [],
    "score_direction": "distance",
    "prompt": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Kept 12 days. How long?"}],
    "answer": "",
    "usage": {"prompt_tokens": 20, "completion_tokens": 0},
    "finish_reason": "stop",
    "params": {"temperature": 0, "stop": ["\n"]},
    "context_window": 8192,
    "max_output_tokens": 256,
    "model": "m-1",
    "forbidden_ids": ["c2"],
    "answerable": True,
    "tags": ["rules"],
    "harmless_ids": ["c2"],
}


def load(value: object, name: str = "case.json") -> LoadedCase:
    return read_case(json.dumps(value).encode(), name)


def with_(**fields: object) -> dict[str, Any]:
    return SMALL | fields


def refused(value: object) -> str:
    with pytest.raises(InputError) as caught:
        load(value)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith((".", "?"))
    return message


def test_every_field_arrives_and_goes_back() -> None:
    loaded = load(FULL)
    assert loaded.warnings == ()
    case = loaded.case
    assert case == Case(
        id="case-7",
        question="How long is it kept?",
        chunks=(
            Chunk("c1", "Kept 12 days.", "Rules", 0.8, {"page": 3, "path": ["a", None]}),
            Chunk("c2", "Nothing.", "", -1.0),
        ),
        answers=("12 days", "12 Tage"),
        gold_ids=("c1",),
        candidates=(Chunk("c1", "Kept 12 days."),),
        corpus=(),
        score_direction=ScoreDirection.DISTANCE,
        prompt=(Message("system", "Be brief."), Message("user", "Kept 12 days. How long?")),
        answer="",
        usage=Usage(20, 0),
        finish_reason="stop",
        params={"temperature": 0, "stop": ["\n"]},
        context_window=8192,
        max_output_tokens=256,
        model="m-1",
        forbidden_ids=("c2",),
        answerable=True,
        tags=("rules",),
        harmless_ids=("c2",),
    )
    assert case_to_json(case) == FULL
    assert case_from_json(case_to_json(case)).case == case


def test_null_is_absent() -> None:
    nothing = {key: None for key in FULL if key not in ("question", "chunks")}
    assert load(with_(**nothing)) == load(SMALL)
    chunk = {"id": None, "text": "12 days", "title": None, "score": None, "metadata": None}
    assert load(with_(chunks=[chunk])) == load(SMALL)


def test_empty_lists_are_not_absent_ones() -> None:
    case = load(with_(chunks=[], candidates=[], corpus=None)).case
    assert case.chunks == ()
    assert case.candidates == ()
    assert case.corpus is None
    assert case_from_json(case_to_json(case)).case == case


@pytest.mark.parametrize(
    ("name", "expected"),
    [("complaints/fee.json", "fee"), ("-", "case"), ("the pasted text", "case"), ("b\x1bad.json", "bad")],
)
def test_a_case_without_id_is_named_after_its_file(name: str, expected: str) -> None:
    assert load(SMALL, name).case.id == expected
    assert load(with_(id="  "), name).case.id == expected


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"question": 5}, "question must be a text, not a number"),
        ({"question": ["x"]}, "question must be a text, not a list"),
        ({"question": "  \u200b\n"}, "The question is empty"),
        ({"question": ""}, "The question is empty"),
        ({"answers": "12"}, "answers must be a list, not a text: put it in square brackets"),
        ({"answers": ["a", 12]}, "answers[1] must be a text, not a number: put it in quotes"),
        ({"answers": [None]}, "answers[0] must be a text, not null"),
        ({"answers": [True]}, "answers[0] must be a text, not true or false"),
        ({"chunks": {"c1": "x"}}, "chunks must be a list, not an object"),
        ({"chunks": [[]]}, "chunks[0] must be an object with id and text, or a text, not a list"),
        ({"chunks": ["a", 3]}, "chunks[1] must be an object with id and text, or a text, not a number"),
        ({"chunks": [{"id": "c1"}]}, "chunks[0].text is missing"),
        ({"chunks": [{"page_content": "x"}]}, 'chunks[0].text is missing; did you mean it by "page_content"?'),
        ({"chunks": [{"text": 1}]}, "chunks[0].text must be a text, not a number"),
        ({"chunks": [{"text": "x", "id": True}]}, "chunks[0].id must be an id in quotes, not true or false"),
        ({"chunks": [{"text": "x", "id": ["a"]}]}, "chunks[0].id must be an id in quotes, not a list"),
        ({"chunks": ["a", {"text": "x", "score": "0.5"}]}, "chunks[1].score must be a number, not a text"),
        ({"chunks": [{"text": "x", "score": True}]}, "chunks[0].score must be a number, not true or false"),
        ({"chunks": [{"text": "x", "title": 4}]}, "chunks[0].title must be a text"),
        ({"chunks": [{"text": "x", "metadata": []}]}, "chunks[0].metadata must be an object"),
        ({"candidates": "x"}, "candidates must be a list"),
        ({"corpus": [{"text": None}]}, "corpus[0].text is missing"),
        ({"gold_ids": "c1"}, "gold_ids must be a list"),
        ({"gold_ids": [None]}, "gold_ids[0] must be an id in quotes, not null"),
        ({"gold_ids": [False]}, "gold_ids[0] must be an id in quotes, not true or false"),
        ({"score_direction": "up"}, 'score_direction must be "similarity", "distance" or null, not "up"'),
        ({"prompt": 3}, "prompt must be a text or a list of messages, not a number"),
        ({"prompt": ["x"]}, "prompt[0] must be an object with role and content, not a text"),
        ({"prompt": [{"content": "x"}]}, "prompt[0].role is missing"),
        ({"prompt": [{"role": "user", "content": 5}]}, "prompt[0].content must be a text"),
        ({"prompt": [{"role": "user", "content": [5]}]}, "prompt[0].content[0] must be an object"),
        ({"answer": ["x"]}, "answer must be a text, not a list"),
        ({"usage": 12}, "usage must be an object with prompt_tokens, not a number"),
        ({"usage": {"prompt_tokens": -1}}, "usage.prompt_tokens must be at least 0"),
        ({"usage": {"prompt_tokens": "12"}}, "usage.prompt_tokens must be a whole number, not a text"),
        ({"usage": {"prompt_tokens": True}}, "usage.prompt_tokens must be a whole number, not true or false"),
        ({"context_window": 0}, "context_window must be at least 1"),
        ({"context_window": 8192.5}, "context_window must be a whole number, not 8192.5"),
        ({"context_window": 10**400}, "context_window must be far smaller"),
        ({"context_window": math.nan}, "context_window must be a whole number, not nan"),
        ({"max_output_tokens": "256"}, "max_output_tokens must be a whole number, not a text"),
        ({"model": 4}, "model must be a text"),
        ({"params": []}, "params must be an object"),
        ({"answerable": "yes"}, "answerable must be true, false or null, not a text"),
        ({"answerable": 1}, "answerable must be true, false or null, not a number"),
        ({"tags": [1]}, "tags[0] must be a text"),
        ({"id": {}}, "id must be an id in quotes, not an object"),
    ],
)
def test_a_wrong_field_is_named_with_its_index(fields: dict[str, Any], says: str) -> None:
    assert refused(with_(**fields)).startswith(f"case.json: {says}")


def test_missing_keys() -> None:
    assert refused({"chunks": []}) == "case.json: The key question is missing."
    assert refused({"question": "x"}) == "case.json: The key chunks is missing (an empty list is fine)."
    assert refused({"question": "x", "chunks": None}) == "case.json: The key chunks is missing (an empty list is fine)."
    assert 'did you mean it by "query"?' in refused({"query": "x", "chunks": []})
    assert 'did you mean it by "ctxs"?' in refused({"question": "x", "ctxs": []})


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b"question: x", "is not JSON (Expecting value at line 1, column 1)"),
        (b'{"question": "x",\n "chunks": [}', "is not JSON (Expecting value at line 2, column 13)"),
        (b'{"question": "x"', "is not JSON"),
        (b"\xff\xff\xff", "is not text in UTF-8 or UTF-16"),
        (b'"x"', "is a text, not a case"),
        (b"null", "is null, not a case"),
        (b"12", "is a number, not a case"),
        (b"[]", "holds no case"),
        (b"[1]", "entry 1, is a number, not a case"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"question": "x", "chunks": [], "context_window": ' + b"9" * 5000 + b"}", "too many digits"),
        (b'{"question": "x", "chunks": [], "params": ' + b"[" * 300 + b"]" * 300 + b"}", "params must be an object"),
        (b'{"question": "x", "chunks": [], "params": {"a":' + b"[" * 300 + b"]" * 300 + b"}}", "nested deeper than 64"),
        (b'{"question": "x"}\n{"question": ', "is not JSON lines"),
    ],
)
def test_what_is_no_case_is_refused_in_one_sentence(data: bytes, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_case(data, "case.json")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_several_cases_are_refused_where_one_is_wanted() -> None:
    line = json.dumps(SMALL)
    for data in (f"{line}\n{line}\n\n", f"[{line},{line}]"):
        with pytest.raises(InputError, match="holds 2 cases, and one is wanted here"):
            read_case(data.encode(), "suite.jsonl")
    assert read_case(f"[{line}]".encode(), "case.json").case == load(SMALL).case
    assert read_case(f"\n{line}\n".encode(), "case.json").case == load(SMALL).case


def test_size_limit() -> None:
    room = MAX_BYTES - len(json.dumps(with_(answer="")))
    assert len(load(with_(answer="x" * room)).case.answer or "") == room
    with pytest.raises(InputError, match="larger than 20 MB"):
        load(with_(answer="x" * (room + 1)))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_encodings(encoding: str) -> None:
    value = with_(question="Wie lange? 何日? 😀")
    data = json.dumps(value, ensure_ascii=False).encode(encoding)
    assert read_case(data, "case.json").case.question == value["question"]


def test_duplicate_ids_are_refused_and_named() -> None:
    chunks = [{"id": one, "text": "x"} for one in ("a", "b", "a", "c", "b")]
    assert '"a", "b"' in refused(with_(chunks=chunks))
    assert 'corpus has several entries with the id "a"' in refused(with_(corpus=chunks[:3]))
    # The number 1 and the text "1" are one id once read.
    assert '"1"' in refused(with_(chunks=[{"id": 1, "text": "x"}, {"id": "1", "text": "y"}]))
    # One id in two lists is the same chunk, not a double.
    both = with_(candidates=SMALL["chunks"])
    assert load(both).warnings == ()
    both["candidates"] = [{"id": "c1", "text": "other"}]
    assert load(both).warnings == ('candidates "c1" has another text than the chunk of that id.',)


def test_bare_strings_and_missing_ids_get_ids() -> None:
    case = load(with_(chunks=["a", {"text": "b"}, {"id": "c1", "text": "c"}, "a"])).case
    assert [chunk.id for chunk in case.chunks] == ["c1-2", "c2", "c1", "c4"]
    # The same text in another list is the same chunk; another text never takes its id.
    case = load(with_(chunks=["a", "b"], candidates=["z", "b", "a"], corpus=["z", "b", "q"])).case
    assert [chunk.id for chunk in case.chunks] == ["c1", "c2"]
    assert [chunk.id for chunk in case.candidates or ()] == ["c1-2", "c2", "c1"]
    assert [chunk.id for chunk in case.corpus or ()] == ["c1-2", "c2", "c3"]


def test_oddities_are_warnings() -> None:
    loaded = load(with_(chunks=[{"id": 7, "text": "x"}, {"id": 8.0, "text": "y"}], gold_ids=[7, "7", "nine"], id=3))
    assert [chunk.id for chunk in loaded.case.chunks] == ["7", "8"]
    assert loaded.case.gold_ids == ("7", "nine")
    assert loaded.case.id == "3"
    assert loaded.warnings == (
        "chunks[0].id and 3 more: is a number and is read as text.",
        'gold_ids names "nine", which is in none of chunks, candidates and corpus.',
    )
    loaded = load(with_(chunks=[{"id": " ", "text": "x"}]))
    assert loaded.case.chunks[0].id == "c1"
    assert loaded.warnings == ("chunks[0].id is an empty id and is taken as absent.",)


def test_nan_is_unknown_with_a_warning() -> None:
    first = b'{"text": "a", "score": NaN, "metadata": {"s": -Infinity}}'
    data = b'{"question": "x", "chunks": [' + first + b', {"text": "b", "score": 1e999}]}'
    loaded = read_case(data, "case.json")
    assert [chunk.score for chunk in loaded.case.chunks] == [None, None]
    assert loaded.case.chunks[0].metadata == {"s": None}
    assert loaded.warnings == ("chunks[0].score and 2 more: is not a finite number and is taken as unknown (null).",)
    json.dumps(case_to_json(loaded.case), allow_nan=False)


def test_unknown_keys_are_warned_of_with_a_suggestion() -> None:
    loaded = load(with_(answerss=["x"], gold=["c1"], zebra=1))
    assert loaded.warnings == (
        'The case has the unknown key "answerss", ignored in the case; did you mean answers?',
        'The case has the unknown key "gold", ignored in the case; did you mean gold_ids?',
        'The case has the unknown key "zebra", ignored in the case.',
    )
    many = [{"text": "x", "similarity": 0.5} for _ in range(3)]
    assert load(with_(chunks=many)).warnings == (
        'chunks[0] and 2 more: has the unknown key "similarity", ignored in chunks; did you mean score?',
    )
    assert len(load(SMALL | {f"k{i}": 1 for i in range(5000)}).warnings) == 21


def test_a_key_given_twice_is_warned_of() -> None:
    loaded = read_case(b'{"question": "a", "question": "b", "chunks": []}', "case.json")
    assert loaded.case.question == "b"
    assert loaded.warnings == ('The file has the key "question" twice in one object, and the last one counts.',)


def test_lone_surrogates_are_replaced() -> None:
    data = rb'{"question": "a \ud800 b \ud83d\ude00", "chunks": [{"text": "\udfff", "metadata": {"\ud800": "\ud800"}}]}'
    loaded = read_case(data, "case.json")
    assert loaded.case.question == "a \ufffd b 😀"
    assert loaded.case.chunks[0].text == "\ufffd"
    assert loaded.case.chunks[0].metadata == {"\ufffd": "\ufffd"}
    assert len(loaded.warnings) == 1
    json.dumps(case_to_json(loaded.case), ensure_ascii=False).encode()


def test_prompt_shapes() -> None:
    assert load(with_(prompt="all of it")).case.prompt == (Message("user", "all of it"),)
    parts = [
        {"type": "text", "text": "one"},
        {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}},
        "two",
        {"type": "input_text", "text": "three"},
    ]
    loaded = load(
        with_(prompt=[{"role": "user", "content": parts, "name": "n"}, {"role": "assistant", "content": None}])
    )
    assert loaded.case.prompt == (Message("user", "one\ntwo\nthree"), Message("assistant", ""))
    assert loaded.warnings == ("prompt[0].content[1] is no text and is left out.",)
    for empty in ("", "  ", [], [{"role": "user", "content": ""}]):
        loaded = load(with_(prompt=empty))
        assert loaded.case.prompt is None
        assert loaded.warnings == ("prompt holds no text and is taken as absent.",)


def test_usage_as_openai_sends_it() -> None:
    usage = {
        "prompt_tokens": 12.0,
        "completion_tokens": 3,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    loaded = load(with_(usage=usage))
    assert loaded.case.usage == Usage(12, 3, 8, 2)
    assert loaded.warnings == ()


def test_an_alias_of_nothing_is_warned_of_when_read() -> None:
    loaded = load(with_(answers=["*", "12"]))
    assert loaded.case.answers == ("*", "12")
    assert loaded.warnings == ("answers[0] holds no letter or digit to look for: write it in words or remove it.",)


def test_unfinished_imports_are_read_but_not_ready() -> None:
    no_question = load({"chunks": ["x"], "tags": ["needs-question"]}).case
    assert no_question.question == ""
    with pytest.raises(InputError, match="no question yet"):
        check_ready(no_question)
    with pytest.raises(InputError, match="no retrieved chunks yet"):
        check_ready(load(with_(chunks=[], tags=["needs-chunks"])).case)
    check_ready(load(SMALL).case)
    assert case_from_json(case_to_json(no_question)).case == no_question


def test_suites() -> None:
    first, second = json.dumps(with_(id="a")), json.dumps(SMALL)
    suite = read_suite(f"\ufeff{first}\r\n\r\n{second}\r\n".encode(), "fees.jsonl")
    assert [case.id for case in suite.cases] == ["a", "fees-2"]
    assert [case.id for case in read_suite(f"[{first},{second}]".encode(), "fees.json").cases] == ["a", "fees-2"]
    assert [case.id for case in read_suite(second.encode(), "fees.json").cases] == ["fees"]
    odd = json.dumps(with_(id=9))
    assert read_suite(f"{second}\n{odd}".encode(), "x.jsonl").warnings == (
        "line 2: id is a number and is read as text.",
    )
    with pytest.raises(InputError, match=r'x\.jsonl has several cases with the id "a"'):
        read_suite(f"{first}\n{first}".encode(), "x.jsonl")
    with pytest.raises(InputError, match=r"x\.jsonl, line 3: The key question is missing\."):
        read_suite(f'{first}\n\n{{"chunks": []}}'.encode(), "x.jsonl")
    with pytest.raises(InputError, match="holds no case"):
        read_suite(b"[]", "x.json")


def test_large_cases_are_read_quickly() -> None:
    chunks = [{"id": f"d{i}", "text": "word " * 60, "score": 1 / (i + 1)} for i in range(5000)]
    chunks.append({"id": "long", "text": "x" * 200_000, "score": 0.0})
    start = time.perf_counter()
    loaded = load(with_(chunks=chunks))
    assert len(loaded.case.chunks) == 5001
    assert len(loaded.case.chunks[-1].text) == 200_000
    # A generous bound: some 0.1 s on an idle core. A hostile file of doubled ids must not take longer by the square.
    with pytest.raises(InputError, match="and more"):
        load(with_(chunks=[{"id": i // 2, "text": ""} for i in range(60_000)]))
    assert time.perf_counter() - start < 10


def test_no_mapping_is_no_case() -> None:
    for value in (None, [], "x", 3):
        with pytest.raises(InputError):
            case_from_json(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["c1", "user", "stop"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "text", "role", "content", "score", "x", "type"]), inner, max_size=4)
    ),
    max_leaves=12,
)
CASES = st.dictionaries(st.sampled_from([*FULL, "unknown"]), JSON, max_size=8)


@given(st.binary(max_size=400))
@settings(max_examples=300, deadline=None)
def test_any_bytes_give_a_case_or_an_input_error(data: bytes) -> None:
    try:
        loaded = read_case(data, "fuzz")
    except InputError:
        return
    assert case_from_json(case_to_json(loaded.case)).case == loaded.case


@given(CASES, st.booleans(), st.data())
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_object_gives_a_storable_case_or_an_input_error(
    fields: dict[str, Any], sound: bool, data: st.DataObject
) -> None:
    value = (SMALL | fields | {"question": "x", "chunks": SMALL["chunks"]}) if sound else SMALL | fields
    text = json.dumps(value).encode()
    if data.draw(st.booleans()):
        cut = data.draw(st.integers(0, len(text)))
        text = text[:cut] + data.draw(st.binary(max_size=3)) + text[cut:]
    try:
        loaded = read_case(text, "fuzz.json")
    except InputError:
        return
    stored = json.dumps(case_to_json(loaded.case), allow_nan=False, ensure_ascii=False).encode()
    assert read_case(stored, "again.json").case == loaded.case
    ids = [chunk.id for chunk in loaded.case.chunks]
    assert len(set(ids)) == len(ids)
    assert all(one.strip() for one in ids)
