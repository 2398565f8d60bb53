"""The projects of this home: which there are, and what an address answers that names none."""

from __future__ import annotations

from starlette.responses import Response

from reverie.apps.web.desk import Ask, Desk


def listed(desk: Desk, ask: Ask) -> Response:
    del ask
    return _page(desk)


def unknown(desk: Desk, ask: Ask) -> Response:
    """A project that this home does not have: whatever is there is shown instead."""
    return _page(desk, 404, ask.path["key"])


def _page(desk: Desk, status: int = 200, missed: str = "") -> Response:
    return desk.page("projects.html", status, screen="projects", missed=missed[:200], said="")


GET = {"/projects": listed, "/projects/{key}": unknown, "/projects/{key}/{rest:path}": unknown}
POST = {"/projects/{key}/{rest:path}": unknown}
