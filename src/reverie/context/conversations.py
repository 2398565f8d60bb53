"""Many conversations of one application, their folder, framework messages.

Many conversations of one application: fitted, read back from, remembered and learned from.

What a framework's adapter needs of us, whatever the framework is. A conversation has a name; the
Fitter behind it is made when it is first seen and let go when many newer ones were: the caller's
full list is the store, so nothing is lost with it. Failures of ours are said and never stop a turn:
the list goes as it came, memory stays as it was. Only a list that cannot fit raises.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypedDict, TypeVar, cast

from reverie.context.fitter import Fitter, Policy, Store
from reverie.context.renderer import chains
from reverie.errors import (
    InvalidInput,
    InvalidMessage,
    NotFound,
    PromptTooLong,
    ReverieError,
    StoreError,
)
from reverie.layers.custom import OwnLayer
from reverie.light import dataclass
from reverie.settings.catalog import Settings
from reverie.store.files import Folder
from reverie.store.journal import BadLine, Journal
from reverie.toolbox.toolset import READ_BACK, Toolset, tools
from reverie.transcript.blocks import dump, parse
from reverie.transcript.codec import decode, encode
from reverie.transcript.records import Entry, Record
from reverie.wire.forms import tool_name
from reverie.wire.lists import plain
from reverie.world import Model, Notice, notice_listener

if TYPE_CHECKING:
    from reverie.context.replay import MemoryInjector
    from reverie.memory.memory import Memory
    from reverie.memory.values import Saved

M = TypeVar("M")
AT_ONCE = 256
"""Conversations whose Fitters are held; older ones are made anew from their lists."""


class FitterOptions(TypedDict, total=False):
    """What every Fitter of an application is made with."""

    policy: Policy
    window: int | None
    store: Store
    layers: Sequence[OwnLayer] | None
    summarizer: Model | None
    settings: Settings | Mapping[str, object] | None


class Conversations(Generic[M]):
    """The conversations of one application, by name."""

    def __init__(
        self,
        dialect: MessageAdapter[M] | None = None,
        *,
        memory: Memory | None = None,
        learns: bool = True,
        names: Mapping[str, str] | None = None,
        on_notice: Callable[[Notice], object] | None = None,
        options: FitterOptions | None = None,
    ) -> None:
        self.dialect = dialect
        self._memory = memory
        self._learns = learns and memory is not None
        self.say = notice_listener(on_notice)
        self._options: FitterOptions = options or {}
        self._fitters: OrderedDict[tuple[str, str], Fitter] = OrderedDict()
        self._joined: OrderedDict[str, MemoryInjector] = OrderedDict()
        self._lock = threading.Lock()
        self.tools: Toolset = tools(*([memory] if memory else []), names=names)
        self._via = (names or {}).get(READ_BACK, READ_BACK)

    def fit(
        self, name: str, messages: Sequence[M], *, model: str, own_tools: Sequence[object] = ()
    ) -> list[M]:
        """The list to send in place of this one."""
        fitter = self._fitter(name, model, own_tools)
        try:
            if self.dialect is None:
                return list(fitter.fit(messages))
            return fit_in(self.dialect, fitter, messages)
        except PromptTooLong:
            raise
        except ReverieError as error:
            self.say(Notice("fit", f"the list goes as it came: {error}", "warning"))
            return list(messages)

    def _fitter(self, name: str, model: str, own_tools: Sequence[object] = ()) -> Fitter:
        with self._lock:
            known = self._fitters.get((name, model))
            if known is None:
                known = Fitter(
                    model=model,
                    tools=[*self._others(own_tools), *self._tool_definitions()],
                    via=self._via,
                    marks=False,  # the framework sets them
                    memory=self._memory,
                    on_notice=self.say,
                    **self._options,
                )
                self._fitters[name, model] = known
            self._fitters.move_to_end((name, model))
            while len(self._fitters) > AT_ONCE:
                self._fitters.popitem(last=False)
            return known

    def _others(self, own_tools: Sequence[object]) -> list[object]:
        return [tool for tool in own_tools if tool_name(tool) not in self.tools.names]

    def _tool_definitions(self) -> list[Any]:
        return self.tools.responses() if self.dialect is None else self.tools.anthropic()

    def answer(self, name: str, messages: Sequence[M], call: Mapping[str, Any]) -> Any:
        """The `tool_result` of a call (a `tool_use` block) of one of our tools, else None. Where
        the conversation is not known any more, the list tells it again."""
        if call.get("name") != self._via:
            return self.tools.handle(call)
        with self._lock:
            known = [f for (of, _), f in self._fitters.items() if of == name]
        if not known:
            with suppress(PromptTooLong):  # too long to send, and yet it can be read from
                self.fit(name, messages, model="")
            return self.answer(name, messages, call)
        return known[-1].handle(call)

    def recall(self, name: str, words: str) -> str:
        """What memory has to say to words of the user's, each thing once in a conversation; for
        frameworks whose lists nobody sees."""
        if self._memory is None:
            raise InvalidInput("there is no memory to recall from", do="Give memory=")
        from reverie.context.replay import MemoryInjector

        with self._lock:
            known = self._joined.setdefault(name, MemoryInjector(self._memory, self.say))
            self._joined.move_to_end(name)
            while len(self._joined) > AT_ONCE:
                self._joined.popitem(last=False)
        known.look(words, words)
        return known.texts[words]

    def tell_anew(self, name: str) -> None:
        """Forget what `recall` told a conversation, which does not hold it any more."""
        with self._lock:
            self._joined.pop(name, None)

    def learn(self, messages: Sequence[M]) -> list[Saved]:
        """At a turn's end: keep what is worth keeping of a conversation, where there is a memory
        and nobody switched it off."""
        if not self._learns or self._memory is None:
            return []
        values = cast("Sequence[object]", messages)
        if self.dialect is not None:
            values = [value for one in messages for value in self.dialect.read(one)]
        try:
            return self._memory.learn(values)
        except ReverieError as error:
            self.say(Notice("extraction", f"nothing was learned: {error}", "warning"))
            return []

    @property
    def aio(self) -> Any:
        """The same methods for tasks, each through a worker thread."""
        from reverie.concurrency import AsyncFacade

        return AsyncFacade(self)


# --- Messages of a framework's own classes, fitted without being rewritten.
#
# A `MessageAdapter` says what a message of theirs is in the form of the Messages API. What nothing
# was decided of comes back as the very object that went in; one whose results were cut, or whose
# thinking had to go, is asked of the dialect, which changes that and nothing else. So ids,
# signatures, pictures and members that nobody here knows are never copied to another form and back.


Value: TypeAlias = dict[str, Any]
PLACE = "place"
"""The member of a value that says which message it is of; it is never sent."""
ASIDE = "aside"
"""The role of what is no part of the conversation: it stays where it stands."""


class MessageAdapter(Protocol[M]):
    """How a framework writes messages."""

    def read(self, message: M) -> list[Value]:
        """A message in the Messages form, one value or several; what is neither the user's nor
        the model's has the role `ASIDE`."""
        ...

    def changed(self, message: M, values: Sequence[Value]) -> list[M]:
        """A message of which this is left."""
        ...

    def made(self, value: Value) -> list[M]:
        """Words of ours for the model, in messages of theirs."""
        ...


