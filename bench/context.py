"""What a long session costs and shows: ours, bounds and peers through the shared replay bench.

Score = cost + recovery + refind against sending everything with an infinite window, from
a simulated prompt cache. Ours, the bounds and a simulated observation log run here, the peers' own
code in their environments (`bench/adapter`), on the six longest sessions. Ours are read
request by request by `judge`, which shares no code with the layers: gates come before the score.
Sessions are in three groups by their length, and in two halves by a hash of their names: rules were
made on the first half, the second was only looked at. What a session came to is kept below
bench/out, so that a run that was stopped goes on; the tables go to `context-tables.md`.

A replay's course is fixed: it measures missing names, not whether a model thinks worse.
Needs the recorded sessions and the shared bench (`REVERIE_SHARED`).

CPU of a round: the three calls of a context manager on our fold and layers, in units of one
`json.dumps` of what sending everything would send. Needs the recorded sessions and the shared bench
(`REVERIE_SHARED`).
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from bench.adapter import CLASSIC_SETTINGS, TAILS, bench_modules, collapsed, manager, peer_rows
from bench.figures import QUICK, ROOT_SHARED, Figure, Row, against_peers, at_most, code, once
from bench.judge import judged, marked
from bench.peers import MISSING
from reverie.settings import DEFAULTS

Figures: TypeAlias = "dict[str, Any]"
Trace: TypeAlias = "dict[str, Any]"

SIX = ("4a364c97", "21a2e002", "7f78a542", "0276a600", "533ff7a3", "24a274a3")
LONG, MIDDLE, SHORT = "over 100 K tokens", "30-100 K tokens", "under 30 K tokens"
LIMITS = {LONG: (1.40, 0.05), MIDDLE: (1.30, 0.15)}  # times the oracle; share of sessions failing
ABOVE = 1.02  # of naive: what no session may cost
RUNS = 4  # of what is timed
DEFAULT = DEFAULTS.collapse_tail
OURS = f"collapse {DEFAULT // 1000} K"
REFERENCE = "naive-infinite"
BOUNDS = (REFERENCE, "naive", "sketch", "sketch-once", "oracle", "oracle-once")
OBSERVED = "observational 10K"  # its best settings; the others cost more
WHOLE = ("explained", "references", "answers", "replied", "words", "typed", "failures")
"""Of which nothing may miss."""
ERRORS = 0.95  # of the lines of recent errors: what stands verbatim
GROWN = 1.3  # of a request after 400 rounds: what one at the end of six joined sessions may have
# fmt: off
COLUMNS = (
    "manager", "score", "cost", "user facts here", "near here", "far here", "lost",
    "shown whole", "summaries", "peak K", "CPU",
)
# fmt: on


def measure(out: Path) -> Iterator[Figure | Row]:
    folder = ROOT_SHARED / "data" / "sessions_dev"
    if not folder.is_dir() or not (ROOT_SHARED / "bench" / "context").is_dir():
        yield "recorded sessions", f"not found under {os.fspath(ROOT_SHARED.name)}", "", None
        return
    bench_modules(ROOT_SHARED)
    paths = session_files()
    rows = list(replayed(paths))
    groups = grouped(rows)
    every = [*rows, *peer_rows(paths, SIX)]
    tables = [table(name, chosen(every, ids), ids) for name, ids in groups.items()]
    (out / "context-tables.md").write_text("\n".join(tables), encoding="utf-8")
    yield from headline(every, groups)
    for name, why in MISSING.items():
        yield f"peer {name}", why, "", None
    for group, ids in groups.items():
        yield from gates(rows, group, ids)
    yield from tails(rows, groups)
    yield growth(paths)


def session_files() -> dict[str, Path]:
    """The recorded sessions, by the beginning of their names."""
    folder = ROOT_SHARED / "data" / "sessions_dev"
    return {path.name[:8]: path for path in sorted(folder.glob("*.jsonl.gz"))}


def replayed(paths: dict[str, Path]) -> Iterator[Figures]:
    """Our policies, the sketch and the bounds, over every session."""
    measured = code("adapter", "judge")
    for name, path in paths.items():
        yield from once(name, measured, lambda n=name, p=path: list(of_session(n, p))) or ()


def of_session(name: str, path: Path) -> Iterator[Figures]:
    traces, replay = importlib.import_module("traces"), importlib.import_module("replay")
    known = importlib.import_module("adapters").ALL
    run = judged(replay.Run, traces.identifiers)
    trace = marked(traces.load(f"{name}={path}"), path)
    if not trace["steps"]:
        return
    for tail in TAILS:
        cls = manager(replay.Manager, collapsed(tail), f"collapse {tail // 1000} K")
        yield run(trace, cls(trace)).play()
    yield run(trace, manager(replay.Manager, CLASSIC_SETTINGS, "classic")(trace)).play()
    plain = [known[one] for one in BOUNDS]
    others = [getattr(importlib.import_module(f"adapters.{m}"), c) for m, c, _ in plain]
    observed = importlib.import_module("observational").ALL
    more = [cls for cls in observed if cls.name.startswith(OBSERVED)] if name in SIX else []
    for cls in (*others, *more):
        yield replay.replay(trace, cls, getattr(cls, "window", 200_000))


def grouped(rows: Iterable[Figures]) -> dict[str, tuple[str, ...]]:
    sizes = {r["trace"]: r["peak"] for r in rows if r["manager"] == REFERENCE}
    return {
        LONG: tuple(n for n, size in sizes.items() if size > 100_000),
        MIDDLE: tuple(n for n, size in sizes.items() if 30_000 <= size <= 100_000),
        SHORT: tuple(n for n, size in sizes.items() if size < 30_000),
    }


def half(name: str) -> int:
    """Which half a session is in: 0 for the rules, 1 for the last look."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2


