"""Backends over real HTTP: requests, faults, keys, tokens and the connection test, against the scripted server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator

import pytest

from lim_core.backends import ModelSpec, backends, open_model, spec_for
from lim_core.backends.address import read_address
from lim_core.backends.chat import ChatClient
from lim_core.backends.faults import Sent, from_status, read_wait
from lim_core.backends.openai_compat import EndpointModel, OpenAICompatOptions
from lim_core.backends.probe import test_connection as check_connection
from lim_core.backends.registry import read_options
from lim_core.backends.reply import read_reply, read_usage
from lim_core.backends.scripted import ScriptedModel, ScriptedOptions, read_script
from lim_core.backends.scripted_faults import FAULTS, REFUSALS
from lim_core.backends.scripted_server import ScriptedServer
from lim_core.backends.window import read_refusal
from lim_core.errors import (
    CallFault,
    ConfigError,
    EndpointError,
    FaultKind,
    KeyMissing,
    LimError,
    ParameterRefused,
    UnknownName,
)
from lim_core.prompts import closed_book, lay_out
from lim_core.types import Chunk, Json, Message, Model, Reply, Request

KEY = "sk-planted-0123456789abcdef"
QUESTION = "Who keeps the lighthouse at Varnholm?"
GOLD = Chunk("gold", "The lighthouse at Varnholm is kept by Ottilie Brandt since spring.", "Varnholm")


def chunks(n: int, slot: int) -> list[Chunk]:
    others = [
        Chunk(f"d{i}", f"The mill of parish {i} grinds rye for {i + 3} villages.", f"Parish {i}") for i in range(n - 1)
    ]
    return [*others[:slot], GOLD, *others[slot:]]


def ask(model: Model, /, messages: tuple[Message, ...] = (Message("user", "hello"),), **params: Json) -> Reply:
    return asyncio.run(model.complete(Request(messages, {**model.default_params, **params})))


def scripted(**options: Json) -> ScriptedModel:
    model = open_model(ModelSpec("scripted", options={"needles": ["Ottilie Brandt"], **options}))
    assert isinstance(model, ScriptedModel)
    return model


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(
        read_script(ScriptedOptions(needles=("Ottilie Brandt",), retry_after=2.0, stall=3.0))
    ) as running:
        yield running


def endpoint(server: ScriptedServer, fault: str = "", key: str | None = None, timeout: float = 20.0) -> EndpointModel:
    model = open_model(
        ModelSpec(
            "openai-compat",
            f"scripted!{fault}" if fault else "scripted",
            server.base_url,
            {"timeout": timeout, "max_tokens": 48},
        ),
        key,
    )
    assert isinstance(model, EndpointModel)
    return model


# --- registry and options -----------------------------------------------------------------------------


def test_every_backend_is_found_by_its_place_and_says_what_it_is() -> None:
    assert [entry.name for entry in backends] == ["embedded", "openai-compat", "scripted"]
    for entry in backends:
        assert entry.help
        read_options(entry.part.Options, {}, entry.name)


def test_unknown_backend_and_options_are_refused_with_a_hint() -> None:
    with pytest.raises(UnknownName, match="Did you mean embedded"):
        open_model(ModelSpec("embeded"))
    with pytest.raises(ConfigError, match="Did you mean profile"):
        open_model(ModelSpec("scripted", options={"profil": "u"}))
    with pytest.raises(ConfigError, match="n_ctx of backend embedded must be int"):
        open_model(ModelSpec("embedded", options={"n_ctx": True}))
    with pytest.raises(ConfigError, match="must be a list of texts"):
        open_model(ModelSpec("scripted", options={"needles": "Brandt"}))
    assert read_options(ScriptedOptions, {"latency": 1}, "scripted").latency == 1.0


def test_spec_for_tells_backends_from_model_names() -> None:
    assert spec_for("embedded") == ModelSpec("embedded")
    assert spec_for("gpt-5", None) == ModelSpec("openai-compat", "gpt-5")
    assert spec_for("embedded", "http://localhost:1/v1").backend == "openai-compat"


def test_importing_backends_loads_nothing_heavy() -> None:
    code = (
        "import sys, lim_core.backends\n"
        "heavy = {'openai', 'httpx2', 'xllamacpp', 'torch', 'pydantic', 'numpy', 'streamlit'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.getcwd()})


# --- the scripted model ---------------------------------------------------------------------------------


def right_at(model: Model, slot: int, n: int = 9, blocks: int = 40) -> float:
    async def run() -> list[Reply]:
        prompts = [lay_out(f"{QUESTION} (copy {b})", chunks(n, slot)) for b in range(blocks)]
        return list(await asyncio.gather(*(model.complete(Request(p.messages, model.default_params)) for p in prompts)))

    return sum("Ottilie Brandt" in reply.text for reply in asyncio.run(run())) / blocks


def test_planted_profile_is_what_comes_out() -> None:
    model = scripted(edge=0.9, middle=0.2)
    first, middle, last = (right_at(model, slot) for slot in (0, 4, 8))
    quarter = right_at(model, 2)
    model.close()
    assert first > 0.75
    assert last > 0.75
    assert middle < 0.4
    assert middle < quarter < 0.8  # linear between the points: 0.55


@pytest.mark.parametrize(("profile", "slot", "right"), [("recency", 8, 1.0), ("primacy", 8, 0.0), ("inverted", 4, 1.0)])
def test_profiles_by_name(profile: str, slot: int, right: float) -> None:
    model = scripted(profile=profile, edge=1.0, middle=0.0)
    assert right_at(model, slot, blocks=4) == right
    assert right_at(model, 0, blocks=4) == (1.0 if profile == "primacy" else 0.0)
    model.close()


def test_same_prompt_same_answer_unless_drawn_anew() -> None:
    prompt = lay_out(QUESTION, chunks(9, 4)).messages
    same, fresh = scripted(middle=0.5), scripted(middle=0.5, fresh=True)
    assert len({ask(same, prompt).text for _ in range(12)}) == 1
    assert len({ask(fresh, prompt).text for _ in range(12)}) == 2
    assert same.endpoint != fresh.endpoint
    same.close()
    fresh.close()


def test_brackets_and_answers_without_needles() -> None:
    model = scripted(oracle=1.0, closed_book=0.0)
    assert ask(model, lay_out(QUESTION, [GOLD]).messages).text == "Ottilie Brandt"
    assert "Brandt" not in ask(model, closed_book(QUESTION).messages).text
    model.close()
    model = scripted(needles=[], profile="flat", edge=1.0)
    assert ask(model, lay_out(QUESTION, chunks(5, 3)).messages).text == GOLD.text
    model.close()


def test_one_slot_prefix_cache_is_reported() -> None:
    model = scripted()
    last_first = [lay_out(QUESTION, chunks(9, slot)).messages for slot in (8, 4, 0)]
    replies = [ask(model, messages) for messages in last_first]
    sizes = [model.counter.count_messages(messages).n for messages in last_first]
    assert [reply.usage.prompt_tokens for reply in replies] == sizes
    cached = [reply.usage.cached_prompt_tokens or 0 for reply in replies]
    assert cached[0] == 0
    assert cached[1] > cached[2] > 0
    assert ask(model, last_first[-1]).usage.cached_prompt_tokens == sizes[-1] - 1
    assert model.server.traffic.read_tokens + model.server.traffic.cached_tokens == sum(sizes) + sizes[-1]
    model.close()


def test_silent_cut_drops_the_beginning_and_reports_less() -> None:
    model = scripted(window=120, cut_silently=True, profile="flat", edge=1.0)
    messages = lay_out(QUESTION, chunks(9, 0)).messages
    reply = ask(model, messages)
    assert reply.usage.prompt_tokens == 120 - 48
    assert model.counter.count_messages(messages).n > 150
    assert "Brandt" not in reply.text
    model.close()


def test_options_out_of_range_are_refused() -> None:
    for options in ({"edge": 1.5}, {"profile": "w"}, {"profile": "0:0.9,0:0.1"}, {"window": 0}):
        with pytest.raises(ConfigError):
            open_model(ModelSpec("scripted", options=options))
    with pytest.raises(ConfigError, match="no fault"):
        open_model(ModelSpec("scripted", options={"faults": ["explode"]}))


# --- one request ------------------------------------------------------------------------------------------


def test_a_reply_carries_usage_and_what_was_sent(server: ScriptedServer) -> None:
    model = endpoint(server)
    reply = ask(model, lay_out(QUESTION, [GOLD]).messages, seed=7, stop=None, stream=True, model="other")
    assert reply.text == "Ottilie Brandt"
    assert (reply.finish_reason, reply.model) == ("stop", "scripted")
    assert reply.usage.completion_tokens == 2
    assert reply.sent_params == {"temperature": 0.0, "max_tokens": 48, "seed": 7}
    body = server.traffic.seen[-1].body
    assert {name: body[name] for name in body if name not in ("messages", "model")} == reply.sent_params
    assert body["messages"] == [{"role": "user", "content": lay_out(QUESTION, [GOLD]).messages[0].content}]
    assert server.traffic.chats == 1
    assert model.endpoint == server.base_url
    model.close()


def test_several_loops_and_threads_share_a_model_without_leaks(server: ScriptedServer) -> None:
    model = endpoint(server)
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(ask(model).text)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts += [ask(model).text, ask(model).text]
    assert len(texts) == 8
    model.close()
    model.close()
    with pytest.raises(ConfigError, match="was closed"):
        ask(model)


def test_close_from_another_thread_ends_a_running_loops_connections(server: ScriptedServer) -> None:
    model = endpoint(server)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    request = Request((Message("user", "hi"),), model.default_params)
    assert asyncio.run_coroutine_threadsafe(model.complete(request), loop).result(10).text
    model.close()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()  # a transport still open would warn here, and warnings are errors


def test_many_in_flight(server: ScriptedServer) -> None:
    model = scripted(latency=0.2)

    async def run() -> int:
        request = Request((Message("user", "hi"),), model.default_params)
        return len(await asyncio.gather(*(model.complete(request) for _ in range(64))))

    started = time.perf_counter()
    assert asyncio.run(run()) == 64
    assert model.server.traffic.most_in_flight > 32
    assert time.perf_counter() - started < 10
    model.close()


def test_proxy_settings_do_not_touch_loopback(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    model = endpoint(server)
    assert ask(model).text
    assert model.context_window is None
    assert check_connection(ModelSpec("openai-compat", "scripted", server.base_url), None).error is None
    model.close()


# --- faults -------------------------------------------------------------------------------------------------

KINDS = {
    "rate-limit": (FaultKind.RATE_LIMIT, True),
    "rate-limit-date": (FaultKind.RATE_LIMIT, True),
    "rate-limit-words": (FaultKind.RATE_LIMIT, True),
    "too-large": (FaultKind.TOO_LARGE, False),
    "server": (FaultKind.SERVER, True),
    "overloaded": (FaultKind.SERVER, True),
    "bad-gateway": (FaultKind.SERVER, True),
    "dropped": (FaultKind.CONNECTION, True),
    "cut": (FaultKind.CONNECTION, True),
    "not-json": (FaultKind.BAD_REPLY, True),
    "no-choices": (FaultKind.BAD_REPLY, True),
    "error-in-200": (FaultKind.SERVER, True),
    "tool-call": (FaultKind.TOOL_CALL, False),
    "content-filter": (FaultKind.CONTENT_FILTER, False),
    "filter-400": (FaultKind.CONTENT_FILTER, False),
    "refusal": (FaultKind.CONTENT_FILTER, False),
    "reasoning": (FaultKind.OUTPUT_BUDGET, False),
}
STOPS = {
    "unauthorised": "refuses the key|wants a key",
    "forbidden": "wants a key",
    "model-missing": "has no model 'scripted!model-missing'",
    "no-path": "does not exist there: check the base URL",
    "redirect": "redirects to https://elsewhere.test",
    "bad-request": "refuses the request: messages: roles must alternate",
}


@pytest.mark.parametrize("fault", KINDS)
def test_faults_of_one_request(server: ScriptedServer, fault: str) -> None:
    model = endpoint(server, fault)
    with pytest.raises(CallFault) as caught:
        ask(model)
    kind, retry = KINDS[fault]
    assert (caught.value.kind, caught.value.retry) == (kind, retry)
    assert "\n" not in str(caught.value)
    assert server.traffic.chats == 1  # never retried here
    model.close()


@pytest.mark.parametrize("fault", STOPS)
def test_faults_that_stop_the_run(server: ScriptedServer, fault: str) -> None:
    model = endpoint(server, fault)
    with pytest.raises(ConfigError, match=STOPS[fault]):
        ask(model)
    model.close()


def test_every_fault_of_the_server_is_covered() -> None:
    covered = {*KINDS, *STOPS, "long-wait", "quota", "stall", "empty", "think"}
    assert covered == set(FAULTS)
    assert {name.removeprefix("refuse-") for name in REFUSALS} >= {
        "temperature",
        "max_tokens",
        "seed",
        "stop",
        "logprobs",
        "top_p",
    }


def test_waits_are_read_and_long_ones_stop(server: ScriptedServer) -> None:
    waits = {}
    for fault in ("rate-limit", "rate-limit-date", "rate-limit-words", "overloaded"):
        with pytest.raises(CallFault) as caught:
            ask(endpoint(server, fault))
        waits[fault] = caught.value.wait
    assert waits["rate-limit"] == waits["overloaded"] == 2.0
    assert waits["rate-limit-words"] == 62.5
    assert 0 < (waits["rate-limit-date"] or 0) <= 3
    with pytest.raises(EndpointError, match="24 hours: resume") as stopped:
        ask(endpoint(server, "long-wait"))
    assert stopped.value.resume_after == 86400
    with pytest.raises(EndpointError, match="quota"):
        ask(endpoint(server, "quota"))
    with pytest.raises(CallFault) as large:
        ask(endpoint(server, "too-large"))
    assert (large.value.window, large.value.needed) == (30000, 64000)


def test_wait_forms() -> None:
    assert read_wait({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert read_wait({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert read_wait({"retry-after": "soon"}) is None
    assert read_wait({}, "Please try again in 350ms.") == pytest.approx(0.35)
    assert read_wait({}, "Please try again in 1h2m3s.") == 3723


def test_a_stalled_answer_times_out(server: ScriptedServer) -> None:
    model = endpoint(server, "stall", timeout=0.3)
    with pytest.raises(CallFault) as caught:
        ask(model)
    assert caught.value.kind is FaultKind.TIMEOUT
    model.close()


def test_nothing_listens_and_no_such_host() -> None:
    refused = open_model(ModelSpec("openai-compat", "m", "http://127.0.0.1:9/v1"))
    with pytest.raises(EndpointError, match=r"Nothing answers at http://127\.0\.0\.1:9/v1"):
        ask(refused)
    unknown = open_model(ModelSpec("openai-compat", "m", "http://no-such-host.invalid/v1"))
    with pytest.raises(ConfigError, match="no host behind"):
        ask(unknown)


def test_empty_is_a_reply_and_a_thought_is_no_answer(server: ScriptedServer) -> None:
    assert ask(endpoint(server, "empty")).text == ""
    assert ask(endpoint(server, "think")).text == "Bruno"


def sent(key: str | None = None) -> Sent:
    return Sent("m", "http://h/v1", ("temperature",), key)


def reply_of(content: object, finish: str = "stop") -> Reply:
    body = {"choices": [{"message": {"content": content}, "finish_reason": finish}]}
    return read_reply(json.dumps(body).encode(), {}, 0.1, {}, sent())


def test_thoughts_parts_and_missing_usage() -> None:
    assert reply_of("so Anna... no.</think> Bruno").text == "Bruno"
    assert reply_of("A <think> tag later </think> stays").text == "A <think> tag later </think> stays"
    assert (
        reply_of([{"type": "text", "text": "Br"}, {"type": "image"}, {"type": "text", "text": "uno"}]).text == "Bruno"
    )
    assert reply_of("x").usage.prompt_tokens is None
    assert read_usage({"prompt_tokens": 0, "completion_tokens": 0}).prompt_tokens is None
    with pytest.raises(CallFault, match="output cap") as caught:
        reply_of("<think>still thinking", "length")
    assert caught.value.kind is FaultKind.OUTPUT_BUDGET


def test_missing_v1_and_azure_get_their_own_advice() -> None:
    bare = from_status(404, {}, '{"detail":"Not Found"}', Sent("m", "http://localhost:8000", (), None))
    assert "try http://localhost:8000/v1" in str(bare)
    azure = from_status(
        404,
        {},
        '{"error":{"code":"404","message":"Resource not found"}}',
        Sent("m", "https://x.openai.azure.com", (), "k"),
    )
    assert "deployment's name" in str(azure)
    gone = from_status(
        404,
        {},
        '{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}',
        sent(),
    )
    assert "has no model" in str(gone)


# --- refused parameters -----------------------------------------------------------------------------------


def until_answered(model: Model, **params: Json) -> tuple[Reply, list[str]]:
    refused: list[str] = []
    for _ in range(6):
        try:
            return ask(model, **params), refused
        except ParameterRefused as fault:
            refused.append(fault.parameter)
    raise AssertionError(refused)


REFUSED: list[tuple[str, dict[str, Json], dict[str, Json]]] = [
    ("temperature", {}, {"max_tokens": 48}),
    ("max_tokens", {}, {"temperature": 0.0, "max_completion_tokens": 48}),
    ("seed", {"seed": 1}, {"temperature": 0.0, "max_tokens": 48}),
    ("stop", {"stop": ["\n"]}, {"temperature": 0.0, "max_tokens": 48}),
    ("logprobs", {"logprobs": True}, {"temperature": 0.0, "max_tokens": 48}),
    ("top_p", {"top_p": 0.5}, {"temperature": 0.0, "max_tokens": 48}),
]


@pytest.mark.parametrize(("name", "params", "left"), REFUSED)
def test_a_refused_parameter_goes_once_and_for_good(
    server: ScriptedServer, name: str, params: dict[str, Json], left: dict[str, Json]
) -> None:
    # The fault is always on for this model; it answers requests that do not hold the parameter.
    model = EndpointModel(
        ChatClient(read_address(server.base_url), "scripted", None, headers={"x-lim-fault": f"refuse-{name}"}),
        OpenAICompatOptions(max_tokens=48),
    )
    reply, refused = until_answered(model, **params)
    assert refused == [name]
    assert reply.sent_params == left
    reply, refused = until_answered(model, **params)
    assert refused == []
    assert server.traffic.chats == 3
    model.close()


def test_output_caps_are_lowered_to_what_fits() -> None:
    model = scripted(window=100)
    words = (Message("user", " ".join(["tree"] * 70)),)
    with pytest.raises(ParameterRefused):
        ask(model, words)
    assert ask(model, words).sent_params["max_tokens"] == 30
    with pytest.raises(CallFault) as caught:
        ask(model, (Message("user", " ".join(["tree"] * 90)),))
    assert caught.value.kind is FaultKind.CONTEXT_WINDOW
    assert (caught.value.window, caught.value.needed) == (100, 120)
    model.close()


def test_a_parameter_that_was_not_sent_is_no_parameter_fault() -> None:
    body = '{"error": {"message": "Invalid value for user", "param": "user"}}'
    assert isinstance(from_status(400, {}, body, sent()), ConfigError)


# ruff: noqa: E501 - providers' words are kept on one line
@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("For this model, temperature is not supported", ParameterRefused),
        ("Invalid model name m", ConfigError),
        ("API key not valid. Please pass a valid API key.", ConfigError),
        ("Could not finish the message because max_tokens or model output limit was reached.", CallFault),
    ],
)
def test_a_400_is_read_in_the_right_order(words: str, kind: type[LimError]) -> None:
    assert type(from_status(400, {}, json.dumps({"error": {"message": words}}), sent())) is kind


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (402, "Payment required", EndpointError),
        (403, "Forbidden", ConfigError),
        (405, "Method Not Allowed", ConfigError),
        (408, "timeout", CallFault),
        (413, "Request Entity Too Large", CallFault),
        (500, "input length exceeds maximum context length 4096", CallFault),
        (501, "not implemented", CallFault),
        (529, "overloaded", CallFault),
    ],
)
def test_other_statuses(status: int, words: str, kind: type[LimError]) -> None:
    error = from_status(status, {}, words, sent())
    assert isinstance(error, kind)
    if isinstance(error, CallFault):
        assert error.retry == (status in (408, 529))


WINDOWS = [
    (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 10000 tokens.",
        8192,
        10000,
    ),
    (
        "This model's maximum context length is 4097 tokens. However, you requested 4600 tokens (4100 in the messages, 500 in the "
        "completion). Please reduce the length of the messages or completion.",
        4097,
        4600,
    ),
    (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
        272000,
        300000,
    ),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 500. This model's maximum context length is 4096 tokens and your "
        "request has 4000 input tokens (500 > 4096 - 4000).",
        4096,
        4500,
    ),
    ("request (17005 tokens) exceeds the available context size (16384 tokens), try increasing it", 16384, 17005),
    (
        "Trying to keep the first 5203 tokens when context the overflows. However, the model is loaded with context length of only "
        "4096 tokens, which is not enough.",
        4096,
        5203,
    ),
    ("prompt is too long: 205000 tokens > 200000 maximum", 200000, 205000),
    (
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
        200000,
        210000,
    ),
    ("The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).", 1048576, 1050000),
    (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32768,
        40000,
    ),
    (
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 4600 tokens: "
        "4500 tokens from the input messages and 100 tokens for the completion.",
        4096,
        4600,
    ),
    ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096, 5000),
    ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.", 4081, 5000),
    (
        "This endpoint's maximum context length is 8,192 tokens. However, you requested about 9,500 tokens (9,000 of text input, "
        "500 in the output).",
        8192,
        9500,
    ),
    (
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 200 `max_new_tokens`",
        4096,
        4200,
    ),
    ("the prompt exceeds the context length; Please reduce the length of the messages", None, None),
    ("prompt too long; exceeded max context length by 512 tokens", None, None),
]


@pytest.mark.parametrize(("words", "window", "needed"), WINDOWS)
def test_window_refusals_in_many_words(words: str, window: int | None, needed: int | None) -> None:
    refusal = read_refusal(words, {})
    assert refusal is not None
    assert (refusal.window, refusal.needed) == (window, needed)
    fault = from_status(400, {}, json.dumps({"error": {"message": words}}), sent())
    assert isinstance(fault, CallFault)
    assert fault.kind is FaultKind.CONTEXT_WINDOW


@pytest.mark.parametrize(
    "words",
    [
        "Rate limit: 100 tokens per minute",
        "Invalid value for temperature",
        "roles must alternate",
        "context is required",
    ],
)
def test_other_words_are_no_window_refusal(words: str) -> None:
    assert read_refusal(words, {"code": None}) is None


# --- keys ---------------------------------------------------------------------------------------------------


def test_a_key_shows_nowhere(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-000000")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv(
        "OPENAI_CUSTOM_HEADERS", "X-Secret: sk-of-openai-000000\nAuthorization: Bearer sk-of-openai-000000"
    )
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-openai")
    model = endpoint(server, "unauthorised", KEY)
    assert KEY not in repr(model) + repr(model.chat) + repr(model.options)
    with pytest.raises(ConfigError, match="refuses the key") as caught:
        ask(model)
    told = "".join(traceback.format_exception(caught.value))
    assert "Incorrect API key provided: [key]" in told
    assert KEY not in told
    assert caught.value.__context__ is None  # the provider's own error, which quotes the key, is not kept
    seen = server.traffic.seen[-1]
    assert seen.authorization == KEY
    assert "sk-of-openai" not in str(seen.headers)
    assert "org-of-openai" not in str(seen.headers)
    model.close()


def test_without_a_key_the_environments_is_not_sent(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = endpoint(server)
    ask(model)
    check_connection(ModelSpec("openai-compat", "scripted", server.base_url), None)
    assert all(KEY not in f"{seen.authorization} {seen.headers}" for seen in server.traffic.seen)
    model.close()


def test_addresses_and_keys_are_checked_before_anything_is_sent() -> None:
    with pytest.raises(KeyMissing):
        open_model(ModelSpec("openai-compat", "gpt-5"))
    for url in ("localhost:8080", "ftp://h/v1", "http://user:pass@h/v1", "http://", "http://h:port/v1"):
        with pytest.raises(ConfigError) as caught:
            open_model(ModelSpec("openai-compat", "m", url))
        assert "pass" not in str(caught.value).replace("password", "")
    with pytest.raises(ConfigError, match="copy it again") as caught:
        open_model(ModelSpec("openai-compat", "m", "http://h/v1"), "sk bad\nkey")
    assert "sk bad" not in str(caught.value)
    with pytest.raises(ConfigError, match="No model is named"):
        open_model(ModelSpec("openai-compat", None, "http://h/v1"))


def test_addresses_are_normalised() -> None:
    address = read_address(" https://X.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21 ")
    assert address.url == "https://x.openai.azure.com/openai/deployments/d"
    assert address.query == (("api-version", "2024-10-21"),)
    assert address.azure
    assert read_address(None).url == "https://api.openai.com/v1"
    assert read_address("http://localhost:11434/v1/").root == "http://localhost:11434"
    assert read_address("http://10.0.0.2:8000/v1").exposed
    assert not read_address("http://[::1]:8000/v1").exposed


# --- the connection test --------------------------------------------------------------------------------------


def test_probe_of_a_healthy_endpoint(server: ScriptedServer) -> None:
    probe = check_connection(ModelSpec("openai-compat", None, server.base_url), None)
    assert probe.error is None
    assert probe.final_url == f"{server.base_url}/chat/completions"
    assert probe.models == ("scripted",)
    assert probe.spec.name == "scripted"  # the only one there
    assert probe.reply
    assert probe.seconds is not None
    assert probe.usage_reported
    assert probe.cached_tokens_reported
    assert probe.context_window == 16384
    assert probe.server_tokens
    model = open_model(probe.spec)
    assert model.context_window == 16384
    assert model.counter.source == "server"
    assert model.counter.count("one two").exact
    model.close()


def test_probe_finds_a_missing_v1(server: ScriptedServer) -> None:
    probe = check_connection(ModelSpec("openai-compat", "scripted", server.root), None)
    assert probe.error is None
    assert probe.final_url == f"{server.base_url}/chat/completions"
    assert any("is used" in warning for warning in probe.warnings)
    assert probe.spec.base_url == server.base_url


def test_probe_tells_what_is_wrong() -> None:
    with ScriptedServer(read_script(ScriptedOptions(), key=KEY)) as locked:
        wrong = check_connection(ModelSpec("openai-compat", "scripted", locked.base_url), "sk-wrong-000000")
        assert "refuses the key" in (wrong.error or "")
        none = check_connection(ModelSpec("openai-compat", "scripted", locked.base_url), None)
        assert "wants a key" in (none.error or "")
        right = check_connection(ModelSpec("openai-compat", "scripted", locked.base_url), KEY)
        assert right.error is None
        model = check_connection(ModelSpec("openai-compat", "gpt-9", locked.base_url), KEY)
        assert "has no model 'gpt-9'" in (model.error or "")
        assert model.models == ("scripted",)
    down = check_connection(ModelSpec("openai-compat", "m", "http://127.0.0.1:9/v1"), None)
    assert "Nothing answers" in (down.error or "")
    assert "no option" in (check_connection(ModelSpec("scripted", options={"x": 1}), None).error or "")
    assert "http" in (check_connection(ModelSpec("openai-compat", "m", "nonsense"), None).error or "")


def test_probe_adapts_parameters_and_tries_local_backends() -> None:
    with ScriptedServer(read_script(ScriptedOptions(faults=("refuse-temperature", "refuse-max_tokens")))) as picky:
        assert check_connection(ModelSpec("openai-compat", "scripted", picky.base_url), None).error is None
        assert picky.traffic.chats == 3
    probe = check_connection(ModelSpec("scripted"), None)
    assert probe.error is None
    assert probe.context_window == 16384


def test_all_errors_are_lims(server: ScriptedServer) -> None:
    for fault in [*FAULTS, *REFUSALS]:
        model = endpoint(server, fault, timeout=0.5)
        # Anything else than a reply or one of lim's own errors fails here.
        with contextlib.suppress(LimError):
            ask(model, seed=1, stop=["x"], logprobs=True, top_p=0.5)
        model.close()


# --- the counter ----------------------------------------------------------------------------------------------


def test_server_counts_in_batches_and_gives_token_starts() -> None:
    model = scripted()
    counter = model.counter
    texts = ["", "one two three", "", "naïve 漢字 café", "x" * 50]
    assert [count.n for count in counter.count_many(texts)] == [counter.count(text).n for text in texts]  # type: ignore[attr-defined]
    text = "The mill, naïve 漢字 🙂 grinds."
    starts = counter.token_starts(text)  # type: ignore[attr-defined]
    assert starts[0] == 0
    assert len(starts) == counter.count(text).n
    assert list(starts) == sorted(set(starts))
    model.close()
