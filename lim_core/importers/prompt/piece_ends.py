"""Where a chunk ends that no further chunk follows, and lines that only part chunks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lim_core.importers.prompt.question import find_marker

RULE = re.compile(r"\n[ \t]*(?:-{3,}|={3,}|\*{3,}|_{3,}|~{3,}|#{3,})[ \t]*(?=\n|\Z)")
_CLOSING = re.compile(r"\n[ \t]*(?:</[A-Za-z][\w.-]*>|```|-{3,}|={3,}|\*{3,}|_{3,}|<\|)")


def without_rule(text: str, start: int, end: int) -> int:
    """End before a line of dashes that parts two chunks."""
    rules = [match.start() for match in RULE.finditer(text, start, end) if not text[match.end() : end].strip()]
    return rules[0] if rules else end


def end_of_last(text: str, start: int, others: Sequence[str]) -> int:
    """Where the last chunk ends: at a closing line, the question, or the first empty line that chunks do not have inside."""
    end = len(text)
    marker = find_marker(text, start)
    if marker is not None:
        end = marker.line_start
    closing = _CLOSING.search(text, start, end)
    if closing and not any(_CLOSING.search(f"\n{other}") for other in others):
        end = closing.start()
    if others and not any("\n\n" in other for other in others):
        lead = len(text[start:end]) - len(text[start:end].lstrip())
        blank = text.find("\n\n", start + lead, end)
        if blank >= 0:
            end = blank
        elif not any("\n" in other for other in others):
            line = text.find("\n", start + lead, end)
            end = line if line >= 0 else end
    return end
