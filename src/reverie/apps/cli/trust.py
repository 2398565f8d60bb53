"""`trust`: what a project brought along.

`reverie trust`: look at a project's local settings and say that they are yours.

`.reverie/settings.local.json` counts like the repository's committed settings until the user has
approved it: an archive, or whoever else wrote into the folder, may have brought it. So it is with
MCP servers in `.mcp.json` and hooks in `.claude`. What is shown is what was read, and exactly those
bytes are approved; a file that changes later is asked about again. None is ever written here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from reverie.apps.cli.app import json_option, project_option
from reverie.apps.cli.output import document, note, say
from reverie.errors import InvalidInput, SettingsError
from reverie.session.hooks import hooks_in
from reverie.settings.sources import (
    SettingsFile,
    distrust,
    project_files,
    settings_file,
    settings_places,
    was_declined,
)
from reverie.store import lists
from reverie.store.approvals import IncludeApprovals
from reverie.store.project import Project
from reverie.toolbox.mcp_servers import FILE, describe_servers, file_bytes, servers_in
from reverie.toolbox.permission_rules import rules_in
from reverie.transcript.blocks import dump

_SHOWN = 4_000  # characters of one line


@click.command()
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--forget", is_flag=True, help="Take back what was decided about the file.")
@click.option(
    "--include",
    type=click.Path(path_type=Path),
    help="Let this project's instruction files include a file.",
)
@json_option
@project_option
def trust(yes: bool, forget: bool, include: Path | None, as_json: bool, project: Project) -> None:
    """Show what a project's settings and MCP servers would run, and trust them if yours."""
    if include is not None:
        IncludeApprovals(project.home).approve(project.root, include.expanduser(), "the user")
        _answer(project, as_json, f"Instruction files of this project may include {include}.")
        return
    file = local_file(project)
    if forget:
        gone = [lists.forget(project.home, one) for one in (file.path, *places(project))]
        told = "Forgotten." if any(gone) else "Nothing was decided about the file."
        _answer(project, as_json, told)
        return
    _refuse_broken(file)
    others = [one for one in foreign_files(project) if one.why]
    if others and as_json and not yes:
        raise InvalidInput("--json cannot ask for confirmation", do="Give --yes")
    for one in others:
        if not yes:
            one.show()
            click.confirm("Trust this file?", abort=True)
        lists.decide(project.home, one.path, one.data, trusted=True)
        if not as_json:
            say(f"{one.path} is trusted until it changes.")
    if file.data is None or file.origin.trusted:
        missing = f"There is no {file.path}; nothing needs your trust."
        told = missing if file.data is None else f"{file.path} is trusted."
        if as_json or not others:
            _answer(project, as_json, told)
        return
    if not yes:
        if as_json:
            raise InvalidInput("--json cannot ask for confirmation", do="Give --yes")
        _show(project, file)
        click.confirm("Trust this file?", abort=True)
    lists.decide(project.home, file.path, file.data, trusted=True)
    _answer(project, as_json, f"{file.path} is trusted until it changes.")


def local_file(project: Project) -> SettingsFile:
    """The project's local settings as they are now."""
    path = settings_places(home=project.home, root=project.root)["local"]
    return settings_file("local", path, project.home)


def offer(project: Project) -> None:
    """Ask a person at a terminal, once, about what nobody has decided about."""
    for one in undecided_files(project):
        one.show()
        yes = click.confirm("Trust this file?", default=False)
        lists.decide(project.home, one.path, one.data, trusted=yes)
        if not yes:
            note("It is left alone; `reverie trust` asks again.")
    file = local_file(project)
    if file.data is None or file.origin.trusted or was_declined(project.home, file.path, file.data):
        return
    if not list(powers(project, file)):
        return
    _show(project, file)
    answer = click.confirm("Trust this file?", default=False)
    lists.decide(project.home, file.path, file.data, trusted=answer)
    if not answer:
        note("It counts like the repository's committed settings; `reverie trust` asks again.")


def powers(project: Project, file: SettingsFile) -> Iterator[str]:
    """What an untrusted file would do that committed settings may not, line by line."""
    for hook in hooks_in(file)[0]:
        yield f"run at {hook.event}: {hook.command}"
    for rule in rules_in(file, []):
        if rule.verdict != "deny":
            yield f"{rule.verdict} {rule}"
    flags: Any = file.value.get("flags")
    for problem in (*project.problems, *project.flags.problems()):
        if problem.place == str(file.path) and problem.code == "refused":
            name = problem.key.removeprefix("flags.")
            held = flags if name != problem.key else file.value
            yield f"set {problem.key} to {dump(held[name])}"


def _refuse_broken(file: SettingsFile) -> None:
    wrong = [problem for problem in file.problems if problem.level == "error"]
    if wrong:
        raise SettingsError(
            "The file cannot be used, so it cannot be trusted",
            where=str(wrong[0]),
            do="Repair or remove that file.",
        )


def _show(project: Project, file: SettingsFile) -> None:
    say(f"{file.path} is {distrust(project.home, file.path, file.data or b'')}.")
    lines = list(powers(project, file))
    if not lines:
        say("It asks for nothing that committed settings may not do.")
        return
    say("If you trust it, it will:")
    for line in lines:
        more = f" [{len(line) - _SHOWN:,} more characters]" if len(line) > _SHOWN else ""
        say(f"  {line[:_SHOWN]}{more}")


def _answer(project: Project, as_json: bool, text: str) -> None:
    if not as_json:
        say(text)
        return
    file = local_file(project)
    document(
        {
            "file": str(file.path),
            "exists": file.data is not None,
            "trusted": file.data is not None and file.origin.trusted,
        }
    )


# --- What else a project may have brought that would run something: MCP servers, Claude Code's
# hooks.
#
# Each file counts for nothing until the user has trusted exactly its bytes; what it would do is
# shown first, line by line.


SHOWN = 4_000  # characters of one line


@dataclass(frozen=True, slots=True)
class ForeignConfig:
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


def foreign_files(project: Project) -> list[ForeignConfig]:
    """The files that would do something, trusted or not."""
    return [one for path in places(project) for one in _file(project, path)]


def undecided_files(project: Project) -> list[ForeignConfig]:
    """Those that the user neither trusted nor declined."""
    found = [one for one in foreign_files(project) if one.why]
    return [one for one in found if not was_declined(project.home, one.path, one.data)]


def _file(project: Project, path: Path) -> Iterator[ForeignConfig]:
    data = file_bytes(path)
    if data is None:
        return
    if path.name == FILE:
        powers = tuple(describe_servers(servers_in(data, project.environ)[0]))
    else:
        hooks = hooks_in(settings_file("local", path, project.home))[0]
        powers = tuple(f"run at {hook.event}: {hook.command}" for hook in hooks)
    if powers:
        yield ForeignConfig(path, data, powers, distrust(project.home, path, data))
