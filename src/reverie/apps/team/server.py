"""HTTP over `team.store`, strict input.

The team server: one repository's shared memory over HTTP, for whoever has a token for it.

    GET  /api/team_memory?repo=owner/name                entries, checksums, ETag
    GET  /api/team_memory?repo=owner/name&view=hashes    checksums alone
    PUT  /api/team_memory?repo=owner/name                a batch, guarded by If-Match
    GET  /api/team_memory/log?repo=owner/name            who wrote what, and when
    GET  /api/team_memory/refused?repo=owner/name        what was refused to whom, how often
    GET  /api/team_memory/versions?repo=…&key=…&version=N
    GET  /health, /metrics, /openapi.json

Every answer is JSON but for the metrics. A token counts in the Authorization header alone. A
repository that a token does not cover is answered as one that is not there. A write without
If-Match gets 428, with a tag that no longer holds 412, with anything that is not one strong tag
400. Nothing is kept in the process: any number of them may serve one database.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

import anyio.to_thread
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from reverie.apps.team.openapi import ServerFigures, document
from reverie.errors import InvalidInput
from reverie.http_server import BODY_SECONDS, BodyCutOff, BodyTooLarge, BodyTooSlow, read_body
from reverie.team.database import DatabaseAway
from reverie.team.protocol import (
    BODY_BYTES,
    EntryChange,
    HttpRefusal,
    RemoteState,
    check_repo,
    is_sha256,
    sha256_of,
)
from reverie.team.store import Place, TeamStore, TooFast
from reverie.team.tokens import RefusedRequest, public_part

if TYPE_CHECKING:
    from starlette.requests import Request

    from reverie.team.tokens import Token

T = TypeVar("T")
PATHS = ("/api/team_memory", "/api/claude_code/team_memory")
"""Ours, and the one that public write-ups name."""
LOG_LINES = 1_000
_LOG = logging.getLogger("reverie.team")
_Answer = Callable[["Request", "Token", Place], Awaitable[Response]]


def app(store: TeamStore, *, body_seconds: float = BODY_SECONDS) -> Starlette:
    """The application over one store."""
    doors = TeamRoutes(store, body_seconds)
    routes = [
        Route("/health", doors.health, methods=["GET"]),
        Route("/metrics", doors.metrics, methods=["GET"]),
        Route("/openapi.json", doors.openapi, methods=["GET"]),
    ]
    for path in PATHS:
        routes += [
            Route(path, doors.memory, methods=["GET", "PUT"]),
            Route(f"{path}/log", doors.log, methods=["GET"]),
            Route(f"{path}/refused", doors.refused, methods=["GET"]),
            Route(f"{path}/versions", doors.version, methods=["GET"]),
        ]
    handlers = {404: _nothing, 405: _nothing, 500: _server_error}
    return Starlette(routes=routes, exception_handlers=handlers)


class TeamRoutes:
    """One handler for each path."""

    def __init__(self, store: TeamStore, body_seconds: float) -> None:
        self.store = store
        self.body_seconds = body_seconds
        self.counts = ServerFigures()
        self._is_away = False

    async def memory(self, request: Request) -> Response:
        answer = self._write if request.method == "PUT" else self._read
        return await self._answer_request(request, answer)

    async def log(self, request: Request) -> Response:
        return await self._answer_request(request, self._log)

    async def refused(self, request: Request) -> Response:
        return await self._answer_request(request, self._answer_refusals)

    async def version(self, request: Request) -> Response:
        return await self._answer_request(request, self._version)

    async def health(self, request: Request) -> Response:
        del request
        try:
            await _run_in_thread(self.store.is_up)
        except DatabaseAway as error:
            return JSONResponse({"status": "down", "error": error.what}, 503)
        return JSONResponse({"status": "up", "database": self.store.database.kind})

    async def metrics(self, request: Request) -> Response:
        del request
        return PlainTextResponse(
            self.counts.text(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    async def openapi(self, request: Request) -> Response:
        del request
        return JSONResponse(document())

    # What is behind a token

    async def _answer_request(self, request: Request, answer: _Answer) -> Response:
        with self.counts.timed(request.method) as told:
            try:
                response = await self._answer_checked(request, answer)
                self._is_away = False
            except HttpRefusal as error:
                response = _refusal(error)
                await self._record_refusal(request, error.status)
            except DatabaseAway as error:
                if not self._is_away:
                    _LOG.warning("%s; requests get 503 until it does", error.what)
                self._is_away = True
                response = _refusal(HttpRefusal(503, error.what, do="Try again later"))
                response.headers["Retry-After"] = "5"
            told(response.status_code)
            return response

    async def _answer_checked(self, request: Request, answer: _Answer) -> Response:
        if {"transfer-encoding", "content-length"} <= set(request.headers):
            raise HttpRefusal(400, "A body has one length", do="Leave out one of the two headers")
        repos = request.query_params.getlist("repo")
        repo = repos[0] if len(repos) == 1 else ""
        token, request.state.tag = await self._enter(request, repo)
        request.state.who = (token.id, token.org, "")
        try:
            check_repo(repo)
        except InvalidInput as error:
            raise HttpRefusal(400, error.what, where=error.where) from None
        if not token.covers(repo):
            raise HttpRefusal(404, "There is no such repository", where=repo)
        request.state.who = (token.id, token.org, repo)
        return await answer(request, token, (token.org, repo))

    async def _record_refusal(self, request: Request, status: int) -> None:
        """Keep that something was refused, by what is known of whoever asked."""
        who = getattr(request.state, "who", (public_part(_bearer(request)), "", ""))
        if self.store.refused.count(RefusedRequest(status, *who)):
            await _run_in_thread(self.store.refused.write)

    async def _enter(self, request: Request, repo: str) -> tuple[Token, str]:
        """Who asks, and the tag of what is asked for."""
        found = None
        if text := _bearer(request):
            found = await _run_in_thread(partial(self.store.enter, text, repo.replace("\0", "")))
        if found is None:
            raise HttpRefusal(401, "A valid token is needed", do="Send Authorization: Bearer TOKEN")
        return found

    async def _read(self, request: Request, token: Token, place: Place) -> Response:
        del token
        views = request.query_params.getlist("view")
        if views not in ([], ["hashes"]):
            raise HttpRefusal(400, "The only view is hashes")
        wanted = none_match(request.headers.getlist("if-none-match"))
        if request.state.tag in wanted:
            return Response(status_code=304, headers={"ETag": request.state.tag})
        look = self.store.hashes if views else self.store.contents
        return await _run_in_thread(lambda: _state(look(place)))  # megabytes of JSON

    async def _write(self, request: Request, token: Token, place: Place) -> Response:
        if not token.writes:
            raise HttpRefusal(403, "This token may only read")
        expected = if_match(request.headers.getlist("if-match"))
        body = await self._body(request)
        drafts = await _run_in_thread(partial(batch_in, body, request.headers))
        tag = await _run_in_thread(partial(self.store.put, place, drafts, expected, token))
        done = {"written": [one.key for one in drafts], "etag": tag}
        return JSONResponse(done, headers={"ETag": tag})

    async def _log(self, request: Request, token: Token, place: Place) -> Response:
        del token
        most = _number(request.query_params.get("limit", "100"), "limit", LOG_LINES)
        rows = await _run_in_thread(partial(self.store.log, place, most))
        told = [
            {
                "key": one.key,
                "version": one.version,
                "sha256": one.sha256,
                "author": one.author,
                "at": one.at,
                "deleted": one.deleted,
            }
            for one in rows
        ]
        return JSONResponse({"versions": told})

    async def _answer_refusals(self, request: Request, token: Token, place: Place) -> Response:
        most = _number(request.query_params.get("limit", "100"), "limit", LOG_LINES)
        rows = await _run_in_thread(partial(self.store.refusals, token, place[1], most))
        return JSONResponse({"refused": [asdict(one) for one in rows]})

    async def _version(self, request: Request, token: Token, place: Place) -> Response:
        del token
        key = request.query_params.get("key", "")
        number = _number(request.query_params.get("version", ""), "version", 10**18)
        found = await _run_in_thread(partial(self.store.version, place, key, number))
        if found is None:
            raise HttpRefusal(404, "There is no such version", where=key[:200])
        return JSONResponse({"key": key, "version": number, "content": found})

    async def _body(self, request: Request) -> bytes:
        try:
            return await read_body(request, BODY_BYTES, self.body_seconds)
        except BodyTooLarge:
            raise HttpRefusal(413, f"A body has at most {BODY_BYTES:,} bytes") from None
        except BodyTooSlow:
            raise HttpRefusal(408, "The body took too long") from None
        except BodyCutOff:
            raise HttpRefusal(400, "The request ended before its body did") from None


def _bearer(request: Request) -> str:
    """The token's text, or "" where none is given in the one place where it counts."""
    given = request.headers.getlist("authorization")
    kind, _, text = (given[0] if len(given) == 1 else "").partition(" ")
    return text if kind.lower() == "bearer" and len(text) < 200 else ""


