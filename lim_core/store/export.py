"""A run as one JSON object or as a Parquet file of its trials."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from lim_core.errors import InputError, StoreFull
from lim_core.store.encoding import to_json
from lim_core.store.records import RunRecord, TrialRow
from lim_core.types import Json


def run_to_json(
    run: RunRecord,
    document: Mapping[str, Json] | None,
    case: Mapping[str, Json],
    trials: Sequence[TrialRow],
    calls: Sequence[Mapping[str, Json]],
) -> str:
    """One strict JSON object: run, document, case, trials, and the calls with their exact prompts."""
    about: dict[str, Json] = {
        name: getattr(run, name) for name in type(run).__dataclass_fields__ if name not in ("created_at", "updated_at")
    }
    about |= {"created_at": run.created_at.isoformat(), "updated_at": run.updated_at.isoformat()}
    return to_json(
        {
            "schema": 1,
            "run": about,
            "document": document,
            "case": case,
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
    try:
        with tempfile.TemporaryDirectory(prefix=".lim-export-", dir=path.parent) as folder:
            part = Path(folder, "part")
            pq.write_table(table, part)
            os.replace(part, path)
    except OSError as fault:
        if fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoreFull(f"There is no room for {path}: free some disk space.") from fault
        reason = (fault.strerror or type(fault).__name__).lower()
        raise InputError(f"{path} cannot be written ({reason}): name a file in a folder that exists.") from fault
