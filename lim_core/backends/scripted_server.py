"""The scripted model's server: the chat-completions API over real HTTP on loopback, in a thread of its own.

Written on asyncio streams: a connection can be cut in the middle of a body, which no framework offers, and thousands of
requests cost little processor time beside the client that is measured.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import cast
from zlib import crc32

from lim_core.backends.scripted_faults import FAULTS, REFUSALS, Answer, Asked, completion, error
from lim_core.backends.scripted_rule import Rule, shared_prefix, split_tokens
from lim_core.errors import ConfigError, EndpointError
from lim_core.types import Json

_LARGEST_HEAD = 1 << 16
_LARGEST_BODY = 1 << 27
# Frame of each message in the scripted chat template, in tokens; the template joins contents with this text.
_JOINT = "\n\n"
FAULT_HEADER = "x-lim-fault"


@dataclass(frozen=True, slots=True)
class Script:
    """What the server does. `faults` go to the first chat requests in turn, "ok" being none; seconds throughout."""

    rule: Rule
    model: str = "scripted"
    latency: float = 0.0
    window: int = 16384
    cut_silently: bool = False
    fresh: bool = False
    faults: tuple[str, ...] = ()
    key: str | None = None
    retry_after: float = 1.0
    stall: float = 60.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it came in. `authorization` is as sent, for tests that look where a key went."""

    path: str
    authorization: str
    headers: Mapping[str, str]
    body: Mapping[str, Json]
    fault: str


@dataclass(slots=True)
class Traffic:
    """What the server was sent. `read_tokens` were not in the one-slot prefix cache; `cached_tokens` were."""

    seen: deque[Seen] = field(default_factory=lambda: deque(maxlen=10_000))
    chats: int = 0
    read_tokens: int = 0
    cached_tokens: int = 0
    most_in_flight: int = 0


def check_fault(name: str) -> str:
    """`name`, if it names a fault.

    Raises:
        ConfigError: it does not.
    """
    if name != "ok" and name not in FAULTS and name not in REFUSALS:
        raise ConfigError(f"The scripted model knows no fault {name!r}. Known: ok, {', '.join([*FAULTS, *REFUSALS])}.")
    return name


