"""The private copy that an extraction writes to, and the guard that holds it there.

The agent sees the memory folder under its own path and reads it as it is. What it writes is
kept aside, in memory alone, with the bytes it started from: it reads its own writes, and nobody
else does until they land. A run that is abandoned leaves nothing. Paths are checked like those
of any background agent; how much one run may write is bounded.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from reverie.errors import NotFound, PathRefused
from reverie.light import dataclass
from reverie.memory.format import entry as entries
from reverie.memory.format.entry import TYPES, TopicFile
from reverie.memory.rules import reading
from reverie.store.files import Changed
from reverie.store.keys import shown
from reverie.store.plain import digest
from reverie.tools.confined import ConfinedFiles, Slot
from reverie.tools.guard import Guard, GuardLimits, Guards
from reverie.tools.places import EDITABLE
from reverie.transcript.records import UserMessage
from reverie.wire.reply import Reply, ToolCall
from reverie.world import ForkSpec

MAX_FILES = 20
"""Files that one run may write."""
MAX_BYTES = 64 * 1024
"""Bytes of a file that it may write: a memory is one subject, told briefly."""

MAX_TYPE = 40


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """A file as a run wants it; `base` is what it started from, None where there was none."""

    key: str
    base: bytes | None
    data: bytes


class PrivateFiles(ConfinedFiles):
    """`tool.Files` whose writes stay here until they are taken."""

    def __init__(
        self,
        cwd: Path,
        readable: Iterable[Path],
        writable: Iterable[Slot],
        refused: Iterable[Path],
        denied: Callable[[str, str], None],
    ) -> None:
        super().__init__(cwd, readable, writable, refused, denied)
        self._drafts: dict[str, MemoryDraft] = {}
        self._told: set[str] = set()  # keys whose head was sent back once

    @property
    def drafts(self) -> tuple[MemoryDraft, ...]:
        """What was written and differs from what was there, in the order of the first writes."""
        return tuple(one for one in self._drafts.values() if one.data != one.base)

    def open(self, path: Path) -> int:
        draft = self._drafts.get(self._key(path))
        if draft is None:
            return super().open(path)
        self._readable(path, str(path))
        return _opened(draft.data)

    def write(self, path: Path, data: bytes, expect: str | None) -> None:
        key = self._key(path)
        if not key:
            raise self._deny(str(path), "it is outside the folders that may be written")
        if len(data) > MAX_BYTES:
            raise self._deny(str(path), f"a memory has at most {MAX_BYTES:,} bytes")
        if unknown := _unknown_type(key, data, self._drafts.get(key)):
            known_types = ", ".join(TYPES)
            raise self._deny(str(path), f"there is no type `{unknown}`: use one of {known_types}")
        if key not in self._told and (why := _misread(key, data)):
            self._told.add(key)
            raise self._deny(str(path), why)
        known = self._drafts.get(key)
        if known is None and len(self._drafts) >= MAX_FILES:
            raise self._deny(str(path), f"one run writes at most {MAX_FILES} files")
        now = known.data if known else self._there(path)
        if (None if now is None else digest(now)) != expect:
            raise Changed("the file changed since it was read", where=shown(str(path)))
        self._drafts[key] = MemoryDraft(key, known.base if known else now, data)
        self.written.append(str(path))

    def _is_there(self, place: Path) -> bool:
        return self._slot(place)[1] in self._drafts or super()._is_there(place)

    def _key(self, path: Path) -> str:
        try:
            return self._slot(path)[1]
        except PathRefused as error:
            raise self._deny(str(path), error.what) from error

    def _there(self, path: Path) -> bytes | None:
        """What the file holds now; a link or another thing in its place is refused."""
        slot, key = self._slot(path)
        if slot is None:
            return None
        try:
            return slot.folder.read(key, EDITABLE)
        except NotFound:
            return None
        except PathRefused as error:
            raise self._deny(str(path), error.what) from error


def _unknown_type(key: str, data: bytes, known: MemoryDraft | None) -> str:
    """A type that no memory has, where a draft names one that its file did not have before."""
    if not entries.is_topic(key):
        return ""
    named = TopicFile(key, data).front.get("type").strip()
    if not named or TopicFile(key, data).type:
        return ""
    before = TopicFile(key, known.base).front.get("type").strip() if known and known.base else ""
    return "" if named == before else named[:MAX_TYPE]


def _misread(key: str, data: bytes) -> str:
    """Why a head, or what it says of calls, would be lost on us; "" where nothing would."""
    if not entries.is_topic(key):
        return ""
    front = TopicFile(key, data).front
    return front.fault or next(iter(reading.read(front).faults), "")


def _opened(data: bytes) -> int:
    """A descriptor to read bytes from; the caller closes it."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        fd = os.dup(file.fileno())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


class PrivateGuard(Guard):
    """A background agent's guard whose writes are drafts. Its work is done with the first round
    that wrote something and in which no call failed."""

    files: PrivateFiles
    _wrote: int = 0  # writes before this round
    _failed: bool = False

    @classmethod
    def of(cls, guards: Guards, spec: ForkSpec) -> PrivateGuard:
        limits = GuardLimits(frozenset(spec.tools), guards.readable, spec.writable, guards.refused)
        guard = cls(guards.registry, guards.context(), limits, guards.sandbox, spec.source)
        known = guard.files
        guard.files = PrivateFiles(
            known.cwd, limits.readable, known.slots, limits.refused, guard._refused
        )
        guard._context = replace(guard._context, files=guard.files)
        return guard

    def begin_round(self, reply: Reply) -> None:
        """An answer has come, and its calls will be run."""
        del reply
        self._wrote, self._failed = len(self.files.written), False

    async def run(self, call: ToolCall) -> UserMessage:
        ended = False
        try:
            result = await super().run(call)
            ended = not any(block.value.get("is_error") is True for block in result.blocks)
        finally:
            self._failed |= not ended
        return result

    @property
    def done(self) -> bool:
        return len(self.files.written) > self._wrote and not self._failed

    @property
    def drafts(self) -> tuple[MemoryDraft, ...]:
        return self.files.drafts
