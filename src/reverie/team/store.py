"""What a team server keeps: entries by repository, every version of them, and who wrote it.

A write lands only on the state it was made for: the repository's counter is raised by one
statement that names the tag it expects, and everything else of the write is in the same
transaction. Every statement names organisation and repository. Old versions stay; a tag that was
once given is never given again.
"""

from __future__ import annotations

import json
import secrets as chance
from collections.abc import Callable, Iterable, Mapping, Sequence

from reverie.errors import PathRefused
from reverie.store.paths import check_key, fold_key
from reverie.team import tokens
from reverie.team.database import Database, SqlValue, Transaction, migrate
from reverie.team.protocol import (
    BATCH_BYTES,
    BATCH_ENTRIES,
    BEGINNING,
    REPOSITORY_BYTES,
    REPOSITORY_ENTRIES,
    CountedRefusal,
    EntryChange,
    EntryVersion,
    HttpRefusal,
    RemoteState,
    sha256_of,
    why_no_key,
)
from reverie.team.tokens import RefusalLog, Token

Place = tuple[str, str]
"""An organisation and a repository."""


class TeamStore:
    """The state of all repositories in one database."""

    def __init__(
        self, database: Database, *, now: Callable[[], float], tombstones: bool = False
    ) -> None:
        self.database = database
        self.tombstones = tombstones
        self._now = now
        migrate(database)
        self.refused = RefusalLog(database, now)

    def close(self) -> None:
        self.refused.write()
        self.database.close()

    # Reading

    def token(self, text: str) -> Token | None:
        """Whoever this token stands for, or None."""
        found = self.enter(text, "")
        return found[0] if found else None

    def enter(self, text: str, repo: str) -> tuple[Token, str] | None:
        """A token, and the tag of a repository of its organisation, in one statement."""
        found = self.database.run(lambda within: tokens.find(within, text, self._now(), repo))
        if found is None:
            return None
        token, (nonce, version) = found
        return token, BEGINNING if nonce is None else _tag_of(nonce, version)

    def is_up(self) -> bool:
        """Whether the database answers; raises where it does not."""
        return self.database.run(lambda within: within.rows("SELECT 1")) == [(1,)]

    def tag(self, place: Place) -> str:
        """The tag of a repository's state."""
        return self.database.run(lambda within: _tag(within, place))

    def hashes(self, place: Place) -> RemoteState:
        """Tag, checksums and tombstones, of one moment."""
        return self._state(place, texts=False)

    def contents(self, place: Place) -> RemoteState:
        """The same with all texts, of one moment."""
        return self._state(place, texts=True)

    def _state(self, place: Place, *, texts: bool) -> RemoteState:
        """One statement, so that no write comes in between."""
        text = "v.content" if texts else "NULL"
        rows = self.database.run(
            lambda within: within.rows(
                f"SELECT r.nonce, r.version, e.key, e.sha256, e.size, v.author, {text}"
                " FROM repositories r LEFT JOIN entries e ON e.org = r.org AND e.repo = r.repo"
                " LEFT JOIN versions v ON v.org = e.org AND v.repo = e.repo AND v.key = e.key"
                " AND v.version = e.version"
                " WHERE r.org = ? AND r.repo = ? ORDER BY e.key",
                place,
            )
        )
        if not rows:
            return RemoteState(BEGINNING, {})
        known = [row for row in rows if row[2] is not None and not why_no_key(str(row[2]))]
        there = [row for row in known if row[4] != GONE]
        return RemoteState(
            _tag_of(rows[0][0], rows[0][1]),
            {str(row[2]): str(row[3]) for row in there},
            {str(row[2]): str(row[6]) for row in there} if texts else {},
            {str(row[2]): str(row[3]) for row in known if row[4] == GONE},
            {str(row[2]): str(row[5]) for row in known},
        )

    def log(self, place: Place, most: int = 100) -> list[EntryVersion]:
        """The newest versions of a repository's entries, newest first."""
        rows = self.database.run(
            lambda within: within.rows(
                "SELECT key, version, sha256, author, at, content IS NULL FROM versions"
                " WHERE org = ? AND repo = ? ORDER BY version DESC, key LIMIT ?",
                (*place, most),
            )
        )
        return [
            EntryVersion(
                str(key), int(number or 0), str(sha), str(author), float(at or 0), bool(gone)
            )
            for key, number, sha, author, at, gone in rows
        ]

    def version(self, place: Place, key: str, number: int) -> str | None:
        """The text of one version; None where there is none."""
        if "\0" in key:  # nothing that PostgreSQL could be asked for
            return None
        rows = self.database.run(
            lambda within: within.rows(
                "SELECT content FROM versions WHERE org = ? AND repo = ? AND key = ?"
                " AND version = ?",
                (*place, key, number),
            )
        )
        found = rows[0][0] if rows else None
        return None if found is None else str(found)

    def refusals(self, token: Token, repo: str, most: int = 100) -> list[CountedRefusal]:
        """What was refused that this token may see: its own, and all of its organisation's where
        it is for all repositories. The newest first."""
        own = "" if token.repo == tokens.ALL else token.id
        self.refused.write()
        return self.database.run(
            lambda within: tokens.list_refusals(within, most, token.org, repo, own)
        )

    def all_refusals(self, most: int = 100) -> list[CountedRefusal]:
        """What was refused to anybody, for whoever keeps the database."""
        return self.database.run(lambda within: tokens.list_refusals(within, most))

    # Writing

    def put(self, place: Place, drafts: Sequence[EntryChange], expected: str, token: Token) -> str:
        """Land a batch on the state that `expected` names; the next tag."""
        _check(drafts, deletions=self.tombstones)
        now = self._now()

        def commit_drafts(within: Transaction) -> str:
            wait = tokens.take_write(within, token.id, now)
            if wait:
                raise TooFast(wait)
            number, nonce = _raise_version(within, place, expected)
            sizes = _sizes(within, place, drafts)
            _land(within, place, drafts, number, token, now)
            _count(within, place, drafts, sizes)
            detail = json.dumps({"version": number, "keys": [one.key for one in drafts]})
            _audit(within, now, place, token.id, "put", detail)
            return _tag_of(nonce, number)

        try:
            return self.database.run(commit_drafts, writes=True)
        except TooFast:
            raise
        except HttpRefusal:  # what was refused counts too: its transaction took nothing
            self.database.run(lambda on: tokens.take_write(on, token.id, now), writes=True)
            raise

    # Tokens

    def create_token(
        self,
        *,
        org: str,
        repo: str,
        author: str,
        writes: bool = True,
        expires: float | None = None,
    ) -> tuple[str, Token]:
        """A new token's text, which is never shown again, and what is known of it."""
        now = self._now()

        def create_and_audit(within: Transaction) -> tuple[str, Token]:
            text, one = tokens.create(
                within, org=org, repo=repo, author=author, writes=writes, now=now, expires=expires
            )
            _audit(within, now, (org, repo), one.id, "token created", author)
            return text, one

        return self.database.run(create_and_audit, writes=True)

    def list_tokens(self) -> list[Token]:
        return self.database.run(tokens.list_tokens)

    def revoke_token(self, name: str) -> Token:
        now = self._now()

        def revoke_and_audit(within: Transaction) -> Token:
            one = tokens.revoke(within, name, now)
            _audit(within, now, (one.org, one.repo), one.id, "token revoked", one.author)
            return one

        return self.database.run(revoke_and_audit, writes=True)


