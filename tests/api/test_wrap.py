"""`reverie.wrap`: the official clients, blocking and async, in three forms."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.errors import InvalidInput
from reverie.interception import BackgroundLearner, WrapOptions, WrappedClient, beside
from reverie.testing import Provider, call, provider
from reverie.transcript import text_block

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")
pytestmark = pytest.mark.spec("18.wrap")

BIG = "\n".join(f"line {n} of a long result, with the value v{n}" for n in range(4_000))
FORMS = ("messages", "chat", "responses")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


_made: list[Any] = []  # clients that were wrapped: they stay their caller's to close


@pytest.fixture(autouse=True)
def closed() -> Generator[None]:
    yield
    for client in _made:
        client.close()
    _made.clear()


class Talk:
    """A caller's own loop in one form: it keeps its list, and knows its own tool alone."""

    def __init__(
        self, form: str, upstream: Provider, *, asynchronous: bool = False, **wrap: Any
    ) -> None:
        self.form = form
        self.messages: list[Any] = []
        self.texts: list[str] = []
        if form == "messages":
            make = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
            plain = make(api_key="k", base_url=upstream.anthropic_url, max_retries=0)
        else:
            make = openai.AsyncOpenAI if asynchronous else openai.OpenAI
            plain = make(api_key="k", base_url=upstream.openai_url, max_retries=0)
        self.client: Any = reverie.wrap(plain, **wrap)
        self.plain = plain
        if not asynchronous:
            _made.append(plain)
        self.more: dict[str, Any] = {}

    def says(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    @property
    def given(self) -> dict[str, Any]:
        if self.form == "messages":
            tools: list[Any] = [{"name": "fetch", "description": "d", "input_schema": SCHEMA}]
            return {
                "model": "claude-opus-5-5",
                "max_tokens": 999,
                "messages": self.messages,
                "tools": tools,
                **self.more,
            }
        about = {"name": "fetch", "description": "d", "parameters": SCHEMA}
        if self.form == "chat":
            return {
                "model": "gpt-5",
                "messages": self.messages,
                "tools": [{"type": "function", "function": about}],
                **self.more,
            }
        return {
            "model": "gpt-5",
            "input": self.messages,
            "tools": [{"type": "function", **about}],
            **self.more,
        }

    @property
    def create(self) -> Callable[..., Any]:
        if self.form == "messages":
            return self.client.messages.create
        return (
            self.client.chat.completions.create
            if self.form == "chat"
            else self.client.responses.create
        )

    def took(self, reply: Any) -> list[tuple[str, str]]:
        """Put an answer into the list; gives the calls in it."""
        if self.form == "messages":
            self.messages.append(
                {
                    "role": "assistant",
                    "content": [b.model_dump(exclude_none=True) for b in reply.content],
                }
            )
            self.texts.append("".join(b.text for b in reply.content if b.type == "text"))
            return [(b.id, b.name) for b in reply.content if b.type == "tool_use"]
        if self.form == "chat":
            message = reply.choices[0].message
            self.messages.append(message.model_dump(exclude_none=True))
            self.texts.append(message.content or "")
            return [(c.id, c.function.name) for c in message.tool_calls or ()]
        self.messages += [item.model_dump(exclude_none=True) for item in reply.output]
        self.texts.append(reply.output_text)
        return [(i.call_id, i.name) for i in reply.output if i.type == "function_call"]

    def answers(self, calls: list[tuple[str, str]], text: str) -> None:
        if self.form == "messages":
            results = [{"type": "tool_result", "tool_use_id": c, "content": text} for c, _ in calls]
            self.messages.append({"role": "user", "content": results})
        elif self.form == "chat":
            self.messages += [
                {"role": "tool", "tool_call_id": c, "content": text} for c, _ in calls
            ]
        else:
            self.messages += [
                {"type": "function_call_output", "call_id": c, "output": text} for c, _ in calls
            ]

    def streamed(self) -> Any:
        """One answer by the SDK's own helper for streams."""
        given = self.given
        if self.form == "messages":
            with self.client.messages.stream(**given) as stream:
                self.passed = list(stream.text_stream)
                return stream.get_final_message()
        if self.form == "chat":
            counted = {"include_usage": True}
            with self.client.chat.completions.stream(**given, stream_options=counted) as stream:
                self.passed = [e.delta for e in stream if e.type == "content.delta"]
                return stream.get_final_completion()
        with self.client.responses.stream(**given) as stream:
            self.passed = [e.delta for e in stream if e.type == "response.output_text.delta"]
            return stream.get_final_response()


def reference(body: Mapping[str, Any]) -> str:
    """The reference of a stored result, as the model reads it."""
    text = json.dumps(body, ensure_ascii=False)
    return text.partition("read_back with ")[2].partition(" ")[0]


def reader(mixed: bool = False) -> Callable[[Mapping[str, Any]], Any]:
    """A model that fetches something, reads back what it needs of it, and goes on."""
    step = iter(range(100))

    def answer(body: Mapping[str, Any]) -> Any:
        match next(step):
            case 0:
                return [call("fetch", "call_one_0123456789", path="a")]
            case 1:
                own = call(
                    "read_back", "call_own_0123456789", reference=reference(body), query="v3777"
                )
                also = [call("fetch", "call_two_0123456789", path="b")] if mixed else []
                return [text_block("I look at it."), own, *also]
            case n:
                return f"Answer {n}."

    return answer


def extends_all(upstream: Provider) -> bool:
    found = upstream.requests
    return all(later.extends(earlier) for earlier, later in pairwise(found))


def usage_of(form: str, reply: Any) -> int:
    """All tokens that went in, read from the cache or not."""
    used = reply.usage
    if form != "messages":
        return used.prompt_tokens if form == "chat" else used.input_tokens
    return used.input_tokens + used.cache_read_input_tokens + used.cache_creation_input_tokens


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_the_model_reads_back_in_rounds_that_the_caller_never_sees(
    form: str, streams: bool
) -> None:
    with provider(reader()) as upstream:
        talk = Talk(form, upstream)
        ask = talk.streamed if streams else lambda: talk.create(**talk.given)
        talk.says("What is in a, and what is v3777?")
        talk.answers(talk.took(ask()), BIG)
        reply = ask()
        assert talk.took(reply) == []
        assert talk.texts[-1].startswith("I look at it.")
        assert talk.texts[-1].endswith("Answer 2.")
        talk.says("Thank you. And now something else")
        assert talk.took(ask()) == []
        sent = upstream.requests
    assert len(sent) == 4  # the caller made three
    assert "v3777" in json.dumps(sent[2].messages[-1])  # read back
    assert extends_all(upstream)
    assert usage_of(form, reply) == sum(one.tokens for one in sent[1:3])
    assert "read_back" not in json.dumps(talk.messages)
    if streams:
        assert len(talk.passed) >= 1


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_in_a_mixed_answer_our_call_is_taken_out_and_put_back(form: str, streams: bool) -> None:
    with provider(reader(mixed=True)) as upstream:
        talk = Talk(form, upstream)
        ask = talk.streamed if streams else lambda: talk.create(**talk.given)
        talk.says("What is in a, and what is v3777?")
        talk.answers(talk.took(ask()), BIG)
        calls = talk.took(ask())
        assert calls == [("call_two_0123456789", "fetch")]
        talk.answers(calls, "short")
        assert talk.took(ask()) == []
        sent = upstream.requests
    assert [one.status for one in sent] == [200] * 3
    last = json.dumps(sent[-1].messages)
    assert "call_own_0123456789" in last
    assert "v3777" in last.partition("call_own_0123456789")[2]
    assert "short" in last


@pytest.mark.parametrize("form", FORMS)
async def test_async_clients_are_wrapped_as_well(form: str) -> None:
    with provider(reader()) as upstream:
        talk = Talk(form, upstream, asynchronous=True)
        talk.says("What is in a, and what is v3777?")
        talk.answers(talk.took(await talk.create(**talk.given)), BIG)
        stream = await talk.create(**{**talk.given, "stream": True})
        events = [event async for event in stream]
        reply = reverie.Reply.of(events)
        await talk.client.close()
        await talk.plain.close()
    assert reply.text.endswith("Answer 2.")
    assert not reply.tool_calls
    assert len(upstream.requests) == 3


@pytest.mark.parametrize("form", FORMS)
def test_memory_joins_and_is_learned(form: str, tmp_path: Path, home: Path) -> None:
    with provider(lambda body: "I will keep that in mind.") as upstream:
        memory = reverie.Memory(tmp_path, home=home)
        with Talk(form, upstream, memory=memory).client as client:
            talk = Talk(form, upstream, memory=memory)
            talk.client = client
            talk.says("Please remember: integration tests must hit a real database, never mocks.")
            talk.took(talk.create(**talk.given))
            told = str(reverie.report(client))
        assert "learned" in told or memory.list()
        other = Talk(form, upstream, memory=memory)
        other.says("How should I write integration tests for the database?")
        other.took(other.create(**other.given))
        other.says("And what about mocks in them, then?")
        other.took(other.create(**other.given))
        other.client.close()
        sent = upstream.requests
    assert "real database" in json.dumps(sent[1].messages)
    assert sent[2].extends(sent[1])
    assert "real database" not in json.dumps(other.messages)


def test_two_users_of_one_client_share_nothing(tmp_path: Path, home: Path) -> None:
    with provider(lambda body: "Fine.") as upstream:
        for user, fact in (("ann", "Ann likes tabs in code"), ("bob", "Bob likes spaces in code")):
            reverie.Memory(tmp_path, user=user, home=home).add(fact)
        for user in ("ann", "bob"):
            talk = Talk("messages", upstream, memory=reverie.Memory(tmp_path, user=user, home=home))
            talk.says("How do I like my code, tabs or spaces?")
            talk.took(talk.create(**talk.given))
            talk.client.close()
        ann, bob = (json.dumps(one.messages) for one in upstream.requests)
    assert "Ann likes" in ann
    assert "Bob likes" not in ann
    assert "Bob likes" in bob
    assert "Ann likes" not in bob


def test_nothing_is_written_without_a_memory(home: Path) -> None:
    with provider(["Fine."]) as upstream:
        talk = Talk("messages", upstream)
        talk.says("Hello there, how are you?")
        talk.took(talk.create(**talk.given))
        assert reverie.report(talk.client).requests == 1
    assert not home.exists()


def test_the_next_request_reads_the_last_one_from_the_cache() -> None:
    """A caller that sets no cache marks gets them: on the head and on the messages."""
    with provider(["Fine."] * 3) as upstream:
        talk = Talk("messages", upstream)
        talk.more = {"system": "You are careful. " * 1_000}
        used = list[Any]()
        for text in ("Hello there, how are you?", "And now?", "And after that?"):
            talk.says(text)
            reply = talk.create(**talk.given)
            used.append(reply.usage)
            talk.took(reply)
        first = upstream.requests[0].body
    assert first["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert used[0].cache_creation_input_tokens > 4_000
    for before, after in pairwise(used):
        assert after.cache_read_input_tokens >= before.cache_creation_input_tokens > 0


@pytest.mark.parametrize("place", ["system", "messages"])
def test_the_callers_own_cache_marks_are_left_alone(place: str) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    block = {"type": "text", "text": "You are careful.", **mark}
    with provider(["Fine."]) as upstream:
        talk = Talk("messages", upstream)
        if place == "system":
            talk.more = {"system": [block]}
            talk.says("Hello there, how are you?")
        else:
            talk.messages.append({"role": "user", "content": [block]})
        talk.create(**talk.given)
        (sent,) = upstream.requests
    assert json.dumps(sent.body).count("cache_control") == 1


def test_a_header_lets_one_request_pass_as_it_is() -> None:
    with provider(["Fine."] * 2) as upstream:
        talk = Talk("messages", upstream)
        talk.says("Hello there, how are you?")
        talk.more = {"extra_headers": {"X-Reverie": "off"}}
        talk.create(**talk.given)
        talk.more = {}
        talk.create(**talk.given)
        off, on = upstream.requests
    assert [t["name"] for t in off.body["tools"]] == ["fetch"]
    assert [t["name"] for t in on.body["tools"]] == ["fetch", "read_back"]


def test_a_history_that_lies_with_the_provider_is_not_touched() -> None:
    rules = WrapOptions(None, "collapse", learn=True, tools=True, say=lambda _: None)
    body: dict[str, Any] = {"model": "gpt-5", "input": "Hello there, how are you?"}
    begin = WrappedClient(rules).begin
    assert begin("responses", {}, json.dumps(body).encode()) is not None
    for name in ("previous_response_id", "conversation"):
        assert begin("responses", {}, json.dumps({**body, name: "x"}).encode()) is None


def test_every_other_call_and_everything_else_of_a_client_passes() -> None:
    with provider(["Fine."] * 3) as upstream:
        claude = Talk("messages", upstream)
        claude.says("Hello there, how are you?")
        raw = claude.client.messages.with_raw_response.create(**claude.given)
        assert raw.parse().content[0].text == "Fine."
        again = claude.client.with_options(timeout=9).messages.create(**claude.given)
        assert again.content[0].text == "Fine."
        count = claude.client.messages.count_tokens(
            model="claude-opus-5-5", messages=claude.messages
        )
        assert count.input_tokens > 0


def test_if_anything_of_ours_fails_the_callers_own_request_goes_out() -> None:
    notices: list[reverie.Notice] = []
    with provider(["Fine."]) as upstream:
        talk = Talk("messages", upstream, on_notice=notices.append)
        talk.says("word " * 900_000)  # no window takes that, and nothing can leave it
        with pytest.raises(anthropic.BadRequestError, match="too long"):
            talk.create(**talk.given)
    assert [t["name"] for t in upstream.requests[0].body["tools"]] == ["fetch"]
    assert any("passed as it is" in one.text for one in notices)


def test_errors_of_the_provider_are_those_of_the_callers_client() -> None:
    with provider([]) as upstream:
        talk = Talk("messages", upstream)
        talk.says("Hello there, how are you?")
        talk.more = {"max_tokens": 0 - 1}
        with pytest.raises(anthropic.APIStatusError):
            talk.create(**talk.given)


@pytest.mark.parametrize("client", [None, "client", object()])
def test_what_is_no_client_is_refused(client: object) -> None:
    with pytest.raises(InvalidInput, match="no client"):
        reverie.wrap(client)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(InvalidInput, match="policy"):
        reverie.wrap(anthropic.Anthropic(api_key="k"), policy="other")  # type: ignore[arg-type]


def test_nothing_waits_behind_a_client_that_is_closed(tmp_path: Path, home: Path) -> None:
    """An answer that is taken in while the client closes leaves no task for the loop to lose."""
    learning = BackgroundLearner(reverie.Memory(tmp_path, home=home), lambda _: None, learns=True)
    said = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello there"}]}
    out = learning.asked("messages", {}, json.dumps(said).encode())
    learning.close()
    learning._rests(out)  # as the answer's own callback does
    waiting = asyncio.all_tasks(beside().loop)
    assert not [task for task in waiting if "rested" in repr(task.get_coro())]


LEFT = """
import sys, anthropic, reverie
client = reverie.wrap(anthropic.Anthropic(base_url=sys.argv[1], api_key="k"), memory=True)
said = [{"role": "user", "content": "Please remember: orders come from the read replica."}]
client.messages.create(model="claude-opus-5-5", max_tokens=99, messages=said)
"""


def test_a_program_that_leaves_its_client_open_ends_and_has_learned(
    tmp_path: Path, home: Path
) -> None:
    with provider(lambda body: "Noted.") as upstream:
        line = [sys.executable, "-c", LEFT, upstream.anthropic_url]
        done = subprocess.run(
            line, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in home.rglob("project_*.md")]


def test_a_process_that_is_forked_beside_an_open_memory_ends_well(
    tmp_path: Path, home: Path
) -> None:
    learning = BackgroundLearner(reverie.Memory(tmp_path, home=home), lambda _: None, learns=True)
    child = multiprocessing.get_context("fork").Process(target=str)
    child.start()
    child.join(20)  # it has no part in the loop, and waits for nothing there
    assert child.exitcode == 0
    learning.close()


def test_a_wrapped_client_goes_on_in_a_child_that_was_forked(tmp_path: Path, home: Path) -> None:
    """It has no loop to wait for: the child begins one of its own."""
    notices: list[reverie.Notice] = []
    memory = reverie.Memory(tmp_path, home=home)
    memory.add("Orders come from the read replica.", type="project")
    wrapping = WrappedClient(
        WrapOptions(memory, "off", learn=True, tools=False, say=notices.append)
    )

    def asks(question: str) -> bool:
        said = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": question}]}
        begun = wrapping.begin("messages", {}, json.dumps(said).encode())
        return begun is not None and b"read replica" in begun.data and not notices

    def child() -> None:
        went = asks("Where do orders come from, by now?")
        wrapping.close()
        sys.exit(0 if went else 1)

    assert asks("Where do orders come from?")
    forked = multiprocessing.get_context("fork").Process(target=child)
    forked.start()
    try:
        forked.join(60)
        assert forked.exitcode == 0
    finally:
        forked.kill()
        wrapping.close()
