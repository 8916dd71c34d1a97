"""Bytes to text: unpacks compressed files and reads UTF-8, UTF-16, UTF-32 and, as a last resort, Windows-1252."""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import zipfile
import zlib
from dataclasses import dataclass

from lim_core.cases import MAX_BYTES
from lim_core.errors import InputError

_MEGABYTES = MAX_BYTES >> 20
# The longer marks first: the UTF-32 mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_STEP = 1 << 16
_LZMA_MEMORY = 256 << 20


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The text of a file, how it was packed ("" for not at all) and how it was encoded."""

    text: str
    packing: str
    encoding: str


def unpack(data: bytes, name: str) -> Unpacked:
    """Unpack and decode.

    Raises:
        InputError: empty, larger than 20 MB as given or unpacked, a broken archive, or no text.
    """
    if len(data) > MAX_BYTES:
        raise InputError(f"{name} is larger than {_MEGABYTES} MB: cut it down.")
    packing, data = _inflate(data, name)
    text, encoding = _decode(data, name)
    if not text.strip():
        raise InputError(f"{name} is empty: give a trace, a case or the chunks.")
    return Unpacked(text.replace("\r\n", "\n").replace("\r", "\n"), packing, encoding)


def _inflate(data: bytes, name: str) -> tuple[str, bytes]:
    try:
        if data.startswith(b"\x1f\x8b"):
            return "gzip", _gunzip(data, name)
        if data.startswith(b"BZh"):
            return "bzip2", _stepwise(bz2.BZ2Decompressor(), data, name)
        if data.startswith(b"\xfd7zXZ\x00"):
            return "xz", _stepwise(lzma.LZMADecompressor(memlimit=_LZMA_MEMORY), data, name)
        if data.startswith(b"PK\x03\x04"):
            return "zip", _unzip(data, name)
    # All that the four unpackers raise on damage; zipfile says RuntimeError of a password and NotImplementedError of a method
    # that it does not know.
    except (
        *(OSError, EOFError, ValueError, RuntimeError, NotImplementedError),
        *(zlib.error, lzma.LZMAError, zipfile.BadZipFile),
    ) as error:
        raise _broken(name) from error
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        raise InputError(f"{name} is packed with zstd, which is not read here: unpack it first.")
    return "", data


def _broken(name: str) -> InputError:
    return InputError(f"{name} is a compressed file that cannot be unpacked: it is cut short or damaged.")


def _too_large(name: str) -> InputError:
    return InputError(f"{name} is larger than {_MEGABYTES} MB when unpacked: cut it down.")


def _gunzip(data: bytes, name: str) -> bytes:
    out = bytearray()
    while data:
        worker = zlib.decompressobj(wbits=31)
        while not worker.eof:
            piece = worker.decompress(data, _STEP)
            data = worker.unconsumed_tail
            out += piece
            if len(out) > MAX_BYTES:
                raise _too_large(name)
            if not piece and not data and not worker.eof:
                raise EOFError
        # Members may follow one another; zeros after the last one are padding.
        data = worker.unused_data.lstrip(b"\x00")
        if data and not data.startswith(b"\x1f\x8b"):
            break
    return bytes(out)


def _stepwise(worker: bz2.BZ2Decompressor | lzma.LZMADecompressor, data: bytes, name: str) -> bytes:
    out = bytearray(worker.decompress(data, _STEP))
    while not worker.eof:
        piece = worker.decompress(b"", _STEP)
        if not piece and worker.needs_input:
            raise EOFError
        out += piece
        if len(out) > MAX_BYTES:
            raise _too_large(name)
    return bytes(out)


def _unzip(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = [entry for entry in archive.infolist() if not entry.is_dir()]
        if len(files) != 1:
            raise InputError(f"{name} holds {len(files)} files: unpack it and give one of them.")
        # The size in the directory is a claim; only reading with a cap tells.
        with archive.open(files[0]) as member:
            out = member.read(MAX_BYTES + 1)
    if len(out) > MAX_BYTES:
        raise _too_large(name)
    return out


def _decode(data: bytes, name: str) -> tuple[str, str]:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _strictly(data, encoding, name)
    guessed = _unmarked_utf16(data)
    if guessed is not None:
        return _strictly(data, guessed, name)
    try:
        text, encoding = data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        # Spreadsheets still write this; anything with control characters is no text at all.
        text, encoding = data.decode("cp1252", errors="replace"), "windows-1252"
    if _binary(text[:100_000]):
        raise InputError(f"{name} is no text file: export it as JSON, JSONL, CSV or text.")
    return text, encoding


def _strictly(data: bytes, encoding: str, name: str) -> tuple[str, str]:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(f"{name} begins like {encoding} text but cannot be decoded: save it as UTF-8.") from error
    if _binary(text[:100_000]):
        raise InputError(f"{name} is no text file: export it as JSON, JSONL, CSV or text.")
    return text, encoding.removesuffix("-sig")


def _unmarked_utf16(data: bytes) -> str | None:
    head = data[:400]
    if len(head) < 4 or len(data) % 2:
        return None
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd > 0.4 * len(head) and even == 0:
        return "utf-16-le"
    if even > 0.4 * len(head) and odd == 0:
        return "utf-16-be"
    return None


def _binary(text: str) -> bool:
    controls = sum(1 for character in text if character < " " and character not in "\t\n\r\f\v\x1b")
    return "\x00" in text or controls * 50 > len(text)
