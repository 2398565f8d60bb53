"""What a door does around a compaction: the user's hooks, and what comes back after it.

What an agent needs at once is put behind the boundary as attachments of their own: the files
read last, as they are on the disk now and in the range that was read, the skills that were
invoked, the plan. Where the
beginning of the conversation was replaced, the head is rendered again, so instruction files
and memory are those of today; otherwise not a byte of it moves. All of it stays within its
budgets, a file that cannot be read is left out, and what the context still shows is not
shown twice. What is restored stands in `RESTORED`, and nowhere else.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, Literal, TypeAlias

from anyio import to_thread

import reverie
from reverie.concurrency import alone
from reverie.errors import ReverieError
from reverie.layers.compaction.summary import CompactionFailed
from reverie.light import dataclass
from reverie.session.attachments import (
    SKILL,
    Attachments,
    attachment_texts,
    frame_text,
    truncate_text,
)
from reverie.session.hooks import Hooks
from reverie.session.options import RequestHead
from reverie.settings.catalog import Settings
from reverie.toolbox.tool import ToolContext
from reverie.transcript.blocks import text_block
from reverie.transcript.fold import apply
from reverie.transcript.records import AssistantMessage, Attached, Entry, Record
from reverie.transcript.view import View
from reverie.world import Notice, World

FILE = "file"
_FILE_TOOLS = ("Read", "Edit", "MultiEdit", "Write")
_SNIFFED = 8 * 1024
_PIECE = 64 * 1024
_PASSED = 64 * 1024 * 1024  # bytes of a file in which a range is looked for
CUT = "[cut here; the file has {size:,} bytes]"
RestoreTrigger: TypeAlias = Literal["auto", "manual"]


@dataclass(frozen=True, slots=True)
class ContextRestorer:
    """A `world.Around` for an agent."""

    hooks: Callable[[], Hooks]
    attachments: Attachments
    context: Callable[[], ToolContext]
    head: Callable[[], RequestHead]  # the system prompt and the surroundings as they are now
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


RestoreStep: TypeAlias = (
    "Callable[[ContextRestorer, View, RestoreTrigger], Awaitable[Sequence[Record]]]"
)


def replaces_beginning(view: View) -> bool:
    """Whether the last boundary stands where the conversation began."""
    first = next((item for item in view.items if item.kind != "head"), None)
    return first is not None and first.id == view.boundary


async def _head(around: ContextRestorer, view: View, trigger: RestoreTrigger) -> Sequence[Record]:
    del trigger
    if view.head is None or not replaces_beginning(view):
        return ()
    now = await to_thread.run_sync(around.head)
    fresh = now.record()
    tools = fresh.tools if now.tools else view.head.tools
    made = replace(view.head, system=fresh.system, tools=tools, context=fresh.context)
    return (replace(made, reason="compaction"),)


async def _metadata(
    around: ContextRestorer, view: View, trigger: RestoreTrigger
) -> Sequence[Record]:
    """The session's own record once more, so that a list that reads the end shows it."""
    del around, trigger
    return () if view.started is None else (replace(view.started, version=reverie.__version__),)


# --- files


async def _files(around: ContextRestorer, view: View, trigger: RestoreTrigger) -> Sequence[Record]:
    del trigger
    world, context = around.world(), around.context()
    settings = world.scaled
    return await to_thread.run_sync(_read_again, view, context, settings)


def _read_again(view: View, context: ToolContext, settings: Settings) -> list[Attached]:
    """The files read last and no longer shown, the newest last."""
    shown = set(_paths(view, {i.id for i in view.items}, context))
    ranges = _ranges(view, context)
    room = settings.restore_files_tokens * settings.text_bytes_per_token
    each = settings.restore_file_tokens * settings.text_bytes_per_token
    out: list[Attached] = []
    for path in _recent(view, context):
        if len(out) >= settings.restore_files or room <= 0:
            break
        part = None
        if path not in shown:
            part = _part(path, context, ranges.get(path, WHOLE), min(each, room))
        if part is None:
            continue
        named = f' path="{_attribute(path)}"{part.lines}'
        room -= len(part.text.encode())
        out.append(Attached((text_block(frame_text("restored-file", part.text, named)),), FILE))
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
    for _, given in _file_calls(view, ids):
        yield from _real(given["file_path"], context)


