"""Request bodies of OpenAI and Anthropic with their responses: the prompt as sent, and what came back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lim_core.importers.drafts.draft import Draft, Reading, Sighting, Skipped
from lim_core.importers.files.source import Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.fields import answer_in, dig, first, label, listed, mapping, text, whole
from lim_core.importers.shapes.messages import Turn, content_text, read_messages
from lim_core.importers.shapes.search import find_rows
from lim_core.types import Json

_PARAMS = ("temperature", "top_p", "seed", "stop", "stop_sequences", "presence_penalty", "frequency_penalty", "top_k")
_CAPS = ("max_completion_tokens", "max_output_tokens", "max_tokens", "max_tokens_to_sample")
_BESIDE = (*_CAPS, "model", "temperature", "stream", "tools", "response_format", "seed", "system", "custom_id")
_REQUESTS = ("request", "body", "input", "payload", "request_body", "kwargs", "json")
_RESPONSES = ("response", "output", "completion", "response_body", "result")


@dataclass(frozen=True, slots=True)
class _Exchange:
    request: Mapping[str, Json]
    response: Mapping[str, Json]
    line: int | None
    place: str
    key: Json = None


@importers.register("chat", title="OpenAI and Anthropic request bodies", order=140)
class Chat:
    """Request bodies, pairs of request and response, batch lines, or a bare list of messages."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By messages beside a model or its parameters; a bare list of messages is less sure."""
        if any(_is_bare(record.value) for record in source.records):
            return Sighting(0.85, 0, "a list of messages with role and content")
        found = find_rows(source, _is_request)
        if not found.hits:
            return None
        return Sighting(0.92, min(hit.depth for hit in found.hits), "messages beside a model")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a request; a response that stands beside it or follows it belongs to it."""
        drafts: list[Draft] = []
        skipped: list[Skipped] = []
        for exchange in _exchanges(source):
            made = _draft(exchange)
            if made is None:
                skipped.append(Skipped("a request without messages", exchange.line, exchange.place))
            else:
                drafts.append(made)
        return Reading(tuple(drafts), tuple(skipped))


def _is_request(row: Mapping[str, Json]) -> bool:
    if any(name in row for name in ("run_type", "attributes", "observations", "choices", "run_id")):
        return False
    if isinstance(row.get("messages"), list) and read_messages(row["messages"]) is not None:
        return any(name in row for name in _BESIDE) or len(row) <= 2
    return isinstance(row.get("model"), str) and (
        (isinstance(row.get("input"), str | list) and "instructions" in row) or isinstance(row.get("prompt"), str)
    )


def _is_response(row: Mapping[str, Json]) -> bool:
    if isinstance(row.get("choices"), list):
        return True
    return row.get("object") == "response" or (row.get("type") == "message" and isinstance(row.get("content"), list))


def _is_bare(value: Json) -> bool:
    if not isinstance(value, list) or not value or "role" not in mapping(value[0]) or _is_response(mapping(value[0])):
        return False
    return read_messages(value) is not None


def _exchanges(source: Source) -> Iterator[_Exchange]:
    """Requests in file order, each with the response beside it, after it, or of the same custom_id."""
    responses = _by_id(source)
    pending: _Exchange | None = None
    for index, item in enumerate(_items(source)):
        value, line, place = item
        if _is_bare(value):
            value = {"messages": value}
        row = mapping(value)
        answer = _response_in(row)
        if _is_response(row) and pending is not None:
            yield _Exchange(pending.request, row, pending.line, pending.place, pending.key)
            pending = None
            continue
        request = _request_in(row)
        if request is None:
            continue
        if pending is not None:
            yield pending
        key = row.get("custom_id")
        if not answer and label(key):
            answer = responses.get(label(key), {})
        pending = _Exchange(request, answer, line, place or f"item {index + 1}", key)
        if answer:
            yield pending
            pending = None
    if pending is not None:
        yield pending


def _items(source: Source) -> Iterator[tuple[Json, int | None, str]]:
    for record in source.records:
        stack: list[tuple[Json, str]] = [(record.value, "")]
        for _ in range(200_000):
            if not stack:
                break
            value, place = stack.pop()
            if _is_bare(value) or (isinstance(value, Mapping) and (_request_in(value) or _is_response(value))):
                yield value, record.line, place
            elif isinstance(value, list):
                stack += [(item, f"item {index}") for index, item in reversed(list(enumerate(value, 1)))]
            elif isinstance(value, Mapping):
                stack += [(item, place) for item in reversed(list(value.values())) if isinstance(item, list | dict)]


def _by_id(source: Source) -> Mapping[str, Mapping[str, Json]]:
    """Responses of a batch by custom_id."""
    found: dict[str, Mapping[str, Json]] = {}
    for record in source.records:
        row = mapping(record.value)
        key, body = label(row.get("custom_id")), mapping(dig(row, "response.body"))
        if key and body:
            found[key] = body
    return found


def _request_in(row: Mapping[str, Json]) -> Mapping[str, Json] | None:
    if _is_request(row):
        return row
    return next((inner for name in _REQUESTS if _is_request(inner := mapping(row.get(name)))), None)


def _response_in(row: Mapping[str, Json]) -> Mapping[str, Json]:
    for name in _RESPONSES:
        inner = mapping(row.get(name))
        body = mapping(inner.get("body"))
        for candidate in (inner, body):
            if _is_response(candidate):
                return candidate
    return {}


def _draft(exchange: _Exchange) -> Draft | None:
    request, response = exchange.request, exchange.response
    prompt = _prompt(request)
    if prompt is None:
        return None
    usage = mapping(response.get("usage"))
    return Draft(
        line=exchange.line,
        place=exchange.place,
        id=exchange.key or response.get("id"),
        prompt=prompt,
        answer=_said(response),
        model=label(request.get("model")) or label(response.get("model")) or None,
        finish_reason=_finish(response),
        usage={
            "prompt_tokens": whole(first(usage, "prompt_tokens", "input_tokens")),
            "completion_tokens": whole(first(usage, "completion_tokens", "output_tokens")),
            "cached_prompt_tokens": whole(
                dig(usage, "prompt_tokens_details.cached_tokens") or usage.get("cache_read_input_tokens")
            ),
            "reasoning_tokens": whole(dig(usage, "completion_tokens_details.reasoning_tokens")),
        },
        params={name: request[name] for name in _PARAMS if request.get(name) is not None},
        max_output_tokens=whole(first(request, *_CAPS)),
    )


def _prompt(request: Mapping[str, Json]) -> str | tuple[Turn, ...] | None:
    system = content_text(first(request, "system", "instructions"))
    lead: tuple[Turn, ...] = ({"role": "system", "content": system},) if system else ()
    turns = read_messages(request.get("messages"))
    if turns is None:
        given = first(request, "input", "prompt")
        turns = read_messages(given)
        if turns is None and isinstance(given, str) and given.strip():
            turns = ({"role": "user", "content": given},)
    return (*lead, *turns) if turns else None


def _said(response: Mapping[str, Json]) -> str | None:
    choices: Sequence[Json] = listed(response.get("choices"))
    if choices:
        choice = mapping(choices[0])
        return text(content_text(dig(choice, "message.content"))) or text(choice.get("text"))
    if response.get("object") == "response":
        messages = [mapping(item) for item in listed(response.get("output")) if mapping(item).get("type") == "message"]
        return text("\n".join(content_text(item.get("content")) for item in messages))
    return answer_in(response.get("content"))


def _finish(response: Mapping[str, Json]) -> str | None:
    choices = listed(response.get("choices"))
    if choices:
        return label(mapping(choices[0]).get("finish_reason")) or None
    reason = label(first(response, "stop_reason", "status"))
    # One vocabulary for the truncation stage, whoever the provider is.
    return {"max_tokens": "length", "end_turn": "stop", "stop_sequence": "stop", "incomplete": "length"}.get(
        reason, reason
    ) or None
