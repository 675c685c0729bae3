"""The zip file of a bundle: how it is written, and whether anything is in it that this code would not have put there.

The same files always give the same bytes, on any machine with the same zlib. Not here: what the files are (`bundle`)
and whether their statements are true (`review`).
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from discreet.archive.findings import RefutedError, UncheckedError
from discreet.archive.unpacking import PIECE, opened, text

MANIFEST, LEDGER = "bundle.json", "ledger.json"
KEYS = {MANIFEST: [{"format", "releases", "files"}], LEDGER: [{"head", "ledger", "lines"}, {"head", "lines"}]}
"""The keys that a bundle's own files have, or had in bundles of earlier versions."""

LARGEST = 2**30
"""Bytes of a bundle that is checked byte by byte; beyond twice as many a zip file needs other headers."""

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every entry of a zip file; it is fixed, so the time of packing does not change the bytes."""

CENTRAL = (
    *("date_time", "compress_type", "comment", "extra", "create_system", "create_version", "extract_version"),
    *("reserved", "flag_bits", "volume", "internal_attr", "external_attr"),
)
"""The fields of an entry in the directory of a zip file, beside its name, place and content."""


def pack(path: Path, names: Iterable[str], content: Callable[[str], bytes]) -> None:
    """Write a bundle of these files: always in the same order, with nothing in it that depends on time or place."""
    with zipfile.ZipFile(path, "w") as packed:
        for name in in_order(names):
            packed.writestr(_entry(name), content(name), compresslevel=1)


def in_order(names: Iterable[str]) -> list[str]:
    """The manifest first, then every file by its name."""
    return [MANIFEST, *sorted({*names} - {MANIFEST})]


def unaccounted(path: Path) -> str:
    """The bytes of a bundle beside its files as `pack` writes them; empty if there are none.

    Compressed bytes are only asked to end where their file ends, because versions of zlib compress differently.
    """
    with opened(path) as packed, path.open("rb") as file:
        entries = packed.infolist()
        if [entry.filename for entry in entries] != in_order(entry.filename for entry in entries):
            return "files in another order"
        for entry in entries:
            expected = _entry(entry.filename)
            expected.CRC, expected.file_size, expected.compress_size = entry.CRC, entry.file_size, entry.compress_size
            header = expected.FileHeader()
            if (
                any(getattr(entry, part) != getattr(expected, part) for part in CENTRAL)
                or entry.header_offset != file.tell()
                or file.read(len(header)) != header
                or not _whole(file, entry)
            ):
                return f"bytes around {entry.filename!r} that are not of it"
        start, size = file.tell(), sum(46 + len(entry.filename.encode()) for entry in entries)
        file.seek(size, 1)
        if file.read() != struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(entries), len(entries), size, start, 0):
            return "bytes behind the files"
    return ""


def check_packing(path: Path) -> str:
    """Every byte belongs to a file, and the bundle's own files have the keys and the form that discreet writes."""
    if path.stat().st_size > LARGEST:
        raise UncheckedError("it is so large that it may be packed otherwise")
    if found := unaccounted(path):
        raise RefutedError(f"the zip file has {found}")
    with opened(path) as packed:
        for name, keys in KEYS.items():
            written = text(packed, name)
            content = json.loads(written)
            if content.keys() not in keys or as_json(content) != written:
                raise RefutedError(f"{name} has content that discreet does not write, or has it in another form")
    return "every byte of the zip file belongs to a file; the bundle's own files are as discreet writes them"


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.external_attr, entry.create_system = 0o644 << 16, 3
    # Parquet is compressed already.
    entry.compress_type = zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_DEFLATED
    return entry


def _whole(file: BinaryIO, entry: zipfile.ZipInfo) -> bool:
    """Whether the next bytes are a file of the declared size and nothing more; it is unpacked piece by piece."""
    left = entry.compress_size
    if entry.compress_type == zipfile.ZIP_STORED:
        file.seek(left, 1)
        return left == entry.file_size
    inflate, size = zlib.decompressobj(-zlib.MAX_WBITS), 0
    while left or inflate.unconsumed_tail:
        piece = inflate.unconsumed_tail or file.read(min(PIECE, left))
        if not piece or inflate.eof or size > entry.file_size:
            return False
        left -= 0 if inflate.unconsumed_tail else len(piece)
        size += len(inflate.decompress(piece, PIECE))
    return size == entry.file_size and inflate.eof and not inflate.unused_data


def as_json(value: object) -> bytes:
    """The one text that a value has in a bundle."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()
