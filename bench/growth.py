"""How cost grows with what is there: each row at 1, 10 and 100 times the size, and the exponent.

An exponent of 0 is the same cost at any size, 1 is linear. Times are of the processor, the least
of a few, in milliseconds, in a folder in memory; they are of the machine, the exponent hardly is.
What is promised is counted: bytes read and written and the calls for it, the database's too.
"""

from __future__ import annotations

import itertools
import math
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure
from reverie.memory import Origin, Trust, junk, merge_text, new
from reverie.memory.hygiene import reading
from reverie.store import Memories
from reverie.tools import segments

ORIGIN = Origin("save", Trust.AGENT, agent="bench")
SIZE = 1_000
SIZES = (SIZE, 10 * SIZE, 100 * SIZE)
TIMES = 5
FLAT = 0.1
FLAT_TIME = 0.25  # times have noise that bytes have not
FLAT_MOST = 0.25
LINEAR = 1.2


@dataclass(frozen=True, slots=True)
class Cost:
    """The least of a few: milliseconds, bytes read and written, and calls for that."""

    ms: float
    size: int = 0
    calls: int = 0


def opened(base: Path) -> Memories:
    ticks = itertools.count(1.0)
    return Memories(base / "memory", base / "history", base, now=lambda: next(ticks))


def topic(name: str, text: str = "") -> bytes:
    body = f"On {name}. {text}"
    return new("t.md", name=name, description=f"about {name}", type="project", body=body).data


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


def counters() -> tuple[int, int]:
    """Bytes and calls of this process so far; nothing where the system does not count them."""
    try:
        rows = Path("/proc/self/io").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0, 0
    found = {name: int(value) for name, _, value in (row.partition(": ") for row in rows)}
    return found["rchar"] + found["wchar"], found["syscr"] + found["syscw"]


def least(work: Callable[[int], object]) -> Cost:
    """What a piece of work costs, done a few times."""
    found: list[Cost] = []
    for number in range(TIMES):
        size, calls = counters()
        began = time.process_time()
        work(number)
        spent = (time.process_time() - began) * 1e3
        more, others = counters()
        found.append(Cost(spent, more - size, others - calls))
    return Cost(*(min(getattr(one, name) for one in found) for name in ("ms", "size", "calls")))


def of_memory(count: int) -> dict[str, Cost]:
    shared = Path("/dev/shm")
    base = Path(tempfile.mkdtemp(prefix="growth-", dir=shared if shared.is_dir() else None))
    try:
        with filled(base, count) as memories:
            memories.save("first.md", topic("First"), ORIGIN)  # reads the index, once
            found = {
                "save": least(lambda n: memories.save(f"new-{n}.md", topic(f"N{n}"), ORIGIN)),
                "edit": least(lambda n: memories.save("new-0.md", topic("N0", str(n)), ORIGIN)),
                "remember": least(lambda n: memories.remember(f"The thing of {n}.", ORIGIN)),
            }

        def first(number: int) -> None:
            with opened(base) as memories:
                memories.save(f"first-{number}.md", topic(f"F{number}"), ORIGIN)

        return found | {"open and save": least(first)}
    finally:
        shutil.rmtree(base, ignore_errors=True)


def of_texts(count: int) -> dict[str, Cost]:
    blank = "\n" * count
    lines = "".join(f"{number}\n" for number in range(count))
    return {
        "merge of blank lines": least(lambda _: merge_text(blank, f"a\n{blank}", f"{blank}b\n")),
        "merge of lines": least(lambda _: merge_text(lines, f"a\n{lines}", f"{lines}b\n")),
        "check of blank lines": least(lambda _: junk(reading.one("t.md", f"a\n{blank}b", 0.0))),
        "a long word": least(lambda _: segments("x" * 40 * count)),
    }


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of the cost by the size, both as logarithms, fitted to all sizes."""
    across = [math.log(size) for size in sizes]
    up = [math.log(max(cost, 1e-9)) for cost in costs]
    middle, high = statistics.mean(across), statistics.mean(up)
    spread = sum((x - middle) ** 2 for x in across)
    return sum((x - middle) * (y - high) for x, y in zip(across, up, strict=True)) / spread


def grown(
    key: str, what: str, sizes: Sequence[float], costs: Sequence[float], bound: float, unit: str
) -> Figure:
    """The exponent of a cost, with the points that it was fitted to."""
    told = " / ".join(f"{cost:,.3g}" for cost in costs)
    whole = f"{what}: exponent ({told} {unit} at {sizes[0]:,.0f} × 1, 10, 100)"
    points = list(zip(sizes, costs, strict=True))
    return Figure(
        f"growth.{key}", whole, exponent(sizes, costs), bound,
        "our bound: flat" if bound <= FLAT_MOST else "our bound: linear", "lower", "exponent",
        len(sizes), points=points,
    )  # fmt: skip


def rows_of(work: Callable[[int], Mapping[str, Cost]], *, counted: bool) -> Iterable[Figure]:
    sizes = [float(size) for size in SIZES]
    found = [work(size) for size in SIZES]
    for name in found[0]:
        costs = [one[name] for one in found]
        key = name.replace(" ", "_")
        bound = FLAT_TIME if counted else LINEAR
        yield grown(key, f"{name}, CPU", sizes, [one.ms for one in costs], bound, "ms")
        if counted and any(one.size for one in costs):
            read = [float(one.size) for one in costs]
            yield grown(f"{key}.bytes", f"{name}, bytes", sizes, read, FLAT, "bytes")


def measure(_: Path) -> Iterable[Figure]:
    yield from rows_of(of_memory, counted=True)
    yield from rows_of(of_texts, counted=False)
