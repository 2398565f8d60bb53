"""Text of others on the terminal: no command prints what a terminal would obey. Row 68."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from reverie.settings import Settings
from reverie.store import MemoryStore, Project
from reverie.topics import Origin, Trust
from tests.cli.conftest import Run, one_turn

TRICK = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\u2066\r\x08hidden"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
LISTS = [
    "memory list",
    "memory show evil.md",
    "memory show evil.md --json",
    "memory search owned",
    "memory log",
    "memory diff evil.md",
    "memory blame evil.md",
    "memory review",
    "memory rules",
    "memory export",
    "sessions list",
    "sessions show {session}",
    "sessions show {session} --json",
    "cache {session}",
    "recall owned deploy",
    "ask what is owned by deploy?",
    "stats",
    "doctor",
    "config list",
    "config get {trick}",
    "flags list",
    "trust --json",
    "fleet status",
    "fleet list",
    "fleet show {trick}",
    "memory show {trick}",
    "sessions show {trick}",
    "team status",
    "team scan .",
    "install {trick}",
    "help {trick}",
    "{trick}",
]


def hostile(home: Path, project: Path) -> str:
    """A memory, a session and settings made of what a terminal obeys; the session's id."""
    with MemoryStore.of(
        Project.at(project, home=home, environ={}, settings=Settings()), now=time.time
    ) as memories:
        for key, trust in (("evil.md", Trust.USER), ("other.md", Trust.UNTRUSTED)):
            text = (
                f"---\nname: {TRICK}\ndescription: owned deploy {TRICK}\ntype: feedback\n"
                f"applies_to: {TRICK}\n---\n\nNever run `deploy {TRICK}`: owned {TRICK}.\n"
            )
            memories.save(key, text.encode(), Origin("save", trust, agent=TRICK, note=TRICK))
    (project / ".reverie").mkdir()
    given = {TRICK: TRICK, "contextPolicy": TRICK, "hooks": {TRICK: [{"command": TRICK}]}}
    (project / ".reverie" / "settings.json").write_text(json.dumps(given))
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {TRICK: {"command": TRICK}}}))
    (project / "CLAUDE.md").write_text(f"@{TRICK}\n")

    return one_turn(project, f"owned {TRICK}", f"deploy {TRICK}", home=home, system=TRICK)


def test_row_68_no_command_prints_what_a_terminal_obeys(
    run: Run, home: Path, project: Path
) -> None:
    session = hostile(home, project)
    shown = 0
    for line in LISTS:
        words = [w.format(session=session, trick=TRICK) for w in line.split(" ")]
        done = run(*words, input="")
        for text in (done.out, done.err):
            found = OBEYED.search(text)
            assert found is None, (line, text[max(0, found.start() - 60) :][:120])
        shown += "owned" in done.out
    assert shown > 8
