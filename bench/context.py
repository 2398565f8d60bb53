"""What a long session costs: ours, bounds and peers through the shared replay bench.

Score = cost + recovery + refind against sending everything with an infinite window, from
a simulated prompt cache. By itself it runs our policies, the sketch, the bounds and naive;
`REVERIE_PEERS=1` adds the peers' own code, stock and tuned, each in an environment of its
own under `CTX_VENVS` (or the temporary folder), which it installs. Rows of every run go to
`context.jsonl`, the tables to `context-tables.md`, a plot to `context.svg`.

A replay's course is fixed: it measures missing names, not whether a model thinks worse.
Needs the recorded sessions and the shared bench (`REVERIE_SHARED`).
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from bench.__main__ import ROOT_SHARED, Row
from bench.adapter import bench_modules, collapsed, manager
from reverie.settings import DEFAULTS

Figures: TypeAlias = "dict[str, Any]"
Trace: TypeAlias = "dict[str, Any]"

SIX = ("4a364c97", "21a2e002", "7f78a542", "0276a600", "533ff7a3", "24a274a3")
MIDDLE = (30_000, 100_000)  # tokens of the sessions in the second group
TAILS = (10_000, 20_000, 40_000, 80_000)
RUNS = 4  # of what is timed
DEFAULT = DEFAULTS.collapse_tail
REFERENCE = "naive-infinite"
BOUNDS = (REFERENCE, "naive", "sketch", "sketch-once", "oracle", "oracle-once")
PEERS = {
    "langchain": ("langchain-clear", "langchain-summary", "langchain-summary-full"),
    "deepagents": ("deepagents",),
    "pydantic-ai-harness": ("harness-tiered",),
    "strands-agents": ("strands-sliding", "strands-summary", "strands-auto"),
}
NO_PACKAGE = ("sliding-window", "opencode-like")
# fmt: off
COLUMNS = (
    "manager", "score", "cost", "user facts here", "near here", "far here", "lost",
    "shown whole", "summaries", "peak K", "CPU",
)
# fmt: on
# Run by a peer's own interpreter: NAME:N is the manager NAME, made to act at N tokens.
TUNED = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
from adapters import ALL
from replay import replay
from traces import load

def tuned(cls, name, at):
    known = {"name": f"{name} at {at // 1000} K"}
    if name.startswith("harness"):
        known["target"] = at
    elif name == "langchain-clear":
        known["options"] = {"trigger": at}
    elif name.startswith("langchain"):
        known["trigger"] = ("tokens", at)
    elif name == "strands-auto":
        from strands.experimental.context_manager import Offload
        known["make"] = lambda self: {"context_manager": {"strategies": [
            Offload.truncate("tool_results", {"preview_tokens": 1000}).when(threshold=1500),
            Offload.summarize("*").when(utilization=at / 200_000, preserve_recent=4)]}}
    else:
        return None
    return type(cls.__name__, (cls,), known)

for spec in sys.argv[3:]:
    trace = load(spec)
    for wanted in sys.argv[2].split(","):
        name, _, at = wanted.partition(":")
        module, cls, _ = ALL[name]
        found = getattr(importlib.import_module("adapters." + module), cls)
        found = tuned(found, name, int(at)) if at else found
        if found is not None:
            print(json.dumps(replay(trace, found, getattr(found, "window", 200_000))), flush=True)
"""


def measure(out: Path) -> Iterator[Row]:
    folder = ROOT_SHARED / "data" / "sessions_dev"
    if not folder.is_dir() or not (ROOT_SHARED / "bench" / "context").is_dir():
        yield "recorded sessions", f"not found under {os.fspath(ROOT_SHARED.name)}", "", None
        return
    bench_modules(ROOT_SHARED)
    paths = {path.name[:8]: path for path in sorted(folder.glob("*.jsonl.gz"))}
    rows = list(replayed(paths))
    peers = list(peer_rows(paths, rows)) if os.environ.get("REVERIE_PEERS") else []
    every = [*rows, *peers]
    (out / "context.jsonl").write_text("".join(json.dumps(r) + "\n" for r in every), "utf-8")
    groups = grouped(rows)
    tables = [table(name, chosen(every, ids), ids) for name, ids in groups.items()]
    (out / "context-tables.md").write_text("\n".join(tables), encoding="utf-8")
    (out / "context.svg").write_text(plot(chosen(every, SIX), SIX), encoding="utf-8")
    yield from bars(rows, groups)
    yield from against_peers(every, groups)
    yield from classic(rows)
    yield from processor()


