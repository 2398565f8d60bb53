"""The page as a Starlette application: who may ask, which screen answers, what an error says."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias
from urllib.parse import parse_qs

from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from reverie.apps.web import (
    dream,
    fleet,
    health,
    memories,
    moving,
    projects,
    recall,
    review,
    savings,
    sessions,
    team,
)
from reverie.apps.web.desk import HERE, Ask, Desk
from reverie.apps.web.events import EventStream
from reverie.apps.web.gate import Gate, Sealed, packs, refusal
from reverie.errors import Held, InvalidInput, NotFound, ReverieError
from reverie.serving import BodyCutOff, BodyTooLarge, BodyTooSlow, read_body
from reverie.store.files import Changed

Screen: TypeAlias = Callable[[Desk, Ask], Response]
MAX_FORM = 2_000_000
_PACKED = 1_000
_STATIC = HERE / "static"


def application(desk: Desk, gate: Gate) -> ASGIApp:
    """The page of one project."""
    get: dict[str, Screen] = {}
    post: dict[str, Screen] = {}
    for screen in (
        sessions,
        moving,
        memories,
        review,
        recall,
        dream,
        health,
        team,
        fleet,
        savings,
        projects,
    ):
        get |= screen.GET
        post |= screen.POST
    routes = [
        Route("/", partial(_enter, desk, gate)),
        Route("/events", partial(_events, desk, gate)),
        Route("/static/{name}", _static),
        *(_route(desk, gate, path, screen, "GET") for path, screen in get.items()),
        *(_route(desk, gate, path, screen, "POST") for path, screen in post.items()),
    ]
    handlers = {404: partial(_unknown, desk, gate), 405: partial(_unknown, desk, gate)}
    return Sealed(Starlette(routes=routes, exception_handlers=handlers))


def _route(desk: Desk, gate: Gate, path: str, screen: Screen, method: str) -> Route:
    async def endpoint(request: Request) -> Response:
        refused = _refused(desk, gate, request)
        if refused is not None:
            return refused
        try:
            form = await _form(request) if method == "POST" else {}
        except (BodyTooLarge, BodyTooSlow, BodyCutOff):
            return _message(desk, 413, "It is too much at once", "Save less text at a time.")
        live = request.headers.get("hx-request") == "true"
        ask = Ask(dict(request.path_params), dict(request.query_params), form, live)
        answer = await to_thread.run_sync(partial(_answered, desk, screen, ask))
        return _packed(request, answer)

    return Route(path, endpoint, methods=[method])


def _answered(desk: Desk, screen: Screen, ask: Ask) -> Response:
    try:
        return screen(desk, ask)
    except NotFound as error:
        return fault(desk, 404, error)
    except (Changed, Held) as error:
        return fault(desk, 409, error)
    except InvalidInput as error:
        return fault(desk, 400, error)
    except ReverieError as error:
        return fault(desk, 500, error)


def fault(desk: Desk, status: int, error: ReverieError) -> Response:
    return _message(desk, status, str(error.what), error.do, error.where)


def _message(desk: Desk, status: int, what: str, do: str = "", where: str = "") -> Response:
    return desk.page("message.html", status, what=what, do=do, where=where, screen="")


async def _form(request: Request) -> dict[str, tuple[str, ...]]:
    body = await read_body(request, MAX_FORM)
    found = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=2_000)
    return {name: tuple(values) for name, values in found.items()}


# --- getting in


def _refused(desk: Desk, gate: Gate, request: Request) -> Response | None:
    why = refusal(request)
    if why:
        return _outside(desk, why)
    return None if gate.knows(request) else _outside(desk, "")


def _outside(desk: Desk, why: str) -> Response:
    text = desk.bare("outside.html", why=why)
    return HTMLResponse(text, 403)


async def _enter(desk: Desk, gate: Gate, request: Request) -> Response:
    why = refusal(request)
    if why:
        return _outside(desk, why)
    token = request.query_params.get("token", "")
    if token and gate.exchange(token):
        # A page of ours that leads on, not a redirect: the cookie is not sent along with one that
        # another program's page began.
        answer = HTMLResponse(desk.bare("entered.html"))
        answer.headers["set-cookie"] = gate.cookie(request)
        return answer
    if gate.knows(request):
        return desk.to("/sessions")
    return _outside(desk, "")


async def _events(desk: Desk, gate: Gate, request: Request) -> Response | EventStream:
    return _refused(desk, gate, request) or EventStream(desk.hub)


async def _unknown(desk: Desk, gate: Gate, request: Request, error: Exception) -> Response:
    del error
    refused = _refused(desk, gate, request)
    return refused or _message(desk, 404, "There is no such page", "The menu has those there are.")


# --- files of ours


async def _static(request: Request) -> Response:
    """A file of the package; it holds nothing of the user's, so it needs no cookie."""
    name = request.path_params["name"]
    if refusal(request) or name not in _files():
        return Response("There is no such file.", 404, media_type="text/plain")
    data = (_STATIC / name).read_bytes()
    mark = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
    headers = {"etag": mark, "cache-control": "private, max-age=0, must-revalidate"}
    if request.headers.get("if-none-match") == mark:
        return Response(status_code=304, headers=headers)
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return _packed(request, Response(data, media_type=kind, headers=headers))


def _files() -> Sequence[str]:
    return [one.name for one in _STATIC.iterdir() if one.suffix in (".css", ".js", ".svg")]


def _packed(request: Request, answer: Response) -> Response:
    if len(answer.body) < _PACKED or not packs(request.headers):
        return answer
    answer.body = gzip.compress(bytes(answer.body), 6, mtime=0)
    answer.headers["content-encoding"] = "gzip"
    answer.headers["content-length"] = str(len(answer.body))
    answer.headers["vary"] = "accept-encoding"
    return answer