def chosen(rows: Iterable[Figures], ids: Sequence[str]) -> dict[str, list[Figures]]:
    """The rows of some sessions, by manager."""
    out: dict[str, list[Figures]] = {}
    for row in rows:
        if row["trace"] in ids:
            out.setdefault(row["manager"], []).append(row)
    return out


class Summed:
    """A manager's figures over some sessions."""

    def __init__(self, rows: Sequence[Figures], base: float) -> None:
        def add(key: str) -> float:
            return sum(r[key] for r in rows)

        def part(key: str) -> float:
            good, of = (sum(r.get(key, (0, 0))[n] for r in rows) for n in (0, 1))
            return good / of if of else 1.0

        near = [sum(column) for column in zip(*(r["near"] for r in rows), strict=True)]
        far = [sum(column) for column in zip(*(r["far"] for r in rows), strict=True)]
        self.cost = add("cost") / base
        self.score = (add("cost") + add("recovery") + add("refind")) / base
        self.near = near[0] / sum(near) if sum(near) else 1.0
        self.far = far[0] / max(1, sum(far))
        self.lost = near[3] + far[3]
        self.shown = add("shown") / len(rows)
        self.tokens = part("shown_tokens")
        self.coined = part("coined")
        self.said = part("said")
        self.errors = part("errors")
        self.whole = {key: part(key) for key in WHOLE}
        self.here, self.facts = int(add("facts_here")), int(add("facts"))
        self.summaries = int(add("summaries"))
        self.failed = sum(bool(r["error"]) for r in rows)
        self.peak = max(r["peak"] for r in rows)
        self.cpu = add("cpu") / len(rows)

    @property
    def holds(self) -> bool:
        """The gates: nothing that was said and nothing a next step needs is hidden."""
        near = self.near >= 0.96 and self.coined >= 0.96 and self.shown >= 0.90
        whole = all(part == 1.0 for part in self.whole.values()) and self.errors >= ERRORS
        return near and whole and not (self.lost or self.summaries or self.failed)

    def row(self, name: str) -> str:
        score = "fails" if self.failed else f"{self.score:.3f}"
        return (
            f"| {name} | {score} | {self.cost:.3f} | {self.here}/{self.facts} |"
            f" {self.near:.1%} | {self.far:.1%} | {self.lost} | {self.shown:.1%} |"
            f" {self.summaries} | {self.peak / 1000:.0f} | {self.cpu:.2f} |"
        )


def summed(by: dict[str, list[Figures]]) -> dict[str, Summed]:
    base = sum(r["cost"] for r in by[REFERENCE])
    whole = len(by[REFERENCE])
    return {name: Summed(rows, base) for name, rows in by.items() if len(rows) == whole}


