"""The Starlette application and its gate.

The page as a Starlette application: who may ask, which screen answers, what an error says.
"""

from __future__ import annotations

import gzip
import hashlib
import hmac
import mimetypes
import secrets
from collections.abc import Callable, MutableMapping, Sequence
from functools import partial
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from anyio import to_thread
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reverie.apps.web import dream, fleet, health, memories, review, savings, sessions, team
from reverie.apps.web.events import EventStream
from reverie.apps.web.workspace import HERE, ScreenRequest, Workspace
from reverie.errors import Held, InvalidInput, NotFound, ReverieError
from reverie.http_server import LOCAL, BodyCutOff, BodyTooLarge, BodyTooSlow, read_body
from reverie.store.files import Changed

Screen: TypeAlias = Callable[[Workspace, ScreenRequest], Response]
MAX_FORM = 2_000_000
_PACKED = 1_000
_STATIC = HERE / "static"


def application(desk: Workspace, gate: Gate) -> ASGIApp:
    """The page of one project."""
    get: dict[str, Screen] = {
        **sessions.GET,
        **review.MOVING_GET,
        **memories.GET,
        **review.GET,
        **memories.RECALL_GET,
        **dream.GET,
        **health.GET,
        **team.GET,
        **fleet.GET,
        **savings.GET,
        **PROJECTS_GET,
    }
    post: dict[str, Screen] = {
        **sessions.POST,
        **review.MOVING_POST,
        **memories.POST,
        **review.POST,
        **memories.RECALL_POST,
        **dream.POST,
        **health.POST,
        **team.POST,
        **fleet.POST,
        **savings.POST,
        **PROJECTS_POST,
    }
    routes = [
        Route("/", partial(_enter, desk, gate)),
        Route("/events", partial(_events, desk, gate)),
        Route("/static/{name}", _static),
        *(_route(desk, gate, path, screen, "GET") for path, screen in get.items()),
        *(_route(desk, gate, path, screen, "POST") for path, screen in post.items()),
    ]
    handlers = {404: partial(_unknown, desk, gate), 405: partial(_unknown, desk, gate)}
    return SecurityHeaders(Starlette(routes=routes, exception_handlers=handlers))


def _route(desk: Workspace, gate: Gate, path: str, screen: Screen, method: str) -> Route:
    async def endpoint(request: Request) -> Response:
        refused = _refusal_response(desk, gate, request)
        if refused is not None:
            return refused
        try:
            form = await _form(request) if method == "POST" else {}
        except (BodyTooLarge, BodyTooSlow, BodyCutOff):
            return _message(desk, 413, "It is too much at once", "Save less text at a time.")
        live = request.headers.get("hx-request") == "true"
        ask = ScreenRequest(dict(request.path_params), dict(request.query_params), form, live)
        answer = await to_thread.run_sync(partial(_run_screen, desk, screen, ask))
        return _compress_answer(request, answer)

    return Route(path, endpoint, methods=[method])


def _run_screen(desk: Workspace, screen: Screen, ask: ScreenRequest) -> Response:
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


def fault(desk: Workspace, status: int, error: ReverieError) -> Response:
    return _message(desk, status, str(error.what), error.do, error.where)


def _message(desk: Workspace, status: int, what: str, do: str = "", where: str = "") -> Response:
    return desk.page("message.html", status, what=what, do=do, where=where, screen="")


async def _form(request: Request) -> dict[str, tuple[str, ...]]:
    body = await read_body(request, MAX_FORM)
    found = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=2_000)
    return {name: tuple(values) for name, values in found.items()}


# --- getting in


def _refusal_response(desk: Workspace, gate: Gate, request: Request) -> Response | None:
    why = refusal(request)
    if why:
        return _outside(desk, why)
    return None if gate.knows(request) else _outside(desk, "")


def _outside(desk: Workspace, why: str) -> Response:
    text = desk.bare("outside.html", why=why)
    return HTMLResponse(text, 403)


async def _enter(desk: Workspace, gate: Gate, request: Request) -> Response:
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


async def _events(desk: Workspace, gate: Gate, request: Request) -> Response | EventStream:
    return _refusal_response(desk, gate, request) or EventStream(desk.hub)


