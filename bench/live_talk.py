"""A session whose background work is over before its conversation goes on.

So one run of a course is like another, however long an answer takes; what is sent is what a
session in a hurry would send too, in one of the orders it may happen in.
"""

from __future__ import annotations

from dataclasses import dataclass

from reverie.errors import PromptTooLong
from reverie.session import Session, TurnEnding
from reverie.transcript import MAIN, Entry, Record, Request, View
from reverie.transcript.request import Task
from reverie.wire import Addable, Observable
from reverie.world import Reply, World

LONGEST = 4 * 3_600.0  # seconds for one piece of background work: somebody may be typing


async def jobs_over(session: Session) -> None:
    """Wait until nothing runs behind a conversation."""
    while running := session.jobs.running:
        await session.jobs.wait(running[0], LONGEST)
    await session.flush()


@dataclass(frozen=True, slots=True)
class OneAtATime:
    """`turn.Talk` over a session."""

    session: Session

    @property
    def view(self) -> View:
        return self.session.view

    @property
    def world(self) -> World:
        return self.session.world

    async def add_messages(self, *said: Addable) -> None:
        await self.session.add_messages(*said)

    async def append(self, *records: Record) -> tuple[Entry, ...]:
        return await self.session.append(*records)

    async def render_request(self, task: Task = MAIN) -> Request:
        return await self.session.render_request(task)

    async def record_reply(self, reply: Observable) -> Reply:
        found = await self.session.record_reply(reply)
        await jobs_over(self.session)
        return found

    def responding(self) -> None:
        self.session.responding()

    async def shorten_request(self, error: PromptTooLong) -> Request:
        return await self.session.shorten_request(error)

    async def record_turn_end(self, outcome: TurnEnding = "completed") -> None:
        await self.session.record_turn_end(outcome)
