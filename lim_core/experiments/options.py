"""Options of experiments as a run stores them, read back with their types checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lim_core.errors import InputError
from lim_core.types import Json


@dataclass(frozen=True, slots=True)
class Levels:
    """Error rate of a claim, the smallest gap in accuracy that matters, and the seed of every draw."""

    alpha: float = 0.05
    delta: float = 0.2
    seed: int = 0


def names_of(value: Mapping[str, Json], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """A list of names, doubles dropped.

    Raises:
        InputError: it is no list of texts.
    """
    found = value.get(name)
    if found is None:
        return default
    if isinstance(found, str) or not isinstance(found, list | tuple) or not all(isinstance(one, str) for one in found):
        raise InputError(f"{name} must be a list of names.")
    return tuple(dict.fromkeys(str(one) for one in found))


def wholes_of(value: Mapping[str, Json], name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    """A list of whole numbers, doubles dropped.

    Raises:
        InputError: it is no list of whole numbers.
    """
    found = value.get(name)
    if found is None:
        return default
    if not isinstance(found, list | tuple):
        raise InputError(f"{name} must be a list of whole numbers.")
    numbers = []
    for one in found:
        if isinstance(one, bool) or not isinstance(one, int):
            raise InputError(f"{name} must be a list of whole numbers.")
        numbers.append(one)
    return tuple(dict.fromkeys(numbers))


def whole_of(value: Mapping[str, Json], name: str, default: int) -> int:
    """A whole number.

    Raises:
        InputError: it is something else.
    """
    found = value.get(name)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int):
        raise InputError(f"{name} must be a whole number.")
    return found


def share_of(value: Mapping[str, Json], name: str, default: float) -> float:
    """A number in (0, 1).

    Raises:
        InputError: it is something else.
    """
    found = value.get(name)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < 1:
        raise InputError(f"{name} must be a number between 0 and 1.")
    return float(found)
