"""Chunks in a JSON array inside a prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from lim_core.importers.files.strict import BadJson, decode
from lim_core.importers.prompt.pieces import MAX_PIECES, Piece, Pieces
from lim_core.importers.shapes.chunk_shapes import TEXT_NAMES
from lim_core.importers.shapes.fields import first, label, mapping
from lim_core.types import Json

_ARRAY = re.compile(r"\[\s*(?=[{\"])")
_MAX_ARRAYS = 40


def in_json(text: str) -> Pieces | None:
    """Chunks in a JSON array of objects or strings; their texts are unescaped."""
    for count, match in enumerate(_ARRAY.finditer(text)):
        if count >= _MAX_ARRAYS:
            break
        try:
            value, end = decode(text, match.start())
        except BadJson:
            continue
        items = value if isinstance(value, list) else []
        pieces = _json_pieces(text, match.start(), end, items)
        if pieces is not None and len(pieces) >= 2:
            return Pieces(pieces, "a JSON array", 0.97)
    return None


def _json_pieces(text: str, start: int, end: int, items: Sequence[Json]) -> tuple[Piece, ...] | None:
    """Where each item's text stands in the source, escapes and all."""
    pieces: list[Piece] = []
    at = start
    for item in items[:MAX_PIECES]:
        record = mapping(item)
        body = (
            item
            if isinstance(item, str)
            else next((b for n in TEXT_NAMES if isinstance(b := record.get(n), str)), None)
        )
        if not body or (isinstance(item, str) and len(item) < 15):
            return None
        place = next(((i, raw) for raw in escaped(body) if (i := text.find(f'"{raw}"', at, end)) >= 0), None)
        if place is None:
            return None
        low, raw = place[0] + 1, place[1]
        at = low + len(raw)
        key = label(first(record, "id", "doc_id", "chunk_id"))
        pieces.append(Piece(low, at, body, label(record.get("title"))[:200], key[:200]))
    return tuple(pieces)


def escaped(text: str) -> Iterator[str]:
    """How a text may stand inside a JSON string, without its quotes."""
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield json.dumps(text)[1:-1]
