"""The fleet: what is wrong, what runs, what it cost, and the words that a job can be told.

All of it is said and done by `reverie fleet`, in a process of its own beside the page: this holds
the order in which things stand. A page has fifty jobs at most; the rest are behind their state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import Response

from reverie.apps.web import format as show
from reverie.apps.web.events import at_once
from reverie.apps.web.workspace import ScreenRequest, Workspace, has_fleet
from reverie.errors import InvalidInput, NotFound
from reverie.fleet.plan import KINDS, TENANT, checked_tenant
from reverie.fleet.status import in_words
from reverie.reports.plots import bar, spark
from reverie.reports.timeline import Values
from reverie.text.format import number, plural

STATES = ("queued", "running", "done", "skipped", "dead", "cancelled")
MAX_JOBS = 50
MAX_RUNNING = 10
MAX_ROWS = 12
FRESH = 15.0
"""Seconds after which it is asked again, while somebody looks."""
_MAX_KEY = 300
TONES = {"running": "accent", "done": "ok", "dead": "bad"}
BACK = {
    "requeued": ("cancel", "Cancel it"),
    "cancelled": ("retry", "Queue it again"),
    "paused": ("resume", "Resume"),
    "resumed": ("pause", "Pause"),
}
"""What takes back what was just done."""


@dataclass(frozen=True, slots=True)
class JobFilter:
    """The jobs that somebody wants to see."""

    state: str = ""
    kind: str = ""
    tenant: str = ""

    @staticmethod
    def of(given: Mapping[str, str], before: str = "") -> JobFilter:
        state, kind, tenant = (given.get(before + name, "") for name in ("state", "kind", "tenant"))
        return JobFilter(
            state if state in STATES else "", kind if kind in KINDS else "", _tenant(tenant)
        )

    @property
    def given(self) -> dict[str, str]:
        every = {"state": self.state, "kind": self.kind, "tenant": self.tenant}
        return {name: value for name, value in every.items() if value}

    @property
    def address(self) -> str:
        return f"/fleet?{urlencode(self.given)}" if self.given else "/fleet"

    @property
    def figure(self) -> str:
        return f"fleet jobs {urlencode(self.given)}"


def _tenant(name: str) -> str:
    try:
        return checked_tenant(name) if name else ""
    except InvalidInput:
        return ""


def summary(desk: Workspace) -> Values | None:
    """What `fleet status` says; nothing where there is no fleet."""
    return at_once(desk, "fleet", "status") if has_fleet(desk.place) else None


def _jobs(desk: Workspace, wanted: JobFilter) -> list[Values]:
    given = [f"--{name}={value}" for name, value in wanted.given.items()]
    return at_once(desk, "fleet", "list", f"-n{MAX_JOBS}", *given)


def _makers(desk: Workspace, wanted: JobFilter) -> dict[str, Callable[[], Any]]:
    return {"fleet": partial(summary, desk), wanted.figure: partial(_jobs, desk, wanted)}


def show_fleet(desk: Workspace, ask: ScreenRequest) -> Response:
    wanted, there = JobFilter.of(ask.query), has_fleet(desk.place)
    kept = desk.figures.get(_makers(desk, wanted), FRESH) if there else {}
    status = kept["fleet"].value if there else None
    rows: list[Values] = kept[wanted.figure].value or [] if there else []
    said = ask.query.get("said", "")
    return desk.page(
        "fleet.html",
        screen="fleet" if there else "health",
        there=there,
        kept=kept.get("fleet"),
        listed=kept.get(wanted.figure),
        jobs=[_job(row) for row in rows],
        wanted=wanted,
        states=STATES,
        tones=TONES,
        default=TENANT,
        every=int(FRESH),
        found=_view(status) if status else None,
        said=said,
        back=_taken_back(ask) if said in BACK else None,
    )


def _taken_back(ask: ScreenRequest) -> Values:
    action, word = BACK[ask.query["said"]]
    named = {"tenant": ask.query.get("of", "")[:80], "key": ask.query.get("job", "")[:_MAX_KEY]}
    return {"action": action, "word": word, **named}


# --- how it is shown


def _view(status: Values) -> Values:
    recent: list[Values] = status["recent"]
    totals = {state: _sum(recent, state) for state in STATES}
    every = {state: _sum(status["jobs"], state) for state in STATES}
    tenants = _tenants(status["tenants"])
    groups = _groups(recent)
    wrong = {
        "paused": [one for one in tenants if one["paused"]],
        "full": [one for one in tenants if one["full"]],
        "gone": [one for one in status["signs"] if one["quiet"] is None],
        "dead": _wrong(status["dead"]),
        "later": _wrong(status["later"]),
    }
    return {
        **status,
        "totals": totals,
        "every": every,
        "planned": sum(every.values()),
        "cost": sum(row["cost"] or 0 for row in recent),
        "lead": _lead(wrong, every["dead"], totals),
        "wrong": wrong,
        "running": [_job(row) for row in status["running"][:MAX_RUNNING]],
        "groups": groups[:MAX_ROWS],
        "more_groups": max(0, len(groups) - MAX_ROWS),
        "tenants": tenants[:MAX_ROWS],
        "more_tenants": max(0, len(tenants) - MAX_ROWS),
        "signs": status["signs"][:MAX_ROWS],
        "workers": len(status["signs"]),
    }


def _sum(rows: Iterable[Values], state: str) -> int:
    return sum(row["jobs"] for row in rows if row["state"] == state)


def _lead(wrong: Values, dead: int, totals: Mapping[str, int]) -> tuple[str, str]:
    """The sentence that a person could repeat: how it is, and the rest of it."""
    later = sum(wrong["later"]["codes"].values())
    found = [
        f"{plural(dead, 'job')} dead" if dead else "",
        f"{plural(later, 'job')} held back" if later else "",
        f"{plural(len(wrong['paused']), 'tenant')} paused" if wrong["paused"] else "",
        f"{plural(len(wrong['full']), 'budget')} used up" if wrong["full"] else "",
        f"{plural(len(wrong['gone']), 'worker')} gone" if wrong["gone"] else "",
    ]
    trouble = ", ".join(one for one in found if one)
    told = ", ".join(f"{number(totals[state])} {state}" for state in STATES[:4] if totals[state])
    return (f"{trouble}." if trouble else "Nothing is wrong."), f"{told}." if told else ""


def _wrong(found: Values) -> Values:
    codes = [(in_words(code), count) for code, count in found["codes"].items()]
    return {"codes": found["codes"], "words": codes, "jobs": [_job(row) for row in found["jobs"]]}


def _job(row: Values) -> Values:
    """A job by the name of its project; the mark tells its buttons from others'."""
    root = str(row["root"])
    mark = sha256(f"{row['tenant']}/{row['key']}".encode("utf-8", "replace")).hexdigest()[:10]
    return {
        **row,
        "name": PurePosixPath(root).name or root,
        "where": show.homely(root),
        "words": in_words(row["code"]),
        "reason": row.get("reason", ""),
        "mark": mark,
        "can_retry": row["state"] in ("dead", "cancelled", "skipped")
        or (row["state"] == "queued" and row["after"] > 0),
        "can_cancel": row["state"] in ("queued", "running") and not row["cancel"],
    }


