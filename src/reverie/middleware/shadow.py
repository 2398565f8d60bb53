"""The shadow of a conversation that a client holds: a session of ours that takes it in.

What the client says is its right: rewinds, foreign roles, results of calls that nobody knows.
The shadow follows, so that recall, extraction, notes and dreams work as in any session, and so do
the reports. It decides nothing about what goes out but which memories join; where it fails, the
client's request is not touched by that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

import anyio
from anyio import to_thread

from reverie.agent.place import project_at
from reverie.errors import NotFound
from reverie.light import dataclass
from reverie.memory.instructions import render
from reverie.middleware import chain
from reverie.middleware.decisions import Position, position_line
from reverie.middleware.log import DecisionLog, Line
from reverie.middleware.outgoing import Asked
from reverie.middleware.ruling import CallRules
from reverie.middleware.speakers import messages_of
from reverie.session.context import index_files
from reverie.session.open_memory import session_memory
from reverie.session.options import Head
from reverie.session.recall.young import young_memories
from reverie.session.session import Session
from reverie.settings import Settings
from reverie.store.home import claim_address
from reverie.store.memories import Memories
from reverie.store.project import Project
from reverie.transcript.blocks import Block, text_block, text_of
from reverie.transcript.records import (
    AssistantMessage,
    Attached,
    Record,
    ResultDecided,
    Rewound,
    UserMessage,
)
from reverie.wire.native import foreign_blocks
from reverie.wire.reading import Heard, heard
from reverie.world import Model, Reply, Say

BILLED = 2
"""Blocks of a system prompt up to which none is a line for billing."""
Decided = dict[tuple[str, str, str], ResultDecided]
"""By tenant, call and content."""


@dataclass(frozen=True, slots=True)
class ShadowRules:
    """How shadows are opened."""

    own: Project  # of the person in whose home they are kept
    worker: Callable[[str, Settings], Model]  # who works behind a conversation with that model
    say: Say
    memory: bool = True
    learns: bool = True
    is_alone: bool = False  # `own` is the project of every conversation
    memories: Callable[[Project], Memories | None] | None = None

    def project_of(self, asked: Asked) -> Project:
        """Return the project around a folder; what is a person's is kept in that folder alone."""
        if self.is_alone:
            return self.own
        folder, is_person = Path(asked.folder), asked.memory and asked.folder != asked.project
        if is_person:
            claim_address(self.own.home, folder, environ=self.own.environ)
        found = project_at(Path(asked.project or folder), self.own.home, self.own.environ)
        return replace(found.at_address(folder), cwd=folder) if is_person else found

    def open_memory(self, project: Project) -> Memories | None:
        """Open the memory of a project; None where there is to be none."""
        if not self.memory:
            return None
        if self.memories is not None:
            return self.memories(project)
        return session_memory(project, time.time, self.say)


