"""In the `cachesim` profile the simulator bills as the shared bench's cache model does."""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import Scale

from . import bench
from .bench import BadRequest, CacheSim, PromptTooLong, load, rounds, sessions

pytestmark = pytest.mark.spec("14")

CASES = [
    "test_write_then_read_then_extend",
    "test_one_hour_costs_double_and_lives_longer",
    "test_ttl_ends_and_a_hit_renews_it",
    "test_a_changed_block_loses_all_behind_it",
    "test_entries_exist_only_at_breakpoints",
    "test_lookback_is_twenty_positions",
    "test_short_prefix_is_not_cached",
    "test_limits",
]


def ours() -> ModuleType:
    return sys.modules[bench.__name__]


def test_no_case_of_the_bench_is_left_out(shared: Path) -> None:
    module = load(shared, "test_cachesim", cachesim=ours())
    assert sorted(CASES) == sorted(n for n in vars(module) if n.startswith("test_"))


@pytest.mark.parametrize("case", CASES)
def test_the_benchs_own_cases_hold_on_the_simulator(shared: Path, case: str) -> None:
    module = load(shared, "test_cachesim", cachesim=ours())
    assert module.CacheSim is CacheSim
    getattr(module, case)()


class Naive:
    """Everything is sent every time, with marks on the system prompt and three messages."""

    def __init__(self, trace: dict[str, Any]) -> None:
        self.trace = trace
        self.messages: list[dict[str, Any]] = []

    def add(self, role: str, blocks: list[dict[str, Any]]) -> None:
        if self.messages and self.messages[-1]["role"] == role:
            blocks = [*self.messages.pop()["content"], *blocks]
        self.messages.append({"role": role, "content": blocks})

    def request(self) -> dict[str, Any]:
        control = {"type": "ephemeral", "ttl": "5m"}
        users = [i for i, m in enumerate(self.messages) if m["role"] == "user"][-3:]
        out = list(self.messages)
        for i in users:
            *rest, last = out[i]["content"]
            out[i] = {"role": "user", "content": [*rest, {**last, "cache_control": control}]}
        system = [{"type": "text", "text": self.trace["system"], "cache_control": control}]
        return {"system": system, "tools": self.trace["tools"], "messages": out}


def both(theirs: Any, mine: CacheSim, their: ModuleType, request: Any, now: float, said: Any):
    """One request on each; what they bill, or None where both refuse it as too long."""
    output = sum(their.block_tokens(b) for b in said)
    try:
        expected = theirs.send(request, now, output)
    except their.PromptTooLong:
        with pytest.raises(PromptTooLong):
            mine.said(request, now, said)
        return None
    got = mine.said(request, now, said)
    for name in ("read", "write", "plain", "output", "total", "cost"):
        assert getattr(got, name) == getattr(expected, name), name
    return got


def test_bills_equal_the_benchs_on_every_recorded_session(shared: Path, scale: Scale) -> None:
    their, traces = load(shared, "cachesim"), load(shared, "traces")
    files = sessions(shared)
    assert len(files) == 40
    billed = refused = 0
    limit = scale.pick(60, 10_000)  # answers of one session
    for path in files:
        trace = traces.load(str(path))
        naive, now = Naive(trace), 0.0
        theirs, mine = their.CacheSim(), CacheSim()
        for step in trace["steps"][: 2 * limit]:
            now += step["gap"]
            if step["role"] != "assistant":
                naive.add("user", step["blocks"])
                continue
            request = naive.request()
            their.check(request["messages"])
            bill = both(theirs, mine, their, request, now, step["blocks"])
            billed, refused = billed + (bill is not None), refused + (bill is None)
            naive.add("assistant", step["blocks"])
    assert billed + refused == scale.pick(1770, 3431)
    assert billed > scale.pick(1700, 3000)


def test_bills_equal_the_benchs_on_our_own_requests_and_marks(shared: Path, scale: Scale) -> None:
    their = load(shared, "cachesim")
    number = 0
    for path in sessions(shared)[:: scale.pick(8, 1)]:
        theirs, mine = their.CacheSim(), CacheSim()
        for one in islice(rounds(path), scale.pick(50, 10_000)):
            request = json.loads(one.request.body())
            said = [b.value for b in one.answer.blocks]
            both(theirs, mine, their, request, one.at, said)
            number += 1
    assert number > scale.pick(150, 3000)


def test_refusals_are_the_benchs(shared: Path) -> None:
    their = load(shared, "cachesim")
    call = {"type": "tool_use", "id": "a", "name": "Read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "x"}
    text = {"type": "text", "text": "x"}
    histories: list[list[Any]] = [
        [],
        [{"role": "user", "content": []}],
        [{"role": "user", "content": [result]}],
        [{"role": "user", "content": [text]}, {"role": "assistant", "content": [call]},
         {"role": "user", "content": [text]}],
        [{"role": "user", "content": [text]}, {"role": "assistant", "content": [call]},
         {"role": "user", "content": [result]}],
        [{"role": "user", "content": "words"}, {"role": "assistant", "content": "words"}],
    ]  # fmt: skip
    for history in histories:
        refused = False
        try:
            their.check(history)
        except their.BadRequest:
            refused = True
        if refused:
            with pytest.raises(BadRequest):
                bench.check(history)
        else:
            bench.check(history)
