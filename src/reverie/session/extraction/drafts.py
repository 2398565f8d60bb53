"""Extraction in words: what a fork that has no tool to write with answers, read as drafts.

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

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from anyio import to_thread

from reverie.errors import Incomplete, NotFound, PathRefused, StoreError
from reverie.memory.format import entry as entries
from reverie.session.extraction.files import MAX_BYTES, MAX_FILES, MemoryDraft
from reverie.session.fork import Worker
from reverie.session.stops import ENDS
from reverie.store.memories import Memories
from reverie.text.untrusted import defused
from reverie.transcript.records import UserMessage
from reverie.transcript.tasks import ExtractTask
from reverie.wire.reply import Reply, tool_result
from reverie.world import Model

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
---

Keep answers to a few sentences.
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
class WrittenWords:
    """What a fork wrote in words, and the files that it was shown."""

    memories: Memories
    shown: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    drafts: tuple[MemoryDraft, ...] = ()
    rounds: int = 0
    denials: tuple[str, ...] = ()

    def take(self, text: str) -> str:
        """One answer; what is to be said to it, or "" where it was the last."""
        asked = [_key(name) for name in _READ.findall(text)]
        written = dict(_files(text))
        there = [key for key in written if key not in self.shown and self._read(key) is not None]
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
            data = self.shown[key] = self._read(key)
            text = GONE if data is None else entries.shown(data)
            told = TOO_LONG if data is not None and len(data) > MAX_BYTES else defused(text)
            parts.append(f'<file name="{key}">\n{told.rstrip()}\n</file>')
        return "\n\n".join((*parts, SHOWN))

    def _read(self, key: str) -> bytes | None:
        try:
            return self.memories.folder.bytes_of(key)
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


async def written(
    child: Worker, model: Model, instruction: str, task: ExtractTask, memories: Memories, most: int
) -> WrittenWords:
    """Ask the fork, show it what it wants to see, and read what it wrote."""
    found = WrittenWords(memories)
    denials: list[str] = []
    await child.instruct(instruction + IN_WORDS)
    for _ in range(max(2, most)):
        reply = await child.ask(model, task)
        found.rounds += 1
        _must_be_whole(reply)
        if reply.tool_calls:
            denials += [f"{call.name}: {DENIED}" for call in reply.tool_calls]
            await child.add_messages(*_denied(reply))
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


def _denied(reply: Reply) -> Sequence[UserMessage]:
    return [tool_result(call.id, DENIED, is_error=True) for call in reply.tool_calls]
