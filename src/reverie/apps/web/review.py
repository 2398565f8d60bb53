"""Review, import and export.

Review: what untrusted sources want remembered, for a person to decide in seconds.

The text is shown as its source, never rendered; the words that made it wait are marked.
"""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Callable
from typing import Any, get_args

from starlette.responses import Response

from reverie.apps.web.memories import by_user
from reverie.apps.web.workspace import ScreenRequest, Workspace, missing
from reverie.errors import InvalidInput, ReverieError
from reverie.memory.transfer import (
    ImportedFile,
    Program,
    exported_files,
    files_of_program,
    import_file,
)
from reverie.memory.values import describe_origin, review_value
from reverie.reports.timeline import Values
from reverie.store.lists import ReviewItem
from reverie.store.memory_store import MemoryStore
from reverie.topics.entry import TopicFile
from reverie.topics.versions import BY, By, Version, from_origin

MAX_ITEMS = 50
DECIDED = 30 * 86_400.0


def list_review(desk: Workspace, ask: ScreenRequest) -> Response:
    return _page(desk, said=ask.query.get("said", ""), undo=ask.query.get("undo", "")[:40])


def _page(desk: Workspace, status: int = 200, said: str = "", **more: Any) -> Response:
    with desk.memory() as memories:
        items = memories.review.items() if memories else []
        broken = memories.review.unreadable() if memories else []
        decided = desk.between_changes(memories, _recent_accepts) if memories else []
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


def _recent_accepts(memories: MemoryStore) -> list[Version]:
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


def _item(memories: MemoryStore, ask: ScreenRequest) -> ReviewItem:
    return memories.review.find(ask.path["id"])


def accept(desk: Workspace, ask: ScreenRequest) -> Response:
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


def editing(desk: Workspace, ask: ScreenRequest) -> Response:
    with desk.memory_there() as memories:
        item = _item(memories, ask)
    return _page(desk, editing=item.id, text=item.text)


def drop(desk: Workspace, ask: ScreenRequest) -> Response:
    with desk.changing() as memories:
        item = _item(memories, ask)
        memories.drop(item)
    return desk.to(f"/review?undo={item.id}", "dropped")


def restore(desk: Workspace, ask: ScreenRequest) -> Response:
    """Let something that was dropped wait again."""
    with desk.changing() as memories:
        memories.review.restore(ask.path["id"], time.time())
    return desk.to("/review", "undone")


def drop_source(desk: Workspace, ask: ScreenRequest) -> Response:
    """Drop all that came from one source."""
    source = ask.given("source")
    with desk.changing() as memories:
        for item in memories.review.items():
            if describe_origin(item.origin) == source:
                memories.drop(item)
    return desk.to("/review", "dropped")


GET = {"/review": list_review, "/review/{id}/edit": editing}
POST = {
    "/review/source/drop": drop_source,
    "/review/{id}/accept": accept,
    "/review/{id}/drop": drop,
    "/review/{id}/restore": restore,
}


# --- Memories in and out, and all that came from one place taken back together.


PROGRAMS: tuple[Program, ...] = get_args(Program)
WORDS = {"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini", "agents": "AGENTS.md files"}
MAX_ROWS = 50


def show_import(desk: Workspace, ask: ScreenRequest) -> Response:
    """What each program has for this project, and what would become of it; nothing is changed."""
    with desk.memory_there() as memories:
        found = {name: _import_files(desk, memories, name, dry_run=True) for name in PROGRAMS}
    return desk.page(
        "moving.html",
        screen="memories",
        found=[(n, WORDS[n], rows[:MAX_ROWS], len(rows)) for n, rows in found.items() if rows],
        none=[WORDS[name] for name, rows in found.items() if not rows],
        root=f"{desk.place.root}/",
        said=ask.query.get("said", ""),
    )


def _import_files(
    desk: Workspace, memories: MemoryStore, program: Program, *, dry_run: bool
) -> list[ImportedFile]:
    waits = (
        {(one.key, one.text) for one in memories.review.items()}
        if dry_run
        else set[tuple[str, str]]()
    )
    out: list[ImportedFile] = []
    for one in files_of_program(program, desk.place):
        if (one.key, one.data.decode("utf-8", "replace")) in waits:
            out.append(ImportedFile(str(one.path), one.key, "waits for review"))
        else:
            out.append(import_file(memories, one, dry_run))
    return out


def bring(desk: Workspace, ask: ScreenRequest) -> Response:
    """Import what one program has; each file is a version, and what is untrusted waits."""
    name = ask.given("program")
    if name not in PROGRAMS:
        raise InvalidInput("There is no such program", where=name[:40], do="Choose one of those")
    with desk.changing() as memories:
        _import_files(desk, memories, name, dry_run=False)
    return desk.to("/memories/moving", "imported")


def export(desk: Workspace, ask: ScreenRequest) -> Response:
    """Everything as plain files in one archive, as `memory export` writes them."""
    del ask
    out = io.BytesIO()
    with desk.memory_there() as memories, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for path, data in exported_files(memories, desk.say):
            made.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), data)
    headers = {"content-disposition": 'attachment; filename="reverie-memories.zip"'}
    return Response(out.getvalue(), media_type="application/zip", headers=headers)


# --- all of one origin


def origin(desk: Workspace, ask: ScreenRequest) -> Response:
    """All that came from one session or agent and still stands."""
    by, value = _origin(ask.query.get("by", ""), ask.query.get("value", ""))
    with desk.memory() as memories:
        steps = _steps(memories, by, value) if memories else []
    if not steps:
        raise missing("origin", value[:80])
    return desk.page(
        "origin.html",
        screen="memories",
        by=by,
        value=value,
        steps=[_step(one) for one in reversed(steps[-MAX_ROWS:])],
        count=len(steps),
        said="",
    )


def _origin(by: str, value: str) -> tuple[By, str]:
    if by not in BY or not value:
        raise InvalidInput("Nothing comes from such a place", where=by[:40])
    return by, value[:200]


def _steps(memories: MemoryStore, by: By, value: str) -> list[Version]:
    every = memories.history.log()
    undone = {name for one in every for name in one.undoes}
    return [one for one in from_origin(every, by, value) if one.id not in undone]


def _step(one: Version) -> Values:
    change = "removed" if not one.after else "added" if not one.before else "changed"
    return {"key": one.key, "id": one.id, "at": one.at, "change": change}


def revert(desk: Workspace, ask: ScreenRequest) -> Response:
    """Take all of it back; what others wrote since stays."""
    by, value = _origin(ask.given("by"), ask.given("value"))
    with desk.changing() as memories:
        done = memories.revert(by, value, by_user("undo"))
        keys = [one.key for one in done.done]
        newest = memories.history.log()[-1].id if keys else ""
    if done.refused:
        told = "; ".join(f"{one.key}: {one.refusal}" for one in done.refused)
        raise InvalidInput(
            f"{len(keys)} of {len(keys) + len(done.refused)} files were taken back; left: {told}",
            do="Look at those one by one",
        )
    return desk.to(f"/memories?undo={newest}", "undone")


MOVING_GET: dict[str, Callable[[Workspace, ScreenRequest], Response]] = {
    "/memories/moving": show_import,
    "/memories/export.zip": export,
    "/memories/origin": origin,
}
MOVING_POST: dict[str, Callable[[Workspace, ScreenRequest], Response]] = {
    "/memories/moving": bring,
    "/memories/origin": revert,
}
