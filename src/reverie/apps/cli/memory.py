"""`reverie memory`: list, show, add, edit, rm and search; the rest joins from beside.

Every change is a version with the user as its origin, so it can be undone. Text is shown with
what hides in it made visible, and never with what a terminal would obey. A save that fails
leaves the old file as it was.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from reverie.apps.cli import memory_history, memory_import, memory_review
from reverie.apps.cli.app import CommandGroup, json_option, project_option
from reverie.apps.cli.keyboard import run_editor
from reverie.apps.cli.output import Column, document, note, say, table
from reverie.apps.cli.recall import (
    by_user,
    contents_from,
    find_memory,
    open_memory,
    text_from,
    with_option,
)
from reverie.errors import InvalidInput
from reverie.memory.values import MemoryRow, fold_case, list_memories, search_memories
from reverie.store.files import Changed
from reverie.store.fs import digest
from reverie.store.memory_store import MemoryStore, SaveOutcome
from reverie.store.project import Project
from reverie.text.format import age, plural
from reverie.text.safety import find, line, reveal
from reverie.topics import merge
from reverie.topics.entry import TEAM, TopicFile, key_for, title_of

memory_name = click.argument("name", metavar="NAME", help="A memory's file or name.")
_MATCHES = 3


@click.group(cls=CommandGroup, no_args_is_help=True)
def app() -> None:
    """List, show, edit, search, undo, forget and move memories."""


@app.command("list")
@json_option
@project_option
def list_all(as_json: bool, project: Project) -> None:
    """List the memories of this project, newest first."""
    with find_memory(project) as memories:
        rows = [] if memories is None else list_memories(memories)
        where = "" if memories is None else str(memories.root)
        waiting = 0 if memories is None else len(memories.review.items())
    if as_json:
        document({"folder": where, "memories": [asdict(row) for row in rows], "review": waiting})
        return
    if not rows:
        say("No memories yet.")
    else:
        now = time.time()
        columns = [Column(n) for n in ("file", "type", "name")]
        columns += [Column("description", wraps=True), Column("age", right=True), Column("trust")]
        table(columns, [_cells(row, now) for row in rows])
    if waiting:
        note(f"{plural(waiting, 'memory', 'memories')} in review: `reverie memory review list`")


def _cells(row: MemoryRow, now: float) -> list[str]:
    texts = (row.file, row.type, row.name, row.description)
    return [*(line(reveal(text), 80) for text in texts), age(now - row.modified), row.trust]


@app.command()
@memory_name
@click.option("--at", default="", metavar="VERSION", help="Show it as of this version.")
@json_option
@project_option
def show(name: str, at: str, as_json: bool, project: Project) -> None:
    """Show a memory, now or at a version, with hidden characters made visible."""
    with open_memory(project) as memories:
        if at:
            version = memories.history.find(at)
            one = TopicFile(version.key, memories.history.content(version.after), version.at)
        else:
            one = memories.find(name)
        trust = memories.trust(one.key).label
    hidden = [
        {"line": h.line, "points": list(h.points), "spells": h.spells} for h in find(one.text)
    ]
    if as_json:
        value: dict[str, Any] = {"file": one.key, "name": one.name, "type": one.type}
        value |= {"description": one.description, "text": one.text, "trust": trust}
        document({**value, "sha256": digest(one.data), "hidden": hidden})
        return
    say(reveal(one.text))
    if hidden:
        note(f"{plural(len(hidden), 'project')} with hidden characters, shown as ⟦U+…⟧")


# --- changing


@app.command()
@click.argument("text", metavar="TEXT", help="The text to remember; - for stdin.")
@click.option("--name", default="", help="The name of the memory.")
@click.option("--description", default="", help="A one-line description.")
@click.option("--type", "kind", default="", help="user, feedback, project or reference.")
@click.option("--team", is_flag=True, help="Save it in team/, which `reverie team sync` shares.")
@json_option
@project_option
def add(
    text: str, name: str, description: str, kind: str, team: bool, as_json: bool, project: Project
) -> None:
    """Save a new memory and add it to the index."""
    body = text_from(text)
    with open_memory(project) as memories:
        done = memories.remember(
            body,
            by_user("save"),
            name=name,
            description=description,
            type=kind,
            key=_shared_key(memories, name or title_of(body), kind) if team else "",
        )
    _tell(done, as_json)


def _shared_key(memories: MemoryStore, title: str, kind: str) -> str:
    """A file below `team/` that nobody has yet."""
    below = f"{TEAM}/"
    taken = frozenset(
        key.removeprefix(below) for key in memories.folder.all_keys() if key.startswith(below)
    )
    return below + key_for(title, kind, taken)


def _tell(done: SaveOutcome, as_json: bool) -> None:
    warnings = list(done.saved.warnings) if done.saved else []
    if as_json:
        document({"outcome": done.outcome, "file": done.key, "warnings": warnings})
        return
    said = {"saved": "saved", "queued": "is waiting for review", "unchanged": "already says this"}
    say(f"{done.key} {said[done.outcome]}")


@app.command()
@memory_name
@with_option
@json_option
@project_option
def edit(name: str, source: str, as_json: bool, project: Project) -> None:
    """Edit a memory in your editor ($VISUAL, $EDITOR), or replace it from a file."""
    with open_memory(project) as memories:
        done = edit_memory(memories, name, contents_from(source) if source else None)
    _tell(done, as_json)


def edit_memory(memories: MemoryStore, name: str, given: bytes | None = None) -> SaveOutcome:
    """Put what is given in a memory's place, or what the person makes of it in their editor."""
    one = memories.find(name)
    before = memories.folder.bytes_of(one.key)
    save = partial(_save_edit, memories, one.key, before)
    return run_editor(before, one.key, save) if given is None else save(given)


