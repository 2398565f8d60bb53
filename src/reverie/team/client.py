"""A team server, spoken to from here: bounded, never redirected, believed in nothing.

Every answer is read to a limit, parsed strictly and checked: keys by the same guard as local
ones, texts by their SHA-256. A redirect is not followed, so a token goes to the one host it was
given for. Errors say whether trying again can help: `Offline` may pass by itself, `Permanent`
stays until somebody changes something, `Stale` means that somebody else wrote first.

It blocks: callers run it in a worker thread.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast
from urllib.parse import quote, urlsplit

from reverie.errors import InvalidInput, PathRefused, ReverieError
from reverie.light import dataclass
from reverie.store.paths import check_key
from reverie.team.protocol import (
    REPOSITORY_BYTES,
    REPOSITORY_ENTRIES,
    CountedRefusal,
    EntryChange,
    EntryVersion,
    RemoteState,
    check_repo,
    is_sha256,
    sha256_of,
)

SECONDS = 30.0
LARGEST = 6 * REPOSITORY_BYTES
"""Bytes of an answer: every byte of every text may be escaped."""
_SMALL = 4_000_000
_PATH = "/api/team_memory"


class Offline(ReverieError, code="offline"):
    """The server cannot be reached, or not now."""

    def __init__(self, what: str, *, where: str = "", do: str = "", after: float = 0.0) -> None:
        super().__init__(what, where=where, do=do)
        self.after = after


class Permanent(ReverieError, code="permanent"):
    """It will fail again until somebody changes something."""


class Stale(ReverieError, code="stale"):
    """Somebody else wrote since the tag was read."""


class Hostile(Permanent, code="hostile"):
    """The server's answer breaks a rule that an honest one keeps."""


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class TeamClient:
    """One repository on one server."""

    def __init__(
        self,
        url: str,
        token: str,
        repo: str,
        *,
        seconds: float = SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise InvalidInput(
                "The team server's address is not one", where=url[:200], do="Use https://HOST"
            )
        if parts.username or parts.password:
            raise InvalidInput(
                "The team server's address has a login in it", do="Give the token apart"
            )
        if not token.isascii() or not token.isprintable() or " " in token:
            raise InvalidInput("The token is not one", do="Copy it again")
        self.url = url.rstrip("/")
        self.repo = check_repo(repo)
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port
        self._base = parts.path.rstrip("/")
        self._token = token
        self._seconds = seconds
        self._sleep = sleep

    def state(self, known: str = "") -> RemoteState | None:
        """All texts; None where they are as the tag `known` says."""
        return self._state(self._request_state(known=known), contents=True)

    def hashes(self, known: str = "") -> RemoteState | None:
        """The checksums alone."""
        return self._state(self._request_state("&view=hashes", known=known), contents=False)

    def put(self, drafts: Sequence[EntryChange], expected: str) -> str:
        """Write a batch on the state that the tag names; the next tag."""
        texts = {one.key: one.content for one in drafts if one.content is not None}
        body = {
            "entries": texts,
            "checksums": {one.key: one.sha256 for one in drafts if one.content is not None},
            "deleted": [one.key for one in drafts if one.content is None],
        }
        data = json.dumps({k: v for k, v in body.items() if v}, ensure_ascii=False).encode()
        answer = self._write_answer(expected, data)
        if answer.status == 412:
            raise Stale("Somebody else wrote meanwhile", where=self.repo)
        self._must_be(answer, 200)
        return _tag_in(answer)

    def log(self, most: int = 100) -> list[EntryVersion]:
        """Who wrote what, the newest first."""
        answer = self._send("GET", self._where("/log", f"&limit={most}"), {}, None, _SMALL)
        self._must_be(answer, 200)
        rows = _object(answer).get("versions")
        if not isinstance(rows, list):
            raise _hostile("The log is not one")
        return [_version_in(row) for row in cast("list[object]", rows)[:most]]

    def refused(self, most: int = 100) -> list[CountedRefusal]:
        """What the server refused, as far as this token may know it; the newest first."""
        answer = self._send("GET", self._where("/refused", f"&limit={most}"), {}, None, _SMALL)
        self._must_be(answer, 200)
        rows = _object(answer).get("refused")
        if not isinstance(rows, list):
            raise _hostile("The list of refusals is not one")
        return [_refusal_in(row) for row in cast("list[object]", rows)[:most]]

    def version(self, key: str, number: int) -> str:
        """The text of one version."""
        more = f"&key={quote(key, safe='')}&version={number}"
        answer = self._send("GET", self._where("/versions", more), {}, None, _SMALL)
        self._must_be(answer, 200)
        found = _object(answer).get("content")
        if not isinstance(found, str):
            raise _hostile("The version is not a text")
        return found

    # Asking

    def _write_answer(self, expected: str, data: bytes) -> ServerAnswer:
        """The answer to a write; one that came too soon is sent again when it may, within the
        time that a request has."""
        left = self._seconds
        while True:
            answer = self._send("PUT", self._where(), {"If-Match": expected}, data, _SMALL)
            wait = _after(answer)
            if answer.status != 429 or not 0 < wait <= left:
                return answer
            left -= wait
            self._sleep(wait)

    def _request_state(self, more: str = "", *, known: str) -> ServerAnswer:
        headers = {"If-None-Match": known} if known else {}
        return self._send("GET", self._where("", more), headers, None, LARGEST)

    def _where(self, below: str = "", more: str = "") -> str:
        return f"{self._base}{_PATH}{below}?repo={quote(self.repo, safe='')}{more}"

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, most: int
    ) -> ServerAnswer:
        connection = self._connection()
        sent = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", **headers}
        if body is not None:
            sent["Content-Type"] = "application/json"
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            data = response.read(most + 1)
            if len(data) > most:
                raise _hostile(f"The answer is over {most:,} bytes")
            found = {name.lower(): value for name, value in response.getheaders()}
            return ServerAnswer(response.status, found, data)
        except (OSError, http.client.HTTPException) as error:
            raise Offline(
                f"The team server does not answer: {error or type(error).__name__}",
                where=self.url,
                do="It is tried again later",
            ) from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._secure:
            return http.client.HTTPSConnection(
                self._host,
                self._port,
                timeout=self._seconds,
                context=ssl.create_default_context(),
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._seconds)

    # Reading

    def _must_be(self, answer: ServerAnswer, wanted: int) -> None:
        status = answer.status
        if status == wanted:
            return
        said = _error_text(answer)
        if status in (408, 425, 429) or status >= 500:
            wait = min(_after(answer), 600)
            raise Offline(said, where=self.url, do="It is tried again later", after=wait)
        if 300 <= status < 400:
            raise Hostile(
                "The team server sends us elsewhere", where=self.url, do="Set its new address"
            )
        do = {
            401: "Make a new token and set REVERIE_TEAM_TOKEN",
            403: "Use a token that may write",
            404: "Use a token for this repository",
        }.get(status, "See the server's log")
        raise Permanent(said, where=self.url, do=do)

    def _state(self, answer: ServerAnswer, *, contents: bool) -> RemoteState | None:
        if answer.status == 304:
            return None
        self._must_be(answer, 200)
        found = _object(answer)
        sums = _texts(found.get("checksums", {}), "checksums")
        gone = _texts(found.get("tombstones", {}), "tombstones")
        if len(sums) + len(gone) > REPOSITORY_ENTRIES * 2:
            raise _hostile("There are more entries than a repository may have")
        for key, sha in (*sums.items(), *gone.items()):
            _check(key, sha if key in sums else "")
        texts = _texts(found.get("entries", {}), "entries") if contents else {}
        if contents and texts.keys() != sums.keys():
            raise _hostile("Entries and checksums do not belong together")
        for key, text in texts.items():
            if sha256_of(text) != sums[key]:
                raise _hostile("A text does not have its SHA-256", key)
        named = _texts(found.get("authors", {}), "authors")
        authors = {key: who for key, who in named.items() if who.isprintable() and len(who) <= 100}
        return RemoteState(_tag_in(answer), sums, texts, gone, authors)


