"""Young memories, sent whole: while they are few, their bodies stand with the index in the head.

All trusted memories while together they are within the limit; above it those about the user and
the user's rules, while these are; above that the rules that had to be said again, and recall
brings what a turn needs. They are
read when a head is made, and a head is a record: what changes later reaches the next one. Nothing
untrusted, nothing of the team's, and nothing that cannot be read stands among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reverie.errors import NotFound, StoreError
from reverie.memory.format.entry import TEAM, TopicFile
from reverie.memory.instructions import InstructionFile, InstructionKind
from reverie.memory.ranking import ManifestLine, iso_time
from reverie.memory.trust import Trust
from reverie.session.recall.notes import in_head, trust_at
from reverie.settings import Settings
from reverie.store.memories import Memories
from reverie.transcript.blocks import TEXT_BYTES, text_block

MAX_HEAD = 1_024
"""Bytes of a file that may be frontmatter: more than the limit and so much is not read at all."""
MAX_PINNED = 20  # rules that had to be said again stand there whatever the limit
MAX_FILES = 200  # a folder of more is not young, however short they are
ABOUT_THE_USER = ("user", "feedback")
_ORDER: tuple[InstructionKind, ...] = ("rule", "person", "remembered")


def young_memories(
    memories: Memories, settings: Settings, scanned: Sequence[ManifestLine]
) -> tuple[InstructionFile, ...]:
    """The memories whose bodies stand in the head, of those that a scan found, rules first and
    the newest last."""
    most = settings.young_tokens
    own = [one for one in scanned if not one.key.startswith(f"{TEAM}/")]
    about_user = [one for one in own if one.type in ABOUT_THE_USER]
    pinned = [one for one in about_user if one.said][:MAX_PINNED]
    for records, limit in ((own, most), (about_user, most), (pinned, MAX_PINNED * most)):
        found = _within(memories, records, limit)
        if found is not None:
            return tuple(sorted(found, key=lambda file: _ORDER.index(file.kind)))
    return ()


def _within(
    memories: Memories, records: Sequence[ManifestLine], most: int
) -> list[InstructionFile] | None:
    """The trusted ones as they are sent; None where they are more than the limit."""
    if len(records) > MAX_FILES:
        return None
    trusted: list[ManifestLine] = []
    least = 0
    for one in records:
        if trust_at(memories, one.key) is Trust.UNTRUSTED:
            continue
        trusted.append(one)
        least += max(0, one.size - MAX_HEAD)
        if least > most * TEXT_BYTES:
            return None
    found: list[InstructionFile] = []
    tokens = 0
    for one in reversed(trusted):
        try:
            read = memories.folder.read(one.key)
        except (NotFound, StoreError):
            continue
        tokens += text_block(read.body.strip()).tokens
        if tokens > most:
            return None
        if read.body.strip():
            found.append(_sent(memories.root, read))
    return found


def _sent(folder: Path, one: TopicFile) -> InstructionFile:
    sent = in_head(folder, one)
    return replace(sent, text=f"{sent.text}\n\n(Saved {iso_time(one.modified)[:10]})")
