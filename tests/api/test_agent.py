"""The ready agent by keywords: turns, events, permissions, the bridge, reports."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie import Agent, Event, Session, Turn
from reverie.errors import AuthFailed, InvalidInput, StoreError
from reverie.simulator import call
from reverie.testing import ScriptedModel, reply
from reverie.testing import call as called
from tests.api.talks import serve

pytestmark = pytest.mark.spec("18.agent")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("The code word is heron.\n")
    return folder


@pytest.mark.anyio
async def test_a_turn_by_the_embedded_model(home: Path, project: Path) -> None:
    async with Agent.open(project, model="embedded") as agent:
        turn = await agent.run("read notes.txt")
        assert isinstance(turn, Turn)
        assert "heron" in turn.text == str(turn)
        assert (turn.outcome, turn.stop_reason, turn.rounds) == ("completed", "end_turn", 2)
        assert (turn.cost, turn.usage.output > 0) == (0.0, True)
        assert agent.memory is not None
        assert isinstance(agent.session, Session)
        report = reverie.report(agent)
        assert (report.requests, report.cost, report.money) == (2, 0.0, 0.0)
    assert agent.session.id in repr(agent)
    with pytest.raises(StoreError, match="agent was closed"):
        await agent.run("more")
    with pytest.raises(StoreError, match="agent was closed"):
        await anext(agent.stream("more"))
    with pytest.raises(StoreError, match="session was closed"):
        await agent.session.add("more")
    assert reverie.report(agent).requests >= 2


@pytest.mark.anyio
async def test_a_named_model_is_reached_with_the_real_client(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Any] = [[call("Read", {"file_path": "notes.txt"}, "toolu_1")], "It is heron."]
    with serve(lambda _: answers.pop(0) if answers else "Nothing.") as (url, sim):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        async with Agent.open(project, model="claude-opus-5-5") as agent:
            turn = await agent.run("What is the code word?")
    assert turn.text == "It is heron."
    assert turn.cost > 0
    assert {e.status for e in sim.log} == {200}


@pytest.mark.anyio
async def test_a_named_model_without_a_key_is_an_error(home: Path, project: Path) -> None:
    with pytest.raises(AuthFailed):
        async with Agent.open(project, model="claude-opus-5-5"):
            pass


@pytest.mark.anyio
async def test_a_stream_gives_events_and_last_the_turn(home: Path, project: Path) -> None:
    async with Agent.open(project, model="embedded") as agent:
        seen = [event async for event in agent.stream("read notes.txt")]
        *events, turn = seen
        assert isinstance(turn, Turn)
        assert turn.outcome == "completed"
        assert all(isinstance(event, Event) for event in events)
        kinds = [event.kind for event in events if isinstance(event, Event)]
        assert kinds[:2] == ["call", "result"]
        assert "".join(str(e) for e in events if isinstance(e, Event) and e.kind == "text")
        (asked,) = [e.call for e in events if isinstance(e, Event) and e.kind == "call"]
        assert asked is not None
        assert asked.arguments == {"file_path": "notes.txt"}
        async for _ in agent.stream("read notes.txt"):
            break
        assert (await agent.run("read notes.txt")).outcome == "completed"


@pytest.mark.anyio
async def test_a_stream_raises_what_the_turn_raised(home: Path, project: Path) -> None:
    def broken(request: Any) -> Any:
        raise ZeroDivisionError("by the model")

    async with Agent.open(project, model=ScriptedModel(broken)) as agent:
        with pytest.raises(ZeroDivisionError):
            async for _ in agent.stream("go"):
                pass


@pytest.mark.anyio
@pytest.mark.parametrize("allows", [True, False])
async def test_permission_is_asked_of_any_function(allows: bool, home: Path, project: Path) -> None:
    asked: list[str] = []

    async def later(question: Any) -> bool:
        asked.append(question.subject)
        return allows

    def at_once(question: Any) -> bool:
        asked.append(question.subject)
        return allows

    for ask in (later, at_once):
        write = called("Write", "toolu_w", file_path="new.txt", content="new\n")
        model = ScriptedModel([reply(write), "done", "ok"])
        async with Agent.open(project, model=model, ask=ask) as agent:
            await agent.run("write it")
        assert (project / "new.txt").exists() == allows
        (project / "new.txt").unlink(missing_ok=True)
    assert len(asked) == 2


@pytest.mark.anyio
async def test_tools_are_chosen_by_name(home: Path, project: Path) -> None:
    model = ScriptedModel(["ok"])
    async with Agent.open(project, model=model, tools=["Read"], private=True) as agent:
        await agent.run("hello")
        await agent.session.add("more")
        sent = (await agent.session.prepare()).anthropic()
    assert [tool["name"] for tool in sent["tools"]] == ["Read", "Snip"]
    with pytest.raises(InvalidInput, match="no such tool"):
        async with Agent.open(project, model="embedded", tools=["Fly"]):
            pass


@pytest.mark.anyio
async def test_layers_and_settings_are_handed_on(home: Path, project: Path) -> None:
    asked: list[int] = []

    async def watch(view: Any, world: Any) -> Any:
        asked.append(world.settings.max_output_tokens)
        return ()

    async with Agent.open(
        project, model="embedded", layers=[watch], settings={"max_output_tokens": 77}
    ) as agent:
        await agent.run("read notes.txt")
    assert asked == [77, 77]


def test_the_same_without_an_event_loop(home: Path, project: Path) -> None:
    before = threading.enumerate()
    with reverie.blocking(Agent.open(project, model="embedded")) as agent:
        assert "heron" in agent.run("read notes.txt").text
        events = list(agent.stream("read notes.txt"))
        assert isinstance(events[-1], Turn)
        for event in agent.stream("read notes.txt"):
            assert event
            break
        agent.session.add("hello")
        assert "hello" in agent.session.prepare().body()
        assert reverie.report(agent).requests >= 4
        assert "Agent" in repr(agent)
        assert "run" in dir(agent)
        with pytest.raises(AttributeError):
            getattr(agent, "_inner")  # noqa: B009
    begun = [thread for thread in threading.enumerate() if thread not in before]
    for thread in begun:
        if thread.name == "AnyIO worker thread":  # told to end, and may be about to
            thread.join(timeout=30)
    assert sum(thread.is_alive() for thread in begun) <= 1


def test_a_session_without_an_event_loop(home: Path, project: Path) -> None:
    with reverie.blocking(Session.open(project, model="embedded", memory=True)) as s:
        s.add("Remember: always use tabs in Makefiles.")
        assert s.ask().text
        first = s.id
    with reverie.blocking(Session.open(project, resume=first)) as s:
        s.add("hello")
        request = s.prepare()
    assert "Makefiles" in request.body()
    assert reverie.Memory(project).list()


@pytest.mark.anyio
async def test_a_report_of_something_else_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nothing to report"):
        reverie.report(7)
