"""The output of a command, whole, in bounded memory.

Small output stays in memory. From `MEMORY` bytes on it goes to a file among the
session's stored results, under a name made from the call's id, and only its beginning
and end are kept here. Where there is no such file (a private session, a full disk) the
middle is dropped, and the text says so. Past `MAX` bytes the command is told to end.
"""

from __future__ import annotations

import os

from anyio import to_thread

from reverie.errors import StoreError
from reverie.layers.tool_results import FOLDER, file_name
from reverie.store.plain import write_whole
from reverie.tools.process import readable
from reverie.tools.tool import StoredResults

MEMORY = 10 * 1024 * 1024
MAX = 512 * 1024 * 1024
EDGE = 20_000


class Spool:
    """A sink for one command. Close it when the command is over."""

    def __init__(self, stored: StoredResults | None, call: str, *, memory: int = MEMORY) -> None:
        self._stored = stored
        self._call = call
        self._memory = memory
        self._held = bytearray()
        self._tail = b""
        self._fd: int | None = None
        self._why = ""
        self.size = 0
        self.path = ""

    async def __call__(self, piece: bytes) -> bool:
        self.size += len(piece)
        if self._fd is None and not self._why:
            self._held += piece
            if len(self._held) > self._memory:
                await to_thread.run_sync(self._open)
        elif self._fd is not None:
            await to_thread.run_sync(self._append, piece)
        if self.size > self._memory:
            self._tail = (self._tail + piece)[-EDGE:]
        return self.size < MAX

    def _open(self) -> None:
        whole = bytes(self._held)
        self._held = self._held[:EDGE]
        if self._stored is None:
            self._why = "a private session stores nothing"
            return
        key = f"{self._stored.session}/{FOLDER}/{file_name(self._call)}-whole.txt"
        try:
            self._fd = self._stored.folder.open_append(key)
            os.ftruncate(self._fd, 0)
        except (StoreError, OSError) as error:
            self._give_up(str(error))
            return
        self.path = str(self._stored.folder.path(key))
        self._append(whole)

    def _append(self, piece: bytes) -> None:
        if self._fd is None:
            return
        try:
            write_whole(self._fd, piece)
        except OSError as error:
            self._give_up(f"{self.path} could not be written: {error.strerror}")

    def _give_up(self, why: str) -> None:
        self._why = why
        self.close()

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    @property
    def text(self) -> str:
        """All of it where it is small; else beginning and end, and where the whole is."""
        if self.size <= self._memory:
            return readable(bytes(self._held))
        head, tail = readable(bytes(self._held[:EDGE])), readable(self._tail)
        return f"[The output has {self.size:,} bytes; {self._where()}]\n{head}\n[…]\n{tail}"

    def _where(self) -> str:
        if self._why:
            return f"its middle was not kept: {self._why}"
        return f"it is stored whole in {self.path}, and ReadBack reads it. Beginning and end:"
