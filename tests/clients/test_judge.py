"""The judge itself: it must see what a proxy can break, and nothing that it did not."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.clients.judge import Price, Seen, judge, price, seen
from tests.proxy import clients
from tests.proxy.clients import MARK, gave, use

pytestmark = pytest.mark.spec("B15.clients")

HEADERS = {"X-Claude-Code-Session-Id": "s1"}
WORDS = "word " * 2_000  # 10,000 bytes


def text(words: str, mark: bool = False) -> dict[str, Any]:
    return {**clients.text(words), **({"cache_control": MARK} if mark else {})}


def only(*blocks: dict[str, Any]) -> dict[str, Any]:
    """A request of one message, and nothing else."""
    return {"model": "m", "messages": [clients.user(*blocks)]}


def body(*messages: tuple[str, Any], **more: Any) -> dict[str, Any]:
    said = [{"role": role, "content": content} for role, content in messages]
    return {"model": "m", "system": [text(WORDS, mark=True)], "messages": said, **more}


def rounds(count: int) -> list[dict[str, Any]]:
    """A conversation of tool rounds as a client sends it, the mark on the last block."""
    said: list[tuple[str, Any]] = [("user", "go")]
    found = []
    for n in range(count):
        last = copy.deepcopy(said)
        content = last[-1][1]
        blocks = [text(content)] if isinstance(content, str) else content
        blocks[-1] = {**blocks[-1], "cache_control": MARK}
        last[-1] = (last[-1][0], blocks)
        found.append(body(*last))
        made, given = use(f"c{n}", "Bash", command="x"), gave(f"c{n}", f"{n} {WORDS}")
        said += [("assistant", [made]), ("user", [given])]
    return found


def sent(bodies: list[dict[str, Any]], **headers: str) -> list[Seen]:
    named = {**HEADERS, **headers}
    return [seen(n, "/v1/messages", named, json.dumps(b)) for n, b in enumerate(bodies)]


def changed(bodies: list[dict[str, Any]], change: Any) -> list[dict[str, Any]]:
    found = copy.deepcopy(bodies)
    for n, one in enumerate(found):
        change(n, one)
    return found


def previews(n: int, one: dict[str, Any]) -> None:
    for message in one["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "tool_result":
                block["content"] = "stored " + block["content"][:20]


def test_passing_on_is_no_break() -> None:
    client = sent(rounds(6))
    found = judge(client, client)
    assert (found.client_breaks, found.upstream_breaks, found.caused) == (0, 0, ())
    assert found.most_marks == 2


def test_frozen_previews_and_reminders_are_no_break_and_cheaper() -> None:
    plain = rounds(6)

    def shaped(n: int, one: dict[str, Any]) -> None:
        previews(n, one)
        first = one["messages"][0]
        blocks = first["content"] if isinstance(first["content"], list) else [text("go")]
        first["content"] = [*blocks, text("a reminder")]

    client, upstream = sent(plain), sent(changed(plain, shaped))
    assert judge(client, upstream).caused == ()
    assert price(upstream).cost < 0.6 * price(client).cost


def test_a_result_that_is_replaced_late_is_a_break_of_the_proxys() -> None:
    plain = rounds(6)
    late = changed(plain, lambda n, one: previews(n, one) if n >= 4 else None)
    found = judge(sent(plain), sent(late))
    assert [one.number for one in found.caused] == [4]
    assert found.client_breaks == 0


def test_a_reminder_that_changes_is_a_break_each_time() -> None:
    def moving(n: int, one: dict[str, Any]) -> None:
        one["system"].append(text(f"it is {n} o'clock"))

    plain = rounds(5)
    assert len(judge(sent(plain), sent(changed(plain, moving))).caused) == 4


def test_a_break_of_the_clients_is_not_the_proxys() -> None:
    plain = rounds(6)

    def compacts(n: int, one: dict[str, Any]) -> None:
        if n >= 4:
            one["messages"][0]["content"] = "a summary"

    client = changed(plain, compacts)
    upstream = changed(client, previews)
    found = judge(sent(client), sent(upstream))
    assert found.caused == ()
    assert found.client_breaks == found.upstream_breaks == 1


def test_a_break_upstream_before_the_clients_own_is_the_proxys() -> None:
    plain = rounds(6)

    def rewinds(n: int, one: dict[str, Any]) -> None:
        if n == 5:
            one["messages"][8] = {"role": "user", "content": "another way"}
            del one["messages"][9:]

    client = changed(plain, rewinds)
    upstream = changed(client, lambda n, one: previews(n, one) if n < 5 else None)
    (found,) = judge(sent(client), sent(upstream)).caused
    assert found.number == 5


def test_the_mark_and_the_spelling_of_a_text_do_not_count() -> None:
    marked = ("user", [text("go", mark=True)])
    client = sent([body(("user", "go")), body(marked, ("assistant", "a"))])
    assert judge(client, client).client_breaks == 0


def test_strangers_with_the_same_first_words_are_no_thread() -> None:
    one = sent([body(("user", "go"))])
    other, given = {"x-claude-code-session-id": "s2"}, body(("user", "go"))
    two = seen(1, "/v1/messages", other, json.dumps(given))
    more = body(("user", [text("go"), text("mine")]))
    up = [*one, seen(1, "/v1/messages", {}, json.dumps(more))]
    assert judge([*one, two], up).caused == ()


def test_a_request_that_did_not_arrive_is_named() -> None:
    client = sent(rounds(3))
    assert judge(client, client[:2]).lost == (2,)


def test_too_many_marks_are_counted_wherever_they_stand() -> None:
    given = body(("user", [text("a", mark=True)] * 3), cache_control=MARK)
    assert judge([], sent([given])).most_marks == 5


# --- price


def test_the_first_asks_to_write_the_second_reads() -> None:
    cache = Price()
    (one, two) = sent([body(("user", [text(WORDS, mark=True)]))] * 2)
    tokens = sum(unit.tokens for unit in one.units)
    assert cache.ask(one, output=0) == pytest.approx(tokens * 1.25)
    assert cache.ask(two, output=0) == pytest.approx(tokens * 0.1)
    cache.now += 300
    assert cache.ask(two, output=0) == pytest.approx(tokens * 1.25)


def test_a_mark_looks_back_twenty_blocks_and_no_further() -> None:
    for count, hits in ((18, True), (19, False)):
        between = [text(f"{n}") for n in range(count)]
        later = only(text(WORDS), *between, text("z", mark=True))
        first, second = sent([only(text(WORDS, mark=True)), later])
        cache = Price()
        cache.ask(first, output=0)
        assert (cache.ask(second, output=0) < first.units[0].tokens) is hits


def test_another_model_has_another_cache_and_short_prompts_none() -> None:
    cache = Price()
    one, two = sent([body(("user", "go")), {**body(("user", "go")), "model": "n"}])
    assert cache.ask(one, output=0) == pytest.approx(cache.ask(two, output=0))
    (short,) = sent([only(text("x", mark=True))])
    assert cache.ask(short, output=0) == cache.ask(short, output=0)


def test_openai_prompts_are_read_in_steps() -> None:
    said = clients.user(WORDS)
    given = {"model": "g", "messages": [said]}
    longer = {"model": "g", "messages": [said, clients.assistant("a")]}
    cache = Price()
    first, second = (
        cache.ask(seen(n, "/v1/chat/completions", {}, json.dumps(one)), output=0)
        for n, one in enumerate((given, longer))
    )
    assert second < 0.2 * first
