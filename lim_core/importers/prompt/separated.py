"""Chunks parted by lines of dashes, by empty lines, or by Markdown headings."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from lim_core.importers.prompt.piece_ends import RULE, end_of_last
from lim_core.importers.prompt.pieces import MAX_PIECES, Piece, Pieces, trimmed
from lim_core.importers.prompt.question import find_marker

_LEAD = re.compile(
    r"^[ \t#*]*(?:(?:the |relevant |retrieved |use the following |here (?:is|are) (?:the |some )?)?"
    r"(?:context|documents?|sources?|passages?|excerpts?|snippets?|search results?|knowledge|reference material|information|"
    r"kontext|dokumente)[^\n]{0,60}?)[ \t*]*(?::[ \t*]*|\n)",
    re.IGNORECASE | re.MULTILINE,
)


_WEAK_LEAD = re.compile(
    r"^[^\n]{0,200}\b(?:context|documents|passages|sources|excerpts|search results|information|facts)\b"
    r"[^\n]{0,200}[.:][ \t]*\n",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER = re.compile(r"\n[ \t#*]*(?:helpful |final |your )?answer[ \t*]*:", re.IGNORECASE)


def _region(text: str) -> tuple[int, int]:
    """The part of a prompt that holds the context: after a line that announces it, before the question or the answer."""
    lead = _LEAD.search(text) or _WEAK_LEAD.search(text)
    start = lead.end() if lead else 0
    marker = find_marker(text, start)
    end = marker.line_start if marker is not None else len(text)
    answer = _ANSWER.search(text, start, end)
    return start, answer.start() if answer else end


def separated(text: str) -> Pieces | None:
    """Chunks parted by lines of dashes, stars or equals signs; one fence around all of them is opened."""
    start, end = _region(text)
    bounds = [start]
    for match in RULE.finditer(text, max(start - 1, 0), end):
        bounds += [match.start(), match.end()]
        if len(bounds) > 2 * MAX_PIECES:
            return None
    bounds.append(end)
    if len(bounds) < 4:
        return None
    parts = [trimmed(text, low, max(low, high)) for low, high in zip(bounds[::2], bounds[1::2], strict=True)]
    fenced = parts[0] is None and len(parts) == 3 and parts[1] is not None
    if fenced and parts[1] is not None:
        # One fence around the whole context: the chunks inside are parted by something else.
        return _paragraphs(text, parts[1].start, parts[1].end, 0.72)
    if parts[0] is None and len(parts) > 2:
        parts = parts[1:-1] if _instruction(parts[-1]) else parts[1:]
    elif parts[-1] is not None and "\n\n" in parts[-1].text and not any(p and "\n\n" in p.text for p in parts[:-1]):
        last = parts[-1]
        parts[-1] = trimmed(text, last.start, text.find("\n\n", last.start))
    pieces = tuple(piece for piece in parts if piece is not None)
    return Pieces(pieces, "lines of dashes between them", 0.8 if start else 0.7) if len(pieces) >= 2 else None


def _instruction(piece: Piece | None) -> bool:
    return piece is None or bool(
        re.match(r"(?:given|using|based|answer|please|now|if|respond)\b", piece.text, re.IGNORECASE)
    )


def empty_lines(text: str) -> Pieces | None:
    """Chunks parted by empty lines, after a line that announces the context."""
    start, end = _region(text)
    return _paragraphs(text, start, end, 0.55) if start else None


# `file_name: leave.md`, which LlamaIndex puts before each text.
_METADATA = re.compile(r"(?:[A-Za-z_][\w -]{0,30}: [^\n]{1,200}(?:\n|\Z)){1,8}\Z")


def _paragraphs(text: str, start: int, end: int, sure: float) -> Pieces | None:
    pieces: list[Piece] = []
    at = start
    for match in re.compile(r"\n[ \t]*\n\s*|\Z").finditer(text, start, end):
        piece = trimmed(text, at, min(match.start(), end))
        if piece is not None:
            pieces.append(piece)
        at = match.end()
    if at < end and (piece := trimmed(text, at, end)) is not None:
        pieces.append(piece)
    texts = [piece for piece in pieces if not _METADATA.match(piece.text)]
    if len(texts) * 2 >= len(pieces):
        pieces = texts
    if not 2 <= len(pieces) <= MAX_PIECES:
        return None
    return Pieces(tuple(pieces), "empty lines between them", sure)


_HEADING = re.compile(r"^(#{1,5})[ \t]+([^\n]+)$", re.MULTILINE)
_NO_CHUNK = re.compile(
    r"(?:question|query|instructions?|task|answer|context|documents?|sources?|rules?|output|format|role|system)\b[: ]*\Z",
    re.IGNORECASE,
)


def headed(text: str) -> Pieces | None:
    """Chunks under Markdown headings of one level; the heading is the title."""
    headings = list(_HEADING.finditer(text))
    levels = sorted({len(match.group(1)) for match in headings}, key=lambda level: -_count(headings, level))
    for level in levels:
        marks = [
            match for match in headings if len(match.group(1)) == level and not _NO_CHUNK.match(match.group(2).strip())
        ]
        if not 2 <= len(marks) <= MAX_PIECES:
            continue
        stops = [match.start() for match in headings if len(match.group(1)) <= level]
        pieces: list[Piece] = []
        for match in marks:
            following = stops[bisect_right(stops, match.start()) :]
            last = match is marks[-1]
            end = following[0] if following else len(text)
            if last:
                end = min(end, end_of_last(text, match.end(), [text[p.start : p.end] for p in pieces]))
            piece = trimmed(text, match.end(), end, match.group(2).strip().strip("#* "))
            if piece is not None:
                pieces.append(piece)
        if len(pieces) >= 2:
            return Pieces(tuple(pieces), "Markdown headings", 0.68)
    return None


def _count(headings: Sequence[re.Match[str]], level: int) -> int:
    return sum(len(match.group(1)) == level for match in headings)
