"""`dream`, one project or all.

`reverie dream`: tidy the memory now, and look at what dreams did.

A dream works on a copy. What it made is checked before it lands, as one step that `undo` takes
back; with `--dry-run`, or the setting `dream_review`, it waits until it is accepted or dropped.
Its state is on the disk: every command works from any terminal, also while a dream runs.
"""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.apps.cli.app import CommandGroup, json_option, model_option, project_option
from reverie.apps.cli.output import Column, document, note, say, table, tell
from reverie.apps.cli.recall import find_memory, open_memory
from reverie.concurrency import alone
from reverie.errors import NotAvailable, NotFound
from reverie.memory.tasks import TaskRun, dream_memory, roots
from reverie.store.project import Project
from reverie.text.format import age, plural
from reverie.text.safety import line
from reverie.world import Notice

if TYPE_CHECKING:
    from reverie.session.dream.branch import Dream
    from reverie.session.dream.context import DreamContext
    from reverie.store.memory_store import MemoryStore
    from reverie.world import Model

dream_id = click.argument(
    "dream",
    default="",
    metavar="[ID]",
    help="The dream's id, or its first characters. Default: the last.",
)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would change, and change nothing."
)
all_option = click.option(
    "--all", "everything", is_flag=True, help="Every project under home that is due for a dream."
)


@click.group(cls=CommandGroup, invoke_without_command=True)
@dry_run_option
@model_option
@all_option
@json_option
@project_option
@click.pass_context
def app(context: click.Context, **given: Any) -> None:
    """Tidy the memory on a branch, checked before it lands."""
    if context.invoked_subcommand is None:
        context.invoke(run, **given)


@app.command()
@dry_run_option
@model_option
@all_option
@json_option
@project_option
def run(dry_run: bool, model: str, everything: bool, as_json: bool, project: Project) -> None:
    """Start a dream now, unless another one is running."""
    from reverie.apps.cli.chat import model_named

    chosen = model_named(project, model, background=True)
    if not everything and not project.flags.on("dream"):
        from reverie.session.dream.schedule import OFF

        raise NotAvailable(OFF)
    if everything:
        run_all(project, chosen, dry_run=dry_run, as_json=as_json)
        return
    _allow(project, chosen)
    done = _dreamt(project, chosen, dry_run, quiet=as_json)
    if as_json:
        document(asdict(done))
    else:
        _print_dream(done)
        _score(project)
    if done.status in ("failed", "killed"):
        raise click.exceptions.Exit(1)


def _score(project: Project) -> None:
    """What `memory check` says of the folder now: one score for both."""
    from reverie.memory.check import check_memory

    with find_memory(project) as memories:
        report = check_memory(memories, project)
    say(f"score {report.score} of 100 (`reverie memory check` tells why)")


def _allow(project: Project, model: Model) -> None:
    from reverie.session.dream.schedule import allow

    if not model.capabilities.free:
        allow(project.home)


def _dreamt(project: Project, model: Model, dry_run: bool, *, quiet: bool) -> Dream:
    import anyio

    from reverie.memory.tasks import close_summariser
    from reverie.session.dream.run import run_dream

    with open_memory(project) as memories, dreaming(project, memories, model) as dreamer:

        async def work() -> Dream:
            shown = _unseen if quiet else _progress
            async with close_summariser(dreamer):
                return await run_dream(dreamer, "manual", dry_run=dry_run, shown=shown)

        try:
            return anyio.run(work)
        finally:
            if not quiet and sys.stderr.isatty():
                sys.stderr.write("\r\x1b[K")


def dreaming(
    project: Project, memories: MemoryStore, model: Model
) -> AbstractContextManager[DreamContext]:
    """Everything a dream needs, without a session."""
    from reverie.memory.tasks import open_dreamer

    return open_dreamer(project, memories, model, _note_warning)


def _note_warning(notice: Notice) -> None:
    if notice.level != "info":
        note(notice.text)


def _unseen(dream: Dream) -> None:
    del dream


