"""Dreams: watch, stop, judge, take back.

The page does what the commands do, on what lies on the disk; a dream that is begun here runs in
a process of its own, as it would from a terminal.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict

from starlette.responses import Response

from reverie import programs
from reverie.apps.web import format as show
from reverie.apps.web.workspace import ScreenRequest, Workspace
from reverie.errors import InvalidInput, NotFound, StoreError
from reverie.reports.timeline import Values
from reverie.session.dream import results
from reverie.session.dream.branch import Dream
from reverie.session.dream.results import describe_dream
from reverie.store.memory_store import MemoryStore
from reverie.text.format import plural

MAX_LISTED = 50
PHASES = ("Orient", "Gather", "Consolidate", "Prune and index")
PATIENCE = 10.0


def show_dream(desk: Workspace, ask: ScreenRequest) -> Response:
    with desk.memory() as memories:
        found = results.list_dreams(memories) if memories else []
        running = [_running(one) for one in found if one.status == "running"]
        chosen = _find_dream(found, ask.path.get("id", ""))
        files = _files(memories, chosen) if memories and chosen else []
        due = desk.due if memories else "there is no memory yet"
    return desk.page(
        "dream.html",
        screen="dream",
        running=running,
        chosen=chosen,
        files=files,
        told=describe_dream(chosen) if chosen else "",
        earlier=[_dream_row(one) for one in found if one.status != "running"][:MAX_LISTED],
        due=due,
        phases=PHASES,
        any_memory=memories is not None,
        said=ask.query.get("said", ""),
        sums=desk.memories.sums(),
    )


def _find_dream(found: list[Dream], name: str) -> Dream | None:
    if name:
        fits = [one for one in found if one.id.startswith(name.lower())]
        if len(fits) != 1:
            raise NotFound(
                "There is no such dream", where=name, do="The list shows those there are"
            )
        return fits[0]
    return next((one for one in found if one.status == "waiting"), None)


def _running(one: Dream) -> Values:
    """A dream at work, with the phase its last words speak of."""
    last = next((r for r in reversed(one.rounds) if r.partition(":")[0] in _WORDS), "")
    at = _WORDS.get(last.partition(":")[0], 0 if one.phase == "starting" else 2)
    steps = [
        (name, "done" if n < at else "now" if n == at else "") for n, name in enumerate(PHASES)
    ]
    return {**asdict(one), "steps": steps, "lasted": time.time() - one.began}


_WORDS = {"orient": 0, "gather": 1, "consolidate": 2, "prune": 3}


def _dream_row(one: Dream) -> Values:
    changed = f"{plural(len(one.changed), 'file')} changed" if one.changed else "nothing to change"
    return {**asdict(one), "words": one.reason or changed}


def _files(memories: MemoryStore, dream: Dream) -> list[Values]:
    """What a dream would change, or has changed: each file's difference, and why."""
    if dream.status in ("waiting", "failed"):
        try:
            changed = results.dream_changes(memories, dream)
        except (NotFound, StoreError):
            return []
    else:
        changed = _committed_changes(memories, dream)
    reasons: dict[str, list[Mapping[str, str]]] = {}
    for one in dream.tombstones:
        reasons.setdefault(one.get("file", ""), []).append(one)
    files = [
        {
            "key": key,
            "change": "removed" if after is None else "added" if before is None else "changed",
            "rows": show.difference(*(_text(side) for side in (before, after))),
            "why": reasons.get(key, []),
        }
        for key, before, after in changed[:MAX_LISTED]
    ]
    return show.index_last(files)


def _committed_changes(
    memories: MemoryStore, dream: Dream
) -> list[tuple[str, bytes | None, bytes | None]]:
    """What landed, from the history."""
    steps = [v for v in memories.history.log() if v.origin.session == dream.id and not v.undoes]

    def side(name: str) -> bytes | None:
        return memories.history.content(name) if name else None

    return [(v.key, side(v.before), side(v.after)) for v in steps]


def _text(side: bytes | None) -> str:
    return (side or b"").decode("utf-8", "replace")


# --- doing


def run(desk: Workspace, ask: ScreenRequest) -> Response:
    """Begin a dream that waits for a decision, in a process of its own."""
    del ask
    words = ("dream", "run", "--dry-run", "--json", "--project", str(desk.place.root))
    line = programs.python("reverie.apps.cli", *words)

    def work() -> None:
        programs.run(line, desk.place.environ, desk.place.root, seconds=None)
        desk.hub.tell("dream")

    desk.start("dream", work)
    return desk.to("/dream", "begun")


def kill(desk: Workspace, ask: ScreenRequest) -> Response:
    with desk.memory_there() as memories:
        found = results.find(memories, ask.path["id"], "running")
        results.kill(memories, found)
    until = time.monotonic() + PATIENCE
    over = False
    while not over and time.monotonic() < until:
        time.sleep(0.05)
        with desk.memory_there() as memories:
            over = results.find(memories, found.id).over
    desk.hub.tell("dream")
    return desk.to("/dream", "killed" if over else "asked")


def accept(desk: Workspace, ask: ScreenRequest) -> Response:
    """Land all of it, or the ticked files."""
    only = ask.form.get("file", ())
    if not only:
        raise InvalidInput("No file is ticked", do="Tick those to take, or drop the dream")
    stale = desk.settings.dream_stale_lock_minutes * 60
    with desk.changing() as memories:
        found = results.find(memories, ask.path["id"], "waiting")
        results.accept(memories, found, time.time, stale, only)
    return desk.to(f"/dream/{found.id}", "landed")


def drop(desk: Workspace, ask: ScreenRequest) -> Response:
    with desk.changing() as memories:
        results.drop(memories, results.find(memories, ask.path["id"], "waiting", "failed"))
    return desk.to("/dream", "dropped")


def undo(desk: Workspace, ask: ScreenRequest) -> Response:
    with desk.changing() as memories:
        results.undo(memories, results.find(memories, ask.path["id"], "completed"))
    return desk.to("/dream", "undone")


GET = {"/dream": show_dream, "/dream/{id}": show_dream}
POST = {
    "/dream/run": run,
    "/dream/{id}/kill": kill,
    "/dream/{id}/accept": accept,
    "/dream/{id}/drop": drop,
    "/dream/{id}/undo": undo,
}
