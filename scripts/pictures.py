"""Makes the pictures of README and docs from real runs.

    python -m scripts.pictures cost       replays a recorded session, naive, by peers and by Reverie
    python -m scripts.pictures draw       draws the plot again from the figures of that run
    python -m scripts.pictures terminal   runs a few commands on a terminal of 100 columns

`cost` needs the recorded sessions (`REVERIE_SHARED`) and installs what is missing of the peers
(`bench.peers`), each in an environment of its own. Its figures go to
`docs/pictures/session-cost.json`, and nothing but those is drawn. Costs are those of a simulated
prompt cache, in input tokens.
"""

from __future__ import annotations

import html
import importlib
import io
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
FIGURES = PICTURES / "session-cost.json"
PLOT = PICTURES / "session-cost.svg"
TERMINAL = PICTURES / "terminal.svg"

SESSION = "24a274a3"  # of the six longest the fourth by what Reverie makes of them
OURS = "Reverie"
NAIVE = "everything, every time"
PEERS = {
    "langchain": {
        "langchain-clear": "LangChain, clearing",
        "langchain-summary": "LangChain, summaries",
    },
    "deepagents": {"deepagents": "deepagents"},
    "pydantic-ai-harness": {
        "harness-tiered": "pydantic-ai-harness",
        "harness-tiered-40k": "the same, at 40 K",
    },
    "strands-agents": {
        "strands-auto": "Strands, auto",
        "strands-auto-40k": "Strands, at 40 K",
    },
}
"""The managers of the shared bench that are drawn, by package: as their makers ship them, and the
two that gain most by being made to act earlier."""
NAMES = {"naive-infinite": NAIVE, **{k: v for one in PEERS.values() for k, v in one.items()}}

# The bench's own run, which notes what was spent so far behind each request: what was billed, and
# what it would take to get back or find again what a step needed and did not have.
CURVE = """
class Curve(replay.Run):
    def __init__(self, *given):
        super().__init__(*given)
        self.curve = []
    def request(self):
        self.mark()
        return super().request()
    def mark(self):
        spent = round(self.total.cost + self.recovery + self.refind)
        self.curve += [spent] * (self.requests - len(self.curve))
    def report(self, *given):
        self.mark()
        self.curve[-1] = round(self.total.cost + self.recovery + self.refind)
        return {**super().report(*given), "curve": self.curve}
"""
# Run by a peer's own interpreter, and by ours for what needs no package.
CURVES = f"""
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
import replay
from adapters import ALL
from traces import load
{CURVE}
replay.Run = Curve
trace = load(sys.argv[3])
for name in sys.argv[2].split(","):
    module, cls, _ = ALL[name]
    found = getattr(importlib.import_module("adapters." + module), cls)
    print(json.dumps(replay.replay(trace, found, getattr(found, "window", 200_000))), flush=True)
"""


# --- the run


def measured(session: str) -> list[dict[str, Any]]:
    """One recorded session under every manager: what it cost, request by request."""
    from bench.figures import ROOT_SHARED
    from bench.peers import environment

    (path,) = (ROOT_SHARED / "data" / "sessions_dev").glob(f"{session}*.jsonl.gz")
    context, spec = str(ROOT_SHARED / "bench" / "context"), f"{session}={path}"
    rows = [by_us(context, spec), *by_others(sys.executable, ["naive-infinite"], context, spec)]
    for package, names in PEERS.items():
        python = environment(package)
        rows += by_others(python, list(names), context, spec) if python else []
    return rows


def by_others(
    python: str, names: Sequence[str], context: str, spec: str
) -> Iterator[dict[str, Any]]:
    line = [python, "-B", "-c", CURVES, context, ",".join(names), spec]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True)
    for row in map(json.loads, done.stdout.splitlines()):
        yield figures(NAMES[row["manager"]], row)


