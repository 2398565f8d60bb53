"""Every project of a home behind one gate.

Every project of the home behind one gate, told apart by what an address begins with.

The project that the page was begun in has the plain addresses; another one has the same behind
`/projects/KEY`, with a desk of its own that is opened when it is first asked for. The key is looked
up among the home's own projects for each request. Some stay open; the one that was not looked at
for longest is closed for the next, unless a request or work of its own is still under way.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

import anyio
from anyio import to_thread
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from reverie.apps.web.app import Gate, SecurityHeaders, application, fault, refusal
from reverie.apps.web.format import homely
from reverie.apps.web.workspace import IndexRefresher, ProjectLink, Workspace
from reverie.errors import ReverieError
from reverie.http_server import listen, serve
from reverie.store.project import Project, find_project, home_projects, project_key, project_name

MAX_OPEN = 8
"""Projects that stay open beside the first."""
FRESH = 5.0
"""Seconds after which the list of projects is looked at again, beside the page that shows it."""
FIRST_LOOK = 1.0
"""Seconds that the first page of a project waits for its lists; a larger one says how far it is."""
_PATH = "/projects/"


@dataclass(frozen=True, slots=True)
class OpenProject:
    """One project with its page, and what keeps its lists up to date."""

    desk: Workspace
    keeper: IndexRefresher
    page: ASGIApp

    def close(self) -> None:
        self.keeper.stop()
        self.desk.close()

    @property
    def is_at_work(self) -> bool:
        return any(one.is_alive() for one in list(self.desk.running.values()))


class ProjectRouter:
    """The page of a home: each request goes to the project that its address names."""

    def __init__(self, place: Project, gate: Gate, room: int = MAX_OPEN) -> None:
        self._place = place
        self._room = room
        self._gate = gate
        self._lock = threading.Lock()
        self._keeps = False  # whether lists are kept up to date
        self._asked = Counter[str]()  # requests under way
        self._open: dict[str, OpenProject] = {}  # the one asked for last stands last
        self._listed: Sequence[ProjectLink] = ()
        self._listed_at = 0.0
        self.first = self._build_project(place, "")
        self._key = project_key(place)
        self.look()

    def start(self) -> None:
        """Keep the lists of what is open up to date."""
        self._keeps = True
        self.first.keeper.start()

    def close(self) -> None:
        with self._lock:
            for one in (*self._open.values(), self.first):
                one.close()
            self._open.clear()

    def opened(self, key: str) -> OpenProject:
        """A project that is open beside the first."""
        return self._open[key]

    # --- which there are

    def look(self) -> None:
        """Look at the home's projects again."""
        found = home_projects(self._place)
        self._listed = tuple(
            ProjectLink(project_name(self._place.home, root), homely(root), self._prefix(key))
            for key, root in found.items()
        )
        self._listed_at = time.monotonic()

    def _projects(self) -> Sequence[ProjectLink]:
        """Those that were there when somebody last looked; who asks does not wait."""
        if time.monotonic() - self._listed_at > FRESH:
            self.first.desk.start("projects", self.look)
        return self._listed

    def _prefix(self, key: str) -> str:
        return "" if key == self._key else _PATH + quote(key, safe="")

    # --- whose a request is

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = self._project_key(scope)
        if not key:
            await self.first.page(scope, receive, send)
            return
        self._asked[key] += 1
        try:
            page = await to_thread.run_sync(self._page, key)
            given = scope if page is None else {**scope, "root_path": _PATH + key}
            await (page or self.first.page)(given, receive, send)
        finally:
            self._asked -= Counter([key])

    def _project_key(self, scope: Scope) -> str:
        """The key in an address; none for somebody who is not let in."""
        if scope["type"] != "http" or not scope["path"].startswith(_PATH):
            return ""
        request = Request(scope)
        if refusal(request) or not self._gate.knows(request):
            return ""  # the first project's page says why
        return scope["path"].removeprefix(_PATH).partition("/")[0]

    def _page(self, key: str) -> ASGIApp | None:
        """What answers for a project; None where this home has no such one."""
        found = find_project(self._place, key)
        if found is None or key == self._key:
            return None if found is None else self.first.page
        try:
            with self._lock:
                return self._ensure_open(found, key).page
        except ReverieError as error:
            return SecurityHeaders(fault(self.first.desk, 500, error))

    def _ensure_open(self, place: Project, key: str) -> OpenProject:
        one = self._open.pop(key, None)
        if one is None:
            self._make_room()
            one = self._build_project(place, self._prefix(key))
            if self._keeps:
                one.keeper.start()
                one.keeper.has_looked.wait(FIRST_LOOK)
        self._open[key] = one
        return one

    def _build_project(self, place: Project, prefix: str) -> OpenProject:
        desk = Workspace(place, prefix, self._projects)
        return OpenProject(desk, IndexRefresher(desk), application(desk, self._gate))

    def _make_room(self) -> None:
        spare = [key for key in self._open if not self._asked[key]]
        spare = [key for key in spare if not self._open[key].is_at_work]
        for key in spare[: len(self._open) - self._room + 1]:
            self._open.pop(key).close()


# --- The page from its socket to its end.


def serve_page(place: Project, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; `ready` gets the link that lets a browser in."""
    listening = listen(host, port)
    gate = Gate()
    page = ProjectRouter(place, gate)
    page.start()
    try:
        anyio.run(partial(serve, page, listening, lambda url: ready(gate.link(url))))
    finally:
        page.close()
