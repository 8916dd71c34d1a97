"""The connection test: where requests go, what answers, and what it reports. It never raises; what failed is in the Probe."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lim_core.backends.address import Address, read_address
from lim_core.backends.faults import Sent, from_network, from_status
from lim_core.backends.openai_compat import check_key
from lim_core.backends.registry import ModelSpec, backends
from lim_core.backends.served_window import (
    about_ollama,
    window_in_list,
    window_in_props,
    window_of_lm_studio,
    window_of_ollama,
)
from lim_core.backends.server_tokens import ServerCounter
from lim_core.errors import ConfigError, LimError, ParameterRefused
from lim_core.types import Json, Message, Model, Reply, Request

if TYPE_CHECKING:
    import httpx2

_TRIES = 6  # one call, and one more for each parameter that may have to go
_LIST_TIMEOUT = 15.0
_QUESTION = (Message("user", "Question: Which word comes after one, two, three?\nAnswer:"),)


@dataclass(frozen=True, slots=True)
class Probe:
    """What a connection test found. None is unknown; `error` is one sentence, None where a call was answered.

    `spec` is the spec to go on with: the address that answered, and the window and tokenizer that were found.
    `seconds` is the latency of the one timed call.
    """

    spec: ModelSpec
    final_url: str
    models: tuple[str, ...] = ()
    reply: str | None = None
    seconds: float | None = None
    usage_reported: bool | None = None
    cached_tokens_reported: bool | None = None
    context_window: int | None = None
    server_tokens: bool = False
    warnings: tuple[str, ...] = ()
    error: str | None = None
    exit_code: int = 0

    def lines(self) -> tuple[str, ...]:
        """What was found, one fact a line, for a terminal."""

        def told(value: bool | None) -> str:
            return "unknown" if value is None else "yes" if value else "no"

        facts = [f"address           {self.final_url}"]
        if self.models:
            facts.append(f"models            {', '.join(self.models[:20])}")
        if self.seconds is not None:
            facts.append(f"one call          {self.seconds:.2f} s, reply: {self.reply!r}")
        facts += [
            f"usage reported    {told(self.usage_reported)}",
            f"cached tokens     {told(self.cached_tokens_reported)}",
            f"context window    {self.context_window if self.context_window is not None else 'unknown'}",
        ]
        facts += [f"warning           {warning}" for warning in self.warnings]
        return (*facts, f"error             {self.error}") if self.error is not None else tuple(facts)

    def to_json(self) -> dict[str, Json]:
        """What was found; unknown is null."""
        return {
            "final_url": self.final_url,
            "models": list(self.models),
            "reply": self.reply,
            "seconds": self.seconds,
            "usage_reported": self.usage_reported,
            "cached_tokens_reported": self.cached_tokens_reported,
            "context_window": self.context_window,
            "warnings": list(self.warnings),
            "error": self.error,
        }


def test_connection(spec: ModelSpec, key: str | None) -> Probe:
    """List the models, send one timed call, and find out what the endpoint reports. Never raises a LimError."""
    try:
        if spec.backend != "openai-compat":
            return _try_local(spec, key)
        return _try_endpoint(spec, check_key(key), read_address(spec.base_url))
    except LimError as error:
        return Probe(spec, spec.base_url or spec.backend, error=str(error), exit_code=error.exit_code)


# pytest collects what is called test_*; this is not one.
test_connection.__test__ = False  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class _Listing:
    """A model list, or None and the error in its place; `reached` is false where not even an HTTP answer came."""

    address: Address
    entries: tuple[Mapping[str, object], ...] | None = None
    failure: LimError | None = None
    reached: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(str(entry["id"]) for entry in self.entries or () if "id" in entry)


@dataclass
class _Site:
    """Plain GET and POST beside the chat client: same origin, same key, no proxy on loopback."""

    http: httpx2.Client
    key: str | None = field(repr=False)

    def get(self, url: str) -> object:
        """JSON of a GET, or None where there is none."""
        return self._json("GET", url, None)

    def post(self, url: str, body: Mapping[str, object]) -> object:
        """JSON of a POST, or None where there is none."""
        return self._json("POST", url, body)

    def list_models(self, address: Address) -> _Listing:
        import httpx2

        sent = Sent("the model list", address.url, (), self.key)
        try:
            response = self.http.get(f"{address.url}/models", params=list(address.query))
            if response.status_code != 200:
                return _Listing(address, None, from_status(response.status_code, response.headers, response.text, sent))
            body = response.json()
        except httpx2.HTTPError as error:
            return _Listing(address, None, from_network(error, sent), reached=False)
        except ValueError:
            return _Listing(address, None, ConfigError(f"{address.url}/models is no model list: check the base URL."))
        data = body.get("data") if isinstance(body, dict) else body
        if not isinstance(data, list):
            return _Listing(address, None, ConfigError(f"{address.url}/models is no model list: check the base URL."))
        return _Listing(address, tuple(entry for entry in data if isinstance(entry, dict)))

    def _json(self, method: str, url: str, body: Mapping[str, object] | None) -> object:
        import httpx2

        try:
            response = self.http.request(method, url, json=body) if body is not None else self.http.get(url)
            return response.json() if response.status_code == 200 else None
        except (httpx2.HTTPError, ValueError):
            return None  # asked on the off-chance: most servers have no such path


def _try_local(spec: ModelSpec, key: str | None) -> Probe:
    model = backends[spec.backend].part.open(spec, key)
    try:
        answered = _call(model)
        return replace(
            _report(Probe(spec, model.endpoint, models=(model.name,)), answered),
            context_window=model.context_window,
            server_tokens=isinstance(model.counter, ServerCounter),
        )
    finally:
        model.close()


def _try_endpoint(spec: ModelSpec, key: str | None, address: Address) -> Probe:
    import httpx2

    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    if address.azure and key is not None:
        headers["api-key"] = key
    with httpx2.Client(
        trust_env=not address.loopback, timeout=_LIST_TIMEOUT, headers=headers, follow_redirects=False
    ) as http:
        site = _Site(http, key)
        listing = _find(site, address)
        name = spec.name or (listing.names[0] if len(listing.names) == 1 else None)
        probe = _describe(Probe(replace(spec, name=name), ""), listing, address, key)
        if not listing.reached:
            return replace(
                probe, error=str(listing.failure), exit_code=listing.failure.exit_code if listing.failure else 3
            )
        if name is None:
            some = f" It offers {', '.join(listing.names[:8])}." if listing.names else ""
            return replace(probe, error=f"Name the model to test.{some}", exit_code=2)
        probe = _try_model(site, probe, listing, name, key)
        if probe.error is not None and listing.entries is None:
            # No list to go by: the path may be the fault. The key goes to the same origin only.
            other = replace(listing, address=_other(address))
            again = _try_model(
                site, _describe(Probe(replace(spec, name=name), ""), other, address, key), other, name, key
            )
            probe = again if again.error is None else probe
        return probe


def _describe(probe: Probe, listing: _Listing, asked: Address, key: str | None) -> Probe:
    """Address, model list and what is to be said about the address."""
    address = listing.address
    warnings = _warn(address, key)
    if address != asked:
        warnings += (f"{asked.url} does not answer; {address.url} does, and is used.",)
    spec = replace(probe.spec, base_url=_with_query(address))
    return replace(
        probe, spec=spec, final_url=f"{address.url}/chat/completions", models=listing.names, warnings=warnings
    )


def _try_model(site: _Site, probe: Probe, listing: _Listing, name: str, key: str | None) -> Probe:
    try:
        model = backends["openai-compat"].part.open(probe.spec, key)
        try:
            answered = _call(model)
        finally:
            model.close()
    except LimError as error:
        return replace(probe, error=str(error), exit_code=error.exit_code)
    warnings = probe.warnings
    window = window_in_list(listing.entries or (), name)
    server_tokens = False
    root = listing.address.root
    if not listing.address.azure and listing.address.host != "api.openai.com":
        version = site.get(f"{root}/api/version")
        if isinstance(version, dict) and "version" in version:
            window = window_of_ollama(site.get(f"{root}/api/ps"), name) or window
            warnings += (about_ollama(name, window),)
        else:
            window = window_in_props(site.get(f"{root}/props")) or window
            window = window or window_of_lm_studio(site.get(f"{root}/api/v0/models"), name)
            server_tokens = _counts_tokens(site, root)
    if answered.usage.prompt_tokens is None:
        warnings += ("It reports no token usage, so a silently cut prompt cannot be seen.",)
    found = {"context_window": window, "server_tokens": server_tokens or None}
    options = {**{option: value for option, value in found.items() if value is not None}, **probe.spec.options}
    return replace(
        _report(probe, answered),
        spec=replace(probe.spec, options=options),
        context_window=window,
        server_tokens=server_tokens,
        warnings=warnings,
    )


def _call(model: Model) -> Reply:
    """One answered call; parameters that are refused cost another try."""

    async def call() -> Reply:
        for _ in range(_TRIES - 1):
            try:
                return await model.complete(Request(_QUESTION, model.default_params))
            except ParameterRefused:
                continue
        return await model.complete(Request(_QUESTION, model.default_params))

    return asyncio.run(call())


def _report(probe: Probe, reply: Reply) -> Probe:
    return replace(
        probe,
        reply=reply.text,
        seconds=reply.seconds,
        usage_reported=reply.usage.prompt_tokens is not None,
        cached_tokens_reported=reply.usage.cached_prompt_tokens is not None,
    )


def _find(site: _Site, address: Address) -> _Listing:
    """The listing of the address as given, or of the same with `/v1` put on or taken off where only that answers."""
    given = site.list_models(address)
    if given.entries is not None or not given.reached:
        return given
    changed = site.list_models(_other(address))
    return changed if changed.entries is not None else given


def _other(address: Address) -> Address:
    url = address.root if address.url.endswith("/v1") else f"{address.url}/v1"
    return replace(address, url=url)


def _warn(address: Address, key: str | None) -> tuple[str, ...]:
    warnings: list[str] = []
    if address.exposed and key is not None:
        warnings.append(
            f"{address.url} is not encrypted: the key and every document cross the network readable. Use https."
        )
    if address.azure and "/deployments/" in address.url and not any(name == "api-version" for name, _ in address.query):
        warnings.append(
            "This Azure address needs ?api-version=..., or use https://RESOURCE.openai.azure.com/openai/v1."
        )
    return tuple(warnings)


def _with_query(address: Address) -> str:
    query = "&".join(f"{name}={value}" for name, value in address.query)
    return f"{address.url}?{query}" if query else address.url


def _counts_tokens(site: _Site, root: str) -> bool:
    """Whether the server has llama.cpp's `/tokenize` and `/apply-template`."""
    counted = site.post(f"{root}/tokenize", {"content": "one two", "add_special": False})
    tokens = counted.get("tokens") if isinstance(counted, dict) else None
    laid_out = site.post(f"{root}/apply-template", {"messages": [{"role": "user", "content": "one"}]})
    return isinstance(tokens, list) and isinstance(laid_out, dict) and isinstance(laid_out.get("prompt"), str)
