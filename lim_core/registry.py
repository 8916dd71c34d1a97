"""Tables of parts that plug in: stages, orderings, judges, importers, backends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import getdoc
from typing import Generic, TypeVar

from lim_core.errors import UnknownName

T = TypeVar("T")
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One registered part: its stable name, its title for people, its help text and the part itself."""

    name: str
    title: str
    help: str
    order: int
    part: T


class Registry(Generic[T]):
    """Parts of one kind by name. Filled at import by decorators, read-only afterwards by convention.

    Names are stored in runs, so they never change once released.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, Entry[T]] = {}

    def register(self, name: str, *, title: str, order: int = 0) -> Callable[[P], P]:
        """Decorator that files a part under `name`; its docstring becomes its help text.

        Raises:
            ValueError: the name is taken.
        """

        def file(part: P) -> P:
            if name in self._entries:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            # P is kept apart from T so that the decorated object keeps its own, narrower type.
            self._entries[name] = Entry(name, title, getdoc(part) or "", order, part)  # type: ignore[arg-type]
            return part

        return file

    def __getitem__(self, name: str) -> Entry[T]:
        """Look a part up.

        Raises:
            UnknownName: no such part; the message suggests the nearest name and lists all.
        """
        try:
            return self._entries[name]
        except KeyError:
            near = get_close_matches(name, self._entries, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            known = ", ".join(entry.name for entry in self)
            raise UnknownName(f"There is no {self.kind} {name!r}.{hint} Known: {known}.") from None

    def __iter__(self) -> Iterator[Entry[T]]:
        return iter(sorted(self._entries.values(), key=lambda entry: (entry.order, entry.name)))

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)
