"""Runs that a second process wrote beside a held store, and how the owner takes them in."""

from __future__ import annotations

import contextlib
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

from lim_core.errors import StoreBusy, StoreError
from lim_core.store import runs
from lim_core.store.database import Database, is_open_here

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

log = logging.getLogger(__name__)

ABANDONED_SECONDS = 86_400.0


def inbox_path(store: Path, run_id: str) -> Path:
    """Where a second process keeps one run while `store` is held."""
    return store.parent / "inbox" / f"{run_id}.duckdb"


def open_patiently(path: Path, seconds: float = 2.0) -> Database:
    """Open an inbox file; the owner may be looking into it just now, so a held one is tried again for a while."""
    until = time.monotonic() + seconds
    while True:
        try:
            return Database.open(path)
        except StoreBusy:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def take_in(owner: Database) -> tuple[str, ...]:
    """Move every run of every inbox file that nobody is writing into the owner's store; returns the ids added.

    A run is copied in one transaction and its file removed afterwards. A file whose run is already in the store was
    copied by an attempt that ended before the removal: it is only removed.
    """
    taken: list[str] = []
    folder = owner.path.parent / "inbox"
    for path in sorted(folder.glob("*.duckdb")):
        if is_open_here(path):
            continue
        try:
            source = Database.open(path)
        except StoreBusy:
            continue
        except StoreError as fault:
            log.warning("an inbox file was left alone: %s", fault)
            continue
        try:
            with source.cursor() as reader:
                ids = [run_id for (run_id,) in reader.execute("SELECT DISTINCT run_id FROM runs").fetchall()]
                if not ids:
                    # Its writer has made the file and not started the run yet, or died there a day ago.
                    if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                        _remove(path)
                    continue
                with owner.write() as writer:
                    known = {run_id for (run_id,) in writer.execute("SELECT DISTINCT run_id FROM runs").fetchall()}
                    fresh = [run_id for run_id in ids if run_id not in known]
                    if fresh:
                        _copy(reader, writer, fresh)
                        # The file was free, so whoever wrote a run that is still marked as running has died.
                        runs.mark_interrupted(writer, alive=(), only=fresh)
        finally:
            source.close()
        taken.extend(fresh)
        _remove(path)
    return tuple(taken)


def _copy(reader: DuckDBPyConnection, writer: DuckDBPyConnection, run_ids: list[str]) -> None:
    own = "list_contains($ids, run_id)"
    for table in ("runs", "arms", "trials", "scores", "findings", "remedies", "releases", "run_cases"):
        numbered = table in ("runs", "scores", "releases")
        _copy_rows(reader, writer, table, own, run_ids, order="row" if numbered else "rowid", numbered=numbered)
    used = "id IN (SELECT call_id FROM trials WHERE list_contains($ids, run_id))"
    _copy_rows(reader, writer, "calls", used, run_ids, order="rowid", unless="id")
    used = """
        case_hash IN (SELECT case_hash FROM runs WHERE list_contains($ids, run_id)
                      UNION SELECT case_hash FROM run_cases WHERE list_contains($ids, run_id))
    """
    _copy_rows(reader, writer, "cases", used, run_ids, order="rowid", unless="case_hash")


def _copy_rows(
    reader: DuckDBPyConnection,
    writer: DuckDBPyConnection,
    table: str,
    condition: str,
    run_ids: list[str],
    *,
    order: str,
    numbered: bool = False,
    unless: str | None = None,
) -> None:
    # `row` numbers are the owner's own, given again in the same order.
    columns = "* EXCLUDE (row)" if numbered else "*"
    query = f"SELECT {columns} FROM {table} WHERE {condition} ORDER BY {order}"  # noqa: S608 - names from above
    rows = reader.execute(query, {"ids": run_ids}).to_arrow_table()
    names = ", ".join(f'"{name}"' for name in rows.column_names)
    fresh = "" if unless is None else f"WHERE {unless} NOT IN (SELECT {unless} FROM {table})"  # noqa: S608
    writer.register("incoming", rows)
    try:
        writer.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM incoming {fresh}")  # noqa: S608
    finally:
        writer.unregister("incoming")


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
        path.with_name(path.name + ".wal").unlink(missing_ok=True)
