"""A turn that ends early, at any point: the transcript stays whole, and nothing is left running."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine, Generator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import lowlevel

from reverie.agent import AgentOptions, open_agent
from reverie.apps.cli import AnswerScreen, ChatController, TurnCancelled
from reverie.session import EVENTS, SessionLibrary, run_turn
from reverie.simulator import SimulatedModel
from reverie.store import Project
from reverie.toolbox import Command, OutputBuffer, Registry, Tool, ToolContext, ToolOutput, run
from reverie.transcript import AssistantMessage, Sent, TurnEnded, UserMessage
from reverie.wire import Request
from reverie.world import Capabilities, Event
from tests.conftest import Scale
from tests.faults import Death, copies, every_kill, in_copies, open_files, quick_folder
from tests.loop.stage import Given, SimpleTools, calls, gone, opened, simulated, until

pytestmark = pytest.mark.spec("13.cancel")


class Stepped:
    """A coroutine that calls `at_step` when it is about to wait for the nth time."""

    def __init__(self, work: Coroutine[Any, Any, Any], n: int, at_step: Any) -> None:
        self.work, self.n, self.at_step = work, n, at_step
        self.waited = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        step: Any = self.work.send
        given: Any = None
        while True:
            try:
                waits_for = step(given)
            except StopIteration as end:
                return end.value
            self.waited += 1
            if self.waited == self.n:
                self.at_step()
            try:
                given = yield waits_for
                step = self.work.send
            except BaseException as error:  # noqa: BLE001 - handed on as it is
                given, step = error, self.work.throw


async def work_on(given: Given) -> str:
    for _ in range(given["steps"]):
        await lowlevel.checkpoint()
    return f"{given['steps']} steps"


THREE = calls(*(("work", {"steps": n}) for n in (1, 5, 30)))


async def test_cancelled_at_every_wait_a_turn_leaves_a_transcript_that_goes_on(
    scale: Scale,
) -> None:
    """Every place where the turn waits, one after another, with three tools side by side."""
    n, kept, cut = 0, 0, 0
    while True:
        n += 1
        with quick_folder() as folder:
            model = simulated(THREE, "done", otherwise="after")
            tools = SimpleTools(work=work_on)
            async with opened(folder, model) as session:
                with anyio.CancelScope() as scope:
                    turn = Stepped(run_turn(session, model, tools, "go"), n, scope.cancel)
                    await turn
                assert tools.running == 0
                assert session.view.open_calls == ()
                said = [e.record for e in session.view.entries]
                for record in said:
                    assert not isinstance(record, AssistantMessage) or record.stop_reason
                if any(isinstance(r, UserMessage) for r in said):
                    assert isinstance(said[-1], TurnEnded)
                kept += sum(isinstance(r, UserMessage) and r.origin == "tool" for r in said)
                cut += sum(isinstance(r, UserMessage) and r.origin == "interrupted" for r in said)
                first = session.id
            async with opened(folder, model, resume=first) as session:
                before = session.last_request
                result = await run_turn(session, model, tools, "again")
                assert result.outcome == "completed"
                assert before is None or session.last_request is not None
            if not scope.cancelled_caught:
                break
    assert n > 6  # short entries are written without a wait
    assert kept > 0
    assert cut > 0


async def test_results_that_were_ready_are_kept(tmp_path: Path) -> None:
    ready = anyio.Event()

    async def quick(given: Given) -> str:
        return "ready"

    async def slow(given: Given) -> str:
        ready.set()
        await anyio.sleep_forever()
        return ""

    tools = SimpleTools(quick=quick, slow=slow)
    model = simulated(calls(("quick", {}), ("slow", {}), ("quick", {})), "again")
    async with opened(tmp_path, model) as session:
        async with anyio.create_task_group() as group:
            group.start_soon(run_turn, session, model, tools, "go")
            await ready.wait()
            for _ in range(20):
                await lowlevel.checkpoint()
            group.cancel_scope.cancel()
        await run_turn(session, model, tools, "go on")
    body = model.engine.log[-1].body
    assert body.count('"content":"ready"') == 2
    assert body.count("the call was interrupted before it finished") == 1


async def test_cancelling_the_stream_of_a_model_closes_it(tmp_path: Path) -> None:
    closed: list[str] = []

    class Hanging:
        name = "hanging"
        capabilities = Capabilities()

        async def stream(self, request: Request) -> AsyncIterator[Event]:
            try:
                await anyio.sleep_forever()
                yield simulated  # type: ignore[misc]
            finally:
                closed.append(request.last)

    model = Hanging()
    async with opened(tmp_path, model) as session:
        with anyio.move_on_after(0.05):
            await run_turn(session, model, SimpleTools(), "go")
        assert len(closed) == 1
        assert isinstance(session.view.entries[-1].record, TurnEnded)


# --- other processes


async def wait(given: dict[str, Any], context: ToolContext) -> ToolOutput:
    """A tool that runs a command and waits for it; harmless, so calls run side by side."""
    gathered = OutputBuffer(1_000)
    argv = ["/bin/sh", "-c", str(given["command"])]
    await run(Command(argv, context.cwd, context.environ), gathered, 60)
    return ToolOutput(gathered.text or "(nothing)")


EXTRACTION = "REVERIE_FLAG_EXTRACT_MEMORIES"  # these tests count what the main agent sends
WAIT = Tool("Wait", "Waits", {"type": "object"}, wait, read_only=True)


def wanted(folder: Path, **more: Any) -> AgentOptions:
    (folder / "project").mkdir(exist_ok=True)
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), EXTRACTION: "0"}
    return AgentOptions(folder / "project", home=folder / "home", environ=environ, **more)


def newest(folder: Path) -> str:
    library = SessionLibrary.of(Project.at(folder / "project", home=folder / "home", environ={}))
    return library.newest()


async def goes_on(folder: Path) -> None:
    """The session can be resumed, and what it sends is accepted."""
    model = simulated(otherwise="after")
    async with open_agent(wanted(folder, resume=newest(folder)), model) as agent:
        assert (await agent.turn("go on")).text == "after"
        sent = [e.record for e in agent.session.view.entries if isinstance(e.record, Sent)]
    assert [entry.status for entry in model.engine.log] == [200]
    assert sent


def test_killed_at_every_write_a_session_can_be_resumed(scale: Scale) -> None:
    """A turn with three commands side by side, killed at its system calls one by one."""
    marker = f"0.0{os.getpid()}"

    async def whole_turn(folder: Path, ack: Any) -> None:
        commands = [("Wait", {"command": f"echo {n}; sleep {marker}"}) for n in range(3)]
        model = simulated(calls(*commands), "done")
        async with open_agent(wanted(folder), model, registry=Registry([WAIT])) as agent:
            ack(agent.session.id)
            await agent.turn("go")

    def check(folder: Path, death: Death) -> None:
        if death.acked:
            anyio.run(goes_on, folder)
        anyio.run(gone, f"sleep {marker}")

    with quick_folder() as base:
        (base / "first").mkdir()
        tried = in_copies(copies(base / "first"), partial(anyio.run, whole_turn), check)
        whens = scale.pick(("before",), ("before", "after", "partial"))
        points = every_kill(*tried, whens=whens, stride=scale.pick(4, 1))
    assert points > scale.pick(15, 100)


STEPS = (
    "UserPromptSubmit",
    "first request",
    "mid-stream",
    "PreToolUse",
    "tools",
    "PostToolUse",
    "second request",
    "Stop",
)


class Course:
    """A scripted model that stops for ever at one step, having said so with a file."""

    def __init__(self, folder: Path, stop: str, marker: str) -> None:
        self.inner = SimulatedModel()
        self.name, self.capabilities = self.inner.name, self.inner.capabilities
        self.inner.engine.answerer = self.answer
        self.folder, self.stop = folder, stop
        sleep = f"sleep {marker}" if stop == "tools" else "true"
        self.commands = [
            ("Wait", {"command": f"touch {folder}/tool-{n}; {sleep}"}) for n in range(3)
        ]
        self.requests = 0

    def answer(self, body: Any) -> Any:
        return calls(*self.commands) if self.requests == 1 else "done"

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self.requests += 1
        step = "first request" if self.requests == 1 else "second request"
        await self.at(step)
        async for event in self.inner.stream(request):
            yield event
            await self.at("mid-stream")

    async def at(self, step: str) -> None:
        if step == self.stop:
            (self.folder / "there").touch()
            await anyio.sleep_forever()


def settings_with_a_hook(folder: Path, event: str, marker: str) -> None:
    (folder / "home").mkdir(mode=0o700)
    command = f"touch {folder}/there; sleep {marker} | sleep {marker}"
    rows = f'[{{"command": "{command}"}}]'
    (folder / "home" / "settings.json").write_text(f'{{"hooks": {{"{event}": {rows}}}}}')


def live(folder: Path, step: str, marker: str) -> int:
    """The child's life: a desk with one turn, as `reverie -p` has it."""
    model = Course(folder, step, marker)
    desk = ChatController(AnswerScreen())
    desk_tools = Registry([WAIT])
    with desk.open(wanted(folder), model, registry=desk_tools) as desk:
        try:
            desk.turn("go")
        except TurnCancelled:
            return 130
    return 0


