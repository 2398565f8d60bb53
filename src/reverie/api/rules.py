"""What a list is fitted by: a model's name, a policy and the tools, as a world and its rules.

Nothing is read or asked: the name tells the window and whether thinking is bound, and the
tools tell whether the model can read back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from reverie.api.playing import AllOn, ListIsStore, Rules, StillClock
from reverie.errors import InvalidInput, NotAvailable
from reverie.layers import collapse, tool_results
from reverie.layers.own import OwnLayer, pairs
from reverie.light import dataclass
from reverie.providers.capabilities import PLAIN, tabled
from reverie.settings import Settings
from reverie.tools.toolset import Toolset
from reverie.transcript.blocks import estimate
from reverie.transcript.tokens import SUFFIX, bare
from reverie.wire.forms import tool_name, tool_parameters
from reverie.wire.reading import value_of
from reverie.wire.request import Request
from reverie.world import Capabilities, Event, Layer, Notice, Say, WayBack, World

COLLAPSE: tuple[tuple[str, Layer], ...] = (
    ("tool_results", tool_results.per_message),
    ("collapse", collapse.seal),
)


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model of which only the name is known. It is never asked."""

    name: str
    capabilities: Capabilities

    def stream(self, request: Request) -> AsyncIterator[Event]:
        del request
        raise NotAvailable("a list is fitted without a model", where=self.name)


def tool_values(tools: Sequence[object] | Toolset) -> list[dict[str, Any]]:
    if isinstance(tools, Toolset):
        return cast("list[dict[str, Any]]", tools.anthropic())
    return [v for t in tools for v in (tool_values(t) if isinstance(t, Toolset) else [value_of(t)])]


def way_back_of(tools: Sequence[Mapping[str, Any]], via: str, folder: str) -> WayBack:
    """How the model reads back: by a tool of ours, which takes references, or by one of the
    caller's own that reads files, where there is a folder for them. Without either, not at all."""
    found = next((tool for tool in tools if tool_name(tool) == via), None)
    if found is None:
        return WayBack("", files=False)
    is_ours = "reference" in tool_parameters(found)
    return WayBack(via, files=False, folder="" if is_ours else folder)


def world_of(
    model: str, window: int | None, settings: Settings, policy: str, way_back: WayBack, say: Say
) -> World:
    known = tabled(model)
    if window is not None:
        known = replace(known, window=window)
    elif known is PLAIN and not model.endswith(SUFFIX):
        size = settings.fallback_window
        told = f"the model {model!r} is not known: {size:,} tokens are assumed. Say window="
        say(Notice("fit", told, "warning"))
    chosen = "collapse" if policy == "collapse" else "classic"
    return World(
        clock=StillClock(),
        disk=ListIsStore(),
        flags=AllOn(),
        settings=replace(settings, context_policy=chosen),
        model=NamedModel(model, known),
        say=say,
        model_name=bare(model) if window is not None else model,
        tool_limits={} if way_back.folder else {way_back.tool: None},
        way_back=way_back,
    )


def rules_of(
    world: World,
    tools: Sequence[Mapping[str, Any]],
    policy: str,
    layers: Sequence[OwnLayer] | None,
) -> Rules:
    if policy not in ("collapse", "classic", "off"):
        do = "It is collapse, classic or off"
        raise InvalidInput("there is no such policy", where=str(policy), do=do)
    reads_back = bool(world.way_back.tool)
    chosen: tuple[tuple[str, Layer], ...] = ()
    if layers is not None:
        chosen = pairs(layers)
    elif policy == "collapse" and reads_back:
        chosen = COLLAPSE
    return Rules(
        world,
        chosen,
        head=sum(estimate(dict(t)) for t in tools),
        reads_back=reads_back,
        forces=policy != "off",
    )
