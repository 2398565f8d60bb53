"""Many processes, one memory folder: nobody's change is lost, and the index stays valid."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from reverie.store import Changed, MemoryFolder, PendingWrite, digest, is_temporary
from reverie.topics import new
from tests.conftest import Scale
from tests.faults import quick_folder
from tests.memory.folders import index_faults
from tests.processes import at_once

pytestmark = pytest.mark.spec("7.folder")

PROCESSES = 64
HISTORY = "history.jsonl"


def topic(name: str, body: str) -> bytes:
    return new("x.md", name=name, description=f"of {name}", type="user", body=body).data


def noted(memory: MemoryFolder, change: PendingWrite) -> None:
    """What a keeper of history would do: one line for each change, under the folder's lock."""
    marks = [None if one is None else digest(one) for one in (change.before, change.after)]
    memory.files.append_line(HISTORY, json.dumps([change.key, *marks]).encode())


def add_one(memory: MemoryFolder, who: int) -> None:
    """Add a line to a file that all others add to; try again where another was first."""
    while True:
        before = memory.read("shared.md")
        try:
            memory.save(
                "shared.md", before.data + f"- {who}\n".encode(), expect=digest(before.data)
            )
        except Changed:
            continue
        return


def work(root: Path, who: int, rounds: int, until: float) -> None:
    memory = MemoryFolder(root, landed=lambda change: noted(memory, change))
    n = 0
    while n < rounds or time.monotonic() < until:
        memory.save(f"p{who}_{n % 3}.md", topic(f"P{who}", f"round {n}"), title=f"{who} {n % 3}")
        add_one(memory, who)
        n += 1
    memory.save(f"gone{who}.md", topic("Gone", ""))
    memory.remove(f"gone{who}.md")
    memory.files.append_line("counts.jsonl", json.dumps([who, n]).encode())
    memory.close()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_64_processes_lose_no_update_and_leave_a_valid_index_and_a_whole_history(
    scale: Scale,
) -> None:
    with quick_folder() as stage:
        root = stage / "memory"
        with MemoryFolder(root) as memory:
            memory.save("shared.md", topic("Shared", ""))
            first = {key: digest(memory.files.read(key)) for key in ("shared.md", "MEMORY.md")}
            rounds, until = scale.pick(2, 20), time.monotonic() + scale.pick(0.0, 60.0)
            at_once(work, [(root, who, rounds, until) for who in range(PROCESSES)], "fork")

            counts = dict(map(json.loads, (root / "counts.jsonl").read_text().splitlines()))
            assert sorted(counts) == list(range(PROCESSES))
            lines = memory.read("shared.md").body.splitlines()
            added = [int(line[2:]) for line in lines if line.startswith("- ")]
            assert {who: added.count(who) for who in counts} == counts

            own = {f"p{who}_{n}.md" for who, many in counts.items() for n in range(min(many, 3))}
            assert set(memory.keys()) == own | {"shared.md"}
            assert index_faults(memory) == ()
            assert len(memory.index().pointers) == len(own) + 1
            assert not [path for path in root.rglob("*") if is_temporary(path.name)]

            now: dict[str, str | None] = dict(first)
            for line in (root / HISTORY).read_text().splitlines():
                key, before, after = json.loads(line)
                assert now.get(key) == before
                now[key] = after
            there = {key: digest(memory.files.read(key)) for key in (*memory.keys(), "MEMORY.md")}
            assert {key: mark for key, mark in now.items() if mark} == there
