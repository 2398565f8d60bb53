"""One run of Claude Code against `reverie simulate`, where there is no other network.

`python -m tests.memory.client CLAUDE HOME REPO SCRIPT LOG PROMPT`, started where loopback
is all there is: it serves the script, points the client at it, waits for the client's end,
stops the server, and hands on the client's exit code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LIMIT_S = 240


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


def main(claude: str, home: str, repo: str, script: str, log: str, prompt: str) -> int:
    with simulated(script, log) as url:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "TMPDIR": home,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "sk-ant-fake-0000",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",  # lets it skip permissions as root
        }
        command = [claude, "-p", prompt, "--dangerously-skip-permissions"]
        done = subprocess.run(
            command, cwd=repo, env=environ, stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False
        )
        return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
