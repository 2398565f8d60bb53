"""Recall explained: why did it remember this, or not that?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from reverie.apps.web.desk import Ask, Desk
from reverie.apps.web.plots import bar
from reverie.errors import NotFound
from reverie.session.recall.ledger import ledgers
from reverie.upkeep.timeline import Values

RESULTS = 10
CLOSEST = 3
MAX_TURNS = 12
SIGNALS = {
    "path": ("k-user", "file name"),
    "name": ("k-assistant", "name"),
    "about": ("k-sealed", "description"),
    "body": ("k-results", "text"),
    "near": ("k-memory", "words side by side"),
    "meaning": ("acc", "meaning"),
    "recency": ("k-head", "recency"),
}


def shown(desk: Desk, ask: Ask) -> Response:
    question = ask.query.get("q", "")[:2_000].strip()
    rows: list[Values] = []
    if question:
        rows = desk.recall_rows(question, RESULTS)
    most = max((sum(map(abs, row["why"].values())) for row in rows), default=0)
    clear = [row for row in rows if row["clear"]]
    return desk.page(
        "recall.html",
        screen="recall",
        q=question,
        rows=[{**row, "bar": _bar(row["why"], most), "signals": _told(row["why"])} for row in rows],
        clear=len(clear),
        nothing=bool(question) and not clear,
        considered=desk.memories.sums()["memories"],
        most=desk.settings.recall_files,
        used=_used(rows),
        signals=SIGNALS,
        checked=[one for row in rows for one in row["checked"]][:20],
        **_ledger(desk, ask),
        said="",
    )


def _used(rows: list[Values]) -> list[tuple[str, str]]:
    """The signals that speak in these results, for the legend."""
    names = dict.fromkeys(name for row in rows for name, value in row["why"].items() if value)
    return [SIGNALS.get(name, ("ghost2", name)) for name in names]


def _bar(why: Mapping[str, float], most: float) -> Markup:
    parts = [(SIGNALS.get(name, ("ghost2", ""))[0], max(0.0, value)) for name, value in why.items()]
    return bar(parts, f"signals: {_told(why)}", most)


def _told(why: Mapping[str, float]) -> str:
    named = ((SIGNALS.get(name, ("", name))[1], value) for name, value in why.items() if value)
    return ", ".join(f"{name} {value:.2f}" for name, value in named)


def _ledger(desk: Desk, ask: Ask) -> dict[str, Any]:
    """What recall did in one session, turn by turn: the one asked for, else the newest."""
    try:
        if not desk.sessions.newest():
            return {"turns": [], "session": ""}
        name = ask.query.get("session", "") or desk.sessions.newest()
        turns = ledgers(desk.library.read(name).entries)
    except NotFound:
        return {"turns": [], "session": ""}
    return {"turns": [turn.value() for turn in turns[::-1][:MAX_TURNS]], "session": name}


GET = {"/recall": shown}
POST: dict[str, Any] = {}
