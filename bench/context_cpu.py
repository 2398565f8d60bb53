"""CPU of a round: the three calls of a context manager on our fold and layers, in units of one
`json.dumps` of what sending everything would send. Needs the recorded sessions and the shared bench
(`REVERIE_SHARED`).
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.adapter import bench_modules, collapsed, manager
from bench.context import DEFAULT, SIX, Trace, session_files
from bench.figures import QUICK, ROOT_SHARED, Figure, Row, at_most

RUNS = 1 if QUICK else 3  # of what is timed
CALLS = 200
EMPTYING = 36 * 1024 * 1024  # bytes, more than the caches of the processor hold
LINE = 64  # bytes that it reads at once


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    if not (ROOT_SHARED / "bench" / "context").is_dir():
        yield "the shared bench", f"not found under {ROOT_SHARED.name}", "", None
        return
    bench_modules(ROOT_SHARED)
    yield from processor()


def processor() -> Iterator[Figure]:
    """CPU of the three calls, in units of one json.dumps of what naive would send."""
    traces, replay = importlib.import_module("traces"), importlib.import_module("replay")
    files = session_files()
    six = [traces.load(f"{name}={files[name]}") for name in SIX]
    units = [min(naive_dump(trace) for _ in range(RUNS)) for trace in six]

    def runs(tail: int, **kind: Any) -> list[float]:
        cls = manager(replay.Manager, collapsed(tail), **kind)
        return [
            sum(replay.replay(t, cls)["cpu_ms"] / u for t, u in zip(six, units, strict=True)) / 6
            for _ in range(RUNS)
        ]

    hashed = min(runs(DEFAULT, digests=True))
    what = "CPU a round with the journal's digests, in `json.dumps` of what naive would send"
    yield at_most("context.cpu", what, hashed, 0.5, "x", RUNS)
    cls = manager(replay.Manager, collapsed(DEFAULT))
    short, long = (traces.synthetic(7, calls) for calls in (CALLS, 10 * CALLS))
    each = [min(replay.replay(t, cls)["cpu_ms"] for _ in range(RUNS)) for t in (short, long)]
    what = "CPU a round in a session ten times longer"
    why = "the replay's own work between two rounds grows and empties the processor's caches"
    yield at_most("context.cpu.growth", what, each[1] / each[0], 1.2, "x", RUNS, why)
    what = "the same with the processor's caches emptied before every call, in both sessions"
    growth = cold(long, cls, replay) / cold(short, cls, replay)
    yield at_most("context.cpu.growth_cold", what, growth, 1.2, "x", 1)


def cold(trace: Trace, cls: type[Any], replay: Any) -> float:
    """Milliseconds a round of the three calls, each begun with nothing of ours in the caches."""
    other, spent = bytearray(EMPTYING), [0.0]

    def timed(name: str) -> Any:
        inner = getattr(cls, name)

        def call(self: Any, *given: Any) -> Any:
            other[::LINE].count(b"x")
            start = time.process_time()
            try:
                return inner(self, *given)
            finally:
                spent[0] += time.process_time() - start

        return call

    calls = {name: timed(name) for name in ("observe", "manage", "render")}
    requests = replay.replay(trace, type("Cold", (cls,), calls))["requests"]
    return 1_000 * spent[0] / requests


def naive_dump(trace: Trace) -> float:
    """Milliseconds of one json.dumps of a request with everything, on average."""
    spent, count, messages = 0.0, 0, list[Any]()
    for at, step in enumerate(trace["steps"]):
        if step["role"] == "assistant" and at % 8 < 2:
            request = {"system": trace["system"], "tools": trace["tools"], "messages": messages}
            start = time.process_time()
            json.dumps(request)
            spent += time.process_time() - start
            count += 1
        messages.append({"role": "user", "content": step["blocks"]})
    return 1_000 * spent / max(1, count)
