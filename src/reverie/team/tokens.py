"""Tokens, and refusals counted for the audit trail.

Tokens: who may read or write which repository of which organisation.

A token is shown once, when it is made; the database has its SHA-256. It names one organisation
and one repository, or all of the organisation's (`*`). It is looked up by its public part and
compared in constant time; one that is unknown takes as long as one that is wrong. Each token has
a bucket of writes that fills as time passes: it is kept in the database, so that several server
processes count as one.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping

from reverie.errors import InvalidInput, NotFound
from reverie.light import dataclass
from reverie.team.database import Database, DatabaseAway, Row, SqlValue, Transaction
from reverie.team.protocol import WRITES_A_SECOND, CountedRefusal, check_repo

PREFIX = "rvt"
ALL = "*"
_SHAPE = re.compile(rf"{PREFIX}_([0-9a-f]{{12}})_([A-Za-z0-9_-]{{43}})", re.ASCII)
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,100}")
_NOBODY = "0" * 64
_COLUMNS = "id, org, repo, author, writes, created, expires, revoked"


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token; never its secret part."""

    id: str
    org: str
    repo: str
    author: str
    writes: bool
    created: float
    expires: float | None
    revoked: float | None

    def covers(self, repo: str) -> bool:
        return self.repo in (ALL, repo)

    def is_good(self, now: float) -> bool:
        return self.revoked is None and (self.expires is None or now < self.expires)


def create(
    within: Transaction,
    *,
    org: str,
    repo: str,
    author: str,
    writes: bool,
    now: float,
    expires: float | None = None,
) -> tuple[str, Token]:
    """Make a token; the text that is shown once, and what is known of it."""
    if repo != ALL:
        check_repo(repo)
    for what, name in (("organisation", org), ("author", author)):
        if not _NAME.fullmatch(name):
            raise InvalidInput(f"The {what} needs a name of 1 to 100 characters", where=repr(name))
    one = Token(secrets.token_hex(6), org, repo, author, writes, now, expires, None)
    secret = secrets.token_urlsafe(32)
    within.rows(
        "INSERT INTO tokens (id, digest, org, repo, author, writes, created, expires, revoked,"
        " level, refilled) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(one.id, _digest(secret), org, repo, author, int(writes), now, expires, None),
            *(WRITES_A_SECOND, now),
        ),
    )
    return f"{PREFIX}_{one.id}_{secret}", one


def find(
    within: Transaction, text: str, now: float, repo: str = ""
) -> tuple[Token, tuple[SqlValue, SqlValue]] | None:
    """The good token that this text is, with word and counter of the state of a repository of its
    organisation, in one look; or None. A wrong token takes as long as an unknown one."""
    shape = _SHAPE.fullmatch(text)
    name, secret = shape.groups() if shape else ("", text)
    columns = ", ".join(f"t.{one}" for one in _COLUMNS.split(", "))
    found = within.rows(
        f"SELECT t.digest, r.nonce, r.version, {columns} FROM tokens t"
        " LEFT JOIN repositories r ON r.org = t.org AND r.repo = ? WHERE t.id = ?",
        (repo, name),
    )
    known = str(found[0][0]) if found else _NOBODY
    same = hmac.compare_digest(known, _digest(secret))
    if not (same and found):
        return None
    token = _token(found[0][3:])
    return (token, (found[0][1], found[0][2])) if token.is_good(now) else None


def public_part(text: str) -> str:
    """The name that a token's text begins with, which is no secret; "" where it is no token."""
    shape = _SHAPE.fullmatch(text)
    return shape[1] if shape else ""


def list_tokens(within: Transaction) -> list[Token]:
    rows = within.rows(f"SELECT {_COLUMNS} FROM tokens ORDER BY created, id")
    return [_token(row) for row in rows]


def revoke(within: Transaction, name: str, now: float) -> Token:
    """From now on this token is none; by its public part, or the whole of it."""
    shape = _SHAPE.fullmatch(name)
    name = shape[1] if shape else name.removeprefix(f"{PREFIX}_")
    rows = within.rows(
        f"UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL RETURNING {_COLUMNS}",
        (now, name),
    )
    if not rows:
        raise NotFound(
            "There is no such token", where=name[:40], do="See `reverie team token list`"
        )
    return _token(rows[0])


def take_write(within: Transaction, name: str, now: float) -> float:
    """Take one write out of a token's bucket; else the seconds until there will be one."""
    full, rate = WRITES_A_SECOND, WRITES_A_SECOND
    filled = (
        "CASE WHEN level + (? - refilled) * ? > ? THEN ?"
        " WHEN ? < refilled THEN level ELSE level + (? - refilled) * ? END"
    )
    values = (now, rate, full, full, now, now, rate)
    rows = within.rows(
        f"UPDATE tokens SET level = ({filled}) - 1,"
        " refilled = CASE WHEN ? > refilled THEN ? ELSE refilled END"
        f" WHERE id = ? AND ({filled}) >= 1 RETURNING level",
        (*values, now, now, name, *values),
    )
    if rows:
        return 0.0
    found = within.rows(f"SELECT ({filled}) FROM tokens WHERE id = ?", (*values, name))
    level = float(found[0][0] or 0.0) if found else 0.0
    return max((1 - level) / rate, 1 / rate)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _token(row: Row) -> Token:
    name, org, repo, author, writes, created, expires, revoked = row
    return Token(
        str(name),
        str(org),
        str(repo),
        str(author),
        bool(writes),
        float(created or 0.0),
        None if expires is None else float(expires),
        None if revoked is None else float(revoked),
    )


# --- What a team server refused, for its audit trail: whose token, which repository, what, how
# often.
#
# Only counts are kept, by hour; never a token, a key or a text. A token that is not known has no
# name here, so nothing a stranger sends is written down. A flood costs a counter in the process
# and one small write a second, and an organisation has a bounded number of rows, of which the
# oldest go: the first refusal is on the disk before it is answered, those of the next second with
# it.


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


class RefusalLog:
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


def list_refusals(
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
