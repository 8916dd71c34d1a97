"""LangChain documents."""

from __future__ import annotations

from lim_core.importers.drafts.draft import Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.chunk_shapes import langchain_chunk
from lim_core.importers.shapes.search import read_lists, see_lists


@importers.register("langchain", title="LangChain documents", order=10)
class LangChain:
    """Documents as a list of objects, as `lc` constructors, in pairs with a score, or as print shows them."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By `page_content`, the one field every Document has."""
        return see_lists(source, langchain_chunk, 0.97, "objects with page_content")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a list of documents."""
        return read_lists(source, langchain_chunk)
