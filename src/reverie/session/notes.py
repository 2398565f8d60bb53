"""Session notes as a session takes them: a fork edits a copy, which lands by comparison.

One update at a time, behind a response, where `session_memory.due` says so. The fork shares
its parent's cache and may only Edit the notes; it works on a copy in memory, and the file
changes in one step, only if it is still what the fork was shown. What a person wrote there
meanwhile wins: the edits are made once more on that, and dropped where they do not fit.

A finished update says which message it covers, where an edit landed, or where an answer in words
tried none and there are notes already. Edits that do not fit are left out and the others stand, but
a title alone beside them covers nothing. A failed update records its failure alone. Where the
request offers the model no Edit tool, which no fork may add since the tool definitions are part of
the cache key, the fork is asked to answer in words, and its answer becomes the edits. A private
session, and one without a model, has no notes.

The pen is Edit on that copy, the tool every agent has, and nothing else: an edit that changes a
heading or a description line is undone at once and the writer told so, and every other call is
denied, whatever the tool definitions say, which stay as they are.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from anyio import to_thread

from reverie.errors import (
    InvalidMessage,
    NotAvailable,
    NotFound,
    ReverieError,
    ScanFailed,
    SecretFound,
    StoreError,
)
from reverie.layers.session_memory.compaction import NAME, due, last_covered, numbers
from reverie.layers.session_memory.notes import (
    IN_WORDS,
    KEY,
    frame,
    instruction,
    is_blank,
    own,
    rewritten,
    section_bodies,
    template,
)
from reverie.light import dataclass
from reverie.secrets.scanner import check_clean
from reverie.session.library import NoDisk
from reverie.session.stops import ENDS
from reverie.session.worker import Worker
from reverie.settings.catalog import Settings
from reverie.store.files import Changed, Folder
from reverie.store.fs import digest
from reverie.store.paths import format_path
from reverie.text.format import plural
from reverie.toolbox.file_access import absolute, resolve
from reverie.toolbox.files import EDIT
from reverie.toolbox.tool import DENIED, Denied, ReadLog, Registry, ToolContext, ToolOutput
from reverie.toolbox.toolbox import read_call, run_within_time
from reverie.transcript.blocks import TEXT_BYTES, dump, elements
from reverie.transcript.records import HeadSet, NotesTaken, UserMessage
from reverie.transcript.tasks import NotesTask
from reverie.transcript.view import View
from reverie.wire.reply import Reply, ToolCall, tool_result
from reverie.world import Notice, Say, World

if TYPE_CHECKING:
    from reverie.session.host import JobContext

JOB_NAME = NAME
CONFIG = "session-memory/config"  # below home: template.md and prompt.md of the user's own
ROUNDS = 3  # the first makes the edits; the others make again what failed
CONFIG_BYTES = 100_000
MAX = 4  # times their budget that the notes may have and still be sent in a prompt


class NotesNotTaken(ReverieError, code="notes_not_taken"):
    """An update that came to nothing; the notes are as they were."""


async def consider(host: JobContext) -> None:
    """Bring the notes up to date in the background, if that is due and nobody is at it."""
    if JOB_NAME in host.jobs.running or isinstance(host.world.disk, NoDisk):
        return
    if due(host.view, host.world):
        host.jobs.start(JOB_NAME, partial(update, host))


async def update(host: JobContext) -> None:
    """One update, whole; raises where it came to nothing."""
    place = NotesPlace.of(host)
    data = await to_thread.run_sync(place.read_or_make)
    settings = numbers(host.world)
    most = settings.notes_total_tokens * TEXT_BYTES * MAX
    if len(data) > most:
        raise NotesNotTaken(
            f"the notes have {len(data):,} bytes, too many to be brought up to date",
            where=str(place.path),
            do=f"Shorten the file below {most:,} bytes, or remove it to start afresh",
        )
    base, pen = await _write_notes(host, place, data, settings)
    landed = await _commit_notes(place, data, pen) if pen.edits else data
    if pen.refused and section_bodies(_text(landed)) == section_bodies(_text(data)):
        told = f"{plural(pen.refused, 'edit')} could not be made, and nothing but a title was"
        raise NotesNotTaken(f"an update of the session notes came to nothing: {told}")
    last = next(i.id for i in reversed(base.items[:]) if i.kind not in ("synthetic", "head"))
    host.hand(NotesTaken(last, base.estimated, digest(landed)))
    size = len(landed) // TEXT_BYTES
    left = f"; {plural(pen.failed, 'edit')} could not be made" if pen.failed else ""
    told = f"the session notes are up to date, about {size:,} tokens{left}"
    host.world.say(Notice(JOB_NAME, told, "warning" if left else "info"))


# --- the file


@dataclass(frozen=True, slots=True)
class NotesPlace:
    """Where the notes of a session lie, and what they begin as."""

    folder: Folder
    key: str
    home: Path | None
    say: Say

    @classmethod
    def of(cls, host: JobContext) -> NotesPlace:
        key = f"{host.id}/{KEY}"
        return cls(host.library.folder, key, host.home, host.world.say)

    @property
    def path(self) -> Path:
        return self.folder.path(self.key)

    def read(self) -> bytes:
        return self.folder.read(self.key)

    def read_or_make(self) -> bytes:
        """The notes; made from the template where there are none, or nothing is in them."""
        expect: str | None = None
        with suppress(NotFound):
            data = self.read()
            if data.strip():
                return data
            expect = digest(data)
        made = (self.custom("template.md") or template()).encode()
        self.folder.write(self.key, made, expect=expect, exclusive=expect is None)
        return made

    def custom(self, name: str) -> str:
        """A text of the user's own in place of ours; empty where there is none that can be used."""
        if self.home is None:
            return ""
        try:
            with Folder(self.home, create=False) as home:
                data = home.read(f"{CONFIG}/{name}", CONFIG_BYTES + 1)
            if len(data) > CONFIG_BYTES:
                raise StoreError(f"it has more than {CONFIG_BYTES:,} bytes")
            text = data.decode()
        except NotFound:
            return ""
        except (StoreError, UnicodeDecodeError) as error:
            told = f"{CONFIG}/{name} is not used, ours is: {error}"
            self.say(Notice(JOB_NAME, told, "warning"))
            return ""
        return text if text.strip() else ""

    def land(self, data: bytes, seen: bytes) -> None:
        """Put the notes in place, if they are still what was seen."""
        self.folder.write(self.key, data, expect=digest(seen))


