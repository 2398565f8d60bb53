"""`reverie memory review`: what untrusted sources want remembered, for a person to decide.

Nothing here is in the index or was sent to a model. Accepting saves it as the user's decision,
with where it came from in the note; what is dropped can be put back for thirty days.
"""

from __future__ import annotations

import time
from pathlib import Path

import click

from reverie.apps.cli.memory_open import by_user, find_memory, open_memory
from reverie.apps.cli.options import CommandGroup, json_option, project_option
from reverie.apps.cli.show import Column, document, line, note, say, table
from reverie.text.counts import age
from reverie.text.untrusted import reveal
from reverie.upkeep.memory import describe_origin, review_value

review_id = click.argument("item", metavar="ID", help="The item's id, or its first characters.")


@click.group("review", cls=CommandGroup, no_args_is_help=True)
def app() -> None:
    """Decide on memories from untrusted sources."""


@app.command("list")
@click.option("--dropped", is_flag=True, help="What was dropped in the last 30 days instead.")
@json_option
@project_option
def list_all(dropped: bool, as_json: bool, project: Path) -> None:
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
def show(item: str, as_json: bool, project: Path) -> None:
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
def accept(item: str, as_json: bool, project: Path) -> None:
    """Accept an item and save it as a memory."""
    with open_memory(project) as memories:
        found = memories.review.find(item)
        origin = by_user("accept", f"from {describe_origin(found.origin)}")
        done = memories.accept(found, origin)
    if as_json:
        document({"accepted": found.id, "file": done.key})
        return
    say(f"{done.key} saved")


@app.command()
@review_id
@json_option
@project_option
def drop(item: str, as_json: bool, project: Path) -> None:
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
def restore(item: str, as_json: bool, project: Path) -> None:
    """Put back what was dropped in the last 30 days."""
    with open_memory(project) as memories:
        found = memories.review.restore(item, time.time())
    if as_json:
        document({"restored": found.id})
        return
    say(f"{found.key} waits for review again")
