"""Every way an endpoint fails, on demand: what the scripted server answers when it is told to misbehave."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from lim_core.types import Json


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the server sees it. `tokens` is the prompt's length in the server's own tokens."""

    body: Mapping[str, Json]
    authorization: str
    tokens: int
    retry_after: float
    stall: float


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer. `keep` is the share of the body that is sent before the connection is cut; 0 cuts it without a word."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    keep: float | None = None
    stall: float = 0.0


def error(status: int, message: str, *, headers: Mapping[str, str] | None = None, **fields: Json) -> Answer:
    """An error in OpenAI's shape."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **fields}}
    return Answer(status, json.dumps(body).encode(), headers or {})


def completion(
    model: str,
    text: str | None,
    prompt: int,
    output: int,
    cached: int,
    *,
    finish: str = "stop",
    reasoning: int = 0,
    **message: Json,
) -> Answer:
    """A chat completion with its usage."""
    body = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        },
    }
    return Answer(200, json.dumps(body).encode())


def _done(asked: Asked, text: str | None, *, finish: str = "stop", reasoning: int = 0, **message: Json) -> Answer:
    return completion(
        str(asked.body.get("model")), text, asked.tokens, 8, 0, finish=finish, reasoning=reasoning, **message
    )


def _later(asked: Asked) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=max(2.0, asked.retry_after)), usegmt=True)


FAULTS: Mapping[str, Callable[[Asked], Answer]] = {
    "rate-limit": lambda a: error(
        429, "Rate limit reached for requests", type="requests", code="rate_limit_exceeded",
        headers={"Retry-After": f"{a.retry_after:g}"},
    ),
    "rate-limit-date": lambda a: error(429, "Too many requests", headers={"Retry-After": _later(a)}),
    "rate-limit-words": lambda a: error(
        429,
        "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in "
        "1m2.5s. You can increase your rate limit by adding a payment method at https://example.test/billing.",
        code="rate_limit_exceeded",
    ),
    "long-wait": lambda a: error(429, "Daily limit reached", headers={"Retry-After": "86400"}),
    "too-large": lambda a: error(
        429, "Request too large for m on tokens per min (TPM): Limit 30000, Requested 64000.", code="rate_limit_exceeded"
    ),
    "quota": lambda a: error(
        429, "You exceeded your current quota, please check your plan.", type="insufficient_quota", code="insufficient_quota"
    ),
    "server": lambda a: error(500, "The server had an error", type="server_error"),
    "overloaded": lambda a: error(503, "Overloaded", headers={"Retry-After": f"{a.retry_after:g}"}),
    "bad-gateway": lambda a: Answer(502, b"<html><body><h1>502 Bad Gateway</h1></body></html>", {"Content-Type": "text/html"}),
    "dropped": lambda a: Answer(200, b"", keep=0.0),
    "cut": lambda a: Answer(200, _done(a, "half of an answer").body, keep=0.5),
    "stall": lambda a: Answer(200, _done(a, "too late").body, stall=a.stall),
    "not-json": lambda a: Answer(200, b"<html>It works!</html>", {"Content-Type": "text/html"}),
    "no-choices": lambda a: Answer(200, b'{"object": "chat.completion", "choices": []}'),
    "error-in-200": lambda a: Answer(200, b'{"error": {"message": "upstream failed", "code": 502}}'),
    "empty": lambda a: _done(a, ""),
    "tool-call": lambda a: _done(
        a, None, finish="tool_calls",
        tool_calls=[{"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}],
    ),
    "content-filter": lambda a: _done(a, "The answ", finish="content_filter"),
    "filter-400": lambda a: error(400, "The response was filtered by the content management policy.", code="content_filter"),
    "refusal": lambda a: _done(a, None, refusal="I cannot help with that."),
    "reasoning": lambda a: _done(a, "", finish="length", reasoning=8),
    "think": lambda a: _done(a, "<think>Could it be Anna? No.</think>\n\nBruno"),
    "unauthorised": lambda a: error(401, f"Incorrect API key provided: {a.authorization}", code="invalid_api_key"),
    "forbidden": lambda a: error(403, "You may not use this model"),
    "model-missing": lambda a: error(404, f"The model `{a.body.get('model')}` does not exist", code="model_not_found"),
    "no-path": lambda a: Answer(404, b'{"detail": "Not Found"}'),
    "redirect": lambda a: Answer(307, b"", {"Location": "https://elsewhere.test/v1/chat/completions"}),
    "bad-request": lambda a: error(400, "messages: roles must alternate"),
}  # fmt: skip

# `refuse-NAME` refuses a request that holds the parameter NAME, and answers one that does not.
REFUSALS: Mapping[str, Callable[[], Answer]] = {
    "refuse-temperature": lambda: error(
        400,
        "Unsupported value: 'temperature' does not support 0 with this model.",
        param="temperature",
        code="unsupported_value",
    ),
    "refuse-max_tokens": lambda: error(
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        param="max_tokens",
        code="unsupported_parameter",
    ),
    "refuse-max_completion_tokens": lambda: error(400, "Unrecognized request argument supplied: max_completion_tokens"),
    "refuse-seed": lambda: Answer(
        422, b'{"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}'
    ),
    "refuse-stop": lambda: error(400, "Unsupported parameter: 'stop' is not supported with this model.", param="stop"),
    "refuse-logprobs": lambda: error(400, "This model does not support `logprobs`"),
    "refuse-top_p": lambda: error(
        400, "`temperature` and `top_p` cannot both be specified for this model; drop top_p", param="top_p"
    ),
}
