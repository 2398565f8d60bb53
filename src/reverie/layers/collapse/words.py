"""What people and the model said, as it stands in the sealed part.

The user's words are given as they were said, between marks of their own: one pair a message.
Only a paste over its limit gives its beginning, its names and its end, and is read back by
its reference. So is what no user typed. The assistant's texts stand up to their limit, the
answer that the user replied to whole. Nothing the assistant or a tool said can look like the
user's words: the marks are told apart inside them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.transcript.blocks import Block
from reverie.transcript.names import outline

SAID = 1_000  # characters of a text of the assistant's that nobody replied to
PASTE = 4_000  # tokens from which a user's text is cut and read back
PASTE_END = 1_500  # characters of each of its ends
PASTE_NAMES = 1_500
ASIDE = 300  # characters of a text that no user typed
_MARKS = re.compile(r"<(?=/?(?:user|assistant)\b)", re.IGNORECASE)


def of_user(text: str, reference: str, bytes_per_token: int) -> str:
    """What the user said, whole; of a paste its two ends and its names."""
    if len(text) <= PASTE * bytes_per_token:
        return f"<user>{text}</user>"
    return f"<user {reference}>{pasted(text)}</user>"


def pasted(text: str) -> str:
    """The two ends of a long text, and the names between them."""
    head, foot = text[:PASTE_END], text[-PASTE_END:]
    found = outline(text[PASTE_END:-PASTE_END], PASTE_NAMES, head + foot)
    return f"{head}\n[… {len(text):,} characters in all; names in it: {found} …]\n{foot}"


def aside(text: str, reference: str) -> str:
    """What stands in the user's place and no user typed: one line, read back like a result."""
    line = one_line(text, ASIDE)
    return f"> notice {reference}\n  {line} {outline(text[ASIDE:], ASIDE, line)}".rstrip()


def of_assistant(text: str, reference: str, limit: int | None = SAID) -> str:
    """An answer, with its lines; over the limit its beginning."""
    whole = limit is None or len(text) <= limit
    shown = text if whole else text[:limit].rstrip() + " …"
    return f"<assistant {reference}>{told_apart(shown)}</assistant>"


def in_passing(text: str, limit: int = SAID) -> str:
    """What was said beside a call, on one line; the call's reference opens it."""
    return "- " + one_line(text, limit)


def one_line(text: str, width: int) -> str:
    """The beginning of a text on one line, and a mark where there is more. It cannot look like
    somebody's words."""
    line = " ".join(text[: width * 2].split())
    if len(line) > width or len(text) > width * 2:
        line = line[:width] + "…"
    return told_apart(line)


def told_apart(text: str) -> str:
    """A text that holds no mark of ours."""
    return _MARKS.sub("&lt;", text) if "<" in text else text


def texts(blocks: Sequence[Block]) -> str:
    """The words of a message."""
    return "\n".join([b.get("text") for b in blocks if b.type == "text" and not b.blank])
