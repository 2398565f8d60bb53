"""How cost grows with what is there: each row at 1, 10 and 100 times the size, and the exponent.

An exponent of 0 is the same cost at any size, 1 is linear. Times are the least of a few, in
milliseconds, in a folder in memory; they are of the machine, the exponent hardly is.
"""

from __future__ import annotations

import itertools
import math
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from bench.__main__ import Row
from reverie.memory.format.entry import new
from reverie.memory.merge import merge_text
from reverie.memory.trust import Trust
from reverie.memory.versions import Origin
from reverie.store.memories import Memories
from reverie.tools.command import segments

ORIGIN = Origin("save", Trust.AGENT, agent="bench")
SIZE = 500
TIMES = 3


def opened(base: Path) -> Memories:
    ticks = itertools.count(1.0)
    return Memories(base / "memory", base / "history", base, now=lambda: next(ticks))


def topic(name: str) -> bytes:
    made = new("t.md", name=name, description=f"about {name}", type="project", body=f"On {name}.")
    return made.data


def filled(base: Path, count: int) -> Memories:
    """A folder of so many memories, all in the index and in the history."""
    memories = opened(base)
    rows: list[str] = []
    for number in range(count):
        name = f"Topic {number}"
        (memories.root / f"topic-{number:06}.md").write_bytes(topic(name))
        rows.append(f"- [{name}](topic-{number:06}.md) — about {name}\n")
    (memories.root / "MEMORY.md").write_text("".join(rows), encoding="utf-8")
    memories.look()
    return memories


def least(work: Callable[[int], object]) -> float:
    """The least time of a few, in milliseconds."""
    found: list[float] = []
    for number in range(TIMES):
        began = time.perf_counter()
        work(number)
        found.append((time.perf_counter() - began) * 1e3)
    return min(found)


def of_memory(count: int) -> dict[str, float]:
    shared = Path("/dev/shm")
    base = Path(tempfile.mkdtemp(prefix="growth-", dir=shared if shared.is_dir() else None))
    try:
        with filled(base, count) as memories:
            found = {
                "save": least(lambda n: memories.save(f"new-{n}.md", topic(f"N{n}"), ORIGIN)),
                "edit": least(lambda n: memories.save("new-0.md", topic(f"E{n}"), ORIGIN)),
                "remember": least(lambda n: memories.remember(f"The thing of {n}.", ORIGIN)),
            }

        def first(number: int) -> None:
            with opened(base) as memories:
                memories.save(f"first-{number}.md", topic(f"F{number}"), ORIGIN)

        return found | {"open and save": least(first)}
    finally:
        shutil.rmtree(base, ignore_errors=True)


def of_texts(count: int) -> dict[str, float]:
    blank = "\n" * count
    lines = "".join(f"{number}\n" for number in range(count))
    return {
        "merge of blank lines": least(lambda _: merge_text(blank, f"a\n{blank}", f"{blank}b\n")),
        "merge of lines": least(lambda _: merge_text(lines, f"a\n{lines}", f"{lines}b\n")),
        "a long word": least(lambda _: segments("x" * 40 * count)),
    }


ROWS: tuple[Callable[[int], Mapping[str, float]], ...] = (of_memory, of_texts)


def measure(_: Path) -> Iterable[Row]:
    for row in ROWS:
        found = [row(SIZE * times) for times in (1, 10, 100)]
        for name in found[0]:
            costs = [one[name] for one in found]
            power = math.log10(costs[2] / costs[0]) / 2
            shown = " / ".join(f"{cost:,.2f}" for cost in costs)
            yield f"{name}, {SIZE:,} × 1, 10, 100", f"{shown} ms, exponent {power:.2f}", "", None
