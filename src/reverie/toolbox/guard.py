"""The guard: runs a background agent's calls, or denies them, at call time.

Typed tools only: reading, searching and listing in the project, the session's own files
and the memory folder; Edit and Write in the folders or files that were given; a shell of
eight reading programs inside the kernel's sandbox, and none where there is no sandbox.
All else is denied whatever the tool definitions say, which stay as they are, since they
are part of the cache key. Every denial is logged and said. It never raises for a call,
never asks a person, and shares no state with the main agent but what it was handed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path

from anyio import to_thread

from reverie.errors import InvalidMessage, ReverieError
from reverie.light import dataclass
from reverie.store.fs import digest
from reverie.store.paths import format_path
from reverie.text.safety import inside, neutralize_markup
from reverie.toolbox.file_access import ConfinedFiles, WritableRoot
from reverie.toolbox.process import KILLED, OutputBuffer
from reverie.toolbox.sandbox import Sandbox, box_of, script_of
from reverie.toolbox.tool import DENIED, Denied, Input, Registry, ToolContext, ToolOutput
from reverie.toolbox.toolbox import read_call, run_within_time
from reverie.topics.entry import decode_text
from reverie.transcript.records import UserMessage
from reverie.wire.reply import ToolCall, tool_result
from reverie.world import ForkSpec, Notice

READING = frozenset({"Read", "Grep", "Glob", "List", "ReadBack"})
WRITING = frozenset({"Edit", "Write"})
SHELL = "Bash"
SECONDS = 30.0
OUTPUT = 200_000
_running: ContextVar[str] = ContextVar("reverie.guard", default="")


@dataclass(frozen=True, slots=True)
class Denial:
    """A call that was not carried out, or not wholly, and why."""

    tool: str
    reason: str
    subject: str = ""


def shown_files(prompt: str, content: Callable[[str], bytes | None]) -> dict[str, bytes]:
    """Return the files that stand in a prompt whole, each in its frame; `content` reads one."""
    found: dict[str, bytes] = {}
    for key, shown in inside(prompt):
        data = content(key) if key else None
        if data is not None and shown.strip("\n") == _as_shown(data):
            found[key] = data
    return found


def _as_shown(data: bytes) -> str:
    return neutralize_markup(decode_text(data)).replace("\r\n", "\n").strip("\n")


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """What one background agent may do."""

    tools: frozenset[str]
    readable: tuple[Path, ...]
    writable: tuple[str, ...] = ()
    refused: tuple[Path, ...] = ()


class Guard:
    """`runner.ToolRunner` for one background agent."""

    def __init__(
        self,
        registry: Registry,
        context: ToolContext,
        limits: GuardLimits,
        sandbox: Sandbox,
        name: str = "agent",
    ) -> None:
        self.registry = registry
        self.denials: list[Denial] = []
        self.name = name
        self._sandbox = sandbox
        self._tools = limits.tools & (READING | WRITING | {SHELL})
        slots = [WritableRoot.of(path) for path in limits.writable]
        self.files = ConfinedFiles(
            context.cwd, limits.readable, slots, limits.refused, self._refused
        )
        self._context = replace(context, files=self.files, reads=context.reads.copy(), shells=None)

    @property
    def reads(self) -> dict[str, str]:
        return {
            path: self._context.reads.digest(path) or "" for path in self._context.reads.recent()
        }

    def note_read(self, path: Path | str, sha256: str) -> None:
        """A file whose text the agent's prompt holds counts as read."""
        self._context.reads.note(path, sha256)

    def note_shown(self, folder: Path, prompt: str, content: Callable[[str], bytes | None]) -> None:
        """Count the files of a folder as read that a prompt holds whole."""
        self.note_files(folder, shown_files(prompt, content))

    def note_files(self, folder: Path, files: Mapping[str, bytes]) -> None:
        """Count files of a folder as read."""
        for key, data in files.items():
            self.note_read(Path(os.path.realpath(folder)) / key, digest(data))

    @property
    def written(self) -> tuple[str, ...]:
        """Files that were written, each once, in order."""
        return tuple(dict.fromkeys(self.files.written))

    async def run(self, call: ToolCall) -> UserMessage:
        """One call, to its result or its denial."""
        _running.set(call.name)
        try:
            output = await self._output(call)
        except Denied as error:
            output = ToolOutput(f"{error}. Go on without it.", is_error=True)
        except ReverieError as error:
            output = ToolOutput(str(error), is_error=True)
        return tool_result(call.id, output.content, is_error=output.is_error)

    async def _output(self, call: ToolCall) -> ToolOutput:
        if call.name not in self._tools or self.registry.get(call.name) is None:
            self._log(call.name, "the tool is not available to a background agent")
            return ToolOutput(DENIED, is_error=True)
        if call.name in WRITING and not self.files.slots:
            self._log(call.name, "there is no folder that may be written")
            return ToolOutput(DENIED, is_error=True)
        try:
            tool, value = read_call(call, self.registry)
        except InvalidMessage as error:
            return ToolOutput(str(error), is_error=True)
        if call.name == SHELL:
            return await self._shell(value)
        return await run_within_time(tool, value, replace(self._context, call=call.id))

    async def _shell(self, value: Input) -> ToolOutput:
        line = str(value["command"])
        try:
            if value.get("run_in_background"):
                raise Denied("nothing runs in the background here")
            script = script_of(line)
        except Denied as error:
            self._log(SHELL, error.what, line)
            raise
        reason = await self._sandbox.why_not()
        if reason:
            self._log(SHELL, f"there is no sandbox: {reason}", line)
            raise Denied(f"there is no shell here: {reason}", do="Use Read, Grep, Glob and List")
        box = await to_thread.run_sync(box_of, self.files)
        sink = OutputBuffer(OUTPUT)
        most = min(SECONDS, self._context.settings.tool_seconds)
        ended = await self._sandbox.run(script, box, sink, min(most, value.get("timeout") or most))
        cut = f"[cut at {OUTPUT:,} bytes]"
        notes = {"time": f"[ended after {ended.waited}, with {KILLED}]", "output": cut}
        note = notes.get(ended.cause, f"[exit code {ended.code}]" if ended.code else "")
        text = "\n".join(part for part in (sink.text.rstrip("\n"), note) if part)
        return ToolOutput(text or "(no output)", is_error=bool(note))

    def _refused(self, path: str, why: str) -> None:
        self._log(_running.get(), why, path)

    def _log(self, tool: str, reason: str, subject: str = "") -> None:
        denial = Denial(tool[:80], reason, format_path(subject) if subject else "")
        self.denials.append(denial)
        where = f" ({denial.subject})" if denial.subject else ""
        told = f"{self.name}: {format_path(denial.tool)} was denied{where}: {reason}"
        self._context.say(Notice("guard", told, "warning"))

    def close(self) -> None:
        self.files.close()


@dataclass(frozen=True, slots=True)
class Guards:
    """Makes a guard for each fork from what its spec allows.

    `context` is asked for each time, so that a fork starts with what was read by then.
    """

    registry: Registry
    context: Callable[[], ToolContext]
    readable: tuple[Path, ...]  # the project, its transcripts, the memory folder
    refused: tuple[Path, ...]  # reverie's home, the person's own settings
    sandbox: Sandbox

    def __call__(self, spec: ForkSpec, also_readable: Iterable[Path] = ()) -> Guard:
        limits = GuardLimits(
            frozenset(spec.tools), (*self.readable, *also_readable), spec.writable, self.refused
        )
        return Guard(self.registry, self.context(), limits, self.sandbox, spec.source)
