"""Base URLs: normalised, checked, named without secrets."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, urlsplit

from lim_core.errors import ConfigError

OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Address:
    """A base URL: `url` is origin and path without a slash at the end, `query` what has to go along (Azure's api-version)."""

    url: str
    host: str
    query: tuple[tuple[str, str], ...] = ()

    @property
    def loopback(self) -> bool:
        """Whether the address is this machine; no proxy may see such a request."""
        return is_loopback(self.host)

    @property
    def azure(self) -> bool:
        """Whether Azure answers here; its older paths want the key in a header of its own."""
        return self.host.endswith((".azure.com", ".azure.us", ".azure.cn"))

    @property
    def exposed(self) -> bool:
        """Whether a key sent here crosses a network unencrypted."""
        return self.url.startswith("http://") and not self.loopback

    @property
    def root(self) -> str:
        """The address without a final `/v1`: where llama.cpp and Ollama keep their own paths."""
        return self.url.removesuffix("/v1")


def read_address(base_url: str | None) -> Address:
    """Normalise a base URL; None is OpenAI's. A pasted `/chat/completions` is taken off.

    Raises:
        ConfigError: no http(s) address, or one with a user or password in it.
    """
    text = (base_url or OPENAI).strip()
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        _ = parts.port  # raises ValueError where it is no port
    except ValueError:
        raise ConfigError("The base URL cannot be read: give one like http://localhost:8080/v1.") from None
    if parts.scheme not in ("http", "https") or not host or not text.isprintable() or " " in text:
        raise ConfigError(
            "The base URL must begin with http:// or https:// and name a host, as http://localhost:8080/v1."
        )
    if parts.username is not None or parts.password is not None:
        raise ConfigError("The base URL holds a user name or password: give the key with --api-key-env instead.")
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    clean = SplitResult(parts.scheme, parts.netloc.lower(), path, "", "")
    return Address(clean.geturl(), host, tuple(parse_qsl(parts.query)))


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
