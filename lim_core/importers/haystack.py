"""Haystack documents."""

from __future__ import annotations

from dataclasses import replace

from lim_core.importers.drafts.draft import Draft, Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.chunk_shapes import haystack_chunk
from lim_core.importers.shapes.search import read_lists, see_lists

_PRINTED = 100


@importers.register("haystack", title="Haystack documents", order=40)
class Haystack:
    """Documents of Haystack 2, meta flattened to the top level (its default) or kept apart."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By content together with the fields only a Haystack document has."""
        return see_lists(source, haystack_chunk, 0.93, "objects with content and blob, embedding or meta")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a list of documents; unknown top-level fields are metadata."""
        reading = read_lists(source, haystack_chunk)
        if source.kind != "python":
            return reading
        return replace(reading, drafts=tuple(_warn_of_cut(draft) for draft in reading.drafts))


def _warn_of_cut(draft: Draft) -> Draft:
    """A printed Haystack document shows 100 characters only; what is cut cannot be diagnosed."""
    cut = sum(len(c.text) == _PRINTED + 3 and c.text.endswith("...") for c in draft.chunks or ())
    if not cut:
        return draft
    note = f"{cut} text(s) end after 100 characters, where Haystack's print cuts them: use to_dict() to get the whole"
    return replace(draft, notes=(*draft.notes, note))
