"""Who speaks in a message of a client's: the user, a tool, or the client itself.

Clients write words of their own into the user's message: reminders, traces of commands, notices.
They stay where they are, and count as nobody's wish: nothing is learned from them, and nothing
is recalled to them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from reverie.transcript.blocks import Block
from reverie.transcript.records import UserMessage

_NOTICE = re.compile(
    r"\s*(?:<[a-z]+(?:[-_][a-z]+)+>"  # what clients put around words of their own
    r"|\[Request interrupted|# AGENTS\.md instructions\b)"
)


def is_notice(text: str) -> bool:
    """Whether a text is the client's own, by how it begins."""
    return bool(_NOTICE.match(text))


def messages_of(blocks: Iterable[tuple[Block, bool]]) -> list[UserMessage]:
    """A message as one for each who speaks in it, in its order; with each block whether a tool
    gave it. What is no text is whose the words before it are."""
    out: list[tuple[str, list[Block]]] = []
    for block, given in blocks:
        before = out[-1][0] if out else "user"
        if given:
            origin = "tool"
        elif block.type == "text":
            origin = "client" if is_notice(block.get("text")) else "user"
        else:
            origin = before
        if not out or origin != before:
            out.append((origin, []))
        out[-1][1].append(block)
    return [UserMessage(tuple(found), origin) for origin, found in out]
