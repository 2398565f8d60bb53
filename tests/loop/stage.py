"""What the tests of the loop stand on: tools and a model at the ports, and a folder.

The model is the simulated provider, which refuses what a real one would refuse: orphaned
calls and results, wrong order, empty content.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio

from reverie.session import Session, open_session
from reverie.simulator import Engine, SimulatedModel, call, script
from reverie.toolbox import Registry, Tool, ToolContext, ToolOutput
from reverie.transcript import Block, UserMessage, parse
from reverie.wire import ToolCall, tool_result
from reverie.world import Notice

Given = dict[str, Any]
NOON = 1_780_000_000.0


class SimpleTools:
    """Tools by name, as coroutines from their input to a text."""

    def __init__(self, **tools: Callable[[Given], Awaitable[str]]) -> None:
        self.tools = tools
        self.registry = Registry([Tool(n, "", {}, _unused, read_only=True) for n in tools])
        self.running = 0
        self.ran: list[str] = []

    async def run(self, call: ToolCall) -> UserMessage:
        value = parse(call.raw)
        self.running += 1
        try:
            text = await self.tools[call.name](value if isinstance(value, dict) else {})
        finally:
            self.running -= 1
        self.ran.append(call.name)
        return tool_result(call.id, text)


async def _unused(given: Given, context: ToolContext) -> ToolOutput:
    raise AssertionError("SimpleTools runs its own")


async def echo(given: Given) -> str:
    return f"echo {given.get('text', '')}"


def simulated(*answers: Any, otherwise: Any = "(no more)") -> SimulatedModel:
    """A simulated model that plays a script."""
    return SimulatedModel(Engine(script(*answers, otherwise=otherwise)))


def calls(*named: tuple[str, Mapping[str, Any]]) -> list[Block]:
    """An answer that calls tools, with ids the engine gives."""
    return [call(name, dict(given)) for name, given in named]


def opened(
    tmp: Path, model: Any, notices: list[Notice] | None = None, **options: Any
) -> AbstractAsyncContextManager[Session]:
    """A session in a project and home below `tmp`."""
    project = tmp / "project"
    project.mkdir(exist_ok=True, parents=True)
    heard: list[Notice] = [] if notices is None else notices
    head = {"system": "You help.", "tools": [TOOL], **options}
    # these tests count what the main agent sends: no notes are taken beside it
    environ = {"HOME": str(tmp), "REVERIE_FLAG_SESSION_MEMORY": "0"}
    given = {"environ": environ, "home": tmp / "home", "say": heard.append, **head}
    return open_session(project, model=model, **given)


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something outside this program; fails where it does not come."""
    with anyio.fail_after(30):
        while not holds():  # noqa: ASYNC110 - other processes set no event
            await anyio.sleep(0.01)


def alive(marker: str) -> list[int]:
    """Processes whose command line has the marker, other than this one."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


async def gone(marker: str) -> None:
    """Wait until no process has the marker in its command line."""
    await until(lambda: not alive(marker))


TOOL = {"name": "echo", "description": "Says it again", "input_schema": {"type": "object"}}
