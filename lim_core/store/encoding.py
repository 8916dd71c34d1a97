"""Texts and JSON on their way into the file and out of it: nothing DuckDB refuses, no credential."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit, urlunsplit

from lim_core.types import Json, Message

# Names under which credentials are passed; "max_tokens" and the like must not match.
_CREDENTIAL = re.compile(
    r"api[_-]?key|^key$|authorization|bearer|password|passwd|secret|(access|auth|session|id)[_-]?token|^token$|cookie",
    re.IGNORECASE,
)


def storable(text: str) -> str:
    """The text with lone surrogates, which have no UTF-8 form, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def to_json(value: Json) -> str:
    """Strict JSON; NaN and infinities become null, lone surrogates stay as escapes."""
    return _dump(_plain(value))


def from_json(text: str) -> Mapping[str, Json]:
    """The object that `to_json` wrote."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("the stored JSON is not an object")
    return value


def digest(value: Json) -> str:
    """SHA-256 of the value's canonical JSON, as hex."""
    canonical = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def messages_to_json(messages: Sequence[Message]) -> str:
    """Messages as a list of [role, content] pairs."""
    return _dump([[message.role, message.content] for message in messages])


def messages_from_json(text: str) -> tuple[Message, ...]:
    """The messages that `messages_to_json` wrote."""
    return tuple(Message(role, content) for role, content in json.loads(text))


def without_credentials(value: Json) -> Json:
    """The value without entries named like a credential, and without user and password in addresses."""
    if isinstance(value, str):
        return _without_userinfo(value)
    if isinstance(value, Mapping):
        return {name: without_credentials(part) for name, part in value.items() if not _CREDENTIAL.search(name)}
    if isinstance(value, Sequence):
        return [without_credentials(part) for part in value]
    return value


def as_text(value: object) -> str | None:
    """The text, fit for the file; None for anything else."""
    return storable(value) if isinstance(value, str) else None


def as_whole(value: object) -> int | None:
    """The whole number; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_number(value: object) -> float | None:
    """The number; None for anything else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _without_userinfo(text: str) -> str:
    if "@" not in text or not text.lower().startswith(("http://", "https://")):
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        return text.partition("//")[0] + "//" + text.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _dump(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False)
    return text


def _plain(value: Json) -> object:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, Sequence):
        return [_plain(part) for part in value]
    return value