def _save_edit(memories: MemoryStore, key: str, before: bytes, data: bytes) -> SaveOutcome:
    """Save an edit; what others wrote meanwhile is merged with it."""
    if data == before:
        return SaveOutcome(key)
    origin = by_user("edit")
    try:
        return memories.save(key, data, origin, expect=digest(before))
    except Changed:
        theirs = memories.folder.bytes_of(key)
    texts = [one.decode("utf-8", "surrogateescape") for one in (before, data, theirs)]
    done = merge.merge_file(key, texts[0], texts[1], texts[2])
    merged = done.text.encode("utf-8", "surrogateescape")
    if not done.clean:
        note("Someone changed the same lines meanwhile: both versions are kept, between comments")
    return memories.save(key, merged, origin, expect=digest(theirs))


@app.command()
@click.argument(
    "names", nargs=-1, required=True, metavar="NAME…", help="Files or names of memories."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@project_option
def rm(names: tuple[str, ...], yes: bool, as_json: bool, project: Project) -> None:
    """Remove memories and their index lines; `undo` restores them."""
    with open_memory(project) as memories:
        keys = [memories.find(name).key for name in names]
        if not yes and not as_json:
            click.confirm(f"Remove {', '.join(keys)}?", abort=True)
        for key in keys:
            memories.remove(key, by_user("remove"))
    if as_json:
        document({"removed": keys})
        return
    say(f"{', '.join(keys)} removed; `reverie memory undo` restores the last one")


# --- searching


@app.command()
@click.argument("words", nargs=-1, required=True, metavar="WORD…", help="Words to look for.")
@json_option
@project_option
def search(words: tuple[str, ...], as_json: bool, project: Project) -> None:
    """List the memories that contain all the words, in any order and case."""
    wanted = [fold_case(word) for word in " ".join(words).split()]
    if not wanted:
        raise InvalidInput("There is nothing to search for", do="Give a word or more")
    with find_memory(project) as memories:
        found = search_memories(memories, wanted) if memories else []
    if as_json:
        document({"words": wanted, "memories": [asdict(match) for match in found]})
        return
    for match in found:
        say(f"{match.file}  {line(reveal(match.name), 80)}", "bold")
        for number, text in match.lines[:_MATCHES]:
            say(f"  {number}: {line(reveal(text), 120)}")
    if not found:
        say("Nothing found.")


for command in (
    memory_history.log,
    memory_history.diff,
    memory_history.show_blame,
    memory_history.undo,
    memory_history.forget,
    memory_review.app,
    memory_review.rules,
    memory_review.check,
    memory_import.learn,
    memory_import.import_memories,
    memory_import.export,
):
    app.add_command(command)
