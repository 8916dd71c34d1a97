"""Case files: writing them, so that reading gives the case back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from lim_core.types import Case, Chunk, Json, Usage


def case_to_json(case: Case) -> dict[str, Json]:
    """The case as its file would hold it; fields that are absent are left out. `case_from_json` gives it back."""
    out: dict[str, Json] = {"id": case.id, "question": case.question}
    if case.answers:
        out["answers"] = list(case.answers)
    out["chunks"] = _chunks_to_json(case.chunks)
    optional: dict[str, Json] = {
        "gold_ids": list(case.gold_ids) or None,
        "candidates": None if case.candidates is None else _chunks_to_json(case.candidates),
        "corpus": None if case.corpus is None else _chunks_to_json(case.corpus),
        "score_direction": case.score_direction.value if case.score_direction else None,
        "prompt": [{"role": m.role, "content": m.content} for m in case.prompt] if case.prompt else None,
        "answer": case.answer,
        "usage": None if case.usage is None else _usage_to_json(case.usage),
        "finish_reason": case.finish_reason,
        "params": dict(case.params) or None,
        "context_window": case.context_window,
        "max_output_tokens": case.max_output_tokens,
        "model": case.model,
        "forbidden_ids": list(case.forbidden_ids) or None,
        "answerable": case.answerable,
        "tags": list(case.tags) or None,
        "harmless_ids": list(case.harmless_ids) or None,
    }
    return out | {key: value for key, value in optional.items() if value is not None}


def _chunks_to_json(chunks: Sequence[Chunk]) -> list[Json]:
    return [_chunk_to_json(chunk) for chunk in chunks]


def _chunk_to_json(chunk: Chunk) -> dict[str, Json]:
    out: dict[str, Json] = {"id": chunk.id, "text": chunk.text}
    if chunk.title:
        out["title"] = chunk.title
    if chunk.score is not None:
        out["score"] = chunk.score
    if chunk.metadata:
        out["metadata"] = dict(chunk.metadata)
    return out


def _usage_to_json(usage: Usage) -> dict[str, Json]:
    return {name: count for name, count in asdict(usage).items() if count is not None}
