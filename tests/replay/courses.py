"""Small session files, and what the shared bench makes of a recorded one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from reverie.apps.replay import RecordedCourse, of_lines
from tests.proxy import clients
from tests.proxy.clients import gave, text
from tests.simulator.bench import load

START = 1_767_323_045.0  # 2026-01-02T03:04:05Z


def row(kind: str, content: object, at: float, **more: Any) -> str:
    """A row of a Claude Code file, `at` seconds after the start."""
    from datetime import UTC, datetime

    number = more.pop("uuid", f"{kind}-{at}")
    message = {"role": kind, "content": content, "id": more.pop("mid", number)}
    known = {"type": kind, "uuid": number, "sessionId": "s-1", "cwd": "/p"}
    when = datetime.fromtimestamp(START + at, UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({**known, "timestamp": when, "message": message, **more})


def use(call: str, **given: Any) -> dict[str, Any]:
    return clients.use(call, "Bash", **given)


def thought(words: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": f"sig {words}"}


def session(rounds: int, *, size: int = 2_000, gap: float = 10.0, far: bool = False) -> list[str]:
    """A user, then calls whose results name a file each; with `far`, the last asks for the
    first again."""
    lines = [row("user", "Never touch config/guarded_settings.toml please", 0)]
    at = 0.0
    for n in range(rounds):
        at += gap
        named = f"src/module_{n:03d}.py"
        said = [thought(f"now {n}"), text(f"Round {n}"), use(f"t{n}", command=f"cat part {n}")]
        lines.append(row("assistant", said, at))
        body = f"{named}\n" + f"line {n} of the output\n" * (size // 20)
        lines.append(row("user", [gave(f"t{n}", body)], at + 1))
    if far:
        lines.append(row("assistant", [use("last", path="src/module_000.py")], at + 2))
        lines.append(row("user", [gave("last", "found")], at + 3))
    lines.append(row("assistant", [text("Done.")], at + 4))
    return lines


def course(*lines: str) -> RecordedCourse:
    return of_lines(lines, "a file")


def recorded(path: Path) -> RecordedCourse:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return of_lines(lines, path.name)


class Bench:
    """The shared bench: its traces, its replay, and our layers as one of its managers."""

    def __init__(self, shared: Path) -> None:
        from bench.adapter import collapsed, manager

        cachesim = load(shared, "cachesim")
        self.traces = load(shared, "traces")
        self.replays = load(shared, "replay", cachesim=cachesim, traces=self.traces)
        self._ours = lambda tail: manager(self.replays.Manager, collapsed(tail))

    def trace(self, path: Path) -> dict[str, Any]:
        return self.traces.load(str(path))

    def naive(self, trace: dict[str, Any]) -> dict[str, Any]:
        return self.replays.replay(trace, self.replays.Manager, None)

    def collapse(self, trace: dict[str, Any], tail: int) -> dict[str, Any]:
        return self.replays.replay(trace, self._ours(tail))
