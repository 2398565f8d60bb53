"""The page from its socket to its end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import anyio

from reverie.apps.web.app import application
from reverie.apps.web.desk import Desk
from reverie.apps.web.gate import Gate
from reverie.apps.web.keeper import Keeper
from reverie.serving import listen, serve
from reverie.upkeep.place import ProjectPlace


def serve_page(place: ProjectPlace, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; `ready` gets the link that lets a browser in."""
    listening = listen(host, port)
    desk, gate = Desk(place), Gate()
    keeper = Keeper(desk)
    keeper.start()
    try:
        page = application(desk, gate)
        anyio.run(partial(serve, page, listening, lambda url: ready(gate.link(url))))
    finally:
        keeper.stop()
        desk.close()