def _progress(dream: Dream) -> None:
    """The pill: phase, rounds, calls; on a terminal alone."""
    if sys.stderr.isatty():
        last = line(dream.rounds[-1], 60) if dream.rounds else ""
        text = f"dreaming · {dream.phase} · {plural(dream.tools, 'call')} · {last}"
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _print_dream(dream: Dream) -> None:
    from reverie.session.dream.results import describe_dream

    styles = {"completed": "green", "failed": "red", "killed": "red"}
    say(describe_dream(dream), styles.get(dream.status, "yellow"))
    if dream.status == "waiting":
        say("`reverie dream diff` shows it; `reverie dream accept` or `drop` decides")
    elif dream.status == "completed" and dream.changed:
        say("`reverie dream undo` takes it back")
    if dream.summary and dream.status in ("completed", "waiting"):
        say(dream.summary)
    for one in dream.tombstones[:20]:
        by = f"; instead: {line(one['by'], 100)}" if one.get("by") else ""
        say(f"  gone, {one['why'].replace('_', ' ')}: {line(one['fact'], 100)}{by}")
    for one in dream.left_out[:20]:
        say(f"  left out: {line(one, 200)}", "yellow")
    for fault in dream.faults[:20]:
        say(f"  {fault}", "yellow")
    if len(dream.faults) > 20:
        note(f"{len(dream.faults) - 20} more: `reverie dream status {dream.id[:8]} --json`")


def run_all(place: Project, model: Model, *, dry_run: bool, as_json: bool) -> None:
    """Dream wherever it is due, and say what became of each."""
    import anyio

    rows: list[dict[str, Any]] = []

    async def every() -> None:
        limit = anyio.CapacityLimiter(place.settings.background_processes)
        async with anyio.create_task_group() as group:
            for root in roots(place):
                group.start_soon(one, root, limit)

    async def one(root: Path, limit: anyio.CapacityLimiter) -> None:
        async with limit:
            found, error = await alone(project(root, model, dry_run), {})
            rows.append({"project": str(root), **(found if not error else {"status": "failed"})})
            if error:
                rows[-1]["reason"] = error

    anyio.run(every)
    rows.sort(key=lambda row: row["project"])
    if as_json:
        document(rows)
    elif rows:
        names = ("project", "status", "reason")
        cells = [[line(str(row.get(name, "")), 90) for name in names] for row in rows]
        table([Column(name, wraps=name == "reason") for name in names], cells)
    else:
        say("No project has a memory.")
    if any(row["status"] == "failed" for row in rows):
        raise click.exceptions.Exit(1)


async def project(root: Path, model: Model, dry_run: bool) -> dict[str, Any]:
    """One project: its gates, then its dream."""
    run = TaskRun(model, say=_tell_warning)
    found, done = await dream_memory(Project.at(root), run, dry_run=dry_run)
    if done is None:
        return {"status": found.result, "reason": found.reason}
    return {**asdict(done), "reason": found.reason}


def _tell_warning(notice: Notice) -> None:
    if notice.level != "info":
        tell(notice)


@app.command()
@dream_id
@json_option
@project_option
def status(dream: str, as_json: bool, project: Project) -> None:
    """List the dreams of this project, newest first, and when the next one is due."""
    from reverie.memory.tasks import next_dream
    from reverie.session.dream.results import find, list_dreams

    with find_memory(project) as memories:
        if memories is None:
            found, gates = [], "there is no memory yet"
        else:
            found = [find(memories, dream)] if dream else list_dreams(memories)
            gates = next_dream(project, memories)
    if as_json:
        document({"next": gates, "dreams": [asdict(one) for one in found]})
        return
    say(f"Next dream: {gates or 'after the next turn'}")
    if dream and found:
        _print_dream(found[0])
        return
    names = ("id", "status", "age", "files", "calls", "by", "reason")
    now = time.time()
    rows = [
        [
            one.id[:8],
            one.status,
            age(now - one.began),
            f"{len(one.changed)}",
            f"{one.tools}",
            one.model,
            line(one.reason or one.summary, 80),
        ]
        for one in found
    ]
    if rows:
        table([Column(n, wraps=n == "reason", right=n in ("files", "calls")) for n in names], rows)


