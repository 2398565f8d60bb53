"""An append-only file of JSON lines, each with a checksum, that outlives its writer's death.

One process writes, under an OS lock on the journal file itself, so there is no second file to
go stale; anyone reads at any time without a lock. When `append` has returned, the lines are with
the kernel and survive the death of the process; when `sync` has returned, they survive a power
loss. A crash may leave part of what was not yet acknowledged: some whole lines of the last
append, and one torn line that reading reports and passes over.

It never truncates or rewrites an acknowledged line, never raises for what a file contains,
never repeats an fsync that failed, and knows nothing of what the lines mean.

A line is the caller's JSON object with one more key put last: `"sum"`, the CRC-32 of the bytes
before it. Readers check it and hand back the caller's text.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from enum import StrEnum

from reverie.errors import Held, InvalidMessage, StoreError, WriteFailed
from reverie.light import dataclass
from reverie.store.files import Folder
from reverie.store.fs import append_whole, flush_file, words
from reverie.store.lock import held_by, holder_of, release, take

LINE_CAP = 256 * 2**20
"""The longest line, in bytes, that is written or read."""

_CHUNK = 1 << 20
_KEY = b'"sum":"'
_SEAL = len(_KEY) + 8 + len(b'"}')
_BOM = b"\xef\xbb\xbf"
_TOO_LONG = "longer than a line may be"


class LineFault(StrEnum):
    """Reasons that somebody asks about."""

    TORN = "cut off before its end"
    UNSEALED = "has no checksum"


@dataclass(frozen=True, slots=True)
class Line:
    """One line's text as it was handed in; `end` is where the next one starts."""

    text: str
    offset: int
    number: int
    end: int


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be used, where it is, and why."""

    number: int
    offset: int
    reason: str


class Journal:
    """An open journal. `tail` tells what was wrong with its end when it was opened to write."""

    __slots__ = ("_cap", "_dirty", "_fd", "_folder", "_named", "_pid", "_poison", "key", "tail")

    def __init__(self, folder: Folder, key: str, fd: int | None, cap: int) -> None:
        self.key = key
        self.tail: BadLine | None = None
        self._folder = folder
        self._fd = fd
        self._cap = cap
        self._pid = os.getpid()
        self._dirty = True
        self._named = False
        self._poison = ""

    @classmethod
    def open(cls, folder: Folder, key: str, *, write: bool = True, cap: int = LINE_CAP) -> Journal:
        """Open to write, made if missing, or raise `Held`; or open to read what is there."""
        if not write:
            folder.stat(key)
            return cls(folder, key, None, cap)
        fd = _open_locked(folder, key)
        journal = cls(folder, key, fd, cap)
        try:
            journal.tail = journal._look_at_tail(fd)
        except BaseException as error:
            journal.close()
            if not isinstance(error, OSError):
                raise
            what = f"The journal could not be read: {words(error)}"
            raise StoreError(what, where=journal._where()) from error
        return journal

    def append(self, texts: Sequence[str]) -> None:
        """Add the lines in one write; on an error none of them is acknowledged."""
        fd = self._writer()
        data = b"".join([self._sealed_line(text) for text in texts])
        if not data:
            return
        self._dirty = True
        try:
            append_whole(fd, data)
        except OSError as error:
            raise self._write_failure(
                f"The journal could not be written: {words(error)}"
            ) from error

    def sync(self) -> None:
        """Make every line durable. After a failure this object writes no more: open it again."""
        fd = self._writer()
        if not self._dirty:
            return
        try:
            flush_file(fd, data_only=True)
            if not self._named:
                self._folder.flush(self.key)
        except (OSError, WriteFailed) as error:
            why = words(error) if isinstance(error, OSError) else error.what
            self._poison = f"The disk failed to take the journal: {why}"
            raise self._write_failure(self._poison) from error
        self._named = True
        self._dirty = False

    def size(self) -> int:
        """Give the journal's length in bytes, the offset where the next line will start."""
        return self._folder.stat(self.key).size if self._fd is None else os.fstat(self._fd).st_size

    def read(self, from_offset: int = 0, *, checked: bool = True) -> Iterator[Line | BadLine]:
        """Give the lines from an offset at which one starts, numbered from 1 there.

        Unchecked, lines without a checksum pass too: those of other programs. The end that a
        writer is just adding reads as a fault; ask again from its offset.
        """
        fd = self._folder.open_read(self.key)
        try:
            os.lseek(fd, from_offset, os.SEEK_SET)
            for number, piece in enumerate(_split(fd, from_offset, self._cap), 1):
                text, reason = _understand(piece, checked=checked)
                if reason:
                    yield BadLine(number, piece.offset, reason)
                elif text:
                    yield Line(text, piece.offset, number, piece.end)
        except OSError as error:
            what = f"The journal could not be read: {words(error)}"
            raise StoreError(what, where=self._where()) from error
        finally:
            with contextlib.suppress(OSError):  # nothing was written through it
                os.close(fd)

    def close(self) -> None:
        """Close and unlock; in a forked child, close only: the lock is its parent's."""
        fd, self._fd = self._fd, None
        if fd is None:
            return
        if self._pid == os.getpid():
            release(fd)
        else:
            os.close(fd)

    __del__ = close

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def _where(self) -> str:
        return str(self._folder.root / self.key)

    def _writer(self) -> int:
        if self._fd is None:
            raise StoreError("The journal is not open for writing", where=self._where())
        if self._pid != os.getpid():
            raise Held(
                f"The journal belongs to process {self._pid}, from which this one was forked",
                where=self._where(),
                do="Open it again here once that process has closed it",
            )
        if self._poison:
            raise self._write_failure(self._poison)
        return self._fd

    def _write_failure(self, what: str) -> WriteFailed:
        do = "Check the disk, then open the session again" if self._poison else "Free some space"
        return WriteFailed(what, where=self._where(), do=do)

    def _sealed_line(self, text: str) -> bytes:
        line = seal(text)
        if len(line) > self._cap:
            raise InvalidMessage(f"A record is longer than {self._cap} bytes", where=self._where())
        return line + b"\n"

    def _look_at_tail(self, fd: int) -> BadLine | None:
        end = os.fstat(fd).st_size
        start = _line_start(fd, end)
        if start == end:
            return None
        if end - start > self._cap:
            reason = _TOO_LONG
        else:
            piece = _Piece(os.pread(fd, end - start, start), start, end, False)
            reason = _understand(piece, checked=True)[1] or "whole, but without its newline"
        return BadLine(_count_lines(fd, start) + 1, start, reason)


