"""Drafts: cases in the making, kept beside the store so that they survive a reload of the browser.

A draft is two small files named by a random id that only its author's address bar holds: the fields as JSON, and what was
pasted or uploaded, byte for byte. Both are readable by the owner of the process only, and are removed after a week.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lim_core.errors import StoreError
from lim_core.types import Json

KEPT_SECONDS = 7 * 86_400.0
# Each may hold an upload of 20 MB; the oldest make room.
MOST = 200
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Draft:
    """The fields of a draft, and the bytes it was made from; None where nothing was pasted or uploaded."""

    fields: Mapping[str, Json]
    source: bytes | None = None


def new_draft_id() -> str:
    """A fresh id of 128 random bits: whoever has it can read the draft."""
    return secrets.token_hex(16)


def is_draft_id(text: str) -> bool:
    """Whether lim could have made this id; all others are kept away from the file system."""
    return _ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Drafts:
    """The drafts in one folder, which is made with the first of them."""

    folder: Path

    @classmethod
    def beside(cls, store: Path) -> Drafts:
        """The drafts of a store."""
        return cls(store.parent / "drafts")

    def save(self, draft_id: str, fields: Mapping[str, Json]) -> None:
        """Keep the fields; the source stays as it is.

        Raises:
            StoreError: the folder cannot be written.
        """
        self._write(self._path(draft_id, "json"), json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace"))

    def save_source(self, draft_id: str, source: bytes | None) -> None:
        """Keep what the draft is made from; None removes it.

        Raises:
            StoreError: the folder cannot be written.
        """
        path = self._path(draft_id, "source")
        if source is None:
            with contextlib.suppress(OSError):
                path.unlink()
        else:
            self._write(path, source)

    def load(self, draft_id: str) -> Draft | None:
        """The draft; None where there is none of this id, or it is older than a week, or cannot be read."""
        if not is_draft_id(draft_id):
            return None
        path = self._path(draft_id, "json")
        try:
            if time.time() - path.stat().st_mtime > KEPT_SECONDS:
                return None
            fields = json.loads(path.read_bytes())
            source = self._path(draft_id, "source")
            return Draft(fields, source.read_bytes() if source.exists() else None) if isinstance(fields, dict) else None
        except (OSError, ValueError, RecursionError):
            return None

    def delete(self, draft_id: str) -> None:
        """Remove a draft; one that is not there is no fault."""
        for ending in ("json", "source"):
            with contextlib.suppress(OSError):
                self._path(draft_id, ending).unlink()

    def sweep(self) -> int:
        """Remove drafts older than a week and all but the newest; returns how many files went."""
        files = []
        for path in self.folder.glob("*"):
            with contextlib.suppress(OSError):
                files.append((path.stat().st_mtime, path))
        now, gone = time.time(), 0
        newest = {path.stem for _, path in sorted(files, reverse=True)[: 2 * MOST]}
        for changed, path in files:
            # A source is as old as its upload, while its draft may have been changed since.
            twin = path.with_suffix(".json")
            with contextlib.suppress(OSError):
                changed = max(changed, twin.stat().st_mtime)
            if now - changed > KEPT_SECONDS or path.stem not in newest:
                with contextlib.suppress(OSError):
                    path.unlink()
                    gone += 1
        return gone

    def _path(self, draft_id: str, ending: str) -> Path:
        if not is_draft_id(draft_id):
            raise StoreError("This is no id of a draft: start a new one.")
        return self.folder / f"{draft_id}.{ending}"

    def _write(self, path: Path, data: bytes) -> None:
        """Whole or not at all; mkstemp makes the file with mode 0600."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f"{path.stem}.", suffix=".part", dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                os.replace(name, path)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise
        except OSError as error:
            raise StoreError(
                f"The draft cannot be kept in {self.folder}: make room or let this user write there."
            ) from error
