"""Whether a request goes on from the last one of its thread, by the units of the provider's cache:
what the client said by its chain, and what was decided of it, without marks.

A difference in what was decided is a break of ours; one before it is the client's own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import Future
from functools import partial
from hashlib import blake2b

import anyio

from reverie.concurrency import LoopThread
from reverie.errors import Held, NotFound
from reverie.interception.decisions import DecisionLog, session_line
from reverie.interception.mirror import (
    LEARN_SECONDS,
    CallRules,
    Decided,
    MirrorOptions,
    MirrorSession,
)
from reverie.interception.patches import InterceptedRequest, OutgoingPlan
from reverie.light import dataclass
from reverie.session.options import SessionOptions
from reverie.session.rules import ProjectRules
from reverie.session.session import Session, begin_session
from reverie.store.project import Project
from reverie.transcript.records import ResultDecided

MOST = 4_096


@dataclass(frozen=True, slots=True)
class Continuation:
    """How a request follows the last one."""

    known: int  # parts of this one that the last one ended with
    broken: bool = False  # what was decided of those is not what it was
    left: bool = False  # the client has left what it said before


@dataclass(frozen=True, slots=True)
class _RequestTail:
    """Where a request ended, and what of it was ours."""

    parts: int
    decided: tuple[bytes, ...]


class RequestTails:
    """Where the newest requests ended, by thread and chain; the oldest go first. Used from any
    thread."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._ends: OrderedDict[tuple[str, bytes], _RequestTail] = OrderedDict()
        self._threads: OrderedDict[str, bytes] = OrderedDict()
        self._turn = threading.Lock()

    def goes_on(self, asked: InterceptedRequest) -> bool:
        """Whether any request ended where this one was."""
        return any((asked.thread, part.chain) in self._ends for part in asked.body.parts)

    def followed(self, asked: InterceptedRequest, made: OutgoingPlan) -> Continuation:
        """How this one follows; from now on it is the last, where it will be part of a history."""
        thread, parts = asked.thread, asked.body.parts
        sums = tuple(_sum(at, f"{text}{behind}") for at, text, behind in made.decided)
        with self._turn:
            found = self._longest_match(asked, made, sums)
            if parts and asked.kind != "compaction":
                self._ends[thread, parts[-1].chain] = _RequestTail(len(parts), sums)
                self._threads[thread] = parts[-1].chain
                for kept in (self._ends, self._threads):
                    while len(kept) > self._most:
                        kept.popitem(last=False)
        return found

    def _longest_match(
        self, asked: InterceptedRequest, made: OutgoingPlan, sums: tuple[bytes, ...]
    ) -> Continuation:
        parts = asked.body.parts
        for at in range(len(parts), 0, -1):
            end = self._ends.get((asked.thread, parts[at - 1].chain))
            if end is not None and end.parts == at:
                mine = zip(sums, made.decided, strict=True)
                before = tuple(one for one, (n, *_) in mine if n < at)
                return Continuation(at, broken=before != end.decided)
        return Continuation(0, left=bool(asked.caller.session) and asked.thread in self._threads)


