"""The embedded model as it is: real weights, real llama.cpp, real HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lim_core.backends import ModelSpec, open_model
from lim_core.backends.embedded import EmbeddedModel
from lim_core.backends.probe import test_connection as check_connection
from lim_core.backends.server_tokens import ServerCounter
from lim_core.backends.weights import _skip, find_weights
from lim_core.errors import CallFault, ConfigError, FaultKind
from lim_core.prompts import closed_book, lay_out
from lim_core.types import Chunk, Message, Reply, Request

pytestmark = pytest.mark.model

WARDENS = ["Ada", "Bruno", "Celia", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas"]
QUESTION = "Who is the warden of district 3?"


def chunk(i: int) -> Chunk:
    return Chunk(
        f"c{i}", f"The warden of district {i} is {WARDENS[i - 1]}, whose office is in hall {i * 7}.", f"District {i}"
    )


def ask(model: EmbeddedModel, *messages: Message) -> Reply:
    return asyncio.run(model.complete(Request(messages, model.default_params)))


@pytest.fixture(scope="module")
def model() -> Iterator[EmbeddedModel]:
    opened = open_model(ModelSpec())
    assert isinstance(opened, EmbeddedModel)
    yield opened
    opened.close()


def test_it_answers_from_the_one_document(model: EmbeddedModel) -> None:
    reply = ask(model, *lay_out(QUESTION, [chunk(3)]).messages)
    assert "Celia" in reply.text
    assert "\n" not in reply.text
    assert reply.finish_reason == "stop"
    assert reply.model == model.name == "gemma-3-270m"


def test_answers_are_never_empty(model: EmbeddedModel) -> None:
    for question in ("Who is the warden of district 99?", "", "What?"):
        assert ask(model, *closed_book(question).messages).text.strip()


def test_the_prefix_is_reused_and_reported(model: EmbeddedModel) -> None:
    chunks = [chunk(i) for i in range(1, 9)]
    whole = lay_out(QUESTION, chunks).messages
    ask(model, Message("user", "something else"))
    first = ask(model, *whole).usage
    again = ask(model, *whole).usage
    assert first.prompt_tokens == model.counter.count_messages(whole).n
    assert again.cached_prompt_tokens == (again.prompt_tokens or 0) - 1
    moved = ask(model, *lay_out(QUESTION, [*chunks[:4], *reversed(chunks[4:])]).messages).usage
    assert 0.3 < (moved.cached_prompt_tokens or 0) / (moved.prompt_tokens or 1) < 0.8


def test_counts_are_the_servers(model: EmbeddedModel) -> None:
    counter = model.counter
    assert isinstance(counter, ServerCounter)
    texts = ["", "hello world", "naïve 漢字 🙂", "<bos> <pad>", "x" * 40]
    assert [count.n for count in counter.count_many(texts)] == [counter.count(text).n for text in texts]
    assert all(counter.count(text).exact for text in texts)
    text = "naïve 漢字🙂 hello world"
    starts = counter.token_starts(text)
    assert "".join(text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)) == text
    two = (Message("system", "Be brief."), Message("user", "Who?"))
    assert counter.count_messages(two).n == ask(model, *two).usage.prompt_tokens


def test_answer_marker_is_not_doubled(model: EmbeddedModel) -> None:
    with_marker, without = (counter_of(model, text) for text in ("Question: Who?\nAnswer:", "Question: Who?"))
    assert with_marker == without


def counter_of(model: EmbeddedModel, text: str) -> int:
    return model.counter.count_messages([Message("user", text)]).n


def test_over_the_window_both_numbers_are_told(model: EmbeddedModel) -> None:
    with pytest.raises(CallFault) as caught:
        ask(model, Message("user", "word " * 17_000))
    assert caught.value.kind is FaultKind.CONTEXT_WINDOW
    assert caught.value.window == model.context_window == 16384
    assert (caught.value.needed or 0) > 17_000
    assert not caught.value.retry


def test_opened_by_many_threads_it_is_one_server(model: EmbeddedModel) -> None:
    opened: list[str] = []
    threads = [threading.Thread(target=lambda: opened.append(repr(open_model(ModelSpec()).counter))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 8
    assert set(opened) == {repr(model.counter)}


def test_identity_holds_weights_window_and_template(model: EmbeddedModel) -> None:
    assert model.endpoint.startswith("embedded:a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818:16384:")
    assert open_model(ModelSpec()).endpoint == model.endpoint
    with_examples = open_model(ModelSpec(options={"examples": True, "n_ctx": 2048}))
    assert with_examples.endpoint != model.endpoint
    assert with_examples.context_window == 2048
    messages = [Message("user", "Question: Who?")]
    assert with_examples.counter.count_messages(messages).n > model.counter.count_messages(messages).n + 50
    with_examples.close()


def test_the_server_is_locked(model: EmbeddedModel) -> None:
    import httpx2

    root = model.counter._root  # type: ignore[attr-defined]
    with httpx2.Client(trust_env=False) as http:
        body = {"messages": [{"role": "user", "content": "hi"}]}
        refused = http.post(f"{root}/v1/chat/completions", json=body, headers={"Origin": "http://elsewhere.test"})
        assert refused.status_code == 401
        assert refused.headers.get("access-control-allow-origin", "") == ""
        assert http.get(f"{root}/slots").status_code in (401, 501)
    assert root.startswith("http://127.0.0.1:")


def test_connection_test(model: EmbeddedModel) -> None:
    probe = check_connection(ModelSpec(), None)
    assert probe.error is None
    assert probe.usage_reported
    assert probe.cached_tokens_reported
    assert probe.context_window == 16384
    assert probe.server_tokens


# --- weights ------------------------------------------------------------------------------------------------


def test_named_files_that_are_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = tmp_path / "model.gguf"
    text.write_bytes(b"hello, this is text" * 10)
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + (3).to_bytes(4, "little") + (1).to_bytes(8, "little") + (0).to_bytes(8, "little"))
    for path, words in (
        (tmp_path / "absent.gguf", "does not exist"),
        (text, "not a GGUF file"),
        (tmp_path, "cannot be read"),
        (broken, "cannot load"),
    ):
        monkeypatch.setenv("LIM_GGUF", str(path))
        with pytest.raises(ConfigError, match=words) as caught:
            open_model(ModelSpec())
        assert "LIM_GGUF" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_another_gguf_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "my-model.gguf"
    link.symlink_to(find_weights(None).path)
    weights = find_weights(str(link))
    assert weights.name == "my-model"
    assert not weights.has_template
    assert weights.sha256 == find_weights(None).sha256


def with_template(source: Path, target: Path, template: str) -> None:
    """Copy a GGUF file with `tokenizer.chat_template` put in front of its metadata."""
    data = source.read_bytes()
    version, tensors, pairs = struct.unpack_from("<IQQ", data, 4)
    end = 24
    for _ in range(pairs):
        end += 8 + struct.unpack_from("<Q", data, end)[0]
        end = _skip(data, end + 4, struct.unpack_from("<I", data, end)[0])
    for _ in range(tensors):
        end += 8 + struct.unpack_from("<Q", data, end)[0]
        end += 4 + 8 * struct.unpack_from("<I", data, end)[0] + 12
    key, value = b"tokenizer.chat_template", template.encode()
    entry = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(value)) + value
    head = b"GGUF" + struct.pack("<IQQ", version, tensors, pairs + 1) + entry + data[24:end]
    target.write_bytes(head + bytes(-len(head) % 32) + data[end + -end % 32 :])


def test_a_model_with_a_template_of_its_own_uses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tuned.gguf"
    with_template(
        find_weights(None).path, path, "{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }} {% endfor %}Said:"
    )
    monkeypatch.setenv("LIM_GGUF", str(path))
    model = open_model(ModelSpec(options={"n_ctx": 1024, "max_tokens": 8}))
    assert model.name == "tuned"
    assert model.default_params == {"temperature": 0.0, "max_tokens": 8}  # its lines are its own business
    messages = (Message("system", "a"), Message("user", "b"))
    own, plain = model.counter.count_messages(messages).n, model.counter.count("<system> a <user> b Said:").n
    assert own == plain + 1  # the start token
    reply = asyncio.run(model.complete(Request(messages, model.default_params)))
    assert reply.usage.prompt_tokens == own
    assert "grammar" not in reply.sent_params
    assert model.context_window == 1024
    model.close()


def test_two_processes_assemble_at_once_and_damage_is_seen(tmp_path: Path) -> None:
    code = "from lim_core.backends.weights import find_weights; print(find_weights(None).path)"
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": os.getcwd()}
    run = [sys.executable, "-c", code]
    pair = [subprocess.Popen(run, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    paths = {process.communicate()[0].strip() for process in pair}
    assert [process.returncode for process in pair] == [0, 0]
    (path,) = (Path(p) for p in paths)
    assert path.is_relative_to(tmp_path)
    assert [file.name for file in path.parent.iterdir() if file.is_file()] == [path.name]  # no halves left behind
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(b"damage")
    subprocess.run(run, env=env, check=True, capture_output=True)
    assert path.read_bytes()[:4] == b"GGUF"
    assert path.stat().st_size == size


# --- the end of the process ------------------------------------------------------------------------------------

BUSY = """
import asyncio, os, signal, sys, threading, time
from lim_core.backends import ModelSpec, open_model
from lim_core.errors import LimError
from lim_core.types import Message, Request
model = open_model(ModelSpec())
request = Request((Message("user", "the cat sat on the mat and " * 1500),), model.default_params)
def work():
    try:
        asyncio.run(model.complete(request))
    except LimError:
        pass
threading.Thread(target=work, daemon=True).start()
time.sleep(1.5)
print("busy", flush=True)
time.sleep(120)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_ends_it_with_a_request_in_flight(number: signal.Signals, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd(), "PYTHONFAULTHANDLER": "1"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n"
    process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        # Its threads' stacks say where it hangs, and it does not outlive the test.
        process.send_signal(signal.SIGABRT)
        pytest.fail(f"still running after 60 s:\n{process.communicate()[1]}")
    assert process.returncode == code
    assert "Fatal" not in errors
