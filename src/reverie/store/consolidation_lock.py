"""The lock of a dream: one consolidation of a memory folder at a time, and when the last one was.

`.consolidate-lock` lies in the memory folder. Its time is that of the last consolidation; while
one runs its body names the holder's process and, on a second line, the time before, so that other
programs that know the convention see it too. Below stand what tells two processes of one number
apart, and a name for this one take. The file is replaced whole, never edited: who dies in between
leaves the state before or after, and what was told survives a power loss.

Every step happens under an OS lock, which the kernel frees with its process. A holder that lives
and is young is left alone; one that is dead, or older than a dream may get, loses the lock, and
where it died the time before is put back. A holder that was stopped and wakes up finds that the
lock is no longer its own, and must not land. A time in the future counts as just now.

No process is ever signalled. Nothing here reads or writes a memory.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Literal, TypeAlias
from uuid import uuid4

from reverie.errors import Held, PathRefused, StoreError, WriteFailed
from reverie.light import dataclass
from reverie.settings.catalog import Settings
from reverie.store.fs import flush_folder, read_plain, words
from reverie.store.lock import FileLock, alive, process_start
from reverie.text.format import plural

LOCK_NAME = ".consolidate-lock"
GATE = ".reverie-consolidate.lock"
AHEAD = 120.0
"""Seconds by which a time may lie in the future before it counts as wrong."""
PATIENCE = 10.0
_BODY = 4_096
_DIGITS = 12

LockState: TypeAlias = Literal["never", "free", "held", "dead", "stale"]


@dataclass(frozen=True, slots=True)
class LockStatus:
    """What the lock file says."""

    state: LockState
    last: float | None  # when the last consolidation was; None for never
    pid: int = 0
    token: str = ""
    since: float = 0.0  # when the holder took it


@dataclass(frozen=True, slots=True)
class _Body:
    pid: int = 0
    earlier: float | None = None
    started: int | None = None
    token: str = ""

    def written(self) -> bytes:
        earlier = "" if self.earlier is None else f"{self.earlier:.6f}"
        started = "" if self.started is None else str(self.started)
        return f"{self.pid}\n{earlier}\n{started}\n{self.token}\n".encode()


class LockLost(Held, code="lock_lost"):
    """Another process has taken the lock meanwhile; nothing may land."""


@dataclass(frozen=True, slots=True)
class AcquiredLock:
    """A lock that was taken: what it was before, and by which name it is ours."""

    token: str
    at: float
    earlier: float | None


class ConsolidationLock:
    """The lock of one memory folder."""

    def __init__(
        self,
        folder: Path,
        *,
        now: Callable[[], float],
        stale_seconds: float,
        pid: int | None = None,
        new_token: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        self.path = folder / LOCK_NAME
        self._gate = FileLock(folder / GATE)
        self._now = now
        self._stale = stale_seconds
        self._pid = pid if pid is not None else os.getpid()
        self._new_token = new_token

    @classmethod
    def of(cls, folder: Path, now: Callable[[], float], settings: Settings) -> ConsolidationLock:
        """The lock of a memory folder, by the settings."""
        return cls(folder, now=now, stale_seconds=settings.dream_stale_lock_minutes * 60)

    # Looking

    def last(self) -> float | None:
        """When the last consolidation was; None for never. One `stat`, where nobody holds it."""
        found = self._stat()
        if found is None:
            return None
        if found.st_size:
            seen = self.look()
            if seen.state in ("dead", "stale"):
                return seen.last
        return min(found.st_mtime, self._now())

    def look(self) -> LockStatus:
        """Who holds it, if anyone, as far as can be told without taking the OS lock."""
        found = self._stat()
        if found is None:
            return LockStatus("never", None)
        body = self._read()
        since = min(found.st_mtime, self._now())
        if body is None:
            return LockStatus("free", since)
        state: LockState = "held"
        if not _lives(body):
            state = "dead"
        elif self._now() - since >= self._stale:
            state = "stale"
        # another program may leave its number behind when all is well, and no time before it
        last = since if body.earlier is None and not body.token else body.earlier
        return LockStatus(state, last, body.pid, body.token, since)

    # Taking and giving back

    def take(self) -> AcquiredLock:
        """Take it, or raise `Held` with who has it."""
        with self._hold_gate():
            self._sweep()
            self._settle_time()
            seen = self.look()
            if seen.state == "held":
                minutes = plural(round((self._now() - seen.since) / 60), "minute")
                raise Held(
                    f"A dream is under way in process {seen.pid}, for {minutes}",
                    where=str(self.path),
                    do="Wait for it, or stop it",
                )
            # what a dead or lost holder found when it came is still the last consolidation
            taken = AcquiredLock(self._new_token(), self._now(), seen.last)
            body = _Body(self._pid, seen.last, process_start(self._pid), taken.token)
            self._put(body.written(), taken.at)
            if self.look().token != taken.token:
                raise WriteFailed("The lock reads back as another's", where=str(self.path))
            _held.add(taken.token)
            return taken

    @contextlib.contextmanager
    def landing(self, taken: AcquiredLock) -> Generator[None]:
        """Keep it ours while a dream lands, or raise LockLost. Once it has, its time stays and
        nobody holds the lock; after an error inside, it is held as before."""
        with self._hold_gate():
            self._must_be(taken)
            yield
            self._put(b"", taken.at)
            _held.discard(taken.token)

    def give_back(self, taken: AcquiredLock) -> bool:
        """The dream failed or was killed: the time is as it was. False where it is not ours. Where
        the disk fails too, the lock counts as left behind."""
        _held.discard(taken.token)
        with self._hold_gate():
            body = self._read()
            if body is None or body.token != taken.token:
                return False
            self._restore(taken.earlier)
            return True

    def _restore(self, earlier: float | None) -> None:
        if earlier is not None:
            self._put(b"", earlier)
            return
        with self._failing():
            os.unlink(self.path)
            flush_folder(self.path.parent)

    def _must_be(self, taken: AcquiredLock) -> None:
        body = self._read()
        if body is None or body.token != taken.token:
            raise LockLost(
                "This dream no longer holds its lock: it took longer than a dream may",
                where=str(self.path),
                do="Nothing was changed; the next dream starts afresh",
            )

    def _settle_time(self) -> None:
        """A time in the future would shut the gates for as long: it becomes now."""
        found = self._stat()
        if found is not None and found.st_mtime > self._now() + AHEAD:
            with self._failing():
                os.utime(self.path, (self._now(), self._now()), follow_symlinks=False)

    # The file

    @contextlib.contextmanager
    def _hold_gate(self) -> Generator[None]:
        self._gate.acquire(timeout=PATIENCE)
        try:
            yield
        finally:
            self._gate.release()

    def _stat(self) -> os.stat_result | None:
        try:
            found = os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(
                f"The lock cannot be read: {words(error)}", where=str(self.path)
            ) from (error)
        if not stat.S_ISREG(found.st_mode):
            raise PathRefused(
                "A dream's lock is a link, a folder or a special file",
                where=str(self.path),
                do="Move it away",
            )
        return found

    def _read(self) -> _Body | None:
        """The holder; None where there is none, or none that can be read."""
        try:
            data = read_plain(self.path, _BODY)
        except OSError:
            return None
        if data is None:
            return None
        lines = [*data[:_BODY].decode("ascii", "replace").split("\n"), "", "", ""]
        pid = _number(lines[0])
        if not pid:
            return None
        return _Body(pid, _time(lines[1]), _number(lines[2]) or None, lines[3][:64])

    def _put(self, data: bytes, at: float) -> None:
        """Replace the file: its body and its time come at once."""
        self._stat()
        beside = self.path.with_name(f"{LOCK_NAME}.{uuid4().hex[:8]}.tmp")
        with self._failing():
            try:
                fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                try:
                    if os.write(fd, data) != len(data):
                        raise OSError("the disk took only a part")
                    os.utime(fd, (at, at))
                    os.fsync(fd)
                finally:
                    os.close(fd)
                os.rename(beside, self.path)
                flush_folder(self.path.parent)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(beside)
                raise

    def _sweep(self) -> None:
        """What a process that died while replacing the file left beside it."""
        with contextlib.suppress(OSError):
            for beside in self.path.parent.glob(f"{LOCK_NAME}.*.tmp"):
                beside.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _failing(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise WriteFailed(
                f"The dream's lock could not be written: {words(error)}",
                where=str(self.path),
                do="See that the memory folder can be written",
            ) from error


_held: set[str] = set()
"""Tokens of the locks that this process holds."""


def _lives(body: _Body) -> bool:
    """Whether the very process that took it still runs; its start tells it from a later one, and
    this one knows what it gave back."""
    if not alive(body.pid) or (body.pid == os.getpid() and body.token and body.token not in _held):
        return False
    now = process_start(body.pid)
    return body.started is None or now is None or now == body.started


def _number(text: str) -> int:
    """A process number or tick count; 0 where it is none."""
    clean = text.strip()
    return int(clean) if clean.isdecimal() and len(clean) <= _DIGITS else 0


def _time(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 <= found < 1e11 else None
