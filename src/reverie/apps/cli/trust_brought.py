"""What else a project may have brought that would run something: MCP servers, Claude Code's hooks.

Each file counts for nothing until the user has trusted exactly its bytes; what it would do is shown
first, line by line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reverie.apps.cli.show import say
from reverie.session.hooks import hooks_in
from reverie.settings.claude import project_files
from reverie.settings.sources import settings_file
from reverie.settings.trust import distrust, was_declined
from reverie.store.project import Project
from reverie.tools.mcp.config import FILE, described, file_bytes, servers_in

SHOWN = 4_000  # characters of one line


@dataclass(frozen=True, slots=True)
class Brought:
    """A file that is there, what it would do, and why it may not yet; "" where it may."""

    path: Path
    data: bytes
    powers: tuple[str, ...]
    why: str

    def show(self) -> None:
        say(f"{self.path} is {self.why}.")
        say("If you trust it, it will:")
        for line in self.powers:
            more = f" [{len(line) - SHOWN:,} more characters]" if len(line) > SHOWN else ""
            say(f"  {line[:SHOWN]}{more}")


def places(project: Project) -> tuple[Path, ...]:
    """Where such files would lie."""
    top = project.worktree
    return (top / FILE, *project_files(top))


def brought(project: Project) -> list[Brought]:
    """The files that would do something, trusted or not."""
    return [one for path in places(project) for one in _file(project, path)]


def undecided(project: Project) -> list[Brought]:
    """Those that the user neither trusted nor declined."""
    found = [one for one in brought(project) if one.why]
    return [one for one in found if not was_declined(project.home, one.path, one.data)]


def _file(project: Project, path: Path) -> Iterator[Brought]:
    data = file_bytes(path)
    if data is None:
        return
    if path.name == FILE:
        powers = tuple(described(servers_in(data, project.environ)[0]))
    else:
        hooks = hooks_in(settings_file("local", path, project.home))[0]
        powers = tuple(f"run at {hook.event}: {hook.command}" for hook in hooks)
    if powers:
        yield Brought(path, data, powers, distrust(project.home, path, data))
