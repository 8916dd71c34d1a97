"""LlamaIndex source nodes."""

from __future__ import annotations

from lim_core.importers.drafts.draft import Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.importers.registry import importers
from lim_core.importers.shapes.chunk_shapes import llamaindex_chunk
from lim_core.importers.shapes.search import read_lists, see_lists


@importers.register("llamaindex", title="LlamaIndex source nodes", order=30)
class LlamaIndex:
    """`response.source_nodes` as JSON or as printed, with or without the response around them; bare nodes too."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """By a node with text and score, or by the fields only a node has."""
        return see_lists(source, llamaindex_chunk, 0.96, "nodes with text and score")

    @staticmethod
    def read(source: Source) -> Reading:
        """One case a list of nodes; the text is the node's own, not the rendered template."""
        return read_lists(source, llamaindex_chunk)
