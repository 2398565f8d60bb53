"""How cost grows with what is there: each row at 1, 10 and 100 times the size, and the exponent.

An exponent of 0 is the same cost at any size, 1 is linear. Times are of the processor, the least
of a few, in milliseconds, in a folder in memory; they are of the machine, the exponent hardly is.
What is promised is counted: bytes read and written and the calls for it, the database's too. Of
sessions: opening one, listing them, beginning one more.
"""

from __future__ import annotations

import gc
import itertools
import json
import math
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import anyio

from bench.figures import Figure, at_most
from reverie.consolidation import junk, one
from reverie.session import SessionLibrary, open_session
from reverie.store import MemoryStore, seal
from reverie.text import commands
from reverie.topics import Origin, Trust, merge_text, new
from reverie.transcript import (
    AssistantMessage,
    Entry,
    Mark,
    Parts,
    Record,
    ResultDecided,
    Sent,
    Started,
    Usage,
    UserMessage,
    block_of,
    encode,
    text_block,
)

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


def opened(base: Path) -> MemoryStore:
    ticks = itertools.count(1.0)
    return MemoryStore(base / "memory", base / "history", base, now=lambda: next(ticks))


def topic(name: str, text: str = "") -> bytes:
    body = f"On {name}. {text}"
    return new("t.md", name=name, description=f"about {name}", type="project", body=body).data


def filled(base: Path, count: int) -> MemoryStore:
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
        "check of blank lines": least(lambda _: junk(one("t.md", f"a\n{blank}b", 0.0))),
        "a long word": least(lambda _: commands("x" * 40 * count)),
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


# Sessions


RECORDS = (2_000, 20_000, 200_000)
SESSIONS = (20, 200, 2_000)  # that are listed
BEGUN = (500, 5_000, 50_000)  # that are there when one more begins
OPENS = 6.0  # times `json.loads` of the same lines
LIST_LENGTH = 40  # records in a session that is listed


def lines_of(count: int) -> list[bytes]:
    """A session's lines, as they are in its file."""
    leaf, out = "", list[bytes]()

    def add(record: Record) -> None:
        nonlocal leaf
        entry = Entry(f"{len(out):08x}-0000-4000-8000-000000000000", leaf, 1.7e9, record)
        leaf = entry.id if entry.on_chain else leaf
        out.append(seal(encode(entry)) + b"\n")

    add(Started("session", "/project", "/project", "1"))
    add(UserMessage((text_block("Fix the failing test"),)))
    n = 0
    while len(out) < count:
        parts = Parts("m", "o", "t", "s", "0" * 32, n)
        add(Sent("main", leaf, parts, (Mark("messages", n, "5m"),)))
        n += 1
        command = {"command": f"make part_{n}", "description": "Build it"}
        call = block_of({"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": command})
        said = (text_block(f"Let me look at part {n}."), call)
        add(AssistantMessage(said, "m1", "p", f"msg_{n}", "tool_use", Usage(10, 1_000, 200, 50)))
        content = f"line {n} of the output\n" * 20
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": content}
        add(UserMessage((block_of(result),), "tool"))
        add(ResultDecided(f"t{n}", "kept"))
    return out[:count]


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """The shortest of a few runs."""
    best = math.inf
    for _ in range(times):
        gc.collect()
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def in_ms(key: str, what: str, sizes: tuple[int, ...], costs: list[float], bound: float) -> Figure:
    return grown(key, what, [*map(float, sizes)], [1_000 * one for one in costs], bound, "ms")


def _opening(base: Path) -> Iterable[Figure]:
    costs: list[float] = []
    ratio = 0.0
    library = SessionLibrary(base / "opening", base)
    for count in RECORDS:
        lines, session = lines_of(count), str(uuid4())
        library.folder.write(f"{session}.jsonl", b"".join(lines), durable=False)
        plain = seconds(lambda lines=lines: [json.loads(line) for line in lines], 2)
        costs.append(seconds(lambda session=session: library.read(session), 2))
        ratio = costs[-1] / plain
    yield in_ms("open", "opening a session, by its records", RECORDS, costs, LINEAR)
    what = f"opening a session of {RECORDS[-1]:,} records, in `json.loads` of its lines"
    yield at_most("open.time", what, ratio, OPENS, "x", RECORDS[-1])


def _listing(base: Path) -> Iterable[Figure]:
    first: list[float] = []
    again: list[float] = []
    data = b"".join(lines_of(LIST_LENGTH))
    for count in SESSIONS:
        library = SessionLibrary(base / f"list-{count}", base)
        for _ in range(count):
            library.folder.write(f"{uuid4()}.jsonl", data, durable=False)
        first.append(seconds(lambda library=library: _list_all(library.path)))
        again.append(seconds(lambda library=library: _list_all(library.path), 3))
    yield in_ms("list", "the first list of sessions, by their number", SESSIONS, first, LINEAR)
    yield in_ms("list.again", "a list after it", SESSIONS, again, LINEAR)
    what = f"a second list of {SESSIONS[-1]:,} sessions, in the first"
    yield at_most("list.again", what, again[-1] / first[-1], 0.2, "x")


def _list_all(path: Path) -> None:
    library = SessionLibrary(path, path)
    for file in library.sessions():
        library.summary(file)
    library.keep_summaries()


def _beginning(base: Path) -> Iterable[Figure]:
    costs: list[float] = []
    for count in BEGUN:
        place = base / f"begin-{count}"
        work = place / "work"
        work.mkdir(parents=True)
        path = anyio.run(_begun, place)
        for _ in range(count):
            (path / f"{uuid4()}.jsonl").touch()
        costs.append(seconds(lambda place=place: anyio.run(_begun, place), 5))
    yield in_ms("begin", "a new session, by those there are", BEGUN, costs, FLAT_TIME)


async def _begun(place: Path) -> Path:
    environ = {"HOME": str(place)}
    async with open_session(
        place / "work", model="m1", system="You help.", home=place / "home", environ=environ
    ) as session:
        await session.add("go")
        await session.prepare()
        return session.library.path


def measure_sessions(out: Path) -> Iterable[Figure]:
    del out
    with tempfile.TemporaryDirectory() as folder:
        for part in (_opening, _listing, _beginning):
            yield from part(Path(folder))