def forked(folder: Path, step: str, marker: str) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        with (folder / "said").open("w") as said:
            os.dup2(said.fileno(), 2)
            code = live(folder, step, marker)
    except SystemExit as leaving:
        code = int(str(leaving.code))
    finally:
        os._exit(code)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("step", STEPS)
def test_ended_at_a_step_a_turn_leaves_no_orphan_and_no_process(step: str, number: int) -> None:
    marker = f"1000.{os.getpid()}{STEPS.index(step)}{int(number)}"
    with quick_folder() as folder:
        if step in EVENTS:
            settings_with_a_hook(folder, step, marker)
        child = forked(folder, step, marker)
        there = folder / "there"
        tools = [folder / f"tool-{n}" for n in range(3)]
        if step == "tools":
            anyio.run(until, lambda: all(t.exists() for t in tools))
        else:
            anyio.run(until, there.exists)
        os.kill(child, number)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        expected = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}
        assert status == expected[signal.Signals(number)], (folder / "said").read_text()
        anyio.run(gone, marker)
        (folder / "home" / "settings.json").unlink(missing_ok=True)
        anyio.run(goes_on, folder)


async def test_leaving_an_agent_ends_what_it_started_in_the_background(tmp_path: Path) -> None:
    marker = f"1000.{os.getpid()}99"
    command = {"command": f"sleep {marker}", "run_in_background": True}
    model = simulated(calls(("Bash", command)), "done")
    before = open_files()
    async with open_agent(wanted(tmp_path, mode="allow"), model) as agent:
        await agent.turn("go")
        assert agent.tasks == ("shell_1",)
        assert not await agent.kill("shell_2")
    await gone(marker)
    del agent
    gc.collect()
    assert (open_files() or 0) <= (before or 0)
