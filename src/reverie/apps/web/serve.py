"""The page from its socket to its end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import anyio

from reverie.apps.web.gate import Gate
from reverie.apps.web.switcher import Switcher
from reverie.serving import listen, serve
from reverie.store.project import Project


def serve_page(place: Project, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; `ready` gets the link that lets a browser in."""
    listening = listen(host, port)
    gate = Gate()
    page = Switcher(place, gate)
    page.start()
    try:
        anyio.run(partial(serve, page, listening, lambda url: ready(gate.link(url))))
    finally:
        page.close()