class ScriptedServer:
    """Listens on 127.0.0.1 from construction to `close`. Use as a context manager.

    A request asks for one fault with the header `X-Lim-Fault: NAME` or with the model name `MODEL!NAME`.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.traffic = Traffic()
        self._faults = deque(check_fault(name) for name in script.faults)
        self._slot: list[str] = []
        self._sendings: dict[str, int] = {}
        self._in_flight = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._port = 0
        self._failed: OSError | None = None
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="lim-scripted", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            raise EndpointError(f"The scripted model cannot listen on loopback ({self._failed}).") from self._failed

    @property
    def root(self) -> str:
        """`http://127.0.0.1:PORT`."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """The address to give to a client, `/v1` included."""
        return f"{self.root}/v1"

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and cut what is open. Idempotent."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    # --- HTTP -------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._listen())
        finally:
            self._loop.close()

    async def _listen(self) -> None:
        try:
            server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_LARGEST_HEAD, backlog=1024)
        except OSError as error_:
            self._failed = error_
            self._ready.set()
            return
        self._port = int(server.sockets[0].getsockname()[1])
        self._ready.set()
        await self._end.wait()
        server.close()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # the client went away, or does not speak HTTP
        except asyncio.CancelledError:
            pass  # the server stops; the connection is cut below
        finally:
            if task is not None:
                self._tasks.discard(task)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; False ends the connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        if length > _LARGEST_BODY:
            return False
        raw = await reader.readexactly(length)
        answer = await self._answer(method, target.split("?", 1)[0], headers, raw)
        if answer.stall:
            await asyncio.sleep(answer.stall)
        if answer.keep == 0:
            return False
        lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}", f"Content-Length: {len(answer.body)}"]
        lines += [f"{name}: {value}" for name, value in {"Content-Type": "application/json", **answer.headers}.items()]
        kept = answer.body if answer.keep is None else answer.body[: int(len(answer.body) * answer.keep)]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + kept)
        await writer.drain()
        if answer.keep is not None:
            writer.write_eof()
            await asyncio.sleep(0.01)  # let the half body out before the connection is reset
            return False
        return headers.get("connection", "").lower() != "close"

    async def _answer(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> Answer:
        authorization = headers.get("authorization", "").removeprefix("Bearer ")
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            return error(400, "The body is not JSON")
        if not isinstance(body, dict):
            return error(400, "The body is no JSON object")
        routes = {
            ("POST", "/v1/chat/completions"): self._chat,
            ("GET", "/v1/models"): self._models,
            ("POST", "/tokenize"): self._tokenize,
            ("POST", "/apply-template"): self._apply_template,
        }
        route = routes.get((method, path))
        fault = self._fault(headers, body) if path == "/v1/chat/completions" else ""
        self.traffic.seen.append(Seen(path, authorization, headers, body, fault))
        if route is None:
            return FAULTS["no-path"](Asked(body, authorization, 0, 0, 0))
        if self.script.key is not None and authorization != self.script.key:
            return error(401, "Incorrect API key provided", code="invalid_api_key")
        if path != "/v1/chat/completions":
            return route(body, fault)
        self._in_flight += 1
        self.traffic.most_in_flight = max(self.traffic.most_in_flight, self._in_flight)
        try:
            answer = route(body, fault)
            if self.script.latency:
                await asyncio.sleep(self.script.latency)
            return answer
        finally:
            self._in_flight -= 1

    # --- the API ------------------------------------------------------------------------------------

    def _fault(self, headers: Mapping[str, str], body: Mapping[str, Json]) -> str:
        asked = headers.get(FAULT_HEADER) or str(body.get("model", "")).partition("!")[2]
        fault = asked or (self._faults.popleft() if self._faults else "")
        return "" if fault == "ok" else fault

    def _chat(self, body: Mapping[str, Json], fault: str) -> Answer:
        script = self.script
        self.traffic.chats += 1
        prompt = _template(body)
        if prompt is None:
            return error(400, "messages must be a list of role and content")
        tokens = split_tokens(prompt)
        if fault in FAULTS:
            asked = Asked(
                body, script.key or self.traffic.seen[-1].authorization, len(tokens), script.retry_after, script.stall
            )
            return FAULTS[fault](asked)
        refused = fault.removeprefix("refuse-")
        if fault and (fault not in REFUSALS or body.get(refused) is not None):
            return REFUSALS[fault]() if fault in REFUSALS else error(400, f"No fault {fault!r} is known here")
        model = str(body.get("model", "")).partition("!")[0]
        if model != script.model:
            return error(404, f"The model `{model}` does not exist", code="model_not_found")
        cap = body.get("max_completion_tokens", body.get("max_tokens"))
        output = cap if isinstance(cap, int) and not isinstance(cap, bool) else 256
        if script.cut_silently:
            # As Ollama does: the beginning goes, the answer comes, nothing is said.
            tokens = tokens[max(0, len(tokens) + output - script.window) :]
            prompt = "".join(tokens)
        elif len(tokens) + output > script.window:
            needed = len(tokens) + output
            return error(
                400,
                f"This model's maximum context length is {script.window} tokens. However, you requested {needed} tokens "
                f"({len(tokens)} in the messages, {output} in the completion).",
                code="context_length_exceeded",
            )
        cached = min(shared_prefix(self._slot, tokens), max(0, len(tokens) - 1))
        self._slot = tokens
        self.traffic.cached_tokens += cached
        self.traffic.read_tokens += len(tokens) - cached
        sending = self._sendings.get(prompt, 0) if script.fresh else 0
        if script.fresh:
            self._sendings[prompt] = sending + 1
        said = split_tokens(script.rule.answer(prompt, sending))
        text = "".join(said[:output]) if output >= 0 else ""
        finish = "length" if len(said) > output else "stop"
        return completion(model, text, len(tokens), min(len(said), output), cached, finish=finish)

    def _models(self, body: Mapping[str, Json], fault: str) -> Answer:
        entry = {"id": self.script.model, "object": "model", "owned_by": "lim", "max_model_len": self.script.window}
        return Answer(200, json.dumps({"object": "list", "data": [entry]}).encode())

    def _tokenize(self, body: Mapping[str, Json], fault: str) -> Answer:
        content = body.get("content")
        parts = content if isinstance(content, list) else [content]
        tokens: list[object] = []
        for part in parts:
            pieces = split_tokens(part) if isinstance(part, str) else [part]
            for piece in pieces:
                number = piece if isinstance(piece, int) else 1 + crc32(str(piece).encode("utf-8", "replace")) % 60_000
                tokens.append({"id": number, "piece": piece} if body.get("with_pieces") else number)
        return Answer(200, json.dumps({"tokens": tokens}).encode())

    def _apply_template(self, body: Mapping[str, Json], fault: str) -> Answer:
        prompt = _template(body)
        return (
            error(400, "messages missing") if prompt is None else Answer(200, json.dumps({"prompt": prompt}).encode())
        )


def _template(body: Mapping[str, Json]) -> str | None:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return None
    contents = [cast(object, m.get("content")) if isinstance(m, dict) else None for m in cast(Sequence[Json], messages)]
    return _JOINT.join(c for c in contents if isinstance(c, str)) if all(isinstance(c, str) for c in contents) else None
