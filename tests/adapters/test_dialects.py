"""Messages of frameworks: what nothing was decided of is the same object, and what was cut keeps
its ids, its signatures and its pictures."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic_ai import messages as pydantic
from pydantic_ai.messages import ModelMessage

import reverie
from reverie.adapters import Reverie, ReverieMiddleware
from reverie.errors import PromptTooLong

pytestmark = pytest.mark.spec("18.adapters")
MODEL = "claude-opus-4-8"
PICTURE = base64.b64encode(b"\x89PNG picture").decode()
LONG = "src/build.py: warning W%04d\n"


def text_of(n: int, lines: int = 1_500) -> str:
    return "".join(LONG % (n * 10_000 + k) for k in range(lines))


def pydantic_list(rounds: int, lines: int = 1_500) -> list[ModelMessage]:
    first: list[Any] = [pydantic.SystemPromptPart("Be brief"), pydantic.UserPromptPart("Look")]
    out: list[ModelMessage] = [pydantic.ModelRequest(first)]
    for n in range(rounds):
        parts: list[Any] = [
            pydantic.ThinkingPart("hm", signature=f"sig{n}", provider_name="anthropic"),
            pydantic.TextPart("I look"),
            pydantic.ToolCallPart("build", '{"n": %d}' % n, f"call_{n}"),
        ]
        out.append(pydantic.ModelResponse(parts, model_name=MODEL))
        picture = pydantic.BinaryContent(b"\x89PNG picture", media_type="image/png")
        content: Any = [text_of(n, lines), picture] if n == 1 else text_of(n, lines)
        back = pydantic.ToolReturnPart("build", content, f"call_{n}", metadata={"n": n})
        out.append(pydantic.ModelRequest([back]))
    return out


def langchain_list(rounds: int, lines: int = 1_500) -> list[AnyMessage]:
    out: list[AnyMessage] = [SystemMessage("Be brief", id="s"), HumanMessage("Look", id="h")]
    for n in range(rounds):
        thought = {"type": "thinking", "thinking": "hm", "signature": f"sig{n}"}
        calls: Any = [{"id": f"call_{n}", "name": "build", "args": {"n": n}}]
        said: Any = [thought, {"type": "text", "text": "I look"}]
        out.append(AIMessage(said, tool_calls=calls, id=f"a{n}"))
        picture = {"type": "image", "base64": PICTURE, "mime_type": "image/png"}
        content: Any = [{"type": "text", "text": text_of(n, lines)}, picture]
        given: Any = content if n == 1 else text_of(n, lines)
        out.append(ToolMessage(given, tool_call_id=f"call_{n}", id=f"t{n}", artifact={"n": n}))
    return out


FRAMEWORKS = {
    "pydantic-ai": (Reverie, pydantic_list),
    "langchain": (ReverieMiddleware, langchain_list),
}


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return FRAMEWORKS[request.param]


def test_a_short_list_goes_as_the_objects_it_came_as(framework: tuple[Any, Any]) -> None:
    made, listed = framework
    messages = listed(3, lines=5)
    sent = made().conversations.fit("a", messages, model=MODEL)
    assert list(map(id, sent)) == list(map(id, messages))


def calls_in(messages: Sequence[Any]) -> list[str]:
    """The ids of the calls and results in a list, in their order."""
    out = []
    for message in messages:
        for part in getattr(message, "parts", [message]):
            if isinstance(part, AIMessage):
                out += [f"call {c['id']}" for c in part.tool_calls]
            elif getattr(part, "tool_call_id", None):
                kind = "call" if isinstance(part, pydantic.ToolCallPart) else "result"
                out.append(f"{kind} {part.tool_call_id}")
    return out


def test_a_cut_result_keeps_its_id_its_picture_and_what_it_carried(
    framework: tuple[Any, Any],
) -> None:
    made, listed = framework
    messages = listed(2)
    before = repr(messages)
    sent = made(policy="collapse").conversations.fit("a", messages, model=MODEL)
    assert repr(messages) == before  # the caller's own are never changed
    assert calls_in(sent) == ["call call_0", "result call_0", "call call_1", "result call_1"]
    cut: Any = sent[-1]
    part: Any = cut.parts[0] if isinstance(cut, pydantic.ModelRequest) else cut
    assert part is not messages[-1]
    assert (getattr(part, "metadata", None) or part.artifact) == {"n": 1}
    stub, picture = part.content
    assert len(str(stub)) < 4_000
    assert "read_back with r:" in str(stub)
    assert PICTURE in str(picture) or picture is messages[-1].parts[0].files[0]
    assert all(a is b for a, b in zip(sent[:2], messages[:2], strict=True))


def test_thinking_is_the_object_it_was_until_it_has_to_go(framework: tuple[Any, Any]) -> None:
    made, listed = framework
    messages = listed(40, lines=400)
    sent = made().conversations.fit("a", messages, model=MODEL)
    assert "sig39" in repr(sent[-2:])  # the newest stays signed
    texts = repr(sent)
    assert all(f"'sig{n}'" not in texts for n in range(4))  # what was sealed took it along
    assert "Be brief" in repr(sent[0])  # a system prompt is never sealed


def test_each_list_begins_with_the_one_before_but_where_something_was_sealed(
    framework: tuple[Any, Any],
) -> None:
    made, listed = framework
    own = made().conversations
    whole = listed(40, lines=400)
    before: list[Any] = []
    breaks = 0
    for end in range(2 - len(whole) % 2, len(whole) + 1, 2):
        sent = own.fit("a", whole[:end], model=MODEL)
        values = [value for message in sent for value in own.dialect.read(message)]
        breaks += values[: len(before)] != before
        before = values
    assert 1 <= breaks <= 6


def test_what_left_is_read_back_whole_by_its_reference(framework: tuple[Any, Any]) -> None:
    made, listed = framework
    own = made().conversations
    messages = listed(20)
    text = repr(own.fit("a", messages, model=MODEL))
    found = ""
    for reference in sorted(set(re.findall(r"r:[0-9a-z]{4,}", text))):
        given = {"reference": reference, "query": "W31499"}
        call = {"type": "tool_use", "id": "x", "name": "read_back", "input": given}
        found += str(own.answer("a", messages, call)["content"])
        fresh = made().conversations  # a process that knows nothing finds it in the list
        assert str(fresh.answer("a", messages, call)["content"])
    assert "src/build.py: warning W31499" in found


def test_a_call_without_a_result_gets_one_in_their_form(framework: tuple[Any, Any]) -> None:
    made, listed = framework
    messages = listed(2, lines=5)[:-1]
    more: Any = (
        pydantic.ModelRequest([pydantic.UserPromptPart("Go on")])
        if isinstance(messages[0], pydantic.ModelRequest)
        else HumanMessage("Go on", id="h2")
    )
    sent = made().conversations.fit("a", [*messages, more], model=MODEL)
    assert calls_in(sent)[-2:] == ["call call_1", "result call_1"]
    assert "interrupted" in repr(sent)


def test_memory_joins_the_newest_words_and_stays_there(
    framework: tuple[Any, Any], home: Path
) -> None:
    made, listed = framework
    memory = reverie.Memory("shop")
    memory.add("The zebra build fails on node 18, because openssl moved", name="zebra build")
    own = made(memory).conversations
    messages = listed(3, lines=5)
    said = len(messages) - 6  # up to the user's words
    sent = own.fit("a", messages[:said], model=MODEL)
    assert "zebra build" in repr(sent)
    again = own.fit("a", messages, model=MODEL)
    assert repr(again).count("zebra build") == repr(sent).count("zebra build")
    assert len(again) == len(messages) + 1
    assert list(map(id, again[said + 1 :])) == list(map(id, messages[said:]))


@pytest.mark.spec("B4")
def test_what_the_user_said_to_an_agent_is_their_own_word(home: Path) -> None:
    memory = reverie.Memory("shop")
    said: list[AnyMessage] = [
        HumanMessage("Please remember: the staging cluster is called heron."),
        AIMessage("All right."),
    ]
    (saved,) = ReverieMiddleware(memory).conversations.learn(said)
    assert memory.get(saved.file).trust == "user"


def test_two_conversations_at_once_do_not_mix(framework: tuple[Any, Any]) -> None:
    made, listed = framework
    own = made().conversations
    one, other = listed(12), listed(8, lines=400)
    alone = repr(made().conversations.fit("b", other, model=MODEL))
    for end in range(2, 9, 2):
        own.fit("a", one[:end], model=MODEL)
        own.fit("b", other[:end], model=MODEL)
    assert repr(own.fit("b", other, model=MODEL)) == alone


def test_a_list_that_cannot_fit_raises_and_other_failures_are_said(
    framework: tuple[Any, Any], tmp_path: Path
) -> None:
    made, listed = framework
    messages = listed(1, lines=5)
    with pytest.raises(PromptTooLong):
        made(window=20_000, policy="off").conversations.fit("a", listed(20), model=MODEL)
    file = tmp_path / "file"
    file.write_text("no folder")
    told: list[Any] = []
    own = made(store=file, on_notice=told.append).conversations
    long = listed(2)
    assert own.fit("a", long, model=MODEL) == long
    assert "the list goes as it came" in told[0].text
    assert own.fit("b", messages, model=MODEL) == messages


@pytest.mark.parametrize("is_async", [False, True])
async def test_each_user_of_a_langchain_agent_has_a_memory(home: Path, is_async: bool) -> None:
    memory = reverie.Memory("shop")
    asked: list[str] = []

    class Model(FakeListChatModel):
        def bind_tools(self, tools: Any, **other: Any) -> Any:
            return self

        def _call(self, messages: Any, *args: Any, **other: Any) -> str:
            asked.append(repr(messages))
            return "All right."

    async def turn(agent: Any, text: str, user: str) -> None:
        config = {"configurable": {"user_id": user} if user else {}}
        given = {"messages": [{"role": "user", "content": text}]}
        await agent.ainvoke(given, config) if is_async else agent.invoke(given, config)

    agent = create_agent(Model(responses=["."]), middleware=[ReverieMiddleware(memory)])
    await turn(agent, "Please remember: the staging cluster is called heron.", "alice")
    await turn(agent, "Please remember: our office is in Lisbon.", "")
    alice, bob = (reverie.Memory("shop", user=name) for name in ("alice", "bob"))
    assert any("heron" in one.text for one in alice.list())
    assert ["Lisbon" in one.text for one in memory.list()] == [True]  # the shop's, for everybody
    for name, known in (("alice", True), ("bob", False), ("", False)):
        await turn(agent, "What is the staging cluster called?", name)
        assert ("heron" in asked[-1]) is known, name
    assert [one.text for one in bob.list()] == [one.text for one in memory.list()]

    shared = reverie.Memory("shop", user="everyone")
    agent = create_agent(Model(responses=["."]), middleware=[ReverieMiddleware(shared)])
    await turn(agent, "Please remember: the printer is called otter.", "bob")
    assert any("otter" in one.text for one in shared.list())
    assert not any("otter" in one.text for one in bob.list())