@dataclass(frozen=True, slots=True)
class RemainingBlock:
    """A block that is left of a message: its place there, and what its result became."""

    at: int
    content: Any = None  # None: it is as it was


def kept_blocks(before: Sequence[Value], after: Sequence[Value]) -> list[RemainingBlock]:
    """What is left of a message's blocks, in their order."""
    found: list[RemainingBlock] = []
    left = list(after)
    for at, block in enumerate(before):
        if left and left[0] == block:
            found.append(RemainingBlock(at))
        elif left and block.get("type") == "tool_result" and _is_of(left[0], block):
            found.append(RemainingBlock(at, left[0].get("content")))
        else:
            continue
        left.pop(0)
    return found


def _is_of(one: Value, other: Value) -> bool:
    ident = "tool_use_id"
    return one.get("type") == other["type"] and one.get(ident) == other.get(ident)


def fit_in(dialect: MessageAdapter[M], fitter: Fitter, messages: Sequence[M]) -> list[M]:
    """The list to send in place of this one."""
    known = (dialect.read(message) for message in messages)
    read = [[{**value, PLACE: n} for value in values] for n, values in enumerate(known)]
    sent = fitter.fit([value for values in read for value in values])
    out: list[M] = []
    for place, group in groupby(sent, _place):
        values = list(group)
        if place < 0:
            out += [made for value in values for made in dialect.made(value)]
            continue
        is_whole = list(map(id, values)) == list(map(id, read[place]))
        message = messages[place]
        out += [message] if is_whole else dialect.changed(message, values)
    return out


def _place(value: Value) -> int:
    """Which message a value is of; below 0 where it is ours."""
    return value.get(PLACE, -1)


def said_in(value: Value) -> str:
    """The texts of a value, or of a result's content."""
    content: object = value.get("content")
    if isinstance(content, str):
        return content
    parts = cast("list[Value]", content) if isinstance(content, list) else []
    return "\n".join(str(part.get("text")) for part in parts if part.get("type") == "text")


def pictures_in(result: Value) -> list[Value]:
    """The sources of the pictures in a result, as the Messages API has them."""
    content: object = result.get("content")
    parts = cast("list[Value]", content) if isinstance(content, list) else []
    return [part["source"] for part in parts if part.get("type") == "image"]


# --- What a Fitter keeps in a folder: originals beyond the process, and files for a tool that
# reads.
#
# One journal a conversation: its messages as they came, the memories and summaries that joined
# them, and which list was handed out when. So a list that was written over the caller's own is
# known again in another process. A journal only grows; a line that cannot be read is passed over.
# Files are written whole, once, and named by their reference alone. Nothing is written before it
# has to be.


