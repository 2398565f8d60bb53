"""`reverie memory log|diff|blame|undo|forget`: what was, who wrote it, and taking it back.

`undo` takes back one step, or all that came from one origin, and never what others wrote since.
`forget` is the only command that cannot be undone: it asks first, shows where the words are,
and ends with a proof or with the list of what still holds them.
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from reverie.apps.cli.app import json_option, project_option
from reverie.apps.cli.output import PATIENCE, Column, console, document, note, say, table
from reverie.apps.cli.recall import by_user, find_memory, open_memory, text_from
from reverie.errors import InvalidInput, NotFound
from reverie.memory.forget import ForgetReport, ForgetRun
from reverie.memory.values import describe_origin, version_value
from reverie.store.memory_store import MemoryStore, UndoOutcome
from reverie.store.project import Project
from reverie.text.format import age, plural
from reverie.text.safety import line, reveal
from reverie.topics.versions import BY, By, Version, blame, difference

_SHORT = 8
_SHOWN = 20


@click.command()
@click.argument("name", default="", metavar="[NAME]", help="A memory's file or name. Default: all.")
@click.option(
    "-n",
    "limit",
    type=click.IntRange(min=1),
    metavar="N",
    default=50,
    show_default=True,
    help="Number of versions to list.",
)
@json_option
@project_option
def log(name: str, limit: int, as_json: bool, project: Project) -> None:
    """List versions, newest first: when, what changed, and where it came from."""
    with find_memory(project) as memories:
        key = _key(memories, name) if memories and name else ""
        found = memories.history.log(key)[::-1] if memories else []
    if as_json:
        document({"versions": [version_value(one) for one in found[:limit]], "all": len(found)})
        return
    now = time.time()
    names = ("version", "age", "change", "file", "by", "trust")
    table([Column(one) for one in names], [_row(one, now) for one in found[:limit]])
    if len(found) > limit:
        note(f"{len(found) - limit:,} more: -n {len(found)}")


def _row(version: Version, now: float) -> list[str]:
    change = "removed" if not version.after else "added" if not version.before else "changed"
    kind = version.origin.kind
    did = change if kind in ("save", "edit", "remove") else f"{change} ({kind})"
    trust = version.origin.trust.label
    who = describe_origin(version.origin)
    return [version.id[:_SHORT], age(now - version.at), did, version.key, who, trust]


def _key(memories: MemoryStore, name: str) -> str:
    """The file that a name means, also one that is gone."""
    keys = {version.key for version in memories.history.log()}
    for found in (name, f"{name}.md"):
        if found in keys:
            return found
    return memories.find(name).key


@click.command()
@click.argument("name", metavar="VERSION|NAME", help="A version, or a memory.")
@click.option("--from", "since", default="", metavar="VERSION", help="Compare with this version.")
@json_option
@project_option
def diff(name: str, since: str, as_json: bool, project: Project) -> None:
    """Show what a version changed, or how a memory differs from a version (default: its last)."""
    with open_memory(project) as memories:
        history = memories.history
        try:
            version = history.find(name)
            key, before, after = version.key, version.before, version.after
        except (NotFound, InvalidInput):
            key = _key(memories, name)
            steps = history.log(key)
            before, after = steps[-1].before, steps[-1].after
        before = history.find(since).after if since else before
        names = (f"{key} {before[:_SHORT] or 'none'}", f"{key} {after[:_SHORT] or 'none'}")
        text = difference(history.content(before), history.content(after), names)
    if as_json:
        document({"file": key, "before": before, "after": after, "diff": text})
        return
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for row in text.splitlines():
        say(reveal(row), colours.get(row[:1], ""))


@click.command("blame")
@click.argument("name", metavar="NAME", help="A memory's file or name.")
@json_option
@project_option
def show_blame(name: str, as_json: bool, project: Project) -> None:
    """Show each line of a memory with the version that wrote it."""
    with open_memory(project) as memories:
        found = blame(memories.history.log(_key(memories, name)), memories.history.content)
    if as_json:
        lines = [{"line": b.line, "version": version_value(b.version)} for b in found]
        document({"lines": lines})
        return
    now = time.time()
    rows = [
        [b.version.id[:_SHORT], describe_origin(b.version.origin), age(now - b.version.at), b.line]
        for b in found
    ]
    columns = [Column("version"), Column("by"), Column("age", right=True), Column("line")]
    table(columns, [[*row[:3], line(reveal(row[3]), 120)] for row in rows])


@click.command()
@click.argument(
    "version", default="", metavar="[VERSION]", help="A version. Default: the last change."
)
@click.option("--session", default="", help="Undo everything a session wrote.")
@click.option("--agent", default="", help="Undo everything an agent wrote.")
@click.option("--tool", default="", help="Undo everything saved by a tool.")
@click.option("--kind", default="", help="Undo everything of a kind: import, outside …")
@json_option
@project_option
def undo(
    version: str, session: str, agent: str, tool: str, kind: str, as_json: bool, project: Project
) -> None:
    """Undo the last change, one version, or everything from one origin; later edits are kept."""
    given = {"session": session, "agent": agent, "tool": tool, "kind": kind}
    wanted: list[tuple[By, str]] = [(by, given[by]) for by in BY if given.get(by)]
    if len(wanted) + bool(version) > 1:
        raise InvalidInput("Give either one version or one origin")
    with open_memory(project) as memories:
        if wanted:
            by, value = wanted[0]
            done = memories.revert(by, value, by_user("undo"))
        else:
            done = memories.undo(version, by_user("undo"))
    _tell_undone(done, as_json)


def _tell_undone(done: UndoOutcome, as_json: bool) -> None:
    if as_json:
        rows = [{"file": o.key, "merged": o.merged, "undoes": list(o.undoes)} for o in done.done]
        left = [{"file": o.key, "why": o.refusal, "version": o.undoes[0]} for o in done.refused]
        document({"group": done.group, "undone": rows, "left": left})
    else:
        for one in done.done:
            how = "merged with later changes" if one.merged else "as it was before"
            say(f"{one.key}: {'removed again' if one.data is None else how}")
        for one in done.refused:
            note(f"{one.key} was not undone: {one.refusal}")
    if done.refused:
        raise click.exceptions.Exit(1)


# --- forget


@click.command()
@click.argument("words", metavar="WORDS", help="What to forget; - for stdin.")
@click.option("--dry-run", is_flag=True, help="Only show where the words are.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@project_option
def forget(words: str, dry_run: bool, yes: bool, as_json: bool, project: Project) -> None:
    """Erase words from every file under home for good, and keep them from being saved again.

    Memory, its history, notes, stored results and transcripts are rewritten. If it is interrupted,
    run it again with the same words.
    """
    text = text_from(words)
    work = ForgetRun.of(project)
    if not dry_run and not yes:
        if as_json:
            raise InvalidInput("--json cannot ask for confirmation", do="Give --yes or --dry-run")
        _tell_forgotten(_run_with_status(work, text, dry_run=True))
        click.confirm("Rewrite them for good? This cannot be undone", abort=True)
    report = _run_with_status(work, text, dry_run=dry_run)
    if as_json:
        value: dict[str, Any] = {"touched": [asdict(one) for one in report.touched]}
        left = [{"path": path, "why": why} for path, why in report.remaining]
        value |= {"remaining": left, "searched": report.searched}
        document({**value, "dry_run": report.dry_run, "proven": report.proven})
    else:
        _tell_forgotten(report)
    if report.remaining and not dry_run:
        raise click.exceptions.Exit(1)


def _run_with_status(work: ForgetRun, text: str, *, dry_run: bool) -> ForgetReport:
    """Run it; on a terminal, with a sign of life once a second has passed."""
    if not sys.stderr.isatty():
        return work.run(text, dry_run=dry_run)
    started = time.monotonic()
    with console(sys.stderr).status("searching") as status:
        status.stop()

        def step(path: str) -> None:
            if time.monotonic() - started > PATIENCE:
                status.start()
                status.update(line(Path(path).name, 60))

        work.step = step
        return work.run(text, dry_run=dry_run)


_KINDS = {"derived": "indexes, made again from the rest"}


def _tell_forgotten(report: ForgetReport) -> None:
    verb = "would change" if report.dry_run else "changed"
    say(f"{plural(len(report.touched), 'file')} {verb}, {report.searched:,} searched")
    kinds: dict[str, list[str]] = {}
    for one in report.touched:
        kinds.setdefault(one.kind, []).append(one.path)
    for kind, found in kinds.items():
        say(f"  {_KINDS.get(kind, kind)}: {len(found):,}")
        for path in found[: _SHOWN if report.dry_run else 0]:
            say(f"    {path}")
    for path, why in report.remaining:
        note(f"{path} still contains it: {why}")
    if report.proven:
        say("Nothing in Reverie's home contains it any more, and it will not be saved again.")
