"""One retrieved document in the dress of one library, as a draft of a chunk."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lim_core.importers.drafts.draft import DraftChunk
from lim_core.importers.files.literals import CLASS
from lim_core.importers.shapes.fields import first, label, mapping, number, opened
from lim_core.types import Json

# Keys of metadata that hold a score by custom; none is a standard.
SCORE_NAMES = (
    "score",
    "_score",
    "similarity_score",
    "relevance_score",
    "similarity",
    "distance",
    "_distance",
    "rerank_score",
    "certainty",
)
TEXT_NAMES = ("text", "content", "page_content", "chunk", "chunk_text", "passage", "body", "snippet", "document")
ID_NAMES = ("id", "_id", "id_", "chunk_id", "doc_id", "docid", "document_id", "node_id", "pid", "c_idx")
_MOST = 20_000
_HASH = re.compile(r"[0-9a-f]{64}")
_HAYSTACK = ("blob", "sparse_embedding", "embedding", "meta", "score", "dataframe")
_NODE_CLASS = re.compile(r"(?:\w*Node|NodeWithScore|Document)\Z")


def langchain_chunk(value: Json) -> DraftChunk | None:
    """A LangChain Document: plain, as `lc` constructor, printed, or in a pair with its score."""
    pair = _pair(value)
    if pair is not None:
        inner = langchain_chunk(pair[0])
        return None if inner is None else _scored(inner, pair[1], "score")
    record = mapping(value)
    if record.get("lc") is not None and record.get("type") == "constructor":
        path = record.get("id")
        if not (isinstance(path, list) and path and str(path[-1]).endswith("Document")):
            return None
        record = mapping(record.get("kwargs"))
    body = record.get("page_content")
    if not isinstance(body, str):
        wrapped = first(record, "document", "doc", "Document")
        if isinstance(wrapped, Mapping) and isinstance(wrapped.get("page_content"), str):
            inner = langchain_chunk(wrapped)
            name, score = _score_of(record)
            return None if inner is None else _scored(inner, score, name)
        return None
    metadata = mapping(opened(record.get("metadata")))
    name, score = _score_of(record)
    if score is None:
        name, score = _score_of(metadata)
    return DraftChunk(body, record.get("id"), label(metadata.get("title")), score, metadata, score_name=name)


def llamaindex_chunk(value: Json) -> DraftChunk | None:
    """A LlamaIndex NodeWithScore or a bare node; the text is the node's own, not the rendered template."""
    record = mapping(value)
    wrapped = record.get("node")
    if isinstance(wrapped, Mapping):
        inner = _node(wrapped)
        return None if inner is None else _scored(inner, record.get("score"), "score")
    kind = first(record, "class_name", CLASS)
    if "id_" in record or (isinstance(kind, str) and _NODE_CLASS.match(kind) and "page_content" not in record):
        marks = sum(name in record for name in ("id_", "excluded_llm_metadata_keys", "relationships", "class_name"))
        return _node(record) if marks >= 1 else None
    return None


def _node(record: Mapping[str, Json]) -> DraftChunk | None:
    data = record.get("__data__")
    if isinstance(data, Mapping):
        record = data
    body = record.get("text")
    if not isinstance(body, str) or not body:
        inner = mapping(record.get("text_resource")).get("text")
        body = inner if isinstance(inner, str) else body
    if not isinstance(body, str):
        return None
    metadata = mapping(first(record, "metadata", "extra_info"))
    return DraftChunk(body, first(record, "id_", "node_id", "doc_id"), label(metadata.get("title")), None, metadata)


def haystack_chunk(value: Json) -> DraftChunk | None:
    """A Haystack Document, with meta flattened to the top level or kept apart."""
    record = mapping(value)
    inner = first(record, "init_parameters", "data")
    if isinstance(inner, Mapping) and str(record.get("type", "")).endswith("Document"):
        record = inner
    if "content" not in record or "role" in record or "page_content" in record:
        return None
    body = record["content"]
    if body is not None and not isinstance(body, str):
        return None
    marks = sum(name in record for name in _HAYSTACK)
    hashed = isinstance(record.get("id"), str) and _HASH.fullmatch(str(record["id"])) is not None
    printed = record.get(CLASS) == "Document"
    if marks + 2 * hashed + 2 * printed < 2 or not (hashed or printed or marks - ("score" in record) >= 1):
        return None
    own = {"id", "content", "blob", "dataframe", "score", "embedding", "sparse_embedding", "meta", "mime_type", CLASS}
    metadata = {name: inner for name, inner in record.items() if name not in own} | dict(mapping(record.get("meta")))
    title = label(metadata.get("title"))
    return DraftChunk(body or "", record.get("id"), title, record.get("score"), metadata, score_name="score")


