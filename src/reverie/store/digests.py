"""SHA-256 of bytes and of open files: what `expect` is compared with."""

from __future__ import annotations

import hashlib
import os

_CHUNK = 1 << 20


def digest(data: bytes) -> str:
    """Give the SHA-256 of some bytes, as `expect` takes it."""
    return hashlib.sha256(data).hexdigest()


def digest_of(fd: int) -> str:
    """Give the SHA-256 of an open file, from where it is read next."""
    seen = hashlib.sha256()
    while piece := os.read(fd, _CHUNK):
        seen.update(piece)
    return seen.hexdigest()
