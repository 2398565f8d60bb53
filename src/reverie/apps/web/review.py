"""Review: what untrusted sources want remembered, for a person to decide in seconds.

The text is shown as its source, never rendered; the words that made it wait are marked.
"""

from __future__ import annotations

import time
from typing import Any

from starlette.responses import Response

from reverie.apps.web.desk import Ask, Desk
from reverie.apps.web.memories import by_user
from reverie.errors import InvalidInput, ReverieError
from reverie.memory.format.entry import TopicFile
from reverie.memory.versions import Version
from reverie.store.lists import ReviewItem
from reverie.store.memories import Memories
from reverie.upkeep.memory import describe_origin, review_value
from reverie.upkeep.timeline import Values

MAX_ITEMS = 50
DECIDED = 30 * 86_400.0


def listed(desk: Desk, ask: Ask) -> Response:
    return _page(desk, said=ask.query.get("said", ""), undo=ask.query.get("undo", "")[:40])


def _page(desk: Desk, status: int = 200, said: str = "", **more: Any) -> Response:
    with desk.memory() as memories:
        items = memories.review.items() if memories else []
        broken = memories.review.unreadable() if memories else []
        decided = desk.between_changes(memories, _decided) if memories else []
        dropped = memories.review.dropped(time.time())[:MAX_ITEMS] if memories else []
    rows = [_row(item) for item in items[:MAX_ITEMS]]
    sources: dict[str, int] = {}
    for item in items:
        where = describe_origin(item.origin)
        sources[where] = sources.get(where, 0) + 1
    return desk.page(
        "review.html",
        status,
        screen="review",
        items=rows,
        count=len(items),
        sources=sources,
        broken=broken,
        decided=decided,
        dropped=[{**review_value(item), "at": item.at} for item in dropped],
        said=said,
        undo=more.get("undo", ""),
        editing=more.get("editing", ""),
        text=more.get("text", ""),
        error=more.get("error"),
    )


def _row(item: ReviewItem) -> Values:
    return {
        **review_value(item),
        "name": TopicFile(item.key, item.text.encode("utf-8", "replace"), item.at).name,
    }


def _decided(memories: Memories) -> list[Version]:
    """What was accepted lately, the newest first; each can be undone."""
    versions = memories.history.log()[::-1]
    since = versions[0].at - DECIDED if versions else 0.0
    undone = {name for one in versions for name in one.undoes}
    return [
        one
        for one in versions
        if one.origin.kind == "accept"
        and one.at >= since
        and one.id not in undone
        and not one.key.endswith("MEMORY.md")
    ][:MAX_ITEMS]


def _item(memories: Memories, ask: Ask) -> ReviewItem:
    return memories.review.find(ask.path["id"])


def accept(desk: Desk, ask: Ask) -> Response:
    """Save it as it is, or as it was edited in the form."""
    text = ask.given("text").replace("\r\n", "\n")
    try:
        with desk.changing() as memories:
            item = _item(memories, ask)
            if "text" in ask.form and not text.strip():
                raise InvalidInput("Nothing is left to save", do="Drop it if it is not wanted")
            origin = by_user("accept", f"from {describe_origin(item.origin)}")
            memories.accept(item, origin, text.encode())
    except ReverieError as error:
        return _page(desk, 400, editing=ask.path["id"], text=text, error=error)
    return desk.to("/review", "accepted")


def editing(desk: Desk, ask: Ask) -> Response:
    with desk.memory_there() as memories:
        item = _item(memories, ask)
    return _page(desk, editing=item.id, text=item.text)


def drop(desk: Desk, ask: Ask) -> Response:
    with desk.changing() as memories:
        item = _item(memories, ask)
        memories.drop(item)
    return desk.to(f"/review?undo={item.id}", "dropped")


def restore(desk: Desk, ask: Ask) -> Response:
    """Let something that was dropped wait again."""
    with desk.changing() as memories:
        memories.review.restore(ask.path["id"], time.time())
    return desk.to("/review", "undone")


def drop_source(desk: Desk, ask: Ask) -> Response:
    """Drop all that came from one source."""
    source = ask.given("source")
    with desk.changing() as memories:
        for item in memories.review.items():
            if describe_origin(item.origin) == source:
                memories.drop(item)
    return desk.to("/review", "dropped")


GET = {"/review": listed, "/review/{id}/edit": editing}
POST = {
    "/review/source/drop": drop_source,
    "/review/{id}/accept": accept,
    "/review/{id}/drop": drop,
    "/review/{id}/restore": restore,
}
