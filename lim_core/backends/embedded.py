"""The embedded model: llama.cpp in this process, reached through its own HTTP server on loopback.

One server a process for each file, window and template: the weights are mapped once however many runs and sessions use
them, and raw llama.cpp contexts are not thread-safe while the server is.
"""

from __future__ import annotations

import atexit
import os
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from weakref import WeakSet

from lim_core.backends.address import read_address
from lim_core.backends.chat import ChatClient
from lim_core.backends.registry import ModelSpec, backends, option, read_options
from lim_core.backends.server_tokens import ServerCounter
from lim_core.backends.templates import ONE_LINE, plain_template
from lim_core.backends.weights import Weights, find_weights
from lim_core.errors import ConfigError
from lim_core.types import Counter, Json, Reply, Request

# Prompts are read at some 300 tokens a second on two cores, so a full window takes a minute, and others may wait before it.
_TIMEOUT = 900.0
_MOST_THREADS = 8
_HTTP_THREADS = 16
# Tokens read between two looks at whether the client is still there: it bounds how long stopping can take.
_BATCH = 512


@dataclass(frozen=True, slots=True)
class EmbeddedOptions:
    """Options of the embedded model."""

    n_ctx: int = option(16384, "Context window in tokens.")
    max_tokens: int = option(48, "Output cap of a trial, in tokens.")
    temperature: float = option(0.0, "Sampling temperature of a trial.")
    examples: bool = option(False, "Put two worked examples in front of every prompt (plain template only).")
    one_line: bool | None = option(
        None, "Keep answers to one non-empty line; empty means: for models without a chat template."
    )
    threads: int | None = option(None, "Threads for reading prompts; empty takes the cores of this machine, at most 8.")


@dataclass(frozen=True, slots=True)
class _ServerKey:
    sha256: str
    n_ctx: int
    template: str


@dataclass(frozen=True, slots=True)
class _Running:
    """A server that listens. `server` is only kept alive: it stops when it is collected."""

    server: Any
    root: str
    key: str = field(repr=False)
    n_ctx: int


_servers: dict[_ServerKey, _Running] = {}
_opened: WeakSet[EmbeddedModel] = WeakSet()
# Sessions open the model from threads of their own; starting a server twice would map the weights twice.
_starting = threading.Lock()


@backends.register("embedded", title="Embedded model (small, no key, no network)", order=0)
class Embedded:
    """Gemma 3 270M, or the GGUF file that LIM_GGUF names, run by llama.cpp in this process.

    It is small: it shows real effects of position and volume, not the skill of a big model.
    """

    Options = EmbeddedOptions

    @staticmethod
    def open(spec: ModelSpec, key: str | None = None) -> EmbeddedModel:
        """Start the server, or share the one that runs.

        `spec.name` is a GGUF file; None takes LIM_GGUF, then the packaged model.

        Raises:
            ConfigError: the file is missing or no GGUF file, an option is wrong, or llama.cpp cannot load the model.
        """
        options = read_options(EmbeddedOptions, spec.options, "embedded")
        if options.n_ctx < 256:
            raise ConfigError(f"n_ctx is {options.n_ctx}: give the embedded model a window of at least 256 tokens.")
        weights = find_weights(spec.name or os.environ.get("LIM_GGUF") or None)
        template = "" if weights.has_template else plain_template(examples=options.examples)
        running = _serve(weights, template, options)
        model = EmbeddedModel(weights, running, template, options)
        with _starting:
            _opened.add(model)
        return model