def replayed(paths: dict[str, Path]) -> Iterator[Figures]:
    """Our policies, the sketch and the bounds, over every session."""
    load = importlib.import_module("traces").load
    replay = importlib.import_module("replay")
    known = importlib.import_module("adapters").ALL
    ours = [
        manager(replay.Manager, collapsed(tail), f"collapse {tail // 1000} K") for tail in TAILS
    ]
    ours.append(manager(replay.Manager, DEFAULTS, "classic"))
    plain = [known[name] for name in BOUNDS]
    others = [getattr(importlib.import_module(f"adapters.{m}"), c) for m, c, _ in plain]
    for name, path in paths.items():
        trace = load(f"{name}={path}")
        if not trace["steps"]:
            continue
        for cls in (*ours, *others):
            yield replay.replay(trace, cls, getattr(cls, "window", 200_000))


def grouped(rows: Iterable[Figures]) -> dict[str, tuple[str, ...]]:
    sizes = {r["trace"]: r["peak"] for r in rows if r["manager"] == REFERENCE}
    middle = tuple(n for n, size in sizes.items() if MIDDLE[0] <= size <= MIDDLE[1])
    return {"the six longest": SIX, "30-100 K tokens": middle, "all": tuple(sizes)}


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

        near = [sum(column) for column in zip(*(r["near"] for r in rows), strict=True)]
        far = [sum(column) for column in zip(*(r["far"] for r in rows), strict=True)]
        self.cost = add("cost") / base
        self.score = (add("cost") + add("recovery") + add("refind")) / base
        self.near = near[0] / max(1, sum(near))
        self.far = far[0] / max(1, sum(far))
        self.lost = near[3] + far[3]
        self.shown = add("shown") / len(rows)
        self.here, self.facts = int(add("facts_here")), int(add("facts"))
        self.summaries = int(add("summaries"))
        self.failed = sum(bool(r["error"]) for r in rows)
        self.peak = max(r["peak"] for r in rows)
        self.cpu = add("cpu") / len(rows)

    @property
    def holds(self) -> bool:
        """The gates: nothing the user said and nothing a next step needs is hidden."""
        verbatim = self.here == self.facts and self.near >= 0.96 and self.shown >= 0.90
        return verbatim and not (self.lost or self.summaries or self.failed)

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


def bars(rows: list[Figures], groups: dict[str, tuple[str, ...]]) -> Iterator[Row]:
    """The score at each tail, with its gates."""
    limits = {"the six longest": 0.30, "30-100 K tokens": 0.48}
    for group, limit in limits.items():
        found = summed(chosen(rows, groups[group]))
        ours = {tail: found[f"collapse {tail // 1000} K"] for tail in TAILS}
        best = min((t for t in TAILS if ours[t].holds), key=lambda t: ours[t].score, default=None)
        for tail, figures in ours.items():
            most = limit if tail == best else 0.34 if (tail, limit) == (DEFAULT, 0.30) else None
            met = None if most is None else figures.holds and figures.score <= most
            yield f"{group}, tail {tail:,}: score", told(figures), f"{most or ''}", met
        for name in ("sketch", "oracle"):
            yield f"{group}, {name}: score", told(found[name]), "", None


def told(figures: Summed) -> str:
    gates = f"near {figures.near:.1%}, shown {figures.shown:.1%}, lost {figures.lost}"
    return f"{figures.score:.4f} ({gates}, facts {figures.here}/{figures.facts})"


def against_peers(rows: list[Figures], groups: dict[str, tuple[str, ...]]) -> Iterator[Row]:
    ours = {"classic", *(f"collapse {tail // 1000} K" for tail in TAILS)}
    for group, ids in groups.items():
        found = summed(chosen(rows, ids))
        peers = {n: f for n, f in found.items() if n not in ours and n not in BOUNDS}
        whole = {n: f.score for n, f in peers.items() if not f.failed}
        if whole:
            best = min(whole, key=lambda n: whole[n])
            mine = found["collapse 10 K"].score
            what = f"{group}: best of {len(peers)} peers ({best})"
            yield what, f"{whole[best]:.3f}, ours {mine:.3f}", "ours below", mine < whole[best]


def classic(rows: list[Figures]) -> Iterator[Row]:
    """`classic` against naive: in all, and nowhere above it."""
    naive = {r["trace"]: r["cost"] for r in rows if r["manager"] == REFERENCE}
    cost = {r["trace"]: r["cost"] for r in rows if r["manager"] == "classic"}
    whole = sum(cost.values()) / sum(naive.values())
    yield "classic against naive, all sessions", f"{whole:.3f}", "1", whole <= 1
    above = sorted(cost[n] / naive[n] for n in naive if cost[n] > naive[n])
    told = f"{len(above)} of {len(naive)}" + (f", at most {above[-1]:.2f} x" if above else "")
    yield "sessions where classic costs more", told, "0", not above