async def _unknown(desk: Workspace, gate: Gate, request: Request, error: Exception) -> Response:
    del error
    refused = _refusal_response(desk, gate, request)
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
    return _compress_answer(request, Response(data, media_type=kind, headers=headers))


def _files() -> Sequence[str]:
    return [one.name for one in _STATIC.iterdir() if one.suffix in (".css", ".js", ".svg")]


def _compress_answer(request: Request, answer: Response) -> Response:
    if len(answer.body) < _PACKED or not packs(request.headers):
        return answer
    answer.body = gzip.compress(bytes(answer.body), 6, mtime=0)
    answer.headers["content-encoding"] = "gzip"
    answer.headers["content-length"] = str(len(answer.body))
    answer.headers["vary"] = "accept-encoding"
    return answer


# --- Who may ask: the browser that followed the printed link, and nothing that a web page sends.
#
# The link carries a token that works once; it becomes a cookie that no script can read and no
# other site can send. The `JobContext` must be ours, so that a name that only points here gets
# nothing. What changes something must come from a page of ours, as a form. Every answer says what
# the browser may load: this server's own files and nothing else.


FORM = "application/x-www-form-urlencoded"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Gate:
    """The token of one run of the page, and the cookie it is exchanged for."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)
        self._secret = secrets.token_urlsafe(32)

    def link(self, url: str) -> str:
        """What a person opens."""
        return f"{url}/?token={self.token}"

    def exchange(self, token: str) -> bool:
        """Whether this is the token; it works once."""
        if not self.token or not hmac.compare_digest(token.encode(), self.token.encode()):
            return False
        self.token = ""
        return True

    def cookie(self, request: Request) -> str:
        return f"{_name(request)}={self._secret}; HttpOnly; SameSite=Strict; Path=/"

    def knows(self, request: Request) -> bool:
        given = request.cookies.get(_name(request), "")
        return hmac.compare_digest(given.encode(), self._secret.encode())


def _name(request: Request) -> str:
    """Cookies do not tell ports apart: each page of this machine has a name of its own."""
    return f"reverie-{_port(request.headers.get('host', ''))}"


def _port(host: str) -> str:
    return host.rpartition(":")[2] if host.rpartition(":")[2].isdigit() else "80"


def refusal(request: Request) -> str:
    """Why a request is not answered, in a sentence; nothing where it is."""
    host = request.headers.get("host", "").lower()
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    served = request.scope.get("server")
    port = str(served[1]) if served else ""
    if name not in LOCAL or (port and _port(host) != port):
        return "It was asked for under another name than its own."
    ours = f"http://{host}"
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if origin == "null" and site == "same-origin":
        origin = ours  # a browser says null where pages tell no referrer; this it cannot be made to
    if origin is not None and origin != ours:
        return "It was asked for by the page of another site."
    if request.method in ("GET", "HEAD"):
        foreign = site in ("cross-site", "same-site")
        return "It was asked for by the page of another site." if foreign else ""
    if origin != ours and site != "same-origin":
        return "A change must come from a page of this server."
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return "" if kind == FORM else "A change must come as a form."


class SecurityHeaders:
    """Every answer of an application with the headers above."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=_headers(message))
                for name, value in HEADERS.items():
                    if name not in headers:
                        headers[name] = value
            await send(message)

        await self._application(scope, receive, send_with_headers)


def _headers(message: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    message["headers"] = list(message.get("headers", []))
    return message


def packs(headers: Headers) -> bool:
    """Whether a browser takes an answer packed."""
    return "gzip" in headers.get("accept-encoding", "")


# --- The projects of this home: which there are, and what an address answers that names none.


def list_projects(desk: Workspace, ask: ScreenRequest) -> Response:
    del ask
    return _page(desk)


def unknown(desk: Workspace, ask: ScreenRequest) -> Response:
    """A project that this home does not have: whatever is there is shown instead."""
    return _page(desk, 404, ask.path["key"])


def _page(desk: Workspace, status: int = 200, missed: str = "") -> Response:
    return desk.page("projects.html", status, screen="projects", missed=missed[:200], said="")


PROJECTS_GET = {
    "/projects": list_projects,
    "/projects/{key}": unknown,
    "/projects/{key}/{rest:path}": unknown,
}
PROJECTS_POST = {"/projects/{key}/{rest:path}": unknown}
