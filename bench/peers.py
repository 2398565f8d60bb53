"""Environments for other people's programs, made where they are missing and thrown away at will.

Each has its own folder below bench/out/peers (or `REVERIE_BENCH_PEERS`), with just the versions of
its lock, bench/peers/NAME.txt; a lock holds names and versions and no address. One that cannot be
installed is told as such and left out; so is one that `REVERIE_BENCH_WITHOUT` names.

    python -m bench.peers [NAME ...]      makes them
    python -m bench.peers --lock NAME     writes the lock anew with the newest versions
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from functools import cache
from pathlib import Path

from bench.figures import HERE, OUT

LOCKS = HERE / "peers"
FOLDER = Path(os.environ.get("REVERIE_BENCH_PEERS") or OUT / "peers")
MINUTES = 15
ENVIRONMENTS = {  # what is installed, and what a user's program would import of it
    "langchain": (
        ("langchain",),
        "from langchain.agents.middleware import SummarizationMiddleware, ContextEditingMiddleware",
    ),
    "deepagents": (
        ("deepagents",),
        "import deepagents.middleware.summarization, deepagents.middleware.filesystem",
    ),
    "pydantic-ai-harness": (("pydantic-ai-harness",), "import pydantic_ai_harness.compaction"),
    "strands-agents": (("strands-agents",), "from strands import Agent"),
    "mem0": (("mem0ai",), "from mem0 import Memory"),
    "langgraph": (("langgraph",), "from langgraph.store.memory import InMemoryStore"),
    "mempalace": (("mempalace",), ""),
    "bm25s": (("bm25s", "PyStemmer", "numpy"), ""),
    "detect-secrets": (("detect-secrets",), ""),
}
MISSING: dict[str, str] = {}
"""Peers that did not run, and why."""


@cache
def environment(name: str) -> str:
    """The interpreter of a peer's environment; empty where it cannot be had."""
    if name in os.environ.get("REVERIE_BENCH_WITHOUT", "").split(","):
        MISSING[name] = "left out of this run"
        return ""
    folder = FOLDER / name
    python, stamp, lock = folder / "bin" / "python", folder / "lock.txt", LOCKS / f"{name}.txt"
    if not lock.is_file():
        MISSING[name] = "could not be installed: it has no lock"
        return ""
    wanted = lock.read_text(encoding="utf-8")
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return str(python)
    venv.create(folder, with_pip=True, clear=True)
    failed = _pip(python, "--no-deps", "-r", str(lock))
    if failed:
        MISSING[name] = f"could not be installed: {failed}"
        return ""
    stamp.write_text(wanted, encoding="utf-8")
    return str(python)


def _pip(python: Path, *what: str) -> str:
    """Empty, or what pip said last."""
    line = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *what]
    try:
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=60 * MINUTES, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not installed within {MINUTES} minutes"
    return done.stderr.strip().splitlines()[-1] if done.returncode and done.stderr else ""


def version(python: str, package: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def size_of(python: str) -> int:
    """Bytes in an environment's packages, without pip, setuptools and compiled files."""
    site = next((Path(python).parent.parent / "lib").glob("python*/site-packages"))
    own = ("pip", "setuptools", "_distutils_hack", "pkg_resources")
    files = [
        path
        for path in site.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.relative_to(site).parts[0].split("-")[0] not in own
    ]
    return sum(path.stat().st_size for path in files)


def lock(name: str) -> None:
    """The newest versions that go together, written down."""
    folder = FOLDER / name
    python = folder / "bin" / "python"
    venv.create(folder, with_pip=True, clear=True)
    if failed := _pip(python, *ENVIRONMENTS[name][0]):
        sys.exit(failed)
    _write_lock(name, python)


def _write_lock(name: str, python: Path) -> None:
    line = [str(python), "-m", "pip", "--disable-pip-version-check", "freeze"]
    found = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    LOCKS.mkdir(exist_ok=True)
    (LOCKS / f"{name}.txt").write_text(found, encoding="utf-8")
    (FOLDER / name / "lock.txt").write_text(found, encoding="utf-8")


def main(asked: list[str]) -> int:
    if asked[:1] == ["--lock"]:
        for name in asked[1:]:
            lock(name)
        return 0
    for name in asked or ENVIRONMENTS:
        python = environment(name)
        package = ENVIRONMENTS[name][0][0]
        print(f"{name}: {version(python, package) if python else MISSING[name]}", flush=True)
    return 1 if MISSING else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
