"""`proxy`, `mcp`, `web`, `simulate`.

`reverie proxy`: memory and context for an agent that is already in use, by one URL.
"""

from __future__ import annotations

import os
import secrets
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.apps.cli.app import HOST, json_option, port_option, project_option
from reverie.apps.cli.output import json_line, note, say
from reverie.clients.files import ClientSettings
from reverie.clients.proxy_address import PORT, ProxyAddress
from reverie.errors import InvalidInput
from reverie.providers.connection import extra
from reverie.settings.catalog import Settings
from reverie.settings.sources import environment
from reverie.store.files import Folder
from reverie.store.project import Project

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.lowlevel import Server

    from reverie.interception.decisions import Seal
    from reverie.simulator.answers import Answerer
    from reverie.simulator.engine import Engine
    from reverie.world import Model, Notice


SWITCH_SECONDS = 0.001
"""How long work behind one conversation may keep the interpreter from another's request."""


@click.command()
@port_option(PORT)
@click.option("--upstream", default="", metavar="URL", help="Where Anthropic requests go.")
@click.option(
    "--upstream-openai",
    default="",
    metavar="URL",
    help="Where OpenAI requests go. Default: as --upstream, else OpenAI.",
)
@click.option(
    "--policy",
    type=click.Choice(["off", "store", "classic", "collapse"]),
    help="off: nothing leaves; store: large results go to files as they arrive; classic, collapse: "
    "old rounds leave as well. Default: collapse for clients that may read those files (as "
    "`reverie install` sets them up), else store.",
)
@click.option(
    "--memory",
    type=click.Choice(["on", "off"]),
    default="on",
    show_default=True,
    help="Recall memories, and keep what is worth keeping.",
)
@click.option(
    "--background",
    default="embedded",
    show_default=True,
    metavar="MODEL",
    help="The model that works behind conversations, on its own key.",
)
@click.option("--record", is_flag=True, help="Change nothing; record what passes for replay.")
@click.option("--explain", is_flag=True, help="Tell on stderr what is done to each request.")
@click.option("--unit", is_flag=True, help="Print a systemd user unit for this proxy, and end.")
@json_option
def proxy(
    port: int,
    upstream: str,
    upstream_openai: str,
    policy: str | None,
    memory: str,
    background: str,
    record: bool,
    explain: bool,
    unit: bool,
    as_json: bool,
) -> None:
    """Serve a proxy for agents that are already in use, until Ctrl-C.

    Point a client's base URL at it. Large tool results go to files that the client can read,
    memories join its prompts, and what is worth keeping is kept. Keys are passed on and never
    stored; what runs in the background uses fixed rules, or --background with a key of its own.
    """
    import anyio

    if unit:
        from reverie.clients.service import unit as unit_text

        given = {
            "--port": str(port),
            "--policy": policy or "",
            "--memory": memory,
            "--upstream": upstream,
            "--upstream-openai": upstream_openai,
            "--background": background,
        }
        say(unit_text(tuple(part for pair in given.items() if pair[1] for part in pair)))
        return
    with extra("proxy", "The proxy cannot serve"):
        from reverie.apps.proxy.policies import Upstreams
        from reverie.apps.proxy.server import run, upstreams_of
    from reverie.clients.background import note_turn as background_notes
    from reverie.interception.engine import CHARACTERS, EngineOptions
    from reverie.interception.mirror import MirrorOptions

    own = Project.personal()
    kept = ClientSettings(own).upstreams(port)
    if any(kept.values()) and (upstream or upstream_openai):
        what = f"Installed clients have gateways that port {port} forwards to"
        raise InvalidInput(what, do="Leave out --upstream, or take another --port")
    given = upstreams_of(upstream, upstream_openai)
    upstreams = Upstreams(*(kept.get(api) or given.base(api) for api in ("anthropic", "openai")))
    remembers = memory == "on" and not record
    note_turn = background_notes if background == "embedded" else None
    worker = _worker(background)
    shadows = MirrorOptions(own, worker, _tell, memory=remembers, note_turn=note_turn)
    characters = sys.maxsize if policy == "off" else CHARACTERS
    seal = _seal(policy or "collapse")
    rules = EngineOptions(
        shadows, own.settings, characters, dry=record, seal=seal, by_client=policy is None
    )

    def ready(address: ProxyAddress) -> None:
        if as_json:
            json_line(address.value())
        else:
            _welcome(address, record=record, memory=memory == "on")
        sys.stdout.flush()

    sys.setswitchinterval(SWITCH_SECONDS)
    anyio.run(run, rules, upstreams, port, ready, _explain(explain))


