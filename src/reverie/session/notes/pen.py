"""The pen of a notes update: Edit on one text, and nothing else.

It works on a copy that nobody else sees; the file itself is touched by whoever lands the
copy. The tool is the one every agent has. An edit that changes a heading or a description
line, or brings in a secret, is undone at once and the writer told so. Every other call is
denied, whatever the tool definitions say, which stay as they are.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from reverie.errors import InvalidMessage, ScanFailed, SecretFound
from reverie.layers.session_memory import NAME, frame
from reverie.memory import secrets
from reverie.store.digests import digest
from reverie.store.names import shown
from reverie.tools import EDIT, Denied, Output, ReadLog, Registry, ToolContext
from reverie.tools.box import bounded, read_call
from reverie.tools.places import absolute, resolve
from reverie.tools.runner import DENIED
from reverie.transcript.records import UserMessage
from reverie.wire.given import tool_result
from reverie.world import Notice, ToolCall, World

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
        raise Denied("only the notes may be edited here", where=shown(path))

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


class Pen:
    """`fork.ToolRunner` of one update."""

    def __init__(self, path: Path, data: bytes, world: World) -> None:
        self.edits: list[ToolCall] = []  # those that were made, in order
        self.failed = self.denied = 0  # of this round: edits, and calls of other tools
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
            output = Output(fault, is_error=True)
        if call.name != EDIT.name:
            self.denied += 1
        elif output.is_error:
            self.failed += 1
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
            secrets.checked(b"\n".join(fresh))
        except (SecretFound, ScanFailed) as error:
            self._world.say(Notice(NAME, f"an edit was refused: {error.what}", "warning"))
            return f"{error.what}, so the edit was undone. {error.do}."
        return ""

    async def _output(self, call: ToolCall) -> Output:
        if call.name != EDIT.name:
            return Output(DENIED, is_error=True)
        try:
            tool, value = read_call(call, _ONLY_EDIT)
        except InvalidMessage as error:
            return Output(str(error), is_error=True)
        return await bounded(tool, value, self._context)

    async def again(self, data: bytes) -> Pen | None:
        """The same edits on another text; None where one of them does not fit there."""
        pen = Pen(self._draft.path, data, self._world)
        for call in self.edits:
            await pen.run(call)
        return None if pen.failed else pen

    def close(self) -> None:
        """Nothing is open."""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
