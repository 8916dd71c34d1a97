"""The case in the making as this session holds it: what it came from, the user's changes, the way back. No Streamlit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lim_core.types import Case

_MOST_STEPS = 50


@dataclass(frozen=True, slots=True)
class Source:
    """What was pasted or uploaded; `digest` tells two apart."""

    name: str
    data: bytes = field(repr=False)
    digest: str

    @classmethod
    def of(cls, name: str, data: bytes) -> Source:
        """With its digest computed."""
        return cls(name, data, hashlib.sha256(data).hexdigest())


@dataclass(frozen=True, slots=True)
class Step:
    """One change: what it was, and the case before it (None: as it was imported)."""

    said: str
    case_id: str
    before: Case | None


@dataclass(frozen=True, slots=True)
class Work:
    """Changes to the cases of one source. `format` is `auto` or the user's word; `picked` the id of the case in hand.

    `edits` holds the changed cases by the id they were imported under; `suggested` is a chunk that a run found by meaning.
    `serial` counts changes, so that what is computed from a case can be kept until the next.
    """

    digest: str
    format: str = "auto"
    picked: str | None = None
    edits: Mapping[str, Case] = field(default_factory=dict)
    past: tuple[Step, ...] = ()
    suggested: str | None = None
    serial: int = 0

    def case(self, imported: Case) -> Case:
        """The case with the user's changes."""
        return self.edits.get(imported.id, imported)

    def changed(self, key: str, case: Case, said: str) -> Work:
        """With a case replaced, and the step remembered."""
        step = Step(said, key, self.edits.get(key))
        return replace(
            self,
            edits={**self.edits, key: case},
            past=(*self.past[-_MOST_STEPS + 1 :], step),
            serial=self.serial + 1,
        )

    def undone(self) -> Work:
        """Without the last change; picks the case that it was made to."""
        if not self.past:
            return self
        last = self.past[-1]
        edits = {key: case for key, case in self.edits.items() if key != last.case_id}
        if last.before is not None:
            edits[last.case_id] = last.before
        return replace(self, edits=edits, past=self.past[:-1], picked=last.case_id, serial=self.serial + 1)

    def reformatted(self, format: str) -> Work:
        """Read in another format: the changes were made to cases that are no more."""
        return Work(self.digest, format, serial=self.serial + 1)
