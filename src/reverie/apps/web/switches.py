"""What a person may change on the page: switches that act at once, and the day's budget.

Each goes into the user's own files, as `reverie flags set` and `reverie config set` write it; what
a stronger source gives is shown with its place and cannot be changed here.
"""

from __future__ import annotations

from urllib.parse import quote

from starlette.responses import Response

from reverie.apps.web.desk import Ask, Desk
from reverie.errors import InvalidInput
from reverie.settings import Loaded, camel
from reverie.upkeep.configure import change_flag, change_setting
from reverie.upkeep.timeline import Values

SWITCHES = {
    "recall": "Memories come to mind at the start of a turn",
    "extract_memories": "Learning from what you say, after a turn",
    "session_memory": "Notes kept along a session",
    "dream": "Dreams that tidy the memory",
    "rules": "Calls held against your rules",
}
BUDGET = "background_tokens_per_day"
_OURS = ("flags", "user", "default")


def switches(desk: Desk) -> list[Values]:
    """Each switch, whether it is on, and who else decides that."""
    states = desk.place.flags.snapshot()
    return [
        {
            "name": name,
            "words": words,
            "on": bool(states[name].value),
            "by": _stronger(states[name].origin.source, states[name].origin.place),
        }
        for name, words in SWITCHES.items()
    ]


def budget(loaded: Loaded) -> Values:
    """The day's limit for what runs unasked, and who else decides it."""
    origin = loaded.origins[BUDGET]
    return {
        "limit": getattr(loaded.settings, BUDGET),
        "key": camel(BUDGET),
        "set": origin.source == "user",
        "by": _stronger(origin.source, origin.place),
    }


def _stronger(source: str, place: str) -> str:
    return "" if source in _OURS else place or source


def switch(desk: Desk, ask: Ask) -> Response:
    name, on = ask.given("name"), ask.given("on") == "1"
    if name not in SWITCHES:
        raise InvalidInput("There is no such switch here", where=name[:40])
    change_flag(desk.place, name, on)
    return desk.to("/health", "on" if on else "off")


def limit(desk: Desk, ask: Ask) -> Response:
    """Set the budget, or with nothing given let the default count again."""
    before = budget(desk.place.load())
    text = "".join(ask.given("tokens").replace(",", "").split())
    change_setting(desk.place, BUDGET, text or None)
    was = str(before["limit"]) if before["set"] else ""
    return desk.to(f"/health?was={quote(was)}", "limited")


POST = {"/health/switch": switch, "/health/limit": limit}
