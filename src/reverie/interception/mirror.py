"""A session of ours that follows the client's conversation, and rules on its calls.

The shadow of a conversation that a client holds: a session of ours that takes it in.

What the client says is its right: rewinds, foreign roles, results of calls that nobody knows.
The shadow follows, so that recall, extraction, notes and dreams work as in any session, and so do
the reports. It decides nothing about what goes out but which memories join; where it fails, the
client's request is not touched by that.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
from anyio import to_thread

from reverie.concurrency import LoopThread
from reverie.errors import NotFound, ReverieError
from reverie.interception import decisions as chain
from reverie.interception.decisions import (
    DecisionLog,
    Decisions,
    Line,
    MirrorPosition,
    position_line,
    rule_line,
)
from reverie.interception.identity import messages_of
from reverie.interception.patches import InterceptedRequest
from reverie.interception.scan import ScannedPart
from reverie.light import dataclass
from reverie.rules.match import CompiledRule, quote_rule, rules_text
from reverie.session.attachments import frame_text
from reverie.session.context import index_files, young_memories
from reverie.session.extraction.trigger import NAME as EXTRACTION
from reverie.session.open_memory import session_memory
from reverie.session.options import RequestHead
from reverie.session.request_head import project_at
from reverie.session.rules import ProjectRules
from reverie.session.session import Session
from reverie.settings.catalog import Settings
from reverie.store.home import claim_address
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project
from reverie.store.rules_ledger import BROKEN, MATCHED
from reverie.topics.instructions import render
from reverie.transcript.blocks import Block, text_block, text_of
from reverie.transcript.records import (
    AssistantMessage,
    Attached,
    Record,
    ResultDecided,
    Rewound,
    UserMessage,
)
from reverie.wire.lists import ParsedMessage, parse_message
from reverie.wire.openai import foreign_blocks
from reverie.wire.reply import Reply
from reverie.wire.request import Request
from reverie.world import Event, Model, Say, WrappedModel

T = TypeVar("T")
LEARN_SECONDS = 1.0
"""How long a new conversation waits for what others of its project are being learned from."""
BILLED = 2
"""Blocks of a system prompt up to which none is a line for billing."""
Decided = dict[tuple[str, str, str], ResultDecided]
"""By tenant, call and content."""


@dataclass(frozen=True, slots=True)
class MirrorOptions:
    """How shadows are opened."""

    own: Project  # of the person in whose home they are kept
    worker: Callable[[str, Settings], Model]  # who works behind a conversation with that model
    say: Say
    memory: bool = True
    learns: bool = True
    is_alone: bool = False  # `own` is the project of every conversation
    memories: Callable[[Project], MemoryStore | None] | None = None
    note_turn: Callable[..., None] | None = None  # told where a turn or a session has ended

    def project_of(self, asked: InterceptedRequest) -> Project:
        """Return the project around a folder; what is a person's is kept in that folder alone."""
        if self.is_alone:
            return self.own
        folder, is_person = Path(asked.folder), asked.memory and asked.folder != asked.project
        if is_person:
            claim_address(self.own.home, folder, environ=self.own.environ)
        found = project_at(Path(asked.project or folder), self.own.home, self.own.environ)
        return replace(found.at_address(folder), cwd=folder) if is_person else found

    def open_memory(self, project: Project) -> MemoryStore | None:
        """Open the memory of a project; None where there is to be none."""
        if not self.memory:
            return None
        if self.memories is not None:
            return self.memories(project)
        return session_memory(project, time.time, self.say)


