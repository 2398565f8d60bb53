"""Words in the name of a memory: also of one that is gone, and that only its history knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie import Memory

pytestmark = pytest.mark.spec("7.forget")


def test_the_name_of_a_memory_that_is_gone_is_forgotten_too(home: Path) -> None:
    memory = Memory("shop")
    saved = memory.add("The staging cluster is in Frankfurt")
    memory.undo(saved.change)
    kept = memory.add("Parcels go out on Mondays")
    assert memory.forget("Frankfurt").proven
    assert [one.file for one in memory.list()] == [kept.file]
    assert not memory.check().faults
    assert not [p for p in home.rglob("*") if p.is_file() and b"rankfurt" in p.read_bytes()]