class EmbeddedModel:
    """An opened embedded model; closing it closes its connections, the server stays for the next run."""

    def __init__(self, weights: Weights, running: _Running, template: str, options: EmbeddedOptions) -> None:
        one_line = options.one_line if options.one_line is not None else not weights.has_template
        # cache_prompt is the server's default; said here, it is part of what is recorded as sent.
        extra: dict[str, Json] = {"grammar": ONE_LINE} if one_line else {}
        self._weights = weights
        self._options = options
        self._window = running.n_ctx
        self._one_line = one_line
        self._chat = ChatClient(
            read_address(f"{running.root}/v1"), weights.name, running.key, timeout=_TIMEOUT, extra=extra
        )
        self._counter = ServerCounter(running.root, running.key)
        form = sha256(f"{template}\n{extra.get('grammar', '')}".encode()).hexdigest()[:16]
        self._endpoint = f"embedded:{weights.sha256}:{running.n_ctx}:{form}"

    def __repr__(self) -> str:
        return f"EmbeddedModel({self.name!r}, n_ctx={self._window})"

    @property
    def name(self) -> str:
        """The weights' name."""
        return self._weights.name

    @property
    def endpoint(self) -> str:
        """sha256 of the weights, window, and hash of template and grammar."""
        return self._endpoint

    @property
    def slots(self) -> int:
        """One: a second request would push the first one's prefix out of the cache."""
        return 1

    @property
    def context_window(self) -> int | None:
        """The server's window in tokens."""
        return self._window

    @property
    def counter(self) -> Counter:
        """The model's own tokenizer."""
        return self._counter

    @property
    def default_params(self) -> Mapping[str, Json]:
        """Greedy, a short answer, and for models without a chat template the end at the first newline."""
        params: dict[str, Json] = {"temperature": self._options.temperature, "max_tokens": self._options.max_tokens}
        return {**params, "stop": ["\n"]} if self._one_line else params

    async def complete(self, request: Request) -> Reply:
        """Send one HTTP request, without retries; see `ChatClient.send` for what it raises."""
        return await self._chat.send(request)

    def close(self) -> None:
        """Close the connections. Idempotent."""
        self._chat.close()
        self._counter.close()


def _serve(weights: Weights, template: str, options: EmbeddedOptions) -> _Running:
    identity = _ServerKey(weights.sha256, options.n_ctx, template)
    with _starting:
        running = _servers.get(identity)
        if running is None:
            running = _servers[identity] = _start(weights, template, options)
        return running


def _start(weights: Weights, template: str, options: EmbeddedOptions) -> _Running:
    try:
        import xllamacpp
    except ImportError as error:
        raise ConfigError(f"llama.cpp cannot be loaded ({error}): run `pip install -r requirements.txt`.") from error

    params = xllamacpp.CommonParams()
    params.model.path = str(weights.path)
    params.model_alias = {weights.name}
    params.n_ctx = options.n_ctx
    params.fit_params = False  # a window that shrinks to fit the memory would change what is measured
    params.n_parallel = 1
    params.n_batch = _BATCH
    params.swa_full = True  # without it a model with sliding-window layers reuses no prefix
    params.use_jinja = True
    params.chat_template = template
    # A copy of old prompts in memory and checkpoints would answer from elsewhere than the one slot, and cost memory.
    params.cache_ram_mib = 0
    params.n_ctx_checkpoints = 0
    threads = options.threads or min(_cores(), _MOST_THREADS)
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.n_threads_http = _HTTP_THREADS
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    key = secrets.token_urlsafe(32)
    params.api_keys = [key]
    params.endpoint_slots = False
    params.cors_origins = ""
    params.cors_credentials = False
    params.ui = False
    params.verbosity = -1
    try:
        server = xllamacpp.Server(params)
    except (RuntimeError, ValueError, OSError) as error:
        raise ConfigError(
            f"llama.cpp cannot load {weights.path.name} ({error}): name another GGUF file in LIM_GGUF or lower n_ctx."
        ) from error
    root: str = server.listening_address
    return _Running(server, root, key, _window(root, key, options.n_ctx))


def _cores() -> int:
    """Cores this process may use, where the system tells, else cores there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _window(root: str, key: str, asked: int) -> int:
    """The window that the server really has; a model trained for less may get less."""
    import httpx2

    with httpx2.Client(trust_env=False, timeout=60.0, headers={"Authorization": f"Bearer {key}"}) as http:
        try:
            meta = http.get(f"{root}/v1/models").raise_for_status().json()["data"][0]["meta"]
            return int(meta["n_ctx"])
        except (httpx2.HTTPError, ValueError, KeyError, IndexError, TypeError):
            return asked


def stop_servers() -> None:
    """Stop every embedded server of this process; models opened before are dead after it.

    For the end of the process: left running, llama.cpp's threads crash it on the way out. Stopping one waits, with the
    interpreter held, for the request it works on, and only a cut connection makes it drop that request.
    """
    with _starting:
        for model in tuple(_opened):
            model.close()
        _servers.clear()


atexit.register(stop_servers)