def processor() -> Iterator[Row]:
    """CPU of the three calls, in units of one json.dumps of the request: the least of some runs,
    and the most where there is a limit."""
    traces, replay = importlib.import_module("traces"), importlib.import_module("replay")
    folder = ROOT_SHARED / "data" / "sessions_dev"
    six = [traces.load(f"{n}={next(folder.glob(n + '*'))}") for n in SIX]

    def runs(sessions: Sequence[Trace], tail: int, **kind: Any) -> list[float]:
        cls = manager(replay.Manager, collapsed(tail), **kind)
        return [
            sum(replay.replay(t, cls)["cpu"] for t in sessions) / len(sessions) for _ in range(RUNS)
        ]

    used = runs(six, DEFAULT)
    told = f"{min(used):.2f}, at most {max(used):.2f}"
    yield f"CPU a round, tail {DEFAULT:,}, json.dumps = 1", told, "0.5", min(used) <= 0.5
    yield f"the same, tail {TAILS[0]:,}", f"{min(runs(six, TAILS[0])):.2f}", "", None
    hashed = min(runs(six, DEFAULT, digests=True))
    yield "the same with the journal's digests", f"{hashed:.2f}", "", None
    short, long = (traces.synthetic(7, calls) for calls in (200, 2_000))
    grows = min(runs([long], DEFAULT)) / min(runs([short], DEFAULT))
    met = 0.8 <= grows <= 1.2
    yield "the same in a session ten times longer", f"{grows:.2f} x", "0.8-1.2 x", met


# --- peers


def peer_rows(paths: dict[str, Path], rows: Iterable[Figures]) -> Iterator[Figures]:
    """The peers' own code, stock and made to act at each of the tails' sizes."""
    groups = grouped(rows)
    wanted = dict.fromkeys([*groups["the six longest"], *groups["30-100 K tokens"]])
    specs = [f"{name}={paths[name]}" for name in wanted]
    yield from run_peer(sys.executable, list(NO_PACKAGE), specs)
    for package, names in PEERS.items():
        python = environment(package)
        if python:
            tuned = [f"{name}:{at}" for name in names for at in TAILS]
            yield from run_peer(python, [*names, *tuned], specs)


def environment(package: str) -> str:
    """The interpreter with this package, installed if need be; empty where that fails."""
    base = Path(os.environ.get("CTX_VENVS") or tempfile.gettempdir())
    folder = base / f"ctx-{package.partition('-')[0]}"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        command = [str(python), "-m", "pip", "install", "-q", package]
        if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode:
            print(f"{package} could not be installed; it is left out")
            return ""
    return str(python)


def run_peer(python: str, names: Sequence[str], specs: Sequence[str]) -> Iterator[Figures]:
    with tempfile.TemporaryDirectory() as folder:
        runner = Path(folder) / "runner.py"
        runner.write_text(TUNED, encoding="utf-8")
        context = str(ROOT_SHARED / "bench" / "context")
        command = [python, "-B", str(runner), context, ",".join(names), *specs]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    for line in done.stdout.splitlines():
        yield json.loads(line)


# --- the plot


def plot(by: dict[str, list[Figures]], ids: Sequence[str]) -> str:
    """Score and user-visible retention of each manager, as a bar chart in SVG."""
    found = {n: f for n, f in summed(by).items() if n not in (REFERENCE, "naive")}
    order = sorted(found, key=lambda n: (found[n].failed, found[n].score))
    left, unit, high = 190, 420, 22
    height = 60 + high * len(order)
    size = f'width="760" height="{height}" font-family="sans-serif" font-size="12"'
    title = f"Score over {len(ids)} sessions (sending everything = 1); near needs at the right"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f'<text x="8" y="20">{title}</text>',
    ]
    for n, name in enumerate(order):
        figures, y = found[name], 40 + high * n
        colour = "#2b6cb0" if name.startswith(("collapse", "classic")) else "#a0aec0"
        width = min(unit, unit * figures.score)
        score = "fails" if figures.failed else f"{figures.score:.3f}"
        parts += [
            f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{name}</text>',
            f'<rect x="{left}" y="{y}" width="{width:.1f}" height="{high - 6}" fill="{colour}"/>',
            f'<text x="{left + width + 6:.1f}" y="{y + 12}">{score}</text>',
            f'<text x="750" y="{y + 12}" text-anchor="end">{figures.near:.1%}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"
