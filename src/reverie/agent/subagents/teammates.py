"""Teammates: agents in processes of their own, as their lead sees them.

Each is started under a keeper (`tools.process`), which ends it and all it started when it is told
to, when the lead goes, and when the lead's process is killed: none is left. It is told what it
needs through its standard input, its key for letters among it, and tells how it stands, a JSON
line at a time, on its output. One that dies is started again, twice at most, and goes on with its
transcript and its mail. One that does not answer a request to shut down in its time is ended.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import anyio
from anyio import to_thread
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from reverie import programs
from reverie.agent.mail.mailbox import LeaderMailboxes
from reverie.agent.mail.messages import LEAD, AgentMessage
from reverie.agent.subagents import spawn
from reverie.agent.subagents.registry import AgentRecord, AgentType
from reverie.agent.subagents.spawn import Worktree
from reverie.concurrency import alone
from reverie.errors import NotFound
from reverie.session.jobs import LoopTasks
from reverie.toolbox.process import Command, start_process
from reverie.transcript.records import ForkEnded, Usage
from reverie.world import Notice

if TYPE_CHECKING:
    from reverie.agent.subagents.pool import AgentPool, AgentRequest

PROGRAM = "reverie.agent.subagents.teammate_process"
MAX_RESTARTS = 2
MAX_LINE = 64 * 1024
_COUNTS = ("requests", "tokens")


@dataclass
class _TeammateProcess:
    """One teammate's process."""

    member: AgentRecord
    hello: dict[str, Any]
    tree: Worktree | None
    control: int = -1  # what its standard input is read from
    ended: bool = False  # it is not to be started again
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    over: anyio.Event = field(default_factory=anyio.Event)
    usage: Usage = field(default_factory=Usage)


