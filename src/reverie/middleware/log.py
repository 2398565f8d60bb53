"""The log of decisions on disk: one line each, whole or not at all, synced before it counts.

Several processes may use one home: what another one decided is read before anything is decided
here, under the lock of the file, and synced too, since its writer may have died before that. A file
that was written anew (words were forgotten) is read anew.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reverie.errors import InvalidMessage, WriteFailed
from reverie.middleware.decisions import Decisions
from reverie.store.files import Folder
from reverie.store.lock import release, take_soon
from reverie.store.plain import flush_file, words, write_whole
from reverie.transcript.blocks import Json, dump, parse

FILE = "decisions.jsonl"
LARGEST = 32 * 1024 * 1024
Line = dict[str, Json]


class DecisionLog:
    """All decisions of a home; used from any thread."""

    def __init__(self, folder: Path, most: int = LARGEST) -> None:
        self._folder = Folder(folder)
        self._most = most
        self._turn = threading.RLock()
        self._at: int = 0  # how far the file was read
        self._file: int = 0  # which file that was
        self.decisions = Decisions()
        self._trim()
        with self._open() as fd:
            self._folder.flush(FILE)
            self._read(fd)

    def close(self) -> None:
        self._folder.close()

    def refresh(self) -> None:
        """Take in what others have written meanwhile; where nobody has, this is one look."""
        with self._turn:
            if self._is_known():
                return
            with self._open() as fd:
                self._read(fd)

    def _is_known(self) -> bool:
        try:
            found = os.stat(self._folder.path(FILE))
        except OSError:
            return False
        return (found.st_ino, found.st_size) == (self._file, self._at)

    def _trim(self) -> None:
        """Let the older half of a very long log go: no cache remembers those conversations."""
        if not self._folder.exists(FILE) or self._folder.stat(FILE).size <= self._most:
            return
        data = self._folder.read(FILE)
        middle = data.find(b"\n", len(data) // 2) + 1
        self._folder.write(FILE, data[middle:])

    def note(self, lines: Sequence[Line]) -> None:
        """Write down what a later process would like to know and can do without."""
        self.decide(lambda _: lines, durable=False)

    def decide(self, find: Callable[[Decisions], Sequence[Line]], *, durable: bool = True) -> None:
        """Write down what is still undecided when all that others decided is known."""
        with self._turn, self._open() as fd:
            self._read(fd)
            lines = find(self.decisions)
            if not lines:
                return
            text = "".join(f"{dump(line)}\n" for line in lines).encode()
            _write(fd, text, durable=durable)
            self._at += len(text)
            for line in lines:
                self.decisions.take(line)

    @contextmanager
    def _open(self) -> Generator[int]:
        fd = self._folder.open_append(FILE)
        try:
            take_soon(fd, FILE)
            yield fd
        except OSError as error:
            where = str(self._folder.path(FILE))
            raise WriteFailed(f"Nothing could be decided: {words(error)}", where=where) from error
        finally:
            release(fd)

    def _read(self, fd: int) -> None:
        """Take in the lines that are new; the end of a line that a crash tore off is cut."""
        found = os.fstat(fd)
        if found.st_ino != self._file or found.st_size < self._at:
            self._file, self._at, self.decisions = found.st_ino, 0, Decisions()
        data = b""
        while len(data) < found.st_size - self._at:
            piece = os.pread(fd, found.st_size - self._at - len(data), self._at + len(data))
            if not piece:
                break
            data += piece
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(fd, self._at + whole)
        if whole:
            flush_file(fd)
        for line in data[:whole].splitlines():
            self._take(line)
        self._at += whole

    def _take(self, line: bytes) -> None:
        try:
            value = parse(line.decode())
            if isinstance(value, dict):
                self.decisions.take(value)
        except (InvalidMessage, UnicodeDecodeError, KeyError):
            return  # one line that was damaged; its thing passes as it is


def _write(fd: int, data: bytes, *, durable: bool) -> None:
    """Add lines at the end; on an error none of them stays."""
    at = os.lseek(fd, 0, os.SEEK_END)
    try:
        write_whole(fd, data)
        if durable:
            flush_file(fd)
    except OSError:
        os.ftruncate(fd, at)
        raise
