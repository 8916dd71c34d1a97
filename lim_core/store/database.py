"""The open DuckDB file: creating, locking, migrating, a cursor a call, and its errors in lim's words."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lim_core.errors import StoreBusy, StoreError, StoreFull, StoreNewer
from lim_core.store.schema import MIGRATIONS, Step, migrate, version_of

if TYPE_CHECKING:
    import duckdb
    from duckdb import DuckDBPyConnection

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "512MB",
    # Allows zstd: prompts that shuffle the same chunks then take a twentieth of the room.
    "storage_compatibility_version": "v1.2.0",
    "lock_configuration": "true",
}
_NO_ROOM = ("no space left", "file too large", "disk quota", "out of disk space")
_NO_WRITING = ("read-only file system", "permission denied", "input/output error", "cannot open file")

# Files open in this process: the file lock does not stop a second connection from the same process.
_open_here: dict[Path, int] = {}
_open_here_lock = threading.Lock()


def is_open_here(path: Path) -> bool:
    """Whether this process holds the file."""
    with _open_here_lock:
        return path.resolve() in _open_here


class Database:
    """One store file and its root connection; every call takes a cursor of its own."""

    def __init__(self, path: Path, root: DuckDBPyConnection) -> None:
        self.path = path
        self._root: DuckDBPyConnection | None = root
        self._root_lock = threading.Lock()  # guards _root and _broken
        self._broken = False
        # One writing transaction at a time: CHECKPOINT fails beside another, and the WAL's mode is set before each.
        self._write_lock = threading.RLock()
        with _open_here_lock:
            _open_here[path.resolve()] = _open_here.get(path.resolve(), 0) + 1

    @classmethod
    def open(cls, path: Path, steps: Sequence[Step] = MIGRATIONS) -> Database:
        """Open the file, created (mode 0600) or migrated where needed; an older file is copied first.

        Raises:
            StoreBusy: another process holds it.
            StoreNewer: a newer lim or DuckDB wrote it.
            StoreFull: there is no room for it.
            StoreError: it is no store, or cannot be reached.
        """
        try:
            if not path.exists() or (path.is_file() and path.stat().st_size == 0):
                _create(path, steps)
        except OSError as fault:
            raise _os_error(path, fault) from fault
        root = _connect(path)
        try:
            with translated(path):
                version = version_of(root)
            if version is None:
                raise StoreError(f"{path} is a DuckDB file but not a store of lim: name another file with --store.")
            if version > len(steps):
                raise StoreNewer(
                    f"The store {path} is of version {version} and this lim reads up to {len(steps)}: "
                    "update lim, or name another file with --store."
                )
            if version < len(steps):
                root.close()
                _copy_aside(path, version)
                root = _connect(path)
                with translated(path):
                    migrate(root, version, steps, time.time())
        except BaseException:
            root.close()
            raise
        with contextlib.suppress(OSError):
            path.chmod(0o600)
        return cls(path, root)

    @contextlib.contextmanager
    def cursor(self) -> Iterator[DuckDBPyConnection]:
        """A cursor for reading, closed afterwards."""
        with translated(self.path), self._new_cursor() as cursor:
            yield cursor

    @contextlib.contextmanager
    def write(self) -> Iterator[DuckDBPyConnection]:
        """A cursor in a transaction: committed at the end, rolled back on any error.

        Raises:
            StoreFull: nothing of this transaction was kept, everything before it was.
        """
        with self._write_lock, translated(self.path, self._mark_broken):
            self._keep_wal_private()
            with self._new_cursor() as cursor:
                cursor.begin()
                try:
                    yield cursor
                    cursor.commit()
                except BaseException:
                    _roll_back(cursor)
                    raise

    def checkpoint(self) -> None:
        """Write the log into the file. Put off without an error where a reader is in the way: closing does it too."""
        import duckdb

        with self._write_lock, translated(self.path, self._mark_broken), self._new_cursor() as cursor:
            for wait in (0.05, 0.2, 0.5):
                try:
                    cursor.execute("CHECKPOINT")
                except duckdb.TransactionException:
                    time.sleep(wait)
                else:
                    return

    def close(self) -> None:
        """Close the file; its cursors die with it. Idempotent."""
        with self._root_lock:
            root, self._root = self._root, None
        if root is None:
            return
        with _open_here_lock:
            key = self.path.resolve()
            _open_here[key] -= 1
            if not _open_here[key]:
                del _open_here[key]
        with translated(self.path):
            root.close()

    @contextlib.contextmanager
    def _new_cursor(self) -> Iterator[DuckDBPyConnection]:
        import duckdb

        with self._root_lock:
            if self._root is None:
                raise StoreError(f"The store {self.path} is closed: open it again.")
            if self._broken:
                # After a failed checkpoint DuckDB refuses everything until the file is opened anew.
                with contextlib.suppress(duckdb.Error):
                    self._root.close()
                self._root = _connect(self.path)
                self._broken = False
            cursor = self._root.cursor()
        with contextlib.closing(cursor):
            yield cursor

    def _mark_broken(self) -> None:
        with self._root_lock:
            self._broken = True

    def _keep_wal_private(self) -> None:
        # DuckDB makes the log with the process's umask but keeps the mode of one that is already there.
        wal = self.path.with_name(self.path.name + ".wal")
        with contextlib.suppress(OSError):
            os.close(os.open(wal, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


@contextlib.contextmanager
def translated(path: Path, on_fatal: object = None) -> Iterator[None]:
    """Turn DuckDB's errors into lim's; `on_fatal` is called where the connection is of no more use.

    Raises:
        StoreError: or the member of its family that fits.
    """
    import duckdb

    try:
        yield
    except duckdb.Error as fault:
        if callable(on_fatal) and _is_fatal(fault):
            on_fatal()
        raise _duckdb_error(path, fault) from fault


def _connect(path: Path) -> DuckDBPyConnection:
    import duckdb

    with translated(path):
        return duckdb.connect(str(path), config=dict(_CONFIG))


def _create(path: Path, steps: Sequence[Step]) -> None:
    # Made complete in a private folder and then moved in: nobody sees half a store, or one with another mode.
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=".lim-new-", dir=path.parent) as folder:
        fresh = Path(folder, "new.duckdb")
        root = _connect(fresh)
        try:
            with translated(path):
                migrate(root, 0, steps, time.time())
        finally:
            root.close()
        fresh.chmod(0o600)
        if path.exists() and path.stat().st_size == 0:
            fresh.replace(path)
            return
        try:
            os.link(fresh, path)
        except FileExistsError:
            return  # another process was quicker; its file is as good
        except OSError:
            fresh.rename(path)  # a file system without hard links


def _copy_aside(path: Path, version: int) -> None:
    copy = path.with_name(f"{path.name}.v{version}")
    try:
        descriptor = os.open(copy, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as target, path.open("rb") as source:
            shutil.copyfileobj(source, target)
    except OSError as fault:
        raise _os_error(copy, fault) from fault


def _roll_back(cursor: DuckDBPyConnection) -> None:
    import duckdb

    with contextlib.suppress(duckdb.Error):  # a commit that failed has already ended its transaction
        cursor.rollback()


def _is_fatal(fault: duckdb.Error) -> bool:
    import duckdb

    return isinstance(fault, duckdb.FatalException | duckdb.InternalException) or "invalidated" in str(fault)


def _duckdb_error(path: Path, fault: duckdb.Error) -> StoreError:
    text = str(fault).lower()
    if "conflicting lock" in text or "could not set lock" in text or "being used by another process" in text:
        pid = re.search(r"\(pid (\d+)", text)
        return StoreBusy(str(path), int(pid.group(1)) if pid else None)
    if any(sign in text for sign in _NO_ROOM):
        return StoreFull(f"There is no room left for the store {path}: free some disk space and resume the run.")
    if any(sign in text for sign in _NO_WRITING):
        return StoreFull(f"The store {path} cannot be written: check its folder's permissions, or name another file.")
    if "version number" in text or "newer version of duckdb" in text or "storage version" in text:
        return StoreNewer(f"The store {path} was written by a newer DuckDB: update lim, or name another file.")
    if "not a valid duckdb database" in text:
        return StoreError(f"{path} is not a store of lim: name another file with --store.")
    if "different configuration" in text:
        return StoreError(f"{path} is already open in this process with other settings: close it there first.")
    # DuckDB quotes values in some messages, so its words are not passed on.
    return StoreError(f"The store {path} could not be used ({type(fault).__name__}): see that it is intact.")


def _os_error(path: Path, fault: OSError) -> StoreError:
    import errno

    if fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreFull(f"There is no room left for the store {path}: free some disk space.")
    reason = (fault.strerror or type(fault).__name__).lower()
    return StoreFull(f"The store {path} cannot be written ({reason}): name another file with --store.")
