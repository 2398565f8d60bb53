"""Cache marks: the client's stay where they are; spare ones are used where they pay for sure.

Never more than four, the one at the top counted. In this order: the last block of a round of
results that nothing marks; a bridge on the last block that is known from before, where so many
new ones follow that the provider would not look back far enough; the last tool. No mark is added
to a history of which nothing is known, nor to one that is not only added to: what is written
there would never be read. Pure.
"""

from __future__ import annotations

from typing import Any, cast

from reverie.middleware import chain
from reverie.middleware.patches import EPHEMERAL, Patch, mark_patch
from reverie.middleware.scanning import Body, ScannedPart

MOST = 4
LONG = '{"type":"ephemeral","ttl":"1h"}'
BRIDGE = 19
"""Blocks behind a known one from which on a bridge is needed."""
_UNMARKABLE = ("thinking", "redacted_thinking")


def spare_marks(body: Body, known: int, touched: frozenset[int]) -> tuple[list[Patch], list[Patch]]:
    """Marks to add: to the list, and to the rest of the body. `known` is how many parts the
    thread's last request had and this one begins with; `touched` are starts of bare texts that
    are written over anyway."""
    if body.form != "messages" or chain.MARK in body.members:
        return [], []
    spare = MOST - body.marks
    inside: list[Patch] = []
    outside: list[Patch] = []
    last = _last(body)
    if (
        spare > 0
        and known
        and last is not None
        and _unmarked_round(body)
        and last.start not in touched
    ):
        inside.append(mark_patch(body, last, _later_mark(body)))
        spare -= 1
    bridge = _bridge(body, known)
    if spare > 0 and bridge is not None and bridge.start not in touched:
        inside.append(mark_patch(body, bridge, _later_mark(body)))
        spare -= 1
    if spare > 0 and body.marks:
        outside += _on_last_tool(body)
    return inside, outside


def _last(body: Body) -> ScannedPart | None:
    part = body.parts[-1] if body.parts else None
    return None if part is None or part.role != "user" or part.kind in _UNMARKABLE else part


def _unmarked_round(body: Body) -> bool:
    """Whether results stand at the end and no mark is among what is new."""
    new = body.parts[body.answered :]
    return (
        bool(new)
        and new[-1].kind == "tool_result"
        and not any(part.marks for part in new)
        and bool(body.members.get("tools"))
    )


def _bridge(body: Body, known: int) -> ScannedPart | None:
    """The last known block, where too many lie behind it."""
    parts = body.parts
    marked = any(part.marks for part in parts[known:])
    if not known or len(parts) - known < BRIDGE or not marked:
        return None
    for part in reversed(parts[:known]):
        if part.marks:
            return None
        plain = part.kind not in _UNMARKABLE and part.end > part.start
        if plain and len(parts) and (part.kind != "text" or _has_words(body, part)):
            return part
    return None


def _has_words(body: Body, part: ScannedPart) -> bool:
    value = body.value(part)
    text = value if isinstance(value, str) else chain.as_value(value).get("text")
    return isinstance(text, str) and bool(text.strip())


def _on_last_tool(body: Body) -> list[Patch]:
    tools = body.members.get("tools")
    if not isinstance(tools, list) or not tools:
        return []
    found = cast("list[Any]", tools)
    last = chain.as_value(found[-1])
    if (
        any(chain.MARK in chain.as_value(one) for one in found)
        or not last
        or last.get("defer_loading")
    ):
        return []
    start, end = body.places["tools"]
    brace = body.text.rfind("}", start, end)
    return [Patch(brace, brace, f',"{chain.MARK}":{_first_mark(body)}')]


def _lifetimes(body: Body) -> list[Any]:
    """How long the client's own marks live, in their order; the first stand first."""
    system = body.members.get("system")
    head = cast("list[Any]", system) if isinstance(system, list) else []
    found = [chain.as_value(one).get(chain.MARK) for one in head]
    found += [chain.as_value(body.value(p)).get(chain.MARK) for p in body.parts if p.mark != (0, 0)]
    return [chain.as_value(one).get("ttl") for one in found if one is not None]


def _first_mark(body: Body) -> str:
    """A mark before all others: longer lifetimes must come first."""
    return LONG if "1h" in _lifetimes(body) else EPHEMERAL


def _later_mark(body: Body) -> str:
    """A mark in the list, as long-lived as the client's last."""
    return LONG if _lifetimes(body)[-1:] == ["1h"] else EPHEMERAL
