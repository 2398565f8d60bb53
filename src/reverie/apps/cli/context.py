"""`/context`: what stands in the window, by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.apps.tui.footer import COMPACTION, SEAL
from reverie.transcript.view import View, head_blocks

if TYPE_CHECKING:
    from reverie.apps.cli.commands import Chat
    from reverie.session.session import Session


NARROW = 40  # columns under which names and figures stand alone


def filling(view: View) -> list[tuple[str, int]]:
    """What the context holds, in rough tokens by kind."""
    tokens: dict[str, int] = {}
    head = view.head
    if head is not None:
        tokens["system"] = sum(b.tokens for b in head_blocks(head.system))
        tokens["tools"] = view.head_tokens - tokens["system"]
    for item in view.items:
        for piece in item.pieces:
            name = {"head": "surroundings", "attached": "attachments"}.get(item.kind, item.role)
            if piece.block.type == "tool_result":
                name = "tool results"
            tokens[name] = tokens.get(name, 0) + piece.block.tokens
    return [(name, count) for name, count in tokens.items() if count]


def room_left(session: Session) -> tuple[int, str]:
    """How many tokens fit until something is made smaller, and what that will be."""
    settings, view = session.world.settings, session.view
    left = settings.left_until_compact(session.world.window, view.tokens)
    if settings.context_policy == "collapse":
        seal = max(0, settings.collapse_tail - view.live_tokens)
        return (seal, SEAL) if seal < left else (left, COMPACTION)
    return left, COMPACTION


def context(chat: Chat, rest: str) -> None:
    """What stands in the window by kind; letters in the bar, so it reads without colour."""
    del rest
    session = chat.desk.agent.session
    window, used = session.world.window, session.view.tokens
    left, next_ = room_left(session)
    parts = filling(session.view)
    whole = sum(count for _, count in parts) or 1
    room = max(10, chat.width - 4)
    chat.say(f"  {_bar(parts, used / whole / window if window else 0.0, room)}")
    told = f"{used:,} of {window:,} tokens, {used / window if window else 0:.0%}"
    until = f"{left:,} left until {next_}"
    chat.say(f"  {told}{until:>{max(len(until) + 2, room - len(told))}}")
    chat.say("")
    most = max([1, *(count for _, count in parts)])
    for name, count in parts:
        told = f"{_LETTERS.get(name, name[0])}  {name:<14} {count:>9,}"
        bar = "█" * max(1, round(count / most * (room - 30)))
        narrow = f"{_LETTERS.get(name, name[0])} {name[: room - 10]} {count:,}"
        chat.say(f"  {told}  {bar}" if room >= NARROW else f"  {narrow}")
    chat.say("")
    if used != whole:
        chat.say("  Parts are estimates; the sum is what the provider counts.", "dim")
    chat.say("  /compact makes room, /snip takes messages out", "dim")


_LETTERS = {
    "system": "s",
    "tools": "t",
    "surroundings": "e",
    "attachments": "a",
    "user": "u",
    "assistant": "m",
    "tool results": "r",
}


def _bar(parts: list[tuple[str, int]], scale: float, room: int) -> str:
    """Each part's letter as often as its share of the window, then dots for what is free."""
    bar, end = "", 0.0
    for name, count in parts:
        end += count * scale * room
        bar += _LETTERS.get(name, name[0]) * max(0, round(end) - len(bar))
    bar = bar or "".join(_LETTERS.get(name, name[0]) for name, _ in parts[:1])
    return bar[:room] + "·" * max(0, room - len(bar))
