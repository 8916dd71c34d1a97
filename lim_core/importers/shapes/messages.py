"""Chat messages in whatever dress: OpenAI, Anthropic, LangChain, OpenInference, OpenTelemetry. Text only."""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.types import Json

Turn = Mapping[str, str]

_ROLES = {
    "human": "user",
    "humanmessage": "user",
    "ai": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "model": "assistant",
    "systemmessage": "system",
    "toolmessage": "tool",
    "function": "tool",
    "functionmessage": "tool",
    "chatmessage": "user",
    "humanmessagechunk": "user",
    "systemmessagechunk": "system",
}
_KNOWN = frozenset({"system", "developer", "user", "assistant", "tool", *_ROLES})


def read_messages(value: Json) -> tuple[Turn, ...] | None:
    """The messages of a prompt as role and content; None where `value` is no list of messages.

    A list that holds one list is opened, for LangSmith sends batches of one.
    """
    if isinstance(value, Mapping):
        inner: Json = value.get("messages")
        return read_messages([value] if inner is None else inner)
    for _ in range(3):
        only = value[0] if isinstance(value, list) and len(value) == 1 else None
        if isinstance(only, list):
            value = only
    if not isinstance(value, list | tuple) or not value:
        return None
    turns = [_turn(item) for item in value]
    found = tuple(turn for turn in turns if turn is not None)
    return found if len(found) == len(turns) else None


def content_text(value: Json) -> str:
    """The text of a content: a string, parts, or nothing. Images and tool calls are left out."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return "\n".join(part for part in (_part(item) for item in value) if part)
    if isinstance(value, Mapping):
        return _part(value)
    return ""


def _part(item: Json) -> str:
    if isinstance(item, str):
        return item
    if not isinstance(item, Mapping):
        return ""
    inner = item.get("message_content") or item.get("kwargs")
    if isinstance(inner, Mapping):
        return _part(inner)
    for name in ("text", "content", "message_content.text", "input_text", "output_text"):
        found = item.get(name)
        if isinstance(found, str):
            return found
        if isinstance(found, list | tuple):
            return content_text(found)
    return ""


def _turn(item: Json) -> Turn | None:
    if isinstance(item, list | tuple):
        # ("human", "...") as LangChain's templates are written.
        if len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], str) and item[0].lower() in _KNOWN:
            return _dressed(item[0], item[1])
        return None
    if not isinstance(item, Mapping):
        return None
    inner = item.get("message")
    if isinstance(inner, Mapping):
        return _turn(inner)
    kwargs = item.get("kwargs")
    if isinstance(kwargs, Mapping) and item.get("lc") is not None:
        path = item.get("id")
        kind = str(path[-1]) if isinstance(path, list) and path else ""
        return _dressed(str(kwargs.get("type") or kind), content_text(kwargs.get("content")))
    role: Json = item.get("role") or item.get("message.role") or item.get("type") or item.get("__class__")
    if not isinstance(role, str) or role.lower() not in _KNOWN:
        return None
    for name in ("content", "parts", "message.content", "contents", "message.contents", "text"):
        if item.get(name) is not None:
            return _dressed(role, content_text(item[name]))
    if "message.contents" in item or "content" in item or "tool_calls" in item or "message.tool_calls" in item:
        return _dressed(role, "")
    blocks = item.get("blocks")
    return _dressed(role, content_text(blocks)) if isinstance(blocks, list) else None


def _dressed(role: str, content: str) -> Turn:
    return {"role": _ROLES.get(role.lower(), role.lower()), "content": content}
