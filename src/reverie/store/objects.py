"""The bytes of versions, each kept once, compressed, under its SHA-256.

Bytes that do not match their name are never handed out; they are written anew once whoever puts
them has them at hand. What only grew is put together from the last whole bytes.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Mapping

from reverie.errors import NotFound, StoreError
from reverie.store.files import Folder
from reverie.store.fs import digest

OBJECTS = "objects"
LARGEST = 16 * 2**20
"""Bytes of a file whose versions are kept; of a larger one only the hash is."""

_LONG = 64 * 2**10


def object_key(name: str) -> str:
    return f"{OBJECTS}/{name[:2]}/{name[2:]}.z"


class Damaged(StoreError, code="damaged"):
    """Stored bytes that are not what their name says."""


class ObjectStore:
    """The objects of one history."""

    def __init__(self, files: Folder) -> None:
        self._files = files
        self._sound: set[str] = set()  # those that were read and are as their names say

    def content(self, name: str, grown: Mapping[str, tuple[str, str]]) -> bytes:
        """The bytes of a name; `grown` leads from bytes that are not kept whole to those before
        them and what was added."""
        added: list[str] = []
        first = name
        while first in grown:
            first, text = grown[first]
            added.append(text)
        data = self._whole(first) if first else b""
        if not added:
            return data
        data += "".join(reversed(added)).encode("utf-8", "surrogatepass")
        if digest(data) != name:
            raise self._damage_error(name)
        return data

    def _whole(self, name: str) -> bytes:
        try:
            data = zlib.decompress(self._files.read(object_key(name)))
        except zlib.error as error:
            raise self._damage_error(name) from error
        if digest(data) != name:
            raise self._damage_error(name)
        return data

    def put(self, data: bytes) -> str:
        """Keep bytes; gives their name."""
        name = digest(data)
        key = object_key(name)
        if len(data) <= LARGEST and not self._holds(key, name):
            self._files.write(key, zlib.compress(data, 6 if len(data) < _LONG else 1))
            self._sound.add(name)
        return name

    def _holds(self, key: str, name: str) -> bool:
        """Whether an object is there as its name says; each is read once."""
        if name in self._sound:
            return self._files.exists(key)
        with contextlib.suppress(NotFound, StoreError):
            self._whole(name)
            self._sound.add(name)
            return True
        return False

    def _damage_error(self, name: str) -> Damaged:
        return Damaged(
            "A stored version is damaged",
            where=str(self._files.root / object_key(name)),
            do="The other versions are intact",
        )
