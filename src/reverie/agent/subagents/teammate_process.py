"""A teammate's own process: `python -P -m reverie.agent.subagents.teammate_process`, started by its
lead.

It reads who it is from its standard input, does its task, sends what it brings to the lead, and
then waits for letters, each of which begins another turn, until it agrees to shut down. Killed and
started again it goes on with its transcript, and no letter reaches it twice. It ends with its lead:
the keeper above it sees to that, and the end of its standard input too. Nobody can be asked for
permission here.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import anyio

from reverie.agent.mail.mailbox import AgentInbox, Mailbox
from reverie.agent.mail.messages import LEAD, AgentMessage, TeammateKeys, truncate_result
from reverie.agent.subagents.registry import AgentType
from reverie.agent.subagents.runner import doing
from reverie.agent.subagents.spawn import (
    AgentContext,
    AgentSpec,
    AllowedTools,
    RunningAgent,
    model_named,
    outcome_text,
    spawn_agent,
)
from reverie.agent.tools import send_tool
from reverie.errors import InvalidInput, NotAvailable, NotFound
from reverie.observer import SystemClock
from reverie.session.budget import Budget, weight
from reverie.session.library import SessionLibrary
from reverie.session.open_memory import session_memory
from reverie.session.request_head import project_at
from reverie.session.rules import ProjectRules
from reverie.session.turn import ToolStarted, TurnEvent, TurnResult
from reverie.settings.sources import environment
from reverie.store.files import Folder
from reverie.store.home import tool_results_folder
from reverie.store.project import Project
from reverie.toolbox.kit import standard
from reverie.toolbox.permission_rules import load_rules
from reverie.toolbox.permissions import PermissionRoots
from reverie.wire.reply import Reply
from reverie.world import Notice

POLL = 0.2
"""Seconds between two looks into the mailbox, where nobody says that there is mail."""
SENDING = 60.0
"""Seconds for which a full mailbox of the lead's is tried again."""
CHANGES = frozenset({"Edit", "Write", "Bash"})
UNAPPROVED = "Your plan is not approved yet: send it to the lead, and wait for the answer."


