"""`reverie simulate` as a process of its own, for clients of foreign make."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def simulated(script: str, log: str) -> Iterator[str]:
    """The server's address, as long as it runs."""
    command = [sys.executable, "-m", "reverie.apps.cli", "simulate", "--json", "--port", "0"]
    with subprocess.Popen(
        [*command, "--script", script, "--log", log], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield json.JSONDecoder().raw_decode(_document(server.stdout))[0]["url"]
        finally:
            server.terminate()


def _document(lines: Iterator[str]) -> str:
    """The first JSON document, line by line until it is whole."""
    text = ""
    for line in lines:
        text += line
        try:
            json.loads(text)
        except ValueError:
            continue
        break
    return text


def claude_under_test() -> str:
    """Claude Code by the name it was given, or as it is on PATH."""
    found = os.environ.get("CLIENT_UNDER_TEST") or shutil.which("claude")
    if not found:
        pytest.skip("needs claude: put the client on PATH or name it in CLIENT_UNDER_TEST")
    return found
