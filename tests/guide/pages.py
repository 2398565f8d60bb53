"""The pages that a newcomer follows: their console lines and Python blocks, run as they stand.

A page is one story. Its console lines run one after the other in a folder and a home of their own;
what stands below a line is what it shows, with `…` for anything. Tables are compared by their
words, since a terminal draws lines between them. A line whose answer begins with `reverie:` fails.

`reverie` and `python` run in this process. What would install something, start a server, or begin
a program of foreign make is not run here: `elsewhere` says what it is held against instead.
"""

from __future__ import annotations

import gc
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reverie.apps.cli import build
from reverie.simulator import call
from reverie.testing import provider

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALLS = ("make", "pip", ".", "git clone")
FOREIGN = ("claude", "codex", "aider", "opencode", "systemctl", "crontab", "docker", "curl")
SERVERS = ("proxy", "web", "mcp", "simulate", "team serve", "fleet work")
BACKGROUND = ("You keep the long-term memory of a coding agent", "keeps notes on this session")


def guides() -> list[str]:
    """The pages of the guide, the first one first."""
    found = sorted((ROOT / "docs" / "how-to").glob("*.md"))
    named = [
        "README.md",
        "examples/README.md",
        *(f"docs/{n}.md" for n in ("tutorial", "faq", "glossary")),
    ]
    return [*named, *(path.relative_to(ROOT).as_posix() for path in found)]


def blocks(page: str, kind: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [body for language, body in BLOCK.findall(text) if language == kind]


# --- console lines


@dataclass(frozen=True, slots=True)
class Line:
    """What is typed, and what the page shows below it."""

    typed: str
    shown: str

    @property
    def words(self) -> list[str]:
        """Without variables before the program."""
        found = shlex.split(self.typed, comments=True)
        while found and re.fullmatch(r"\w+=.*", found[0], re.DOTALL):
            found = found[1:]
        return found

    @property
    def program(self) -> str:
        return os.path.basename(self.words[0]) if self.words[0] != "." else "."


def lines(page: str) -> list[Line]:
    return [line for block in blocks(page, "console") for line in _lines(block)]


def _lines(block: str) -> Iterator[Line]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        typed, _, shown = part.partition("\n")
        while typed.endswith("\\"):
            more, _, shown = shown.partition("\n")
            typed = typed[:-1] + more.strip()
        yield Line(typed, shown)


def elsewhere(line: Line) -> str:
    """Why a line is not run here, if it is not."""
    words = line.words
    if line.program in FOREIGN:
        return "foreign"
    if line.program in INSTALLS or " ".join(words[:2]) in INSTALLS:
        return "installs"
    if line.program != "reverie" or "--help" in words:
        return ""
    return "server" if _command(words) in SERVERS else ""


def _command(words: list[str]) -> str:
    two = " ".join(words[1:3])
    return two if two in SERVERS else words[1] if len(words) > 1 else ""


@dataclass
class Shell:
    """Where the lines of a page run."""

    patch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]
    folder: Path  # for what only the lines themselves need

    def run(self, line: Line) -> tuple[int, str, str]:
        """Exit code, output, errors."""
        typed = line.typed.partition("  #")[0].strip()
        words = [os.path.expanduser(os.path.expandvars(word)) for word in line.words]
        if words[0] == "cd":
            self.patch.chdir(words[1])
            self.patch.setenv("PWD", os.getcwd())
            return 0, "", ""
        if words[0] == "export":
            for name, _, value in (word.partition("=") for word in words[1:]):
                self.patch.setenv(name, value)
            return 0, "", ""
        if re.search(r"[|>&;]", typed) or line.program not in ("reverie", "python"):
            return _in_bash(typed)
        with pytest.MonkeyPatch.context() as given:
            for word in shlex.split(typed)[: -len(words)]:
                name, _, value = word.partition("=")
                given.setenv(name, value)
            return self._here(words)

    def _here(self, words: list[str]) -> tuple[int, str, str]:
        """In this process; where it asks, the answer is yes."""
        self.capture.readouterr()
        asks = words[1] in ("install", "uninstall")
        given = self.folder / "yes" if asks else Path(os.devnull)
        if asks:
            given.write_text("y\n" * 9)
        code = 0
        with given.open() as stdin, pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", stdin)
            try:
                if words[0].endswith("python"):
                    runpy.run_path(words[1], run_name="__main__")
                else:
                    build().main(words[1:])
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
        found = self.capture.readouterr()
        return code, found.out, found.err


def _in_bash(typed: str) -> tuple[int, str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", typed],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def same(shown: str, seen: str) -> bool:
    """Whether an output is the one that the page shows."""
    parts = [r"\s+".join(map(re.escape, part.split())) for part in shown.split("…")]
    pattern = r"\s*(?:.*?)\s*".join(parts)
    plain = " ".join(re.sub(r"[─━█▁▂▃▄▅▆▇]+", " ", seen).split())
    return re.fullmatch(pattern, plain, re.DOTALL) is not None


# --- Python blocks


def answer(body: Mapping[str, Any]) -> Any:
    """A model for any loop: one call of the first tool of the caller's, then words."""
    said = str(body)
    if any(words in said for words in BACKGROUND):
        return "Nothing."
    offered = [_tool(one) for one in body.get("tools", ())]
    own = [(name, schema) for name, schema in offered if name not in OURS]
    if not own or "function_call_output" in said or "tool_result" in said or "'tool'" in said:
        return "Done."
    name, schema = own[0]
    given = dict.fromkeys(schema.get("properties", {}), "echo 1")
    return [call(name, json.dumps(given), "toolu_of_the_model_01")]


OURS = ("read_back", "search_memory", "remember")


def _tool(one: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    about = one.get("function", one)
    return about["name"], about.get("input_schema") or about.get("parameters") or {}


def run_block(code: str, name: str, patch: pytest.MonkeyPatch) -> None:
    """A block as a program of its own, with a provider on this machine."""
    typed = iter(["Hello there", "And once more", ""])
    space: dict[str, Any] = {"__name__": "__main__", "input": lambda *_: next(typed)}
    with provider(answer) as served:
        for key, url in (("ANTHROPIC", served.anthropic_url), ("OPENAI", served.openai_url)):
            patch.setenv(f"{key}_BASE_URL", url)
            patch.setenv(f"{key}_API_KEY", "none")
        exec(compile(code, name, "exec"), space)
    assert {request.status for request in served.requests} <= {200}
    del space
    with warnings.catch_warnings():  # connections of a client that the program leaves to its end
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