def _state(state: RemoteState) -> Response:
    told: dict[str, object] = {
        "checksums": dict(state.checksums),
        "tombstones": dict(state.tombstones),
        "authors": dict(state.authors),
        "etag": state.tag,
    }
    if state.contents or not state.checksums:
        told["entries"] = dict(state.contents)
    return JSONResponse(told, headers={"ETag": state.tag, "Cache-Control": "no-store"})


def _number(text: str, name: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) <= most):
        raise HttpRefusal(400, f"{name} is a whole number from 1 to {most:,}")
    return int(text)


def _refusal(error: HttpRefusal) -> Response:
    told = {"what": error.what, "where": error.where, "do": error.do}
    body = json.dumps({"error": {k: v for k, v in told.items() if v}}, ensure_ascii=True)
    headers: dict[str, str] = {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, TooFast):
        headers["Retry-After"] = str(max(1, round(error.wait)))
    return Response(body, error.status, headers, "application/json")


async def _nothing(request: Request, problem: Exception) -> Response:
    status = 405 if getattr(problem, "status_code", 404) == 405 else 404
    said = f"{request.method} {request.url.path[:200]} is not served here"
    response = _refusal(HttpRefusal(status, said))
    allowed = cast("Mapping[str, str] | None", getattr(problem, "headers", None)) or {}
    response.headers.update(dict(allowed))
    return response


