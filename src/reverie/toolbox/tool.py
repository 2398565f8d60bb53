"""What a tool is, what it is handed, and the ordered registry of all of them.

A `Tool` is a value: a name, a schema and a coroutine. It gets its input as a checked
dict and a `ToolContext` with everything it may touch; it answers with an `ToolOutput`, or
raises a ReverieError whose sentence the model is shown. Tools keep no state of their
own: what was read and what runs in the background is in the context, so that a fork
works on a copy. Nothing here asks for permission or runs anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from reverie.errors import InvalidInput, ReverieError
from reverie.light import dataclass
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.store.files import Folder
from reverie.transcript.records import UserMessage
from reverie.transcript.view import View
from reverie.wire.reply import ToolCall, tool_result
from reverie.world import Clock, ForkSpec, Say, say_nothing

Input: TypeAlias = "dict[str, Any]"
Schema: TypeAlias = "Mapping[str, Any]"
DEFAULT_LIMIT = 0
NO_ENVIRONMENT: Mapping[str, str] = MappingProxyType({})


class ToolFailed(ReverieError, code="tool_failed"):
    """A tool could not do what it was asked; the sentence is for the model."""


class Denied(ReverieError, code="denied"):
    """A call that is not permitted; the sentence says why, `words` are the user's own."""

    def __init__(self, what: str, *, where: str = "", do: str = "", words: str = "") -> None:
        super().__init__(what, where=where, do=do)
        self.words = words


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A tool's answer: text, or content blocks where it holds pictures."""

    content: str | list[dict[str, Any]]
    is_error: bool = False
    words: str = ""  # what the user said when asked for permission


@dataclass(frozen=True, slots=True)
class ProposedEdit:
    """What a call would make of a file; `before` is None where there is none yet."""

    before: bytes | None
    after: bytes


class ReadLog:
    """Which files were read, the newest last, and the hash each had then.

    Edit and Write compare with it. `copy` gives a fork its own.
    """

    __slots__ = ("_seen",)

    def __init__(self, seen: Mapping[str, str] | None = None) -> None:
        self._seen = dict(seen or {})

    def note(self, path: Path | str, digest: str) -> None:
        """The file was read, or written by us, and has this SHA-256."""
        key = str(path)
        self._seen.pop(key, None)
        self._seen[key] = digest

    def digest(self, path: Path | str) -> str | None:
        """The SHA-256 the file had when it was last read; None = never."""
        return self._seen.get(str(path))

    def recent(self, count: int | None = None) -> list[str]:
        """Paths, the one read last first."""
        return list(reversed(self._seen))[:count]

    def clear(self) -> None:
        self._seen.clear()

    def copy(self) -> ReadLog:
        return ReadLog(self._seen)


class Files(Protocol):
    """How tools reach files: anywhere, or confined. Paths it gives are real paths."""

    def find(self, path: str) -> Path:
        """The real path that `path` names now, or Denied."""
        ...

    def open(self, path: Path) -> int:
        """A descriptor to read a file or folder; never follows a link, never blocks."""
        ...

    def target(self, path: str) -> Path:
        """The real path a write to `path` would land on, or Denied."""
        ...

    def write(self, path: Path, data: bytes, expect: str | None) -> None:
        """Put a file in place whole. `expect` is its present SHA-256; None = there is none."""
        ...

    def granted(self) -> Files:
        """These files, for paths that are real already: none is resolved again."""
        ...

    def hidden(self, path: Path) -> bool:
        """Whether searches leave this path out."""
        ...

    def hidden_below(self, folder: Path) -> tuple[str, ...]:
        """Glob patterns, relative to `folder`, of what searches leave out."""
        ...


@dataclass(frozen=True, slots=True)
class StoredResults:
    """The session's own files: stored results, and the decisions that name them."""

    folder: Folder
    session: str
    view: Callable[[], View]


@dataclass(frozen=True, slots=True)
class ReferencedText:
    """Something a reference names: its text, and its pictures and documents as blocks."""

    title: str
    text: str
    warning: str = ""
    media: tuple[Mapping[str, Any], ...] = ()


