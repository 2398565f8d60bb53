"""Thinking is bound to what precedes it; compaction blocks stand for what they sum up."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from reverie.simulator import ApiError, Engine, Ledger, thinking_block
from tests.conftest import Scale

from .bench import rounds, sessions
from .talk import BINDING, COMPACTING, KEY, assistant, body, engine, result, said, text, use, user

pytestmark = pytest.mark.spec("14")

DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
TOOLS = [{"name": "Read", "input_schema": {"type": "object"}}]


def talked(sim: Engine) -> list[dict[str, Any]]:
    """A turn with two thoughts."""
    messages = [user("go")]
    for n in range(2):
        done = sim.respond(
            body(*messages, system="s", tools=TOOLS),
            [thinking_block(f"hm {n}"), use(f"t{n}", a=1.5)],
        )
        messages += [said(done), user(result(f"t{n}", f"out {n}"))]
    return messages


def test_a_history_sent_back_as_it_was_is_accepted():
    sim = engine()
    messages = talked(sim)
    sim.respond(body(*messages, system="s", tools=TOOLS))
    as_text = json.dumps(body(*messages, system=[text("s", "1h")], tools=TOOLS), indent=1)
    sim.respond(as_text)
    again = [{"role": "user", "content": "go"}, *messages[1:]]
    sim.respond(body(*again, system="s", tools=TOOLS))
    other = engine()  # a restarted simulator knows its own
    other.respond(body(*messages, system="s", tools=TOOLS))


EDITS: list[tuple[str, Any]] = [
    ("messages.1.content.0", lambda m: m[0]["content"][0].update(text="went")),
    ("messages.3.content.0", lambda m: m[2]["content"][0].update(content="[cleared]")),
    ("messages.3.content.0", lambda m: m[1]["content"].pop(0)),
    ("messages.3.content.0", lambda m: m[1]["content"][1]["input"].update(a=1)),
    ("messages.3.content.0", lambda m: m[2]["content"].append(text("reminder"))),
    ("messages.2.content.0", lambda m: m.insert(0, user("before"))),
]


@pytest.mark.parametrize(("where", "edit"), EDITS)
def test_an_edit_makes_the_thinking_behind_it_invalid(where, edit):
    sim = engine()
    messages = copy.deepcopy(talked(sim))
    edit(messages)
    with pytest.raises(ApiError) as caught:
        sim.respond(body(*messages, system="s", tools=TOOLS))
    assert caught.value.message == (
        f"{where}: Invalid `signature` in `thinking` block. "
        "The block is bound to a different conversation."
    )
    assert caught.value.status == 400


@pytest.mark.parametrize("head", [{"system": "other"}, {"tools": []}])
def test_another_head_makes_all_thinking_invalid(head):
    sim = engine()
    with pytest.raises(ApiError, match=r"messages.1.content.0: Invalid"):
        sim.respond(body(*talked(sim), **{"system": "s", "tools": TOOLS, **head}))


def test_drop_block_drops_and_says_so():
    sim = engine()
    messages = copy.deepcopy(talked(sim))
    messages[2]["content"][0]["content"] = "[cleared]"
    asked = body(*messages, system="s", tools=TOOLS, thinking=DROP)
    with pytest.raises(ApiError, match="thinking-binding-controls"):
        sim.respond(asked)
    done = sim.respond(asked, [thinking_block("new"), text("ok")], headers={**KEY, **BINDING})
    assert done.response.extra["input_transformations"] == [
        {
            "type": "thinking_dropped",
            "path": "messages.3.content.0",
            "reason": "prefix_binding_mismatch",
        }
    ]
    shown = sim.receive(asked, {**KEY, **BINDING})
    assert "hm 1" not in json.dumps(shown.shown.body["messages"])
    later = body(*messages, said(done), user("on"), system="s", tools=TOOLS, thinking=DROP)
    again = sim.respond(later, headers={**KEY, **BINDING})
    dropped: Any = again.response.extra["input_transformations"]
    assert [d["path"] for d in dropped] == ["messages.3.content.0"]


def test_a_result_replaced_before_it_was_first_sent_is_no_edit():
    sim = engine()
    first = sim.respond(body(user("go")), [thinking_block("hm"), use("t0")])
    stored = [user("go"), said(first), user(result("t0", "<persisted-output>"))]
    second = sim.respond(body(*stored), [thinking_block("hm"), text("done")])
    sim.respond(body(*stored, said(second), user("thanks")))


def test_cache_edits_and_marks_are_neutral():
    sim = engine()
    messages = talked(sim)
    edits = {"type": "cache_edits", "delete": ["t0"]}
    messages[4]["content"].append(edits)
    done = sim.respond(body(*messages, system="s", tools=TOOLS), [thinking_block("hm"), text("x")])
    messages[4]["content"].remove(edits)
    messages[0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    sim.respond(body(*messages, said(done), user("on"), system="s", tools=TOOLS))


def test_thinking_of_nobody_is_refused_and_another_models_is_dropped():
    sim = engine()
    strange = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmF0dXJl"}
    with pytest.raises(ApiError, match=r"messages.1.content.0: Invalid `signature`"):
        sim.respond(body(user("go"), assistant(strange, "x"), user("on")))
    done = sim.respond(body(user("go")), [thinking_block("hm"), text("x")])
    tampered = {**done.response.content[0].value, "thinking": "other"}
    with pytest.raises(ApiError, match="Invalid `signature`"):
        sim.respond(body(user("go"), assistant(tampered, "x"), user("on")))
    asked = body(user("go"), said(done), user("on"), model="claude-opus-5")
    reported: Any = sim.respond(asked, headers={**KEY, **BINDING}).response.extra
    assert reported["input_transformations"][0]["reason"] == "model_binding_mismatch"


def test_redacted_thinking_is_bound_too():
    sim = engine()
    done = sim.respond(body(user("go")), [{"type": "redacted_thinking"}, text("x")])
    assert done.response.content[0].get("data")
    sim.respond(body(user("go"), said(done), user("on")))
    with pytest.raises(ApiError, match=r"`redacted_thinking` block. The block is bound"):
        sim.respond(body(user("went"), said(done), user("on")))


# --- recorded histories


def test_every_recorded_session_is_accepted_as_it_was_recorded(shared: Path, scale: Scale) -> None:
    """Answers keep their recorded signatures and are bound where they were given."""
    thoughts = 0
    for path in sessions(shared)[:: scale.pick(8, 1)]:
        sim = engine(ledger=Ledger(bodies=False))
        for number, one in enumerate(rounds(path)):
            if number >= scale.pick(40, 10_000):
                break
            if one.moved:  # the recorded client compacted or went back: later thoughts are new
                break
            asked = {**json.loads(one.request.body()), "max_tokens": 200_000}
            done = sim.respond(asked, list(one.answer.blocks))
            assert [b.raw for b in done.response.content] == [b.raw for b in one.answer.blocks]
            thoughts += sum(b.thinking for b in one.answer.blocks)
    assert thoughts > scale.pick(50, 900)


def test_a_recorded_history_can_be_adopted_whole(shared: Path) -> None:
    checked = 0
    for path in sessions(shared)[2:20:3]:
        last = None
        for one in rounds(path):
            if one.moved:
                break
            last = one
        if last is None:
            continue
        asked = json.loads(last.request.body())
        places = [
            (at, n)
            for at, m in enumerate(asked["messages"])
            for n, b in enumerate(m["content"])
            if b["type"] == "thinking"
        ]
        if len(places) < 3:
            continue
        asked["max_tokens"] = 9
        with pytest.raises(ApiError, match="Invalid `signature`"):
            engine().respond(asked)
        sim = engine()
        assert sim.adopt(last.request) == len(places)
        sim.respond(asked)
        asked["messages"][0]["content"][-1]["text"] += " "
        at, n = places[0]
        with pytest.raises(ApiError, match=rf"messages.{at}.content.{n}: .*different conversation"):
            sim.respond(asked)
        checked += 1
    assert checked >= 3


# --- on-demand compaction


def compacted(sim: Engine, messages: list[Any]) -> Any:
    asked = body(*messages, system="s", tools=TOOLS, compaction={"type": "summarize"})
    return sim.respond(asked, "what was said", headers={**KEY, **COMPACTING})


def test_a_compaction_block_stands_for_what_it_sums_up():
    sim = engine()
    messages = talked(sim)
    done = compacted(sim, messages[:3])
    (block,) = done.response.content
    assert done.response.stop_reason == "compaction"
    assert block.get("content") == "what was said"
    usage: Any = done.response.usage
    assert usage["input_tokens"] == usage["output_tokens"] == 0
    assert usage["iterations"][0]["type"] == "compaction"
    assert done.logged.charge.total > 0
    kept = [assistant(block.value), *messages[3:]]
    sim.respond(body(*kept, system="s", tools=TOOLS), headers={**KEY, **COMPACTING})
    with pytest.raises(ApiError, match="different conversation"):
        sim.respond(body(*kept, system="t", tools=TOOLS), headers={**KEY, **COMPACTING})


def test_a_compaction_that_cannot_be_is_refused_by_code():
    sim = engine()
    messages = talked(sim)
    block = compacted(sim, messages).response.content[0].value
    beta = {**KEY, **COMPACTING}
    first = assistant(block)
    cases: list[tuple[str, dict[str, Any]]] = [
        ("compaction_block_misplaced", body(user("a"), assistant(block), user("b"))),
        ("compaction_block_ambiguous", body(assistant(block, block), user("b"))),
        ("compaction_content_mismatch", body(assistant({**block, "content": "x"}), user("b"))),
        ("compaction_signature_invalid", body(assistant({**block, "signature": "x"}), user("b"))),
        ("compaction_nothing_to_summarize", body(first, compaction={"type": "summarize"})),
        ("", body(user("a"), compaction={"type": "else"})),
        ("", body(user("a"), compaction={"type": "summarize"}, model="claude-haiku-4-5")),
        ("", body(user("a"), compaction={"type": "summarize"}, context_management={"edits": []})),
    ]
    managed = {**KEY, "anthropic-beta": "compact-2026-09-04,context-management-2025-06-27"}
    for code, asked in cases:
        with pytest.raises(ApiError) as caught:
            sim.respond(asked, headers=managed)
        assert (caught.value.status, caught.value.wire_code) == (400, code)
    with pytest.raises(ApiError, match="compact-2026-09-04"):
        sim.respond(body(first, user("b"), system="s", tools=TOOLS))
    nothing = {"type": "compaction", "content": None}
    sim.respond(body(assistant(nothing), user("b")), headers=beta)
