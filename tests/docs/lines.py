"""The console lines of the pages, and a place to run them in: a home with a session, memories and
the files that the pages speak of."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import click
from click.testing import CliRunner, Result

from reverie.apps.cli import build, load
from reverie.store import project_folder
from scripts.pages import pages
from tests.cli.test_docs import SESSION, example

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SERVERS = ("chat", "proxy", "web", "mcp", "simulate", "team serve", "fleet work", "fleet status")
"""They run until they are stopped, or wait for a person: their words are read and not run."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line that a page shows behind `$`."""

    page: str
    number: int
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)

    @property
    def place(self) -> str:
        return f"{self.page}:{self.number}"


def blocks(page: str, kind: str) -> list[tuple[int, str]]:
    """The blocks of a kind, each with the line that it begins in."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = (m for m in BLOCK.finditer(text) if m[1] == kind)
    return [(text.count("\n", 0, m.start(2)) + 1, m[2]) for m in found]


def lines(page: str) -> list[Line]:
    return [
        Line(page, number + at, row.strip()[2:])
        for number, block in blocks(page, "console")
        for at, row in enumerate(block.splitlines())
        if row.strip().startswith("$ ")
    ]


def own_pages() -> list[str]:
    """The pages that are not held by tests/guide."""
    guide = re.compile(r"README\.md|examples/.*|docs/(?:tutorial|faq|glossary|how-to/.*)\.md")
    return [page for page in pages(ROOT) if not guide.fullmatch(page)]


def stage(home: Path, project: Path) -> None:
    """What the lines of all pages speak of, as it would be in use."""
    transcript, blobs, _ = example()
    folder = project_folder(home, project)
    own = folder / SESSION
    (own / "blobs").mkdir(parents=True)
    (own / "tool-results").mkdir()
    (folder / f"{SESSION}.jsonl").write_text("".join(f"{one}\n" for one in transcript))
    for name, text in blobs.items():
        (own / "blobs" / f"{name}.json").write_text(text)
    (own / "tool-results" / "toolu_1.txt").write_text("x" * 61_440)
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    recorded = claude_session()
    (project / "folder").mkdir()
    for name in ("session.jsonl", "folder/one.jsonl"):
        (project / name).write_text(recorded)
    for name in ("talk.jsonl.gz", "old.jsonl.gz"):
        (project / name).write_bytes(gzip.compress(recorded.encode()))
    (project / "build.log").write_text("FAILED tests/test_queue.py\n")
    (project / "notes.md").write_text("Releases are tagged on Fridays.\n")
    (project / "export.json").write_text(
        json.dumps(
            {"results": [{"id": "1", "memory": "Staging deploys at noon, by the pipeline."}]}
        )
    )


def claude_session() -> str:
    """A transcript of Claude Code's."""
    return "".join(f"{json.dumps(row)}\n" for row in _rows())


def _rows() -> Iterator[dict[str, object]]:
    """A session as Claude Code records it."""
    said = [("user", "When does staging deploy?"), ("assistant", "At noon, by the pipeline.")]
    parent = None
    for at, (role, text) in enumerate(said):
        content = [{"type": "text", "text": text}]
        message = {"role": role, "content": content, "id": f"m{at}", "model": "claude-sonnet-5"}
        ident = f"00000000-0000-4000-8000-00000000000{at}"
        yield {
            "type": role,
            "uuid": ident,
            "parentUuid": parent,
            "sessionId": "00000000-0000-4000-8000-0000000000ff",
            "timestamp": f"2026-03-0{at + 1}T12:00:00.000Z",
            "cwd": "/home/me/app",
            "message": message,
        }
        parent = ident


def is_server(words: list[str]) -> bool:
    return " ".join(words[1:3]) in SERVERS or words[1:2] == [] or words[1] in SERVERS


def run(words: list[str], handed: str) -> Result | SimpleNamespace:
    """The program in this process; one that reads from a pipe in a process of its own."""
    if words[1] != "-p":
        return CliRunner().invoke(build(), words[1:], input=handed)
    line = [sys.executable, "-m", "reverie.apps.cli", *words[1:]]
    done = subprocess.run(
        line, input=handed, capture_output=True, text=True, timeout=60, check=False
    )
    return SimpleNamespace(exit_code=done.returncode, output=done.stdout + done.stderr)


def parsed(words: list[str]) -> None:
    """Raises click's own error where a command or an option is none of ours."""
    command, rest = load(words[1]), words[2:]
    while isinstance(command, click.Group) and rest and rest[0] in command.commands:
        command, rest = command.commands[rest[0]], rest[1:]
    with command.make_context(" ".join(words), list(rest)):
        pass