async def _server_error(request: Request, problem: Exception) -> Response:
    del request, problem
    return _refusal(HttpRefusal(500, "Something went wrong in the server", do="See its log"))


async def _run_in_thread(work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work)


# --- What a client sends, read strictly: a batch of entries, and the tags of conditions.
#
# JSON with a key given twice, a wrong type, more depth than a batch has or anything that is not
# known is refused: a server that guesses stores what nobody meant.


_STRONG = re.compile(r'"[!#-~]{1,100}"', re.ASCII)
_ANY = re.compile(r'(?:W/)?("[!#-~]{0,100}")', re.ASCII)
_DEPTH = 3
_KNOWN = {"entries", "checksums", "deleted"}


def if_match(given: Sequence[str]) -> str:
    """The one strong tag of an If-Match."""
    if not given:
        raise HttpRefusal(
            428, "A write needs If-Match", do="Read the hashes, and send their ETag in If-Match"
        )
    if len(given) > 1 or not _STRONG.fullmatch(given[0]):
        raise HttpRefusal(400, "If-Match is one strong tag", do='Send it as it came: "…"')
    return given[0]


def none_match(given: Sequence[str]) -> frozenset[str]:
    """The tags of an If-None-Match, compared weakly."""
    return frozenset(tag for one in given for tag in _ANY.findall(one))


def batch_in(body: bytes, headers: Mapping[str, str]) -> list[EntryChange]:
    """The changes that a body asks for."""
    if headers.get("content-encoding", "identity").lower() not in ("identity", ""):
        raise HttpRefusal(415, "A body is sent as it is, without a Content-Encoding")
    kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HttpRefusal(415, "A body is JSON", do="Send Content-Type: application/json")
    found = _object(_parse_body(body), "The body")
    if unknown := sorted(set(found) - _KNOWN):
        raise HttpRefusal(400, "Unknown members", where=", ".join(unknown)[:200])
    sums = _object(found.get("checksums", {}), "checksums")
    contents = _object(found.get("entries", {}), "entries")
    if strays := sorted(set(sums) - set(contents)):
        raise HttpRefusal(400, "A checksum without its entry", where=strays[0][:200])
    drafts = [_draft(key, value, sums.get(key)) for key, value in contents.items()]
    gone = found.get("deleted", [])
    if not isinstance(gone, list):
        raise HttpRefusal(400, "deleted is a list of keys")
    for key in cast("list[object]", gone):
        if not isinstance(key, str) or key in contents:
            raise HttpRefusal(400, "deleted is a list of keys that are not among the entries")
        drafts.append(EntryChange(_text(key, key), None, ""))
    if not drafts:
        raise HttpRefusal(400, "The batch is empty")
    return drafts


def _draft(key: str, value: object, checksum: object) -> EntryChange:
    if not isinstance(value, str):
        raise HttpRefusal(400, "An entry is a text", where=key[:200])
    content = _text(value, key)
    known = sha256_of(content) if checksum is None else checksum
    if not isinstance(known, str) or not is_sha256(known):
        raise HttpRefusal(400, "A checksum is a SHA-256 in 64 small hex digits", where=key[:200])
    return EntryChange(_text(key, key), content, known)


def _text(text: str, key: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise HttpRefusal(400, "Not valid Unicode", where=ascii(key)[:200]) from None
    return text


def _object(value: object, name: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise HttpRefusal(400, f"{name} is not an object")
    return cast("dict[str, object]", value)


def _parse_body(body: bytes) -> object:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise HttpRefusal(400, "The body is not UTF-8") from None
    if _deeper(text):
        raise HttpRefusal(400, f"The body is nested more than {_DEPTH} deep")
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_constant)
    except ValueError:
        raise HttpRefusal(400, "The body is not JSON") from None
    except RecursionError:
        raise HttpRefusal(400, f"The body is nested more than {_DEPTH} deep") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise HttpRefusal(400, "A member is given twice")
    return found


def _constant(name: str) -> object:
    raise HttpRefusal(400, f"{name} is not JSON")


_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)


def _deeper(text: str) -> bool:
    """Whether brackets outside of strings go deeper than a batch does."""
    depth = 0
    for sign in re.findall(r"[\[\]{}]", _STRING.sub("", text)):
        depth += 1 if sign in "[{" else -1
        if depth > _DEPTH:
            return True
    return False