def table(title: str, by: dict[str, list[Figures]], ids: Sequence[str]) -> str:
    lines = [
        f"### {title}: {len(ids)} sessions",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" + "|--:" * (len(COLUMNS) - 1) + "|",
    ]
    order = sorted(summed(by).items(), key=lambda one: (one[1].failed, one[1].score))
    return "\n".join([*lines, *(figures.row(name) for name, figures in order), ""])


def gates(rows: list[Figures], group: str, ids: Sequence[str]) -> Iterator[Row]:
    """The default on one group: gates first, then the score; whole, and each half by itself."""
    bound, share = LIMITS.get(group, (None, None))
    for which in (None, 0, 1):
        mine = [n for n in ids if which is None or half(n) == which]
        if not mine:
            continue
        found = summed(chosen(rows, mine))
        ours, times = found[OURS], found[OURS].score / found["oracle"].score
        name = group if which is None else f"{group}, {('first', 'second')[which]} half"
        judge = which is None
        yield f"{name} ({len(mine)}): gates", told(ours), "all hold", ours.holds if judge else None
        score = f"{ours.score:.4f}, {times:.2f} x the oracle"
        met = None if bound is None or not judge else times <= bound
        yield f"{name}: score at the default", score, f"{bound or ''}", met
        failing = [r["trace"] for r in chosen(rows, mine)[OURS] if not Summed([r], 1.0).holds]
        met = None if share is None or not judge else len(failing) <= share * len(mine)
        limit = f"{share:.0%}" if share is not None else ""
        yield f"{name}: sessions failing a gate", f"{len(failing)} {failing or ''}", limit, met


def told(figures: Summed) -> str:
    parts = [f"{key} {part:.1%}" for key, part in figures.whole.items() if part < 1]
    return ", ".join(
        [
            f"near {figures.near:.1%}, coined {figures.coined:.1%}, lost {figures.lost}",
            f"shown {figures.shown:.1%} ({figures.tokens:.1%} of tokens)",
            f"words of answers {figures.said:.0%}, lines of errors {figures.errors:.0%}",
            *(parts or ["all else 100 %"]),
        ]
    )


def tails(rows: list[Figures], groups: dict[str, tuple[str, ...]]) -> Iterator[Row]:
    """The dial."""
    for group in (LONG, MIDDLE):
        found = summed(chosen(rows, groups[group]))
        for tail in TAILS:
            figures = found[f"collapse {tail // 1000} K"]
            yield f"{group}, tail {tail:,}", f"{figures.score:.4f}, {told(figures)}", "", None
        for name in ("sketch", "oracle"):
            yield f"{group}, {name}", f"{found[name].score:.4f}", "", None


def growth(paths: dict[str, Path]) -> Figure:
    """How a request grows when the longest sessions are one: at the end against 400 rounds."""
    traces, replay = importlib.import_module("traces"), importlib.import_module("replay")
    loaded = [traces.load(f"{name}={paths[name]}") for name in SIX]
    joined = {**loaded[0], "steps": [step for trace in loaded for step in trace["steps"]]}
    sizes: list[int] = []

    def add(self: Any, usage: Any, summary: bool = False) -> None:
        sizes.append(usage.total)
        replay.Run.add(self, usage, summary)

    cls = manager(replay.Manager, collapsed(DEFAULT))
    type("Sized", (replay.Run,), {"add": add})(joined, cls(joined), None).play()
    grown = sum(sizes[-50:]) / sum(sizes[375:425])
    what = f"a request after {len(sizes):,} rounds of joined sessions, against one after 400"
    return at_most("context.growth", what, grown, GROWN, "x", len(sizes))


def named(manager: str) -> str:
    """A manager as readers know it: what is simulated says so."""
    return f"simulated {manager}" if manager.startswith("observational") else manager