class Teammates:
    """The teammates of one session."""

    def __init__(self, crew: AgentPool, mail: LeaderMailboxes) -> None:
        self._crew = crew
        self._mail = mail
        self._keys = mail.keys
        self._running: dict[str, _TeammateProcess] = {}
        self._tasks = LoopTasks()
        self._closing = False

    # --- one more

    async def start(
        self, member: AgentRecord, type_: AgentType, wanted: AgentRequest, tree: Worktree | None
    ) -> None:
        """Start a process; it works when this returns."""
        hello = self._hello(member, type_, wanted, tree)
        running = _TeammateProcess(member, hello, tree)
        self._running[member.name] = running
        for other in self._running.values():
            if other is not running:
                self._introduce(other, member.name)
        self._crew.changed(member)
        self._tasks.start_soon(lambda: self._live(running))

    def _hello(
        self, member: AgentRecord, type_: AgentType, wanted: AgentRequest, tree: Worktree | None
    ) -> dict[str, Any]:
        ground = self._crew.ground
        place = ground.place
        return {
            "session": ground.session,
            "id": member.id,
            "name": member.name,
            "task": wanted.task,
            "plan": wanted.plan,
            "project": str(place.cwd),
            "home": str(place.home),
            "worktree": str(tree.path) if tree else "",
            "model": type_.model or self._crew.model.name,
            "mode": "deny" if ground.mode == "ask" else ground.mode,
            "type": {
                "name": type_.name,
                "about": type_.about,
                "prompt": type_.prompt,
                "tools": type_.tools,
                "memory": type_.memory,
            },
            "secret": self._keys.secret(member.name).hex(),
        }

    def _peers(self, name: str) -> dict[str, str]:
        """What a teammate checks the others' letters with."""
        others = [LEAD, *(other for other in self._running if other != name)]
        return {other: (self._keys.key(other, name) or b"").hex() for other in others}

    def _introduce(self, running: _TeammateProcess, name: str) -> None:
        key = self._keys.key(name, running.member.name) or b""
        _write(running.control, {"peer": name, "key": key.hex()})

    # --- its process

    async def _live(self, running: _TeammateProcess) -> None:
        """Its process, and another where it dies, until it is over."""
        member, why = running.member, ""
        try:
            with running.scope:
                while True:
                    code, fault = await alone(self._process(running), -1)
                    why = fault or f"its process ended with code {code}"
                    if running.ended or code == 0 or member.restarts >= MAX_RESTARTS:
                        break
                    member.restarts += 1
                    self._say(f"{member.name} died and is started again: {why}")
        finally:
            with anyio.CancelScope(shield=True):
                await self._over(running, why)
            running.over.set()

    async def _process(self, running: _TeammateProcess) -> int:
        ground = self._crew.ground
        theirs, ours = os.pipe()
        command = Command(
            programs.python(PROGRAM),
            ground.place.cwd,
            ground.place.environ,
            stdin=theirs,
        )
        try:
            async with start_process(command, apart=True) as process:
                os.close(theirs)
                theirs = -1
                hello = {**running.hello, "peers": self._peers(running.member.name)}
                await to_thread.run_sync(_write, ours, hello, abandon_on_cancel=True)
                os.set_blocking(ours, False)  # what it does not read is not waited for
                running.control = ours
                async with anyio.create_task_group() as group:
                    group.start_soon(self._errors, running, process)
                    await self._read_output(running, process)
                return await process.wait()
        finally:
            running.control = -1
            os.close(ours)
            if theirs >= 0:
                os.close(theirs)

    async def _read_output(self, running: _TeammateProcess, process: Process) -> None:
        """What it tells of itself."""
        rest = ""
        async for text in TextReceiveStream(process.stdout, errors="replace"):  # type: ignore[arg-type]
            *lines, rest = (rest + text).split("\n")
            rest = rest[-MAX_LINE:]
            for line in lines:
                with contextlib.suppress(ValueError, RecursionError):
                    value: object = json.loads(line)
                    if isinstance(value, dict):
                        self._update_member(running, cast("dict[str, Any]", value))

    async def _errors(self, running: _TeammateProcess, process: Process) -> None:
        said = ""
        async for text in TextReceiveStream(process.stderr, errors="replace"):  # type: ignore[arg-type]
            said = (said + text)[-2_000:]
            running.member.taken["errors"] = said

    def _update_member(self, running: _TeammateProcess, value: Mapping[str, Any]) -> None:
        member = running.member
        state = value.get("state")
        if state in ("running", "idle") and member.is_open:
            member.state = state
        if isinstance(value.get("doing"), str):
            member.doing = value["doing"][:80]
        for name in _COUNTS:
            if isinstance(value.get(name), int):
                setattr(member, name, value[name])
        if isinstance(value.get("weighted"), (int, float)):
            member.weighted = float(value["weighted"])
        used = value.get("usage")
        if isinstance(used, list) and all(isinstance(n, int) for n in cast("list[object]", used)):
            running.usage = Usage(*cast("list[int]", used)[:5])
        if value.get("leaving") is True:
            running.ended = True

    # --- letters

    def send(self, letter: AgentMessage) -> None:
        running = self._running.get(letter.to)
        if running is None:
            raise NotFound("there is no such teammate", where=letter.to)
        self._mail.put(letter)
        _write(running.control, {"mail": True})
        if letter.kind == "shutdown_request" and letter.sender == LEAD:
            self._tasks.start_soon(lambda: self._shut_down(running))

    async def _shut_down(self, running: _TeammateProcess) -> None:
        """One that was asked to end, and says neither yes nor no in its time, is ended."""
        member = running.member
        seconds = self._crew.ground.settings.agent_shutdown_seconds
        answered = False
        with anyio.move_on_after(seconds):
            while not running.over.is_set() and not answered:
                answered = self._has_refused(member.name)
                await anyio.sleep(0.05)
        if running.over.is_set() or answered:
            return
        member.reason = f"it did not answer a request to shut down in {seconds:g} s"
        self._say(f"{member.name} is ended: {member.reason}")
        await self.end(member.name)

    def _has_refused(self, name: str) -> bool:
        """Whether it has said no, and why stands in the lead's mail."""
        waiting = self._mail.own.waiting({}, bounded=False)
        mine = (one for one in waiting if one.sender == name)
        return any(one.kind == "shutdown_response" and one.approve is False for one in mine)

    # --- the end

    async def end(self, name: str) -> None:
        """End a teammate and all it started."""
        running = self._running.get(name)
        if running is None:
            return
        running.ended = True
        running.scope.cancel()
        await running.over.wait()

    async def _over(self, running: _TeammateProcess, why: str) -> None:
        member = running.member
        clean_end = running.ended and not member.reason
        member.state = "completed" if clean_end else "cancelled" if running.ended else "failed"
        member.reason = "" if clean_end else member.reason or why
        if member.state == "failed" and member.taken.get("errors"):
            last = str(member.taken["errors"]).strip().rpartition("\n")[2]
            member.reason = f"{member.reason}: {last}"[:500]
        if running.tree is not None:
            settled = spawn.settle(running.tree, self._crew.ground.place.environ)
            kept, _ = await alone(settled, None)
            member.worktree = kept.path if kept else str(running.tree.path)
        self._running.pop(member.name, None)
        outcome = "completed" if member.state == "completed" else "cancelled"
        self._crew.session.hand(
            ForkEnded("agent", member.id, running.usage, member.requests, outcome)
        )
        self._crew.ended(member)
        if not self._closing:
            why = f": {member.reason}" if member.reason else ""
            tree = f" Its worktree is {member.worktree}." if member.worktree else ""
            self._crew.tell(member, f"[This teammate is over, {member.state}{why}.{tree}]")
        self._say(f"{member.name} {member.state}" + (f": {member.reason}" if member.reason else ""))

    async def aclose(self) -> None:
        """End all of them, the newest first."""
        self._closing = True
        for name in reversed(tuple(self._running)):
            await self.end(name)
        await self._tasks.aclose()

    def _say(self, text: str) -> None:
        self._crew.ground.say(Notice("agents", text, "info"))


def _write(control: int, value: Mapping[str, Any]) -> None:
    if control < 0:
        return
    data = json.dumps(value).encode() + b"\n"
    with contextlib.suppress(OSError):  # it is gone, which its process tells
        while data:
            data = data[os.write(control, data) :]
