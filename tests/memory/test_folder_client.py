"""One memory folder, two programs: the real Claude Code and Reverie.

The client talks to `reverie simulate` where there is no network but loopback. Needs the
client itself: `CLIENT_UNDER_TEST` names it, or `claude` is on PATH.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reverie.store import MemoryFolder, project_folder
from reverie.topics import new
from tests.mcp.client import CLAUDE, call, rule, run_client, said
from tests.memory.client import claude_under_test
from tests.memory.folders import index_faults

pytestmark = [pytest.mark.spec("B16"), pytest.mark.integration, pytest.mark.needs("bwrap", "git")]

OURS = new(
    "feedback_ours.md",
    name="Minimal diffs",
    description="How much of a file an edit may touch: only what is needed",
    type="feedback",
    body="Change only the lines that the work needs.\n\n**Why:** reviewers.",
)
THEIRS = """---
name: The client's own
description: Written by the other program
metadata:
  type: project
---

A fact.
"""
LINE = "- [The client's own](theirs.md) — written by the other program\n"


def test_a_memory_of_each_is_seen_by_the_other_and_edits_survive(tmp_path: Path) -> None:
    claude, repo = claude_under_test(), tmp_path / "repo"

    def run(answers: list[dict[str, Any]], prompt: str) -> list[dict[str, Any]]:
        command = [claude, "-p", prompt, "--dangerously-skip-permissions"]
        return run_client(tmp_path, command, answers, cwd=repo, environ=CLAUDE)

    repo.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", str(repo)], check=True)
    folder = project_folder(tmp_path / "home" / ".claude", repo) / "memory"
    with MemoryFolder(folder) as memory:
        memory.save(OURS.key, OURS.data)
        pointer = memory.index().data.decode().strip()
        index, ours, theirs = (str(folder / name) for name in ("MEMORY.md", OURS.key, "theirs.md"))
        more = pointer + "\n" + LINE
        first = run(
            [
                rule(call("Read", file_path=index), call("Read", file_path=ours)),
                rule(call("Write", file_path=theirs, content=THEIRS)),
                rule(call("Edit", file_path=index, old_string=pointer, new_string=more)),
                rule(call("Edit", file_path=ours, old_string="the work", new_string="work")),
            ],
            "begin",
        )
        assert first
        # What we wrote is sent by the client, before it has read anything.
        assert pointer in said(first[:1])
        # What the client wrote is read by us, and its edit of our file has not cost its type.
        assert [one.key for one in memory.index().pointers] == [OURS.key, "theirs.md"]
        found, own = memory.read("theirs.md"), memory.read(OURS.key)
        assert (found.type, found.description) == ("project", "Written by the other program")
        assert found.front.get("metadata", "node_type") == "memory"
        assert re.fullmatch(r"[0-9a-f-]{36}", found.front.get("metadata", "originSessionId"))
        assert (own.type, own.description) == ("feedback", OURS.description)
        assert "the lines that work needs" in own.body
        # Our edit keeps what the client noted, and the client sends it.
        changed = found.with_value("Changed by us", "description")
        memory.save("theirs.md", changed.data, title="The client's own", hook="now ours too")
        again = memory.read("theirs.md")
        assert (again.front.get("metadata", "originSessionId"), again.type) == (
            found.front.get("metadata", "originSessionId"),
            "project",
        )
        second = said(run([], "again"))
        assert "now ours too" in second
        assert pointer in second
        assert index_faults(memory) == ()
