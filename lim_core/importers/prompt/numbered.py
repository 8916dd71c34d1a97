"""Numbered documents."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lim_core.importers.prompt.piece_ends import end_of_last, without_rule
from lim_core.importers.prompt.pieces import MAX_PIECES, Piece, Pieces, trimmed

_WORDS = (
    "document|doc|passage|chunk|context|source|excerpt|snippet|article|result|reference|text|item|section|evidence"
    "|paragraph|quote|extract|search result|dokument|quelle|abschnitt|fuente|documento"
)
_NUMBERED = re.compile(
    rf"^[ \t]*(?P<lead>[#>*=-]{{0,6}}[ \t]*)(?P<word>(?:{_WORDS})\b)?[ \t]*(?P<open>\[\[?|\(|#|<)?(?P<number>\d{{1,4}})"
    r"(?P<close>\]\]?|\)|>)?(?P<mark>[ \t]*(?:\*\*|[:.)\-\u2013\u2014|]|={3,})*)(?=\s|\(|\S)",
    re.IGNORECASE | re.MULTILINE,
)
_TITLE = re.compile(r"[ \t]*\((?:title|source|titel)\s*:\s*([^)\n]{0,300})\)[ \t]*:?", re.IGNORECASE)


def numbered(text: str) -> Pieces | None:
    """Chunks under rising numbers: `Document [1](Title: ...)`, `[1]`, `Source 1:`, `1.`; a number follows its place."""
    runs: dict[tuple[str, str, str, str], list[re.Match[str]]] = {}
    for match in _NUMBERED.finditer(text):
        word, opened, mark = (match.group("word") or "").lower(), match.group("open") or "", match.group("mark").strip()
        if not word and not (opened and match.group("close")) and not (not opened and mark[:1] in (".", ")", ":")):
            continue
        if not word and not text[match.end() : match.end() + 1].isspace() and match.group("close") is None:
            continue  # 3.14, 12:30
        run = runs.setdefault((match.group("lead").strip(), word, opened, match.group("close") or ""), [])
        number = int(match.group("number"))
        if (not run and number in (0, 1)) or (run and number == int(run[-1].group("number")) + 1):
            run.append(match)
    best: Pieces | None = None
    for (_, word, opened, _), run in runs.items():
        if len(run) < 2 or len(run) > MAX_PIECES:
            continue
        pieces = _between(text, [(match.start(), match.end()) for match in run], titled=True)
        if pieces is None:
            continue
        sure = 0.93 if word else 0.86 if opened else 0.5
        if not word and not opened and sum(len(piece.text) for piece in pieces) < 30 * len(pieces):
            continue  # numbered instructions
        if best is None or sure > best.sure:
            best = Pieces(pieces, "numbered documents", sure)
    return best


def _between(text: str, marks: Sequence[tuple[int, int]], titled: bool) -> tuple[Piece, ...] | None:
    """The texts between marks; the last one ends where the rest of the prompt begins."""
    pieces: list[Piece] = []
    for index, (_, start) in enumerate(marks):
        title = ""
        found = _TITLE.match(text, start) if titled else None
        if found:
            title, start = found.group(1).strip(), found.end()
        last = index + 1 == len(marks)
        end = end_of_last(text, start, [text[p.start : p.end] for p in pieces]) if last else marks[index + 1][0]
        piece = trimmed(text, start, without_rule(text, start, end), title)
        if piece is None:
            return None
        pieces.append(piece)
    return _first_lines_off(text, pieces)


_LABEL = re.compile(r"(?:content|text|passage|body|excerpt|title|source)[ \t]*:[ \t]*", re.IGNORECASE)


def _first_lines_off(text: str, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Where every chunk begins with a short line that is no sentence, that line is its title."""
    found: list[Piece] = []
    for piece in pieces:
        line, _, rest = piece.text.partition("\n")
        if piece.title or not rest.strip() or len(line) > 120 or line.rstrip()[-1:] in ".!?;,":
            return tuple(pieces)
        start = piece.start + len(line) + 1
        while text[start].isspace():
            start += 1
        label = _LABEL.match(text, start)
        start = label.end() if label else start
        title = _LABEL.sub("", line, count=1).strip(" \t:()*")
        short = trimmed(text, start, piece.end, title)
        if short is None:
            return tuple(pieces)
        found.append(short)
    return tuple(found)