GONE = -1
"""The size of an entry that was deleted."""


class TooFast(HttpRefusal, code="too_fast"):
    """More writes than a token may make."""

    def __init__(self, wait: float) -> None:
        super().__init__(429, "Too many writes with this token", do=f"Wait {wait:.2f} seconds")
        self.wait = wait


def _check(drafts: Sequence[EntryChange], *, deletions: bool) -> None:
    """Refuse a batch that no state could take."""
    if len(drafts) > BATCH_ENTRIES:
        raise HttpRefusal(413, f"A batch has at most {BATCH_ENTRIES:,} entries", do="Send several")
    size = sum(one.size for one in drafts)
    if size > BATCH_BYTES:
        alone = [one.key for one in drafts if one.size > BATCH_BYTES]
        raise HttpRefusal(
            413,
            f"A batch has at most {BATCH_BYTES:,} bytes, this one has {size:,}",
            where=", ".join(alone[:20]),
            do="Send it without the entries named" if alone else "Send several",
        )
    folded: dict[str, str] = {}
    for one in drafts:
        _check_one(one, deletions=deletions)
        twin = folded.setdefault(fold_key(one.key), one.key)
        if twin is not one.key:
            raise HttpRefusal(
                400, "Two keys of the batch name one file", where=f"{twin}, {one.key}"
            )


def _check_one(draft: EntryChange, *, deletions: bool) -> None:
    try:
        check_key(draft.key)
    except PathRefused as error:
        raise HttpRefusal(400, error.what, where=error.where) from None
    if why := why_no_key(draft.key):
        raise HttpRefusal(400, f"{why[:1].upper()}{why[1:]}", where=draft.key)
    if draft.content is None:
        if not deletions:
            raise HttpRefusal(400, "This server keeps no deletions", where=draft.key)
        return
    if "\0" in draft.content:
        raise HttpRefusal(400, "The text has a NUL character", where=draft.key)
    if sha256_of(draft.content) != draft.sha256:
        raise HttpRefusal(400, "The SHA-256 does not fit the text", where=draft.key)


