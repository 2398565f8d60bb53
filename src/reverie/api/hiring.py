"""From what a caller says to an agent at work, and how its turns are watched.

A model that is named and cannot be reached for want of a key is an error, never another model.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from reverie.agent.agent import SYSTEM, Agent, AgentOptions, open_agent
from reverie.api.memory import Memory
from reverie.api.turns import Event, Turn
from reverie.embedded import EmbeddedModel
from reverie.errors import InvalidInput
from reverie.layers.own import pairs
from reverie.providers.choose import model_for
from reverie.session.jobs import OwnTasks
from reverie.session.turn import TurnEvent, TurnLimits
from reverie.settings import Settings
from reverie.store.project import Project
from reverie.tools import Registry, standard
from reverie.tools.permissions import Asker, PermissionAnswer, Question
from reverie.tools.tool import Tool
from reverie.world import Model, notice_listener

if TYPE_CHECKING:
    from reverie.api.agents import AgentArguments


@asynccontextmanager
async def hired(wanted: AgentArguments) -> AsyncGenerator[tuple[Agent, Memory | None]]:
    """The agent, and its memory as callers know it."""
    say = notice_listener(wanted.on_notice)
    project, home, environ, settings = _ground(wanted)
    model = _model(wanted.model, environ, settings)
    options = AgentOptions(
        project,
        resume=wanted.resume,
        private=wanted.private,
        mode=wanted.mode,
        limits=wanted.limits or TurnLimits(),
        home=home,
        environ=environ,
        system=wanted.system or SYSTEM,
        settings=settings,
        layers=None if wanted.layers is None else pairs(wanted.layers),
    )
    try:
        async with open_agent(
            options,
            model,
            registry=_registry(wanted.tools),
            asker=_asker(wanted.ask),
            say=say,
        ) as agent:
            memory = Memory(project, home=home, settings=settings, on_notice=wanted.on_notice)
            yield agent, memory if agent.memories is not None else None
    finally:
        if model is not wanted.model:
            close = getattr(model, "aclose", None)
            if close is not None:
                with anyio.CancelScope(shield=True):
                    await close()


def _ground(wanted: AgentArguments) -> tuple[Path, Path, Mapping[str, str], Settings]:
    """Where it works, its home, the environment, and the settings that count."""
    folder = Path(os.path.abspath(wanted.project))
    found = Project.at(folder, home=wanted.home, settings=wanted.settings)
    return folder, found.home, found.environ, found.settings


def _model(given: str | Model, environ: Mapping[str, str], settings: Settings) -> Model:
    if not isinstance(given, str):
        return given
    return model_for(given, environ, settings) or EmbeddedModel(settings)


def _registry(tools: Sequence[str | Tool] | None) -> Registry | None:
    if tools is None:
        return None
    known, found = standard(), Registry(())
    for tool in tools:
        one = known.get(tool) if isinstance(tool, str) else tool
        if one is None:
            do = f"There are {', '.join(each.name for each in known)}"
            raise InvalidInput("there is no such tool", where=str(tool)[:80], do=do)
        found.add(one)
    return found


def _asker(ask: Any) -> Asker | None:
    """The caller's answer to a question, in whatever way it is given."""
    if ask is None:
        return None

    async def asker(question: Question) -> PermissionAnswer:
        answer = ask(question)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, PermissionAnswer):
            return answer
        return PermissionAnswer(bool(answer))

    return asker


async def streamed(agent: Agent, prompt: str) -> AsyncGenerator[Event | Turn]:
    """A turn in a task of its own, told as it happens; closing this ends it."""
    put, take = anyio.create_memory_object_stream[Event | Turn](math.inf)
    failed: list[BaseException] = []
    tasks = OwnTasks()

    def heard(event: TurnEvent) -> None:
        shown = Event.of(event)
        if shown is not None:
            put.send_nowait(shown)

    async def work() -> None:
        with put:
            try:
                done = await agent.turn(prompt, heard)
                put.send_nowait(Turn.of(done, free=agent.model.capabilities.free))
            except Exception as error:  # noqa: BLE001 - it goes on where the events are read
                failed.append(error)

    tasks.start_soon(work)
    try:
        with take:
            async for event in take:
                yield event
        if failed:
            raise failed[0]
    finally:
        with anyio.CancelScope(shield=True):
            await tasks.aclose()
