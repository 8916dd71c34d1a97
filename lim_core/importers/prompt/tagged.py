"""Chunks in XML-like tags."""

from __future__ import annotations

import re

from lim_core.importers.prompt.pieces import MAX_PIECES, Piece, Pieces, trimmed, words

_OPEN = re.compile(r"<([A-Za-z][A-Za-z_.-]{0,40}?)([_-]?\d{1,4})?((?:\s[^<>]{0,1000})?)>")
_TAGS = words(
    """document doc chunk passage context source item snippet result excerpt article page record node paragraph file entry
    search_result evidence text quote reference"""
)
_NO_TAGS = words(
    """p b i u a br hr li ul ol em strong span div td tr th table code pre h1 h2 h3 h4 h5 h6 html body head question query
    user_query user_question instructions instruction thinking answer example examples system user assistant"""
)
_INNER = ("document_content", "page_content", "content", "text", "passage_text", "body", "contents")
_TITLES = ("title", "source", "name")
_MAX_FAILURES = 50


def tagged(text: str) -> Pieces | None:
    """Chunks in tags such as <document>, numbered or with attributes; the tag that repeats outermost is the chunk."""
    groups: dict[str, list[tuple[int, int, str]]] = {}
    ends: dict[str, int] = {}
    failures = 0
    for match in _OPEN.finditer(text):
        stem = match.group(1).lower()
        if stem in _NO_TAGS or match.start() < ends.get(stem, 0) or len(groups.get(stem, ())) >= MAX_PIECES:
            continue
        close = text.find(f"</{match.group(1)}{match.group(2) or ''}>", match.end())
        if close < 0:
            failures += 1
            if failures > _MAX_FAILURES:
                break
            continue
        ends[stem] = close
        groups.setdefault(stem, []).append((match.end(), close, match.group(3)))
    best: Pieces | None = None
    outermost = 0
    for stem, ranges in groups.items():
        known = stem in _TAGS
        inner = [_inside(text, *one) for one in ranges]
        pieces = tuple(piece for piece in inner if piece is not None)
        if len(pieces) < (1 if known and stem != "context" else 2):
            continue
        if not known and any(other in _TAGS for other in groups if len(groups[other]) >= len(ranges)):
            continue
        sure = (0.95 if known else 0.75) - (0.25 if len(pieces) == 1 else 0.0)
        # Of tags inside one another the outermost that repeats is the chunk.
        if best is None or sure > best.sure or (sure == best.sure and ranges[0][0] < outermost):
            best, outermost = Pieces(pieces, f"tags <{stem}>", sure), ranges[0][0]
    return best


def _inside(text: str, start: int, end: int, attributes: str) -> Piece | None:
    """The text between two tags, or in the one child that holds it; blanks at its edges stay with the template."""
    title = next((found for name in _TITLES if (found := _attribute(attributes, name))), "")
    for name in _TITLES:
        low = text.find(f"<{name}>", start, end)
        high = text.find(f"</{name}>", low, end) if low >= 0 else -1
        if high >= 0 and not title:
            title = text[low + len(name) + 2 : high].strip()
    for name in _INNER:
        low = text.find(f"<{name}>", start, end)
        high = text.find(f"</{name}>", low, end) if low >= 0 else -1
        if high >= 0:
            return trimmed(text, low + len(name) + 2, high, title)
    return trimmed(text, start, end, title, _attribute(attributes, "id"))


def _attribute(attributes: str, name: str) -> str:
    found = re.search(rf"\b{name}\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", attributes)
    return (found.group(1) or found.group(2) or "").strip() if found else ""
