"""What stage 3 saw of the chunks in the prompt as sent, as the position test needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lim_core.evidence import gold_of
from lim_core.types import Case, Finding, Json


def chunks_sent(case: Case, assembly: Finding | None) -> Case:
    """The case with the chunks that production sent, where the prompt as sent holds the gold whole; else the case as it is."""
    there = {str(row.get("id")) for row in _rows(assembly) if row.get("token_offset") is not None}
    whole = {str(row.get("id")) for row in _rows(assembly) if row.get("state") in ("whole", "doubled")}
    if not whole.issuperset({chunk.id for chunk in case.chunks}.intersection(gold_of(case).ids)):
        return case
    return replace(case, chunks=tuple(chunk for chunk in case.chunks if chunk.id in there))


def order_as_sent(assembly: Finding | None) -> list[str] | None:
    """Chunk ids in the order of the prompt as sent, as stage 3 found them; None where it found none."""
    found: list[tuple[float, str]] = []
    for row in _rows(assembly):
        offset, name = row.get("token_offset"), row.get("id")
        if isinstance(offset, int | float) and isinstance(name, str):
            found.append((offset, name))
    return [name for _, name in sorted(found, key=lambda each: each[0])] or None


def all_whole(assembly: Finding | None) -> bool:
    """Whether every chunk stands in the prompt as sent once, and whole."""
    rows = _rows(assembly)
    return bool(rows) and all(row.get("state") == "whole" for row in rows)


def _rows(assembly: Finding | None) -> list[Mapping[str, Json]]:
    """What stage 3 says of each chunk; empty where it was not run."""
    rows = assembly.evidence.get("chunks") if assembly is not None else None
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        return []
    return [row for row in rows if isinstance(row, Mapping)]
