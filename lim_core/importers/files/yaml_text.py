"""YAML from strangers: safe tags only, no aliases, bounded depth and size."""

from __future__ import annotations

from lim_core.errors import InputError
from lim_core.types import Json

# libyaml is quick, but Python objects from it are not; a configuration is never this large.
_YAML_BYTES = 1_000_000


def read_yaml(text: str, name: str) -> list[Json]:
    """The documents of a YAML text; dates become strings.

    Raises:
        InputError: too large, nested too deeply, with aliases or tags, or no YAML.
    """
    import yaml

    if len(text) > _YAML_BYTES:
        raise InputError(f"{name} is YAML of more than 1 MB: convert it to JSON.")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        depth = 0
        # Events come from an iterative parser: depth and aliases are seen before anything recursive is built.
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                raise InputError(f"{name} uses YAML aliases (*name), which are not read: write the values out.")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > 100:
                raise InputError(f"{name} is refused (nested too deeply): give a plainer file.")
        return [_plain(value) for value in yaml.load_all(text, Loader=loader) if value is not None]
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}" if mark is not None else ""
        raise InputError(f"{name} is no YAML that can be read{place}: correct it or give JSON.") from error


def _plain(value: object) -> Json:
    """Dates become strings, keys become strings."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
