"""`reverie memory review`: what untrusted sources want remembered, for a person to decide.

Nothing here is in the index or was sent to a model. Accepting saves it as the user's decision, as
it is or as they have edited it, with where it came from in the note; what is dropped can be put
back for thirty days.
"""

from __future__ import annotations

import time

import click

from reverie.apps.cli.editor import edited
from reverie.apps.cli.memory_open import (
    by_user,
    contents_from,
    find_memory,
    open_memory,
    with_option,
)
from reverie.apps.cli.options import CommandGroup, json_option, project_option
from reverie.apps.cli.show import Column, document, line, note, say, table
from reverie.memory.format.entry import TopicFile
from reverie.memory.versions import Origin
from reverie.store.lists import ReviewItem
from reverie.store.memories import Memories
from reverie.store.project import Project
from reverie.text.counts import age
from reverie.text.untrusted import reveal
from reverie.upkeep.memory import describe_origin, review_value

OUTCOMES = {
    "saved": "saved as edited",
    "unchanged": "was not changed: nothing was saved, it still waits for review",
    "empty": "was left without a text: nothing was saved, it still waits for review",
}
"""What became of an item that was edited."""

review_id = click.argument("item", metavar="ID", help="The item's id, or its first characters.")


@click.group("review", cls=CommandGroup, no_args_is_help=True)
def app() -> None:
    """Decide on memories from untrusted sources."""


@app.command("list")
@click.option("--dropped", is_flag=True, help="What was dropped in the last 30 days instead.")
@json_option
@project_option
def list_all(dropped: bool, as_json: bool, project: Project) -> None:
    """List what is waiting for review, oldest first, and why."""
    with find_memory(project) as memories:
        if dropped:
            items = memories.review.dropped(time.time()) if memories else []
        else:
            items = memories.review.items() if memories else []
        broken = memories.review.unreadable() if memories else []
    if as_json:
        document({"items": [review_value(item) for item in items], "unreadable": broken})
        return
    if not items:
        say("Nothing was dropped lately." if dropped else "Nothing is waiting for review.")
    else:
        now = time.time()
        names = ("id", "file", "age", "from", "why")
        rows = [
            [
                item.id,
                item.key,
                age(now - item.at),
                describe_origin(item.origin),
                line(", ".join(f"{e.rule}: {reveal(e.words)}" for e in item.evidence), 100),
            ]
            for item in items
        ]
        table([Column(name, wraps=name == "why") for name in names], rows)
    for name in broken:
        note(f"{name} cannot be read")


@app.command()
@review_id
@json_option
@project_option
def show(item: str, as_json: bool, project: Project) -> None:
    """Show one item in full, with hidden characters made visible."""
    with open_memory(project) as memories:
        found = memories.review.find(item)
    if as_json:
        document(review_value(found))
        return
    say(f"{found.key} from {describe_origin(found.origin)}", "bold")
    for one in found.evidence:
        say(f"  line {one.line}, {one.rule}: {reveal(one.words)}", "yellow")
    say(reveal(found.text))


@app.command()
@review_id
@json_option
@project_option
def accept(item: str, as_json: bool, project: Project) -> None:
    """Accept an item and save it as a memory."""
    with open_memory(project) as memories:
        found = memories.review.find(item)
        done = memories.accept(found, _accepted(found))
    if as_json:
        document({"accepted": found.id, "file": done.key})
        return
    say(f"{done.key} saved")


@app.command()
@review_id
@with_option
@json_option
@project_option
def edit(item: str, source: str, as_json: bool, project: Project) -> None:
    """Edit an item in your editor ($VISUAL, $EDITOR), then save it as a memory."""
    with open_memory(project) as memories:
        found = memories.review.find(item)
        outcome = edit_item(memories, found.id, contents_from(source) if source else None)
    if as_json:
        document({"edited": found.id, "file": found.key, "outcome": outcome})
        return
    say(f"{found.key} {OUTCOMES[outcome]}")


def edit_item(memories: Memories, name: str, given: bytes | None = None) -> str:
    """Save what is given in an item's project, or what the person makes of it in their editor; says
    what became of it. What was not changed, or has nothing left in it, is no decision."""
    item = memories.review.find(name)
    before = item.text.encode("utf-8", "replace")
    data = edited(before, item.key) if given is None else given
    if not TopicFile(item.key, data).body.strip():
        return "empty"
    if data.rstrip() == before.rstrip():  # an editor may end the last line
        return "unchanged"
    memories.accept(memories.review.find(item.id), _accepted(item), data)
    return "saved"


def _accepted(item: ReviewItem) -> Origin:
    return by_user("accept", f"from {describe_origin(item.origin)}")


@app.command()
@review_id
@json_option
@project_option
def drop(item: str, as_json: bool, project: Project) -> None:
    """Drop an item from the queue without saving it."""
    with open_memory(project) as memories:
        found = memories.review.find(item)
        memories.drop(found)
    if as_json:
        document({"dropped": found.id})
        return
    say(f"{found.key} dropped")


@app.command()
@review_id
@json_option
@project_option
def restore(item: str, as_json: bool, project: Project) -> None:
    """Put back what was dropped in the last 30 days."""
    with open_memory(project) as memories:
        found = memories.review.restore(item, time.time())
    if as_json:
        document({"restored": found.id})
        return
    say(f"{found.key} waits for review again")
