"""Tokens: who may read or write which repository of which organisation.

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

from reverie.errors import InvalidInput, NotFound
from reverie.light import dataclass
from reverie.team.database import Row, SqlValue, Transaction
from reverie.team.values import WRITES_A_SECOND, check_repo

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


def listed(within: Transaction) -> list[Token]:
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
