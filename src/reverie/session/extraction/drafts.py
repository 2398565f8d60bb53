"""Drafts of memories, in words and in files.

Extraction in words: what a fork that has no tool to write with answers, read as drafts.

A fork shares its parent's tool definitions, which are part of the provider's cache key, so none is
added for it. Where the caller's own tools cannot write a memory, the fork answers in a fixed form:

    <read file="feedback_short_answers.md"/>

asks for a file that is there, and is answered with its text;

    <memory file="feedback_short_answers.md">
    ---
    name: Short answers
    ---
    …
    </memory>

is a file as it is to be, whole. A file that is there is shown before it may be written. Nothing is
saved here: drafts are judged and landed like those that tools wrote.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from anyio import to_thread

from reverie.errors import Incomplete, NotFound, PathRefused, StoreError
from reverie.rules import rule
from reverie.session.stops import ENDS
from reverie.session.worker import Worker
from reverie.store.files import Changed
from reverie.store.fs import digest
from reverie.store.memory_store import MemoryStore
from reverie.store.paths import format_path
from reverie.text.safety import neutralize_markup
from reverie.toolbox.file_access import EDITABLE, ConfinedFiles, WritableRoot
from reverie.toolbox.guard import Guard, GuardLimits, Guards, shown_files
from reverie.topics import entry as entries
from reverie.topics.entry import TYPES, TopicFile
from reverie.transcript.records import UserMessage
from reverie.transcript.tasks import ExtractTask
from reverie.wire.reply import Reply, ToolCall, tool_result
from reverie.world import ForkSpec, Model

IN_WORDS = """
## In words, not by tools
None of the tools named above can be called here, nor any other: every call is denied. Answer in
this form instead.

To change a file of the list above, ask for its text first, one line for each file, all at once:

<read file="feedback_short_answers.md"/>

Then give every file that is new or changes, whole, with its head:

<memory file="feedback_short_answers.md">
---
name: Short answers
description: Answers are short; details come only when asked for
type: feedback
from: "keep your answers short, I ask if I want details"
---

Keep answers short. Details come only when the user asks.
</memory>