def _groups(rows: Iterable[Values]) -> list[Values]:
    """What each tenant's jobs of a kind came to, state by state."""
    found: dict[tuple[str, str], Values] = {}
    for row in rows:
        pair = (row["tenant"], row["kind"])
        none = dict.fromkeys(STATES, 0)
        one = found.setdefault(
            pair, {"tenant": pair[0], "kind": pair[1], "states": none, "cost": 0.0}
        )
        one["states"][row["state"]] = row["jobs"]
        one["cost"] += row["cost"] or 0
    return list(found.values())


def _tenants(given: Mapping[str, Values]) -> list[Values]:
    """Tenants with what they spent of what they may, those that need somebody first."""
    rows = [{"name": name, **about, **_money(about)} for name, about in given.items()]
    return sorted(
        rows, key=lambda one: (not one["paused"], not one["full"], -one["spent"]["tokens"])
    )


def _money(about: Values) -> Values:
    used, most = about["spent"]["tokens"], about["tokens"]
    words = f"{number(used)} of {number(most)}"
    tone = "warnf" if about["full"] else "acc"
    line = Markup(
        spark(about["past"], f"spent on the last {plural(len(about['past']), 'day')}", "okf")
    )
    return {
        "bar": Markup(bar([(tone, min(used, most))], words, most)) if most else "",
        "line": line if any(about["past"]) else "",
    }


# --- doing


def _key(ask: ScreenRequest) -> str:
    key = ask.given("key")
    if not key or len(key) > _MAX_KEY or "\0" in key:
        raise NotFound("There is no such job", where=key[:80], do="The list shows those there are")
    return key


def _do(desk: Workspace, *words: str, about: str) -> Values:
    """Have a command do it; where there is no fleet it would make one."""
    if not has_fleet(desk.place):
        raise NotFound("No plan was made here", do="`reverie fleet run` makes one and works it")
    return at_once(desk, "fleet", *words, about=[about])


def _command_job(desk: Workspace, ask: ScreenRequest, command: str) -> str:
    """Tell a job something; gives its state."""
    whose = f"--tenant={checked_tenant(ask.given('tenant'))}"
    return _do(desk, command, whose, about=_key(ask))["state"]


def _gone_back(desk: Workspace, ask: ScreenRequest, said: str) -> Response:
    """To the jobs that were looked at, with figures that know what was done."""
    wanted = JobFilter.of({name: ask.given(name) for name in ask.form}, "in_")
    makers = _makers(desk, wanted)
    with ThreadPoolExecutor(len(makers)) as pool:
        list(pool.map(desk.figures.make, makers.keys(), makers.values()))
    named = {"of": ask.given("tenant"), "job": ask.given("key")}
    query = urlencode({**wanted.given, **{name: one for name, one in named.items() if one}})
    return desk.to(f"/fleet?{query}", said)


def retry(desk: Workspace, ask: ScreenRequest) -> Response:
    state = _command_job(desk, ask, "retry")
    return _gone_back(desk, ask, "requeued" if state == "queued" else "over")


def cancel(desk: Workspace, ask: ScreenRequest) -> Response:
    state = _command_job(desk, ask, "cancel")
    said = {"cancelled": "cancelled", "running": "stopping"}.get(state, "over")
    return _gone_back(desk, ask, said)


def pause(desk: Workspace, ask: ScreenRequest) -> Response:
    _do(desk, "pause", about=checked_tenant(ask.given("tenant")))
    return _gone_back(desk, ask, "paused")


def resume(desk: Workspace, ask: ScreenRequest) -> Response:
    _do(desk, "pause", "--resume", about=checked_tenant(ask.given("tenant")))
    return _gone_back(desk, ask, "resumed")


GET = {"/fleet": show_fleet}
POST = {
    "/fleet/retry": retry,
    "/fleet/cancel": cancel,
    "/fleet/pause": pause,
    "/fleet/resume": resume,
}
