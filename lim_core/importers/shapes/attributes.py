"""Attributes of OpenTelemetry spans: unwrapped from OTLP-JSON, collected from data frames, and unflattened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lim_core.importers.files.source import Source
from lim_core.importers.shapes.fields import first, label, listed, mapping, opened
from lim_core.importers.shapes.search import Hit, find_rows
from lim_core.types import Json

_LEAF = ""
_VALUES = ("stringValue", "string_value", "doubleValue", "double_value", "boolValue", "bool_value")
_INTS = ("intValue", "int_value")


@dataclass(frozen=True, slots=True)
class RawSpan:
    """One span with flat or nested attributes in one object, whatever its export was."""

    id: str
    parent: str
    trace: str
    name: str
    kind: str
    start: Json
    attributes: Mapping[str, Json]
    hit: Hit


def raw_span(row: Mapping[str, Json], hit: Hit) -> RawSpan:
    """Read one span of an export: OTLP-JSON, the SDK's `to_json`, Phoenix REST, or a row of a data frame."""
    context = mapping(row.get("context"))
    return RawSpan(
        # Phoenix gives its rows an id of their own; parents are named by the span's.
        id=label(
            first(row, "spanId", "span_id", "context.span_id") or first(context, "span_id", "spanId") or row.get("id")
        ),
        parent=label(first(row, "parentSpanId", "parent_span_id", "parent_id", "parentId")),
        trace=label(first(row, "traceId", "trace_id", "context.trace_id") or first(context, "trace_id", "traceId")),
        name=label(row.get("name")),
        kind=label(first(row, "span_kind", "spanKind")),
        start=first(row, "startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"),
        attributes=attributes_of(row),
        hit=hit,
    )


def attributes_of(row: Mapping[str, Json]) -> Mapping[str, Json]:
    """The attributes of a span and of its events in one flat or nested object; span attributes win."""
    found: dict[str, Json] = {}
    for event in listed(opened(row.get("events"))):
        inner = mapping(event)
        found |= _pairs(inner.get("attributes"))
        body = inner.get("body")
        if isinstance(body, Mapping):
            found |= body
    found |= _pairs(opened(first(row, "attributes", "span_attributes", "SpanAttributes")))
    found |= {key[11:]: value for key, value in row.items() if key.startswith("attributes.") and value is not None}
    return found


def _pairs(value: Json) -> dict[str, Json]:
    if isinstance(value, Mapping):
        return dict(value)
    return {
        label(item.get("key")): otlp_value(item.get("value"))
        for item in listed(value)
        if isinstance(item, Mapping) and label(item.get("key"))
    }


def otlp_value(value: Json, depth: int = 0) -> Json:
    """The plain value inside an OTLP AnyValue."""
    if not isinstance(value, Mapping) or depth > 50:
        return value
    for name in _VALUES:
        if name in value:
            return value[name]
    for name in _INTS:
        if name in value:
            number = value[name]
            is_text = isinstance(number, str) and number.lstrip("-").isdecimal() and len(number) < 20
            return int(str(number)) if is_text else number
    array = first(value, "arrayValue", "array_value")
    if array is not None:
        return [otlp_value(item, depth + 1) for item in listed(mapping(array).get("values"))]
    pairs = first(value, "kvlistValue", "kvlist_value")
    if pairs is not None:
        return {
            label(mapping(item).get("key")): otlp_value(mapping(item).get("value"), depth + 1)
            for item in listed(mapping(pairs).get("values"))
        }
    return value


def unflatten(attributes: Mapping[str, Json]) -> Mapping[str, Json]:
    """Dotted names to nested objects, numbered ones to lists in numeric order: `documents.10` stands after `documents.9`.

    Metadata is left as it is, for its keys are the user's.
    """
    return mapping(_nest(attributes, 0))


def _nest(value: Json, depth: int) -> Json:
    if depth > 40:
        return value
    if isinstance(value, list):
        return [_nest(item, depth + 1) for item in value]
    if not isinstance(value, Mapping):
        return value
    tree: dict[str, Json] = {}
    for key, inner in value.items():
        names = key.split(".")[:30]
        if names[-1] != "metadata":
            inner = _nest(inner, depth + 1)
        _put(tree, names, inner)
    return _lists(tree, 0)


def _put(tree: dict[str, Json], names: list[str], value: Json) -> None:
    for name in names[:-1]:
        below = tree.get(name)
        if not isinstance(below, dict):
            # A name that is both a value and a prefix keeps its value under the empty name.
            below = {} if below is None else {_LEAF: below}
            tree[name] = below
        tree = below
    last = tree.get(names[-1])
    if isinstance(last, dict) and isinstance(value, dict):
        last.update(value)
    elif isinstance(last, dict):
        last[_LEAF] = value
    else:
        tree[names[-1]] = value


def _lists(value: Json, depth: int) -> Json:
    if not isinstance(value, dict) or depth > 80:
        return value
    done = {key: inner if key == "metadata" else _lists(inner, depth + 1) for key, inner in value.items()}
    if done and all(key.isascii() and key.isdecimal() and len(key) < 12 for key in done):
        return [done[key] for key in sorted(done, key=int)]
    return done


def find_spans(source: Source, prefixes: tuple[str, ...]) -> tuple[list[RawSpan], int]:
    """All spans of an export, and how many carry attributes that begin with one of the prefixes."""
    found = find_rows(source, is_span)
    spans = [raw_span(mapping(hit.value), hit) for hit in found.hits]
    return spans, sum(any(key.startswith(prefixes) for key in span.attributes) for span in spans)


def is_span(row: Mapping[str, Json]) -> bool:
    """An object with attributes and the ids, name or kind of a span."""
    attributes = opened(first(row, "attributes", "span_attributes", "SpanAttributes"))
    flat = any(key.startswith("attributes.") for key in row)
    if not flat and not (isinstance(attributes, Mapping) or (isinstance(attributes, list) and attributes)):
        return False
    marks = ("name", "span_kind", "spanId", "span_id", "context", "context.span_id", "traceId", "trace_id", "parent_id")
    if isinstance(attributes, list) and not any(isinstance(item, Mapping) and "key" in item for item in attributes):
        return False
    return any(name in row for name in marks)
