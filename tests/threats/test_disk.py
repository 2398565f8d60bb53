"""A disk whose sync lies, and cancellation of what a memory does: rows 32 and 75.

A disk that says a write is safe and loses it is out of our contract: what it swore to keep may be
gone. What is left must still be true: nothing that is shown was never written, and damage is told.
Kills, failed calls and honest power cuts are in tests/store and tests/session.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from reverie import Memory
from reverie.memory import AsyncMemory
from reverie.store import BadLine, Folder, Journal, Line, finish
from reverie.topics import OUTSIDE
from tests.cancels import cancelled_at
from tests.conftest import Scale
from tests.faults import quick_folder
from tests.memory.folders import opened
from tests.memory.test_undo import AGENT, topic
from tests.power import Ack, DiskState, Op, Record, Synced, power_states, recorded

TEXTS = [f'{{"line":{n},"text":"{"words " * 40}"}}' for n in range(8)]
AFTER = '{"after":1}'


def lied_to(record: Record, chance: Random, each: int) -> list[DiskState]:
    """What the disk may hold at the end where no sync did anything."""
    acks = [(sum(not isinstance(op, Synced) for op in record.ops[:at]), t) for at, t in record.acks]
    kept: list[Op] = [op for op in record.ops if not isinstance(op, Synced)]
    liar = Record(record.inodes, record.names, kept, acks)
    return [one for one in power_states(liar, chance, each=each) if one.cut == len(kept)]


# -- row 32: a sync that lies ------------------------------------------------------------


def test_row_32_a_journal_after_a_sync_that_lied_shows_nothing_false(scale: Scale) -> None:
    """Lines are whole or named as bad; what is gone to the last byte nobody can know."""
    lost = told = 0
    with quick_folder() as base:
        here = base / "here"
        here.mkdir()

        def write(ack: Ack) -> None:
            with Folder(here) as folder, Journal.open(folder, "s.jsonl") as journal:
                for text in TEXTS:
                    journal.append([text])
                    journal.sync()
                    ack(text)

        record = recorded(here, write)
        for number, state in enumerate(lied_to(record, Random(scale.seed), scale.pick(40, 2_000))):
            assert len(state.acked) == len(TEXTS)
            tree = state.build(base / str(number))
            if not (tree / "s.jsonl").exists():
                lost += 1
                continue
            with Folder(tree) as folder, Journal.open(folder, "s.jsonl") as journal:
                found = list(journal.read())
                shown = [one.text for one in found if isinstance(one, Line)]
                assert [text for text in TEXTS if text in shown] == shown
                bad = [one for one in found if isinstance(one, BadLine)]
                lost += shown != TEXTS
                told += bool(bad)
                damaged = (tree / "s.jsonl").read_bytes().strip(b"\n").count(b"\n") + 1
                assert len(shown) + len(bad) >= damaged * bool((tree / "s.jsonl").stat().st_size)
                journal.append(['{"after":1}'])
                assert [one for one in journal.read() if isinstance(one, Line)][
                    -1
                ].text == '{"after":1}'
            shutil.rmtree(tree)
    assert lost > 10
    assert told > 5


def test_row_32_a_memory_after_a_sync_that_lied_is_old_new_or_told(scale: Scale) -> None:
    """A file that is neither what it was nor what was saved is a change from outside."""
    old, new = topic("A", "old words " * 50), topic("A", "new words " * 50)
    odd = 0
    with quick_folder() as base:
        here = base / "here"
        with opened(here) as memories:
            memories.save("a.md", old, AGENT)

        def write(ack: Ack) -> None:
            with opened(here) as memories:
                memories.save("a.md", new, AGENT)
                ack("saved")

        record = recorded(here, write)
        shutil.rmtree(here)
        for state in lied_to(record, Random(scale.seed), scale.pick(40, 1_000)):
            state.build(here)
            with opened(here) as memories:
                finish(memories)
                kinds = {one.key: one.origin.kind for one in memories.look()}
                keys = memories.folder.keys()
                found = memories.folder.bytes_of("a.md") if "a.md" in keys else None
                if found not in (old, new):
                    odd += 1
                    assert kinds.get("a.md") == OUTSIDE
                pointed = {one.key for one in memories.folder.index().pointers}
                assert pointed <= set(keys)
            shutil.rmtree(here)
    assert odd > 0


# -- row 75: cancelled at any wait of what a memory does -----------------------------------

WORK: dict[str, Callable[[AsyncMemory], Awaitable[object]]] = {
    "add": lambda memory: memory.add("The deploy job runs at two in the morning."),
    "undo": lambda memory: memory.undo(),
    "forget": lambda memory: memory.forget("billing service"),
}


@pytest.mark.parametrize("name", WORK)
async def test_row_75_a_memory_call_cancelled_at_any_wait_is_whole_or_absent(
    name: str, scale: Scale
) -> None:
    """The session's own calls and a whole turn: tests/session/test_cancel.py, tests/loop."""
    points, at, hops = 0, 1, 0
    with quick_folder() as base:
        while hops < scale.pick(1, 40):
            where = base / f"{at}-{hops}"
            where.mkdir()
            async with Memory(where, home=where / "home").aio as memory:
                await memory.add("Anna owns the billing service.")
                hit = await cancelled_at(lambda m=memory: WORK[name](m), at, hops)
                await memory.add("Lint runs before every commit.")
            with Memory(where, home=where / "home") as again:
                kept = {one.file: one.text for one in again.list()}
                count = Counter(word for text in kept.values() for word in text.split())
                assert (count["Lint"], count["Anna"] <= 1, count["deploy"] <= 1) == (1, True, True)
                newest = {one.file: one.text for one in again.history()}
                assert {file: text for file, text in newest.items() if text} == kept
            in_time = hit == "in time"
            points += in_time
            at, hops = (at + 1, hops) if in_time else (1, hops + 1)
    assert points >= 1