def seal(text: str) -> bytes:
    """Give the line that stands for a JSON object in the file, without its newline."""
    if not (text.startswith("{") and text.endswith("}")):
        raise InvalidMessage("A record is not a JSON object")
    if "\n" in text or "\r" in text or "\0" in text:
        raise InvalidMessage("A record holds a bare newline or NUL", do="Escape it as JSON does")
    try:
        body = text[:-1].encode()
    except UnicodeEncodeError:
        raise InvalidMessage(
            "A record holds a lone surrogate", do="Escape it as JSON does, or replace it"
        ) from None
    comma = b"," if body[1:].strip() else b""
    return b'%b%b%b%08x"}' % (body, comma, _KEY, zlib.crc32(body))


def unseal(line: bytes) -> tuple[bytes, bool] | None:
    """Give the caller's bytes and whether they are intact; None where there is no checksum."""
    body, key, code = line[:-_SEAL], line[-_SEAL:-10], line[-10:-2]
    if key != _KEY or line[-2:] != b'"}':
        return None
    if body.endswith(b","):
        body = body[:-1]
    return body + b"}", b"%08x" % zlib.crc32(body) == code


@dataclass(frozen=True, slots=True)
class _Piece:
    """What lies between two newlines; `raw` is None where it is too long to be read."""

    raw: bytes | None
    offset: int
    end: int
    whole: bool


def _split(fd: int, offset: int, cap: int) -> Iterator[_Piece]:
    parts: list[bytes] = []
    length = 0
    while chunk := os.read(fd, _CHUNK):
        *ended, rest = chunk.split(b"\n")
        for last in ended:
            length += len(last)
            raw = b"".join([*parts, last]) if length <= cap else None
            yield _Piece(raw, offset, offset + length + 1, True)
            offset += length + 1
            parts, length = [], 0
        length += len(rest)
        if length <= cap:
            parts.append(rest)
        else:
            parts = []
    if length:
        yield _Piece(b"".join(parts) if length <= cap else None, offset, offset + length, False)


def _understand(piece: _Piece, *, checked: bool) -> tuple[str, str]:
    """Give the text, or why there is none; neither for a blank line."""
    if piece.raw is None:
        return "", _TOO_LONG
    raw = piece.raw.removesuffix(b"\r")
    found = unseal(raw)
    if found is not None and found[1]:
        return _decode_line(found[0])
    if not raw.strip():
        return "", ""
    if b"\0" in raw:
        return "", "holds NUL bytes"
    if not checked and piece.offset == 0:
        raw = raw.removeprefix(_BOM)
    if not raw.lstrip().startswith(b"{"):
        return "", "not a JSON object"
    if found is not None:
        return "", "does not match its checksum"
    if checked:
        return "", LineFault.UNSEALED if piece.whole else LineFault.TORN
    return _decode_line(raw) if piece.whole or _parses(raw) else ("", LineFault.TORN)


def _decode_line(raw: bytes) -> tuple[str, str]:
    try:
        return raw.decode(), ""
    except UnicodeDecodeError:
        return "", "not valid UTF-8"


def _parses(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


def _line_start(fd: int, end: int) -> int:
    """Find where the last line starts: the end itself, if a newline is the last byte."""
    if end and os.pread(fd, 1, end - 1) == b"\n":
        return end
    while end > 0:
        start = max(0, end - _CHUNK)
        found = os.pread(fd, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _count_lines(fd: int, end: int) -> int:
    count = 0
    for start in range(0, end, _CHUNK):
        count += os.pread(fd, min(_CHUNK, end - start), start).count(b"\n")
    return count


def _open_locked(folder: Folder, key: str) -> int:
    where = str(folder.root / key)
    for _ in range(100):
        fd = folder.open_append(key)
        try:
            if not take(fd):
                raise held_by(holder_of(fd), where)
            if folder.is_current(key, fd):
                return fd
        except OSError as error:
            release(fd)
            raise StoreError(
                f"The journal cannot be locked: {words(error)}", where=where
            ) from error
        except BaseException:
            release(fd)
            raise
        release(fd)
    raise StoreError("The journal is replaced again and again", where=where, do="Try again")
