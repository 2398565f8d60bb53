"""The shadows that are open: found by their conversation, opened, begun, closed."""

from __future__ import annotations

from functools import partial

import anyio
from anyio import to_thread

from reverie.errors import Held, NotFound, ReverieError
from reverie.layers.extraction import NAME as EXTRACTION
from reverie.middleware.decisions import session_line
from reverie.middleware.log import DecisionLog
from reverie.middleware.outgoing import Asked
from reverie.middleware.ruling import CallRules
from reverie.middleware.shadow import Decided, Shadow, ShadowRules
from reverie.session.options import SessionOptions
from reverie.session.rules import ProjectRules
from reverie.session.session import Session, begin_session
from reverie.store.project import Project
from reverie.transcript.records import ResultDecided

KEPT = 4_096
"""Decisions about results that are remembered for shadows."""
LEARN_SECONDS = 1.0
"""How long a new conversation waits for what others of its project are being learned from."""


class Shadows:
    """The shadows that are open: the newest so many."""

    def __init__(self, rules: ShadowRules, log: DecisionLog, most: int = 24) -> None:
        self._rules = rules
        self._log = log
        self._most = most
        self._open: dict[str, Shadow] = {}  # by session
        self._opening = anyio.Lock()
        self.decided: Decided = {}

    def keep(self, key: tuple[str, str, str], decided: ResultDecided) -> None:
        """Remember what was decided of a result until its shadow has it."""
        if len(self.decided) >= KEPT:
            del self.decided[next(iter(self.decided))]
        self.decided[key] = decided

    async def of(self, asked: Asked) -> Shadow:
        """The shadow of a conversation, in use from now on; opened, or begun."""
        async with self._opening:
            wanted = self._session(asked)
            found = self._open.pop(wanted, None) if wanted else None
            if found is None or found.failed:
                await self._end_turns(asked.folder)
                found = await self._begun(asked, "" if found else wanted)
            self._open[found.session.id] = found
            found.uses += 1
            try:
                await self._close_oldest()
            except BaseException:
                found.uses -= 1
                raise
            return found

    async def _end_turns(self, folder: str) -> None:
        """Another conversation begins in a project: what was said in others is learned first."""
        for shadow in list(self._open.values()):
            if shadow.project == folder and not shadow.turn.locked():
                await shadow.end_turn()
                await shadow.session.jobs.wait(EXTRACTION, LEARN_SECONDS)

    def _session(self, asked: Asked) -> str:
        decisions = self._log.decisions
        if asked.caller.session:
            return decisions.sessions.get(asked.main, ("", ""))[0]
        known = decisions.positions.get(asked.main, {})
        again = asked.body.parts[-1].chain.hex() if asked.body.parts else ""  # the same, once more
        return next((known[at].session for at in (again, *asked.chains()) if at in known), "")

    async def _begun(self, asked: Asked, session: str) -> Shadow:
        project = await to_thread.run_sync(self._rules.project_of, asked)
        opened = await self._opened(project, asked, session)
        line = session_line(asked.main, opened.id, asked.folder)
        if session != opened.id:
            await to_thread.run_sync(self._log.note, [line])
        rules = None
        if opened.memories is not None:
            found = ProjectRules(opened.memories, project.root, project.cwd, project.user_home)
            rules = CallRules(found, opened.id)
        return Shadow(opened, asked.main, asked.folder, self._log, self.decided, rules)

    async def _opened(self, project: Project, asked: Asked, session: str) -> Session:
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
            interactive=rules.learns,
        )
        if session:
            try:
                return await begin_session(wish(resume=session))
            except (Held, NotFound):
                pass  # another process follows it, or it was removed: go on in one of our own
        return await begin_session(wish())

    async def _close_oldest(self) -> None:
        for name in list(self._open):
            if len(self._open) <= self._most:
                return
            if not self._open[name].uses:
                await _closed(self._open.pop(name))

    async def aclose(self) -> None:
        """Close all, each after what it still has to do."""
        for shadow in list(self._open.values()):
            await _closed(shadow)
        self._open.clear()


async def _closed(shadow: Shadow) -> None:
    try:
        await shadow.end_turn()
        await shadow.session.aclose()
    except ReverieError:
        return
    finally:
        if shadow.session.memories is not None:
            shadow.session.memories.close()
