"""What a door does around a compaction: the user's hooks, and what comes back after it.

What an agent needs at once is put behind the boundary as attachments of their own: the files
read last, as they are on the disk now, the skills that were invoked, the plan. Where the
beginning of the conversation was replaced, the head is rendered again, so instruction files
and memory are those of today; otherwise not a byte of it moves. All of it stays within its
budgets, a file that cannot be read is left out, and what the context still shows is not
shown twice. What is restored stands in `RESTORED`, and nowhere else.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from anyio import to_thread

import reverie
from reverie.alone import alone
from reverie.errors import ReverieError
from reverie.layers.compaction import CompactionFailed
from reverie.session.attachments import SKILL, Attachments, announced, bounded, framed
from reverie.session.hooks import Hooks
from reverie.session.opening import Head
from reverie.settings import Settings
from reverie.tools.tool import ToolContext
from reverie.transcript.blocks import text_block
from reverie.transcript.fold import apply
from reverie.transcript.records import AssistantMessage, Attached, Entry, Record
from reverie.transcript.view import View
from reverie.world import Notice, World

FILE = "file"
_FILE_TOOLS = ("Read", "Edit", "MultiEdit", "Write")
_SNIFFED = 8 * 1024
RestoreTrigger: TypeAlias = Literal["auto", "manual"]


@dataclass(frozen=True, slots=True)
class Restoring:
    """A `world.Around` for an agent."""

    hooks: Callable[[], Hooks]
    attachments: Attachments
    context: Callable[[], ToolContext]
    head: Callable[[], Head]  # the system prompt and the surroundings as they are now
    world: Callable[[], World]

    async def before(self, trigger: RestoreTrigger, instructions: str) -> str:
        """PreCompact hooks; what they add joins the instructions, and they may refuse."""
        verdict = await self.hooks().run(
            "PreCompact", trigger=trigger, custom_instructions=instructions
        )
        if verdict.blocked:
            raise CompactionFailed(
                "a PreCompact hook refused the compaction",
                where=verdict.reason,
                do="Nothing was changed",
            )
        return "\n\n".join(filter(None, (instructions, *verdict.context)))

    async def after(self, view: View, trigger: RestoreTrigger) -> Sequence[Record]:
        """Everything that comes back behind a boundary; what fails, fails alone."""
        out: list[Record] = []
        world = self.world()
        for name, step in RESTORED:
            none: Sequence[Record] = ()
            records, fault = await alone(step(self, view, trigger), none)
            if fault:
                world.say(Notice("compaction", f"{name} did not come back: {fault}", "warning"))
            for n, record in enumerate(records, len(out)):
                entry = Entry(f"restored:{n}", view.leaf, world.clock.now(), record)
                view = apply(view, entry)
            out += records
        return out


RestoreStep: TypeAlias = "Callable[[Restoring, View, RestoreTrigger], Awaitable[Sequence[Record]]]"


def replaces_beginning(view: View) -> bool:
    """Whether the last boundary stands where the conversation began."""
    first = next((item for item in view.items if item.kind != "head"), None)
    return first is not None and first.id == view.boundary


async def _head(around: Restoring, view: View, trigger: RestoreTrigger) -> Sequence[Record]:
    del trigger
    if view.head is None or not replaces_beginning(view):
        return ()
    fresh = (await to_thread.run_sync(around.head)).record()
    return (replace(view.head, system=fresh.system, context=fresh.context, reason="compaction"),)


async def _metadata(around: Restoring, view: View, trigger: RestoreTrigger) -> Sequence[Record]:
    """The session's own record once more, so that a list that reads the end shows it."""
    del around, trigger
    return () if view.started is None else (replace(view.started, version=reverie.__version__),)


# --- files


async def _files(around: Restoring, view: View, trigger: RestoreTrigger) -> Sequence[Record]:
    del trigger
    world, context = around.world(), around.context()
    settings = world.scaled
    return await to_thread.run_sync(_read_again, view, context, settings)


def _read_again(view: View, context: ToolContext, settings: Settings) -> list[Attached]:
    """The files read last and no longer shown, the newest last."""
    shown = set(_paths(view, {i.id for i in view.items}, context))
    room = settings.restore_files_tokens * settings.text_bytes_per_token
    each = settings.restore_file_tokens * settings.text_bytes_per_token
    out: list[Attached] = []
    for path in _recent(view, context):
        if len(out) >= settings.restore_files or room <= 0:
            break
        text = None if path in shown else _text(path, context, min(each, room))
        if text is None:
            continue
        block = text_block(framed("restored-file", text, f' path="{_attribute(path)}"'))
        room -= len(text.encode())
        out.append(Attached((block,), FILE))
    return out[::-1]


