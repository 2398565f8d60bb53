"""What later steps needed of what was said before: names, and where they came from.

A need is a name that a call's input repeats and that the user or a tool had given before:
a path, or a word no model could guess. Whether a policy still has it at hand when the
step comes is what the replay counts. Pure functions over texts; nothing is judged here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from reverie.transcript.blocks import Block, dump, text_of

SHORTEST = 10
WANTED = 12  # names of one step that count, the longest unseen first
FAR = 20  # steps: a need last seen longer ago is far
_PART = r"[\w.\-]+"
_NAME = re.compile(rf"{_PART}(?:/{_PART})+|[A-Za-z_][A-Za-z0-9_\-]{{9,}}")
_JOINED = re.compile(r"[/_\-]|[a-z][A-Z]")


@dataclass(frozen=True, slots=True)
class Need:
    """A name a step uses, the step it was last seen in, and the one that gave it."""

    name: str
    seen: int
    given: int


def identifiers(text: str) -> list[str]:
    """Paths, joined words, and words of letters and digits, in the order they stand."""
    found = (word.strip(".-") for word in _NAME.findall(text))
    return [word for word in found if len(word) >= SHORTEST and _telling(word)]


def _telling(word: str) -> bool:
    if _JOINED.search(word):
        return True
    return any(c.isdigit() for c in word) and any(c.isalpha() for c in word)


def words(block: Block) -> str:
    """The text of a block in which names are looked for; thinking is not looked at."""
    match block.type:
        case "tool_use":
            return _input(block).replace("\\t", "\t")
        case "text" | "tool_result":
            return text_of(block.value)
        case _:
            return ""


def _input(block: Block) -> str:
    """What a call asks, line by line."""
    return dump(block.value.get("input")).replace("\\n", "\n")


def needs(steps: Sequence[tuple[bool, Sequence[Block]]]) -> dict[int, tuple[Need, ...]]:
    """The needs of each step, by its number. A step is whether the assistant made it, and
    its blocks."""
    last: dict[str, int] = {}
    given: dict[str, int] = {}
    out: dict[int, tuple[Need, ...]] = {}
    for at, (is_assistant, blocks) in enumerate(steps):
        if is_assistant:
            asked = " ".join(_input(b) for b in blocks if b.type == "tool_use")
            found = [w for w in dict.fromkeys(identifiers(asked)) if w in given]
            found.sort(key=lambda word: (last[word], word))
            if found:
                wanted = islice(found, WANTED)
                out[at] = tuple(Need(word, last[word], given[word]) for word in wanted)
        for word in set(identifiers("\n".join(words(b) for b in blocks))):
            last[word] = at
            if not is_assistant:
                given[word] = at
    return out
