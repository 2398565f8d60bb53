"""The team's memory: who wrote what and when, what differs, and taking a change back for oneself.

Asking the other side takes as long as it takes: it is asked beside the page. What was pulled is in
the memory's own history, one step a pull, and undoing it changes nothing for the others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from starlette.responses import Response

from reverie.apps.web import format as show
from reverie.apps.web.memories import by_user
from reverie.apps.web.workspace import ScreenRequest, Workspace
from reverie.errors import NotFound
from reverie.reports.timeline import Values
from reverie.session.open_memory import open_memory
from reverie.session.team import DIFFERS, connect, missing, sync_team, team_changes, team_status
from reverie.store.memory_store import MemoryStore
from reverie.topics.versions import Version

MAX_LOG = 50
MAX_STEPS = 20
MAX_FILES = 50
ROOM = show.MAX_DIFFERENCES // 2


def summary(desk: Workspace) -> Values:
    """What `team status` says; of a team that is not set up, what is missing."""
    place = desk.place
    if lack := missing(place):
        return {"missing": lack[0], "do": lack[1]}
    with open_memory(desk.place, desk.say) as memories:
        return team_status(memories, place).value()


def _query_team(desk: Workspace) -> Values:
    """Status, the log, and both texts of what differs."""
    place = desk.place
    if missing(place):
        return summary(desk)
    with open_memory(desk.place, desk.say) as memories:
        status = team_status(memories, place).value()
        differs = [one.value() for one in team_changes(memories, place)[:MAX_FILES]]
        log = [asdict(one) for one in connect(place).log(MAX_LOG)]
    return {**status, "log": log, "differs": differs}


def show_team(desk: Workspace, ask: ScreenRequest) -> Response:
    kept = desk.figures.get({"team page": partial(_query_team, desk)})["team page"]
    with desk.memory() as memories:
        steps = _steps(memories) if memories else []
    found: Values = kept.value or {}
    return desk.page(
        "team.html",
        screen="health",
        kept=kept,
        found=found,
        differs=show.within([_change(one) for one in found.get("differs", [])], ROOM),
        what=DIFFERS,
        steps=steps,
        synced=desk.figures.last("team sync"),
        said=ask.query.get("said", ""),
        undo=ask.query.get("undo", "")[:40],
    )


def _change(one: Values) -> Values:
    sides = (one["here"] or "", one["there"] or "")
    before, after = sides if one["what"] in ("pull", "returning", "conflict") else sides[::-1]
    return {**one, "rows": show.difference(before, after)}


def _steps(memories: MemoryStore) -> list[Values]:
    """What pulls brought, the newest first, each with its difference."""
    every = memories.history.log()
    undone = {name for one in every for name in one.undoes}
    groups: dict[str, list[Version]] = {}
    for one in every:
        if one.origin.kind == "pull" and one.origin.agent == "team" and not one.undoes:
            groups.setdefault(one.group or one.id, []).append(one)
    newest = list(groups.values())[::-1][:MAX_STEPS]
    found = [_step(memories, steps, undone) for steps in newest]
    return [{**one, "files": show.within(one["files"], ROOM // len(found))} for one in found]


def _step(memories: MemoryStore, steps: Sequence[Version], undone: set[str]) -> Values:
    files = [
        {
            "key": one.key,
            "change": "removed" if not one.after else "added" if not one.before else "changed",
            "rows": show.difference(_text(memories, one.before), _text(memories, one.after)),
        }
        for one in steps[:MAX_FILES]
    ]
    first = steps[0]
    told: dict[str, Any] = {"id": first.id, "at": first.at, "by": first.origin.note}
    return {**told, "files": files, "undone": all(one.id in undone for one in steps)}


def _text(memories: MemoryStore, name: str) -> str:
    try:
        return memories.history.content(name).decode("utf-8", "replace") if name else ""
    except NotFound:
        return ""


# --- doing


def sync(desk: Workspace, ask: ScreenRequest) -> Response:
    """Take and send, beside the page; what it did is kept and shown."""
    del ask

    def work() -> Values:
        with open_memory(desk.place, desk.say) as memories:
            done = sync_team(memories, desk.place, now=time.time).value()
        desk.figures.outdated("team", "team page")
        return done

    desk.start("team sync", partial(desk.figures.make, "team sync", work))
    return desk.to("/team", "syncing")


def undo(desk: Workspace, ask: ScreenRequest) -> Response:
    """Take back what one pull brought, for oneself alone."""
    with desk.changing() as memories:
        memories.undo(ask.given("version"), by_user("undo"))
        newest = memories.history.log()[-1].id
    desk.figures.outdated("team", "team page")
    return desk.to(f"/team?undo={newest}", "undone")


GET = {"/team": show_team}
POST = {"/team/sync": sync, "/team/undo": undo}
