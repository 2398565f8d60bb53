"""Other context managers on the same sessions: their own code, stock and tuned.

Each package has an environment of its own (`bench/peers`). One that cannot be installed is left
out, and that is said.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from bench.figures import ROOT_SHARED, once
from bench.peers import LOCKS, MISSING, environment

Figures: TypeAlias = "dict[str, Any]"

TAILS = (10_000, 20_000, 40_000, 80_000)
EARLY = (40_000,)
"""Tokens at which a peer is made to act, beside its own setting: the best found for any of them."""
PEERS = {
    "langchain": (
        "langchain-clear",
        "langchain-clear-batch",
        "langchain-summary",
        "langchain-summary-full",
    ),
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
    elif name.startswith("langchain-clear"):
        known["options"] = {**cls.options, "trigger": at}
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

name, _, at = sys.argv[2].partition(":")
module, cls, _ = ALL[name]
found = getattr(importlib.import_module("adapters." + module), cls)
found = tuned(found, name, int(at)) if at else found
for spec in sys.argv[3:] if found is not None else ():
    trace = load(spec)
    print(json.dumps(replay(trace, found, getattr(found, "window", 200_000))), flush=True)
"""


def peer_rows(paths: dict[str, Path], wanted: Sequence[str]) -> Iterator[Figures]:
    """The peers' own code, as it comes and made to act early."""
    for package in ("", *PEERS):
        yield from one_peer(package, paths, wanted)


def one_peer(package: str, paths: dict[str, Path], wanted: Sequence[str]) -> list[Figures]:
    """A package's managers on some sessions. What each came to is kept: the same versions on
    the same sessions come to the same."""
    names = PEERS[package] if package else NO_PACKAGE
    python = environment(package) if package else sys.executable
    if not python:
        return []
    given = [*names, *(f"{name}:{at}" for name in names for at in EARLY if package)]
    lock = (LOCKS / f"{package}.txt").read_text("utf-8") if package else ""
    out: list[Figures] = []
    for name in given:
        specs = [f"{one}={paths[one]}" for one in wanted]
        of = (list(wanted), lock, TUNED)
        found = once(name, of, lambda n=name, s=specs: run_peer(python, n, s))
        if found is None:
            MISSING[name] = "not run: the time was over"
        out += found or ()
    return out


def run_peer(python: str, name: str, specs: Sequence[str]) -> list[Figures]:
    """One manager on some sessions; its name may have the tokens behind it at which it acts."""
    context = str(ROOT_SHARED / "bench" / "context")
    command = [python, "-B", "-c", TUNED, context, name, *specs]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main(asked: Sequence[str]) -> None:
    """One peer after the other, to be kept for the report."""
    from bench.context import SIX, session_files

    for package in asked or ("plain", *PEERS):
        known = package if package in PEERS else ""
        print(package, len(one_peer(known, session_files(), SIX)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
