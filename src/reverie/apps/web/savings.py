"""Savings: one number to tell a colleague, and the means to doubt it.

Sessions are replayed beside the page, a few at a time, by `reverie replay` at low priority; rows
come as they are worked out. Nothing is replayed on a request, and nothing before somebody looks.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from reverie.apps.web.events import by_command
from reverie.apps.web.workspace import ScreenRequest, Workspace
from reverie.errors import ReverieError
from reverie.providers.costs import MILLION, price_of
from reverie.reports.plots import PlotFrame, bar, scatter_chart
from reverie.reports.stats import PAGE, SORTS, SavingQuery
from reverie.reports.timeline import Values
from reverie.text.format import number, short_number

POLICIES = {
    "classic": "which clears old results and summarises a full window",
    "collapse": "which folds old rounds into single lines",
}
"""The policies, each in words."""
BATCHES = (1, 4, 16)
"""Sessions replayed at a time: the first rows come soon, the others cheaply."""
MAX_PRICE = 1_000.0


def show_savings(desk: Workspace, ask: ScreenRequest) -> Response:
    query, given = _query(desk, ask), ask.query.get("sort", "-saved")
    policy = query.policy
    desk.start(f"savings {policy}", partial(work, desk, policy))
    sums = desk.savings.sums(policy)
    rows = desk.savings.page(query)
    first = (query.page - 1) * PAGE + 1
    return desk.page(
        "savings.html",
        screen="savings",
        policy=policy,
        policies=POLICIES,
        query=query,
        sort=given,
        price=ask.query.get("price", "")[:12],
        sums=sums,
        share=_share(sums["naive"], sums["cost"]),
        money=_money(desk, ask, sums, policy),
        bars=_bars(sums),
        plot=_plot(desk.savings.points(policy)),
        rows=rows,
        first=first,
        last=first + len(rows) - 1,
        left=max(0, sums["whole"] - sums["sessions"] - sums["failed"]),
        said="",
    )


def _query(desk: Workspace, ask: ScreenRequest) -> SavingQuery:
    policy = ask.query.get("policy", "")
    sort = ask.query.get("sort", "-saved")
    name = sort.removeprefix("-")
    return SavingQuery(
        policy if policy in POLICIES else desk.settings.context_policy,
        name if name in SORTS else "saved",
        sort.startswith("-"),
        ask.page,
    )


def _share(naive: float, cost: float) -> float:
    return 1 - cost / naive if naive else 0.0


def _money(desk: Workspace, ask: ScreenRequest, sums: Values, policy: str) -> Values | None:
    """Dollars at the given price of a million input tokens, else at the published ones of the
    models; None where neither is known."""
    try:
        price = float(ask.query.get("price", "") or 0)
    except ValueError:
        price = 0.0
    if 0 < price <= MAX_PRICE:
        saved = sums["naive"] - sums["cost"]
        return {
            "saved": saved * price / MILLION,
            "whole": sums["naive"] * price / MILLION,
            "at": f"${price:g} a million input tokens",
            "part": 1.0,
        }
    known = [(one, price_of(one[0])) for one in desk.savings.models(policy)]
    priced = [(naive, cost, found.input) for (_, naive, cost), found in known if found]
    if not priced or not sums["naive"]:
        return None
    return {
        "saved": sum((naive - cost) * price for naive, cost, price in priced) / MILLION,
        "whole": sum(naive * price for naive, _, price in priced) / MILLION,
        "at": "the published prices of the models",
        "part": sum(naive for naive, _, _ in priced) / sums["naive"],
    }


def _bars(sums: Values) -> tuple[Markup, Markup]:
    naive, back = sums["naive"], sums["back"]
    whole = Markup(
        bar([("ghost2", naive)], f"every message sent, {short_number(naive)} units", naive)
    )
    parts = [("acc", sums["cost"] - back), ("k-results", back)]
    most = max(naive, sums["cost"])
    return whole, Markup(bar(parts, f"with Reverie, {short_number(sums['cost'])} units", most))


def _plot(points: Sequence[tuple[float, float]]) -> Any:
    if len(points) < 3:
        return ""
    low, high = (f(naive for naive, _ in points) for f in (min, max))
    label = (
        f"Cost against sending everything, of {number(len(points))} sessions from"
        f" {short_number(low)} to {short_number(high)} units: {points[0][1]:.2f} for the longest,"
        f" {points[-1][1]:.2f} for the shortest"
    )
    frame = PlotFrame("", 500, 250, 40, 4)
    return Markup(
        scatter_chart(frame, [(math.log10(naive), left) for naive, left in points], label)
    )


# --- beside the page


def work(desk: Workspace, policy: str) -> None:
    """Replay what has no figures yet, until all have."""
    for size in (*BATCHES, *(BATCHES[-1] for _ in range(10_000))):
        asked = desk.savings.stale(policy, size, time.time())
        if not asked or desk.closed:
            return
        names = [name for name, _ in asked]
        try:
            found = by_command(desk, "replay", *names, "--rounds", "--policy", policy)
        except ReverieError:  # none of them can be replayed
            found = list[Values]()
        if desk.closed or found is None:
            return
        desk.savings.take(policy, asked, found)
        desk.hub.tell("savings")
        desk.hub.tell("sessions")


def download(desk: Workspace, ask: ScreenRequest) -> Response:
    """The figures as `replay --json` gives them, of all sessions."""
    policy = _query(desk, ask).policy
    text = json.dumps(desk.savings.every(policy), indent=1, ensure_ascii=False)
    headers = {"content-disposition": f'attachment; filename="savings-{policy}.json"'}
    return Response(text, media_type="application/json", headers=headers)


GET = {"/savings": show_savings, "/savings/all.json": download}
POST: dict[str, Any] = {}
