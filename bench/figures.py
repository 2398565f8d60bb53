"""What a measurement comes to: figures, each beside a peer or a bound of the same run.

A figure leads where it is as good as what it is held against, or better. What it is held against
is the best of the peers that ran, or, where there is no peer, a bound: a limit we set ourselves or
what no program can do without. A figure that does not lead says why.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
OUT = HERE / "out"
RESULTS = HERE / "results"
ROOT_SHARED = Path(os.environ.get("REVERIE_SHARED") or ROOT.parent / "shared")
QUICK = bool(os.environ.get("REVERIE_BENCH_QUICK"))

Row = tuple[str, str, str, bool | None]
"""A detail beside the figures: what, measured, limit, met (None where there is no limit)."""
Better = Literal["lower", "higher"]
Unit = Literal["", "share", "x", "ms", "s", "MB", "exponent"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number and what it is held against."""

    key: str
    what: str
    ours: float
    against: float | None  # None: nothing ran that it could be held against
    peer: str  # whose the number beside it is
    better: Better
    unit: Unit = ""
    n: int = 1
    why: str = ""  # told where it does not lead
    others: Mapping[str, float] = field(default_factory=dict[str, float])  # all that ran
    points: Sequence[tuple[float, float]] = ()  # a size, and the cost at it

    @property
    def ratio(self) -> float | None:
        if self.against is None or self.unit == "exponent":
            return None
        if not self.against:
            return 1.0 if not self.ours else None
        return self.ours / self.against

    @property
    def leads(self) -> bool | None:
        if self.against is None:
            return None
        return self.ours <= self.against if self.better == "lower" else self.ours >= self.against

    def value(self) -> dict[str, Any]:
        """As it is kept: numbers to six digits."""
        made = asdict(self) | {"ratio": self.ratio, "leads": self.leads}
        made["others"] = {name: _short(one) for name, one in self.others.items()}
        made["points"] = [[_short(one) for one in pair] for pair in self.points]
        for name in ("ours", "against", "ratio"):
            made[name] = _short(made[name])
        return {name: one for name, one in made.items() if one not in ("", {}, [])}


def _short(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def against_peers(
    key: str,
    what: str,
    ours: float,
    peers: Mapping[str, float],
    *,
    better: Better,
    **more: Any,
) -> Figure:
    """A figure held against the best of its peers."""
    pick = min if better == "lower" else max
    best = pick(peers, key=lambda name: peers[name]) if peers else ""
    others = {"Reverie": ours, **peers}
    return Figure(
        key, what, ours, peers.get(best), best or "no peer ran", better, others=others, **more
    )


def at_most(
    key: str, what: str, ours: float, bound: float, unit: Unit = "", n: int = 1, why: str = "",
    **more: Any,
) -> Figure:  # fmt: skip
    """A figure that our own bound holds down."""
    return Figure(key, what, ours, bound, "our bound", "lower", unit, n, why, **more)


def at_least(
    key: str, what: str, ours: float, bound: float, unit: Unit = "", n: int = 1, why: str = "",
    **more: Any,
) -> Figure:  # fmt: skip
    """A figure that has to reach our own bound."""
    return Figure(key, what, ours, bound, "our bound", "higher", unit, n, why, **more)


# What is kept while a run goes on


def once(name: str, of: Any, make: Callable[[], Any]) -> Any:
    """What `make` gives, kept below bench/out, so that a run that was stopped goes on. `of` says
    what it depends on: where that changes, it is made anew. `REVERIE_BENCH_KEPT` takes what is
    there and makes nothing; then None stands for what is missing."""
    stamp = hashlib.sha256(repr(of).encode()).hexdigest()[:16]
    path = OUT / "kept" / f"{slug(name)}-{stamp}.json"
    if not path.is_file():
        if os.environ.get("REVERIE_BENCH_KEPT"):
            return None
        text = json.dumps(make())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


# What is kept


@cache
def code(*modules: str) -> str:
    """What is measured and what measures it (all modules, or these), as one hash."""
    whole = hashlib.sha256()
    own = [*HERE.glob("*.py"), *HERE.glob("*.json*"), *(HERE / "peers").glob("*")]
    files = [*(ROOT / "src").rglob("*.py"), *(p for p in own if not modules or p.stem in modules)]
    for path in sorted(files):
        whole.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:16]


