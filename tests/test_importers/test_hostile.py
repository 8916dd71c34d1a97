"""Any bytes give cases with a report, or one clear sentence: never a traceback, a hang, or a full memory."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lim_core.cases import case_from_json, case_to_json
from lim_core.errors import InputError
from lim_core.importers import Imported, import_file, importers, report_json, report_text, template_of

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "importers"
FILES = sorted(path for path in FIXTURES.iterdir())
NAMES = ("paste", "a.json", "a.jsonl", "a.csv", "a.tsv", "a.yaml", "a.txt", "a.md", "a.json.gz")
SEVERAL = settings(max_examples=150, deadline=5_000, suppress_health_check=[HealthCheck.too_slow])


def survive(data: bytes, name: str = "paste", format: str = "auto") -> Imported | str:
    """Import; what comes back must be whole, what is refused must be one sentence."""
    try:
        imported = import_file(data, name, format)
    except InputError as error:
        message = str(error)
        assert message
        assert "\n" not in message.strip()
        assert len(message) < 1_000
        return message
    assert imported.cases
    assert imported.report.read == len(imported.cases) == len(imported.report.cases)
    assert report_text(imported.report)
    json.dumps(report_json(imported.report), allow_nan=False).encode()
    ids = [case.id for case in imported.cases]
    assert len(set(ids)) == len(ids)
    for case in imported.cases:
        out = case_to_json(case)
        json.dumps(out, allow_nan=False).encode()
        assert case_from_json(out).case == case
        template = template_of(case).template
        if template is not None:
            template.lay_out(case.question, case.chunks)
    return imported


@SEVERAL
@given(st.binary(max_size=2_000), st.sampled_from(NAMES))
@example(b"\x1f\x8b", "paste")
@example(b"PK\x03\x04", "paste")
@example(b"\xff\xfe", "paste")
@example(b'"', "a.csv")
@example(b"page_content='", "paste")
def test_any_bytes(data: bytes, name: str) -> None:
    survive(data, name)


WORDS = st.sampled_from(
    """page_content metadata node text score content blob meta id_ kwargs lc type id run_type inputs outputs child_runs
    documents attributes retrieval.documents.0.document.content retrieval.documents.10.document.content spans resourceSpans
    gen_ai.retrieval.documents observations traceId input output user_input retrieved_contexts question contexts answer
    retrieval_context expected_output vars assert query gt_answer retrieved_context choice_A choice_B context ctxs isgold
    messages role model choices chunks gold_ids prompt trace_id parent_run_id name class_name span_kind key value
    text_resource reference_contexts usage response title tags candidates""".split()  # noqa: SIM905 - a table of words
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=30),
    st.sampled_from(
        ["retriever", "llm", "RETRIEVER", "GENERATION", "constructor", "Document", "user", "[1, 2", '{"a": [1]}']
    ),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(WORDS, inner, max_size=6)),
    max_leaves=40,
)


@SEVERAL
@given(VALUES, st.booleans())
def test_any_json_with_the_words_of_the_shapes(value: object, as_python: bool) -> None:
    survive((repr(value) if as_python else json.dumps(value)).encode("utf-8", "surrogatepass"))


@SEVERAL
@given(st.data())
def test_fixtures_cut_and_spoilt_anywhere(data: st.DataObject) -> None:
    whole = bytearray(data.draw(st.sampled_from(FILES)).read_bytes())
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(whole)))
        whole[at : at + data.draw(st.integers(0, 12))] = data.draw(st.binary(max_size=6))
    survive(bytes(whole[: data.draw(st.integers(0, len(whole)))]))


@SEVERAL
@given(st.data())
def test_a_format_forced_on_a_stranger(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(FILES))
    survive(path.read_bytes(), path.name, data.draw(st.sampled_from([entry.name for entry in importers])))


@SEVERAL
@given(st.text(alphabet=st.sampled_from(list("<>/[](){}#-\n \"'=:.*,1234abdocQuestion?&|\\")), max_size=600))
def test_any_marked_up_text(text: str) -> None:
    survive(text.encode())
    survive(f"Answer the question from the context.\nContext:\n{text}\nQuestion: why?".encode())


def _zip(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", data)
    return out.getvalue()


def _gzip_of_a_gigabyte() -> bytes:
    out = io.BytesIO()
    piece = b" " * (1 << 20)
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as file:
        for _ in range(1 << 10):
            file.write(piece)
    return out.getvalue()


BIG = 20 * 1024 * 1024 - 100
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "nested arrays": (lambda: b"[" * 1_000_000, "nested too deeply"),
    "nested objects": (lambda: b'{"a":' * 1_000_000, "nested too deeply"),
    "nested calls": (lambda: b"Document(" * 100_000, "nested too deeply"),
    "nested yaml": (lambda: b"tests:\n" + b"- " * 100_000, "nested too deeply"),
    "many arrays": (lambda: b"[" + b"[]," * (BIG // 3) + b"[]]", "million arrays"),
    "gzip of 1 GB": (_gzip_of_a_gigabyte, "larger than 20 MB when unpacked"),
    "bzip2": (lambda: bz2.compress(b"0" * (1 << 26)), "larger than 20 MB when unpacked"),
    "xz": (lambda: lzma.compress(b"0" * (1 << 26)), "larger than 20 MB when unpacked"),
    "zip": (lambda: _zip(b"0" * (1 << 26)), "larger than 20 MB when unpacked"),
    "21 MB": (lambda: b" " * (21 << 20), "larger than 20 MB"),
    "cut gzip": (lambda: gzip.compress(b'[{"page_content": "a"}]' * 9)[:30], "cut short or damaged"),
    "picture": (lambda: b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" * 9, "no text file"),
    "empty": (lambda: b" \n", "is empty"),
    "broken": (lambda: b'[{"page_content": "Carers"}, {"page_', "broken JSON"),
    "unknown": (lambda: b'{"a": 1}', "no shape that is known"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bombs_and_rubbish_are_refused_at_once(name: str) -> None:
    make, reason = REFUSED[name]
    data = make()
    started = time.perf_counter()
    suffix = "a.yaml" if "yaml" in name else "paste"
    with pytest.raises(InputError, match=reason):
        import_file(data, suffix)
    assert time.perf_counter() - started < 5


def test_yaml_aliases_are_refused() -> None:
    with pytest.raises(InputError, match="aliases"):
        import_file(b"tests: [*a, *a]\n", "a.yaml")
    with pytest.raises(InputError, match="YAML"):
        import_file(b"tests: !!python/object/apply:os.system ['true']\n", "a.yaml")


def _document(size: int) -> str:
    return json.dumps(
        {"id": "a", "page_content": "Carers get 12 days. " * size, "metadata": {"source": "x", "page": 3}}
    )


@pytest.mark.parametrize("kind", ["documents", "rows", "one chunk", "runs"])
def test_twenty_megabytes_take_seconds(kind: str) -> None:
    if kind == "documents":
        unit = _document(12)
        text = "[" + ",".join([unit] * (BIG // (len(unit) + 1))) + "]"
    elif kind == "rows":
        unit = json.dumps(
            {"user_input": "How many?", "retrieved_contexts": ["Carers get 12 days. " * 40] * 4, "reference": "12"}
        )
        text = "\n".join([unit] * (BIG // (len(unit) + 1)))
    elif kind == "one chunk":
        text = json.dumps([{"page_content": "x" * (BIG - 100)}])
    else:
        text = "\n".join(
            json.dumps({"id": f"r{n}", "trace_id": "t", "start_time": n, "run_type": ("retriever", "llm")[n % 2],
                        "inputs": {"query": "q", "prompt": f"about text number {n - 1} here"},
                        "outputs": {"documents": [{"page_content": f"text number {n} here " * 30}]}})
            for n in range(24_000)
        )[:BIG]  # fmt: skip
    data = text.encode()
    started = time.perf_counter()
    assert import_file(data, "big.jsonl" if kind in ("rows", "runs") else "big.json").cases
    # Under 5 s on a machine of its own; the builders of this one are never alone.
    assert time.perf_counter() - started < 12
