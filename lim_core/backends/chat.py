"""One chat-completions request over `AsyncOpenAI`: the only place where lim's backends speak HTTP to a model."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from lim_core.backends.address import Address
from lim_core.backends.faults import Sent, WindowFault, from_network, from_status
from lim_core.backends.quirks import Quirks
from lim_core.backends.reply import read_reply
from lim_core.backends.secrets import strike
from lim_core.errors import CallFault, ConfigError, FaultKind, LimError, ParameterRefused
from lim_core.types import Json, Reply, Request

if TYPE_CHECKING:
    from openai import AsyncOpenAI

# Servers on loopback need no key, yet the client insists on one.
_NO_KEY = "no-key-needed"
_CLOSE_SECONDS = 2.0
_HEADERS = frozenset(
    {
        "host",
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "transfer-encoding",
        "user-agent",
        # The client library reads this one back from the request to know that the body is wanted unread.
        "x-stainless-raw-response",
    }
)
_OPENAI_HEADERS = frozenset({"openai-organization", "openai-project"})


class ProviderSaid(Exception):
    """The words of the error that a lim error was made from, key struck; stands as its cause in a traceback."""


@dataclass(slots=True)
class _Connection:
    client: AsyncOpenAI
    # An asynchronous generator whose `finally` closes the client: a loop shuts such generators down before it ends.
    keeper: AsyncGenerator[None, None]


@dataclass
class ChatClient:
    """Sends requests for one model at one address; safe to use from several event loops, each has its own connections.

    `extra` goes into every body beside the request's own parameters. `timeout` is seconds without a byte received.
    """

    address: Address
    model: str
    key: str | None = field(repr=False)
    timeout: float = 120.0
    extra: Mapping[str, Json] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    quirks: Quirks = field(default_factory=Quirks, repr=False)
    _connections: WeakKeyDictionary[asyncio.AbstractEventLoop, _Connection] = field(
        default_factory=WeakKeyDictionary, repr=False
    )
    # Loops run in threads of their own (a run each), and all of them reach into the table above.
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _closed: bool = field(default=False, repr=False)

    async def send(self, request: Request) -> Reply:
        """Send one HTTP request, without retries.

        Raises:
            CallFault: the request failed; ParameterRefused where the next try will be sent in an adapted form.
            ConfigError: no request can succeed.
            EndpointError: refused connection, quota gone, or told to wait for long.
        """
        import httpx2
        import openai

        params = self.quirks.adapt({**self.extra, **request.params})
        sent = Sent(self.model, self.address.url, tuple(params), self.key)
        completions = (await self._connect()).client.chat.completions.with_raw_response
        started = time.perf_counter()
        try:
            answer = await completions.create(
                model=self.model,
                messages=[{"role": m.role, "content": m.content} for m in request.messages],  # type: ignore[misc]
                extra_body=params,
            )
            body = answer.content
            seconds = time.perf_counter() - started
            failure: LimError | None = None
            cause: Exception | None = None
        except openai.APIStatusError as error:
            failure = from_status(error.status_code, error.response.headers, error.response.text, sent)
            cause = error
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            failure, cause = from_network(error, sent), error
        except UnicodeEncodeError as error:
            failure, cause = _not_text(sent), error
        if failure is not None:
            # Raised out here, so that the provider's own error, which may quote the key, is not its context.
            raise self._adapted(failure, params) from ProviderSaid(
                f"{type(cause).__name__}: {strike(str(cause), self.key)}"
            )
        return read_reply(body, answer.headers, seconds, params, sent)

    def close(self) -> None:
        """Close the connections of every loop that still runs. Idempotent; no request may follow."""
        with self._lock:
            self._closed = True
            connections = list(self._connections.items())
            self._connections.clear()
        for loop, connection in connections:
            if not loop.is_running():
                continue  # its generators were shut down with it
            closing = asyncio.run_coroutine_threadsafe(connection.keeper.aclose(), loop)
            if _running_loop() is not loop:
                # A loop that is about to stop may never get to it.
                with contextlib.suppress(FutureTimeout, RuntimeError):
                    closing.result(_CLOSE_SECONDS)

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._closed:
                raise ConfigError(f"The connection to {self.address.url} was closed: open the model again.")
            known = self._connections.get(loop)
            if known is not None:
                return known
            client = self._new_client()
            connection = self._connections[loop] = _Connection(client, _keep(client))
        await anext(connection.keeper)
        return connection

    def _new_client(self) -> AsyncOpenAI:
        import httpx2
        from openai import AsyncOpenAI

        key = self.key if self.key is not None else _NO_KEY
        own = {"authorization": f"Bearer {key}", **self.headers}
        if self.address.azure and self.key is not None:
            own["api-key"] = key

        async def only_own_headers(request: httpx2.Request) -> None:
            # The client library adds headers from OPENAI_* variables, which belong to OpenAI, to whatever address it is given.
            kept = _HEADERS | _OPENAI_HEADERS if self.address.host == "api.openai.com" else _HEADERS
            for name in [name for name in request.headers if name.lower() not in kept]:
                del request.headers[name]
            request.headers.update(own)

        # A redirect would carry prompt and key to an address that nobody named. How many requests are in flight is the
        # runner's business, so the pool sets no limit of its own.
        http = httpx2.AsyncClient(
            trust_env=not self.address.loopback,
            follow_redirects=False,
            timeout=httpx2.Timeout(self.timeout, connect=min(10.0, self.timeout), pool=None),
            event_hooks={"request": [only_own_headers]},
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=4.0),
        )
        return AsyncOpenAI(
            api_key=key,
            base_url=self.address.url,
            default_query=dict(self.address.query),
            max_retries=0,
            http_client=http,
        )

    def _adapted(self, failure: LimError, params: Mapping[str, Json]) -> LimError:
        """A refused parameter is dropped, renamed or capped for the next try; with nothing left to change, no try will pass."""
        if isinstance(failure, ParameterRefused):
            if self.quirks.learn(failure.parameter, str(failure), params):
                return failure
            return ConfigError(f"{failure} lim has nothing left to change: choose other parameters or another model.")
        if isinstance(failure, WindowFault) and self.quirks.shrink(failure.window, failure.prompt, params):
            return ParameterRefused(f"{failure} The output cap was lowered to fit.", "max_tokens")
        return failure


async def _keep(client: AsyncOpenAI) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await client.close()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _not_text(sent: Sent) -> LimError:
    return CallFault(
        FaultKind.BAD_REPLY, f"The prompt for {sent.model} holds a lone surrogate and cannot be sent as UTF-8."
    )
