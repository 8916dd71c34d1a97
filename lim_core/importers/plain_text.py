"""Plain text and Markdown: a prompt as it was sent, or chunks parted by a separator."""

from __future__ import annotations

from lim_core.importers.drafts.draft import Draft, DraftChunk, Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.importers.prompt.pieces import Pieces
from lim_core.importers.prompt.prompt_chunks import MAX_CHARACTERS, find_pieces
from lim_core.importers.prompt.question import find_marker
from lim_core.importers.registry import importers

# Numbers, tags and JSON arrays, in the scale of `find_pieces`.
_LAID_OUT = 0.85
# A text that reads like an instruction is a prompt; one that does not is chunks.
_PROMPT_WORDS = (
    "answer the question",
    "use the following",
    "given the context",
    "based on the",
    "context:",
    "you are a",
)


@importers.register("text", title="Plain text and Markdown", order=200)
class PlainText:
    """A prompt as sent, kept whole with its chunks proposed; or chunks parted by lines of dashes, numbers or headings."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """Any text that is nothing else and holds at least two chunks."""
        if source.kind != "text":
            return None
        found = find_pieces(source.text)
        if _is_prompt(source.text, found):
            return Sighting(0.6 if found else 0.5, 0, "a text that asks a question about a context")
        return Sighting(0.5 if found else 0.3, 0, f"a text with {found.how}" if found else "a text")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case: a prompt that needs its chunks confirmed, or the chunks themselves."""
        if source.kind != "text" and not source.text.strip():
            return Reading(())
        found = find_pieces(source.text)
        if _is_prompt(source.text, found):
            return Reading((Draft(line=1, prompt=source.text),))
        if found is None:
            note = "no separator was found, so the whole text is one chunk: part the chunks with lines of ---"
            return Reading((Draft(line=1, chunks=(DraftChunk(source.text.strip()),), notes=(note,)),))
        chunks = tuple(DraftChunk(piece.text, piece.id or None, piece.title) for piece in found.pieces)
        marker = find_marker(source.text)
        note = f"the text was split into {len(chunks)} chunks: {found.how}"
        return Reading((Draft(line=1, question=marker.question if marker else None, chunks=chunks, notes=(note,)),))


def _is_prompt(text: str, found: Pieces | None) -> bool:
    """Whether it asks a question and either says what to do or lays its chunks out as only a template does."""
    if len(text) > MAX_CHARACTERS or find_marker(text) is None:
        return False
    low = f"{text[:4_000]}\n{text[-2_000:]}".lower()
    return (found is not None and found.sure >= _LAID_OUT) or any(word in low for word in _PROMPT_WORDS)
