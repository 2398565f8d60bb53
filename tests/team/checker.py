"""A checker of what several writers did to one repository, from what they recorded alone.

Every state of a repository has one tag, and a write names the tag it was made on and, where it
was answered, the one it made. So the whole history must be one chain: no two answered writes on
one tag, each read just what its chain had written by then. Writes that were never answered may
have happened or not; a state that no answered write made must then be one of theirs.
It shares no code with the server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Done:
    """One operation as its client saw it; times by one clock."""

    kind: str
    """put or get."""
    began: float
    ended: float
    on: str
    """The tag that a put was made on; of a get, nothing."""
    made: str
    """The tag that came back; "" where no answer did."""
    texts: dict[str, str] = field(default_factory=dict[str, str])
    """What a put wrote, or a get read."""


Texts = dict[str, str]


def faults(history: Sequence[Done]) -> list[str]:
    """What cannot be, in words; nothing where one order explains it all."""
    return [*_lost(history), *_impossible(history), *_went_back(history)]


def _number(tag: str) -> int:
    """A tag's counter; the beginning is 0."""
    return int(tag.strip('"').rpartition("-")[2])


def _lost(history: Sequence[Done]) -> list[str]:
    """No two answered writes stand on one state, and each makes the very next one."""
    found: list[str] = []
    taken = Counter(one.on for one in history if one.kind == "put" and one.made)
    found += [f"lost update: {count} writes on {tag}" for tag, count in taken.items() if count > 1]
    for one in history:
        if one.kind == "put" and one.made and _number(one.made) != _number(one.on) + 1:
            found.append(f"a write on {one.on} made {one.made}")
    return found


def _impossible(history: Sequence[Done]) -> list[str]:
    """Walk the states in their order; each read must be one that the writes can have made."""
    possible: list[Texts] = [{}]
    last = max((_number(one.made) for one in history if one.made), default=0)
    for number in range(last + 1):
        if number:
            possible = _next(history, number, possible)
        reads = [one for one in history if one.kind == "get" and _number(one.made) == number]
        for one in reads:
            if one.texts not in possible:
                return [f"a read of version {number} that no write explains"]
            possible = [one.texts]
        if not possible:
            return [f"version {number} was made by nobody"]
    return []


def _next(history: Sequence[Done], number: int, possible: list[Texts]) -> list[Texts]:
    """The states that can follow: by the write that was answered, else by one that was not."""
    on = [one for one in history if one.kind == "put" and _number(one.on) == number - 1]
    sure = [one for one in on if one.made]
    steps = sure or [one for one in on if not one.made]
    states: list[Texts] = []
    for before in possible:
        for step in steps:
            after = {**before, **step.texts}
            if after not in states:
                states.append(after)
    return states


def _went_back(history: Sequence[Done]) -> list[str]:
    """Whoever began after another had ended sees no older state."""
    found: list[str] = []
    told = [one for one in history if one.made]
    ended = sorted(told, key=lambda one: one.ended)
    newest, at = 0, 0
    for one in sorted(told, key=lambda one: one.began):
        while at < len(ended) and ended[at].ended < one.began:
            newest = max(newest, _number(ended[at].made))
            at += 1
        if _number(one.made) < newest:
            found.append(f"{one.kind} went back: {one.made} after version {newest}")
    return found
