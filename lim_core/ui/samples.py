"""The sample complaints in `data/`, as their index lists them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from lim_core.cases import LoadedCase, read_case
from lim_core.errors import InputError

DATA = Path(__file__).resolve().parents[2] / "data"


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample: its file, title, complaint in a line, and the cause that a diagnosis of it should name."""

    file: str
    title: str
    complaint: str
    cause: str


def list_samples(folder: Path = DATA) -> tuple[Sample, ...]:
    """The samples in the order of the index; none where there is no index.

    Raises:
        InputError: the index is not what it should be.
    """
    index = folder / "samples.json"
    try:
        listed = json.loads(index.read_text("utf-8"))
        rows = listed["samples"] if isinstance(listed, dict) else listed
        return tuple(
            Sample(
                file=Path(row["file"]).name,
                title=row["title"],
                complaint=row["complaint"],
                cause=row.get("cause") or row.get("expected_cause") or "",
            )
            for row in rows
        )
    except FileNotFoundError:
        return ()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"The index of samples {index.name} cannot be read: restore the folder data.") from error


def load_sample(sample: Sample, folder: Path = DATA) -> LoadedCase:
    """Read one sample.

    Raises:
        InputError: the file is not there or is no case.
    """
    path = folder / sample.file
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"The sample {sample.file} is not there: restore the folder data.") from error
    return read_case(data, sample.file)
