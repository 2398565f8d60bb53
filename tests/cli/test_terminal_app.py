"""The terminal app in a real terminal: what a person sees at two widths, and what their keys do."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reverie.testing import call, provider
from tests.cli.tmux import Terminal, wait_for

pytestmark = [
    pytest.mark.spec("18.terminal-app"),
    pytest.mark.needs("tmux"),
    pytest.mark.doors,
]
SHOTS = Path(__file__).with_name("shots")
CODE = '''\
def discount(total, percent):
    """The total after a discount in percent."""
    return total - total * percent / 10
'''
SAID = "`discount` divides by 10, where percent needs **100**.\n\n1. one line changes\n2. no more\n"
SECTIONS = (
    "Primary request and intent",
    "Key technical concepts",
    "Files and code",
    "Errors and fixes",
    "Problem solving",
    "All user messages",
    "Pending tasks",
    "Current work",
    "Optional next step",
)
EVIL = "Mended.\x1b[31m Red\x1b]0;title\x07 and hid\u200bden.\n"


class Course:
    """A model that mends one line, counts the lines it is given, and waits where it is told to."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.released.set()

    def __call__(self, body: Mapping[str, Any]) -> Any:
        return self._answer(body)

    async def _answer(self, body: Mapping[str, Any]) -> Any:
        content = body["messages"][-1]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = "\n".join(str(b.get("text", "")) for b in blocks)
        if any(b["type"] == "tool_result" for b in blocks):
            done = any("Replaced" in str(b) for b in blocks)
            return EVIL if done else [_text(SAID), _edit()]
        if "Mend it" in texts:
            listed = call("Bash", "c2", command="cat nowhere")
            return [_text("I look first."), call("Read", "c1", file_path="pricing.py"), listed]
        if "one\ntwo\nthree" in texts:
            return "Three lines came as one message."
        if "<summary>" in texts:
            parts = "\n".join(f"{n}. {name}:\npricing.py" for n, name in enumerate(SECTIONS, 1))
            return f"<summary>\n{parts}\n</summary>"
        await asyncio.to_thread(self.released.wait)
        return "Nothing to add."


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _edit() -> Any:
    return call(
        "Edit",
        "c3",
        file_path="pricing.py",
        old_string="percent / 10",
        new_string="percent / 100",
    )


@pytest.fixture
def course() -> Course:
    return Course()


@pytest.fixture
def terminal(
    tmp_path: Path, home: Path, course: Course, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Terminal]:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pricing.py").write_text(CODE)
    home.mkdir(mode=0o700)
    (home / ".reverie-welcomed").touch()
    remember = [sys.executable, "-m", "reverie.apps.cli", "memory", "add", "Prices are in cents."]
    subprocess.run(remember, cwd=folder, check=True, capture_output=True)
    window = Terminal(folder, f"reverie-{os.getpid()}-{tmp_path.name}")
    with provider(course) as served:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", served.anthropic_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        monkeypatch.setenv("LANG", "C.UTF-8")
        yield window
        course.released.set()
        window.close()


def seen(terminal: Terminal) -> str:
    """The screen, without what differs from run to run."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "0" * 36, terminal.seen)
    text = re.sub(r"\d+\.\d s\b", "0.0 s", text)
    text = re.sub(r"\$\d\.\d{4}", "$0.0000", re.sub(r"\b0:\d\d\b", "0:00", text))
    text = re.sub(r"\d+%|\d+k left|[\d,]+ left", lambda m: re.sub(r"\d", "0", m[0]), text)
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n")) + "\n"


def compare(terminal: Terminal, name: str, width: int) -> None:
    """What is on the screen is what was looked at and kept; WRITE_SHOTS=1 keeps it anew."""
    file = SHOTS / f"{name}-{width}.txt"
    if os.environ.get("WRITE_SHOTS"):
        last = ""
        while last != (now := seen(terminal)):  # drawn to its end
            last = now
        SHOTS.mkdir(exist_ok=True)
        file.write_text(last)
        return
    kept = file.read_text()
    with suppress(AssertionError):
        wait_for(lambda: seen(terminal) == kept, "")
    assert seen(terminal) == kept


@pytest.mark.parametrize("width", [80, 120])
def test_a_session_as_a_person_sees_it(terminal: Terminal, course: Course, width: int) -> None:
    terminal.start("--model", "claude-opus-5-5", width=width, height=40)
    terminal.shows("new session")
    terminal.types("The prices are negative. Mend it.")
    terminal.shows("cat nowhere?")
    compare(terminal, "permission", width)
    terminal.presses("y")
    terminal.shows("Edit pricing.py?")
    compare(terminal, "diff", width)
    assert (terminal.folder / "pricing.py").read_text() == CODE
    terminal.presses("y")
    terminal.shows("Mended. Red")
    wait_for(lambda: terminal.seen.rstrip().endswith("/help"), "learning did not end")
    compare(terminal, "answer", width)
    assert "percent / 100" in (terminal.folder / "pricing.py").read_text()

    terminal.pastes("one\ntwo\nthree")
    terminal.presses("Enter")
    terminal.shows("Three lines came as one message.")

    terminal.types("/compact")
    terminal.shows("Compacted:")

    course.released.clear()
    terminal.types("/dream")
    terminal.shows("● dream: ")
    terminal.presses("C-t")
    terminal.shows("Tasks  1 running")
    compare(terminal, "tasks", width)
    terminal.presses("k")
    terminal.shows("Ended dream.")
    terminal.presses("Escape")
    course.released.set()

    wait_for(lambda: "Tasks" not in terminal.seen, "the dialog stayed")
    terminal.presses("C-c")
    terminal.shows("Ctrl-C again")
    terminal.presses("C-c")
    assert terminal.is_over()

    terminal.start("--continue", width=width, height=40)
    terminal.shows("turns so far: The prices are negative. Mend it.")
    terminal.presses("C-d")
    assert terminal.is_over()


def test_a_narrow_window_and_a_storm_of_sizes(terminal: Terminal) -> None:
    terminal.start("--model", "claude-opus-5-5", width=20, height=12)
    terminal.shows("session")
    terminal.types("one\\")
    terminal.types("two\\")
    terminal.types("three")
    terminal.shows("one message.")
    for width in (120, 20, 60, 9, 80, 20, 100):
        terminal.resizes(width, 30)
    terminal.types("/help")
    terminal.shows("Tidies the memory")
    terminal.presses("C-d")
    assert terminal.is_over()


def test_a_terminal_that_goes_away_ends_the_program(terminal: Terminal) -> None:
    terminal.start("--model", "claude-opus-5-5")
    terminal.shows("new session")
    pid = terminal.pid
    terminal.close()
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the program outlived its terminal")
