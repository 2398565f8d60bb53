"""Memories in and out, and all that came from one place taken back together."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import get_args

from starlette.responses import Response

from reverie.apps.web.desk import Ask, Desk, missing
from reverie.apps.web.memories import by_user
from reverie.errors import InvalidInput
from reverie.memory.versions import BY, By, Version, from_origin
from reverie.store.memories import Memories
from reverie.upkeep.memory_transfer import (
    ImportedFile,
    Program,
    exported_files,
    files_of_program,
    import_file,
)
from reverie.upkeep.timeline import Values

PROGRAMS: tuple[Program, ...] = get_args(Program)
WORDS = {"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini", "agents": "AGENTS.md files"}
MAX_ROWS = 50


def shown(desk: Desk, ask: Ask) -> Response:
    """What each program has for this project, and what would become of it; nothing is changed."""
    with desk.memory_there() as memories:
        found = {name: _brought(desk, memories, name, dry_run=True) for name in PROGRAMS}
    return desk.page(
        "moving.html",
        screen="memories",
        found=[(n, WORDS[n], rows[:MAX_ROWS], len(rows)) for n, rows in found.items() if rows],
        none=[WORDS[name] for name, rows in found.items() if not rows],
        root=f"{desk.place.root}/",
        said=ask.query.get("said", ""),
    )


def _brought(
    desk: Desk, memories: Memories, program: Program, *, dry_run: bool
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


def bring(desk: Desk, ask: Ask) -> Response:
    """Import what one program has; each file is a version, and what is untrusted waits."""
    name = ask.given("program")
    if name not in PROGRAMS:
        raise InvalidInput("There is no such program", where=name[:40], do="Choose one of those")
    with desk.changing() as memories:
        _brought(desk, memories, name, dry_run=False)
    return desk.to("/memories/moving", "imported")


def export(desk: Desk, ask: Ask) -> Response:
    """Everything as plain files in one archive, as `memory export` writes them."""
    del ask
    out = io.BytesIO()
    with desk.memory_there() as memories, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for path, data in exported_files(memories, desk.say):
            made.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), data)
    headers = {"content-disposition": 'attachment; filename="reverie-memories.zip"'}
    return Response(out.getvalue(), media_type="application/zip", headers=headers)


# --- all of one origin


def origin(desk: Desk, ask: Ask) -> Response:
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


def _steps(memories: Memories, by: By, value: str) -> list[Version]:
    every = memories.history.log()
    undone = {name for one in every for name in one.undoes}
    return [one for one in from_origin(every, by, value) if one.id not in undone]


def _step(one: Version) -> Values:
    change = "removed" if not one.after else "added" if not one.before else "changed"
    return {"key": one.key, "id": one.id, "at": one.at, "change": change}


def revert(desk: Desk, ask: Ask) -> Response:
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


GET: dict[str, Callable[[Desk, Ask], Response]] = {
    "/memories/moving": shown,
    "/memories/export.zip": export,
    "/memories/origin": origin,
}
POST: dict[str, Callable[[Desk, Ask], Response]] = {
    "/memories/moving": bring,
    "/memories/origin": revert,
}
