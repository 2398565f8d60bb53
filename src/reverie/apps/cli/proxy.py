"""`reverie proxy`: memory and context for an agent that is already in use, by one URL."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from reverie.apps.cli.options import json_option, port_option
from reverie.apps.cli.show import json_line, note, say
from reverie.errors import InvalidInput
from reverie.providers.extras import extra
from reverie.settings import Settings
from reverie.store.project import Project
from reverie.upkeep.installed import ClientSettings
from reverie.upkeep.proxy_address import PORT, ProxyAddress

if TYPE_CHECKING:
    from collections.abc import Callable

    from reverie.middleware.engine import Seal
    from reverie.world import Model, Notice


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
    type=click.Choice(["store", "collapse", "classic", "off"]),
    default="store",
    show_default=True,
    help="store: large results go to files as they arrive; collapse, classic: old rounds leave "
    "as well; off: nothing does.",
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
@json_option
def proxy(
    port: int,
    upstream: str,
    upstream_openai: str,
    policy: str,
    memory: str,
    background: str,
    record: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Serve a proxy for agents that are already in use, until Ctrl-C.

    Point a client's base URL at it. Large tool results go to files that the client can read,
    memories join its prompts, and what is worth keeping is kept. Keys are passed on and never
    stored; what runs in the background uses fixed rules, or --background with a key of its own.
    """
    import anyio

    with extra("proxy", "The proxy cannot serve"):
        from reverie.apps.proxy.running import Upstreams, run, upstreams_of
    from reverie.middleware.engine import CHARACTERS, EngineRules
    from reverie.middleware.shadow import ShadowRules

    own = Project.personal()
    kept = ClientSettings(own).upstreams(port)
    if any(kept.values()) and (upstream or upstream_openai):
        what = f"Installed clients have gateways that port {port} forwards to"
        raise InvalidInput(what, do="Leave out --upstream, or take another --port")
    given = upstreams_of(upstream, upstream_openai)
    upstreams = Upstreams(*(kept.get(api) or given.base(api) for api in ("anthropic", "openai")))
    remembers = memory == "on" and not record
    shadows = ShadowRules(own, _worker(background), _tell, memory=remembers)
    characters = sys.maxsize if policy == "off" else CHARACTERS
    rules = EngineRules(shadows, own.settings, characters, dry=record, seal=_seal(policy))

    def ready(address: ProxyAddress) -> None:
        if as_json:
            json_line(address.value())
        else:
            _welcome(address, record=record, memory=memory == "on")
        sys.stdout.flush()

    anyio.run(run, rules, upstreams, port, ready, _explain(explain))


def _worker(background: str) -> Callable[[str, Settings], Model]:
    def worker(name: str, settings: Settings) -> Model:
        if background == "embedded":
            from reverie.models import RulesModel

            return RulesModel(name, settings)
        from reverie import models
        from reverie.middleware.behind import ModelBehind

        return ModelBehind(models.named(background, settings=settings))

    return worker


def _seal(policy: str) -> Seal | None:
    if policy not in ("collapse", "classic"):
        return None
    from reverie.apps.proxy.sealing import sealing

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