def _worker(background: str) -> Callable[[str, Settings], Model]:
    def worker(name: str, settings: Settings) -> Model:
        if background == "embedded":
            from reverie.models import BackgroundModel

            return BackgroundModel(name, settings)
        from reverie import models
        from reverie.interception.mirror import RenamedModel

        return RenamedModel(models.named(background, settings=settings))

    return worker


def _seal(policy: str) -> Seal | None:
    if policy not in ("collapse", "classic"):
        return None
    from reverie.apps.proxy.policies import sealing

    return sealing(policy)


def _explain(wanted: bool) -> Callable[[str], None] | None:
    return note if wanted else None


def _tell(notice: Notice) -> None:
    if notice.level != "info":
        note(f"{notice.layer}: {notice.text}")


def _welcome(address: ProxyAddress, *, record: bool, memory: bool) -> None:
    say("The proxy listens (Ctrl-C stops it). Base URLs for clients:")
    say(f"  Anthropic  {address.anthropic}")
    say(f"  OpenAI     {address.openai}")
    if record:
        say("Every byte passes unchanged; conversations are recorded for `reverie replay`.")
        return
    say("Conversations and large tool results are kept in Reverie's home, readable by you alone.")
    if memory:
        say("Memories join prompts, and new ones are kept after turns (--memory off stops both).")
    say("The header `X-Reverie: off` lets one request pass as it is.")


# --- `reverie mcp`: the memory of a project as an MCP server, over stdio or HTTP.
#
# Over stdio a client starts it and ends it. Over HTTP it listens on loopback and asks for a token,
# which it makes itself unless `REVERIE_MCP_TOKEN` holds one.


TOKEN = "REVERIE_MCP_TOKEN"
SHORTEST = 16
"""Characters of a token that somebody chose."""


@click.command()
@click.option("--http", is_flag=True, help="Serve over HTTP instead of standard input and output.")
@port_option(8789, "For --http; 0 picks a free port.")
@click.option("--read-only", is_flag=True, help="Offer no tool that changes the memory.")
@json_option
@project_option
def mcp(http: bool, port: int, read_only: bool, as_json: bool, project: Project) -> None:
    """Serve the memory of a project to MCP clients.

    Without --http it speaks over standard input and output, as clients expect of a command.
    """
    import anyio

    server = _server(project, read_only)
    if not http:
        from reverie.apps.mcp.transports import serve_stdio

        anyio.run(serve_stdio, server)
        return
    from reverie.apps.mcp.transports import TokenGate, serve_http
    from reverie.http_server import listen

    token = token_to_ask_for()

    def ready(url: str) -> None:
        if as_json:
            json_line({"url": url, "token": token})
            return
        say(f"Memory at {url} (Ctrl-C stops it)")
        say(f"  Authorization: Bearer {token}")

    anyio.run(partial(serve_http, TokenGate(server, token), listen(HOST, port), ready))


def _server(project: Project, read_only: bool) -> Server[Any]:
    from reverie.memory.memory import Memory

    with extra("mcp", "The MCP server cannot run"):
        from reverie.apps.mcp.server import MemoryServer
    return MemoryServer(Memory(project.cwd), read_only=read_only).server()


def token_to_ask_for() -> str:
    """The one that was chosen, or a new one."""
    given = environment().get(TOKEN, "")
    if not given:
        return secrets.token_urlsafe(32)
    if len(given) < SHORTEST or not given.isascii() or not given.isprintable() or " " in given:
        do = f"Give at least {SHORTEST} printable ASCII characters without a space"
        raise InvalidInput("This is no token", where=TOKEN, do=do)
    return given


# --- `reverie simulate`: a simulated model provider on a local port.
#
# It needs no key and reaches nothing outside. Clients are pointed at it by their base URL.


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
        made.answerer = _embedded_answerer()
    anyio.run(partial(serve, made, HOST, port, ready=ready))


def _embedded_answerer() -> Answerer:
    from reverie.embedded.model import EmbeddedModel
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


# --- `reverie web`: the page for people, on this machine alone.


@click.command()
@port_option(0)
@json_option
@project_option
def web(port: int, as_json: bool, project: Project) -> None:
    """Serve the page: sessions, memories, dreams, health and savings of your projects."""
    with extra("web", "The page cannot be served"):
        from reverie.apps.web.projects import serve_page

    def ready(link: str) -> None:
        if as_json:
            json_line({"url": link})
            return
        say(f"Open {link}")
        say("The link works once, on this machine alone. Ctrl-C stops the page.")

    serve_page(project, HOST, port, ready)
