"""Settings from the environment, parsed once, and the rule that a key belongs to an origin."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from lim_core.errors import ConfigError

OPENAI_ORIGIN = "https://api.openai.com:443"
_PORTS = {"http": 80, "https": 443}


class UrlSource(StrEnum):
    """Who named the address of an endpoint; decides which keys may go there."""

    ENVIRONMENT = "environment"
    COMMAND_LINE = "command-line"
    PAGE = "page"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says: LIM_STORE, LIM_GGUF, LIM_BASE_URL, LIM_API_KEY, LIM_MODEL, OPENAI_API_KEY.

    An empty variable counts as absent. Keys are never part of `repr`.
    """

    store_path: Path
    gguf: Path | None = None
    base_url: str | None = None
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    openai_api_key: str | None = field(default=None, repr=False)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Parse the variables (default: those of the process).

        Raises:
            ConfigError: LIM_BASE_URL is no http(s) address, or a key has characters no header can carry.
        """
        values = os.environ if environ is None else environ
        store, gguf, base_url = (_value(values, name) for name in ("LIM_STORE", "LIM_GGUF", "LIM_BASE_URL"))
        if base_url is not None:
            origin_of(base_url, "LIM_BASE_URL")
        return cls(
            store_path=default_store_path() if store is None else Path(store).expanduser(),
            gguf=None if gguf is None else Path(gguf).expanduser(),
            base_url=base_url,
            model=_value(values, "LIM_MODEL"),
            api_key=_key(values, "LIM_API_KEY"),
            openai_api_key=_key(values, "OPENAI_API_KEY"),
        )

    def key_for(
        self,
        base_url: str | None,
        source: UrlSource = UrlSource.ENVIRONMENT,
        *,
        name: str | None = None,
        typed: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> str | None:
        """The key that may be sent to this address; None where none may, or where there is no address.

        A key belongs to an origin (scheme, host, port). An address typed in a page (`source`) gets `typed`, the key of
        this browser session, or none. `name` is that of `--api-key-env`, whose key the user meant for this address.
        OPENAI_API_KEY goes to https://api.openai.com, and to a loopback address given on the command line. LIM_API_KEY
        goes to the origin of LIM_BASE_URL; where that is not set, to the address given on the command line.

        Raises:
            ConfigError: this is not an http(s) address, or the variable `name` is not set.
        """
        if base_url is None:
            return None
        origin = origin_of(base_url)
        if typed or source is UrlSource.PAGE:
            return typed or None
        if name is not None:
            key = _key(os.environ if environ is None else environ, name)
            if key is None:
                raise ConfigError(
                    f"The variable {name} named by --api-key-env is not set: set it to the endpoint's key."
                )
            return key
        if self.base_url is not None and origin == origin_of(self.base_url) and self.api_key is not None:
            return self.api_key
        if origin == OPENAI_ORIGIN and self.openai_api_key is not None:
            return self.openai_api_key
        if source is not UrlSource.COMMAND_LINE:
            return None
        if self.base_url is None and self.api_key is not None:
            return self.api_key
        return self.openai_api_key if is_loopback(base_url) else None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every key at hand, to be struck out of texts that come from outside."""
        return tuple(key for key in (self.api_key, self.openai_api_key) if key)


def default_store_path() -> Path:
    """Where the store is kept unless LIM_STORE or --store says otherwise: in the user's own data folder."""
    from platformdirs import user_data_path

    return user_data_path("lim", appauthor=False) / "lim.duckdb"


def origin_of(url: str, name: str = "The base URL") -> str:
    """Scheme, host and port of an address, in one spelling.

    Raises:
        ConfigError: it is not an http(s) address with a host. The message does not repeat it: it may hold a password.
    """
    wrong = ConfigError(f"{name} must be an address like https://host/v1 or http://localhost:8000/v1.")
    # Characters that address parsers read differently would let a host pass for another one.
    if re.search(r"[\s\\\x00-\x1f\x7f]", url):
        raise wrong
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        scheme = parts.scheme.lower()
        if not host or scheme not in _PORTS:
            raise wrong
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
    except ValueError as fault:
        raise wrong from fault
    spelled = f"[{host}]" if ":" in host else host
    return f"{scheme}://{spelled.lower()}:{_PORTS[scheme] if port is None else port}"


def is_loopback(url: str) -> bool:
    """Whether the address is one of this machine: localhost, 127.0.0.0/8 or ::1.

    Raises:
        ConfigError: it is not an http(s) address.
    """
    origin_of(url)
    host = (urlsplit(url).hostname or "").lower()
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _value(values: Mapping[str, str], name: str) -> str | None:
    return values.get(name, "").strip() or None


def _key(values: Mapping[str, str], name: str) -> str | None:
    key = _value(values, name)
    if key is not None and not (key.isascii() and key.isprintable()):
        raise ConfigError(f"{name} holds characters that no key has: set it again.")
    return key
