"""Teammates: agents in processes of their own, their mail, and that none is left."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.providers import model_for
from reverie.simulator import call
from reverie.testing import provider
from reverie.world import Notice
from tests.loop.stage import alive, gone, until

from .stage import Cast, agents, cast, environ_in, opened, project_in, results, texts

pytestmark = [pytest.mark.spec("10.teammates")]
PROGRAM = "reverie.agent.subagents.teammate_process"


def surroundings(tmp: Path, url: str) -> dict[str, str]:
    return {**environ_in(tmp), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x"}


@asynccontextmanager
async def led(
    tmp: Path, environ: dict[str, str], notices: list[Notice] | None = None, **options: Any
) -> AsyncGenerator[Any]:
    """A lead with a model of its own, as its teammates will have."""
    model = model_for("claude-opus-5-5", environ)
    assert model is not None
    try:
        async with opened(tmp, model, notices, environ=environ, **options) as lead:
            yield lead
    finally:
        await model.aclose()


def processes(tmp: Path) -> list[int]:
    """The teammates of this test: others run elsewhere."""
    return [pid for pid in alive(PROGRAM) if f"HOME={tmp}\0".encode() in surroundings_of(pid)]


def surroundings_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


async def test_a_teammate_works_answers_and_shuts_down(tmp_path: Path) -> None:
    played = Cast(
        [
            agents({"prompt": "task mate: go", "mode": "teammate", "name": "mate"}),
            "Started.",
            [
                call(
                    "SendMessage",
                    {"to": "mate", "message": "Please end", "type": "shutdown_request"},
                )
            ],
            "Asked.",
        ],
        mate=[
            [call("List", {})],
            "found one file",
            [
                call(
                    "SendMessage",
                    {"to": "lead", "message": "Yes", "type": "shutdown_response", "approve": True},
                )
            ],
            "bye",
        ],
    )
    with provider(played) as server:
        environ = surroundings(tmp_path, server.anthropic_url)
        async with led(tmp_path, environ) as lead:
            await lead.turn("Go")
            mate = lead.crew.members["mate"]
            await until(lambda: mate.state == "idle" and lead.crew.waiting == 1)
            assert len(processes(tmp_path)) >= 1
            await lead.turn("End it")
            await until(lambda: not mate.is_open)
            assert mate.state == "completed", mate
            assert mate.requests == 4
            said = texts(played.requests("lead")[2])
            assert '<agent-message from="mate" type="result">\nfound one file' in said
    assert processes(tmp_path) == []


async def idle(lead: Any, *names: str) -> None:
    await until(lambda: all(lead.crew.members[name].state == "idle" for name in names))


def mates(*names: str, **more: Any) -> list[Any]:
    return agents(
        *(
            {"prompt": f"task {name}: go", "mode": "teammate", "name": name, **more}
            for name in names
        )
    )


@pytest.mark.integration
async def test_one_that_never_answers_a_shutdown_request_is_ended(tmp_path: Path) -> None:
    request = call("SendMessage", {"to": "mate", "message": "End", "type": "shutdown_request"})
    played = Cast([mates("mate"), "Started.", [request], "Asked."], mate=["I am busy"])
    notices: list[Notice] = []
    with provider(played) as server:
        environ = surroundings(tmp_path, server.anthropic_url)
        tight = {**environ, "REVERIE_AGENT_SHUTDOWN_SECONDS": "0.5"}
        async with led(tmp_path, tight, notices) as lead:
            await lead.turn("Go")
            await idle(lead, "mate")
            await lead.turn("End it")
            mate = lead.crew.members["mate"]
            await until(lambda: not mate.is_open)
            assert mate.state == "cancelled"
            assert "did not answer a request to shut down in 0.5 s" in mate.reason
    assert processes(tmp_path) == []


@pytest.mark.integration
async def test_one_that_says_no_stays(tmp_path: Path) -> None:
    request = call("SendMessage", {"to": "mate", "message": "End", "type": "shutdown_request"})
    no = {"to": "lead", "message": "Not yet", "type": "shutdown_response", "approve": False}
    played = Cast(
        [mates("mate"), "Started.", [request], "Asked.", "Well."],
        mate=["first", [call("SendMessage", no)], "going on"],
    )
    with provider(played) as server:
        environ = surroundings(tmp_path, server.anthropic_url)
        async with led(tmp_path, environ) as lead:
            await lead.turn("Go")
            await idle(lead, "mate")
            await lead.turn("End it")
            await until(lambda: lead.crew.waiting == 2)
            await lead.turn("And?")
            assert lead.crew.members["mate"].is_open
            assert 'type="shutdown_response" approve="false"' in texts(played.requests("lead")[4])
    assert processes(tmp_path) == []


@pytest.mark.integration
async def test_a_plan_has_to_be_approved_before_anything_is_changed(tmp_path: Path) -> None:
    write = call("Write", {"file_path": "b.py", "content": "x = 1\n"})
    yes = {"to": "mate", "message": "Do it", "type": "plan_approval_response", "approve": True}
    played = Cast(
        [mates("mate", plan=True), "Started.", [call("SendMessage", yes)], "Approved."],
        mate=[[write], "my plan: write b.py", [write], "written"],
    )
    with provider(played) as server:
        environ = surroundings(tmp_path, server.anthropic_url)
        async with led(tmp_path, environ) as lead:
            await lead.turn("Go")
            await idle(lead, "mate")
            assert not (tmp_path / "project/b.py").exists()
            await lead.turn("Fine")
            await until(lambda: len(played.requests("mate")) == 4)
            await until((tmp_path / "project/b.py").exists)
    assert "not approved yet" in results(played.requests("mate")[1])[0]


@pytest.mark.integration
async def test_one_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    played = Cast(
        [
            mates("mate"),
            "Started.",
            [call("SendMessage", {"to": "mate", "message": "More"})],
            "Sent.",
        ],
        mate=[[call("List", {})], "first result", "second result"],
    )
    notices: list[Notice] = []
    with provider(played) as server:
        environ = surroundings(tmp_path, server.anthropic_url)
        async with led(tmp_path, environ, notices) as lead:
            await lead.turn("Go")
            await idle(lead, "mate")
            for _ in range(2):
                before = set(processes(tmp_path))
                for pid in before:
                    os.kill(pid, signal.SIGKILL)
                await until(lambda before=before: bool(set(processes(tmp_path)) - before))
                lead.crew.members["mate"].state = "running"
                await idle(lead, "mate")
            assert lead.crew.waiting == 1  # the first result came once
            await lead.turn("More")
            await until(lambda: lead.crew.waiting == 1)
            mate = lead.crew.members["mate"]
            assert mate.restarts == 2
            for pid in processes(tmp_path):
                os.kill(pid, signal.SIGKILL)
            await until(lambda: not mate.is_open)
            assert mate.state == "failed"  # a third time is too often
    assert len(played.requests("mate")) == 3  # nothing was asked twice
    assert sum("is started again" in one.text for one in notices) == 2
    assert processes(tmp_path) == []


LEAD = """
import sys, anyio
from pathlib import Path
from reverie.agent.agent import AgentOptions
from reverie.agent.builder import open_agent
from reverie.providers.selection import model_for
from reverie.settings.sources import environment

