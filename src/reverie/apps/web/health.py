"""Health, savings, and switches a person may change.

Health: is anything wrong, and what does it cost?

Findings come from the lists' own index; what takes longer is worked out beside the page. What can
be mended is shown as a difference first, and mended only as it was shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import Response

from reverie.apps.web import fleet
from reverie.apps.web import format as show
from reverie.apps.web.events import CachedFigure, by_command
from reverie.apps.web.memories import by_user
from reverie.apps.web.team import summary
from reverie.apps.web.workspace import ScreenRequest, Workspace
from reverie.errors import InvalidInput, StoreError
from reverie.memory.check import fix_memory, plan_fix
from reverie.reports.doctor import FIX, DoctorRun
from reverie.reports.plots import bar, spark
from reverie.reports.timeline import Values
from reverie.session.open_memory import find_memory
from reverie.settings.schema import camel
from reverie.settings.sources import LoadedSettings
from reverie.store.approvals import change_flag, change_setting
from reverie.store.rules import list_rules
from reverie.store.rules_ledger import MATCHED
from reverie.text.format import number, plural, utc_day

DAYS = 14
MAX_FILES = 50
MAX_RULES = 50


def show_health(desk: Workspace, ask: ScreenRequest) -> Response:
    everything = ask.query.get("days", "") == "all"
    stats = "stats all" if everything else "stats"
    found = desk.figures.get(
        {
            stats: partial(_stats, desk, everything),
            "doctor": partial(by_command, desk, "doctor"),
            "rules": partial(_rules, desk),
            "fleet": partial(fleet.summary, desk),
            "team": partial(summary, desk),
        }
    )
    sums = desk.memories.sums()
    value = found[stats].value
    doctor = found["doctor"].value
    rules: list[Values] = found["rules"].value or []
    wrong = [one for one in doctor["checks"] if one["state"] == "problem"] if doctor else []
    return desk.page(
        "health.html",
        screen="health",
        everything=everything,
        stats=value,
        kept=found,
        at=found[stats].at,
        sums=sums,
        findings=desk.memories.findings(),
        lead=_lead(sums, wrong, value),
        trend=_trend(value),
        costs=_costs(value),
        cost_bar=_cost_bar(value),
        unasked=_background_spend(desk, value),
        switches=switches(desk),
        was=ask.query["was"][:20] if "was" in ask.query else None,
        doctor=_doctor(found["doctor"]),
        rules=[_rule(one) for one in rules[:MAX_RULES]],
        heard=desk.said,
        said=ask.query.get("said", ""),
        undo=ask.query.get("undo", "")[:40],
    )


def _lead(sums: Values, wrong: list[Values], stats: Values | None) -> tuple[str, str]:
    """The sentence that a person could repeat: how it is, and the rest of it."""
    if wrong:
        return f"{plural(len(wrong), 'thing')} to put right.", "It says below how."
    if stats and stats["breaker_trips"]:
        times = plural(stats["breaker_trips"], "time")
        return "Compaction gave up.", f"After failures in a row, {times}: that session says why."
    if not sums["findings"]:
        return "All is well.", "Nothing is wrong with the memory." if sums["memories"] else ""
    can = f", {number(sums['fixable'])} can be mended here" if sums["fixable"] else ""
    return "Nothing is broken.", f"{plural(sums['findings'], 'finding')} in the memory{can}."


def _trend(stats: Values | None) -> Any:
    days = [one["score"] for one in (stats or {}).get("memory", [])][-DAYS:]
    if len(days) < 2:
        return ""
    return Markup(
        spark(days, f"score of the last {len(days)} measured days, from {days[0]} to {days[-1]}")
    )


def _costs(stats: Values | None) -> list[Values]:
    """What each source cost, the dearest first."""
    cost: Mapping[str, float] = (stats or {}).get("cost", {})
    whole = sum(cost.values()) or 1
    rows: list[Values] = []
    for name, price in sorted(cost.items(), key=lambda one: -one[1]):
        colour, words = show.SOURCES.get(name, ("ghost2", show.source(name)))
        calls = (stats or {})["requests"].get(name, 0)
        row = {"name": name, "class": colour, "words": words, "requests": calls}
        rows.append({**row, "cost": price, "share": price / whole})
    return rows


def _cost_bar(stats: Values | None) -> Any:
    rows = _costs(stats)
    words = ", ".join(f"{row['words']} {show.share(row['share'])}" for row in rows)
    return Markup(bar([(row["class"], row["cost"]) for row in rows], f"cost by source: {words}"))


def _background_spend(desk: Workspace, stats: Values | None) -> Values:
    """What ran unasked today, of what may."""
    allowed = budget(desk.place.load())
    limit = allowed["limit"]
    today = utc_day(time.time())
    days: list[Values] = (stats or {}).get("unasked", [])
    spent = sum(sum(one["weighted"].values()) for one in days if one["day"] == today)
    past = [sum(one["weighted"].values()) for one in reversed(days)]
    words = f"{number(spent)} of {number(limit)}"
    line = Markup(spark(past, f"what ran unasked on the last {plural(len(past), 'day')}", "okf"))
    return {
        **allowed,
        "spent": spent,
        "bar": Markup(bar([("acc", spent)], words, limit)),
        "days": line,
    }


def _rule(one: Values) -> Values:
    """A rule with what it did, and a line of the last days on which calls went against it."""
    days: Mapping[str, Mapping[str, int]] = one["counts"].get("days", {})
    now = time.time()
    dates = [utc_day(now - n * 86_400) for n in reversed(range(DAYS))]
    met = [days.get(date, {}).get(MATCHED, 0) for date in dates]
    label = f"{plural(sum(met), 'call')} against it on the last {DAYS} days"
    did = [(_DID.get(name, name), n) for name, n in one["counts"].items() if name != "days" and n]
    return {**one, "did": did, "line": Markup(spark(met, label)) if any(met) else ""}


_DID = {
    "matched": "calls against it",
    "changed": "followed then",
    "broken": "broken all the same",
    "said": "said again",
}


def _doctor(kept: CachedFigure) -> Values | None:
    """What is not well, the worst first, and apart from it what is."""
    if not kept.value:
        return None
    checks: list[Values] = kept.value["checks"]
    told = [{**one, "do": _HERE if one["do"] == FIX else one["do"]} for one in checks]
    wrong = [one for one in told if one["state"] == "problem"]
    return {
        "wrong": wrong,
        "notes": [one for one in told if one["state"] in ("note", "fixed")],
        "well": [one for one in told if one["state"] == "ok"],
        "here": any(one["do"] == _HERE for one in told),
    }


_HERE = "the button above does it"


# --- what takes longer


def _stats(desk: Workspace, everything: bool) -> Values:
    return by_command(desk, "stats", *(["--all"] if everything else []))


def _rules(desk: Workspace) -> list[Values]:
    with find_memory(desk.place, desk.say) as memories:
        rows = [] if memories is None else list_rules(memories, desk.place.root)
    return [row.value() for row in rows]


# --- mending


def mending(desk: Workspace, ask: ScreenRequest) -> Response:
    """What would be changed, file by file; nothing is changed yet."""
    del ask
    with find_memory(desk.place, desk.say) as memories:
        found = plan_fix(memories, desk.place) if memories else None
    changes = found.changes if found else []
    files = [
        {
            "key": key,
            "change": "removed" if now is None else "added" if was is None else "changed",
            "rows": show.difference(*(_text(side) for side in (was, now))),
        }
        for key, was, now in changes[:MAX_FILES]
    ]
    return desk.page(
        "mend.html",
        screen="health",
        files=show.within(show.index_last(files)),
        more=max(0, len(changes) - MAX_FILES),
        edits=found.edits if found else {},
        dropped=found.dropped if found else (),
        left=found.left if found else (),
        plan=found.mark if found else "",
        said="",
    )


def _text(side: bytes | None) -> str:
    return (side or b"").decode("utf-8", "replace")


def mend(desk: Workspace, ask: ScreenRequest) -> Response:
    """Mend it as it was shown, as one step that can be undone."""
    with desk.changing() as memories:
        done = fix_memory(memories, desk.place, by_user("check"), expect=ask.given("plan"))
        if done.failed:
            raise StoreError(done.failed, do="Look at what can be mended once more")
        steps = [one.id for one in memories.history.log() if done.group in (one.id, one.group)]
        desk.memories.check(memories)
    if not done.group:
        return desk.to("/health", "nothing")
    return desk.to(f"/health?undo={steps[-1] if steps else done.group}", "mended")


def put_right(desk: Workspace, ask: ScreenRequest) -> Response:
    """What `doctor --fix` does: rights, and files that were left over."""
    del ask
    for _ in DoctorRun(desk.place, fix=True).checks():
        pass
    desk.figures.outdated("doctor")
    return desk.to("/health", "mended")


SWITCHES = {
    "recall": "Memories come to mind at the start of a turn",
    "extract_memories": "Learning from what you say, after a turn",
    "session_memory": "Notes kept along a session",
    "dream": "Dreams that tidy the memory",
    "rules": "Calls held against your rules",
}
BUDGET = "background_tokens_per_day"
_OURS = ("flags", "user", "default")


def switches(desk: Workspace) -> list[Values]:
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


def budget(loaded: LoadedSettings) -> Values:
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


GET = {"/health": show_health, "/health/mend": mending}


def switch(desk: Workspace, ask: ScreenRequest) -> Response:
    name, on = ask.given("name"), ask.given("on") == "1"
    if name not in SWITCHES:
        raise InvalidInput("There is no such switch here", where=name[:40])
    change_flag(desk.place, name, on)
    return desk.to("/health", "on" if on else "off")


def limit(desk: Workspace, ask: ScreenRequest) -> Response:
    """Set the budget, or with nothing given let the default count again."""
    before = budget(desk.place.load())
    text = "".join(ask.given("tokens").replace(",", "").split())
    change_setting(desk.place, BUDGET, text or None)
    was = str(before["limit"]) if before["set"] else ""
    return desk.to(f"/health?was={quote(was)}", "limited")


SWITCHES_POST = {"/health/switch": switch, "/health/limit": limit}


POST: dict[str, Callable[[Workspace, ScreenRequest], Response]] = {
    "/health/mend": mend,
    "/health/doctor": put_right,
    **SWITCHES_POST,
}
