"""Mechanism 3: the provider clears old results itself, and the count follows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reverie.layers import COMPACTABLE, by_cache_edit, by_time, context_management, managed_options
from reverie.simulator import Engine, SimulatedAnswer, SimulatedModel
from reverie.testing import FixedFlags, ManualClock, ScriptedModel, call
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Entry,
    HeadSet,
    Sent,
    Usage,
    UserMessage,
    View,
    apply,
    block_of,
    dump,
    text_block,
)
from reverie.wire import render
from reverie.world import Capabilities, complete
from tests.classic import DEFAULTS, world
from tests.layers.running import MODEL, result

pytestmark = pytest.mark.spec("4")
CAN = Capabilities(context_management=True, window=200_000)
OFFERED = ("Read", "Bash", "mcp__db__query", "ReadBack", "Agent")


def asked(window: int = 200_000, thinking: bool = True, **numbers: object):
    model = ScriptedModel([], capabilities=replace(CAN, window=window))
    where = world(model=model, settings=replace(DEFAULTS, **numbers))
    return context_management(where, OFFERED, thinking=thinking)


def test_the_option_names_the_edits_in_the_providers_order():
    assert asked() == {
        "edits": [
            {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}},
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 147_000},
                "clear_at_least": {"type": "input_tokens", "value": 73_500},
                "exclude_tools": ["mcp__db__query", "ReadBack", "Agent"],
            },
        ]
    }


def test_a_large_window_uses_the_numbers_as_they_are():
    found = asked(window=1_000_000)
    assert found is not None
    clearing = json.loads(dump(found))["edits"][1]
    assert clearing["trigger"]["value"] == 180_000
    assert clearing["clear_at_least"]["value"] == 140_000


def test_thinking_goes_only_by_its_own_edit_and_may_all_be_kept():
    without = asked(thinking=False)
    assert without is not None
    assert len(json.loads(dump(without))["edits"]) == 1
    all_kept = asked(api_thinking_keep_all=True)
    assert all_kept is not None
    assert json.loads(dump(all_kept))["edits"][0]["keep"] == {"type": "all"}


def test_only_where_the_provider_can_and_never_beside_collapse():
    plain = world(model=ScriptedModel([], capabilities=Capabilities()))
    assert context_management(plain, OFFERED, thinking=True) is None
    assert context_management(world(), OFFERED, thinking=True) is None
    assert asked(context_policy="collapse") is None


@pytest.mark.parametrize(
    ("thinking", "edits"),
    [
        ({"type": "enabled", "budget_tokens": 9}, 2),
        ({"type": "adaptive"}, 2),
        ({"type": "disabled"}, 1),
        (None, 1),
    ],
)
def test_a_session_that_thinks_has_its_thinking_cleared(thinking: object, edits: int):
    model = ScriptedModel([], capabilities=CAN)
    where = world(model=model, settings=replace(DEFAULTS, api_context_management=True))
    options = {} if thinking is None else {"thinking": thinking}
    found = managed_options(where, OFFERED, options)
    assert len(found["context_management"]["edits"]) == edits
    own = {**options, "context_management": {"edits": []}}
    assert managed_options(where, OFFERED, own) == own
    assert managed_options(world(model=model), OFFERED, options) == options


def test_every_tool_that_may_not_be_cleared_is_excluded():
    found = context_management(
        world(model=ScriptedModel([], capabilities=CAN)), sorted(COMPACTABLE), thinking=False
    )
    assert found is not None
    assert json.loads(dump(found))["edits"][0]["exclude_tools"] == []


def test_what_was_cleared_is_counted_once():
    """An answer's usage is of what the model was shown, so nothing is taken off again."""
    clearing = {"type": "clear_tool_uses_20250919", "cleared_input_tokens": 900}
    edits = dump([clearing, {"type": "clear_thinking_20251015", "cleared_input_tokens": 90}])
    view = apply(EMPTY, Entry("a", "", 1.0, UserMessage((text_block("x" * 4_000),))))
    answer = AssistantMessage((text_block("ok"),), usage=Usage(100, 0, 0, 1), applied_edits=edits)
    view = apply(view, Entry("b", "a", 2.0, answer))
    assert view.tokens == 101
    view = apply(view, Entry("c", "b", 3.0, UserMessage((text_block("y" * 400),))))
    assert view.tokens == 201


async def test_the_simulator_takes_the_option_and_the_count_follows():
    """Results go once the trigger is passed; the others of ours stay out of the way."""
    numbers = replace(DEFAULTS, api_clear_trigger_tokens=9_000, api_clear_at_least_tokens=2_000)
    said = [text_block("ok")]
    clock = ManualClock(1_000.0)
    engine = Engine(answerer=lambda _: SimulatedAnswer(tuple(said)), clock=clock.now)
    model = SimulatedModel(engine, MODEL, window=200_000)
    where = world(model=model, settings=numbers, clock=clock, flags=FixedFlags())
    option = context_management(where, ("Bash", "Agent"), thinking=False)
    options = dump({"max_tokens": 1_000, "context_management": option})
    view = apply(EMPTY, Entry("h", "", 1.0, HeadSet(MODEL, options=options)))
    answers: list[AssistantMessage] = []

    def append(view: View, record: UserMessage | AssistantMessage | Sent) -> View:
        entry = Entry(f"e{len(view.entries)}", view.leaf, clock.time, record)
        return apply(view, entry)

    view = append(view, UserMessage((text_block("go"),)))
    for n in range(10):
        said[:] = [call("Bash", f"t{n}", command="x")]
        request = render(view)
        view = append(view, Sent("main", view.leaf, request.parts(), request.marks))
        answers.append((await complete(model, request)).record())
        view = append(view, answers[-1])
        view = append(view, UserMessage((result(f"t{n}", "a line of words\n" * 400),), "tool"))
    clock.time += 99_999
    assert not await by_time(view, where)
    assert not await by_cache_edit(view, where)
    edits = [edit for one in answers for edit in json.loads(one.applied_edits)]
    assert sum(edit["cleared_input_tokens"] for edit in edits) > 2_000
    assert view.tokens < view.estimated - 2_000
    block = block_of({"type": "text", "text": "more"})
    assert append(view, UserMessage((block,))).tokens == view.tokens + block.tokens
