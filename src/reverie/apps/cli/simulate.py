"""`reverie simulate`: a simulated model provider on a local port.

It needs no key and reaches nothing outside. Clients are pointed at it by their base URL.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.apps.cli.options import HOST, json_option, port_option
from reverie.apps.cli.show import json_line, say
from reverie.providers.extras import extra
from reverie.store.files import Folder

if TYPE_CHECKING:
    from reverie.simulator.answers import Answerer
    from reverie.simulator.engine import Engine


@click.command()
@port_option(8787)
@click.option(
    "--script",
    type=click.Path(path_type=Path),
    help="A file of answers to give, one after another.",
)
@click.option("--embedded", is_flag=True, help="Let the embedded model answer.")
@click.option(
    "--log", type=click.Path(path_type=Path), help="Write each request to this file, one per line."
)
@json_option
def simulate(
    port: int, script: Path | None, embedded: bool, log: Path | None, as_json: bool
) -> None:
    """Serve a simulated model provider: three wire formats, prompt cache, window, faults."""
    import anyio

    with extra("server", "The simulator cannot serve"):
        from reverie.simulator.server import serve

    def ready(url: str) -> None:
        if as_json:
            json_line({"url": url, "log": str(log) if log else None})
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