class Teammate:
    """One teammate, from its lead's first words on."""

    def __init__(self, hello: Mapping[str, Any]) -> None:
        self.name = str(hello["name"])
        self._hello = hello
        environ = dict(environment())
        place = project_at(Path(hello["project"]), Path(hello["home"]), environ, self.say)
        self._clock = SystemClock()
        library = SessionLibrary.of(place)
        rules, _ = load_rules(place)
        stored = tool_results_folder(library.path, str(hello["session"]))
        self.ground = AgentContext(
            str(hello["session"]),
            place,
            library,
            standard(),
            PermissionRoots.of(place, readable=(stored,)),
            rules,
            hello["mode"],
            self._clock,
            place.flags,
            self.say,
            Budget(Folder(place.home), place.settings, self._clock),
            self._rules(place),
        )
        self._mail = Folder(library.path / str(hello["session"]) / "mail")
        peers = {name: bytes.fromhex(key) for name, key in dict(hello["peers"]).items()}
        self.keys = TeammateKeys(self.name, bytes.fromhex(hello["secret"]), peers)
        self._leaving = False
        self._approved = not hello.get("plan")
        self._nudged = anyio.Event()

    def _rules(self, place: Project) -> ProjectRules | None:
        memories = session_memory(place, self._clock.now, self.say)
        if memories is None:
            return None
        return ProjectRules(memories, place.root, place.cwd, place.user_home)

    def say(self, notice: Notice) -> None:
        if notice.level != "info":
            sys.stderr.write(f"{notice.layer}: {notice.text}\n")
            sys.stderr.flush()

    # --- its work

    async def run(self) -> None:
        """Until it agrees to shut down."""
        model = model_named(str(self._hello["model"]), self.ground)
        tree = self._hello.get("worktree") or ""
        send = send_tool(self.name, self.send, None, self._clock.now)
        hire = AgentSpec(
            str(self._hello["id"]), self.name, _type(self._hello["type"]),
            Path(tree) if tree else None, (send,),
        )  # fmt: skip
        async with spawn_agent(self.ground, hire, model) as agent:
            agent.tools = AllowedTools(agent.tools.box, self._refusal)
            agent.on_event = lambda event: self._saw(agent, event)
            mailbox = Mailbox(self._mail, self.name, self.keys, self.say)
            post = AgentInbox(lambda: agent.worker.view, [mailbox], self._read)
            agent.letters = post.letters
            await self._live(agent, post)

    async def _live(self, agent: RunningAgent, post: AgentInbox) -> None:
        if not _has_spoken(agent):
            await self._turn(agent, str(self._hello["task"]))
        elif _owes(agent):
            await self._turn(agent)
        else:  # it may have been ended between its last words and their way to the lead
            await self._bring(agent, _last_words(agent))
        while not self._leaving:
            said = post.letters()
            if said:
                await agent.hear(said)
                await self._turn(agent)
                continue
            self._tell(agent, "idle")
            self._nudged = anyio.Event()
            with anyio.move_on_after(POLL):
                await self._nudged.wait()

    async def _turn(self, agent: RunningAgent, task: str = "") -> None:
        """A turn, and what it brings, sent to the lead."""
        agent.rounds = 0
        self._tell(agent, "running")
        minutes = self.ground.settings.agent_minutes
        result = TurnResult("limit", reason=f"it took over {minutes:g} minutes")
        with anyio.move_on_after(minutes * 60):
            result = await agent.work(task)
        await agent.worker.sync()
        await self._bring(agent, outcome_text(result))
        self._tell(agent, "idle", leaving=self._leaving)

    async def _bring(self, agent: RunningAgent, text: str) -> None:
        """Send the lead what a turn brought: once, also where this process dies meanwhile."""
        box, at = Mailbox(self._mail, LEAD, self.keys), self._clock.now()
        leaf, key = agent.worker.view.leaf, f"brought/{self.name}"
        said = self._mail.read(key).decode() if self._mail.exists(key) else ""
        number = int(said.partition(" ")[0]) if said.endswith(f" {leaf}") else 0
        if not number:
            number = box.next_number(self.name)
            self._mail.write(key, f"{number} {leaf}".encode())
        letter = AgentMessage(
            self.name, LEAD, truncate_result(text), kind="result", number=number, at=at
        )
        with anyio.move_on_after(SENDING):
            while True:
                try:
                    box.put(letter)
                    return
                except NotAvailable:  # the lead has not read what it has
                    await anyio.sleep(POLL)

    def _refusal(self, tool: str) -> str:
        return UNAPPROVED if tool in CHANGES and not self._approved else ""

    # --- letters

    def send(self, letter: AgentMessage) -> tuple[str, ...]:
        names = [letter.to]
        if letter.to == "*":
            names = [name for name in self.keys.others if name != self.name]
        for name in names:
            if name != LEAD and name not in self.keys.others:
                known = ", ".join(self.keys.others)
                raise NotFound(
                    "there is no such teammate", where=name[:80], do=f"There are: {known}"
                )
        for name in names:
            sent = AgentMessage(
                self.name, name, letter.text, letter.summary, letter.kind, letter.approve,
                at=letter.at,
            )  # fmt: skip
            Mailbox(self._mail, name, self.keys).put(sent)
        if letter.kind == "shutdown_response" and letter.approve and LEAD in names:
            self._leaving = True
        return tuple(names)

    def _read(self, letter: AgentMessage) -> None:
        if letter.kind == "plan_approval_response" and letter.sender == LEAD and letter.approve:
            self._approved = True

    # --- its lead

    def _saw(self, agent: RunningAgent, event: TurnEvent) -> None:
        if isinstance(event, ToolStarted):
            self._tell(agent, "running", doing=doing(event.call))
        elif isinstance(event, Reply):
            self._tell(agent, "running")

    def _tell(self, agent: RunningAgent, state: str, **more: Any) -> None:
        usage, view = agent.worker.tally.usage, agent.worker.view
        value = {
            "state": state,
            "requests": agent.worker.tally.requests,
            "tokens": view.tokens,
            "weighted": round(weight(usage, self.ground.settings), 2),
            "usage": [usage.uncached, usage.read, usage.written, usage.output, usage.written_1h],
            **more,
        }
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()

    def told(self, line: str) -> None:
        """A line of the lead's, while it runs."""
        value = json.loads(line)
        if "peer" in value:
            self.keys.others[str(value["peer"])] = bytes.fromhex(value["key"])
        self._nudged.set()


def _type(value: Mapping[str, Any]) -> AgentType:
    tools = value["tools"]
    return AgentType(
        value["name"],
        value["about"],
        value["prompt"],
        None if tools is None else tuple(tools),
        memory=value["memory"],
    )


def _has_spoken(agent: RunningAgent) -> bool:
    return any(item.kind != "head" for item in agent.worker.view.items)


def _last_words(agent: RunningAgent) -> str:
    items = agent.worker.view.items
    return "".join(piece.block.text for piece in items[len(items) - 1].pieces)


def _owes(agent: RunningAgent) -> bool:
    """Whether its last words are somebody else's, or calls that got no results."""
    view = agent.worker.view
    items = view.items
    return bool(view.open_calls) or items[len(items) - 1].role == "user"


async def main() -> None:
    line = sys.stdin.readline()
    try:
        hello = cast("dict[str, Any]", json.loads(line))
    except ValueError:
        raise InvalidInput("this program is started by a lead session alone") from None
    teammate = Teammate(hello)
    async with anyio.create_task_group() as group:
        portal = anyio.from_thread.BlockingPortal()
        async with portal:

            def listen() -> None:
                for told in sys.stdin:
                    portal.call(teammate.told, told)
                os._exit(1)  # the lead is gone

            threading.Thread(target=listen, daemon=True).start()
            await teammate.run()
            group.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main)