def by_us(context: str, spec: str) -> dict[str, Any]:
    """Reverie as it comes: collapse with the tail of the settings."""
    from bench.adapter import collapsed, manager
    from reverie.settings import DEFAULTS

    sys.path.insert(0, context)
    replay, traces = importlib.import_module("replay"), importlib.import_module("traces")
    space: dict[str, Any] = {"replay": replay}
    exec(CURVE, space)
    cls = manager(replay.Manager, collapsed(DEFAULTS.collapse_tail), OURS)
    trace = traces.load(spec)
    return figures(OURS, space["Curve"](trace, cls(trace), 200_000).play())


def figures(name: str, row: dict[str, Any]) -> dict[str, Any]:
    lost = row["near"][3] + row["far"][3]
    whole = sum(row["near"]) + sum(row["far"])
    return {
        "name": name,
        "cost": row["cost"] + row["recovery"] + row["refind"],
        "lost": lost,
        "needs": whole,
        "summaries": row["summaries"],
        "failed": bool(row["error"]),
        "curve": row["curve"],
    }


# --- the plot: colours that stand on white and on black, no script, nothing loaded

WIDE, HIGH = 860, 400
LEFT, TOP, RIGHT, BOTTOM = 64, 56, 300, 44
STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #5b6370; }
  .title { font-size: 15px; font-weight: 600; fill: #24292f; }
  .ours { fill: #0969da; font-weight: 600; }
  .plain { fill: none; stroke: #9aa3ad; stroke-width: 1.5; }
  .naive { fill: none; stroke: #cf5b3f; stroke-width: 2; }
  .best { fill: none; stroke: #0969da; stroke-width: 3; }
  .grid { stroke: #8b949e; stroke-opacity: .25; }
  @media (prefers-color-scheme: dark) {
    text { fill: #9aa4b2; } .title { fill: #e6edf3; } .ours { fill: #58a6ff; }
    .best { stroke: #58a6ff; } .naive { stroke: #f0883e; } .plain { stroke: #6e7681; }
  }
"""


def drawn(rows: Sequence[dict[str, Any]]) -> str:
    """What a session cost so far, request by request, a line for each manager."""
    rows = sorted(rows, key=lambda row: -row["cost"])
    naive = next(row for row in rows if row["name"] == NAIVE)
    ours = next(row for row in rows if row["name"] == OURS)
    across, up = WIDE - LEFT - RIGHT, HIGH - TOP - BOTTOM
    top, long = max(max(row["curve"]) for row in rows), len(naive["curve"])

    def at(number: int, cost: float) -> tuple[float, float]:
        return LEFT + across * number / (long - 1), TOP + up - up * cost / top

    parts = [*frame(told(naive, ours), long), *grid(top, lambda cost: at(0, cost)[1])]
    ends = [at(len(row["curve"]) - 1, row["curve"][-1]) for row in rows]
    for row, end, y in zip(rows, ends, apart([y for _, y in ends]), strict=True):
        kind = "best" if row is ours else "naive" if row is naive else "plain"
        points = [at(number, cost) for number, cost in enumerate(row["curve"])]
        line = " ".join(f"{x:.1f},{height:.1f}" for x, height in points)
        parts.append(f'<polyline class="{kind}" points="{line}"/>')
        right, style = LEFT + across + 14, ' class="ours"' if row is ours else ""
        ends_at = f'x1="{end[0]:.1f}" y1="{end[1]:.1f}" x2="{right}" y2="{y:.1f}"'
        parts.append(f'<line class="grid" {ends_at}/>')
        words = html.escape(label(row, naive))
        parts.append(f'<text{style} x="{right + 4}" y="{y + 4:.1f}">{words}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def frame(alt: str, requests: int) -> list[str]:
    size = f'viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{html.escape(alt, quote=True)}"'
    title = f"One recorded coding session, {requests} requests: what it had cost so far"
    about = (
        "million input tokens at cache prices; right: share of sending everything,"
        " and needed names that are lost"
    )
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="{LEFT - 40}" y="24">{title}</text>',
        f'<text x="{LEFT - 40}" y="43">{about}</text>',
    ]


def grid(top: float, height: Callable[[float], float]) -> list[str]:
    right = WIDE - RIGHT
    parts = [f'<text x="{right}" y="{HIGH - 16}" text-anchor="end">requests →</text>']
    for tick in ticks(top):
        y = height(tick)
        parts += [
            f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick / 1e6:g}</text>',
        ]
    return parts


def label(row: dict[str, Any], naive: dict[str, Any]) -> str:
    if row["failed"]:
        return f"{row['name']}: gives up"
    share = f"{row['cost'] / naive['cost']:.0%}"
    lost = f", {row['lost']} names lost" if row["lost"] else ""
    return f"{row['name']} {share}{lost}"


def told(naive: dict[str, Any], ours: dict[str, Any]) -> str:
    share = ours["cost"] / naive["cost"]
    return f"A line plot. With Reverie the session costs {share:.0%} of sending everything."


def ticks(top: float) -> list[float]:
    step = next(s for s in (1e5, 2e5, 5e5, 1e6, 2e6, 5e6) if top / s <= 6)
    return [step * n for n in range(int(top / step) + 1)]


def apart(heights: Sequence[float], gap: float = 17) -> list[float]:
    """Labels from above to below, none over another, and none below the plot."""
    out: list[float] = []
    for y in heights:
        out.append(max(y, out[-1] + gap) if out else y)
    over = out[-1] - (HIGH - BOTTOM)
    floor = HIGH - BOTTOM if over > 0 else out[-1]
    for n in range(len(out) - 1, -1, -1):
        out[n] = min(out[n], floor)
        floor = out[n] - gap
    return out


# --- the terminal

COMMANDS = (
    """reverie memory add "Never run npm here, use pnpm: the lock file is pnpm's\"""",
    """reverie memory add "Integration tests hit a real database: a mock hid a bug in March\"""",
    """reverie ask "what do integration tests hit?\"""",
    """reverie -p "run npm install\"""",
)
COLUMNS = 100


def shown(folder: Path, line: str) -> str:
    """What a command writes to a terminal, colours and all."""
    known = {"PATH", "LANG", "REVERIE_SHARED"}
    environ = {key: value for key, value in os.environ.items() if key in known}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    environ |= {"HOME": str(folder.parent), "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    ours, theirs = pty.openpty()
    shell = ["/bin/sh", "-c", line]
    with subprocess.Popen(
        shell, cwd=folder, env=environ, stdin=theirs, stdout=theirs, stderr=theirs
    ) as child:
        os.close(theirs)
        seen = b""
        while piece := _read(ours):
            seen += piece
        child.wait(120)
    os.close(ours)
    return seen.decode("utf-8", "replace").replace("\r\n", "\n")


def _read(ours: int) -> bytes:
    try:
        return os.read(ours, 65_536)
    except OSError:  # the other side is closed
        return b""


def terminal() -> str:
    """The commands and what they show, as an SVG that loads nothing."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "shop"
        folder.mkdir()
        shown(folder, "reverie -p hello")  # what is told at the first run stands in the tutorial
        for number, line in enumerate(COMMANDS):
            console.print("\n" * bool(number) + "[bold green]$[/] ", end="")
            console.print(Text(line, "bold"))
            console.print(Text.from_ansi(shown(folder, line).rstrip("\n")))
    picture = console.export_svg(title="reverie", unique_id="reverie")
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)


def main(asked: Sequence[str]) -> int:
    PICTURES.mkdir(exist_ok=True)
    if asked == ["cost"]:
        rows = measured(SESSION)
        FIGURES.write_text(json.dumps({"session": SESSION, "rows": rows}) + "\n", "utf-8")
    if asked in (["cost"], ["draw"]):
        PLOT.write_text(drawn(json.loads(FIGURES.read_text("utf-8"))["rows"]), "utf-8")
    elif asked == ["terminal"]:
        TERMINAL.write_text(terminal(), "utf-8")
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
