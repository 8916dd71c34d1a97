"""The table of backends, what names one, and how its typed options are read.

A new backend is one file in this package: a class with an inner `Options` dataclass and a static `open`, registered by
the decorator below. It is found by its place, no list is edited.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from typing import Any, ClassVar, Protocol, TypeVar, get_args, get_type_hints

from lim_core.errors import ConfigError
from lim_core.registry import Registry
from lim_core.types import Json, Model


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Which model to open: the backend, the model's name there, its address, and the backend's own options.

    `name` None lets the backend choose; `base_url` None is the backend's default address. Never holds a key.
    """

    backend: str = "embedded"
    name: str | None = None
    base_url: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)


class OptionsType(Protocol):
    """A frozen dataclass whose fields are a backend's options; `metadata["help"]` says what each does."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


class Backend(Protocol):
    """What a backend's class offers: the type of its options, and how to open a model."""

    Options: type[OptionsType]

    @staticmethod
    def open(spec: ModelSpec, key: str | None) -> Model:
        """Open the model.

        Raises:
            ConfigError: the spec or an option is wrong, or the model's files are.
        """


backends: Registry[Backend] = Registry("model backend")

O = TypeVar("O", bound=OptionsType)  # noqa: E741


def option(default: Json, help: str) -> Any:
    """A field of an `Options` dataclass with its default and the sentence a form shows beside it."""
    return field(default=default, metadata={"help": help})


def read_options(kind: type[O], given: Mapping[str, Json], backend: str) -> O:
    """Build a backend's options from a mapping; unknown names and wrong types are refused.

    Raises:
        ConfigError: an unknown option, or a value of the wrong type.
    """
    hints = get_type_hints(kind)
    known = {f.name: f for f in fields(kind)}
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ConfigError(f"Backend {backend} has no option {name!r}.{hint} Known: {', '.join(known)}.")
        values[name] = _typed(name, value, hints[name], backend)
    missing = [f.name for f in known.values() if f.name not in values and f.default is MISSING]
    if missing:
        raise ConfigError(f"Backend {backend} needs the option {missing[0]}.")
    return kind(**values)


def _typed(name: str, value: Json, hint: object, backend: str) -> Json:
    if hint == tuple[str, ...]:
        if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise ConfigError(f"Option {name} of backend {backend} must be a list of texts, not {value!r}.")
    accepted = get_args(hint) or (hint,)
    for kind in accepted:
        # bool is an int to Python, but `n_ctx: true` is a mistake.
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if kind is type(None) and value is None:
            return None
        if isinstance(kind, type) and isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return value
    wanted = " or ".join("nothing" if kind is type(None) else getattr(kind, "__name__", str(kind)) for kind in accepted)
    raise ConfigError(f"Option {name} of backend {backend} must be {wanted}, not {value!r}.")
