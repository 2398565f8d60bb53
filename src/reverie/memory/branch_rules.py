"""What a dream may not do to rules on calls: the judge of their heads.

A memory that asks or blocks at the user's word stays as it is, byte for byte. Of any other,
`level` stays as it is, and `applies_to` changes only where something is known against the rule,
into what can be used. A file that goes leaves its `applies_to` to another, unless it was in doubt.
Words are judged elsewhere, as those of every memory. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias

from reverie.memory.format.entry import TopicFile, is_topic
from reverie.memory.rules import reading
from reverie.memory.rules.faults import faults_in
from reverie.memory.trust import Trust

_MARKS = (reading.APPLIES.encode(), reading.LEVEL.encode())
RuleLoss: TypeAlias = tuple[str, str]
"""A file, and what is wrong with what became of its rule."""


def rule_losses(
    base: Mapping[str, bytes],
    work: Mapping[str, bytes],
    doubted: Collection[str],
    trust: Callable[[str], Trust],
) -> Iterator[RuleLoss]:
    """What a dream's work does to rules that it may not."""
    for key, before in base.items():
        after = work.get(key)
        told = any(mark in before or mark in (after or b"") for mark in _MARKS)
        if after == before or not told or not is_topic(key):
            continue
        was = TopicFile(key, before)
        if reading.is_firm(was.front) and trust(key) is not Trust.UNTRUSTED:
            yield key, "it asks or blocks, which only the user changes: put the file back"
        elif after is None:
            if key not in doubted and not _stands(was, work):
                yield key, "it says which calls it is about; what takes its place must say the same"
        else:
            yield from ((key, text) for text in _changed(was, TopicFile(key, after), doubted))


def _changed(was: TopicFile, now: TopicFile, doubted: Collection[str]) -> Iterator[str]:
    if was.front.get(reading.LEVEL) != now.front.get(reading.LEVEL):
        yield "`level` is the user's to set: put it back as it was"
    old, new = reading.read(was.front), reading.read(now.front)
    if old == new:
        return
    if was.key not in doubted:
        yield "nothing is known against its `applies_to`: put it back as it was"
    for fault in faults_in(now.front, now.type):
        yield f"`applies_to` cannot be used so: {fault}"


def _stands(was: TopicFile, work: Mapping[str, bytes]) -> bool:
    """Whether another file is about the same calls as one that goes, if it is about any."""
    head = reading.read(was.front)
    if not head.given:
        return True
    mark = reading.APPLIES.encode()
    others = (TopicFile(key, data) for key, data in work.items() if mark in data)
    return any(reading.read(one.front) == head for one in others)