def _file_calls(
    view: View, ids: frozenset[str] | set[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The calls of file tools in some messages, oldest first: the tool, and what it was given."""
    for entry in view.entries:
        record = entry.record
        if entry.id not in ids or not isinstance(record, AssistantMessage):
            continue
        for block in record.blocks:
            given = block.value.get("input") if block.get("name") in _FILE_TOOLS else None
            if isinstance(given, dict) and isinstance(given.get("file_path"), str):
                yield block.get("name"), given


def _ranges(view: View, context: ToolContext) -> dict[str, LineRange]:
    """Which lines of each file were read last, among the messages that are gone."""
    covered = frozenset[str]().union(*(i.covers for i in view.items))
    out: dict[str, LineRange] = {}
    for tool, given in _file_calls(view, covered):
        if tool == "Read":
            found = LineRange.of(given)
            out.update((path, found) for path in _real(given["file_path"], context))
    return out


def _real(path: str, context: ToolContext) -> Iterator[str]:
    try:
        yield str(context.files.find(path))
    except (ReverieError, OSError, ValueError):
        return


@dataclass(frozen=True, slots=True)
class LineRange:
    """The lines that a call asked for; `last` is 0 for all to the end."""

    first: int = 1
    last: int = 0

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> LineRange:
        first, limit = (_positive(given.get(key)) for key in ("offset", "limit"))
        first = first or 1
        return cls(first, first + limit - 1 if limit else 0)


WHOLE = LineRange()


def _positive(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file's text, or some lines of it, and how those are named."""

    text: str
    lines: str = ""


def _part(path: str, context: ToolContext, wanted: LineRange, most: int) -> FilePart | None:
    """The wanted lines of a file as it is now; None where it has none that can be read."""
    try:
        fd = context.files.open(context.files.find(path))
    except (ReverieError, OSError, ValueError):
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or b"\0" in os.pread(fd, _SNIFFED, 0):
            return None
        if wanted == WHOLE:
            return FilePart(_beginning(fd, found.st_size, most))
        with os.fdopen(os.dup(fd), "rb") as file:
            return _lines(file, found.st_size, wanted, most)
    except OSError:
        return None
    finally:
        os.close(fd)


def _beginning(fd: int, size: int, most: int) -> str:
    text = os.pread(fd, min(size, most + 1), 0).decode("utf-8", "replace")
    if size <= most:
        return text
    cut = truncate_text(text, most).rpartition("\n[cut at ")[0]
    return f"{cut}\n{CUT.format(size=size)}"


def _lines(file: BinaryIO, size: int, wanted: LineRange, most: int) -> FilePart | None:
    """Lines in bounded memory; None where the file ends before them, or they lie very far in."""
    out: list[bytes] = []
    number, room, end = 1, most, ""
    while file.tell() < _PASSED and (piece := file.readline(_PIECE)):
        if wanted.last and number > wanted.last:
            break
        if number >= wanted.first:
            room -= len(piece)
            if room < 0:
                end = CUT.format(size=size)
                break
            out.append(piece)
        number += piece.endswith(b"\n")
    if not out:
        return None
    text = b"".join(out).decode("utf-8", "replace")
    last = wanted.first + text.rstrip("\n").count("\n")
    return FilePart(f"{text}{end}", f' lines="{wanted.first}-{last}"')


def _attribute(path: str) -> str:
    return path.encode("utf-8", "replace").decode().replace("&", "&amp;").replace('"', "&quot;")


# --- skills, the plan, the date


async def _skills(around: ContextRestorer, view: View, trigger: RestoreTrigger) -> Sequence[Record]:
    """Skills that were invoked and have left the context, the newest first in line."""
    del trigger
    world = around.world()
    settings = world.scaled
    each, room = settings.restore_skill_tokens, settings.restore_skills_tokens
    covered = frozenset[str]().union(*(i.covers for i in view.items))
    there = set(attachment_texts(view, SKILL))
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


async def _restore_attachments(
    around: ContextRestorer, view: View, trigger: RestoreTrigger
) -> Sequence[Record]:
    """The list of skills, the plan, and the date, where the context no longer has them."""
    del trigger
    return around.attachments.at_turn(view, around.world().clock.now())


# --- hooks


async def _hooks(around: ContextRestorer, view: View, trigger: RestoreTrigger) -> Sequence[Record]:
    """SessionStart hooks once more, then PostCompact hooks; what they add is attached."""
    started = await around.hooks().run("SessionStart", source="compact")
    done = await around.hooks().run("PostCompact", trigger=trigger, tokens=view.tokens)
    return (*started.attached(), *done.attached())


RESTORED: tuple[tuple[str, RestoreStep], ...] = (
    ("head", _head),  # instruction files, memory index and prompt, as they are now
    ("metadata", _metadata),  # which session this is
    ("files", _files),  # those read last, from the disk
    ("skills", _skills),  # those that were invoked
    (
        "attachments",
        _restore_attachments,
    ),  # skills, the plan, the date, what MCP servers say, agents and their types
    ("hooks", _hooks),  # SessionStart, then PostCompact
)
"""What comes back, in this order. Schemas of tools that were loaded late belong behind the
skills."""
