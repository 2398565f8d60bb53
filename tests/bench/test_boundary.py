"""The judge of the tool boundary can fail: what joins is seen in the request, and nothing else."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from bench import boundary
from bench.boundary import Round, rounds_of
from bench.prepared import Home, Note
from reverie.transcript import AssistantMessage, Entry, block_of, text_block
from reverie.wire import tool_result, user

pytestmark = pytest.mark.spec("B21")

TOTALS = "src/billing/invoice_totals.py rounds half up, since the tax office wants it so."
NOTES = [Note("totals.md", "project", "Totals", "Rounding of totals", TOTALS)] + [
    Note(f"b{n}.md", "project", f"Bed {n}", "", f"Tulips of sort {n} stand in the bed number {n}.")
    for n in range(8)
]


def read_of(path: str) -> Round:
    given = {"type": "tool_use", "id": path, "name": "Read", "input": {"file_path": path}}
    (result,) = tool_result(path, "the file").blocks
    return Round((block_of(given),), {path: result}, typed=True)


def test_a_join_is_seen_in_the_request_of_its_round(tmp_path: Path) -> None:
    rounds = [read_of("/w/src/other.py"), read_of("/w/src/billing/invoice_totals.py")]
    found = anyio.run(boundary.joined, Home(tmp_path), NOTES, "s", rounds)
    assert [one.id for one in found] == ["s:1:totals.md"]


def test_rounds_are_calls_with_the_results_that_came_before_the_next_answer() -> None:
    def asks(ident: str) -> AssistantMessage:
        given = {"type": "tool_use", "id": ident, "name": "Bash", "input": {}}
        return AssistantMessage((text_block("Now"), block_of(given)))

    first = (user("Go"), asks("a"), asks("b"), tool_result("a", "x"), tool_result("b", "y"))
    second = (asks("c"), tool_result("c", "z"))
    third = (user("More"), asks("d"), tool_result("d", "z"), asks("e"))
    records = (*first, *second, *third)
    entries = [Entry(str(n), "", 0.0, one) for n, one in enumerate(records)]
    found = [([c.call for c in one.calls], one.typed) for one in rounds_of(entries)]
    assert found == [(["a", "b"], True), (["c"], False), (["d"], True)]
