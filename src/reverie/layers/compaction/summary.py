"""What the summariser is asked, how its answer is read, and the words that stand for a range.

An answer is good if it is whole, has the nine sections, and is shorter than what it stands
for; its drafting block never reaches the context. Text of a model stands in a frame that it
cannot close. Nothing here calls a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from reverie.errors import ReverieError
from reverie.transcript import sections
from reverie.transcript.blocks import estimate
from reverie.transcript.messages import Item
from reverie.transcript.names import reference

OPEN, CLOSE = "<summary>", "</summary>"
DRAFTED = "</analysis>"
TAG = "conversation-summary"
LAST_CALLS = 10  # calls of the end that the stand names by reference
_HEADING = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]*|\*\*|\d{1,2}[.)][ \t]*)+(.+?)[ \t*:]*$", re.M)
_VARIABLE = re.compile(r"\{\{(scope|tokens|instructions|again)\}\}")


class Unusable(ReverieError, code="unusable"):
    """An answer of the summariser that cannot stand for anything."""


@cache
def _prompt() -> str:
    return (files("reverie.layers") / "prompts" / "compaction.md").read_text("utf-8")


def instruction(scope: str, tokens: int, instructions: str = "", fault: str = "") -> str:
    """What the summariser is told; `fault` is what was wrong with its last answer."""
    minded = ""
    if instructions.strip():
        minded = f"\nThe user asks you to mind this while you summarise:\n{instructions.strip()}\n"
    again = ""
    if fault:
        again = (
            f"\nYour last answer could not be used: {fault}. Write both parts once more, whole.\n"
        )
    values = {"scope": scope, "tokens": f"{tokens:,}", "instructions": minded, "again": again}
    return _VARIABLE.sub(lambda found: values[found[1]], _prompt()).rstrip() + "\n"


def read(answer: str, most: int) -> str:
    """The summary in an answer, without its draft; Unusable where it is not one."""
    end = answer.find(DRAFTED)
    said = answer[end + len(DRAFTED) :] if end >= 0 else answer
    start = said.find(OPEN)
    if start < 0:
        raise Unusable("it has no <summary>" if answer.strip() else "it is empty")
    stop = said.rfind(CLOSE)
    if stop < start:
        raise Unusable("its <summary> is never closed")
    text = said[start + len(OPEN) : stop].strip()
    missing = _missing(text)
    if missing:
        raise Unusable(f"sections are missing: {', '.join(missing)}")
    size = estimate(text)
    if size >= most:
        raise Unusable(f"it has {size:,} tokens and stands for {most:,}")
    return text


def _missing(text: str) -> list[str]:
    headings = [found[1].lower() for found in _HEADING.finditer(text)]
    return [
        name for name in sections.SUMMARY if not any(h.startswith(name.lower()) for h in headings)
    ]


def stand(
    text: str,
    *,
    where: str,
    gone: Sequence[Item],
    left_out: str,
    keep: str,
    goes_on: bool,
    reader: str = "ReadBack",
) -> str:
    """The words that stand for the messages `gone`; `reader` is the tool that takes references."""
    inside = re.sub(rf"<(?=/?{TAG}\b)", "&lt;", text, flags=re.IGNORECASE)
    head = f"{where} This summary stands for it"
    if reader:
        head += (
            "; the transcript keeps every word. By a reference, which is r: and six signs, "
            f"{reader} gives a call and its result whole"
        )
    parts = [
        f"[{head}.]",
        f"<{TAG}>\n{inside}\n</{TAG}>",
        left_out,
        keep,
        _last_calls(gone) if reader else "",
    ]
    if goes_on:
        parts.append(
            "[The work was under way. Go on with it as if there had been no break: greet nobody, "
            "repeat nothing, and ask nothing that is answered above.]"
        )
    return "\n\n".join(filter(None, parts))


def _last_calls(gone: Sequence[Item]) -> str:
    """The newest calls by name and reference, the last one last."""
    calls = [
        f"{p.block.get('name')} {reference(p.block.get('id'))}"
        for item in gone
        for p in item.pieces
        if p.block.type == "tool_use"
    ]
    return f"The last calls: {', '.join(calls[-LAST_CALLS:])}" if calls else ""
