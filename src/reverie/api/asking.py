"""What a session asks of a model, and what it hears: requests out, answers in, forks, the end.

Whatever the caller's own client raises reaches the caller as it is; only a refusal as too long is
looked at first, since a shorter request may do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from reverie.api.speaking import is_open
from reverie.errors import PromptTooLong
from reverie.layers.compaction import CompactionFailed
from reverie.models import ClientModel, too_long
from reverie.session.compaction.compacting import Compacted
from reverie.transcript import request as requests
from reverie.transcript.request import MAIN
from reverie.wire.replies import Reply, as_reply
from reverie.wire.sending import Request
from reverie.world import Model, ToolCall, complete

if TYPE_CHECKING:
    from reverie.api.beginning import Begun
    from reverie.session.session import Session

FORK = "fork"
DO = "Shorten what was added last, rewind, or choose a model with a larger window"


async def prepared(begun: Begun) -> Request:
    """The request to send; PromptTooLong where nothing makes it fit."""
    try:
        return Request.of(await begun.session.prepare(), begun.limit)
    except PromptTooLong as error:
        raise _for_callers(error, begun) from error


def _for_callers(error: PromptTooLong, begun: Begun) -> PromptTooLong:
    """The same in words for somebody without our terminal."""
    return PromptTooLong(
        "the conversation no longer fits the model's window, and nothing more can leave it",
        needed=error.needed,
        allowed=error.allowed,
        where=begun.worker.name,
        do=DO,
    )


async def shortened(begun: Begun, error: Exception) -> Request:
    """What to send in place of a request that a provider refused as too long; any other error
    is raised again."""
    found = too_long(error, begun.worker.name)
    if found is None:
        raise error
    try:
        return Request.of(await begun.session.too_long(found), begun.limit)
    except PromptTooLong as again:
        raise _for_callers(again, begun) from error


async def asked(begun: Begun) -> object:
    """Prepare and send, once more where it was too long; what came back."""
    request = await prepared(begun)
    try:
        return await _sent(begun, request)
    except Exception as error:  # noqa: BLE001 - any but one that is too long is raised again
        await begun.session.settled()
        request = await shortened(begun, error)
    try:
        return await _sent(begun, request)
    except Exception:
        await begun.session.settled()
        raise


async def _sent(begun: Begun, request: requests.Request) -> object:
    worker = begun.worker
    if isinstance(worker, ClientModel):
        return await worker.send(request)
    return await complete(worker, request)


async def observed(begun: Begun, answer: object) -> Reply:
    """An answer, whole and on record."""
    session = begun.session
    reply = await session.observe(as_reply(answer, session.last_request))
    if begun.client is not None:
        begun.client.heard(reply.provider)
    return Reply.like(reply)


async def compacted(session: Session, instructions: str) -> Compacted:
    """A summary in the place of the conversation; a failure changes nothing."""
    try:
        return await session.compact(instructions)
    except CompactionFailed as error:
        do = "Nothing was changed; the conversation goes on as it is"
        raise CompactionFailed(error.what, where=error.where, do=do) from error


def without(reply: Reply, calls: Sequence[ToolCall]) -> Reply:
    """A reply as the caller sees it: without calls that were seen to."""
    gone = {call.id for call in calls}
    return replace(reply, blocks=tuple(b for b in reply.blocks if b.call not in gone))


async def forked(session: Session, worker: Model, prompt: str) -> Reply:
    """One question on the conversation's own prefix; its transcript lies beside."""
    async with session.forked(FORK) as child:
        await child.instruct(prompt)
        return Reply.like(await child.ask(worker, MAIN))


async def closed(begun: Begun) -> None:
    """End the turn where nobody did, then close; a cancelled task closes all the same."""
    session = begun.session
    try:
        if is_open(session.view):
            with anyio.CancelScope(shield=True):
                waiting = bool(session.view.open_calls)
                await session.end_turn("cancelled" if waiting else "completed")
    finally:
        try:
            await session.aclose()
        finally:
            if begun.memories is not None:
                begun.memories.close()