def headline(rows: list[Figures], groups: dict[str, tuple[str, ...]]) -> Iterator[Figure]:
    """Ours beside everybody else, their model calls billed. Ours makes none: notes are off."""
    found = summed(chosen(rows, SIX))
    policies = {f"collapse {tail // 1000} K" for tail in TAILS} | {"classic"}
    found = {named(name): one for name, one in found.items()}
    peers = {
        name: one.score
        for name, one in found.items()
        if name not in policies and name not in BOUNDS and not one.failed
    }
    what = (
        f"cost of the {len(SIX)} longest sessions with reading back and finding again, as a share"
        " of sending everything"
    )
    ours = found[OURS]
    yield against_peers(
        "context.score", what, ours.score, peers, better="lower", unit="share", n=len(SIX)
    )
    best = min(peers, key=lambda name: peers[name])
    for key, told in (
        ("summaries", "model calls for summaries and observations"),
        ("lost", "names that a later step needs and nothing can bring back"),
    ):
        value, against = float(getattr(ours, key)), float(getattr(found[best], key))
        what = f"the same: {told}"
        yield Figure(f"context.{key}", what, value, against, best, "lower", n=len(SIX))
    yield Figure(
        "context.near",
        "the same: names that a next step needs, in the request",
        ours.near,
        found[best].near,
        best,
        "higher",
        "share",
        len(SIX),
        f"{best} keeps more in the request and costs {found[best].score / ours.score:.2f} x",
    )
    for key, group in (("long", LONG), ("middle", MIDDLE)):
        some = summed(chosen(rows, groups[group]))
        bound = some["oracle"].score * LIMITS[group][0]
        yield Figure(
            f"context.{key}",
            f"the same cost of sessions of {group}, against {LIMITS[group][0]} x that of an oracle"
            " that knows the future",
            some[OURS].score,
            bound,
            f"oracle {some['oracle'].score:.3f} x {LIMITS[group][0]}",
            "lower",
            "share",
            len(groups[group]),
            why="keeping what a next step needs in the request costs more in sessions this short",
            others={
                "Reverie": some[OURS].score,
                "Reverie, classic": some["classic"].score,
                **{name: some[name].score for name in ("sketch", "oracle", "oracle-once")},
                "sending everything": 1.0,
            },
        )
    naive = {r["trace"]: r["cost"] for r in rows if r["manager"] == REFERENCE}
    for key, name, most in (("classic", "classic", 1.0), ("collapse", OURS, ABOVE)):
        cost = {r["trace"]: r["cost"] for r in rows if r["manager"] == name}
        what = f"cost of all recorded sessions under the policy {key}"
        whole = sum(cost.values()) / sum(naive.values())
        yield Figure(
            f"context.{key}", what, whole, 1.0, "sending everything", "lower", "share", len(naive)
        )
        above = sum(cost[n] > most * naive[n] for n in naive)
        what = f"sessions in which {key} costs over {most:g} x of sending everything"
        yield Figure(f"context.{key}.above", what, above, 0.0, "none", "lower", n=len(naive))


# The processor


CPU_RUNS = 1 if QUICK else 3  # of what is timed
CALLS = 200
EMPTYING = 36 * 1024 * 1024  # bytes, more than the caches of the processor hold
LINE = 64  # bytes that it reads at once


def measure_cpu(out: Path) -> Iterator[Figure | Row]:
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
    units = [min(naive_dump(trace) for _ in range(CPU_RUNS)) for trace in six]

    def runs(tail: int, **kind: Any) -> list[float]:
        cls = manager(replay.Manager, collapsed(tail), **kind)
        return [
            sum(replay.replay(t, cls)["cpu_ms"] / u for t, u in zip(six, units, strict=True)) / 6
            for _ in range(CPU_RUNS)
        ]

    hashed = min(runs(DEFAULT, digests=True))
    what = "CPU a round with the journal's digests, in `json.dumps` of what naive would send"
    yield at_most("context.cpu", what, hashed, 0.5, "x", CPU_RUNS)
    cls = manager(replay.Manager, collapsed(DEFAULT))
    short, long = (traces.synthetic(7, calls) for calls in (CALLS, 10 * CALLS))
    each = [min(replay.replay(t, cls)["cpu_ms"] for _ in range(CPU_RUNS)) for t in (short, long)]
    what = "CPU a round in a session ten times longer"
    why = "the replay's own work between two rounds grows and empties the processor's caches"
    yield at_most("context.cpu.growth", what, each[1] / each[0], 1.2, "x", CPU_RUNS, why)
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
