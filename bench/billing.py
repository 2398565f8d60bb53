"""What whole sessions are billed, by their size: everything counted, for each kind of user.

The recorded sessions are replayed by the product's own `reverie replay`: requests, reading back,
finding again, and the model calls behind the conversation, each at its price. A session of ours
adds its tool and its section about memory to the head and asks its own model in the background;
through the proxy neither is so. Claude is measured with the recorded thinking sent and bound, and
without it; models that bind no thinking and write their cache for nothing stand beside.
Needs the recorded sessions (`REVERIE_SHARED`).
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from bench.figures import ROOT_SHARED, Figure, Row, code, once
from reverie.apps.replay import Interface, PolicyName, ReplayPolicy, of_lines, play
from reverie.providers import KINDS

SIX = ("4a364c97", "21a2e002", "7f78a542", "0276a600", "533ff7a3", "24a274a3")
ABOVE = 1.02  # of sending everything: what a session may cost
Bills = dict[str, tuple[float, float]]
"""By kind of user: what a session is billed, and what sending everything is."""


@dataclass(frozen=True, slots=True)
class User:
    """Who is billed, and how their requests are sent."""

    told: str
    policy: PolicyName = "collapse"
    through: Interface = "session"
    thinking: bool = False
    prices: str = "anthropic"
    tail: int | None = None


USERS: Mapping[str, User] = {
    "claude_thinking": User("a session on Claude, thinking sent", thinking=True),
    "claude": User("a session on Claude, without thinking"),
    "claude_10k": User("the same with 10,000 tokens of recent rounds", tail=10_000),
    "unbound": User("a session on a model that caches by itself", prices="openai"),
    "local": User("a session on a local server", prices="local"),
    "proxy_thinking": User("Claude through the proxy, thinking sent", "collapse", "proxy", True),
    "proxy": User("Claude through the proxy, without thinking", "collapse", "proxy"),
    "classic": User("a session on Claude under classic", "classic"),
    "classic_proxy": User("Claude through the proxy under classic", "classic", "proxy"),
}


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    folder = ROOT_SHARED / "data" / "sessions_dev"
    if not folder.is_dir():
        yield "recorded sessions", f"not found under {ROOT_SHARED.name}", "", None
        return
    measured = code("billing")
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        name = path.name[:8]
        bill = once(f"billed {name}", measured, lambda p=path: anyio.run(partial(bills, p)))
        if bill is not None:
            found[name] = bill
    yield from figures(found)


async def bills(path: Path) -> dict[str, Any]:
    """One session for each kind of user, and how large its largest request is whole."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        course = of_lines(file.read().splitlines(), path.name)
    out: Bills = {}
    peak = 0
    for name, user in USERS.items():
        if user.thinking and not course.thinking:
            continue
        policy = ReplayPolicy.of(
            user.policy, tail=user.tail, prices=KINDS[user.prices], through=user.through
        )
        naive = await play(course, policy.under("naive"), thinking=user.thinking)
        ours = await play(course, policy, thinking=user.thinking)
        peak = peak if user.thinking else naive.peak
        out[name] = (ours.bill.total, naive.bill.total)
    return {"peak": peak, "bills": out}


def figures(found: Mapping[str, Mapping[str, Any]]) -> Iterator[Figure]:
    groups = {
        "six": ("the six longest sessions", [n for n in found if n in SIX]),
        "long": ("sessions over 100 K tokens", _sized(found, 100_001, 10**9)),
        "middle": ("sessions of 30-100 K tokens", _sized(found, 30_000, 100_000)),
        "short": ("sessions under 30 K tokens", _sized(found, 0, 29_999)),
        "all": ("all recorded sessions", list(found)),
    }
    for key, user in USERS.items():
        for group, (told, names) in groups.items():
            mine = [found[n]["bills"][key] for n in names if key in found[n]["bills"]]
            spent, naive = (sum(one[at] for one in mine) for at in (0, 1))
            yield Figure(
                f"billed.{key}.{group}",
                f"{user.told}: everything billed, {told}",
                spent / naive if naive else 0.0,
                1.0,
                "sending everything",
                "lower",
                "share",
                len(mine),
                "a model call behind two to nine requests, and the tool in their head, cost more "
                "than so short a session can save",
            )
        every = [one["bills"][key] for one in found.values() if key in one["bills"]]
        above = sum(spent > ABOVE * naive for spent, naive in every)
        what = f"{user.told}: sessions that cost over {ABOVE:g} x of sending everything"
        yield Figure(
            f"billed.{key}.above", what, above, 0.0, "none", "lower", n=len(every),
            why="short sessions: the same",
        )  # fmt: skip


def _sized(found: Mapping[str, Mapping[str, Any]], least: int, most: int) -> list[str]:
    return [name for name, one in found.items() if least <= one["peak"] <= most]
