"""Turns what an endpoint or the network answered into lim's own errors, key struck out, with what to do in the message.

Nothing above the adapters sees an `openai` or `httpx2` error. The order of the questions matters: a 400 for the window is
not a 400 for a parameter, and a 429 for a request that no minute will admit is not a 429 that passes by waiting.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from lim_core.backends.secrets import strike
from lim_core.backends.window import WindowRefusal, read_refusal
from lim_core.errors import CallFault, ConfigError, EndpointError, FaultKind, LimError, ParameterRefused

# A wait longer than this, in seconds, is no back-off: the run stops and says when to resume.
LONG_WAIT = 300.0
_LONGEST_QUOTE = 300
_QUOTA_CODES = re.compile(r"insufficient[_ ]quota|billing_hard_limit|billing_not_active", re.I)
_QUOTA_WORDS = re.compile(
    r"exceeded your current quota|credit balance is too low|out of credits|insufficient (?:credits|balance)",
    re.I,
)
_TOO_LARGE = re.compile(r"request too large", re.I)
_LIMIT_REQUESTED = re.compile(r"Limit:? ([\d,]+), Requested:? ([\d,]+)", re.I)
_MODEL_MISSING = re.compile(
    r"model_not_found|DeploymentNotFound|deployment.{0,60}does not exist"
    r"|model.{0,120}(?:not found|does not exist|doesn't exist|not exist|unknown|not available|is not supported|no such)"
    r"|(?:unknown|invalid|no such|no) model|not a valid model",
    re.I | re.S,
)
_FILTER = re.compile(
    r"content_filter|content_policy|content management policy|responsible ?ai|safety system|moderation", re.I
)
_KEY_WORDS = re.compile(
    r"api[ _-]?key (?:not valid|invalid|expired|not found)|(?:invalid|incorrect) api[ _-]?key", re.I
)
_BUDGET_WORDS = re.compile(r"max_tokens or model output limit was reached", re.I)
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TRY_AGAIN = re.compile(r"(?:try again|retry) (?:in|after) ((?:[\d.]+ ?(?:ms|s|m|h|d)[a-z]* ?)+)", re.I)


@dataclass(frozen=True, slots=True)
class Sent:
    """What was asked of whom, for the words of an error. `params` are the names that went over the wire."""

    model: str
    base_url: str
    params: tuple[str, ...]
    key: str | None

    def quote(self, text: str) -> str:
        """A provider's words on one line, bounded, key struck, control characters out."""
        # Cut after striking, or half a key could stay at the edge.
        words = " ".join("".join(c if c.isprintable() else " " for c in strike(text, self.key)).split())
        return words if len(words) <= _LONGEST_QUOTE else words[:_LONGEST_QUOTE] + " (cut)"


@dataclass(frozen=True, slots=True)
class Told:
    """The error part of an answer: its message, and its fields (code, type, param ...)."""

    message: str
    fields: Mapping[str, object]

    @property
    def all_words(self) -> str:
        return " ".join([self.message, *(str(self.fields.get(name) or "") for name in ("code", "type", "status"))])


class WindowFault(CallFault):
    """A prompt over the window; `prompt` is its own share of `needed`, where the endpoint told prompt and output apart."""

    def __init__(self, message: str, refusal: WindowRefusal) -> None:
        super().__init__(FaultKind.CONTEXT_WINDOW, message, window=refusal.window, needed=refusal.needed)
        self.prompt = refusal.prompt


def read_error(text: str) -> Told:
    """The error in a body, in any of the usual shapes; a body that is not JSON is its own message."""
    try:
        body = json.loads(text)
    except ValueError:
        return Told(re.sub(r"<[^>]*>", " ", text), {})
    if isinstance(body, list) and body:  # Gemini wraps its error in a list
        body = body[0]
    if not isinstance(body, dict):
        return Told(str(body), {})
    inner = body.get("error", body)
    if not isinstance(inner, dict):
        return Told(str(inner), body)
    message = inner.get("message") or inner.get("detail") or inner.get("msg") or ""
    if isinstance(message, list):  # pydantic: [{"loc": ["body", "seed"], "msg": "..."}]
        parts = [item for item in message if isinstance(item, dict)]
        where = [str(item["loc"][-1]) for item in parts if isinstance(item.get("loc"), list) and item["loc"]]
        words = "; ".join(f"{name}: {item.get('msg', '')}" for name, item in zip(where, parts, strict=False))
        return Told(words or text, {**inner, "param": where[0] if where else None})
    return Told(str(message) or text, inner)


