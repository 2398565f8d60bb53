"""Why a fact of a memory folder is no longer there: reasons as values and as text.

A dream gives its reasons in a fenced block, one JSON object per line; `facts` checks them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from reverie.errors import InvalidMessage
from reverie.light import dataclass
from reverie.transcript.blocks import dump, parse

DropReason: TypeAlias = Literal[
    "merged_into",
    "superseded_by",
    "contradicted_by",
    "expired",
    "duplicate_of",
    "never_kept",
    "pointer",
    "shortened",
]
WHYS: dict[str, DropReason] = {why: why for why in get_args(DropReason)}
_BLOCK = re.compile(r"^```reasons[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_MOST_REASONS = 20_000


@dataclass(frozen=True, slots=True)
class RemovalReason:
    """Why a fact of a file is no longer there; without a fact it is about the whole file."""

    why: DropReason
    file: str
    target: str = ""
    fact: str = ""
    by: str = ""  # the line that stands in its place


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A fact that is gone for a reason that holds, and the line that replaces it."""

    file: str
    fact: str
    why: DropReason
    target: str = ""
    by: str = ""


def reasons_block(reasons: Iterable[RemovalReason]) -> str:
    """Write reasons as a fenced block that `reasons_in` reads."""
    rows = [dump(_value(one)) for one in reasons]
    return "\n".join(["```reasons", *rows, "```"])


def _value(one: RemovalReason) -> dict[str, str]:
    value = {"file": one.file, "reason": one.why, "target": one.target, "fact": one.fact}
    value |= {"by": one.by}
    return {name: text for name, text in value.items() if text}


def reasons_in(text: str) -> tuple[RemovalReason, ...]:
    """Read the reasons that a text gives; skip lines that are none."""
    rows = (row for block in _BLOCK.finditer(text) for row in block[1].splitlines()[:_MOST_REASONS])
    return tuple(one for one in map(_reason, rows) if one is not None)


def _reason(row: str) -> RemovalReason | None:
    try:
        value = parse(row)
    except InvalidMessage:
        return None
    if not isinstance(value, dict):
        return None
    given = {name: text for name, text in value.items() if isinstance(text, str)}
    why = WHYS.get(given.get("reason", ""))
    if why is None or not given.get("file"):
        return None
    return RemovalReason(why, given["file"], *(given.get(k, "") for k in ("target", "fact", "by")))
