"""What passes between a caller and a session: words, results and foreign lists in, requests out.

Calls are known by names of ours where a provider used one twice or left it empty; results may come
under either name. Whatever the caller's own client raises reaches the caller as it is; only a
refusal as too long is looked at first, since a shorter request may do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reverie.errors import NotAvailable, PromptTooLong
from reverie.models import BackgroundModel, ClientModel, output_limit, too_long
from reverie.session.options import RequestHead
from reverie.toolbox.toolset import Original, Toolset, describe_tool, flat, reading_back
from reverie.transcript.blocks import Block, dump, text_block, text_of
from reverie.transcript.records import (
    AssistantMessage,
    HeadSet,
    Record,
    ResultDecided,
    UserMessage,
    by_speaker,
    speaker,
)
from reverie.transcript.tasks import MAIN
from reverie.transcript.view import View
from reverie.wire.lists import AdoptedMessage, adopt, format_of, parse_message, value_of
from reverie.wire.openai import ITEMS
from reverie.wire.reply import Addable, Reply, ToolCall, as_reply, as_user
from reverie.wire.request import NO_HEAD, Request
from reverie.world import Model, complete

if TYPE_CHECKING:
    from reverie.session.session import Session
    from reverie.toolbox.read_back import SealedCalls

FORK = "fork"
READS = 20
"""Times in a row that the model may only read back before its answer is handed out."""
DO = "Shorten what was added last, rewind, or choose a model with a larger window"
_NAMED = {"tool_use": "id", "tool_result": "tool_use_id"}
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
BEFORE = "[The conversation begins with the assistant's words.]"


def message_of(view: View, said: Sequence[Addable]) -> UserMessage:
    """What was handed in as one message, its results under the names that we know calls by."""
    message = as_user(said)
    theirs = dict(_provider_names(view))
    blocks = tuple(_rename_result(block, view, theirs) for block in message.blocks)
    return replace(message, blocks=blocks)


def begins_turn(view: View, message: UserMessage) -> bool:
    """Whether a message begins a turn while the one before it was never ended."""
    if any(block.type == "tool_result" for block in message.blocks) or view.open_calls:
        return False
    return is_turn_open(view)


def is_turn_open(view: View) -> bool:
    """Whether the model has answered since the last turn ended."""
    for at in range(len(view.entries) - 1, -1, -1):
        kind = type(view.entries[at].record).__name__
        if kind in ("AssistantMessage", "TurnEnded"):
            return kind == "AssistantMessage"
    return False


def _provider_names(view: View) -> Iterator[tuple[str, str]]:
    """The provider's names for calls that wait, with ours."""
    for call in view.open_calls:
        known = view.calls.get(call)
        entry = view.entries.find(known.message) if known is not None else None
        if entry is None or not isinstance(entry.record, AssistantMessage):
            continue
        for block in entry.record.blocks:
            ids = block.value.get("ids") if block.type == ITEMS else None
            if isinstance(ids, dict) and call in ids:
                yield str(ids[call]), call


def _rename_result(block: Block, view: View, theirs: Mapping[str, str]) -> Block:
    if block.type != "tool_result" or block.call in view.open_calls or block.call not in theirs:
        return block
    return block.with_member("tool_use_id", dump(theirs[block.call]))


# --- lists of others


async def adopt_messages(session: Session, messages: Sequence[object]) -> None:
    """Take in what was said elsewhere; its results stay as they were sent."""
    values = [value_of(message) for message in messages]
    form, _ = format_of(values, (), session.world.model_name)
    parts = list(adopt([parse_message(value, form) for value in values], form).parts)
    while parts and parts[-1].part == "interrupted":
        parts.pop()  # its calls may still be answered here
    names: dict[str, str] = {}
    records: list[Record] = []
    for part in parts:
        if part.part == "assistant":
            if not records and not session.view.items.length:
                records.append(UserMessage((text_block(BEFORE),), "adopted"))
            records.append(AssistantMessage(_with_own_names(part.blocks, names, session.view)))
        elif part.blocks:
            records += _adopted_records(part, names, session.view)
    await session.append(*records)


def _adopted_records(part: AdoptedMessage, names: dict[str, str], view: View) -> Iterator[Record]:
    """What a user or a tool said; what belongs to nobody here is kept as words."""
    if part.part == "aside":
        words = [text for block in part.blocks if (text := text_of(block.value)).strip()]
        if words:
            yield UserMessage(tuple(map(text_block, words)), "adopted")
        return
    blocks = _with_own_names(part.blocks, names, view)
    yield from by_speaker((block, speaker(block)) for block in blocks)
    for block in blocks:
        if block.type == "tool_result":
            yield ResultDecided(block.call, "kept", "it was sent before")


def _with_own_names(
    blocks: Sequence[Block], names: dict[str, str], view: View
) -> tuple[Block, ...]:
    """Blocks whose calls have names that every provider takes and no call here has."""
    made: list[Block] = []
    for block in blocks:
        if block.type not in _NAMED:
            made.append(block)
            continue
        name = names.get(block.call) or _UNSAFE.sub("-", block.call)[:60] or "call"
        while block.call not in names and (name in view.calls or name in names.values()):
            name = f"{name[:60]}-2"
        names[block.call] = name
        made.append(block.with_member(_NAMED[block.type], dump(name)))
    return tuple(made)


