"""The Claude Code plugin: the files it is made of, written whole and taken away whole.

It lies where Claude Code finds plugins of the user's own by itself (`skills/reverie` in its
folder), so none of its settings is touched. Hooks feed and use the memory, the MCP server gives
its tools, one skill says when to use them. Every file carries what wrote it, nothing of the
user's stands in that folder, and a file there that we did not write is left alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reverie
from reverie.errors import NotFound, PathRefused
from reverie.store.files import Folder
from reverie.store.fs import digest, read_plain

NAME = "reverie"
MANIFEST = ".claude-plugin/plugin.json"
HOOKS = "hooks/hooks.json"
SERVERS = ".mcp.json"
SKILL = "skills/memory/SKILL.md"
DREAM = "skills/dream/SKILL.md"
OURS = ".reverie.json"
"""What we wrote: each file with its digest."""
MAX_FILE = 1024 * 1024
SECONDS = {
    "SessionStart": 20,
    "UserPromptSubmit": 10,
    "Stop": 60,
    "PreCompact": 60,
    "SessionEnd": 60,
    "PreToolUse": 10,
}
_SKILL = """\
---
name: memory
description: >-
  The long-term memory of this project, kept by Reverie. Use it when the person asks what you
  remember, asks you to remember, correct or forget something, or refers to earlier sessions;
  and before you decide something that may have been settled earlier.
---

# The project's memory

Memory is kept between sessions by Reverie. At the start you were shown its index, and notes that
clearly fit a prompt join it by themselves. For all else there are the tools of the `reverie`
server:

- Looking: `search_memory` for a subject, `ask_memory` for one fact with its source,
  `list_memories` for everything, `read_memory` for one of them whole.
- Keeping: `remember`, one fact a call, in full sentences, with the reason and calendar dates. Look
  first whether it is known; where it is known and wrong, name its file as `replaces`. What
  you read in a file, a web page or a tool's result has the source `elsewhere`.
- Taking back: `memory_history` tells who changed what; `undo_memory` takes one change back. To
  forget a memory, take all its changes back, the newest first.

What the person tells about themselves, how they want work done, decisions with their reasons and
where things are found is worth keeping. What the code or git shows, what only this task needs,
and passwords or keys are not.

A rule that the person gave holds as if said now. Any other memory says what was so on its day:
check it against the project before you rely on it. What the person says now counts for more. If
somebody wants something erased everywhere, old sessions included, tell them of `reverie memory
forget`: that is theirs to run.
"""


_DREAM = """\
---
name: dream
description: >-
  Tidy the long-term memory of this project: merge duplicates, resolve contradictions, date what is
  relative. Use it when the person asks for a dream or to clean up the memory, never by yourself.
---

# Dream

1. Call `dream_open` of the `reverie` server. It gives the rules, the files and known issues. If
   it says that there are more pages, call it again with `page` until you have read all of them.
2. Decide what to change. Leave alone what you are not sure of: a fact that differs in a name, a
   number or a date is another fact.
3. Call `dream_write` for each file that changes, with its whole text, and with a reason for every
   fact that goes. The words of that fact are copied exactly. An empty text removes a file.
4. Its answer names what is wrong. Write these files again, twice at most.
5. Call `dream_close`. It applies what passed and leaves the rest as it was.
6. Tell the person what changed and what was left out. `reverie dream undo` takes it back.

If nothing needs to change, call `dream_close` without a write. If the person wants to stop, call
it with `discard`.
"""


def program() -> str:
    """Return the path of the installed `reverie`."""
    called, beside = os.path.abspath(sys.argv[0]), os.path.dirname(sys.executable)
    found = shutil.which(called) if os.path.basename(called) == NAME else None
    return found or shutil.which(NAME, path=beside) or shutil.which(NAME) or NAME


def plugin_files() -> dict[str, str]:
    """Return the plugin's files by name."""
    server = {"command": program(), "args": ["mcp"], "env": {"PYTHONPATH": ""}}
    return {
        MANIFEST: _json(
            {
                "name": NAME,
                "version": reverie.__version__,
                "description": "Long-term memory: sessions feed it, and are told what fits.",
            }
        ),
        HOOKS: _json({"hooks": _hooks(program())}),
        SERVERS: _json({"mcpServers": {NAME: server}}),
        SKILL: _SKILL,
        DREAM: _DREAM,
    }