LISTS = "lists"
NEWEST = 200
"""Conversations that are looked through for a list that comes back."""


@dataclass(slots=True)
class StoredConversation:
    """One conversation as a journal tells it."""

    name: str
    messages: list[Any] = field(default_factory=list[Any])
    joined: dict[str, str] = field(default_factory=dict[str, str])  # memory, by part
    summaries: dict[str, tuple[Record, ...]] = field(default_factory=dict[str, tuple[Record, ...]])
    handed: dict[str, int] = field(default_factory=dict[str, int])  # list → how many messages

    def take(self, line: Mapping[str, Any]) -> None:
        if "message" in line:
            self.messages.append(line["message"])
        elif "joined" in line:
            self.joined[str(line["joined"])] = str(line.get("text"))
        elif "summary" in line:
            records = tuple(decode(str(one)).record for one in line.get("records", ()))
            self.summaries[str(line["summary"])] = records
        elif "handed" in line:
            self.handed[str(line["handed"])] = int(line.get("count", 0))


class FitterStore:
    """The folder of a Fitter."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._process = os.getpid()
        self._name = os.urandom(8).hex()
        self._written = 0  # messages that the journal has
        self._told: set[str] = set()  # what else it has
        self._files: set[str] = set()

    # What comes back

    def known(self, messages: Sequence[Any]) -> tuple[StoredConversation, int] | None:
        """The conversation whose last list these messages begin with, and how many of them
        that list had."""
        places = {chain: n + 1 for n, chain in enumerate(chains(messages))}
        for kept in self._conversations():
            found = [chain for chain in kept.handed if chain in places]
            if found:
                best = max(found, key=lambda chain: places[chain])
                kept.messages = kept.messages[: kept.handed[best]]
                return kept, places[best]
        return None

    def anew(self) -> None:
        """Another conversation, or one that came back: it gets a journal of its own."""
        self._process = os.getpid()
        self._told.clear()
        self._written = 0
        self._name = os.urandom(8).hex()

    def _conversations(self) -> Iterator[StoredConversation]:
        folder = self.root / LISTS
        with suppress(OSError):
            paths = sorted(folder.glob("*.jsonl"), key=lambda one: -one.stat().st_mtime)
            for path in paths[:NEWEST]:
                with suppress(ReverieError):
                    yield self._read(path.stem)

    def _read(self, name: str) -> StoredConversation:
        kept = StoredConversation(name)
        with Folder(self.root / LISTS, create=False) as files:
            for line in Journal.open(files, f"{name}.jsonl", write=False).read():
                if not isinstance(line, BadLine):
                    with suppress(InvalidMessage, ValueError, TypeError, KeyError):
                        kept.take(cast("Mapping[str, Any]", parse(line.text, "a line")))
        return kept

    # What is kept

    def keep(
        self,
        messages: Sequence[Any],
        sent: Sequence[Any],
        joined: Mapping[str, str],
        summaries: Mapping[str, Sequence[Record]],
    ) -> None:
        """Keep what is new of a conversation, and the list that goes out for it."""
        if self._process != os.getpid():  # a fork has a journal of its own
            self.anew()
        lines = [dump({"message": plain(one)}) for one in messages[self._written :]]
        lines += [
            dump({"joined": name, "text": text})
            for name, text in joined.items()
            if text and f"joined {name}" not in self._told
        ]
        for name, records in summaries.items():
            if f"summary {name}" not in self._told:
                made = [encode(Entry(f"s{n}", "", 0.0, one)) for n, one in enumerate(records)]
                lines.append(dump({"summary": name, "records": made}))
        lines.append(dump({"handed": chains(sent)[-1], "count": len(messages)}))
        with Folder(self.root / LISTS) as files:
            journal = Journal.open(files, f"{self._name}.jsonl")
            try:
                journal.append(lines)
                journal.sync()
            finally:
                journal.close()
        self._written = len(messages)
        self._told |= {f"joined {name}" for name in joined}
        self._told |= {f"summary {name}" for name in summaries}

    def put(self, name: str, text: str) -> None:
        """A file for the caller's own tool; it is written once."""
        if name in self._files:
            return
        with Folder(self.root) as files:
            data = text.encode("utf-8", "replace")
            try:
                if files.read(name) == data:
                    self._files.add(name)
                    return
            except NotFound:
                pass
            files.write(name, data)
        self._files.add(name)


def folder_of(store: str | os.PathLike[str] | bool) -> Path:
    """The folder that `store=` names; `True` is the project's own, in the home."""
    if store is not True:
        return Path(os.fspath(cast("str", store))).absolute()
    from reverie.settings.sources import environment
    from reverie.store import home as places

    environ = environment()
    home = places.home(environ)
    root = places.canonical_root(Path.cwd())
    try:
        return places.project_folder(home, root, environ=environ) / "fitted"
    except OSError as error:
        raise StoreError(f"the project's folder cannot be made: {error}", where=str(root)) from None
