"""What the server clears, and what it says of a cache that could not be used."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reverie.simulator import CLEARED, LIFETIMES, ApiError, Engine, call, thinking_block
from reverie.testing import ManualClock

from .talk import (
    CLEAR,
    KEY,
    MANAGING,
    assistant,
    body,
    engine,
    marked,
    result,
    text,
    use,
    user,
    words,
)

pytestmark = [pytest.mark.spec("2"), pytest.mark.spec("14")]


# --- context management


def history(results: int, size: int = 1000) -> list[dict[str, Any]]:
    out = [user("go")]
    for n in range(results):
        name = "Bash" if n % 5 == 4 else "Read"
        out += [assistant(use(f"t{n}", name, n=n)), user(result(f"t{n}", words(n, size)))]
    return out


def managed(sim: Engine, messages: list[Any], *edits: dict[str, Any], **other: Any) -> Any:
    asked = body(*messages, context_management={"edits": list(edits)}, **other)
    return sim.respond(asked, headers={**KEY, **MANAGING})


def test_old_results_are_cleared_over_the_trigger() -> None:
    sim = engine()
    under = managed(sim, history(4), CLEAR)
    assert under.response.extra["context_management"] == {"applied_edits": []}
    over = managed(sim, history(6), CLEAR)
    (applied,) = over.response.extra["context_management"]["applied_edits"]
    gone = applied["cleared_input_tokens"]
    assert applied["cleared_tool_uses"] == 3  # at the fifth result
    plain = sim.respond(body(*history(6))).logged.charge.total
    assert over.logged.charge.total == plain - gone
    asked = body(*history(6), context_management={"edits": [CLEAR]})
    counted = sim.count_tokens(asked, {**KEY, **MANAGING})
    assert counted == {
        "input_tokens": plain - gone,
        "context_management": {"original_input_tokens": plain},
    }
    shown = json.dumps(sim.receive(asked, {**KEY, **MANAGING}).shown.body)
    assert shown.count(CLEARED) == 3
    assert json.dumps(asked).count(CLEARED) == 0


def test_what_is_cleared_stays_cleared_so_the_cache_holds_between() -> None:
    sim = engine()
    before = None
    breaks = 0
    for n in range(1, 20):
        messages = [*history(n)[:-1], marked(history(n)[-1])]
        charge = managed(sim, messages, CLEAR).logged.charge
        if before is not None and charge.read < before:
            breaks += 1
        before = charge.read + charge.written
    assert breaks == 5  # 20,000 tokens of results, about 3,000 at a time


@pytest.mark.parametrize(
    ("change", "cleared"),
    [
        ({"clear_at_least": {"type": "input_tokens", "value": 9000}}, 0),
        ({"clear_at_least": {"type": "input_tokens", "value": 2000}}, 3),
        ({"exclude_tools": ["Read"]}, 1),
        ({"trigger": {"type": "tool_uses", "value": 5}}, 4),
        ({"keep": {"type": "tool_uses", "value": 0}}, 5),
        ({"trigger": None}, 0),
    ],
)
def test_each_option_of_clearing_counts(change: dict[str, Any], cleared: int) -> None:
    done = managed(engine(), history(7), {**CLEAR, **change})
    applied = done.response.extra["context_management"]["applied_edits"]
    assert sum(a["cleared_tool_uses"] for a in applied) == cleared


def test_inputs_can_be_cleared_too() -> None:
    asked = body(*history(6), context_management={"edits": [{**CLEAR, "clear_tool_inputs": True}]})
    shown = engine().receive(asked, {**KEY, **MANAGING}).shown.body
    messages: Any = shown["messages"]
    inputs = [b["input"] for m in messages for b in m["content"] if "input" in b]
    assert [bool(i) for i in inputs] == [False] * 3 + [True] * 3


def test_old_thinking_is_cleared_by_turns() -> None:
    sim = engine()
    messages: list[Any] = []
    for n in range(3):
        messages.append(user(f"turn {n}"))
        for step in range(2):
            done = sim.respond(body(*messages), [thinking_block(words(n, 200)), call("Read")])
            block: list[Any] = [b.value for b in done.response.content]
            messages += [assistant(*block), user(result(block[-1]["id"], f"{step}"))]
    keep = {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}
    (applied,) = managed(sim, messages, keep).response.extra["context_management"]["applied_edits"]
    assert applied["cleared_thinking_turns"] == 2
    assert applied["cleared_input_tokens"] == 4 * 200
    for every in ("all", {"type": "all"}):
        done = managed(sim, messages, {**keep, "keep": every})
        assert done.response.extra["context_management"] == {"applied_edits": []}
    with pytest.raises(ApiError, match="must be listed first"):
        managed(sim, messages, CLEAR, keep)
    with pytest.raises(ApiError, match="not supported"):
        managed(sim, messages, {"type": "compact_20260112"})


def test_clearing_on_the_server_leaves_later_thinking_valid() -> None:
    sim = engine()
    messages = history(6)
    first = managed(sim, messages, CLEAR)
    assert first.response.extra["context_management"]["applied_edits"]
    asked = body(*messages, context_management={"edits": [CLEAR]})
    done = sim.respond(asked, [thinking_block("hm"), text("x")], headers={**KEY, **MANAGING})
    back = assistant(*(b.value for b in done.response.content))
    managed(sim, [*messages, back, user("on")], CLEAR)
    sim.respond(body(*messages, back, user("on")))


# --- diagnosis


def test_the_diagnosis_names_the_first_part_that_changed() -> None:
    sim = engine()
    system, tools = [text(words(0), "1h")], [{"name": "A", "description": words(9)}]
    asked = [user(text(words(1), "5m"))]
    base: dict[str, Any] = {"system": system, "tools": tools}
    first = sim.respond(body(*asked, **base, diagnostics={"previous_message_id": None}))
    assert first.response.extra["diagnostics"] is None
    previous = {"previous_message_id": first.response.id}

    def reason(*messages: Any, **change: Any) -> Any:
        done = sim.respond(body(*messages, **{**base, **change}, diagnostics=previous))
        found: Any = done.response.extra["diagnostics"]
        return found and found["cache_miss_reason"]

    more = [assistant("x"), user(text("y", "5m"))]
    total = first.logged.charge.written
    assert reason(*asked, *more) is None
    assert reason(*asked, model="claude-opus-5") == {
        "type": "model_changed",
        "cache_missed_input_tokens": total,
    }
    assert reason(*asked, tools=[{"name": "B"}])["type"] == "tools_changed"
    changed = reason(*asked, system=[text(words(5), "1h")])
    assert (changed["type"], changed["cache_missed_input_tokens"]) == ("system_changed", total)
    edited = reason(user(text(words(2), "5m")), *more)
    assert edited == {"type": "messages_changed", "cache_missed_input_tokens": 600}
    assert reason(*asked, tool_choice={"type": "none"}) == {"type": "unavailable"}
    gone = sim.respond(body(*asked, diagnostics={"previous_message_id": "msg_0"}))
    assert gone.response.extra["diagnostics"] == {
        "cache_miss_reason": {"type": "previous_message_not_found"}
    }
    assert "diagnostics" not in sim.respond(body(*asked)).response.extra


def test_an_expired_lifetime_is_no_divergence() -> None:
    clock = ManualClock()
    sim = engine(clock=clock)
    first = sim.respond(body(user(text(words(1), "5m"))))
    clock.time += LIFETIMES["5m"] + 1
    again = sim.respond(
        body(
            user(text(words(1), "5m")),
            diagnostics={"previous_message_id": first.response.id},
        )
    )
    assert again.logged.charge.read == 0
    assert again.response.extra["diagnostics"] is None