async def main():
    environ = dict(environment())
    tmp = Path(sys.argv[1])
    options = AgentOptions(
        tmp / "project", home=tmp / "home", environ=environ, agents=True, mode="allow"
    )
    async with open_agent(options, model_for("claude-opus-5-5", environ)) as lead:
        print(lead.session.id, flush=True)
        await lead.turn("Go")
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.integration
async def test_a_lead_killed_with_9_leaves_no_process_and_resumed_says_so(tmp_path: Path) -> None:
    project_in(tmp_path)
    sleeper = f"sleep 98765{os.getpid()}"
    played = Cast(
        [
            [*mates("mate", "other"), *agents({"prompt": "task deep", "mode": "background"})],
            "Started.",
        ],
        mate=[[call("Bash", {"command": sleeper, "run_in_background": True})], "running"],
        other=["idle now"],
        deep=[[call("Bash", {"command": sleeper})]],
    )
    with provider(played) as server:
        environ = surroundings(tmp_path, server.anthropic_url)
        lead = await anyio.open_process(
            [sys.executable, "-c", LEAD, str(tmp_path)], env=environ, stderr=None
        )
        try:
            assert lead.stdout is not None
            session = (await lead.stdout.receive()).decode().strip()
            await until(lambda: len(alive(sleeper)) >= 2)
            await until(lambda: any((tmp_path / "home").rglob("mail/lead/other/*.json")))
            assert len(processes(tmp_path)) >= 2
        finally:
            lead.send_signal(signal.SIGKILL)
            await lead.wait()
        await until(lambda: processes(tmp_path) == [])
        await gone(sleeper)
        await lead.aclose()
        notices: list[Notice] = []
        played.scripts["lead"] = ["", "", "I see."]
        async with led(tmp_path, environ, notices, resume=session) as again:
            states = {one.name: one.state for one in again.crew.members.values()}
            assert states == {"mate": "lost", "other": "lost", "general-1": "lost"}
            await again.turn("What became of them?")
    assert sum("is lost" in one.text for one in notices) == 3
    said = texts(played.requests("lead")[-1])
    assert said.count("This agent is lost") == 3
    assert 'from="other" type="result">\nidle now' in said  # what it had brought is not lost


@pytest.mark.integration
async def test_leaving_ends_teammates_in_whatever_state(tmp_path: Path) -> None:
    sleeper = f"sleep 87654{os.getpid()}"
    played = Cast(
        [mates("mate", "other"), "Started."],
        mate=[[call("Bash", {"command": sleeper})]],
        other=["idle now"],
    )
    with provider(played) as server:
        environ = surroundings(tmp_path, server.anthropic_url)
        async with led(tmp_path, environ) as lead:
            await lead.turn("Go")
            await until(lambda: bool(alive(sleeper)))
            members = list(lead.crew.members.values())
    assert [one.is_open for one in members] == [False, False]
    assert processes(tmp_path) == []
    assert alive(sleeper) == []


async def test_a_private_session_has_no_teammates(tmp_path: Path) -> None:
    played, model = cast([mates("mate"), "Well."])
    async with opened(tmp_path, model, private=True) as lead:
        await lead.turn("Go")
        assert lead.crew.members == {}
    assert "a private session has no teammates" in results(played.requests("lead")[1])[0]
