"""The six walks: which files somebody reads to follow one thing through the code.

A walk is what runs, not what is imported: every file of `src/reverie` in which a function is
called while a session makes a request, extracts, dreams or is resumed, a memory is searched, or
the proxy forwards a request, with the embedded model and real files. `budgets.toml` has their
ceilings.

    python -m scripts.walks            print how many files each has
    python -m scripts.walks --list     print the files, by folder
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from types import FrameType

import anyio

import reverie
from reverie import testing
from reverie.agent import Agent, AgentOptions, open_agent
from reverie.embedded import EmbeddedModel
from reverie.session import Session, open_session, project_at, session_memory
from reverie.wire import tool_result
from reverie.world import complete, say_nothing
from tests.proxy.proxied import proxied

SOURCE = os.path.dirname(reverie.__file__) + os.sep
ABOUT = {
    "request": "`session.add`, `prepare`, `observe` and a result: two rounds of a loop",
    "search": "`Memory.search` in a project with memories",
    "resume": "`open_session(resume=…)` to the next request",
    "extraction": "`session.end_turn` to the memory that landed",
    "dream": "`session.dreams.start` to the landed dream",
    "proxied": "a conversation's second request through the proxy to the simulated provider",
}
PATIENCE = 60.0
SETTLED = 3.0  # seconds in which the first request's background work ends
TOLD = "From now on, run the tests before every commit."
POINTER = "Bugs are tracked in the Linear project ORDERS."
AGAIN = "Remember that bugs are tracked in the Linear project ORDERS"
QUESTION = "Where are bugs tracked?"


class Walker:
    """Notes the file of every function that is called, in any thread, while it is told to."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def _called(self, frame: FrameType, event: str, arg: object) -> None:
        del arg
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE) and code.co_name[0] != "<":
            self._files.add(code.co_filename.removeprefix(SOURCE))

    @contextmanager
    def walk(self) -> Iterator[set[str]]:
        found = self._files = set()
        try:
            yield found
        finally:
            self._files = set()


class Stage:
    """A project with a home of its own, and agents in it."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.home = folder / "home"
        self.model = EmbeddedModel()
        self.environ = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "REVERIE_SELECTOR_MILLISECONDS": "5000",
        }
        self.project.mkdir()
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)

    def agent(self):
        options = AgentOptions(self.project, home=self.home, mode="allow", environ=self.environ)
        return open_agent(options, self.model)

    async def told(self, agent: Agent, words: str) -> None:
        await agent.turn(words)
        await drained(agent.session)


async def drained(session: Session) -> None:
    for name in session.jobs.running:
        await session.jobs.wait(name, PATIENCE)
    await session.flush()


async def asked(stage: Stage, session: Session, words: str) -> None:
    await session.add(words)
    await session.observe(await complete(stage.model, await session.prepare()))


async def walks(folder: Path) -> dict[str, list[str]]:
    """Return the files of each walk, by its name."""
    walker, stage = Walker(), Stage(folder)
    out: dict[str, set[str]] = {}
    async with stage.agent() as agent:
        session = agent.session
        with walker.walk() as out["request"]:
            await session.add("read notes.txt")
            request = await session.prepare()
        called = await complete(stage.model, request)
        with walker.walk() as more:
            reply = await session.observe(called)
            await session.add(tool_result(reply.tool_calls[0].id, "one"))
            await session.prepare()
        out["request"] |= more
        await session.end_turn()
        await drained(session)
        await asked(stage, session, TOLD)
        with walker.walk() as out["extraction"]:
            await session.end_turn()
            await drained(session)
        await stage.told(agent, POINTER)
    memory = reverie.Memory(stage.project, home=stage.home)
    memory.search(QUESTION)
    with walker.walk() as out["search"]:
        assert memory.search(QUESTION)
    async with stage.agent() as agent:
        await stage.told(agent, AGAIN)
        last = agent.session.id
    async with stage.agent() as agent:
        with walker.walk() as out["dream"]:
            await agent.session.dreams.start(agent.session)
            await drained(agent.session)
    with walker.walk() as out["resume"]:
        await _resumed(stage, last)
    out["proxied"] = await anyio.to_thread.run_sync(_proxied, walker, folder / "proxied")
    return {name: sorted(out[name]) for name in ABOUT}


async def _resumed(stage: Stage, last: str) -> None:
    place = project_at(stage.project, stage.home, stage.environ)
    memories = session_memory(place, time.time, say_nothing)
    async with open_session(
        stage.project,
        model=stage.model,
        resume=last,
        home=stage.home,
        environ=stage.environ,
        memories=memories,
    ) as resumed:
        await resumed.add("Go on")
        await resumed.prepare()
    if memories is not None:
        memories.close()


def _proxied(walker: Walker, folder: Path) -> set[str]:
    def body(*texts: str) -> dict[str, object]:
        roles = ("user", "assistant")
        messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
        named = {"model": "claude-sonnet-4-5", "max_tokens": 64, "metadata": {"user_id": "ada"}}
        return {**named, "messages": messages}

    with (
        testing.provider(["One.", "Two."]) as upstream,
        proxied(folder, upstream.anthropic_url) as proxy,
    ):
        first = proxy.post("anthropic/v1/messages", body(QUESTION)).json()["content"][0]["text"]
        time.sleep(SETTLED)
        with walker.walk() as found:
            proxy.post("anthropic/v1/messages", body(QUESTION, first, "Go on")).raise_for_status()
            time.sleep(SETTLED)
        return found


def listing(found: dict[str, list[str]]) -> Iterator[str]:
    """Yield the lines that list the walks: by folder, in the order of the tree."""
    for name, files in found.items():
        yield f"{name}, {len(files)} files: {ABOUT[name]}"
        for folder, inside in groupby(sorted(files, key=_by_folder), key=os.path.dirname):
            names = " ".join(os.path.basename(file).removesuffix(".py") for file in inside)
            line = f"{(folder or '.') + '/':<21} {names}"
            yield from textwrap.wrap(line, 100, subsequent_indent=" " * 22)


def _by_folder(file: str) -> tuple[str, str]:
    return os.path.dirname(file), file


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = anyio.run(walks, Path(folder))
    sys.setprofile(None)
    counts = (f"{name} {len(files)}" for name, files in found.items())
    print("\n".join(listing(found) if "--list" in sys.argv else counts))


if __name__ == "__main__":
    main()
