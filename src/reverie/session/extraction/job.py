"""Layer 5 in a session: after a turn, a fork writes what is worth keeping.

`consider` asks the gates and starts one job; a turn that ends during a run is kept, only the
newest, and looked at once after it. The cursor moves where a run came to its end, also to none,
and where the main agent saw to memory itself; where anything failed, was abandoned at exit or
could not land, it stays, and the next run starts from it. Nothing here raises into a turn.
"""

from __future__ import annotations

from contextvars import ContextVar

import anyio

from reverie.errors import BudgetExceeded
from reverie.layers import extraction as layer
from reverie.session.fork import Fork
from reverie.session.host import Host
from reverie.transcript.records import Extracted, Failed
from reverie.transcript.view import View
from reverie.world import Notice

NAME = layer.NAME
_cursor: ContextVar[str] = ContextVar("reverie.extracted", default="")
"""Where the run before this one in the same job ended; its record may still wait to be joined."""


async def consider(host: Host) -> None:
    """Start an extraction where one is due."""
    why = layer.closed(
        host.view,
        host.world,
        has_memory=host.memories is not None,
        interactive=host.interactive,
    )
    if why or host.world.model is None or host.view.sent is None:
        return

    async def work() -> None:
        await _extract(host)

    host.jobs.start(NAME, work)


async def _extract(host: Host) -> None:
    """One run, from the cursor to the newest message."""
    if _passed_over(host, host.view) or host.memories is None:
        return
    try:
        async with host.forked(NAME) as child:
            view = host.view  # as it was when the fork began: nothing is awaited in between
            if not _passed_over(host, view):
                await _run(host, child, view)
    except BudgetExceeded as error:
        _say_once(host, str(error))


async def _run(host: Host, child: Fork, view: View) -> None:
    from reverie.session.extraction import run as runs

    fresh = layer.fresh(view, _cursor.get())
    ground = runs.ExtractionContext.of(host)
    run = await runs.run(child, view, fresh, ground)
    with anyio.CancelScope(shield=True):  # what lands and the word that it did belong together
        landed = await runs.land(run, ground)
        if landed.given_up:
            told = runs.told(landed.given_up)
            host.world.say(Notice(NAME, f"left for the next time: {told}", "warning"))
            host.hand(Failed(NAME, f"files changed meanwhile: {told}"))
            return
        _moved(host, runs.record(fresh.last, landed))
        runs.say(landed, host.world.say)


def _passed_over(host: Host, view: View) -> bool:
    """Whether there is nothing to do: no words since, or the main agent wrote memory itself."""
    fresh = layer.fresh(view, _cursor.get())
    if not fresh.items or not fresh.last:
        return True
    if not fresh.has_words:
        _moved(host, Extracted(fresh.last, "nothing", why="nobody said anything"))
        return True
    memories = host.memories
    if memories is None:
        return True
    from reverie.session.extraction.run import inside

    leads_in = inside(memories, view.started.cwd if view.started else "")
    saved = layer.saved_itself(fresh, leads_in)
    if saved:
        _moved(host, Extracted(fresh.last, "skipped", why=f"the main agent saved: {saved}"))
    return bool(saved)


def _moved(host: Host, record: Extracted) -> None:
    _cursor.set(record.last)
    host.hand(record)


def _say_once(host: Host, told: str) -> None:
    """A budget that is used up is said once, and the session goes on."""
    for at in range(len(host.view.entries) - 1, -1, -1):
        record = host.view.entries[at].record
        if isinstance(record, Failed) and record.layer == NAME:
            if record.error == told:
                return
            break
    host.world.say(Notice(NAME, f"background work stopped: {told}", "warning"))
    host.hand(Failed(NAME, told))
