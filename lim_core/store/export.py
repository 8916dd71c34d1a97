"""A run as one JSON object, and its trials as a file of rows: Parquet, CSV or JSON lines."""

from __future__ import annotations

import csv
import errno
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from lim_core.errors import InputError, StoreFull
from lim_core.store.encoding import to_json
from lim_core.store.records import RunRecord, TrialRow
from lim_core.types import Json

# What a spreadsheet takes for the start of a formula, in the wide forms of Chinese and Japanese keyboards too.
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def run_to_json(
    run: RunRecord,
    document: Mapping[str, Json] | None,
    cases: Sequence[Mapping[str, Json]],
    trials: Sequence[TrialRow],
    calls: Sequence[Mapping[str, Json]],
) -> str:
    """One strict JSON object: run, document, case or cases (the other is null), trials, the calls with exact prompts."""
    about: dict[str, Json] = {
        name: getattr(run, name) for name in type(run).__dataclass_fields__ if name not in ("created_at", "updated_at")
    }
    about |= {"created_at": run.created_at.isoformat(), "updated_at": run.updated_at.isoformat()}
    return to_json(
        {
            "schema": 1,
            "run": about,
            "document": document,
            "case": cases[0] if len(cases) == 1 else None,
            # Once only, so that `import` reads back as many cases as the run had.
            "cases": list(cases) if len(cases) > 1 else None,
            "trials": [asdict(trial) for trial in trials],
            "calls": list(calls),
        }
    )


def write_parquet(run: RunRecord, trials: Sequence[TrialRow], path: Path) -> None:
    """Write the trials, one row each, with run id and model; the file appears whole or not at all.

    Raises:
        InputError: the folder does not exist or cannot be written.
        StoreFull: no room.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {
        "str": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "Outcome": pa.string(),
    }
    names = [field.name for field in fields(TrialRow)]
    schema = pa.schema(
        [("run_id", pa.string()), ("model", pa.string())]
        + [(field.name, kinds[str(field.type).removesuffix(" | None")]) for field in fields(TrialRow)]
    )
    columns: dict[str, list[object]] = {"run_id": [run.id] * len(trials), "model": [run.model] * len(trials)}
    columns |= {name: [getattr(trial, name) for trial in trials] for name in names}
    table = pa.table(columns, schema=schema)
    _write(path, lambda part: pq.write_table(table, part))


def write_csv(run: RunRecord, trials: Sequence[TrialRow], path: Path) -> None:
    """Write the trials as CSV (RFC 4180, UTF-8), columns as in Parquet; a text that a spreadsheet would run is quoted.

    Raises:
        InputError: the folder does not exist or cannot be written.
        StoreFull: no room.
    """

    def write(part: Path) -> None:
        with part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(_columns())
            writer.writerows([_cell(value) for value in _row(run, trial).values()] for trial in trials)

    _write(path, write)


def write_jsonl(run: RunRecord, trials: Sequence[TrialRow], path: Path) -> None:
    """Write the trials as one JSON object a line, keys as the columns of Parquet.

    Raises:
        InputError: the folder does not exist or cannot be written.
        StoreFull: no room.
    """

    def write(part: Path) -> None:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{to_json(_row(run, trial))}\n" for trial in trials)

    _write(path, write)


def _columns() -> list[str]:
    return ["run_id", "model", *(field.name for field in fields(TrialRow))]


def _row(run: RunRecord, trial: TrialRow) -> dict[str, Json]:
    return {"run_id": run.id, "model": run.model, **{name: getattr(trial, name) for name in _columns()[2:]}}


def _cell(value: Json) -> Json:
    """The value, with an apostrophe before a text that a spreadsheet would read as a formula; numbers stay numbers."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    runs = value.lstrip().startswith(_FORMULA) or value.startswith(("\t", "\r", "\n"))
    return f"'{value}" if runs else value


def _write(path: Path, act: Callable[[Path], object]) -> None:
    """Let `act` write a file beside `path` and put it in its place, so that it appears whole or not at all."""
    try:
        with tempfile.TemporaryDirectory(prefix=".lim-export-", dir=path.parent) as folder:
            part = Path(folder, "part")
            act(part)
            os.replace(part, path)
    except OSError as fault:
        if fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoreFull(f"There is no room for {path}: free some disk space.") from fault
        reason = (fault.strerror or type(fault).__name__).lower()
        raise InputError(f"{path} cannot be written ({reason}): name a file in a folder that exists.") from fault
