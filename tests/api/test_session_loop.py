"""`Session` in a loop of the caller's own: three APIs, both kinds of clients, the whole memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie import Memory, Notice, Session
from reverie.errors import InvalidInput, NotAvailable
from reverie.store import Project
from tests.api.talks import (
    FORMS,
    LEARNED,
    MODEL,
    TOOLS,
    WORDS,
    Provider,
    loop,
    send,
    talking,
)

# ruff: noqa: SIM117 - a client first, then what is made of it
pytestmark = [pytest.mark.spec("18.session"), pytest.mark.anyio]

LONG = " ".join(f"Rule {n} is to be kept." for n in range(400))  # enough to be cached


@pytest.mark.parametrize("waits", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("form", FORMS)
async def test_the_loop_of_the_first_screen_has_the_whole_memory(
    form: str, waits: bool, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "CLAUDE.md").write_text("Say heron when you are done.")
    Memory(tmp_path).add("The staging cluster is in Frankfurt", name="staging")
    provider, notices = Provider(), list[Notice]()
    async with (
        talking(provider, form, waits=waits) as (client, sim),
        Session.open(
            tmp_path,
            model=MODEL[form],
            client=client,
            memory=True,
            system=LONG,
            tools=TOOLS[form],
            on_notice=notices.append,
        ) as s,
    ):
        reply = await loop(s, client, form)
        assert reply.text == "Done."
    assert {e.status for e in sim.log} == {200}
    first = json.dumps(provider.bodies[0])
    assert "# Long-term memory" in first
    assert "Say heron" in first
    assert "staging cluster" in first
    assert len(provider.learning) == 1
    tools = [json.dumps(b["tools"]) for b in provider.bodies]
    assert len(set(tools)) == 1  # they are part of the cache key
    assert "read_back" in tools[0]
    (learning,) = provider.learning  # reading the cached prefix would cost more than these words
    assert not learning.get("tools")
    assert LONG not in json.dumps(learning)
    assert sim.log[-1].charge.written == 0
    found = Memory(tmp_path).get("feedback_linter.md")
    assert "run the linter" in found.text
    assert found.trust == "user"
    assert not [n for n in notices if n.level != "info"]


@pytest.mark.parametrize("form", FORMS)
async def test_ask_is_prepare_send_and_observe(form: str, home: Path, tmp_path: Path) -> None:
    provider = Provider()
    async with talking(provider, form) as (client, sim):
        async with Session.open(tmp_path, model=MODEL[form], client=client, tools=TOOLS[form]) as s:
            await s.add(WORDS)
            reply = await s.ask()
            (call,) = reply.tool_calls
            assert (call.name, call.arguments) == ("run", {"n": 1})
            await s.add(call.result({"ran": 1}))
            assert (await s.ask()).text == "Done."
    assert {e.status for e in sim.log} == {200}
    assert '{\\"ran\\":1}' in json.dumps(provider.bodies[1])
    assert not provider.learning  # no memory was asked for


async def test_any_function_of_a_request_is_a_client(home: Path, tmp_path: Path) -> None:
    seen: list[reverie.Request] = []

    async def ask(request: reverie.Request) -> Any:
        seen.append(request)
        text = LEARNED if "You keep the long-term memory" in request.body() else "Done."
        return {"role": "assistant", "content": text}

    async with Session.open(tmp_path, model="claude-opus-5-5", client=ask, memory=True) as s:
        await s.add(WORDS)
        assert (await s.ask()).text == "Done."
    assert len(seen) == 2
    assert seen[1].head.tools == "[]"
    assert Memory(tmp_path).list()[0].file == "feedback_linter.md"


async def test_a_name_alone_learns_by_rules_bills_nothing_and_says_so_once(
    home: Path, tmp_path: Path
) -> None:
    provider, notices = Provider(), list[Notice]()
    async with talking(provider, "messages") as (client, sim), Session.open(
        tmp_path, model=MODEL["messages"], memory=True, tools=TOOLS["messages"],
        on_notice=notices.append,
    ) as s:  # fmt: skip
        await loop(s, client, "messages")
        with pytest.raises(NotAvailable, match="client="):
            await s.ask()
    assert len(sim.log) == len(provider.bodies) == 2
    assert "linter" in Memory(tmp_path).list()[0].text
    assert [n.text for n in notices if n.level == "warning" and "client=" in n.text]
    assert len([n for n in notices if n.level == "warning"]) == 1
    report = reverie.report(s)
    assert report.background_cost == 0
    assert report.cost > 0


async def test_a_model_given_as_such_does_the_background_work(home: Path, tmp_path: Path) -> None:
    from reverie.testing import ScriptedModel

    def answers(request: Any) -> Any:
        return LEARNED if request.source == "extract_memories" else "Done."

    async with Session.open(tmp_path, model=ScriptedModel(answers), memory=True) as s:
        await s.add(WORDS)
        assert (await s.ask()).text == "Done."
    assert Memory(tmp_path).list()[0].file == "feedback_linter.md"


async def test_a_fork_is_shown_a_file_before_it_changes_it(home: Path, tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    kept = memory.add("Always run the tests before you commit.", type="feedback", name="commits")
    changed = LEARNED.replace("feedback_linter.md", kept.file)
    provider = Provider(forks=[f'<read file="{kept.file}"/>', changed])
    async with (
        talking(provider, "messages") as (client, _),
        Session.open(
            tmp_path, model=MODEL["messages"], client=client, memory=True, tools=TOOLS["messages"]
        ) as s,
    ):
        await loop(s, client, "messages")
    assert len(provider.learning) == 2
    assert "run the tests" in json.dumps(provider.learning[1])
    assert "linter" in memory.get(kept.file).text
    assert len(memory.list()) == 1


async def test_a_file_that_was_not_shown_is_never_written_over(home: Path, tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    kept = memory.add("Always run the tests before you commit.", type="feedback", name="commits")
    provider = Provider(forks=[LEARNED.replace("feedback_linter.md", kept.file), "Nothing then."])
    async with (
        talking(provider, "messages") as (client, _),
        Session.open(
            tmp_path, model=MODEL["messages"], client=client, memory=True, tools=TOOLS["messages"]
        ) as s,
    ):
        await loop(s, client, "messages")
    assert "run the tests" in json.dumps(provider.learning[1])
    assert "run the tests" in memory.get(kept.file).text


async def test_what_a_fork_writes_in_words_passes_the_same_guards(
    home: Path, tmp_path: Path
) -> None:
    secret = LEARNED.replace("run the linter", "use the key sk-ant-api03-" + "a1B2" * 22)
    outside = LEARNED.replace("feedback_linter.md", "../../escape.md")
    provider = Provider(forks=["\n".join((secret, outside.replace("---\n\n", "---\n\nAnd ")))])
    notices: list[Notice] = []
    async with talking(provider, "messages") as (client, _), Session.open(
        tmp_path, model=MODEL["messages"], client=client, memory=True, tools=TOOLS["messages"],
        on_notice=notices.append,
    ) as s:  # fmt: skip
        await loop(s, client, "messages")
    assert Memory(tmp_path).list() == []
    assert not list(tmp_path.parent.rglob("escape.md"))
    assert any("not saved" in n.text for n in notices)


async def test_a_fork_that_calls_tools_is_denied_and_asked_again(
    home: Path, tmp_path: Path
) -> None:
    from reverie.simulator import call

    provider = Provider(forks=[[call("run", '{"n": 7}', "toolu_of_the_fork")], LEARNED])
    async with (
        talking(provider, "messages") as (client, _),
        Session.open(
            tmp_path, model=MODEL["messages"], client=client, memory=True, tools=TOOLS["messages"]
        ) as s,
    ):
        await loop(s, client, "messages")
    assert "No tool can be called here" in json.dumps(provider.learning[1])
    assert Memory(tmp_path).list()[0].file == "feedback_linter.md"


async def test_two_users_share_neither_memory_nor_sessions(home: Path, tmp_path: Path) -> None:
    Memory("shop").add("The shop is closed on Sundays", name="closed")
    for user in ("ada", "bob"):
        provider = Provider()
        async with (
            talking(provider, "messages") as (client, _),
            Session.open(
                "shop", user=user, model=MODEL["messages"], client=client, memory=True
            ) as s,
        ):
            words = WORDS if user == "ada" else "What do you know?"
            provider.answers = ["Done."]
            provider.forks = [LEARNED] if user == "ada" else []
            await loop(s, client, "messages", words)
        assert ("linter" in json.dumps(provider.bodies)) == (user == "ada")
        assert "closed on Sundays" in json.dumps(provider.bodies)  # of the project: wider
    ada, bob, shop = (Memory("shop", user=one).list() for one in ("ada", "bob", ""))
    assert {one.scope for one in ada} == {"user", "project"}
    assert {one.scope for one in bob} == {"project"}
    assert len(shop) == 1
    assert not Memory("shop", user="bob").search("linter", kind="session")


async def test_the_next_words_or_closing_end_a_turn(home: Path, tmp_path: Path) -> None:
    provider = Provider(answers=["One.", "Two."], forks=["Nothing.", LEARNED])
    async with talking(provider, "messages") as (client, _):
        async with Session.open(tmp_path, model=MODEL["messages"], client=client, memory=True) as s:
            await loop(s, client, "messages", "The herons of the eastern lake nest in old pines.")
            await loop(s, client, "messages", WORDS)
        again = await Session.start(tmp_path, model=MODEL["messages"], resume=s.id)
        await again.aclose()
    assert len(provider.learning) == 2
    assert Memory(tmp_path).list()
    from reverie.session import SessionLibrary
    from reverie.settings import environment

    library = SessionLibrary.of(Project.at(tmp_path, home=home, environ=environment()))
    assert library.read(s.id).view.turns == 2
    library.close()


async def test_what_nobody_asked_for_goes_to_the_logger(
    home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import logging

    name = f"model-{tmp_path.name}"
    for _ in range(2):
        async with Session.open(tmp_path, model=name):
            pass
    told = [one for one in caplog.records if name in one.getMessage()]
    assert [(one.name, one.levelno) for one in told] == [("reverie.session", logging.WARNING)]
    assert not logging.getLogger("reverie").handlers


async def test_a_client_needs_a_name_and_must_be_one(home: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no model's name"):
        await Session.start(tmp_path, client=lambda request: request)
    with pytest.raises(InvalidInput, match="no client that is known"):
        await Session.start(tmp_path, model="m", client=object())
    with pytest.raises(InvalidInput, match="no model is named"):
        await Session.start(tmp_path)


@pytest.mark.parametrize("form", FORMS)
async def test_streams_are_observed_while_they_run(form: str, home: Path, tmp_path: Path) -> None:
    for waits in (False, True):
        provider = Provider()
        async with talking(provider, form, waits=waits) as (client, sim):
            async with Session.open(tmp_path, model=MODEL[form], tools=TOOLS[form]) as s:
                await s.add(WORDS)
                while True:
                    stream = await send(client, form, await s.prepare(), stream=True)
                    reply = await s.observe(stream)
                    if not reply.tool_calls:
                        break
                    await s.add(*[c.result("ran") for c in reply.tool_calls])
                assert reply.text == "Done."
        assert {e.status for e in sim.log} == {200}
