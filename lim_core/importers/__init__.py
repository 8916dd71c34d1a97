"""Importers: from what people have at hand to cases. Every module of this package is imported here, so each registers."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from lim_core.importers.drafts.report import ImportReport, report_json, report_text
from lim_core.importers.intake import Imported, import_file
from lim_core.importers.prompt.proposal import Proposal, accept, propose
from lim_core.importers.prompt.template import Learned, UserTemplate, learn_template, template_of
from lim_core.importers.registry import Importer, importers

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = [
    "ImportReport",
    "Imported",
    "Importer",
    "Learned",
    "Proposal",
    "UserTemplate",
    "accept",
    "import_file",
    "importers",
    "learn_template",
    "propose",
    "report_json",
    "report_text",
    "template_of",
]
