"""The async face: the same methods, the same signatures, through a worker thread."""

from __future__ import annotations

import inspect
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie import Agent, Fitter, Memory, Session, Toolset
from reverie.agent import BlockingAgent, BlockingSession
from reverie.context import AsyncFitter
from reverie.errors import InvalidInput, StoreError
from reverie.memory import AsyncMemory
from reverie.toolbox import AsyncToolset
from scripts import generate

pytestmark = pytest.mark.spec("18.faces")


def public(of: type) -> set[str]:
    return {name for name in vars(of) if not name.startswith("_")}


FACES: list[tuple[Any, Any]] = [
    (Memory, AsyncMemory),
    (Fitter, AsyncFitter),
    (Toolset, AsyncToolset),
]


@pytest.mark.parametrize(("blocking", "waiting"), FACES)
def test_both_faces_have_the_same_names_and_signatures(blocking: Any, waiting: Any) -> None:
    assert public(blocking) - {"aio", "personal"} == public(waiting)
    for name in public(waiting):
        one, other = getattr(blocking, name), getattr(waiting, name)
        if isinstance(one, property):
            assert isinstance(other, property)
            continue
        assert inspect.signature(one) == inspect.signature(other), name
        assert inspect.iscoroutinefunction(other)
        assert inspect.getdoc(one) == inspect.getdoc(other)


@pytest.mark.parametrize("face", generate.FACES, ids=lambda face: face.name)
def test_the_generated_types_are_current(face: generate.Face) -> None:
    assert face.path.read_text(encoding="utf-8") == face.text()


def test_a_fitter_and_a_toolset_wait_in_a_worker_thread(home: Path) -> None:
    async def work() -> None:
        memory = Memory("shop")
        await memory.aio.add("The shop sells zebras", name="zebra")
        messages = [{"role": "user", "content": "Which zebras does the shop sell?"}]
        async with Fitter(model="gpt-5", memory=memory).aio as fitter:
            sent = await fitter.fit(messages)
            assert "sells zebras" in str(sent[1])
            assert await fitter.learn(messages) == []
        function = {"name": "search_memory", "arguments": '{"query": "zebra"}'}
        asked = {"id": "c1", "type": "function", "function": function}
        answer = await memory.tools.aio.handle(asked)
        assert "sells zebras" in answer["content"]

    anyio.run(work)


def test_a_task_keeps_and_finds_in_a_worker_thread(home: Path) -> None:
    threads: list[str] = []

    async def work() -> list[str]:
        async with Memory("shop", on_notice=print).aio as memory:
            await memory.add("The shop sells zebras", name="zebra")
            threads.append(threading.current_thread().name)
            async with anyio.create_task_group() as group:
                for n in range(4):
                    group.start_soon(memory.add, f"Zebra {n} is striped")
            found = [str(one) for one in await memory.search("zebra", limit=9)]
            assert memory.folder.is_dir()
            with pytest.raises(InvalidInput):
                await memory.add("")
        with pytest.raises(StoreError, match="closed"):
            await memory.list()
        return found

    assert len(anyio.run(work)) == 5


def test_what_is_no_method_is_as_it_was_and_nothing_private_shows(home: Path) -> None:
    face = Memory("shop").aio
    assert set(dir(face)) == public(AsyncMemory) | {"personal"}
    for name in ("_address", "aio", "nothing"):
        with pytest.raises(AttributeError):
            getattr(face, name)
    assert repr(face) == "<Memory shop>.aio"


@pytest.mark.parametrize(("made", "face"), [(Session, BlockingSession), (Agent, BlockingAgent)])
def test_what_waits_has_the_names_and_signatures_of_what_is_async(made: type, face: type) -> None:
    assert public(made) - {"open", "start"} == public(face)
    for name in public(face):
        waited, async_ = getattr(face, name), getattr(made, name)
        if isinstance(async_, property):
            assert isinstance(waited, property)
            continue
        given = inspect.signature(async_).parameters
        assert list(given.values()) == list(inspect.signature(waited).parameters.values()), name
        assert not inspect.iscoroutinefunction(waited)
        assert inspect.getdoc(async_) == inspect.getdoc(waited)


def test_the_generated_types_of_blocking_are_current() -> None:
    assert generate.BLOCKING.read_text(encoding="utf-8") == generate.blocking_faces()