async def _commit_notes(place: NotesPlace, seen: bytes, pen: NotesEditor) -> bytes:
    """Land a copy. What somebody else wrote meanwhile stays: the edits are tried once on that."""
    with suppress(Changed):
        await to_thread.run_sync(place.land, pen.data, seen)
        return pen.data
    with suppress(Changed, NotFound):
        fresh = await to_thread.run_sync(place.read)
        other = await pen.again(fresh)
        if other is not None:
            await to_thread.run_sync(place.land, other.data, fresh)
            return other.data
    raise NotesNotTaken(
        "the notes were changed meanwhile, and that stands",
        where=str(place.path),
        do="The next update starts from there",
    )


# --- the fork


async def _write_notes(
    host: JobContext, place: NotesPlace, data: bytes, settings: Settings
) -> tuple[View, NotesEditor]:
    """Run the fork: the conversation it saw, and the pen that holds what it wrote."""
    pen = NotesEditor(place.path, data, host.world)
    async with host.forked(JOB_NAME) as child:
        base = host.view  # nothing ran since the fork was made from it
        await _write(child, host, place, pen, _task(base, place.path, data, settings), settings)
    return base, pen


def _task(base: View, path: Path, data: bytes, settings: Settings) -> NotesTask:
    notes = data.decode("utf-8", "replace")
    at = -1 if is_blank(notes) else last_covered(base)
    since = base.items[at].id if at >= 0 and base.items[at].kind != "head" else ""
    return NotesTask(
        path=str(path),
        notes=notes,
        since=since,
        section_tokens=settings.notes_section_tokens,
        total_tokens=settings.notes_total_tokens,
    )


async def _write(
    child: Worker,
    host: JobContext,
    place: NotesPlace,
    pen: NotesEditor,
    task: NotesTask,
    settings: Settings,
) -> None:
    """The rounds of one update: over once every edit of an answer was made. What still fails
    then is left out, and the rest stands. Nothing to change is an answer too, where there are
    notes already."""
    model = host.world.model
    if model is None:
        raise NotAvailable("this session has no model to take notes", where=host.id)
    prompt = await to_thread.run_sync(place.custom, "prompt.md")
    prompt = prompt or own("session_memory")
    in_words = not offers_edit(child.view.head)
    text = instruction(prompt, task.notes, task.path, settings)
    await child.instruct(text + IN_WORDS if in_words else text)
    for _ in range(ROUNDS):
        reply = await child.ask(model, task)
        calls = reply.tool_calls or (_in_words(reply, task) if in_words else ())
        if not calls:
            if not (in_words or pen.refused or is_blank(task.notes)) and _is_said(reply):
                return
            break
        pen.begin()
        results = [replace(await pen.run(call), origin="tool") for call in calls]
        if not reply.tool_calls or not (pen.failed or pen.denied):
            break
        await child.add_messages(*results)
    if not pen.edits or (in_words and pen.failed):  # words are taken whole
        why = "some of its edits could not be made" if pen.refused else "it wrote nothing"
        raise NotesNotTaken(f"an update of the session notes came to nothing: {why}")


def _is_said(reply: Reply) -> bool:
    """Whether an answer is one in words, and whole."""
    return reply.stop_reason in ENDS and bool(reply.text.strip())


