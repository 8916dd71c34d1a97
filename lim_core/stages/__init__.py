"""The stages of a diagnosis, one module each; importing the package fills the registry `stages`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from lim_core.stages.registry import stages

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["stages"]
