"""Request bodies that a client has packed: gzip, zstd and brotli, read within a limit.

A body is unpacked to be read, never beyond the limit that holds for plain ones, so a few packed
bytes cannot fill the memory. What cannot be unpacked whole passes as it came.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

GZIP = 16 + zlib.MAX_WBITS
ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def unpack(data: bytes, coding: str, most: int) -> bytes | None:
    """Return a packed body as plain bytes; None where it is not known, not whole or too large."""
    reader = READERS.get(coding)
    try:
        found = reader(data, most + 1) if reader is not None else None
    except (zlib.error, ImportError):
        return None
    return found if found is not None and len(found) <= most else None


def _gzip(data: bytes, most: int) -> bytes | None:
    unpacked = zlib.decompressobj(GZIP)
    found = unpacked.decompress(data, most)
    return found if unpacked.eof and not unpacked.unused_data else None


def _zstd(data: bytes, most: int) -> bytes | None:
    zstd: Any = import_module(ZSTD)
    unpacked = zstd.ZstdDecompressor()
    try:
        found: bytes = unpacked.decompress(data, most)
    except zstd.ZstdError:
        return None
    return found if unpacked.eof and not unpacked.unused_data else None


def _brotli(data: bytes, most: int) -> bytes | None:
    brotli: Any = import_module("brotli")
    unpacked = brotli.Decompressor()
    try:
        found: bytes = unpacked.process(data, output_buffer_limit=most)
    except brotli.error:
        return None
    return found if unpacked.is_finished() else None


READERS: dict[str, Callable[[bytes, int], bytes | None]] = {
    "gzip": _gzip,
    "zstd": _zstd,
    "br": _brotli,
}