def written(part: str, folder: Path = RESULTS) -> Any:
    """What a part came to when it last ran; None where it never did."""
    path = folder / f"{part}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def kept(folder: Path = RESULTS) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every part that has results, with them."""
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            yield path.stem, found


def known(folder: Path = RESULTS) -> dict[str, float]:
    """Every number that a text may cite: KEY is ours, KEY.against the other's; KEY.ratio, KEY.n."""
    out: dict[str, float] = {}
    for part, found in kept(folder):
        for row in found.get("rows", ()):
            key = row.get("key") or f"{part}.{slug(str(row.get('part') or row.get('what')))}"
            if "count" in row:  # something that was tried so often
                out |= {key: row["count"], f"{key}.bad": row["bad"]}
                continue
            if "ours" not in row:  # damages to the code: a table of their own
                continue
            out[key] = row["ours"]
            for name in ("against", "ratio", "n"):
                if isinstance(row.get(name), int | float) and (name, row[name]) != ("n", 1):
                    out[f"{key}.{name}"] = row[name]
            for name, value in row.get("others", {}).items():
                out[f"{key}.{slug(name)}"] = value
    return out


def slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def shown(value: float | None, unit: str) -> str:
    """A number as people read it."""
    if value is None:
        return "-"
    if unit == "share":
        digits = 1 if value in (0.0, 1.0) or not (value < 0.001 or 0.9995 <= value < 1) else 2
        return f"{100 * value:.{digits}f} %"
    if unit == "exponent":
        return f"{value:.2f}"
    told = f"{value:,.0f}" if value == int(value) and abs(value) < 1e9 else f"{value:,.3g}"
    if abs(value) >= 1000:
        told = f"{value:,.0f}"
    return f"{told} {unit}".strip()


# The parts that `python -m bench` runs, the cheapest first


@dataclass(frozen=True, slots=True)
class Part:
    """Some measurements whose figures belong together; run in one process."""

    name: str
    title: str
    measures: tuple[str, ...]  # modules with `measure`, or `module:function`
    minutes: float = 5  # after which it is stopped
    quick: bool = True  # whether it is in the run of five minutes
    meaning: bool = False  # whether the local model of meaning is there; by default it is not


PARTS = (
    Part("demo", "One session from end to end", ("core:measure_demo",)),
    Part("core", "Import, size, opening a session", ("core", "core:measure_imports")),
    Part("asks", "Plain requests to remember", ("asks", "extraction")),
    Part("rules", "Rules on calls", ("rules",)),
    Part("compactions", "What a compaction keeps", ("compactions", "compactions:measure_counts")),
    Part("secrets", "Secret scanning", ("secrets",), 15),
    Part("mcp", "Through MCP", ("apps:measure_mcp",)),
    Part("live", "The recorded course", ("live",)),
    Part("young", "A young project", ("recall:measure_young",), 10),
    Part("first_prompt", "The first prompt", ("recall:measure_first",), 3, False),
    Part(
        "growth",
        "As the work grows × 10 and × 100",
        ("growth", "growth:measure_sessions"),
        20,
        False,
    ),
    Part("adapters", "Inside other frameworks", ("adapter",), 15, False),
    Part("proxy", "The proxy", ("proxy", "proxy:measure_saving"), 20, False),
    Part("team", "The team server", ("team",), 20, False),
    Part("recall", "Recall against the peers", ("recall_peers",), 40, False, True),
    Part("recall_more", "Recall: more ways to ask", ("recall", "chats"), 20, False),
    Part("recall_speed", "How long recall takes", ("recall:measure_speed",), 30, False, True),
    Part("gate", "What is injected unasked", ("gate",), 20, False),
    Part("boundary", "Recall at the tool boundary", ("boundary",), 20, False),
    Part("quality", "What is lost at writing, and what at recall", ("quality",), 30, False),
    Part("memorycode", "Rules given over many sessions", ("memorycode",), 40, False),
    Part("hygiene", "The memory check and the dream", ("hygiene",), 30, False),
    Part("billed", "What sessions are billed, everything counted", ("billing",), 20, False),
    Part("context", "What a long session costs", ("context",), 90, False),
    Part("context_cpu", "What a round takes of the processor", ("context:measure_cpu",), 20, False),
    Part("fleet", "The fleet", ("fleet",), 30, False),
    Part("page", "The web page", ("apps:measure_page",), 20, False),
)
BY_NAME = {one.name: one for one in PARTS}
