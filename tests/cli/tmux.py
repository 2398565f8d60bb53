"""Programs in a tmux window, and a person's keys."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 30.0
RESTS = 2.0  # seconds without a change after which a screen is at rest


class Terminal:
    """A program in a tmux window of its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self._tmux = ["tmux", "-L", name, "-f", os.devnull]

    def start(self, *args: str, width: int = 110, height: int = 50) -> None:
        command = [sys.executable, "-m", "reverie.apps.cli", *args]
        size = ["-x", str(width), "-y", str(height)]
        wanted = ("new-session", "-d", *size, "-c", str(self.folder), *command)
        # a server whose last window has just closed is still leaving, and takes no other
        wait_for(lambda: self._ran(*wanted).returncode == 0, "tmux did not start")

    def _run(self, *args: str) -> str:
        return self._ran(*args).stdout

    def _ran(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._tmux, *args], capture_output=True, text=True, check=False, timeout=PATIENCE
        )

    def types(self, text: str) -> None:
        self._run("send-keys", "-l", text)
        self._run("send-keys", "Enter")

    def presses(self, key: str) -> None:
        self._run("send-keys", key)

    def pastes(self, text: str) -> None:
        self._run("set-buffer", text)
        self._run("paste-buffer", "-p")

    def resizes(self, width: int, height: int) -> None:
        self._run("resize-window", "-x", str(width), "-y", str(height))

    @property
    def pid(self) -> int:
        return int(self._run("display-message", "-p", "#{pane_pid}"))

    @property
    def seen(self) -> str:
        """What is on the screen now, without what was scrolled away."""
        return self._run("capture-pane", "-p")

    @property
    def screen(self) -> str:
        return self._run("capture-pane", "-p", "-S", "-500")

    def shows(self, text: str, times: int = 1) -> str:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.screen.count(text) >= times:
                return self.screen
            time.sleep(0.02)
        raise AssertionError(f"{text!r} did not come {times} times:\n{self.screen}")

    def rests(self, look: Callable[[], str]) -> str:
        """What is seen once it has not changed for a while."""
        last, since = look(), time.monotonic()
        while time.monotonic() < since + RESTS:
            time.sleep(0.05)
            if (now := look()) != last:
                last, since = now, time.monotonic()
        return last

    def is_over(self) -> bool:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if not self._run("list-sessions").strip():
                return True
            time.sleep(0.02)
        return False

    def close(self) -> None:
        self._run("kill-server")


def wait_for(holds: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError(what)
