"""Memories under a home, and a job that leaves one line in one: what the trials are made of.

The job lands through the same door as a dream. A line that stands twice was landed twice, one that
is missing was lost: whoever counts them shares no code with the ledger.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import anyio

from reverie.fleet import FleetLedger, FleetTask, Job, JobHandle, nightly
from reverie.memory import TaskOutcome, enter_memory
from reverie.settings import DEFAULTS
from reverie.store import MemoryStore, Project, land
from reverie.topics import Origin, Trust

FILE = "nights.md"
HEAD = "---\nname: Nights\ndescription: the nights that landed\ntype: project\n---\n\n"


def place_at(home: Path, root: Path) -> Project:
    return Project.at(root, home=home, environ={})


def make_memories(home: Path, base: Path, count: int) -> list[Path]:
    """So many projects with a memory."""
    roots: list[Path] = []
    for n in range(count):
        root = base / f"project{n}"
        root.mkdir(parents=True)
        with MemoryStore.of(
            Project.at(root, home=home, environ={}, settings=DEFAULTS), now=time.time
        ) as memories:
            origin = Origin("save", Trust.USER, agent="user")
            memories.save(FILE, HEAD.encode(), origin)
        roots.append(root)
    return roots


def jobs_for(
    roots: list[Path], nights: int, kind: str = "dream", tenant: str = "default"
) -> list[Job]:
    return [
        nightly(kind, str(root), f"night-{n}", tenant=tenant, host="", due=False)
        for n in range(nights)
        for root in roots
    ]


def lander(seconds: float = 0.0, reading: Callable[[], None] = lambda: None) -> FleetTask:
    """A job that adds a line for its night, some time after it has read the file."""

    async def task(work: JobHandle) -> TaskOutcome:
        async with enter_memory(work.place, work.run) as memories:
            if isinstance(memories, TaskOutcome):
                return memories
            before = memories.folder.bytes_of(FILE)
            reading()
            await anyio.sleep(seconds)
            after = before + f"landed {work.job.night}\n".encode()
            origin = Origin("dream", Trust.AGENT, agent="trial")
            here = {FILE: before}
            land(memories, {FILE: after}, here, origin, fence=work.run.fence)
        return TaskOutcome("done", "completed", files=1)

    return task


def stopped_by(ledger: FleetLedger, course: list[str]) -> FleetTask:
    """A job that is cancelled while it runs, in its first night; what became of it, in order."""

    async def task(work: JobHandle) -> TaskOutcome:
        course.append(f"begins {work.job.night}")
        if work.job.night == "night-1":
            return TaskOutcome("done")
        ledger.cancel("default", work.job.key)
        try:
            await anyio.sleep_forever()
        finally:
            course.append("body stopped")
        raise AssertionError("unreachable")

    return task


def stopped_in_lock() -> FleetTask:
    """A job whose process is stopped while it holds the memory's lock, the first time. Let go on,
    it has time to hear that the job is another's, and lands where it does not."""
    stopped: list[str] = []

    async def task(work: JobHandle) -> TaskOutcome:
        if stopped:
            return await lander()(work)
        async with enter_memory(work.place, work.run) as memories:
            if isinstance(memories, TaskOutcome):
                return memories
            with memories.folder.locked():
                stopped.append(work.job.key)
                os.kill(os.getpid(), signal.SIGSTOP)
        return await lander(600.0)(work)

    return task


def landed(home: Path, root: Path) -> Counter[str]:
    """How often each night stands in a memory."""
    text = (place_at(home, root).memory_folder / FILE).read_text()
    return Counter(line.removeprefix("landed ") for line in text.splitlines() if "landed" in line)


def wrong(home: Path, roots: list[Path], nights: int) -> tuple[int, int]:
    """How many landings are lost, and how many stand twice."""
    lost = doubled = 0
    for root in roots:
        found = landed(home, root)
        lost += sum(f"night-{n}" not in found for n in range(nights))
        doubled += sum(count - 1 for count in found.values())
    return lost, doubled