Nothing else in the answer is read. Where nothing is worth keeping, say so in a word.
"""
DENIED = "No tool can be called here. Answer in the form that was described."
SHOWN = "These are the files. Now give every one that changes, whole, and the new ones."
GONE = "[There is no such file.]"
TOO_LONG = "[It is too long to be shown; leave it as it is.]"
_READ = re.compile(r'^[ \t]*<read file="([^"\n]{1,200})"\s*/?>', re.MULTILINE)
_MEMORY = re.compile(
    r'^[ \t]*<memory file="([^"\n]{1,200})">[ \t]*\n(.*?)^[ \t]*</memory>',
    re.MULTILINE | re.DOTALL,
)
_FENCE = re.compile(r"\A```\w*\n(.*?)\n```\s*\Z", re.DOTALL)


@dataclass
class DraftText:
    """What a fork wrote in words, and the files that it was shown."""

    memories: MemoryStore
    shown: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    drafts: tuple[MemoryDraft, ...] = ()
    rounds: int = 0
    denials: tuple[str, ...] = ()

    def take(self, text: str) -> str:
        """One answer; what is to be said to it, or "" where it was the last."""
        asked = [_key(name) for name in _READ.findall(text)]
        written = dict(_files(text))
        there = (key for key in written if content(self.memories, key) is not None)
        wanted = [key for key in dict.fromkeys((*asked, *there)) if key not in self.shown]
        if wanted:
            return self._show(wanted[:MAX_FILES])
        drafts = (self._draft(key, data) for key, data in written.items())
        self.drafts = tuple(one for one in drafts if one is not None)[:MAX_FILES]
        return ""

    def _draft(self, key: str, data: bytes) -> MemoryDraft | None:
        base = self.shown.get(key)
        return None if len(data) > MAX_BYTES or data == base else MemoryDraft(key, base, data)

    def _show(self, keys: Iterable[str]) -> str:
        parts: list[str] = []
        for key in keys:
            data = self.shown[key] = content(self.memories, key)
            text = GONE if data is None else entries.decode_text(data)
            told = (
                TOO_LONG if data is not None and len(data) > MAX_BYTES else neutralize_markup(text)
            )
            parts.append(f'<file name="{key}">\n{told.rstrip()}\n</file>')
        return "\n\n".join((*parts, SHOWN))


def content(memories: MemoryStore, key: str) -> bytes | None:
    """Return the bytes of a memory; None where it cannot be read."""
    try:
        return memories.folder.bytes_of(key)
    except (NotFound, PathRefused, StoreError):
        return None


def _files(text: str) -> Iterable[tuple[str, bytes]]:
    for name, body in _MEMORY.findall(text):
        inner = _FENCE.match(body.strip())
        said = (inner[1] if inner else body).strip("\n")
        if said.strip():
            yield _key(name), f"{said}\n".encode("utf-8", "replace")


def _key(name: str) -> str:
    """The key that a name in an answer stands for: a path into the folder is its last part."""
    return name.strip().rpartition("/")[2]


async def write_drafts(
    child: Worker,
    model: Model,
    instruction: str,
    task: ExtractTask,
    memories: MemoryStore,
    most: int,
    shown: str = "",
) -> DraftText:
    """Ask the fork, show it the files it asks for, and read what it wrote; `shown` has some."""
    found = DraftText(memories, {**shown_files(shown, partial(content, memories))})
    denials: list[str] = []
    await child.instruct(instruction + IN_WORDS)
    for _ in range(max(2, most)):
        reply = await child.ask(model, task)
        found.rounds += 1
        _must_be_whole(reply)
        if reply.tool_calls:
            denials += [f"{call.name}: {DENIED}" for call in reply.tool_calls]
            await child.add_messages(*_denial_results(reply))
            continue
        more = await to_thread.run_sync(found.take, reply.text)
        if not more:
            break
        await child.add_messages(more)
    found.denials = tuple(denials)
    return found


def _must_be_whole(reply: Reply) -> None:
    if reply.stop_reason not in ENDS:
        raise Incomplete("what a fork wrote for the memory was cut off", where=reply.stop_reason)


def _denial_results(reply: Reply) -> Sequence[UserMessage]:
    return [tool_result(call.id, DENIED, is_error=True) for call in reply.tool_calls]


# --- The private copy that an extraction writes to, and the guard that holds it there.
#
# The agent sees the memory folder under its own path and reads it as it is. What it writes is kept
# aside, in memory alone, with the bytes it started from: it reads its own writes, and nobody else
# does until they land. A run that is abandoned leaves nothing. Paths are checked like those of any
# background agent; how much one run may write is bounded.


MAX_FILES = 20
"""Files that one run may write."""
MAX_BYTES = 64 * 1024
"""Bytes of a file that it may write: a memory is one subject, told briefly."""

MAX_TYPE = 40
DISK = frozenset(
    (
        *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS),
        *(errno.EMFILE, errno.ENFILE, errno.EBADF),
    )
)
"""Errors of a disk or a process, whatever was asked of it."""


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
        writable: Iterable[WritableRoot],
        refused: Iterable[Path],
        denied: Callable[[str, str], None],
    ) -> None:
        super().__init__(cwd, readable, writable, refused, denied)
        self._drafts: dict[str, MemoryDraft] = {}
        self._told: set[str] = set()  # keys whose head was sent back once
        self.disk_error: StoreError | None = None  # the last one, and not of what was asked

    @property
    def drafts(self) -> tuple[MemoryDraft, ...]:
        """What was written and differs from what was there, in the order of the first writes."""
        return tuple(one for one in self._drafts.values() if one.data != one.base)

    def open(self, path: Path) -> int:
        draft = self._drafts.get(self._key(path))
        if draft is None:
            with self._noting_disk():
                return super().open(path)
        self._readable(path, str(path))
        return _open_bytes(draft.data)

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
        with self._noting_disk():
            now = known.data if known else self._there(path)
        if (None if now is None else digest(now)) != expect:
            raise Changed("the file changed since it was read", where=format_path(str(path)))
        self._drafts[key] = MemoryDraft(key, known.base if known else now, data)
        self.written.append(str(path))

    @contextmanager
    def _noting_disk(self) -> Generator[None]:
        try:
            yield
        except StoreError as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno in DISK:
                self.disk_error = error
            raise

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
    return front.fault or next(iter(rule.read(front).faults), "")


def _open_bytes(data: bytes) -> int:
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
        self._wrote, self._failed = len(self.files.written), False
        if reply.tool_calls:
            self.files.disk_error = None

    async def run(self, call: ToolCall) -> UserMessage:
        ended = False
        try:
            result = await super().run(call)
            ended = not any(block.value.get("is_error") is True for block in result.blocks)
        finally:
            self._failed |= not ended
        return result

    def check_disk(self) -> None:
        """Raise where the disk kept the agent from its work: it has to be done again."""
        error = self.files.disk_error
        if error is not None:
            raise StoreError(
                f"Memories could not be written: {error.what}",
                where=error.where,
                do="Free the disk or raise the limit; the same messages are looked at again",
            ) from error

    @property
    def done(self) -> bool:
        return len(self.files.written) > self._wrote and not self._failed

    @property
    def drafts(self) -> tuple[MemoryDraft, ...]:
        return self.files.drafts
