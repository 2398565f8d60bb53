"""Plain requests, in English and Chinese, as tool calls.

A message is a request if its first clause is one: "read FILE", "grep WORD in PATH", "list
DIR", "find *.py", "run the tests", "run COMMAND", 'write "TEXT" to FILE', 'edit FILE:
replace "A" with "B"', "remember …", "forget …", and the same in Chinese. What is not
recognised is handed back as it stands, never guessed at. Only words that a user said come
here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from reverie.embedded.chat import chinese, english
from reverie.embedded.forms import CallAsked
from reverie.text.clauses import LOOKED_AT, bared, clauses

MAX = 16  # requests taken from one message
_REMEMBER = re.compile(
    r"\s*(?:please )?(?:remember(?: that)?|note(?: down)? that)[:,]?\s+(?P<what>.+)"
    r"|\s*(?:请)?(?:记住|记下)[：:，,]?\s*(?P<zh>.+)",
    re.IGNORECASE | re.DOTALL,
)
_FORGET = re.compile(
    r"\s*(?:please )?forget(?: about)?[:,]?\s+(?P<what>[^\n]{1,200})\s*"
    r"|\s*(?:请)?忘记[：:，,]?\s*(?P<zh>[^\n]{1,200})\s*",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Asked:
    """What a message asks for, and what of it was not recognised."""

    asks: list[CallAsked] = field(default_factory=list[CallAsked])
    rest: list[str] = field(default_factory=list[str])
    unread: int = 0  # characters behind those that were looked at


def begins(clause: str) -> bool:
    return english.begins(clause) or chinese.begins(clause)


def greedy(clause: str) -> bool:
    bare = bared(clause)
    return english.greedy(bare) or chinese.greedy(bare)


def asked(text: str) -> Asked:
    """The requests of a message; none where it does not begin with one."""
    found = _remembered(text) or _fenced(text)
    if found is not None:
        return found
    out = Asked(unread=max(0, len(text) - LOOKED_AT))
    for clause in clauses(text, begins, greedy):
        bare = bared(clause)
        if not bare:
            continue
        asks = english.asks(bare) or chinese.asks(bare)
        if not asks and not out.asks:
            return Asked()
        if asks and len(out.asks) + len(asks) <= MAX:
            out.asks += asks
        else:
            out.rest.append(bare)
    return out


def _remembered(text: str) -> Asked | None:
    """A message that asks to remember or to forget something is about that alone, whole."""
    kept, gone = _REMEMBER.fullmatch(text), _FORGET.fullmatch(text)
    if kept and not text.rstrip().endswith(("?", "？")):
        return Asked([CallAsked("Remember", {"text": (kept["what"] or kept["zh"]).strip()})])
    if gone and not text.rstrip().endswith(("?", "？")):
        return Asked([CallAsked("Forget", {"name": (gone["what"] or gone["zh"]).strip(" .。")})])
    return None


def _fenced(text: str) -> Asked | None:
    """A file to write whose text follows in a fence, whole and of any length."""
    line, _, below = text.lstrip().partition("\n")
    if not below.startswith("```") or len(line) > LOOKED_AT:
        return None
    path = english.written_file(bared(line)) or chinese.written_file(bared(line))
    _, _, body = below.partition("\n")
    end = 0 if body.startswith("```") else body.find("\n```")
    if not path or end < 0:
        return None
    content = body[: end + 1] if end else ""
    rest = body[end:].strip("`\n ")
    ask = CallAsked("Write", {"file_path": path, "content": content})
    return Asked([ask], [rest[:200]] if rest else [])