@app.command()
@dream_id
@json_option
@project_option
def diff(dream: str, as_json: bool, project: Project) -> None:
    """Show what a waiting or refused dream would change."""
    from reverie.session.dream import results as doors

    with open_memory(project) as memories:
        found = doors.find(memories, dream, *(() if dream else ("waiting", "failed")))
        changed = doors.dream_changes(memories, found)
    if as_json:
        files = [_file_change(*one) for one in changed]
        document({"dream": found.id, "status": found.status, "files": files})
        return
    for one in changed:
        for row in doors.file_diff(*one):
            style = {"+": "green", "-": "red", "@": "cyan"}.get(row[:1], "")
            say(row, style)


def _file_change(key: str, before: bytes | None, after: bytes | None) -> dict[str, Any]:
    from reverie.session.dream import results as doors

    change = "removed" if after is None else "added" if before is None else "changed"
    return {"file": key, "change": change, "diff": "\n".join(doors.file_diff(key, before, after))}


@app.command()
@dream_id
@click.option("--only", multiple=True, metavar="FILE", help="Take this file's change alone.")
@json_option
@project_option
def accept(dream: str, only: tuple[str, ...], as_json: bool, project: Project) -> None:
    """Apply a waiting dream to the memory."""
    from reverie.session.dream import results as doors

    settings = project.settings
    with open_memory(project) as memories:
        found = doors.find(memories, dream, "waiting")
        stale = settings.dream_stale_lock_minutes * 60
        done = doors.accept(memories, found, time.time, stale, only or None)
    if as_json:
        document({"accepted": found.id, **asdict(done)})
        return
    say(f"{plural(len(done.changed), 'file')} changed; `reverie dream undo` reverts it")
    for key in done.conflicts:
        note(f"{key} was changed on both sides; both are in it")


@app.command()
@dream_id
@json_option
@project_option
def drop(dream: str, as_json: bool, project: Project) -> None:
    """Discard a dream."""
    from reverie.session.dream import results as doors

    with open_memory(project) as memories:
        found = doors.find(memories, dream, *(() if dream else ("waiting", "failed")))
        doors.drop(memories, found)
    _answer(as_json, {"dropped": found.id}, "The dream was dropped; the memory is unchanged")


@app.command()
@dream_id
@json_option
@project_option
def kill(dream: str, as_json: bool, project: Project) -> None:
    """Stop a running dream, in whichever process it runs."""
    from reverie.session.dream import results as doors

    with open_memory(project) as memories:
        found = doors.find(memories, dream, "running")
        doors.kill(memories, found)
        ended = _until_over(memories, found.id)
    _answer(
        as_json,
        {"killed": found.id, "ended": ended},
        "The dream was stopped" if ended else "The dream was asked to stop",
    )


def _until_over(memories: MemoryStore, dream: str, seconds: float = 10.0) -> bool:
    from reverie.session.dream import results as doors

    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if doors.find(memories, dream).over:
            return True
        time.sleep(0.1)
    return False


@app.command()
@dream_id
@json_option
@project_option
def undo(dream: str, as_json: bool, project: Project) -> None:
    """Undo what a dream changed; later edits are kept."""
    from reverie.session.dream import results as doors

    with open_memory(project) as memories:
        found = _find_completed(memories, dream)
        done = doors.undo(memories, found)
    value = {"undone": found.id, "files": [one.key for one in done.done]}
    _answer(as_json, value, f"{plural(len(done.done), 'file')} as before")
    for one in done.refused:
        note(f"{one.key} was not undone: {one.refusal}")


def _find_completed(memories: MemoryStore, name: str) -> Dream:
    from reverie.session.dream import results as doors

    if name:
        return doors.find(memories, name, "completed")
    found = [
        one for one in doors.list_dreams(memories) if one.status == "completed" and one.changed
    ]
    if not found:
        raise NotFound("No dream has changed anything", do="`reverie dream status` lists them")
    return found[0]


def _answer(as_json: bool, value: dict[str, Any], text: str) -> None:
    if as_json:
        document(value)
    else:
        say(text)