def plain_chunk(value: Json) -> DraftChunk | None:
    """Any object with a text under a usual name, a vector store's hit, or a bare string."""
    if isinstance(value, str):
        return DraftChunk(value)
    pair = _pair(value)
    if pair is not None:
        inner = plain_chunk(pair[0])
        return None if inner is None else _scored(inner, pair[1], "score")
    record = mapping(value)
    if not record or "role" in record:
        return None
    inner_record = first(record, "_source", "payload", "document", "doc", "node", "chunk", "fields", "entity")
    holder = inner_record if isinstance(inner_record, Mapping) else record
    body = _body(holder)
    if body is None:
        body = _body(mapping(record.get("metadata")))
    if body is None:
        return None
    metadata = mapping(opened(first(holder, "metadata", "meta")))
    name, score = _score_of(record)
    if score is None:
        name, score = _score_of(holder)
    if score is None:
        name, score = _score_of(metadata)
    known = {*TEXT_NAMES, *ID_NAMES, *SCORE_NAMES, "metadata", "meta", "title", "embedding", "vector", "values"}
    extra = {key: inner for key, inner in holder.items() if key not in known}
    title = label(first(holder, "title", "document_title")) or label(metadata.get("title"))
    key = first(record, *ID_NAMES)
    return DraftChunk(
        body,
        first(holder, *ID_NAMES) if key is None else key,
        title,
        score,
        {**extra, **metadata},
        gold=first(holder, "isgold", "is_gold", "gold") in (True, "true", "True", "1", "yes", 1),
        score_name=name,
    )


def any_chunk(value: Json) -> DraftChunk | None:
    """A document in any dress known here, as traces hold them."""
    for shape in (langchain_chunk, llamaindex_chunk, haystack_chunk, plain_chunk):
        found = shape(value)
        if found is not None:
            return found
    return None


def any_chunks(value: Json) -> tuple[DraftChunk, ...] | None:
    """The documents of a list, or of an object with one list of documents; None where there are none."""
    value = opened(value)
    if isinstance(value, Mapping):
        for name in (
            "documents",
            "docs",
            "nodes",
            "source_nodes",
            "chunks",
            "results",
            "contexts",
            "context",
            "matches",
        ):
            inner = any_chunks(value.get(name)) if isinstance(value.get(name), list) else None
            if inner:
                return inner
        for name in ("output", "outputs", "result", "response"):
            inner = any_chunks(value.get(name)) if isinstance(value.get(name), list | Mapping) else None
            if inner:
                return inner
        return None
    if not isinstance(value, list) or not value:
        return None
    found = [any_chunk(opened(item)) for item in value[:_MOST]]
    kept = tuple(chunk for chunk in found if chunk is not None)
    return kept if len(kept) * 2 > len(found) else None


def _body(record: Mapping[str, Json]) -> str | None:
    return next((body for name in TEXT_NAMES if isinstance(body := record.get(name), str)), None)


def _pair(value: Json) -> tuple[Json, Json] | None:
    if isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], Mapping):
        second = value[1]
        if second is None or (isinstance(second, int | float) and not isinstance(second, bool)):
            return value[0], second
    return None


def _scored(chunk: DraftChunk, score: Json, name: str) -> DraftChunk:
    if number(score) is None:
        return chunk
    return DraftChunk(chunk.text, chunk.id, chunk.title, score, chunk.metadata, chunk.gold, name or "score")


def _score_of(record: Mapping[str, Json]) -> tuple[str, Json]:
    for name in SCORE_NAMES:
        if name in record and number(record[name]) is not None:
            return name, record[name]
    return "", None