def _hostile(what: str, where: str = "") -> Hostile:
    return Hostile(what, where=where[:200], do="Nothing was taken; ask whoever runs the server")


def _after(answer: ServerAnswer) -> float:
    """The seconds that a server asks to wait, or 0."""
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _error_text(answer: ServerAnswer) -> str:
    """What an error says, if it is short and plain."""
    try:
        found = json.loads(answer.body[:10_000])
        what = found["error"]["what"]
    except (ValueError, KeyError, TypeError, RecursionError):
        what = ""
    plain = what if isinstance(what, str) and what.isprintable() else ""
    return f"The team server answers {answer.status}" + (f": {plain[:200]}" if plain else "")


def _object(answer: ServerAnswer) -> dict[str, object]:
    try:
        found = json.loads(answer.body.decode())
    except (ValueError, RecursionError):
        raise _hostile("The answer is not JSON") from None
    if not isinstance(found, dict):
        raise _hostile("The answer is not an object")
    return cast("dict[str, object]", found)


def _texts(value: object, name: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _hostile(f"{name} is not an object")
    found = cast("dict[str, object]", value)
    for key, text in found.items():
        if not isinstance(text, str):
            raise _hostile(f"{name} has something that is not a text", key)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _hostile(f"{name} has a text that is not Unicode", ascii(key)) from None
    return cast("dict[str, str]", found)


def _check(key: str, sha: str) -> None:
    try:
        if check_key(key) != key:
            raise _hostile("A key is not in its canonical spelling", key)
    except PathRefused as error:
        raise _hostile(f"A key leads elsewhere: {error.what}", ascii(key)) from None
    if sha and not is_sha256(sha):
        raise _hostile("A checksum is not one", key)


def _tag_in(answer: ServerAnswer) -> str:
    tag = answer.headers.get("etag", "")
    if not (2 < len(tag) <= 102 and tag[0] == tag[-1] == '"' and tag.isascii()):
        raise _hostile("The answer has no tag")
    return tag


def _version_in(row: object) -> EntryVersion:
    if not isinstance(row, dict):
        raise _hostile("The log is not one")
    one = cast("dict[str, object]", row)
    key, number, sha, author, at = (
        one.get(name) for name in ("key", "version", "sha256", "author", "at")
    )
    fits = isinstance(key, str) and isinstance(sha, str) and isinstance(author, str)
    if not (fits and isinstance(number, int) and isinstance(at, int | float)):
        raise _hostile("The log is not one")
    _check(str(key), "")
    return EntryVersion(
        str(key), number, str(sha), str(author), float(at), one.get("deleted") is True
    )


def _refusal_in(row: object) -> CountedRefusal:
    if not isinstance(row, dict):
        raise _hostile("The list of refusals is not one")
    one = cast("dict[str, object]", row)
    texts = [one.get(name) for name in ("org", "repo", "token", "author")]
    status, times = one.get("status"), one.get("times")
    begun, latest = one.get("begun"), one.get("latest")
    if (
        isinstance(status, int)
        and isinstance(times, int)
        and isinstance(begun, int | float)
        and isinstance(latest, int | float)
        and all(isinstance(text, str) for text in texts)
    ):
        org, repo, token, author = map(str, texts)
        return CountedRefusal(org, repo, token, author, status, times, begun, latest)
    raise _hostile("The list of refusals is not one")
