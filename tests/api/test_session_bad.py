"""What goes wrong in callers' hands: closed, other loops, forks, foreign lists, a second holder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

import reverie
from reverie import Session
from reverie.errors import Held, InvalidInput, InvalidMessage, NotFound, StoreError
from reverie.testing import ScriptedModel
from tests.api.talks import FORMS, MODEL, TOOLS, Provider, loop, send, talking

pytestmark = pytest.mark.spec("18.session-bad")
NAME = "claude-opus-5-5"


@pytest.mark.anyio
async def test_a_closed_session_says_so_and_closes_again(home: Path, tmp_path: Path) -> None:
    s = await Session.start(tmp_path, model=NAME)
    await s.add("hello")
    await s.aclose()
    await s.aclose()
    calls: list[Any] = [s.add("x"), s.prepare(), s.observe({}), s.ask(), s.end_turn(), s.handle({})]
    calls += [s.adopt([]), s.compact(), s.rewind("x"), s.fork("x"), s.set_head(system="x")]
    for call in calls:
        with pytest.raises(StoreError, match="was closed"):
            await call
    assert "(closed)" in repr(s)
    assert reverie.report(s).requests == 0  # what happened can still be told
    with pytest.raises(NotFound):
        await Session.start(tmp_path, model=NAME, resume="0" * 8 + "-0000-4000-8000-" + "0" * 12)


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["memories", "when_added", "modle"])
async def test_only_the_options_of_a_caller_are_taken(
    home: Path, tmp_path: Path, name: str
) -> None:
    for opens in (Session.open, reverie.Agent.open):
        wrong: Any = opens
        with pytest.raises(TypeError, match=name):
            async with wrong(tmp_path, model=NAME, **{name: None}):
                pass
    starts: Any = Session.start
    with pytest.raises(TypeError, match=name):
        await starts(tmp_path, model=NAME, **{name: None})


def test_another_event_loop_is_refused_and_nothing_hangs(home: Path, tmp_path: Path) -> None:
    async def begin() -> Session:
        return await Session.start(tmp_path, model=NAME)

    s = anyio.run(begin)
    for use in (lambda: s.add("x"), s.prepare, s.aclose):
        with pytest.raises(InvalidInput, match="another event loop"):
            anyio.run(use)
    s.close()


@pytest.mark.anyio
async def test_a_forked_process_is_told_to_open_its_own(home: Path, tmp_path: Path) -> None:
    async with Session.open(tmp_path, model=NAME) as s:
        await s.add("hello")
        child = os.fork()
        if not child:  # pragma: no cover - the other process
            status = 1
            try:
                s.handle({}).send(None)
            except StoreError as error:
                status = 0 if "another process" in str(error) else 2
            finally:
                os._exit(status)
        status = os.waitpid(child, 0)[1]  # noqa: ASYNC222 - the child ends at once
        assert os.waitstatus_to_exitcode(status) == 0
        assert "hello" in (await s.prepare()).body()


@pytest.mark.anyio
async def test_a_second_holder_is_told_who_holds_it(home: Path, tmp_path: Path) -> None:
    async with Session.open(tmp_path, model=NAME) as s:
        await s.add("hello")
        with pytest.raises(Held, match=str(os.getpid())):
            await Session.start(tmp_path, model=NAME, resume=s.id)
    async with Session.open(tmp_path, resume=s.id) as again:
        request = await again.prepare()
    assert "hello" in request.body()
    assert request.anthropic()["model"] == NAME  # of the record


@pytest.mark.anyio
async def test_calls_from_several_tasks_wait_for_one_another(home: Path, tmp_path: Path) -> None:
    async with Session.open(tmp_path, model=ScriptedModel(lambda _: "ok")) as s:
        await s.add("hello")

        async with anyio.create_task_group() as tasks:
            for n in range(5):
                tasks.start_soon(s.add, f"question {n}")
            tasks.start_soon(s.ask)
        await s.add("end")
        body = (await s.prepare()).body()
    places = [body.index(f"question {n}") for n in range(5)]
    assert places == sorted(places)
    assert body.count('"assistant"') == 1


@pytest.mark.anyio
async def test_a_private_session_leaves_nothing(home: Path, tmp_path: Path) -> None:
    notices: list[reverie.Notice] = []
    async with Session.open(
        tmp_path, model=NAME, memory=True, private=True, on_notice=notices.append
    ) as s:
        await s.add("Always run the linter before you commit.")
        await s.prepare()
        await s.observe({"role": "assistant", "content": "I will."})
        assert s.memory is None
        assert s.tools.names == ()
    assert not [path for path in home.rglob("*") if path.is_file()]  # noqa: ASYNC240
    assert any("private" in n.text for n in notices)


USED: Any = {"type": "tool_use", "id": "a", "name": "run", "input": {}}
GAVE: Any = {"type": "tool_result", "tool_use_id": "a", "content": "x" * 90_000}
LISTS: dict[str, list[Any]] = {
    "messages": [
        {"role": "assistant", "content": "Good morning!"},
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [USED]},
        {"role": "user", "content": [GAVE]},
        {"role": "assistant", "content": [USED]},
    ],
    "chat": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "look"},
        {"role": "tool", "tool_call_id": "orphan", "content": "nobody asked"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "run", "arguments": "{bad"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "ran"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "run", "arguments": "{}"}}]},
    ],
    "responses": [
        {"role": "user", "content": "look"},
        {"type": "function_call", "call_id": "a", "name": "run", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "ran"},
        {"type": "function_call", "call_id": "a", "name": "run", "arguments": "{}"},
    ],
}  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize("form", FORMS)
async def test_a_foreign_list_that_ends_in_a_call_is_adopted(
    form: str, home: Path, tmp_path: Path
) -> None:
    provider = Provider(answers=["Done."])
    async with (
        talking(provider, form) as (client, sim),
        Session.open(tmp_path, model=MODEL[form], tools=TOOLS[form]) as s,
    ):
        await s.adopt(LISTS[form])
        await s.add("and now?")
        reply = await s.observe(await send(client, form, await s.prepare()))
        assert reply.text == "Done."
        await s.add("more")
        text = (await s.prepare()).body()
    assert {e.status for e in sim.log} == {200}
    assert "interrupted" in text.lower()
    for words in ("look", "and now?"):
        assert words in text
    if form == "messages":
        assert "Good morning!" in text
        assert "x" * 90_000 in text  # what was sent before stays as it was
    if form == "chat":
        assert "Be kind." in text
        assert "nobody asked" in text


@pytest.mark.anyio
async def test_what_is_no_message_is_refused_before_anything_is_written(
    home: Path, tmp_path: Path
) -> None:
    async with Session.open(tmp_path, model=NAME) as s:
        for wrong in (7, object(), {"role": "assistant", "content": "x"}, "", {"role": "user"}):
            with pytest.raises(InvalidMessage):
                await s.add(wrong)  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidMessage):
            await s.add()
        with pytest.raises(InvalidMessage, match="nothing to send"):
            await s.prepare()
        with pytest.raises(InvalidMessage):
            await s.observe(7)
        with pytest.raises(InvalidMessage):
            await s.adopt([7])


@pytest.mark.anyio
async def test_a_cancelled_task_leaves_a_session_that_closes(home: Path, tmp_path: Path) -> None:
    async def forever(request: Any) -> Any:
        await anyio.sleep_forever()

    async with Session.open(tmp_path, model=NAME, client=forever) as s:
        await s.add("hello")
        with anyio.move_on_after(0):
            await s.ask()
        await s.add("again")
    async with Session.open(tmp_path, model=NAME, resume=s.id) as again:
        body = (await again.prepare()).body()
    assert "hello" in body
    assert "again" in body


@pytest.mark.anyio
async def test_a_client_that_fails_behind_a_session_fails_alone(home: Path, tmp_path: Path) -> None:
    notices: list[reverie.Notice] = []
    async with talking(Provider(), "messages") as (client, _):

        async def broken(request: reverie.Request) -> Any:
            raise ConnectionError("no network")

        async with Session.open(
            tmp_path, model=NAME, client=broken, memory=True, tools=TOOLS["messages"],
            on_notice=notices.append,
        ) as s:  # fmt: skip
            reply = await loop(s, client, "messages")
            assert reply.text == "Done."
    failed = [event for event in reverie.report(s).events if event.kind == "failed"]
    assert any("no network" in event.why for event in failed)
