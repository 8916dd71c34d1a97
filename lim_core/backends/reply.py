"""Reads a chat-completions answer: a Reply where there is text to score, else the fault that says why not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from lim_core.backends.faults import Sent, from_status
from lim_core.backends.secrets import strike
from lim_core.errors import CallFault, FaultKind
from lim_core.types import Json, Reply, Usage

# A leading thought is not the answer: names that were weighed and dropped in it would be judged as if they were said.
# Some servers keep only the closing tag, the opening one being part of their template.
_THOUGHT = re.compile(
    r"\A\s*(?:<(think|thinking|reasoning)>.*?(?:</\1>|\Z)|(?:(?!<think>).)*</think>)\s*", re.DOTALL | re.I
)


def read_reply(
    body: bytes, headers: Mapping[str, str], seconds: float, sent_params: Mapping[str, Json], sent: Sent
) -> Reply:
    """Read the body of a successful answer.

    A leading `<think>` block is left out of the text. Empty text is a Reply (the judge calls it empty), except where
    the output cap was used up before any text came.

    Raises:
        CallFault: no text to score: not JSON, no choice, tool call, content filter, refusal, output cap used up.
        ConfigError, EndpointError: an error inside a 200, as some gateways send it.
    """
    try:
        answer = json.loads(body)
    except ValueError as error:
        start = sent.quote(body[:200].decode("utf-8", "replace")) or "nothing"
        raise CallFault(
            FaultKind.BAD_REPLY, f"{sent.base_url} answered with something that is not JSON: {start}", retry=True
        ) from error
    if not isinstance(answer, dict):
        raise CallFault(FaultKind.BAD_REPLY, f"{sent.base_url} answered with JSON that is no completion.", retry=True)
    choices = answer.get("choices")
    if answer.get("error") and not choices:
        inner = answer["error"]
        code = inner.get("code") if isinstance(inner, dict) else None
        raise from_status(
            code if isinstance(code, int) and 400 <= code < 600 else 500, headers, json.dumps(answer), sent
        )
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise CallFault(FaultKind.BAD_REPLY, f"{sent.base_url} answered without a choice.", retry=True)
    choice = choices[0]
    message = choice.get("message")
    finish = choice.get("finish_reason")
    finish = finish if isinstance(finish, str) else None
    if not isinstance(message, dict):
        raise CallFault(FaultKind.BAD_REPLY, f"{sent.base_url} answered without a message.", retry=True)
    usage = read_usage(answer.get("usage"))
    text = _THOUGHT.sub("", _text(message.get("content")), count=1)
    if finish == "content_filter":
        raise CallFault(FaultKind.CONTENT_FILTER, f"A content filter stopped the answer of {sent.model}.")
    if message.get("refusal") and not text.strip():
        raise CallFault(FaultKind.CONTENT_FILTER, f"{sent.model} refused: {sent.quote(str(message['refusal']))}")
    if (message.get("tool_calls") or message.get("function_call")) and not text.strip():
        raise CallFault(
            FaultKind.TOOL_CALL, f"{sent.model} called a tool instead of answering: switch tools off there."
        )
    if finish == "length" and not text.strip():
        raise CallFault(FaultKind.OUTPUT_BUDGET, _spent(usage, sent))
    model = answer.get("model")
    return Reply(
        text=strike(text, sent.key),
        finish_reason=finish,
        usage=usage,
        seconds=seconds,
        sent_params=sent_params,
        model=strike(model, sent.key) if isinstance(model, str) else None,
    )


def read_usage(usage: object) -> Usage:
    """Token counts from a `usage` object; what is absent or no count stays None."""
    if not isinstance(usage, dict):
        return Usage()
    prompt_details, completion_details = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    cached = _count(prompt_details, "cached_tokens")
    return Usage(
        # A gateway that does not count says 0; no prompt has no tokens, and a cut to nothing is not what happened.
        prompt_tokens=_count(usage, "prompt_tokens") or None,
        completion_tokens=_count(usage, "completion_tokens"),
        # DeepSeek names it at the top.
        cached_prompt_tokens=_count(usage, "prompt_cache_hit_tokens") if cached is None else cached,
        reasoning_tokens=_count(completion_details, "reasoning_tokens"),
    )


def _count(mapping: object, name: str) -> int | None:
    value = mapping.get(name) if isinstance(mapping, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text(content: object) -> str:
    """Message content, also where it comes in parts; only text parts count."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [
            part.get("text")
            for part in content
            if isinstance(part, dict) and part.get("type") in ("text", "output_text")
        ]
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _spent(usage: Usage, sent: Sent) -> str:
    spent = f" ({usage.reasoning_tokens} reasoning tokens)" if usage.reasoning_tokens else ""
    return (
        f"{sent.model} used up its output cap before any text{spent}: raise max_tokens or lower the reasoning effort."
    )
