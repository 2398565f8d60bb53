"""Drafts of memories: what a model answers to an extraction, read as files.

The answer has a fixed form, and no tool is called for it:

    <read file="feedback_short_answers.md"/>

asks for a file that is there, and is answered once with its text;

    <memory file="feedback_short_answers.md">
    ---
    name: Short answers
    ---
    …
    </memory>

is a file as it is to be, whole. A file that is there is shown before it may be written. Nothing is
saved here: drafts are judged first, and saved by `acceptance`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from anyio import to_thread

from reverie.errors import Incomplete, NotFound, PathRefused, StoreError
from reverie.rules import rule
from reverie.session.stops import ENDS
from reverie.session.worker import Worker
from reverie.store.memory_store import MemoryStore
from reverie.text.safety import neutralize_markup
from reverie.toolbox.guard import shown_files
from reverie.topics import entry as entries
from reverie.topics.entry import TYPES, TopicFile
from reverie.transcript.records import UserMessage
from reverie.transcript.tasks import ExtractTask
from reverie.wire.reply import Reply, tool_result
from reverie.world import Model, Notice

DENIED = "No tool can be called here. Answer in the form that was described."
SHOWN = "These are the files. Now answer with the blocks of all files, changed and new."
AGAIN = "These blocks cannot be used. Answer with the blocks of all files again, corrected."
GONE = "[There is no such file.]"
TOO_LONG = "[It is too long to be shown; leave it as it is.]"
MAX_FILES = 20
"""Files that one run may write."""
MAX_BYTES = 64 * 1024
"""Bytes of a file that it may write: a memory is one subject, told briefly."""

MAX_TYPE = 40
_READ = re.compile(r'^[ \t]*<read file="([^"\n]{1,200})"\s*/?>', re.MULTILINE)
_MEMORY = re.compile(
    r'^[ \t]*<memory file="([^"\n]{1,200})">[ \t]*(?:\n(.*?)^[ \t]*)?</memory>',
    re.MULTILINE | re.DOTALL,
)
_FENCE = re.compile(r"\A```\w*\n(.*?)\n```\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """A file as a run wants it; `base` is what it started from, None where there was none."""

    key: str
    base: bytes | None
    data: bytes


@dataclass
class DraftText:
    """What a model wrote, and the files that it was shown."""

    memories: MemoryStore
    shown: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    drafts: tuple[MemoryDraft, ...] = ()
    rounds: int = 0
    _told: bool = False  # whether an answer was answered: the next one counts as it is

    def take(self, text: str) -> str:
        """Read one answer; return what is said to it, once, or "" where it was the last."""
        asked = [_key(name) for name in _READ.findall(text)]
        written = dict(written_files(text))
        there = [key for key in written if content(self.memories, key) is not None]
        wanted = [key for key in dict.fromkeys((*asked, *there)) if key not in self.shown]
        faults = [] if wanted else [f"- {one}" for one in self._faults(written)]
        if not self._told and (wanted or faults):
            self._told = True
            return self._show(wanted[:MAX_FILES]) if wanted else "\n".join((AGAIN, *faults))
        drafts = (self._draft(key, data) for key, data in written.items() if key not in wanted)
        self.drafts = tuple(one for one in drafts if one is not None)[:MAX_FILES]
        return ""

    def _draft(self, key: str, data: bytes) -> MemoryDraft | None:
        base = self.shown.get(key)
        return None if len(data) > MAX_BYTES or data == base else MemoryDraft(key, base, data)

    def _faults(self, written: Mapping[str, bytes]) -> Iterator[str]:
        for key, data in written.items():
            if len(data) > MAX_BYTES:
                yield f"{key}: a memory has at most {MAX_BYTES:,} bytes"
            elif unknown := _unknown_type(key, data, self.shown.get(key)):
                yield f"{key}: there is no type `{unknown}`: use one of {', '.join(TYPES)}"
            elif why := _misread(key, data):
                yield f"{key}: {why}"

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


def file_blocks(text: str) -> Iterator[tuple[str, str]]:
    """The files that an answer gives, each with its key; one that is to go has no text."""
    for name, body in _MEMORY.findall(text):
        inner = _FENCE.match(body.strip())
        yield _key(name), (inner[1] if inner else body).strip("\n")


def without_files(text: str) -> str:
    """An answer without the files that it gives."""
    return _MEMORY.sub("", text).strip()


def written_files(text: str) -> Iterator[tuple[str, bytes]]:
    """The files that an answer gives, each with its key and bytes."""
    for key, said in file_blocks(text):
        if said.strip():
            yield key, f"{said}\n".encode("utf-8", "replace")


def _key(name: str) -> str:
    """The key that a name in an answer stands for."""
    return name.strip().removeprefix("./")


async def write_drafts(
    child: Worker,
    model: Model,
    instruction: str,
    task: ExtractTask,
    memories: MemoryStore,
    most: int,
    shown: str = "",
) -> DraftText:
    """Ask the model, show it the files it asks for, and read what it wrote; `shown` has some."""
    found = DraftText(memories, {**shown_files(shown, partial(content, memories))})
    await child.instruct(instruction)
    for _ in range(max(2, most)):
        reply = await child.ask(model, task)
        found.rounds += 1
        _must_be_whole(reply)
        if reply.tool_calls:
            for call in reply.tool_calls:
                child.world.say(Notice("guard", f"{task.kind}: {call.name} was denied"))
            await child.add_messages(*_denial_results(reply))
            continue
        more = await to_thread.run_sync(found.take, reply.text)
        if not more:
            break
        await child.add_messages(more)
    return found


def _must_be_whole(reply: Reply) -> None:
    if reply.stop_reason not in ENDS:
        raise Incomplete("what a model wrote for the memory was cut off", where=reply.stop_reason)


def _denial_results(reply: Reply) -> Sequence[UserMessage]:
    return [tool_result(call.id, DENIED, is_error=True) for call in reply.tool_calls]


def _unknown_type(key: str, data: bytes, base: bytes | None) -> str:
    """A type that no memory has, where a draft names one that its file did not have before."""
    if not entries.is_topic(key):
        return ""
    named = TopicFile(key, data).front.get("type").strip()
    if not named or TopicFile(key, data).type:
        return ""
    before = TopicFile(key, base).front.get("type").strip() if base else ""
    return "" if named == before else named[:MAX_TYPE]


def _misread(key: str, data: bytes) -> str:
    """Why a head, or what it says of calls, would be lost on us; "" where nothing would."""
    if not entries.is_topic(key):
        return ""
    front = TopicFile(key, data).front
    return front.fault or next(iter(rule.read(front).faults), "")