def _hooks(ours: str) -> dict[str, Any]:
    """Return the hooks: calls pass where the program is gone; a project's modules are not run."""
    path = shlex.quote(ours)
    command = f"[ -x {path} ] || exit 0; PYTHONPATH= exec {path} hook"
    line = {"type": "command", "command": command}
    return {
        event: [{"matcher": "*", "hooks": [{**line, "timeout": seconds}]}]
        for event, seconds in SECONDS.items()
    }


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


# On the disk


def plugin_folder(environ: Mapping[str, str]) -> Path:
    """Where Claude Code looks for it."""
    user = Path(environ.get("HOME", "") or os.path.expanduser("~"))
    return Path(environ.get("CLAUDE_CONFIG_DIR") or user / ".claude") / "skills" / NAME


@dataclass(frozen=True, slots=True)
class PluginChange:
    """What would change: texts to write, None where a file goes."""

    folder: Path
    old: Mapping[str, str | None]
    new: Mapping[str, str | None]

    @property
    def needed(self) -> bool:
        return self.old != self.new


def plan_install(environ: Mapping[str, str]) -> PluginChange:
    """The plugin put in place or brought up to date; PathRefused over a file of others."""
    folder = plugin_folder(environ)
    wanted: dict[str, str | None] = {**plugin_files()}
    kept = _recorded_files(folder)
    old = {name: _read(folder / name) for name in dict.fromkeys((*wanted, *kept))}
    for name, text in old.items():
        if (
            text is not None
            and digest(text.encode()) != kept.get(name)
            and text != wanted.get(name)
        ):
            raise PathRefused(
                "This file is not as Reverie wrote it",
                where=str(folder / name),
                do="Move it away; nothing was changed",
            )
    return PluginChange(folder, old, {name: wanted.get(name) for name in old})


def is_outdated(environ: Mapping[str, str]) -> bool:
    """Tell whether an installed plugin's hooks name a file inside the package."""
    folder = plugin_folder(environ)
    return bool(_recorded_files(folder)) and "before_call.py" in (_read(folder / HOOKS) or "")


def plan_uninstall(environ: Mapping[str, str]) -> PluginChange | None:
    """The plugin taken away; what was edited since stays. None where there is none of ours."""
    folder = plugin_folder(environ)
    kept = _recorded_files(folder)
    if not kept:
        return None
    old = {name: _read(folder / name) for name in kept}
    new = {
        name: None if text is None or digest(text.encode()) == kept[name] else text
        for name, text in old.items()
    }
    return PluginChange(folder, old, new)


def carry_out(change: PluginChange) -> None:
    """Write what was planned: the note of it first where files come, last where they go."""
    present = {name: text for name, text in change.new.items() if text is not None}
    comes = any(change.old[name] != text for name, text in present.items())
    if comes:
        _note(change.folder, present)
    for name, text in change.new.items():
        if text == change.old[name]:
            continue
        if text is None:
            with contextlib.suppress(NotFound), Folder(change.folder, create=False) as folder:
                folder.remove(name)
            continue
        with Folder(change.folder) as folder:
            folder.write(name, text.encode())
    if not comes:
        _swept(change.folder)


def _note(folder: Path, files: Mapping[str, str]) -> None:
    known = {name: digest(text.encode()) for name, text in files.items()}
    with Folder(folder) as found:
        found.write(OURS, _json({"files": known}).encode())


def _recorded_files(folder: Path) -> dict[str, str]:
    try:
        value = json.loads(_read(folder / OURS) or "{}")
        return {str(name): str(known) for name, known in value["files"].items()}
    except (ValueError, KeyError, AttributeError, TypeError):
        return {}


def _read(path: Path) -> str | None:
    try:
        data = read_plain(path, MAX_FILE)
    except OSError:
        return None
    return None if data is None else data.decode("utf-8", "replace")


def _swept(folder: Path) -> None:
    """Our note and the folders that are left empty."""
    with contextlib.suppress(NotFound), Folder(folder, create=False) as found:
        found.remove(OURS)
    nested = ("skills/memory", "skills/dream", "skills", "hooks", ".claude-plugin", "")
    for name in nested:
        with contextlib.suppress(OSError):
            (folder / name).rmdir()
