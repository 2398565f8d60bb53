"""What a team server refused, for its audit trail: whose token, which repository, what, how often.

Only counts are kept, by hour; never a token, a key or a text. A token that is not known has no
name here, so nothing a stranger sends is written down. A flood costs a counter in the process and
one small write a second, and an organisation has a bounded number of rows, of which the oldest
go: the first refusal is on the disk before it is answered, those of the next second with it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping

from reverie.light import dataclass
from reverie.team.database import Database, DatabaseAway, SqlValue, Transaction
from reverie.team.values import CountedRefusal

ROWS = 1_000
"""For each organisation, and for those that belong to none."""
EVERY = 1.0
_WAITING = 100
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A request that was refused, as far as it may be known; `token` is a public part."""

    status: int
    token: str = ""
    org: str = ""
    repo: str = ""

    @property
    def order(self) -> tuple[str, str, str, int]:
        """Several processes that write at once take rows in one order."""
        return self.org, self.repo, self.token, self.status


class Refusals:
    """Counts what is refused, and writes it down now and then."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now
        self._waiting: Counter[RefusedRequest] = Counter()
        self._lock = threading.Lock()
        self._written = float("-inf")

    def count(self, one: RefusedRequest) -> bool:
        """Count a refusal; whether it is time to write."""
        with self._lock:
            if len(self._waiting) >= _WAITING and one not in self._waiting:
                one = RefusedRequest(one.status)
            self._waiting[one] += 1
            return abs(self._now() - self._written) >= EVERY

    def write(self) -> None:
        """Put what was counted into the database; what it does not take waits for the next time."""
        with self._lock:
            counts, self._waiting = self._waiting, Counter()
            self._written = self._now()
        if not counts:
            return
        try:
            self._database.run(lambda within: _add(within, counts, self._written), writes=True)
        except DatabaseAway:
            with self._lock:
                self._waiting.update(counts)


def _add(within: Transaction, counts: Mapping[RefusedRequest, int], now: float) -> None:
    orgs: set[str] = set()
    for one, times in sorted(counts.items(), key=lambda pair: pair[0].order):
        org, token = (one.org, one.token) if one.org else _owner(within, one.token)
        orgs.add(org)
        within.rows(
            "INSERT INTO refusals (org, repo, token, status, hour, times, begun, latest)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (org, repo, token, status, hour)"
            " DO UPDATE SET times = refusals.times + excluded.times, latest = excluded.latest",
            (org, one.repo, token, one.status, int(now // _HOUR), times, now, now),
        )
    for org in orgs:
        within.rows(
            "DELETE FROM refusals WHERE org = ? AND latest <= (SELECT latest FROM refusals"
            " WHERE org = ? ORDER BY latest DESC LIMIT 1 OFFSET ?)",
            (org, org, ROWS),
        )


def _owner(within: Transaction, token: str) -> tuple[str, str]:
    """Organisation and public part of a token that was not let in, if there is one."""
    found = within.rows("SELECT org FROM tokens WHERE id = ?", (token,)) if token else []
    return (str(found[0][0]), token) if found else ("", "")


def listed(
    within: Transaction, most: int, org: str = "", repo: str = "", token: str = ""
) -> list[CountedRefusal]:
    """The newest first; all of them, or those of an organisation's repository and of none in it,
    or of those the ones of one token."""
    where: list[str] = []
    values: list[SqlValue] = []
    if org:
        where, values = ["r.org = ?", "r.repo IN (?, '')"], [org, repo]
    if token:
        where, values = [*where, "r.token = ?"], [*values, token]
    rows = within.rows(
        "SELECT r.org, r.repo, r.token, t.author, r.status, r.times, r.begun, r.latest"
        " FROM refusals r LEFT JOIN tokens t ON t.id = r.token"
        f"{' WHERE ' if where else ''}{' AND '.join(where)}"
        " ORDER BY r.latest DESC, r.token, r.status LIMIT ?",
        (*values, most),
    )
    return [
        CountedRefusal(
            *(str(org), str(repo), str(name), str(author or ""), int(status or 0)),
            *(int(times or 0), float(begun or 0), float(latest or 0)),
        )
        for org, repo, name, author, status, times, begun, latest in rows
    ]
