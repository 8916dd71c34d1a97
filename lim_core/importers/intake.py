"""From the bytes of a file or a paste to cases and the import report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from lim_core.errors import InputError
from lim_core.importers.drafts.building import Builder
from lim_core.importers.drafts.draft import Sighting, Skipped
from lim_core.importers.drafts.report import CaseReport, ImportReport
from lim_core.importers.files.source import Source, read_source
from lim_core.importers.prompt.proposal import Proposal
from lim_core.importers.registry import Importer, importers
from lim_core.registry import Entry
from lim_core.types import Case

# Below this nothing is claimed; the user names the format.
_LEAST_SURE = 0.3
# Above this a family's own shape beats any general one, wherever it stands.
_SPECIFIC = 0.75
_MAX_CASES = 5_000


@dataclass(frozen=True, slots=True)
class Imported:
    """Cases in file order with the report. Cases tagged needs-chunks or needs-question wait for the user."""

    cases: tuple[Case, ...]
    report: ImportReport

    @property
    def proposals(self) -> Mapping[str, Proposal]:
        """By case id: the chunks and question proposed from a prompt where the file had none."""
        return {case.case_id: case.proposal for case in self.report.cases if case.proposal is not None}


@dataclass(frozen=True, slots=True)
class Recognised:
    """One format that a file may be in."""

    format: str
    title: str
    sighting: Sighting


def import_file(data: bytes, name: str, format: str = "auto") -> Imported:
    """Read any known shape into cases. `name` is used in messages, for ids, and its ending as a hint.

    `format` is `auto` or a name of `importers`.

    Raises:
        InputError: no text, too large, a bomb, a shape that is not known, or no case in it.
        UnknownName: no such format.
    """
    if format != "auto":
        importers[format]
    source = read_source(data, name, format)
    ranked = recognise(source)
    if format == "auto":
        if not ranked or ranked[0].sighting.sure < _LEAST_SURE:
            known = ", ".join(entry.name for entry in importers)
            raise InputError(f"{name} has no shape that is known here: name its format, one of {known}.")
        chosen = ranked[0]
    else:
        chosen = next((one for one in ranked if one.format == format), None) or Recognised(
            format, importers[format].title, Sighting(0.0, 0, "named by the user")
        )
    return _read(source, importers[chosen.format], chosen, ranked)


def recognise(source: Source) -> tuple[Recognised, ...]:
    """The formats that fit, the likeliest first: a family's own shape before general ones, the outermost before inner ones."""
    sample = source.sample()
    found: list[Recognised] = []
    for entry in importers:
        sighting = entry.part.recognise(sample)
        if sighting is not None:
            found.append(Recognised(entry.name, entry.title, sighting))
    return tuple(sorted(found, key=_rank))


def _rank(one: Recognised) -> tuple[bool, int, float]:
    sighting = one.sighting
    return sighting.sure < _SPECIFIC, sighting.depth if sighting.sure >= _SPECIFIC else 0, -sighting.sure


def _rivals(other: Recognised, chosen: Recognised) -> bool:
    """Whether the other is worth naming: general shapes fit anything, and inner shapes are part of the outer one."""
    if chosen.sighting.sure < _SPECIFIC:
        return True
    return other.sighting.sure >= _SPECIFIC and other.sighting.depth <= chosen.sighting.depth


def _read(source: Source, entry: Entry[Importer], chosen: Recognised, ranked: tuple[Recognised, ...]) -> Imported:
    reading = entry.part.read(source)
    skipped = [*source.skipped, *reading.skipped]
    builder = Builder(entry.name, _stem(source.name))
    cases: list[Case] = []
    reports: list[CaseReport] = []
    for position, draft in enumerate(reading.drafts[:_MAX_CASES], 1):
        built = builder.build(draft, position, len(reading.drafts))
        if isinstance(built, Skipped):
            skipped.append(built)
        else:
            cases.append(built.case)
            reports.append(built.report)
    if len(reading.drafts) > _MAX_CASES:
        skipped.append(
            Skipped(f"{len(reading.drafts) - _MAX_CASES} more records: at most {_MAX_CASES} are read at once")
        )
    if not cases:
        raise InputError(
            f"{source.name} looks like {entry.title}, but holds no case: {_reason(skipped, reading.notes)}."
        )
    report = ImportReport(
        name=source.name,
        format=entry.name,
        title=entry.title,
        sure=chosen.sighting.sure,
        why=chosen.sighting.why,
        others=tuple((o.format, o.sighting.sure) for o in ranked if o.format != entry.name and _rivals(o, chosen))[:3],
        kind=source.kind,
        packing=source.packing,
        encoding=source.encoding,
        read=len(cases),
        skipped=tuple(sorted(skipped, key=lambda skip: skip.line if skip.line is not None else 0)),
        cases=tuple(reports),
        notes=(*source.notes, *reading.notes),
    )
    return Imported(tuple(cases), report)


def _reason(skipped: list[Skipped], notes: tuple[str, ...]) -> str:
    if notes:
        return notes[0].rstrip(".")
    return skipped[0].reason.rstrip(".")[:300] if skipped else "nothing in it can be read as chunks or a prompt"


def _stem(name: str) -> str:
    path = PurePath(name.removesuffix(".gz"))
    stem = "".join(c for c in path.stem if c.isprintable()).strip()
    return stem[:80] if path.suffix and stem else "case"
