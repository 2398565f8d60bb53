"""Layer 5 in a session: after a turn, a fork writes what is worth keeping.

`consider` asks the gates and starts one job; a turn that ends during a run is kept, only the
newest, and looked at once after it. The cursor moves where a run came to its end, also to none,
and where the main agent saw to memory itself; where anything failed, was abandoned at exit or
could not land, it stays, and the next run starts from it. Nothing here raises into a turn.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

import anyio

from reverie.errors import BudgetExceeded
from reverie.layers import extraction as layer
from reverie.transcript.records import Extracted, Failed
from reverie.transcript.view import View
from reverie.world import Notice

if TYPE_CHECKING:
    from reverie.session.fork import Fork
    from reverie.session.session import Session

NAME = layer.NAME
_cursor: ContextVar[str] = ContextVar("reverie.extracted", default="")
"""Where the run before this one in the same job ended; its record may still wait to be joined."""


async def consider(session: Session) -> None:
    """Start an extraction where one is due."""
    why = layer.closed(
        session.view,
        session.world,
        has_memory=session.memories is not None,
        interactive=session.interactive,
    )
    if why or session.world.model is None or session.view.sent is None:
        return

    async def work() -> None:
        await _extract(session)

    session.jobs.start(NAME, work)


async def _extract(session: Session) -> None:
    """One run, from the cursor to the newest message."""
    if _passed_over(session, session.view) or session.memories is None:
        return
    child = await session.fork(NAME)
    view = session.view  # as it was when the fork began: nothing is awaited in between
    outcome: Literal["completed", "failed", "cancelled"] = "failed"
    try:
        if not _passed_over(session, view):
            await _run(session, child, view)
        outcome = "completed"
    except anyio.get_cancelled_exc_class():
        outcome = "cancelled"
        raise
    except BudgetExceeded as error:
        _say_once(session, str(error))
    finally:
        session.hand(child.ended(outcome))
        child.close()


async def _run(session: Session, child: Fork, view: View) -> None:
    from reverie.session.extraction import run as runs

    fresh = layer.fresh(view, _cursor.get())
    ground = runs.ExtractionContext.of(session)
    run = await runs.run(child, view, fresh, ground)
    with anyio.CancelScope(shield=True):  # what lands and the word that it did belong together
        landed = await runs.land(run, ground)
        if landed.given_up:
            told = runs.told(landed.given_up)
            session.world.say(Notice(NAME, f"left for the next time: {told}", "warning"))
            session.hand(Failed(NAME, f"files changed meanwhile: {told}"))
            return
        _moved(session, runs.record(fresh.last, landed))
        runs.say(landed, session.world.say)


def _passed_over(session: Session, view: View) -> bool:
    """Whether there is nothing to do: no words since, or the main agent wrote memory itself."""
    fresh = layer.fresh(view, _cursor.get())
    if not fresh.items or not fresh.last:
        return True
    if not fresh.has_words:
        _moved(session, Extracted(fresh.last, "nothing", why="nobody said anything"))
        return True
    memories = session.memories
    if memories is None:
        return True
    from reverie.session.extraction.run import inside

    leads_in = inside(memories, view.started.cwd if view.started else "")
    saved = layer.saved_itself(fresh, leads_in)
    if saved:
        _moved(session, Extracted(fresh.last, "skipped", why=f"the main agent saved: {saved}"))
    return bool(saved)


def _moved(session: Session, record: Extracted) -> None:
    _cursor.set(record.last)
    session.hand(record)


def _say_once(session: Session, told: str) -> None:
    """A budget that is used up is said once, and the session goes on."""
    for at in range(len(session.view.entries) - 1, -1, -1):
        record = session.view.entries[at].record
        if isinstance(record, Failed) and record.layer == NAME:
            if record.error == told:
                return
            break
    session.world.say(Notice(NAME, f"background work stopped: {told}", "warning"))
    session.hand(Failed(NAME, told))