def from_status(status: int, headers: Mapping[str, str], text: str, sent: Sent) -> LimError:
    """The error for an HTTP status other than success."""
    told = read_error(text)
    words = sent.quote(told.message) or f"HTTP {status}"
    lower = {name.lower(): value for name, value in headers.items()}
    wait = read_wait(lower, told.message)
    if 300 <= status < 400:
        target = sent.quote(lower.get("location", "another address"))
        return ConfigError(f"{sent.base_url} redirects to {target}: give that address as the base URL.")
    if status == 429 or status == 402:
        return _limited(status, told, words, wait, sent)
    # 5xx too: some servers report an overlong prompt as an internal error.
    refusal = read_refusal(told.message, told.fields)
    if refusal is not None and status not in (401, 403, 404):
        size = f" ({refusal.needed} tokens, window {refusal.window})" if refusal.window and refusal.needed else ""
        return WindowFault(f"The prompt is longer than the window of {sent.model}{size}: {words}", refusal)
    if status in (401, 403) or (status == 400 and _KEY_WORDS.search(told.message)):
        return _unauthorised(status, words, sent)
    if status == 404 and _MODEL_MISSING.search(told.all_words):
        return _no_such_model(words, sent)
    if status in (404, 405):
        return ConfigError(_no_such_path(sent, words))
    if status == 408:
        return CallFault(FaultKind.TIMEOUT, f"The endpoint timed out: {words}", retry=True, wait=wait)
    if status == 413:
        return CallFault(FaultKind.TOO_LARGE, f"The endpoint refuses a request of this size: {words}")
    if status in (400, 422):
        return _refused(told, words, sent)
    # 501 says "never"; every other 5xx, and 409, 425 may pass.
    return CallFault(FaultKind.SERVER, f"The endpoint failed ({status}): {words}", retry=status != 501, wait=wait)


def from_network(error: BaseException, sent: Sent) -> LimError:
    """The error for a request that brought no HTTP answer."""
    causes = tuple(_chain(error))
    names = {type(cause).__name__ for cause in causes}
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return ConfigError(f"There is no host behind {sent.base_url}: correct the base URL, or check the network.")
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return ConfigError(f"No secure connection to {sent.base_url}: check http against https, and the certificate.")
    if any("Timeout" in name for name in names):
        return CallFault(FaultKind.TIMEOUT, f"{sent.base_url} did not answer in time.", retry=True)
    if "ConnectError" in names:
        return EndpointError(f"Nothing answers at {sent.base_url}: start the server, or correct host and port.")
    if "LocalProtocolError" in names or "UnsupportedProtocol" in names:
        return ConfigError(f"A request to {sent.base_url} cannot be formed: check the base URL and the key.")
    if "DecodingError" in names:
        return CallFault(FaultKind.BAD_REPLY, f"The answer of {sent.base_url} cannot be decoded.", retry=True)
    return CallFault(
        FaultKind.CONNECTION, f"The connection to {sent.base_url} was cut before the answer was whole.", retry=True
    )


