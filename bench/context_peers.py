"""Other context managers on the same sessions: their own code, stock and tuned.

Each package has an environment of its own (`bench/peers`). One that cannot be installed is left
out, and that is said.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from bench.figures import ROOT_SHARED
from bench.peers import environment

Figures: TypeAlias = "dict[str, Any]"

TAILS = (10_000, 20_000, 40_000, 80_000)
PEERS = {
    "langchain": ("langchain-clear", "langchain-summary", "langchain-summary-full"),
    "deepagents": ("deepagents",),
    "pydantic-ai-harness": ("harness-tiered",),
    "strands-agents": ("strands-sliding", "strands-summary", "strands-auto"),
}
NO_PACKAGE = ("sliding-window", "opencode-like")
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


def peer_rows(paths: dict[str, Path], wanted: Sequence[str]) -> Iterator[Figures]:
    """The peers' own code, stock and made to act at each of the tails' sizes."""
    specs = [f"{name}={paths[name]}" for name in wanted]
    yield from run_peer(sys.executable, list(NO_PACKAGE), specs)
    for package, names in PEERS.items():
        python = environment(package)
        if python:
            tuned = [f"{name}:{at}" for name in names for at in TAILS]
            yield from run_peer(python, [*names, *tuned], specs)


def run_peer(python: str, names: Sequence[str], specs: Sequence[str]) -> Iterator[Figures]:
    with tempfile.TemporaryDirectory() as folder:
        runner = Path(folder) / "runner.py"
        runner.write_text(TUNED, encoding="utf-8")
        context = str(ROOT_SHARED / "bench" / "context")
        command = [python, "-B", str(runner), context, ",".join(names), *specs]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    for line in done.stdout.splitlines():
        yield json.loads(line)
