"""A user's home with an agent program, and requests to it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reverie import Memory
from reverie.providers.cli import CliModel, parse_name
from reverie.settings import Settings
from reverie.store.agent_ledger import AgentLedger
from reverie.transcript import Entry, HeadSet, UserMessage, apply, text_block
from reverie.transcript.view import EMPTY
from reverie.wire import Request, render
from tests.plugin.test_events import rows

NOWHERE = "http://127.0.0.1:9"


def request(text: str) -> Request:
    view = apply(EMPTY, Entry("head", "", 0.0, HeadSet("any")))
    return render(apply(view, Entry("ask", "", 0.0, UserMessage((text_block(text),)))))


@dataclass
class Place:
    """A home of the user's and one of Reverie's; `program` is the agent's path."""

    folder: Path
    program: str = ""
    environ: dict[str, str] = field(default_factory=dict[str, str])
    settings: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        for path in (self.user, self.home, self.repo, self.folder / "tmp"):
            path.mkdir(parents=True, exist_ok=True)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user),
            "TMPDIR": str(self.folder / "tmp"),
            "LANG": "C.UTF-8",
            "REVERIE_HOME": str(self.home),
            "REVERIE_CLI_PATH": self.program,
            "REVERIE_CLI_WAIT_SECONDS": "0",
            "HTTPS_PROXY": NOWHERE,
            "NO_PROXY": "127.0.0.1,localhost",
            "IS_SANDBOX": "1",
            "CLAUDE_CODE_ENTRYPOINT": "cli",
            **self.environ,
        }

    @property
    def user(self) -> Path:
        return self.folder / "user"

    @property
    def home(self) -> Path:
        return self.folder / "reverie"

    @property
    def repo(self) -> Path:
        return self.folder / "repo"

    @property
    def ledger(self) -> AgentLedger:
        return AgentLedger(self.home)

    def model(self, name: str = "cli:claude", **settings: Any) -> CliModel:
        given = Settings(cli_path=self.program, **self.settings, **settings)
        return CliModel(*parse_name(name), self.ledger, self.environ, given)

    def hook(self, event: str, transcript: Path, **environ: str) -> None:
        """What Claude Code starts at one of its events."""
        told = {"hook_event_name": event, "cwd": str(self.repo), "session_id": transcript.stem}
        told["transcript_path"] = str(transcript)
        subprocess.run(
            [sys.executable, "-m", "reverie.apps.cli", "hook"],
            input=json.dumps(told).encode(),
            env={**self.environ, **environ},
            cwd=self.repo,
            check=True,
            timeout=60,
        )

    def transcript(self, name: str, *said: str) -> Path:
        """A session of Claude Code's, a turn for each of the user's words."""
        path = self.folder / f"{name}.jsonl"
        turns = (one for text in said for one in (("user", text), ("assistant", "I see.")))
        path.write_text(rows(*turns, session=name))
        return path

    def rest(self, seconds: float = 60) -> None:
        """Wait until nothing of this place runs."""
        until = time.monotonic() + seconds
        while self.alive():
            assert time.monotonic() < until, self.alive()
            time.sleep(0.05)

    @property
    def due(self) -> list[str]:
        """The sessions with turns that no model has seen."""
        notes = map(json.loads, map(Path.read_text, (self.home / "agent" / "due").glob("*.json")))
        return sorted(note["transcript"] for note in notes if note["turns"])

    @property
    def memory(self) -> Memory:
        return Memory(self.repo, home=self.home)

    def alive(self) -> list[str]:
        """The processes that were started for this place."""
        found: list[str] = []
        mark = f"REVERIE_HOME={self.home}\0".encode()
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if int(path.name) != os.getpid() and mark in (path / "environ").read_bytes():
                    found.append((path / "cmdline").read_bytes().decode().replace("\0", " "))
        return found


class FakeAgent(Place):
    """A place whose agent program is a script; `plan` is what it does."""

    def __post_init__(self) -> None:
        tools = self.folder / "agent"
        tools.mkdir(parents=True)
        made = tools / "claude"
        acts = Path(__file__).with_name("fake_agent.py").read_text()
        made.write_text(f"#!{sys.executable}\n{acts}")
        made.chmod(0o755)
        self.program = str(made)
        self.plan()
        super().__post_init__()

    def plan(self, **what: Any) -> None:
        (self.folder / "agent" / "plan.json").write_text(json.dumps(what))

    @property
    def runs(self) -> list[dict[str, Any]]:
        log = self.folder / "agent" / "runs.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
