"""Shadows of many conversations at once: none is closed while it is used, none held for ever."""

from __future__ import annotations

import json
import stat
import threading
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from reverie.interception import InterceptionEngine, OutgoingRequest
from reverie.wire import as_reply
from reverie.world import Notice
from tests.proxy.clients import Client, assistant, engine, gave, marks, ran, text, user

pytestmark = pytest.mark.spec("18.proxy")
MANY = 30
MOST = 24


def answer(words: str) -> dict[str, object]:
    usage = {"input_tokens": 10, "output_tokens": 2}
    return {"type": "message", **assistant(text(words)), "usage": usage}


async def test_conversations_at_once_are_all_taken_in_however_many(home: Path) -> None:
    notices: list[Notice] = []
    made = engine(home, notices)
    under_way: list[OutgoingRequest] = []

    async def asks(number: int) -> None:
        client = Client(made, f"s{number}").says(f"This is conversation number {number}")
        under_way.append(await client.out(client.body()))

    async with anyio.create_task_group() as tasks:
        for number in range(MANY):
            tasks.start_soon(asks, number)
    async with anyio.create_task_group() as tasks:
        for out in under_way:
            tasks.start_soon(made.answered, out, as_reply(answer("That was answered.")))
    opened = made.shadows._open  # pyright: ignore[reportPrivateUsage]
    assert [one.uses for one in opened.values()] == [0] * MANY
    await Client(made, "one more").says("This is another one").asks()
    assert len(opened) == MOST
    await made.aclose()
    assert not [one for one in notices if one.level != "info"]
    texts = [path.read_text() for path in home.glob("projects/*/*.jsonl")]  # noqa: ASYNC240
    for number in range(MANY):
        own = [one for one in texts if f'conversation number {number}"' in one]
        assert len(own) == 1
        assert "That was answered." in own[0]


async def test_a_request_that_is_cancelled_holds_no_shadow(
    through: InterceptionEngine, tmp_path: Path
) -> None:
    client = Client(through, folder=str(tmp_path)).says("This is a question")
    opened = through.shadows._open  # pyright: ignore[reportPrivateUsage]
    await client.asks()
    (shadow,) = opened.values()
    client.says("This is another question")
    data = client.body()
    begun, over = threading.Event(), threading.Event()

    async def held() -> None:
        begun.set()
        await to_thread.run_sync(over.wait)

    async with anyio.create_task_group() as both:
        both.start_soon(shadow.do, held)  # so that the request has to wait
        await to_thread.run_sync(begun.wait)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.out, data)
            while not shadow.uses:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        assert shadow.uses == 0
        over.set()


async def test_the_folders_of_keys_are_private(home: Path) -> None:
    made = engine(home)
    await Client(made).says("This is a question").asks()
    await made.aclose()
    folders = [home / "proxy" / "keys", *(home / "proxy" / "keys").iterdir()]
    assert len(folders) == 2
    assert {stat.S_IMODE(one.stat().st_mode) for one in folders} == {0o700}


async def test_a_conversation_that_is_joined_late_is_taken_in_whole(
    through: InterceptionEngine,
) -> None:
    """Several rounds at once, a call's id that is used twice, a result that comes too late."""
    client = Client(through).says("Read them, please")
    for number, ident in enumerate(("one", "two", "one")):
        client.messages += ran(ident, f"result {number}.")
    late = user(gave("two", "result 3."), text("And now?"))
    client.messages += [assistant("I have read them."), late]
    await client.asks("That is all.")
    opened = through.shadows._open  # pyright: ignore[reportPrivateUsage]
    (shadow,) = opened.values()
    seen = [piece.block.raw for item in shadow.session.view.items for piece in item.pieces]
    for number in range(4):
        assert sum(f"result {number}." in raw for raw in seen) == 1
    await client.says("Go on, please").asks()
    again = [piece.block.raw for item in shadow.session.view.items for piece in item.pieces]
    assert again[: len(seen)] == seen


async def test_a_session_stays_in_the_folder_where_it_began(
    through: InterceptionEngine, tmp_path: Path
) -> None:
    """A client that changes its folder does not take its session into another project."""
    began, later = tmp_path / "began", tmp_path / "later"
    began.mkdir()
    later.mkdir()
    client = Client(through, folder=str(began)).says("This is the first question")
    await client.asks()
    client.folder = str(later)
    out = await client.says("This is asked from another folder").out(client.body())
    assert out.asked is not None
    assert (out.asked.folder, out.asked.project) == (str(began), str(began))


async def test_after_a_restart_the_first_repeat_carries_the_mark_it_had(home: Path) -> None:
    made = engine(home, memory=False)
    client = Client(made)
    client.marks = False
    client.says("Read them, please")
    await client.asks(None)
    await client.round("short")
    before = await client.round("short")
    await made.aclose()
    assert marks(before) == 1
    again = engine(home, memory=False)
    same = Client(again)
    same.marks, same.messages = False, client.messages
    assert await same.asks(None) == before
    await again.aclose()


async def test_a_request_does_not_wait_for_a_session_that_is_stuck(
    home: Path, tmp_path: Path
) -> None:
    notices: list[Notice] = []
    made = engine(home, notices)
    client = Client(made, folder=str(tmp_path)).says("This is a question")
    await client.asks()
    (shadow,) = made.shadows._open.values()  # pyright: ignore[reportPrivateUsage]
    begun, over = threading.Event(), threading.Event()

    async def stuck() -> None:
        begun.set()
        over.wait()

    data = json.dumps(client.says("This is another question").body()).encode()
    out: OutgoingRequest | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shadow.do, stuck)
        await to_thread.run_sync(begun.wait)
        made.rules = replace(made.rules, patience=0.3)
        out = await made.outgoing("messages", client.headers, data)
        over.set()
    assert out is not None
    assert (out.body, out.told) == (data, "passed: it failed")
    assert any("0.3 s" in one.text for one in notices)
    await made.aclose()
