"""Any endpoint that speaks the OpenAI chat-completions API: OpenAI, Azure, vLLM, Ollama, LM Studio, llama-server, gateways."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from lim_core.backends.address import Address, read_address
from lim_core.backends.chat import ChatClient
from lim_core.backends.registry import ModelSpec, backends, option, read_options
from lim_core.backends.server_tokens import ServerCounter
from lim_core.errors import ConfigError, KeyMissing
from lim_core.types import Counter, Json, Reply, Request


@dataclass(frozen=True, slots=True)
class OpenAICompatOptions:
    """Options of an OpenAI-compatible endpoint."""

    max_tokens: int = option(256, "Output cap of a trial, in tokens. Reasoning models need far more.")
    temperature: float = option(0.0, "Sampling temperature of a trial.")
    timeout: float = option(120.0, "Seconds without a byte before a request is given up.")
    slots: int = option(8, "Requests in flight at once.")
    context_window: int | None = option(None, "Window in tokens, where the endpoint does not say; empty is unknown.")
    server_tokens: bool = option(
        False, "Count with the server's own /tokenize (llama.cpp); the connection test finds out."
    )


@backends.register("openai-compat", title="OpenAI-compatible endpoint", order=10)
class OpenAICompat:
    """Any endpoint with the chat-completions API: a base URL, a model's name and, where the endpoint wants one, a key."""

    Options = OpenAICompatOptions

    @staticmethod
    def open(spec: ModelSpec, key: str | None) -> EndpointModel:
        """Open the model `spec.name` at `spec.base_url` (default: OpenAI). No request is sent.

        Raises:
            ConfigError: no model named, the base URL or the key is malformed, or an option is wrong.
            KeyMissing: OpenAI without a key.
        """
        options = read_options(OpenAICompatOptions, spec.options, "openai-compat")
        if not spec.name:
            raise ConfigError("No model is named: give one with --model, or choose one on the Models page.")
        address = read_address(spec.base_url)
        key = check_key(key)
        if key is None and address.host == "api.openai.com":
            raise KeyMissing("OpenAI wants a key: set OPENAI_API_KEY, or type one on the Models page.")
        return EndpointModel(ChatClient(address, spec.name, key, timeout=options.timeout), options)


@dataclass
class EndpointModel:
    """An opened model at an OpenAI-compatible endpoint."""

    chat: ChatClient
    options: OpenAICompatOptions
    _counter: Counter | None = field(default=None, repr=False)
    # Pages and runs count with the same model from several threads.
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def name(self) -> str:
        """The model's name at the endpoint."""
        return self.chat.model

    @property
    def endpoint(self) -> str:
        """Origin and path; no query, no key."""
        return self.chat.address.url

    @property
    def slots(self) -> int:
        """Requests in flight at once."""
        return self.options.slots

    @property
    def context_window(self) -> int | None:
        """The window that was set, or that the connection test found; None is unknown."""
        return self.options.context_window

    @property
    def counter(self) -> Counter:
        """The server's own tokenizer where it is known to have one, else the best counter for the model's name."""
        with self._lock:
            if self._counter is None:
                self._counter = self._new_counter(self.chat.address)
            return self._counter

    @property
    def default_params(self) -> Mapping[str, Json]:
        """Temperature and output cap."""
        return {"temperature": self.options.temperature, "max_tokens": self.options.max_tokens}

    async def complete(self, request: Request) -> Reply:
        """Send one HTTP request, without retries; see `ChatClient.send` for what it raises."""
        return await self.chat.send(request)

    def close(self) -> None:
        """Close the connections. Idempotent."""
        self.chat.close()
        with self._lock:
            if isinstance(self._counter, ServerCounter):
                self._counter.close()

    def _new_counter(self, address: Address) -> Counter:
        if self.options.server_tokens:
            return ServerCounter(address.root, self.chat.key)
        from lim_core.tokens import counter_for

        return counter_for(self.name)


def check_key(key: str | None) -> str | None:
    """The key without the white space that pasting adds; empty is none.

    Raises:
        ConfigError: a key that no HTTP header can carry. The message does not quote it.
    """
    key = (key or "").strip()
    if not key:
        return None
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError("The key holds characters that no key has: copy it again.")
    return key