class MirrorSession:
    """One conversation's mirrored session, in an event loop of its own. Calls from outside wait
    for one another."""

    def __init__(
        self,
        loop: LoopThread,
        session: Session,
        thread: str,
        project: str,
        log: DecisionLog,
        decided: Decided,
        rules: CallRules | None = None,
        note_turn: Callable[..., None] | None = None,
    ) -> None:
        self._loop = loop
        self.session = session
        self._note_turn = note_turn
        self._rules = rules
        self.thread = thread
        self.project = project
        self._turn = anyio.Lock()
        self.failed = False
        self._log = log
        self._decided = decided
        self._answered = ("", "")  # behind which chain the newest answer stands, and its entry
        self._asked: InterceptedRequest | None = None  # the newest request that was taken in
        self._calls: tuple[str, ...] = ()  # of the newest answer
        self._over = False  # the newest answer ended a turn, and nobody has said so yet
        self.uses = 0  # requests on their way
        self.closes = False  # and ends its turn by itself

    async def do(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run work in the session's loop, and wait for it; one such call at a time."""
        return await self._loop.do(self._in_turn(work))

    async def _in_turn(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with self._turn:
            return await work()

    def learn(self) -> Future[None]:
        """Begin to learn from a turn that is over, where nothing else is under way."""
        return self._loop.start(self._learned())

    async def _learned(self) -> None:
        if not self._turn.locked():
            await self.end_turn()
            await self.session.jobs.wait(EXTRACTION, LEARN_SECONDS)

    def close(self) -> Future[None]:
        """Begin to close it, after what it still has to do; the loop ends with it."""
        self.closes = True
        closing = self._loop.start(self._closed())
        closing.add_done_callback(lambda _: self._loop.stop())
        return closing

    async def _closed(self) -> None:
        try:
            await self.end_turn()
            await self.session.aclose()
            await self.note(ended=True)
        except ReverieError:
            return
        finally:
            if self.session.memories is not None:
                self.session.memories.close()

    @property
    def folder(self) -> Path:
        return self.session.library.path / self.session.id

    @property
    def rules(self) -> CallRules | None:
        """The rules that calls are looked at by; None where there is no memory, or they are off."""
        return self._rules if self.session.world.flags.get("rules") else None

    # --- what the client says

    async def heard(self, asked: InterceptedRequest) -> None:
        """Take in what is new in a request. Words of the user's end the turn before."""
        self._asked = asked
        if asked.prompt:
            await self.end_turn()
        self._over = False
        first, entry = self._known_position(asked)
        messages = [parse_message(one, asked.body.form) for one in asked.body.messages(first)]
        answers = bool(messages) and self._is_answer(asked, first, messages[0])
        if entry != self._leaf and not answers:
            await self._back(entry)
        await self._set_head(asked)
        taken = self._message_records(asked, messages, answers=answers)
        leaf = self._leaf
        entries = iter(await self.session.append(*(one for found in taken for one in found)))
        lines: list[Line] = []
        for n, (said, records) in enumerate(zip(messages, taken, strict=True)):
            for entry in islice(entries, len(records)):
                leaf = entry.id if entry.on_chain else leaf
            at, place = self._chain(asked, first + n), MirrorPosition(self.session.id, leaf)
            spoken = said.speaker == "assistant"
            lines.append(position_line(self.thread, at, place, spoken=spoken))
        if lines:
            await to_thread.run_sync(self._log.note, lines)

    def _message_records(
        self, asked: InterceptedRequest, messages: Sequence[ParsedMessage], *, answers: bool
    ) -> list[list[Record]]:
        """The records of each message; none where the first is the answer that is there already."""
        view = self.session.view
        waiting, called = set(view.open_calls), set[str]()
        out: list[list[Record]] = []
        for n, said in enumerate(messages):
            if said.speaker != "assistant":
                out.append(self._user_records(said.blocks, asked, said.speaker, waiting))
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

    def _chain(self, asked: InterceptedRequest, message: int) -> str:
        """The chain behind a message."""
        firsts, parts = asked.body.talk.firsts, asked.body.parts
        end = firsts[message + 1] if message + 1 < len(firsts) else len(parts)
        return (parts[end - 1].chain if end else asked.caller.seed).hex()

    def _known_position(self, asked: InterceptedRequest) -> tuple[int, str]:
        """How many messages the shadow has, and the entry behind them."""
        known = self._log.decisions.positions.get(self.thread, {})
        for count in range(len(asked.body.talk.starts), 0, -1):
            place = known.get(self._chain(asked, count - 1))
            if place is not None and place.session == self.session.id:
                return count, place.entry
        return 0, ""

    def _is_answer(self, asked: InterceptedRequest, first: int, said: ParsedMessage) -> bool:
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

    async def _set_head(self, asked: InterceptedRequest) -> None:
        body = asked.body.members
        tools = body.get("tools")
        system = body.get("system") or body.get("instructions") or ""
        offered = cast("list[Mapping[str, Any]]", tools) if isinstance(tools, list) else []
        found = RequestHead(str(body.get("model") or ""), _lasting(system), offered)
        recorded = self.session.view.head
        context = recorded.context if recorded is not None else "[]"
        made = replace(found.record("the client's"), context=context)
        if recorded != made:
            await self.session.append(made)

    def _user_records(
        self, blocks: Sequence[Block], asked: InterceptedRequest, speaker: str, waiting: set[str]
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
            context = RequestHead(context=section).record().context
            await self.session.append(replace(head, context=context, reason="memory joined"))

    def _section(self) -> str:
        """The memory index, and the memories that are sent whole."""
        memories = self.session.memories
        assert memories is not None  # the caller has looked
        settings = self.session.world.settings
        scanned = memories.folder.scan()
        young = young_memories(memories, settings, scanned)
        files = (*index_files(memories.folder, scanned=scanned, whole=young), *young)
        return render(files) if files else ""

    # --- what the model answers

    async def asks(self) -> None:
        """The request leaves."""
        await self.session.render_request()

    async def answered(self, asked: InterceptedRequest, reply: Reply) -> None:
        """Take in the answer. One without calls may end the turn; what comes next tells."""
        if self._asked is not asked:
            return  # the client has gone on, and sends it back with its next request
        before = asked.body.parts[-1].chain if asked.body.parts else asked.caller.seed
        found = await self.session.record_reply(reply)
        after = before
        for block in found.blocks:
            if not block.thinking and not foreign_blocks(block):
                after = chain.extend_chain(after, "assistant", chain.digest(_as_sent(block, asked)))
        self._answered = (before.hex(), self._leaf)
        place = MirrorPosition(self.session.id, self._leaf)
        line = position_line(self.thread, after.hex(), place, spoken=True)
        await to_thread.run_sync(self._log.note, [line])
        self._calls = tuple(call.id for call in found.tool_calls)
        self._over = not self._calls

    async def end_turn(self, asked: InterceptedRequest | None = None) -> None:
        """The turn is over: what was said may be learned. With a request, only while nothing
        came after it."""
        if self._over and (asked is None or self._asked is asked):
            self._over = False
            await self.session.record_turn_end()
            await self.note()

    async def note(self, *, ended: bool = False) -> None:
        """Tell whoever learns later that there is more."""
        if self._note_turn is not None:
            with suppress(ReverieError, OSError):
                await to_thread.run_sync(partial(self._note_turn, ended=ended))

    async def unanswered(self) -> None:
        """The request came to nothing."""
        await self.session.settled()


def _calls(said: ParsedMessage) -> tuple[str, ...]:
    return tuple(block.call for block in said.blocks if block.type == "tool_use")


def _lasting(system: object) -> str | list[Mapping[str, Any]]:
    """A system prompt without the line that a client is billed by: that one changes."""
    if not isinstance(system, list):
        return str(system)
    blocks = cast("list[Mapping[str, Any]]", system)
    return [one for one in blocks if chain.MARK in one or len(blocks) <= BILLED]


def _as_sent(block: Block, asked: InterceptedRequest) -> dict[str, Any]:
    """A block of an answer as the client will send it back."""
    if block.type == "tool_use" and asked.body.form != "messages":
        return {"id": block.call, "name": block.get("name"), "given": block.value.get("input")}
    return block.value


# --- A model that works behind a client's conversation is asked by its own name.
#
# What it is sent is made from the client's conversation, which names the client's model. That one
# may be dearer, or another provider's: whoever chose a model for the background is billed for that
# one.


@dataclass(frozen=True, slots=True)
class RenamedModel(WrappedModel):
    """A model as it is, whatever model a request was made for."""

    model: Model

    def stream(self, request: Request) -> AsyncIterator[Event]:
        head = replace(request.head, model=self.model.name)
        return self.model.stream(replace(request, head=head))


# --- Rules where calls only pass: a call has left already when it is seen, so what a rule says
# joins that call's result, before the next step.
#
# Decided once for a call and its result, as everything here; a rule is told once a turn.


TAG = "system-reminder"
_RAN = (MATCHED, BROKEN)


class CallRules:
    """The rules of one project, for calls of a conversation that a client holds."""

    def __init__(self, rules: ProjectRules, session: str) -> None:
        self._rules = rules
        self._session = session

    def decided(
        self, asked: InterceptedRequest, parts: Sequence[ScannedPart], decisions: Decisions
    ) -> list[Line]:
        """What joins some results; "" is a decision too. Reads files: call it in a thread."""
        known = ""
        events: list[tuple[str, str]] = []
        out: list[Line] = []
        for part in parts:
            found = self._rules.look(*asked.body.called(part))
            known = known or (told_before(asked, decisions) if found else "")
            result = text_of(asked.body.content(part)) if found else ""
            ran = [rule for rule in found if quote_rule(rule) not in result]  # no hook held it
            events += [(rule.get("file", ""), did) for rule in ran for did in _RAN]
            text = _rule_reminder(found, known)
            known += text
            out.append(rule_line(asked.tenant, part.call, part.key, text))
        if events:
            self._rules.store.count(events, time.time(), self._session)
        return out


def _rule_reminder(found: Sequence[CompiledRule], known: str) -> str:
    fresh = [rule for rule in found if quote_rule(rule) not in known]
    return frame_text(TAG, rules_text(fresh, ran=True)) if fresh else ""


def told_before(asked: InterceptedRequest, decisions: Decisions) -> str:
    """What rules were told in this turn already: here, or by a hook in a result of its own."""
    found: list[str] = []
    for part in reversed(asked.body.parts):
        if part.kind == "text" and asked.thread in decisions.reminders.get(part.chain.hex(), {}):
            break  # the prompt that began it
        if part.kind == "tool_result" and part.inner != (0, 0):
            found.append(decisions.rules.get((asked.tenant, part.call, part.key), ""))
            found.append(text_of(asked.body.content(part)))
    return "\n".join(found)