# --- the head


def changed_head(
    view: View,
    system: str | Sequence[Mapping[str, Any]] | None,
    tools: Sequence[object] | Toolset | None,
    options: Mapping[str, Any] | None,
    reason: str,
) -> HeadSet:
    """The head as it is, with what is said anew."""
    found = view.head or NO_HEAD
    if system is not None:
        found = replace(found, system=RequestHead(system=system).record().system)
    if tools is not None:
        found = replace(found, tools=dump([describe_tool(tool) for tool in flat(tools)]))
    if options is not None:
        found = replace(found, options=dump(dict(options)))
    return replace(found, reason=reason)


# --- requests out, answers in


async def next_request(session: Session) -> Request:
    """Return the request to send; PromptTooLong where nothing makes it fit."""
    try:
        return Request.of(await session.render_request(), _output_limit(session))
    except PromptTooLong as error:
        raise _for_callers(error, session) from error


def _output_limit(session: Session) -> int:
    model = session.world.model
    return 0 if model is None else output_limit(model.capabilities, session.project.settings)


def _for_callers(error: PromptTooLong, session: Session) -> PromptTooLong:
    """The same in words for somebody without our terminal."""
    if not session.options.ends_turns:
        return error
    return PromptTooLong(
        "the conversation no longer fits the model's window, and nothing more can leave it",
        needed=error.needed,
        allowed=error.allowed,
        where=session.world.model_name,
        do=DO,
    )


async def shorter_request(session: Session, error: Exception) -> Request:
    """Return what to send in place of a request that a provider refused as too long; any other
    error is raised again."""
    found = too_long(error, session.world.model_name)
    if found is None:
        raise error
    try:
        return Request.of(await session.shorten_request(found), _output_limit(session))
    except PromptTooLong as again:
        raise _for_callers(again, session) from error


async def send_request(session: Session) -> object:
    """Prepare and send, once more where it was too long; return what came back."""
    worker = sender(session)
    request = await next_request(session)
    try:
        return await _send(worker, request)
    except Exception as error:  # noqa: BLE001 - any but one that is too long is raised again
        await session.settled()
        request = await shorter_request(session, error)
    try:
        return await _send(worker, request)
    except Exception:
        await session.settled()
        raise


def sender(session: Session) -> Model:
    """Return who is asked; NotAvailable where there is nobody."""
    worker = session.world.model
    if worker is None or isinstance(worker, BackgroundModel):
        raise NotAvailable(
            "this session has no client to ask with",
            where=session.id,
            do="Open it with client=, or send what prepare gives and observe the answer",
        )
    return worker


async def _send(worker: Model, request: Request) -> object:
    if isinstance(worker, ClientModel):
        return await worker.send(request)
    return await complete(worker, request)


async def take_answer(session: Session, answer: object) -> Reply:
    """Record an answer, whole; see to calls that only read back, where a client is there."""
    client = session.world.model if isinstance(session.world.model, ClientModel) else None
    reply = await _record_answer(session, answer, client)
    for _ in range(READS if session.options.reads_back and client else 0):
        via = session.options.way_back.tool
        own = [call for call in reply.tool_calls if call.name == via]
        if not own:
            break
        results: list[UserMessage] = [session.tools.handle(call) for call in own]
        await session.add_messages(*results)
        if len(own) < len(reply.tool_calls):
            return _without_calls(reply, own)
        reply = await _record_answer(session, await send_request(session), client)
    return reply


async def _record_answer(session: Session, answer: object, client: ClientModel | None) -> Reply:
    reply = await session.record_reply(as_reply(answer, session.last_request))
    if client is not None:
        client.heard(reply.provider)
    return reply


def _without_calls(reply: Reply, calls: Sequence[ToolCall]) -> Reply:
    """A reply as the caller sees it: without calls that were seen to."""
    gone = {call.id for call in calls}
    return replace(reply, blocks=tuple(b for b in reply.blocks if b.call not in gone))


async def ask_beside(session: Session, prompt: str) -> Reply:
    """Ask one question on the conversation's own prefix; its transcript lies beside."""
    worker = sender(session)
    async with session.forked(FORK) as child:
        await child.instruct(prompt)
        return await child.ask(worker, MAIN)


# --- what left the context, found again


def read_back_tools(session: Session) -> Toolset:
    """Return the tools that a session answers itself."""
    options = session.options
    if not options.holds_window or not options.way_back.tool or session.budget is None:
        return Toolset()  # a private session has nothing stored
    from reverie.toolbox.read_back import SealedCalls

    sealed = SealedCalls(lambda: session.view, session.library.folder, session.id)
    settings = session.project.settings
    return Toolset([reading_back(TranscriptOriginals(sealed), options.way_back.tool, settings)])


class TranscriptOriginals:
    """What left a session's context, found again in its transcript."""

    def __init__(self, sealed: SealedCalls) -> None:
        self._sealed = sealed

    def find(self, wanted: str) -> Original | None:
        found = self._sealed.look(wanted)
        if found is None:
            return None
        title = f"{found.title}: {found.warning}" if found.warning else found.title
        return Original(title, found.text, found.media)