def _tag(within: Transaction, place: Place) -> str:
    rows = within.rows("SELECT nonce, version FROM repositories WHERE org = ? AND repo = ?", place)
    return _tag_of(*rows[0]) if rows else BEGINNING


def _tag_of(nonce: SqlValue, version: SqlValue) -> str:
    return f'"{nonce}-{version}"'


def _raise_version(within: Transaction, place: Place, expected: str) -> tuple[int, str]:
    """Raise the counter where the state still is the expected one: this is the only lock."""
    if expected == BEGINNING:
        nonce = chance.token_hex(6)
        made = within.rows(
            "INSERT INTO repositories (org, repo, nonce, version, entries, bytes)"
            " VALUES (?, ?, ?, 1, 0, 0) ON CONFLICT (org, repo) DO NOTHING RETURNING version",
            (*place, nonce),
        )
        if made:
            return 1, nonce
        raise HttpRefusal(412, "Somebody else wrote meanwhile", do="Read the hashes and try again")
    nonce, _, number = expected.strip('"').partition("-")
    if not number.isdigit() or len(number) > 18:
        raise HttpRefusal(412, "This tag was never given", do="Read the hashes and try again")
    rows = within.rows(
        "UPDATE repositories SET version = version + 1"
        " WHERE org = ? AND repo = ? AND nonce = ? AND version = ? RETURNING version",
        (*place, nonce, int(number)),
    )
    if not rows:
        raise HttpRefusal(412, "Somebody else wrote meanwhile", do="Read the hashes and try again")
    return int(rows[0][0] or 0), nonce


def _land(
    within: Transaction,
    place: Place,
    drafts: Sequence[EntryChange],
    number: int,
    token: Token,
    now: float,
) -> None:
    within.many(
        "INSERT INTO versions (org, repo, key, version, sha256, content, author, token, at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (*place, one.key, number, one.sha256, one.content, token.author, token.id, now)
            for one in drafts
        ],
    )
    within.many(
        "INSERT INTO entries (org, repo, key, folded, version, sha256, size)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (org, repo, key) DO UPDATE"
        " SET version = excluded.version, sha256 = excluded.sha256, size = excluded.size",
        [
            (
                *(*place, one.key, fold_key(one.key), number, one.sha256),
                GONE if one.content is None else one.size,
            )
            for one in drafts
        ],
    )


def _sizes(within: Transaction, place: Place, drafts: Sequence[EntryChange]) -> dict[str, int]:
    """What the batch's keys hold so far; refuses one that some file system takes for another."""
    wanted = {fold_key(one.key): one.key for one in drafts}
    found: dict[str, int] = {}
    for some in _chunks(sorted(wanted), 400):
        marks = ", ".join("?" * len(some))
        rows = within.rows(
            f"SELECT folded, key, size FROM entries WHERE org = ? AND repo = ?"
            f" AND folded IN ({marks})",
            (*place, *some),
        )
        for folded, key, size in rows:
            now = wanted[str(folded)]
            if now != key and why_no_key(str(key)):  # no client sees it; its versions stay
                within.rows(
                    "UPDATE entries SET key = ? WHERE org = ? AND repo = ? AND key = ?",
                    (now, *place, key),
                )
            elif now != key:
                raise HttpRefusal(
                    409,
                    "Another key is the same but for case or accents",
                    where=f"{now}, {key}",
                    do="Use the key that is there",
                )
            found[now] = int(size or 0)
    return found


def _chunks(items: Sequence[str], size: int) -> Iterable[Sequence[str]]:
    return (items[at : at + size] for at in range(0, len(items), size))


def _count(
    within: Transaction, place: Place, drafts: Sequence[EntryChange], sizes: Mapping[str, int]
) -> None:
    """Keep a repository within its limits; what it holds is counted by what changes."""
    before = [sizes[one.key] for one in drafts if sizes.get(one.key, GONE) != GONE]
    after = [one.size for one in drafts if one.content is not None]
    rows = within.rows(
        "UPDATE repositories SET entries = entries + ?, bytes = bytes + ?"
        " WHERE org = ? AND repo = ? RETURNING entries, bytes",
        (len(after) - len(before), sum(after) - sum(before), *place),
    )
    entries, size = int(rows[0][0] or 0), int(rows[0][1] or 0)
    if entries > REPOSITORY_ENTRIES or size > REPOSITORY_BYTES:
        raise HttpRefusal(
            413,
            f"A repository has at most {REPOSITORY_ENTRIES:,} entries"
            f" and {REPOSITORY_BYTES:,} bytes",
            do="Remove what is no longer needed",
        )


def _audit(
    within: Transaction, now: float, place: Place, token: str, action: str, detail: str
) -> None:
    within.rows(
        "INSERT INTO audit (id, at, org, repo, token, action, detail) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (f"{now:017.6f}-{chance.token_hex(4)}", now, *place, token, action, detail),
    )