def read_wait(headers: Mapping[str, str], message: str = "") -> float | None:
    """Seconds to wait: Retry-After-Ms, Retry-After as seconds or HTTP date, else "try again in 1m2s" in the message."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return max(0.0, float(value) * unit)
        except ValueError:
            pass
        try:
            when = parsedate_to_datetime(value)
        except ValueError:
            continue
        when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        return max(0.0, (when - datetime.now(UTC)).total_seconds())
    found = _TRY_AGAIN.search(message)
    if found is None:
        return None
    parts = re.findall(r"([\d.]+) ?(ms|s|m|h|d)", found[1], re.I)
    try:
        return sum(float(number) * _UNIT[unit.lower()] for number, unit in parts)
    except ValueError:
        return None


def _limited(status: int, told: Told, words: str, wait: float | None, sent: Sent) -> LimError:
    # Free tiers say "exceeded your current quota" of a minute's quota too, and then name the wait.
    quota = _QUOTA_CODES.search(told.all_words) or (wait is None and _QUOTA_WORDS.search(told.message))
    if status == 402 or quota:
        return EndpointError(f"The quota of {sent.base_url} is used up: top it up or use another key. It said: {words}")
    numbers = _LIMIT_REQUESTED.search(told.message)
    limit, requested = (_count(numbers[1]), _count(numbers[2])) if numbers is not None else (None, None)
    # "Limit 30000, Used 29000, Requested 2000" passes by waiting; a request above the limit alone never does.
    above = limit is not None and requested is not None and requested > limit
    if above or (_TOO_LARGE.search(told.message) and limit is None):
        return CallFault(
            FaultKind.TOO_LARGE,
            f"One request is larger than the rate limit of {sent.base_url} admits: send fewer chunks. It said: {words}",
            window=limit,
            needed=requested,
        )
    if wait is not None and wait > LONG_WAIT:
        return EndpointError(
            f"{sent.base_url} asks to wait {_spell(wait)}: resume the run after that. It said: {words}",
            resume_after=wait,
        )
    return CallFault(FaultKind.RATE_LIMIT, f"The endpoint asks to slow down: {words}", retry=True, wait=wait)


def _unauthorised(status: int, words: str, sent: Sent) -> ConfigError:
    if sent.key is None:
        return ConfigError(
            f"{sent.base_url} wants a key ({status}): use --api-key-env or type one in the page. It said: {words}"
        )
    return ConfigError(
        f"{sent.base_url} refuses the key ({status}): check that it belongs to this address. It said: {words}"
    )


def _no_such_model(words: str, sent: Sent) -> ConfigError:
    return ConfigError(
        f"{sent.base_url} has no model {sent.model!r}: choose one that the Models page or `models test` lists. It said: {words}"
    )


def _no_such_path(sent: Sent, words: str) -> str:
    hint = "check the base URL" if re.search(r"/v\d", sent.base_url) else f"try {sent.base_url.rstrip('/')}/v1"
    if ".azure.com" in sent.base_url:
        hint = "for Azure give https://RESOURCE.openai.azure.com/openai/v1 and the deployment's name as the model"
    return f"{sent.base_url}/chat/completions does not exist there: {hint}. It said: {words}"


def _refused(told: Told, words: str, sent: Sent) -> LimError:
    """A 400 or 422 that is about neither window, key nor model."""
    if _BUDGET_WORDS.search(told.message):
        return CallFault(FaultKind.OUTPUT_BUDGET, f"The output cap was used up before any text: {words}")
    if _FILTER.search(told.all_words):
        return CallFault(FaultKind.CONTENT_FILTER, f"A content filter stopped the request: {words}")
    parameter = _named_parameter(told, sent.params)
    if parameter is not None:
        return ParameterRefused(f"{sent.model} refuses {parameter}: {words}", parameter)
    # After the parameter: "for this model temperature is not supported" is about no model.
    if _MODEL_MISSING.search(told.all_words):
        return _no_such_model(words, sent)
    # Every request of a run has the same form, so none will pass: the run stops at its first call.
    return ConfigError(f"{sent.base_url} refuses the request: {words}")


def _named_parameter(told: Told, params: tuple[str, ...]) -> str | None:
    """The parameter that was sent and is refused; `param` counts before the message, longer names before shorter ones."""
    param = str(told.fields.get("param") or "").rsplit(".", 1)[-1]
    if param in params:
        return param
    named = [name for name in params if re.search(rf"(?<![A-Za-z_]){re.escape(name)}(?![A-Za-z_])", told.message)]
    # "Use max_completion_tokens instead of max_tokens": the one that was sent is the one refused.
    return max(named, key=len, default=None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        if isinstance(error, BaseExceptionGroup):
            for inner in error.exceptions:
                yield from _chain(inner)
        error = error.__cause__ or error.__context__


def _count(text: str) -> int | None:
    digits = text.replace(",", "")
    return int(digits) if digits else None


def _spell(seconds: float) -> str:
    for unit, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} seconds"