def _recent(view: View, context: ToolContext) -> Iterator[str]:
    """Paths, the one read last first: those of this run, then those of the transcript."""
    known = context.reads.recent()
    yield from known
    covered = frozenset[str]().union(*(i.covers for i in view.items))
    earlier = dict.fromkeys(reversed(list(_paths(view, covered, context))))
    yield from (path for path in earlier if path not in known)


def _paths(view: View, ids: frozenset[str] | set[str], context: ToolContext) -> Iterator[str]:
    """Real paths of files that calls in some messages read or wrote, oldest first."""
    for entry in view.entries:
        record = entry.record
        if entry.id not in ids or not isinstance(record, AssistantMessage):
            continue
        for block in record.blocks:
            given = block.value.get("input") if block.get("name") in _FILE_TOOLS else None
            path = given.get("file_path") if isinstance(given, dict) else None
            if isinstance(path, str):
                yield from _real(path, context)


def _real(path: str, context: ToolContext) -> Iterator[str]:
    try:
        yield str(context.files.find(path))
    except (ReverieError, OSError, ValueError):
        return


def _text(path: str, context: ToolContext, most: int) -> str | None:
    """The beginning of a file as it is now; None where it is no text that can be read."""
    try:
        fd = context.files.open(context.files.find(path))
    except (ReverieError, OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        size = os.fstat(fd).st_size
        data = os.pread(fd, min(size, most + 1), 0)
    except OSError:
        return None
    finally:
        os.close(fd)
    if b"\0" in data[:_SNIFFED]:
        return None
    text = data.decode("utf-8", "replace")
    if size <= most:
        return text
    cut = bounded(text, most).rpartition("\n[cut at ")[0]
    return f"{cut}\n[cut here; the file has {size:,} bytes]"


def _attribute(path: str) -> str:
    return path.encode("utf-8", "replace").decode().replace("&", "&amp;").replace('"', "&quot;")


# --- skills, the plan, the date


async def _skills(around: Restoring, view: View, trigger: RestoreTrigger) -> Sequence[Record]:
    """Skills that were invoked and have left the context, the newest first in line."""
    del trigger
    world = around.world()
    settings = world.scaled
    each, room = settings.restore_skill_tokens, settings.restore_skills_tokens
    covered = frozenset[str]().union(*(i.covers for i in view.items))
    there = set(announced(view, SKILL))
    out: list[Attached] = []
    for entry in reversed(view.entries[:]):
        record = entry.record
        if not isinstance(record, Attached) or record.kind != SKILL or entry.id not in covered:
            continue
        text = "\n".join(b.text for b in record.blocks)
        size = sum(b.tokens for b in record.blocks)
        if text not in there and size <= min(room, each + each // 10):  # its frame is not counted
            there.add(text)
            room -= size
            out.append(record)
    return out[::-1]


async def _told(around: Restoring, view: View, trigger: RestoreTrigger) -> Sequence[Record]:
    """The list of skills, the plan, and the date, where the context no longer has them."""
    del trigger
    return around.attachments.at_turn(view, around.world().clock.now())


# --- hooks


async def _hooks(around: Restoring, view: View, trigger: RestoreTrigger) -> Sequence[Record]:
    """SessionStart hooks once more, then PostCompact hooks; what they add is attached."""
    started = await around.hooks().run("SessionStart", source="compact")
    done = await around.hooks().run("PostCompact", trigger=trigger, tokens=view.tokens)
    return (*started.attached(), *done.attached())


RESTORED: tuple[tuple[str, RestoreStep], ...] = (
    ("head", _head),  # instruction files, memory index and prompt, as they are now
    ("metadata", _metadata),  # which session this is
    ("files", _files),  # those read last, from the disk
    ("skills", _skills),  # those that were invoked
    ("attachments", _told),  # the list of skills, the plan, the date
    ("hooks", _hooks),  # SessionStart, then PostCompact
)
"""What comes back, in this order. Schemas of tools that were loaded late, the list of agents
and the instructions of MCP servers belong behind the skills."""
