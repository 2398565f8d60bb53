"""The daily log, kept in place of extraction: what the main agent may write while it is on.

A log only grows: a write that changes or shortens one is refused, whichever tool it came by. The
index is there to be read; a nightly dream writes it. Asked to remember or to forget something,
the agent adds a bullet with the time to today's file. Who else writes the folder is not held to
this: the dream, and the person.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from anyio import to_thread

from reverie.errors import NotFound
from reverie.session.attachments import local_date
from reverie.store.fs import digest
from reverie.store.memory_store import MemoryStore
from reverie.store.paths import beneath
from reverie.toolbox.memory_tools import MemoryFileAccess, memory_tools
from reverie.toolbox.tool import Input, Tool, ToolContext, ToolFailed, ToolOutput
from reverie.topics.entry import LOGS, is_index
from reverie.topics.paths import LOG_PATTERN, log_key
from reverie.topics.trust import Trust
from reverie.topics.versions import Origin

_LOG = re.compile(rf"{LOGS}/\d{{4}}/\d{{2}}/(\d{{4}}-\d{{2}}-\d{{2}})\.md", re.ASCII)


def refusal(key: str, before: bytes | None, after: bytes) -> str:
    """Why a write may not be while the daily log is kept, or "" where it may."""
    if is_index(key):
        return "MEMORY.md is only read while a daily log is kept"
    if key.partition("/")[0].casefold() != LOGS:
        return ""
    named = _LOG.fullmatch(key)
    if named is None or log_key(named[1]) != key:
        return f"a daily log is named {LOG_PATTERN}"
    if before is not None and not after.startswith(before):
        return "a log only grows: no entry is changed or taken out"
    return ""


@dataclass(frozen=True, slots=True)
class LoggingFiles(MemoryFileAccess):
    """`tool.Files` of an agent that may keep a daily log; `daily` is asked at each write."""

    daily: Callable[[], bool] = field(default=lambda: True)

    def write(self, path: Path, data: bytes, expect: str | None) -> None:
        memories = self.memories
        if memories is not None and beneath(memories.root, path) and self.daily():
            key = path.relative_to(memories.root).as_posix()
            why = refusal(key, _there(memories, key), data)
            if why:
                raise ToolFailed(why, where=str(path), do="Append to today's log instead")
        MemoryFileAccess.write(self, path, data, expect)


def _there(memories: MemoryStore, key: str) -> bytes | None:
    try:
        return memories.folder.bytes_of(key)
    except NotFound:
        return None


def log_tools(memories: MemoryStore) -> tuple[Tool, Tool]:
    """Remember and Forget, as entries of today's log."""

    def bullet(text: str, tool: str, context: ToolContext) -> ToolOutput:
        origin = Origin(
            "save",
            Trust.AGENT,
            agent="main",
            session=context.stored.session if context.stored else "",
            messages=(context.call,),
            tool=tool,
        )
        key = append(memories, " ".join(text.split()), context.clock.now(), origin)
        return ToolOutput(f"noted: {key}")

    async def remember(value: Input, context: ToolContext) -> ToolOutput:
        text = ": ".join(filter(None, (str(value.get("name") or ""), str(value["text"]))))
        return await to_thread.run_sync(bullet, text, "Remember", context)

    async def forget(value: Input, context: ToolContext) -> ToolOutput:
        text = f"To forget: {value['name']}"
        return await to_thread.run_sync(bullet, text, "Forget", context)

    known = memory_tools(memories)
    about = (
        "Adds something worth keeping to today's log in the memory folder, with the time.",
        "Notes in today's log what the next night's run is to remove from memory.",
    )
    return (
        Tool(known[0].name, about[0], known[0].schema, remember),
        Tool(known[1].name, about[1], known[1].schema, forget),
    )


def append(memories: MemoryStore, text: str, now: float, origin: Origin) -> str:
    """Add one bullet to the log of the day; gives the log's key."""
    key = log_key(local_date(now))
    time = datetime.fromtimestamp(now, UTC).astimezone().strftime("%H:%M")
    with memories.folder.locked(), memories.history.by(origin):
        before = _there(memories, key)
        gap = b"" if not before or before.endswith(b"\n") else b"\n"
        data = (before or b"") + gap + f"- {time} {text}\n".encode()
        expect = None if before is None else digest(before)
        memories.folder.write(key, data, expect=expect, exclusive=before is None)
    return key