def _in_words(reply: Reply, task: NotesTask) -> Sequence[ToolCall]:
    """The edits that an answer in words stands for."""
    return [
        ToolCall(
            f"words-{n}",
            EDIT.name,
            dump({"file_path": task.path, "old_string": old, "new_string": new}),
        )
        for n, (old, new) in enumerate(rewritten(task.notes, reply.text))
    ]


def offers_edit(head: HeadSet | None) -> bool:
    """Whether the request names an Edit tool that takes what ours takes."""
    for _, tool in elements(head.tools if head else "[]"):
        if isinstance(tool, dict) and tool.get("name") == EDIT.name:
            schema = tool.get("input_schema")
            given = schema.get("properties") if isinstance(schema, dict) else None
            needed = cast("list[str]", EDIT.schema["required"])
            return isinstance(given, dict) and all(name in given for name in needed)
    return False


# --- the pen


BROKEN = (
    "That edit would change a heading or a description line, so it was undone. Leave those lines "
    "as they are, and write below them."
)
_ONLY_EDIT = Registry((EDIT,))


class NotesDraft:
    """`tool.Files` of one file: reading gives the copy, writing replaces it."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        self.data = data

    def target(self, path: str) -> Path:
        named = Path(os.path.normpath(absolute(path, self.path.parent)))
        if self.path in (named, resolve(named.parent) / named.name):
            return self.path
        raise Denied("only the notes may be edited here", where=format_path(path))

    find = target

    def open(self, path: Path) -> int:
        del path
        with tempfile.TemporaryFile() as file:
            file.write(self.data)
            file.seek(0)
            return os.dup(file.fileno())

    def write(self, path: Path, data: bytes, expect: str | None) -> None:
        del path, expect  # nobody else has the copy
        self.data = data

    def granted(self) -> NotesDraft:
        return self

    def hidden(self, path: Path) -> bool:
        return path != self.path

    def hidden_below(self, folder: Path) -> tuple[str, ...]:
        del folder
        return ("*",)


class NotesEditor:
    """`runner.ToolRunner` of one update."""

    def __init__(self, path: Path, data: bytes, world: World) -> None:
        self.registry = _ONLY_EDIT
        self.edits: list[ToolCall] = []  # those that were made, in order
        self.failed = self.denied = 0  # of this round: edits, and calls of other tools
        self.refused = 0  # edits of any round
        self._world = world
        self._draft = NotesDraft(path, data)
        self._frame = frame(_text(data))
        reads = ReadLog({str(path): digest(data)})  # the prompt holds its text
        self._context = ToolContext(
            path.parent, path.parent, self._draft, world.clock, reads, world.settings, world.say
        )

    def begin(self) -> None:
        """A new round: what of it fails is counted from here."""
        self.failed = self.denied = 0

    @property
    def data(self) -> bytes:
        """The notes as they stand in the copy."""
        return self._draft.data

    @property
    def written(self) -> tuple[str, ...]:
        return (str(self._draft.path),) if self.edits else ()

    async def run(self, call: ToolCall) -> UserMessage:
        """One call, to its result or its denial."""
        before = self.data
        output = await self._output(call)
        fault = "" if output.is_error else self._fault(before)
        if fault:
            self._draft.data = before
            self._context.reads.note(self._draft.path, digest(before))
            output = ToolOutput(fault, is_error=True)
        if call.name != EDIT.name:
            self.denied += 1
        elif output.is_error:
            self.failed += 1
            self.refused += 1
        else:
            self.edits.append(call)
        return tool_result(call.id, output.content, is_error=output.is_error)

    def _fault(self, before: bytes) -> str:
        """Why the copy may not stay as it is now; empty where it may."""
        if frame(_text(self.data)) != self._frame:
            return BROKEN
        known = set(before.splitlines())
        fresh = [line for line in self.data.splitlines() if line not in known]
        try:
            check_clean(b"\n".join(fresh))
        except (SecretFound, ScanFailed) as error:
            notice = Notice(NAME, f"an edit was refused: {error.what}", "warning")
            self._world.say(notice)
            return f"{error.what}, so the edit was undone. {error.do}."
        return ""

    async def _output(self, call: ToolCall) -> ToolOutput:
        if call.name != EDIT.name:
            return ToolOutput(DENIED, is_error=True)
        try:
            tool, value = read_call(call, _ONLY_EDIT)
        except InvalidMessage as error:
            return ToolOutput(str(error), is_error=True)
        return await run_within_time(tool, value, self._context)

    async def again(self, data: bytes) -> NotesEditor | None:
        """The same edits on another text; None where one of them does not fit there."""
        pen = NotesEditor(self._draft.path, data, self._world)
        for call in self.edits:
            await pen.run(call)
        return None if pen.failed else pen

    def close(self) -> None:
        """Nothing is open."""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
