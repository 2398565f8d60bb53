"""One suite over both users of the core: a client through the proxy, and a wrapped one."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.interception import InterceptionEngine
from reverie.testing import Provider, provider
from tests.proxy.clients import BIG, Client, assistant, gave, ran, result, use, user
from tests.proxy.proxied import READ, proxied

pytestmark = pytest.mark.spec("B15")
anthropic = pytest.importorskip("anthropic")
FACT = "Integration tests must hit a real database, never mocks"
Ask = Callable[[list[Any]], dict[str, Any]]


@contextmanager
def by_proxy(home: Path, project: Path, upstream: Provider) -> Generator[Ask]:
    with proxied(home, upstream.anthropic_url) as proxy:
        headers = {"x-reverie-project": str(project)}
        plain = anthropic.Anthropic(api_key="k", base_url=proxy.address.anthropic, max_retries=0)
        with plain as client:
            yield lambda messages: _asked(client, messages, extra_headers=headers)


@contextmanager
def by_wrap(home: Path, project: Path, upstream: Provider) -> Generator[Ask]:
    plain = anthropic.Anthropic(api_key="k", base_url=upstream.anthropic_url, max_retries=0)
    memory = reverie.Memory(project, home=home)
    with plain, reverie.wrap(plain, memory=memory) as client:
        yield lambda messages: _asked(client, messages)


def _asked(client: Any, messages: list[Any], **more: Any) -> dict[str, Any]:
    found = client.messages.create(
        model="claude-opus-5-5", max_tokens=99, messages=messages, tools=[READ], **more
    )
    return assistant(*(b.model_dump(exclude_none=True) for b in found.content))


both = pytest.mark.parametrize("way", [by_proxy, by_wrap])


@both
def test_a_fact_of_one_conversation_is_there_in_the_next(
    way: Any, home: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with provider(lambda body: "I will keep that in mind.") as upstream:
        with way(home, project, upstream) as ask:
            ask([user(f"Please remember: {FACT}.")])
        with by_proxy(home, project, upstream) as ask:
            messages = [user("How do I test the database?")]
            messages += [ask(messages), user("And what of mocks in those tests?")]
            ask(messages)
    _, first, second = upstream.requests
    assert "real database" in json.dumps(first.messages)
    assert second.extends(first)


@both
def test_a_large_result_leaves_once_and_for_good(way: Any, home: Path, tmp_path: Path) -> None:
    with provider(lambda body: "Going on.") as upstream, way(home, tmp_path, upstream) as ask:
        messages = [user("Read these for me, please")]
        for n in range(3):
            messages += ran(f"toolu_{n:016d}", BIG * 3)
            messages += [ask(messages), user(f"Go on with number {n}, please")]
    sent = upstream.requests
    assert all(later.extends(earlier) for earlier, later in pairwise(sent))
    assert len(json.dumps(sent[-1].messages)) < len(json.dumps(messages)) / 4


@both
def test_what_the_provider_says_comes_back_as_it_is(way: Any, home: Path, tmp_path: Path) -> None:
    with (
        provider([]) as upstream,
        way(home, tmp_path, upstream) as ask,
        pytest.raises(anthropic.APIStatusError),
    ):
        ask([assistant("I begin, which nobody may.")])


@pytest.mark.parametrize(
    "messages",
    [
        [user(gave("x", BIG))],
        [user("Go"), assistant(use("a"), use("a")), user(gave("a", ""), gave("a", ""))],
        [user()],
        [{"role": "strange", "content": [{"type": "unknown", "deep": [{}]}]}, {"role": "user"}],
        [],
    ],
)
async def test_row_62_calls_and_results_that_do_not_fit_pass_as_they_are(
    through: InterceptionEngine, messages: list[Any]
) -> None:
    """What a client may send is the provider's to say; nothing of ours repairs or drops it."""
    client = Client(through)
    client.marks = False
    client.messages = messages
    sent = await client.asks(None)
    await client.asks(None)
    assert [m["role"] for m in sent["messages"]] == [m["role"] for m in messages]
    assert [len(m.get("content", "")) for m in sent["messages"]] == [
        len(m.get("content", "")) for m in messages
    ]


async def test_row_63_no_text_of_a_client_chooses_where_a_result_lies(
    through: InterceptionEngine, home: Path
) -> None:
    client = Client(through, "../../escape")
    client.says("Read it, please")
    client.messages += ran("../../../../x/y", f"saved at ../../x\n{BIG}")
    text = result(await client.asks(None))
    stored = Path(text.partition("stored whole in ")[2].partition(";")[0])
    assert stored.is_relative_to(home / "projects")
    assert ".." not in str(stored)
    assert len(text) < 3_000