class Shadow:
    """One conversation's shadow. Calls wait for one another."""

    def __init__(
        self,
        session: Session,
        thread: str,
        project: str,
        log: DecisionLog,
        decided: Decided,
        rules: CallRules | None = None,
    ) -> None:
        self.session = session
        self._rules = rules
        self.thread = thread
        self.project = project
        self.turn = anyio.Lock()
        self.failed = False
        self._log = log
        self._decided = decided
        self._answered = ("", "")  # behind which chain the newest answer stands, and its entry
        self._asked: Asked | None = None  # the newest request that was taken in
        self._calls: tuple[str, ...] = ()  # of the newest answer
        self._over = False  # the newest answer ended a turn, and nobody has said so yet
        self.uses = 0  # requests on their way

    @property
    def folder(self) -> Path:
        return self.session.library.path / self.session.id

    @property
    def rules(self) -> CallRules | None:
        """The rules that calls are looked at by; None where there is no memory, or they are off."""
        return self._rules if self.session.world.flags.get("rules") else None

    # --- what the client says

    async def heard(self, asked: Asked) -> None:
        """Take in what is new in a request. Words of the user's end the turn before."""
        self._asked = asked
        if asked.prompt:
            await self.end_turn()
        self._over = False
        first, entry = self._known(asked)
        messages = [heard(one, asked.body.form) for one in asked.body.messages(first)]
        answers = bool(messages) and self._is_answer(asked, first, messages[0])
        if entry != self._leaf and not answers:
            await self._back(entry)
        await self._set_head(asked)
        taken = self._taken(asked, messages, answers=answers)
        leaf = self._leaf
        entries = iter(await self.session.append(*(one for found in taken for one in found)))
        lines: list[Line] = []
        for n, (said, records) in enumerate(zip(messages, taken, strict=True)):
            for entry in islice(entries, len(records)):
                leaf = entry.id if entry.on_chain else leaf
            at, place = self._chain(asked, first + n), Position(self.session.id, leaf)
            spoken = said.speaker == "assistant"
            lines.append(position_line(self.thread, at, place, spoken=spoken))
        if lines:
            await to_thread.run_sync(self._log.note, lines)

    def _taken(
        self, asked: Asked, messages: Sequence[Heard], *, answers: bool
    ) -> list[list[Record]]:
        """The records of each message; none where the first is the answer that is there already."""
        view = self.session.view
        waiting, called = set(view.open_calls), set[str]()
        out: list[list[Record]] = []
        for n, said in enumerate(messages):
            if said.speaker != "assistant":
                out.append(self._said(said.blocks, asked, said.speaker, waiting))
            elif n == 0 and answers and _calls(said) == self._calls:
                out.append([])
            else:
                out.append([AssistantMessage(said.blocks)])
                waiting = {one for one in _calls(said) if one not in view.calls} - called - {""}
                called |= waiting
        return out

    @property
    def _leaf(self) -> str:
        return self.session.view.leaf

    def _chain(self, asked: Asked, message: int) -> str:
        """The chain behind a message."""
        firsts, parts = asked.body.talk.firsts, asked.body.parts
        end = firsts[message + 1] if message + 1 < len(firsts) else len(parts)
        return (parts[end - 1].chain if end else asked.caller.seed).hex()

    def _known(self, asked: Asked) -> tuple[int, str]:
        """How many messages the shadow has, and the entry behind them."""
        known = self._log.decisions.positions.get(self.thread, {})
        for count in range(len(asked.body.talk.starts), 0, -1):
            place = known.get(self._chain(asked, count - 1))
            if place is not None and place.session == self.session.id:
                return count, place.entry
        return 0, ""

    def _is_answer(self, asked: Asked, first: int, said: Heard) -> bool:
        """Whether the client's next message is the answer that was taken in as it came: the same
        calls in other words, or other words behind an answer that called nothing."""
        before = self._chain(asked, first - 1) if first else ""
        if said.speaker != "assistant" or self._answered != (before, self._leaf):
            return False
        return not self._calls or _calls(said) == self._calls

    async def _back(self, entry: str) -> None:
        """The conversation goes on from an earlier place."""
        view = self.session.view
        if entry and view.entries.place(entry) is None:
            raise NotFound("the shadow does not know this place", where=entry)
        if not view.items.length:
            return
        await self.session.settled()
        await self.session.append_at(entry, Rewound("the client went back"))

    async def _set_head(self, asked: Asked) -> None:
        body = asked.body.members
        tools = body.get("tools")
        system = body.get("system") or body.get("instructions") or ""
        offered = cast("list[Mapping[str, Any]]", tools) if isinstance(tools, list) else []
        found = Head(str(body.get("model") or ""), _lasting(system), offered)
        recorded = self.session.view.head
        context = recorded.context if recorded is not None else "[]"
        made = replace(found.record("the client's"), context=context)
        if recorded != made:
            await self.session.append(made)

    def _said(
        self, blocks: Sequence[Block], asked: Asked, speaker: str, waiting: set[str]
    ) -> list[Record]:
        """What a user or a tool said; results that were stored stand in by their previews. They
        leave the calls that are `waiting`."""
        if speaker == "other":
            words = [t for b in blocks if (t := text_of(b.value)).strip()]
            return [UserMessage(tuple(map(text_block, words)), "client")] if words else []
        out: list[tuple[Block, bool]] = []
        decided: list[Record] = []
        for block in blocks:
            if block.type != "tool_result":
                out += [] if block.blank else [(block, False)]
                continue
            if block.call not in waiting:
                words = text_of(block.value.get("content")) or "(nothing)"
                out.append((text_block(words), True))
                continue
            waiting.discard(block.call)
            key = chain.content_digest(block.value.get("content"))
            made = self._decided.get((asked.tenant, block.call, key))
            decided.append(made or ResultDecided(block.call, "kept", "as the client sent it"))
            out.append((block.with_member("content", made.content) if made else block, True))
        return [*messages_of(out), *decided]

    # --- what memory says

    async def recalled(self, prompt: str, *, first: bool) -> str:
        """The reminder that joins a prompt; "" where nothing clearly helps."""
        session = self.session
        if session.memories is None:
            return ""
        texts: list[str] = []
        section = await to_thread.run_sync(self._section) if first else ""
        if section:
            texts.append(section)
            await self._stands(section)
        if session.recall is not None:
            session.recall.begin(self._leaf, prompt)
            seconds = session.world.settings.selector_milliseconds / 1_000
            found = await session.recall.ready(seconds)
            await session.append(*found, *session.recall.ended())
            for record in found:
                if isinstance(record, Attached):
                    texts += [text_of(block.value) for block in record.blocks]
        return "\n".join(texts)

    async def _stands(self, section: str) -> None:
        """Note that memory stands in the context, so that recall brings none of it again."""
        head = self.session.view.head
        if head is not None:
            context = Head(context=section).record().context
            await self.session.append(replace(head, context=context, reason="memory joined"))

    def _section(self) -> str:
        """The memory index, and the memories that are sent whole."""
        memories = self.session.memories
        assert memories is not None  # the caller has looked
        settings = self.session.world.settings
        scanned = memories.folder.scan()
        files = (
            *index_files(memories.folder, scanned=scanned),
            *young_memories(memories, settings, scanned),
        )
        return render(files) if files else ""

    # --- what the model answers

    async def asks(self) -> None:
        """The request leaves."""
        await self.session.render_request()

    async def answered(self, asked: Asked, reply: Reply) -> None:
        """Take in the answer. One without calls may end the turn; what comes next tells."""
        if self._asked is not asked:
            return  # the client has gone on, and sends it back with its next request
        before = asked.body.parts[-1].chain if asked.body.parts else asked.caller.seed
        found = await self.session.record_reply(reply)
        after = before
        for block in found.blocks:
            if not block.thinking and not foreign_blocks(block):
                after = chain.extended(after, "assistant", chain.digest(_as_sent(block, asked)))
        self._answered = (before.hex(), self._leaf)
        place = Position(self.session.id, self._leaf)
        line = position_line(self.thread, after.hex(), place, spoken=True)
        await to_thread.run_sync(self._log.note, [line])
        self._calls = tuple(call.id for call in found.tool_calls)
        self._over = not self._calls

    async def end_turn(self, asked: Asked | None = None) -> None:
        """The turn is over: what was said may be learned. With a request, only while nothing
        came after it."""
        if self._over and (asked is None or self._asked is asked):
            self._over = False
            await self.session.record_turn_end()

    async def unanswered(self) -> None:
        """The request came to nothing."""
        await self.session.settled()


def _calls(said: Heard) -> tuple[str, ...]:
    return tuple(block.call for block in said.blocks if block.type == "tool_use")


def _lasting(system: object) -> str | list[Mapping[str, Any]]:
    """A system prompt without the line that a client is billed by: that one changes."""
    if not isinstance(system, list):
        return str(system)
    blocks = cast("list[Mapping[str, Any]]", system)
    return [one for one in blocks if chain.MARK in one or len(blocks) <= BILLED]


def _as_sent(block: Block, asked: Asked) -> dict[str, Any]:
    """A block of an answer as the client will send it back."""
    if block.type == "tool_use" and asked.body.form != "messages":
        return {"id": block.call, "name": block.get("name"), "given": block.value.get("input")}
    return block.value