class ReferenceSource(Protocol):
    """A place that ReadBack looks in beside the stored results."""

    async def find(self, reference: str) -> ReferencedText | None: ...


class Shells(Protocol):
    """Commands that run in the background, until the toolbox is left."""

    async def start(self, argv: Sequence[str], context: ToolContext) -> str: ...
    def read(self, id: str) -> str: ...  # noqa: A002 - the name the model uses
    async def kill(self, id: str) -> str: ...  # noqa: A002


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Everything a tool may use."""

    root: Path  # the project
    cwd: Path  # where relative paths start and commands run
    files: Files
    clock: Clock
    reads: ReadLog = field(default_factory=ReadLog)
    settings: Settings = DEFAULTS
    say: Say = say_nothing
    environ: Mapping[str, str] = field(default_factory=lambda: NO_ENVIRONMENT)
    stored: StoredResults | None = None  # None in a private session
    sources: tuple[ReferenceSource, ...] = ()
    shells: Shells | None = None
    call: str = ""  # the id of the call being run


Action: TypeAlias = "Callable[[Input, ToolContext], Awaitable[ToolOutput]]"
Check: TypeAlias = "Callable[[Mapping[str, Any]], list[str]]"
Preview: TypeAlias = "Callable[[Input, ToolContext], Awaitable[ProposedEdit]]"


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `definition` is what the model is told of it."""

    name: str
    description: str
    schema: Schema
    action: Action
    read_only: bool = False
    # characters a result may have before it is stored; 0 = the setting, None = bounds itself
    limit: int | None = DEFAULT_LIMIT
    path: str = ""  # the input that names a file or folder, for permissions
    command: str = ""  # the input that holds a command line, for permissions
    times_itself: bool = False  # ends by itself at the time limit, with what it has
    check: Check | None = None  # what is wrong with an input, where the schema is of foreign make
    waits: bool = False  # takes as long as what it started, which has limits of its own
    preview: Preview | None = None  # what it would make of its file; raises where it would fail

    async def run(self, input: Input, context: ToolContext) -> ToolOutput:  # noqa: A002
        return await self.action(input, context)

    @property
    def definition(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": dict(self.schema),
        }


class Registry:
    """Tools in the order they were added, which is the order they are sent in."""

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        if tool.name in self._tools:
            raise InvalidInput("a tool of this name is already there", where=tool.name)
        self._tools[tool.name] = tool

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def batches(self, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
        """Neighbouring calls that only read run together, a writing one alone, in their order."""
        batch: list[ToolCall] = []
        for call in calls:
            tool = self.get(call.name)
            if tool is None or tool.read_only:
                batch.append(call)
                continue
            yield from (b for b in (batch, [call]) if b)
            batch = []
        if batch:
            yield batch

    def definitions(self) -> list[dict[str, Any]]:
        """What a request carries; the same bytes for the same tools."""
        return [tool.definition for tool in self]

    def limits(self) -> dict[str, int | None]:
        """For `open_session(tool_limits=…)`: the tools that differ from the setting."""
        return {tool.name: tool.limit for tool in self if tool.limit != DEFAULT_LIMIT}


# --- Who runs the tool calls of a background agent; where nobody was named, every call is denied.


DENIED = "This tool is not available to you here. Go on without it."


class ToolRunner(Protocol):
    """Runs the tool calls of one background agent, inside its guard."""

    @property
    def registry(self) -> Registry:
        """Which calls may run side by side."""
        ...

    @property
    def written(self) -> tuple[str, ...]:
        """Files it wrote."""
        ...

    async def run(self, call: ToolCall) -> UserMessage: ...

    def close(self) -> None: ...


MakeGuard: TypeAlias = "Callable[[ForkSpec], ToolRunner]"
"""Makes the guard of a fork from what its spec allows."""


class NoTools:
    """Every call is denied, at call time: the tool definitions stay as they are."""

    registry = Registry()
    written = ()

    def __init__(self, spec: ForkSpec | None = None) -> None:
        self.spec = spec

    async def run(self, call: ToolCall) -> UserMessage:
        return tool_result(call.id, DENIED, is_error=True)

    def close(self) -> None:
        """Nothing is open."""
