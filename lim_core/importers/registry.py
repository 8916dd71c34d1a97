"""The table of importers, and what each one offers.

A new family of shapes is one file in this package: a class with `recognise` and `read`, registered by the decorator. It is
found by its place, no list is edited.
"""

from __future__ import annotations

from typing import Protocol

from lim_core.importers.drafts.draft import Reading, Sighting
from lim_core.importers.files.source import Source
from lim_core.registry import Registry


class Importer(Protocol):
    """One family of shapes. Both functions are pure: no file, no network."""

    @staticmethod
    def recognise(source: Source) -> Sighting | None:
        """Whether this is my shape: how sure, and how deep in the file it stands. `source` may be a sample of the file."""

    @staticmethod
    def read(source: Source) -> Reading:
        """Map the whole file onto drafts of cases; what cannot be read is listed with its reason."""


importers: Registry[Importer] = Registry("import format")
