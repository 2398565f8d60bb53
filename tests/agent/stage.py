"""What the tests of agents stand on: a model that answers by who asks, and a project."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from reverie.agent import AgentOptions, open_agent
from reverie.simulator import Engine, LoggedRequest, SimulatedModel, call
from reverie.world import Notice

GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}


def git(root: Path, *words: str) -> str:
    named = ("-c", "user.name=A", "-c", "user.email=a@b.example")
    done = subprocess.run(
        ["git", *named, *words], cwd=root, check=True, env=GIT, capture_output=True, text=True
    )
    return done.stdout


def project_in(tmp: Path, *, commits: bool = True) -> Path:
    """A small project under git."""
    root = tmp / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "trunk")
    (root / "a.py").write_text("def total(prices):\n    return sum(prices)\n")
    if commits:
        git(root, "add", ".")
        git(root, "commit", "-q", "-m", "Add totals")
    return root


def environ_in(tmp: Path) -> dict[str, str]:
    """Surroundings in which agents alone run behind the lead."""
    off = ("SESSION_MEMORY", "EXTRACT_MEMORIES", "DREAM")
    flags = {f"REVERIE_FLAG_{name}": "0" for name in off}
    return {"HOME": str(tmp), "PATH": os.environ["PATH"], **flags}


def opened(
    tmp: Path, model: Any, notices: list[Notice] | None = None, **options: Any
) -> AbstractAsyncContextManager[Any]:
    """A lead in a project and home below `tmp`: an `Agent`, with a crew where it has one."""
    project = tmp / "project"
    if not project.exists():
        project_in(tmp)
    heard: list[Notice] = [] if notices is None else notices
    clock = options.pop("clock", None)
    asker = options.pop("asker", None)
    given = {"agents": True, "mode": "allow", "environ": environ_in(tmp), **options}
    return open_agent(
        AgentOptions(project, home=tmp / "home", **given),
        model,
        say=heard.append,
        clock=clock,
        asker=asker,
    )


class Cast:
    """Answers by who asks: the lead, or the agent whose task holds a word.

    An answer is a text, blocks, or a coroutine function that gives one; the last is given again.
    """

    def __init__(self, lead: Sequence[Any], **agents: Sequence[Any]) -> None:
        self.scripts: dict[str, Sequence[Any]] = {"lead": lead, **agents}
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def who(self, body: Mapping[str, Any]) -> str:
        leads = any(tool["name"] == "Agent" for tool in body.get("tools", ()))
        texts = [
            block["text"]
            for message in body["messages"]
            if message["role"] == "user"
            for block in message["content"]
            if isinstance(block, dict) and block["type"] == "text"
        ]
        told = [text for text in texts if not leads or text.startswith("fork ")]
        names = (name for text in told for name in self.scripts if f"task {name}" in text)
        return next(names, "lead")

    async def __call__(self, body: Mapping[str, Any]) -> Any:
        name = self.who(body)
        before = sum(other == name for other, _ in self.asked)
        self.asked.append((name, body))
        script = self.scripts[name]
        answer: Any = script[min(before, len(script) - 1)]
        if callable(answer):
            waited: Any = answer()
            return await waited
        return answer

    def requests(self, name: str) -> list[Mapping[str, Any]]:
        return [body for who, body in self.asked if who == name]

    def logged(self, log: Sequence[LoggedRequest], name: str) -> list[LoggedRequest]:
        """A provider's lines of the requests of one, by what they ask: of several at once the log
        has another order than the answers."""
        return [one for one in log if self.who(json.loads(one.body)) == name]


def cast(lead: Sequence[Any], **agents: Sequence[Any]) -> tuple[Cast, SimulatedModel]:
    played = Cast(lead, **agents)
    return played, SimulatedModel(Engine(played))


def agents(*wanted: Mapping[str, Any]) -> list[Any]:
    """An answer that starts agents."""
    return [call("Agent", {"description": "a task", **one}) for one in wanted]


def results(body: Mapping[str, Any]) -> list[str]:
    """The texts of the tool results in a request's last message."""
    found: list[str] = []
    for block in body["messages"][-1]["content"]:
        if block["type"] == "tool_result":
            content = block["content"]
            found.append(content if isinstance(content, str) else content[0]["text"])
    return found


def texts(body: Mapping[str, Any]) -> str:
    """Everything that the last message says beside results."""
    blocks = body["messages"][-1]["content"]
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")
