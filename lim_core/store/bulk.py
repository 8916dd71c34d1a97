"""Many rows in one statement: a tenth of the time of one statement a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Value: TypeAlias = bool | int | float | str | None
Row: TypeAlias = tuple[Value, ...]

# The types of the columns whose name does not say VARCHAR.
_TYPES = {
    "DOUBLE": {"added_at", "depth", "seconds", "started_at", "before", "after", "gain", "low", "high"},
    "BOOLEAN": {"cached", "tried"},
    "BIGINT": {
        "seq", "block", "repeat", "slot", "prompt_tokens", "cached_prompt_tokens", "completion_tokens",
        "reasoning_tokens", "retries", "position", "n",
    },
}  # fmt: skip
_TYPE_OF = {name: kind for kind, names in _TYPES.items() for name in names}


def insert_rows(
    cursor: DuckDBPyConnection, table: str, columns: Sequence[str], rows: Sequence[Sequence[Value]]
) -> None:
    """Insert the rows, each in the order of `columns`, in one statement with bound columns."""
    if not rows:
        return
    names = ", ".join(f'"{name}"' for name in columns)
    values = ", ".join(f"unnest(CAST(? AS {_TYPE_OF.get(name, 'VARCHAR')}[]))" for name in columns)
    bound = [list(column) for column in zip(*rows, strict=True)]
    cursor.execute(f'INSERT INTO "{table}" ({names}) SELECT {values}', bound)
