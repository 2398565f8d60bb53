"""`reverie simulate`: a simulated model provider on a local port.

It needs no key and reaches nothing outside. Clients are pointed at it by their base URL.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.apps.cli.options import JsonOption
from reverie.apps.cli.show import document, say
from reverie.errors import NotAvailable
from reverie.store.files import Folder

if TYPE_CHECKING:
    from reverie.simulator.answers import Answerer
    from reverie.simulator.engine import Engine

HOST = "127.0.0.1"


def simulate(
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0 picks a free port.")
    ] = 8787,
    script: Annotated[
        Path | None, typer.Option("--script", help="A file of answers to give, one after another.")
    ] = None,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="Let the embedded model answer.")
    ] = False,
    log: Annotated[
        Path | None, typer.Option("--log", help="Write each request to this file, one per line.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Serve a simulated model provider: three wire formats, prompt cache, window, faults."""
    import anyio

    try:
        from reverie.simulator.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("reverie"):
            raise
        raise NotAvailable(
            f"The simulator cannot serve: {error.name} is not installed",
            do="pip install 'reverie[server]'",
        ) from error

    def ready(url: str) -> None:
        if as_json:
            document({"url": url, "log": str(log) if log else None})
        else:
            say(f"Simulated provider at {url} (Ctrl-C stops it)")
            say(f"  ANTHROPIC_BASE_URL={url}")
            say(f"  OPENAI_BASE_URL={url}/v1")
        sys.stdout.flush()

    made = engine(script, log)
    if embedded:
        made.answerer = _embedded()
    anyio.run(partial(serve, made, HOST, port, ready=ready))


def _embedded() -> Answerer:
    from reverie.embedded import EmbeddedModel
    from reverie.simulator.answers import from_model

    return from_model(EmbeddedModel())


def engine(script: Path | None, log: Path | None) -> Engine:
    """The provider, with the answers and the log it was given."""
    from reverie.simulator.answers import load
    from reverie.simulator.engine import Engine
    from reverie.simulator.ledger import Ledger

    if log is not None:
        path = log.absolute()
        with Folder(path.parent) as folder:  # the log holds requests: for its owner alone
            os.close(folder.open_append(path.name))
    made = Engine(ledger=Ledger(log))
    if script is not None:
        made.answerer = load(script)
    return made
