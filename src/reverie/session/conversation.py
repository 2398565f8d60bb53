"""One transcript, open for writing: it is told what happened and says what to send.

Every record is written before it counts, and folded only once it is written; the two are one
step, which no cancellation parts. `add_messages` and `record_reply` have returned = the records
are in the file; `render_request` has returned = they are on the disk. What background work hands
in is appended between two requests, never during one. Nothing here calls a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeAlias, TypedDict
from uuid import uuid4

import anyio
from anyio import CancelScope

from reverie.concurrency import alone, in_thread
from reverie.errors import InvalidMessage
from reverie.observer import ObservedConversation, is_watched, tell
from reverie.session.stops import is_paused
from reverie.transcript.blocks import Block
from reverie.transcript.codec import blobs, encode
from reverie.transcript.fold import apply, expecting
from reverie.transcript.messages import interrupted_result
from reverie.transcript.records import (
    AssistantMessage,
    Entry,
    Failed,
    Record,
    ResultDecided,
    Sent,
    UserMessage,
    by_speaker,
    speaker,
)
from reverie.transcript.tasks import MAIN, Task
from reverie.transcript.view import View
from reverie.wire.reply import Addable, Observable, Reply, as_reply, as_user
from reverie.wire.request import Request, render
from reverie.world import Layer, Notice, World

SHORT_ENTRY = 100_000
"""Characters of an entry that is written without a thread."""
Layers: TypeAlias = "Sequence[tuple[str, Layer]]"


class TranscriptLog(Protocol):
    """Where lines go: a journal, or nowhere in a private session."""

    def append(self, texts: Sequence[str]) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...


class Blobs(Protocol):
    def put_blob(self, name: str, text: str) -> None: ...


class NoLog:
    """The log of a private session: nothing is written."""

    def append(self, texts: Sequence[str]) -> None:
        """Nothing is kept."""

    def sync(self) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


class ConversationValues(TypedDict, total=False):
    """What a conversation may be told beside its transcript and its world."""

    source: str
    when_added: Layers
    before_a_request: Layers
    new_id: Callable[[], str]


class Conversation:
    """A transcript and its view. `Session`, `Worker` and `Fork` are made of it."""

    def __init__(
        self,
        log: TranscriptLog,
        blobs: Blobs,
        view: View,
        world: World,
        *,
        source: str = "main",
        when_added: Layers = (),
        before_a_request: Layers = (),
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self.view = view
        self.world = world
        self.source = source
        self.blobs = blobs
        self.new_id = new_id
        self.last_request: Request | None = None
        self._log = log
        self._when_added = when_added
        self._before_a_request = before_a_request
        self._lock = anyio.Lock()
        self._handed: list[Record] = []
        self._in_flight = False
        self._shortened = False  # the last request stands in for one that was too long

    # --- what happened

    async def add_messages(self, *said: Addable) -> None:
        """Something new for the model: user messages, tool results, in any common form."""
        message = as_user(said)
        self._check_results(message.blocks)
        decided = await self._run(self._when_added, expecting(self.view, message))
        kept = _with_decisions(message, decided)
        spoken = by_speaker((block, speaker(block, kept.origin)) for block in kept.blocks)
        # the message first: a decision torn from its message would wait for the next result
        await self.append(*spoken, *decided)

    async def record_reply(self, reply: Observable) -> Reply:
        """The model's answer, whole. Returns it in our own form."""
        found = as_reply(reply, self.last_request)
        known = [b.call for b in found.blocks if b.type == "tool_use"]
        again = next((c for n, c in enumerate(known) if self._is_known(c, known[:n])), None)
        if again is not None:
            raise InvalidMessage(
                "the model used the id of an earlier tool call again",
                where=again or "(empty)",
                do="Give each call an id of its own before observing the reply",
            )
        await self.append(found.record())
        await self.flush()
        return found

    def _is_known(self, call: str, before: Sequence[str]) -> bool:
        return not call or call in before or call in self.view.calls

    def hand(self, *records: Record) -> None:
        """Records from background work; they join between two requests."""
        self._handed += records

    # --- what to send

    async def render_request(self, task: Task = MAIN) -> Request:
        """The exact request to send now."""
        await self.flush()
        for layer in self._before_a_request:
            await self.flush()  # a layer may have waited for background work
            await self.append(*await self._run([layer], self.view))
        await self._close_open_calls()
        request = self._rendered(task)
        self.check(request)
        await self.append(Sent(self.source, self.view.leaf, request.parts(), request.marks))
        await self.sync()
        self._in_flight = True
        self.last_request = request
        return request

    def _rendered(self, task: Task) -> Request:
        return render(self.view, self.source, task)

    async def _close_open_calls(self) -> None:
        calls = self.view.open_calls
        if calls:
            results = tuple(interrupted_result(c) for c in calls)
            await self.append(UserMessage(results, "interrupted"))

    def check(self, request: Request) -> None:
        """Refuse to send what no provider would take."""
        items = self.view.items
        spoken = len(items) and items[len(items) - 1].kind != "head"
        mine = spoken and (request.at(request.count - 1).role == "user" or is_paused(self.view))
        if not mine:
            raise InvalidMessage(
                "there is nothing to send",
                where=self.view.session,
                do="Add a user message or the results of the last tool calls first",
            )

    def _check_results(self, blocks: Iterable[Block]) -> None:
        waiting = list(self.view.open_calls)
        for block in blocks:
            if block.type != "tool_result":
                continue
            call = block.call
            if call not in waiting:
                raise InvalidMessage(
                    "a tool result belongs to no call that waits for one",
                    where=call or "(no id)",
                    do="Add each result once, under the id of its call, before the next request",
                )
            waiting.remove(call)

    # --- the journal

    async def append(self, *records: Record) -> tuple[Entry, ...]:
        """Write records, then fold them. On an error neither has happened; cancelled, both or
        neither."""
        if not records:
            return ()
        entries: tuple[Entry, ...] = ()
        with CancelScope(shield=True):
            async with self._lock:
                entries = await self._write_entries(self._stamp_records(records))
        return entries

    async def append_at(self, parent: str, record: Record) -> None:
        """One record behind another than the last."""
        with CancelScope(shield=True):
            async with self._lock:
                at = self.world.clock.now()
                await self._write_entries((Entry(self.new_id(), parent, at, record),))

    async def _write_entries(
        self, entries: tuple[Entry, ...], handed: int = 0
    ) -> tuple[Entry, ...]:
        """Entries, written and folded as one step; the first so many were handed in. A few lines
        go to the file's end at once: to wait for a thread would take longer than to write them."""

        def then(_: None) -> None:
            self._fold(entries)
            del self._handed[:handed]

        if all(map(_is_short, entries)):
            then(self.write(entries))
        else:
            await in_thread(partial(self.write, entries), then)
        return entries

    def _fold(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.view = apply(self.view, entry)
            if isinstance(entry.record, AssistantMessage):
                self._in_flight = self._shortened = False
        if is_watched():
            tell(lambda one: one.saw(self._watched_conversation(), entries))

    def _stamp_records(self, records: Sequence[Record]) -> tuple[Entry, ...]:
        leaf, at = self.view.leaf, self.world.clock.now()
        entries: list[Entry] = []
        for record in records:
            entry = Entry(self.new_id(), leaf, at, record)
            entries.append(entry)
            leaf = entry.id if entry.on_chain else leaf
        return tuple(entries)

    def write(self, entries: Sequence[Entry]) -> None:
        """Put entries into the journal, what they name by hash before them."""
        for entry in entries:
            for name, text in blobs(entry.record).items():
                self.blobs.put_blob(name, text)
        self._log.append([encode(e) for e in entries])

    async def flush(self) -> None:
        """Append what was handed in, unless a request is on its way."""
        if not self._handed or self._in_flight:
            return
        with CancelScope(shield=True):
            async with self._lock:
                handed = tuple(self._handed)
                if not handed:  # somebody else was quicker
                    return
                try:
                    await self._write_entries(self._stamp_records(handed), len(handed))
                except InvalidMessage:
                    del self._handed[: len(handed)]  # it will not be written another time either
                    raise

    async def settled(self) -> None:
        """No request is on its way any more; what was handed in is appended."""
        self._in_flight = False
        await self.flush()

    async def sync(self) -> None:
        """What was appended survives a power loss."""
        with CancelScope(shield=True):
            async with self._lock:
                await in_thread(self._log.sync)

    def close(self) -> None:
        self._log.close()
        if is_watched():
            now = self.world.clock.now()
            tell(lambda one: one.closed(self._watched_conversation(), now))

    def _watched_conversation(self) -> ObservedConversation:
        started = self.view.started
        agent, project = (started.agent, started.project) if started else ("", "")
        settings = self.world.settings
        return ObservedConversation(self.view.session, self.source, agent, project, settings)

    # --- layers fail alone

    async def _run(self, layers: Layers, view: View) -> list[Record]:
        """The records layers return. A failing one is recorded, and the next catches."""
        out: list[Record] = []
        for name, layer in layers:
            none: Sequence[Record] = ()
            begun = self.world.clock.now()
            records, error = await alone(layer(view, self.world), none)
            if (records or error) and is_watched():
                self._ran(name, begun, error)
            out += records
            if error:
                out.append(Failed(name, error))
                self.world.say(Notice(name, f"the layer failed: {error}", "error"))
        return out

    def _ran(self, name: str, begun: float, error: str) -> None:
        times = (begun, self.world.clock.now())
        session = self.view.session
        tell(lambda one: one.ran("layer", name, session, times, error))


def _is_short(entry: Entry) -> bool:
    """Whether an entry is one line of no great length, and names no file of its own."""
    record = entry.record
    if isinstance(record, (UserMessage, AssistantMessage)):
        return sum(len(block.raw) for block in record.blocks) < SHORT_ENTRY
    return not blobs(record)


def _with_decisions(message: UserMessage, records: Sequence[Record]) -> UserMessage:
    """The message as it is kept: a stored result's bytes live in its file alone."""
    stands: Mapping[str, str] = {
        r.call: r.content for r in records if isinstance(r, ResultDecided) and r.content
    }
    if not stands:
        return message
    return replace(message, blocks=tuple(_stood_in(b, stands) for b in message.blocks))


def _stood_in(block: Block, stands: Mapping[str, str]) -> Block:
    content = stands.get(block.call) if block.type == "tool_result" else None
    return block.with_member("content", content) if content else block
