"""Backends: what answers a prompt. Every module of this package is imported here, so each registers itself."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from lim_core.backends.registry import Backend, ModelSpec, backends
from lim_core.types import Model

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["Backend", "ModelSpec", "backends", "open_model", "spec_for"]


def open_model(spec: ModelSpec, key: str | None = None) -> Model:
    """Open the model that `spec` names; `key` stays in memory.

    Raises:
        UnknownName: no such backend.
        ConfigError: an option, the address, the model's files or the missing key make every call impossible.
    """
    return backends[spec.backend].part.open(spec, key)


def spec_for(model: str, base_url: str | None = None) -> ModelSpec:
    """The spec behind `--model` and `--base-url`: a backend's own name, else a model at an OpenAI-compatible endpoint."""
    if base_url is None and model in backends and model != "openai-compat":
        return ModelSpec(backend=model)
    return ModelSpec(backend="openai-compat", name=model, base_url=base_url)