def _sum(at: int, text: str) -> bytes:
    return blake2b(f"{at}:{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


# --- The shadows that are open: found by their conversation, opened, begun, closed.


KEPT = 4_096
"""Decisions about results that are remembered for mirrored sessions."""


class MirrorPool:
    """The mirrored sessions that are open, each in a loop of its own: the newest so many."""

    def __init__(self, rules: MirrorOptions, log: DecisionLog, most: int = 24) -> None:
        self._rules = rules
        self._log = log
        self._most = most
        self._open: dict[str, MirrorSession] = {}  # by session
        self._closing: dict[str, Future[None]] = {}  # by session
        self._opening = LockTable()
        self.decided: Decided = {}

    def keep(self, key: tuple[str, str, str], decided: ResultDecided) -> None:
        """Remember what was decided of a result until its mirrored session has it."""
        if len(self.decided) >= KEPT:
            del self.decided[next(iter(self.decided))]
        self.decided[key] = decided

    async def of(self, asked: InterceptedRequest) -> MirrorSession:
        """The mirrored session of a conversation, in use from now on; opened, or begun."""
        async with self._opening.of(asked.main):
            wanted = self._session(asked)
            found = self._open.pop(wanted, None) if wanted else None
            if found is None or found.failed:
                await self._end_turns(asked.folder)
                if found is not None:
                    self._close(found)
                found = await self._start_mirror(asked, "" if found else wanted)
            self._open[found.session.id] = found
            found.uses += 1
            self._close_oldest()
            return found

    async def _end_turns(self, folder: str) -> None:
        """Another conversation begins in a project: what was said in others is learned first."""
        others = [shadow for shadow in self._open.values() if shadow.project == folder]
        await _all_of((shadow.learn() for shadow in others), LEARN_SECONDS)

    def _session(self, asked: InterceptedRequest) -> str:
        decisions = self._log.decisions
        if asked.caller.session:
            return decisions.sessions.get(asked.main, ("", ""))[0]
        known = decisions.positions.get(asked.main, {})
        again = asked.body.parts[-1].chain.hex() if asked.body.parts else ""  # the same, once more
        return next((known[at].session for at in (again, *asked.chains()) if at in known), "")

    async def _start_mirror(self, asked: InterceptedRequest, session: str) -> MirrorSession:
        if session in self._closing:
            await _all_of([self._closing[session]], None)
        loop = LoopThread("reverie-mirror", daemon=True)
        try:
            return await loop.do(self._begin_mirror(loop, asked, session))
        except BaseException:
            loop.stop()
            raise

    async def _begin_mirror(
        self, loop: LoopThread, asked: InterceptedRequest, session: str
    ) -> MirrorSession:
        project = self._rules.project_of(asked)
        opened = await self._open_session(project, asked, session)
        if session != opened.id:
            self._log.note([session_line(asked.main, opened.id, asked.folder)])
        rules = None
        if opened.memories is not None:
            found = ProjectRules(opened.memories, project.root, project.cwd, project.user_home)
            rules = CallRules(found, opened.id)
        learns = opened.memories is not None and (
            opened.interactive or project.flags.on("extract_noninteractive")
        )
        note = self._rules.note_turn
        path = opened.library.path / f"{opened.id}.jsonl"
        return MirrorSession(
            loop,
            opened,
            asked.main,
            asked.folder,
            self._log,
            self.decided,
            rules,
            partial(note, project, path, asked.caller.session or opened.id)
            if note and learns
            else None,
        )

    async def _open_session(
        self, project: Project, asked: InterceptedRequest, session: str
    ) -> Session:
        rules = self._rules
        model = rules.worker(str(asked.body.members.get("model") or "unknown"), project.settings)
        memories = rules.open_memory(project) if asked.memory else None
        wish = partial(
            SessionOptions,
            project.cwd,
            model=model,
            place=project,
            say=rules.say,
            when_added=(),
            before_a_request=(),
            memories=memories,
            interactive=rules.learns and asked.attended,
        )
        if session:
            try:
                return await begin_session(wish(resume=session))
            except (Held, NotFound):
                pass  # another process follows it, or it was removed: go on in one of our own
        return await begin_session(wish())

    def _close_oldest(self) -> None:
        over = len(self._open) - self._most
        idle = [name for name, shadow in self._open.items() if not shadow.uses]
        for name in idle[: max(0, over)]:
            self._close(self._open.pop(name))

    def _close(self, shadow: MirrorSession) -> None:
        """Begin to close one; nobody waits for it but whoever wants that session again."""
        name = shadow.session.id
        self._closing[name] = closing = shadow.close()
        closing.add_done_callback(lambda _: self._closing.pop(name, None))

    async def aclose(self) -> None:
        """Close all, each after what it still has to do."""
        for shadow in self._open.values():
            self._close(shadow)
        self._open.clear()
        await _all_of(list(self._closing.values()), None)


async def _all_of(work: Iterable[Future[None]], seconds: float | None) -> None:
    """Wait for work of other loops; it goes on where the time is over."""
    import asyncio

    under_way = [asyncio.wrap_future(one) for one in work]
    if under_way:
        await asyncio.wait(under_way, timeout=seconds)


class LockTable:
    """A lock for each name; those that nobody holds go where there are too many."""

    def __init__(self) -> None:
        self._locks: dict[str, anyio.Lock] = {}

    def of(self, name: str) -> anyio.Lock:
        if len(self._locks) > MOST:
            self._locks = {k: v for k, v in self._locks.items() if v.locked()}
        return self._locks.setdefault(name, anyio.Lock())
