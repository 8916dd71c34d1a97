"""The scripted model: answers from a rule with a planted position effect, over the same HTTP client as every endpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256

from lim_core.backends.address import read_address
from lim_core.backends.chat import ChatClient
from lim_core.backends.registry import ModelSpec, backends, option, read_options
from lim_core.backends.scripted_rule import Rule, read_profile
from lim_core.backends.scripted_server import Script, ScriptedServer
from lim_core.backends.server_tokens import ServerCounter
from lim_core.errors import ConfigError
from lim_core.types import Counter, Json, Reply, Request


@dataclass(frozen=True, slots=True)
class ScriptedOptions:
    """Options of the scripted model."""

    profile: str = option("u", "u, flat, primacy, recency, inverted, distracted, or points like 0:0.9,0.5:0.2,1:0.9.")
    edge: float = option(0.95, "Accuracy where the profile is high.")
    middle: float = option(0.2, "Accuracy where the profile is low.")
    oracle: float = option(1.0, "Accuracy with the gold document alone.")
    closed_book: float = option(0.0, "Accuracy without the gold document.")
    needles: tuple[str, ...] = option((), "Answers; the first document that holds one is gold. Empty: by shared words.")
    seed: int = option(0, "Seed of the draws.")
    fresh: bool = option(False, "Draw anew where the same prompt is sent again.")
    latency: float = option(0.0, "Seconds before each answer.")
    window: int = option(16384, "Context window in tokens.")
    cut_silently: bool = option(False, "Cut the prompt's beginning instead of refusing it when it is over the window.")
    faults: tuple[str, ...] = option((), "Faults of the first requests in turn; ok is none.")
    retry_after: float = option(1.0, "Seconds in Retry-After of a rate-limit fault.")
    stall: float = option(60.0, "Seconds that a stalled answer waits.")
    timeout: float = option(60.0, "Seconds without a byte before a request is given up.")
    max_tokens: int = option(48, "Output cap of a trial, in tokens.")
    slots: int = option(64, "Requests in flight at once.")


@backends.register("scripted", title="Scripted model (answers from a rule)", order=90)
class Scripted:
    """Answers from a rule with a planted accuracy by position. No model at all: for an offline tour, tests and benchmarks."""

    Options = ScriptedOptions

    @staticmethod
    def open(spec: ModelSpec, key: str | None = None) -> ScriptedModel:
        """Start its server on loopback and a client to it. `key`, where given, is what the server asks for.

        Raises:
            ConfigError: an option is wrong.
        """
        options = read_options(ScriptedOptions, spec.options, "scripted")
        return ScriptedModel(ScriptedServer(read_script(options, spec.name or "scripted", key)), options, key)


class ScriptedModel:
    """An opened scripted model; closing it stops its server. `server.traffic` says what was sent."""

    def __init__(self, server: ScriptedServer, options: ScriptedOptions, key: str | None) -> None:
        self.server = server
        self._options = options
        self._chat = ChatClient(read_address(server.base_url), server.script.model, key, timeout=options.timeout)
        self._counter = ServerCounter(server.root, key)
        # The port changes with every start, the rule does not; latency and faults do not change an answer.
        told = asdict(options)
        rule = {name: told[name] for name in sorted(told) if name not in _NO_ANSWER}
        self._endpoint = f"scripted:{sha256(json.dumps(rule).encode()).hexdigest()[:16]}"

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r}, profile={self._options.profile!r})"

    @property
    def name(self) -> str:
        """The name it serves under."""
        return self.server.script.model

    @property
    def endpoint(self) -> str:
        """Hash of everything that settles its answers."""
        return self._endpoint

    @property
    def slots(self) -> int:
        """Requests in flight at once."""
        return self._options.slots

    @property
    def context_window(self) -> int | None:
        """Its window in tokens."""
        return self._options.window

    @property
    def counter(self) -> Counter:
        """The server's own tokenizer."""
        return self._counter

    @property
    def default_params(self) -> Mapping[str, Json]:
        """Greedy, and the output cap."""
        return {"temperature": 0.0, "max_tokens": self._options.max_tokens}

    async def complete(self, request: Request) -> Reply:
        """Send one HTTP request, without retries; see `ChatClient.send` for what it raises."""
        return await self._chat.send(request)

    def close(self) -> None:
        """Close connections and server. Idempotent."""
        self._chat.close()
        self._counter.close()
        self.server.close()


_NO_ANSWER = frozenset({"latency", "faults", "retry_after", "stall", "timeout", "slots", "max_tokens"})


def read_script(options: ScriptedOptions, model: str = "scripted", key: str | None = None) -> Script:
    """The server's script from the options.

    Raises:
        ConfigError: a value is out of range.
    """
    for name in ("edge", "middle", "oracle", "closed_book"):
        if not 0 <= getattr(options, name) <= 1:
            raise ConfigError(f"Option {name} of backend scripted is a probability: give a value from 0 to 1.")
    if options.window < 1 or options.latency < 0 or options.slots < 1:
        raise ConfigError("Options window and slots of backend scripted are at least 1, latency at least 0.")
    profile = read_profile(options.profile, options.edge, options.middle)
    return Script(
        rule=Rule(profile, options.oracle, options.closed_book, options.needles, options.seed),
        model=model,
        latency=options.latency,
        window=options.window,
        cut_silently=options.cut_silently,
        fresh=options.fresh,
        faults=options.faults,
        key=key,
        retry_after=options.retry_after,
        stall=options.stall,
    )
