"""How the cost of sessions grows: opening one, listing them, beginning one more.

Each is measured at a size, at 10 times and at 100 times that; the exponent is that of the cost
by the size, fitted: 1 is linear, 0 is flat.
"""

from __future__ import annotations

import gc
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from uuid import uuid4

import anyio

from bench.figures import Figure, at_most
from bench.growth import grown
from reverie.session import Library, open_session
from reverie.store import seal
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

RECORDS = (2_000, 20_000, 200_000)
SESSIONS = (20, 200, 2_000)  # that are listed
BEGUN = (500, 5_000, 50_000)  # that are there when one more begins
OPENS = 6.0  # times `json.loads` of the same lines
FLAT = 0.25
LINEAR = 1.2
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
    library = Library(base / "opening", base)
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
        library = Library(base / f"list-{count}", base)
        for _ in range(count):
            library.folder.write(f"{uuid4()}.jsonl", data, durable=False)
        first.append(seconds(lambda library=library: _list_all(library.path)))
        again.append(seconds(lambda library=library: _list_all(library.path), 3))
    yield in_ms("list", "the first list of sessions, by their number", SESSIONS, first, LINEAR)
    yield in_ms("list.again", "a list after it", SESSIONS, again, LINEAR)
    what = f"a second list of {SESSIONS[-1]:,} sessions, in the first"
    yield at_most("list.again", what, again[-1] / first[-1], 0.2, "x")


def _list_all(path: Path) -> None:
    library = Library(path, path)
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
    yield in_ms("begin", "a new session, by those there are", BEGUN, costs, FLAT)


async def _begun(place: Path) -> Path:
    environ = {"HOME": str(place)}
    async with open_session(
        place / "work", model="m1", system="You help.", home=place / "home", environ=environ
    ) as session:
        await session.add("go")
        await session.prepare()
        return session.library.path


def measure(out: Path) -> Iterable[Figure]:
    del out
    with tempfile.TemporaryDirectory() as folder:
        for part in (_opening, _listing, _beginning):
            yield from part(Path(folder))
