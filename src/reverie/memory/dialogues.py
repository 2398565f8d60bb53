"""Conversations kept as they were said: `Memory.record`.

Each is a transcript of its own below the project, apart from those of sessions: it is searched
with them and `forget` reaches it, but nothing prunes it and nothing is learned from it unasked.
A conversation that comes again, whole, longer, or by its newest messages, is continued and never
doubled. Writers take turns; what a writer that died left unfinished is completed by recording
again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from typing import TypeAlias, cast
from uuid import NAMESPACE_OID, uuid5

from reverie.errors import InvalidInput, InvalidMessage
from reverie.memory.values import Saved
from reverie.recall.passages import NAMED
from reverie.session.open_memory import lend_memory
from reverie.store.files import Folder
from reverie.store.home import DIALOGUES
from reverie.store.journal import BadLine, Journal
from reverie.store.lock import PATIENCE, FileLock
from reverie.store.project import Project
from reverie.text.format import plural
from reverie.transcript.blocks import text_block
from reverie.transcript.codec import decode, encode
from reverie.transcript.records import AssistantMessage, Entry, Record, Started, UserMessage
from reverie.wire.lists import format_of, parse_message, value_of
from reverie.world import Say

LOCK = ".reverie-dialogues.lock"
SOURCE = "dialogue"
ROLES = ("user", "assistant")
_Message: TypeAlias = UserMessage | AssistantMessage


def record(
    project: Project,
    messages: Sequence[object],
    session: str,
    at: datetime | float | None,
    say: Say,
) -> Saved:
    """Keep the messages that the transcript of a conversation does not have yet."""
    said = list(_messages(messages))
    if not said:
        raise InvalidInput("There is nothing to record", do="Give messages, or (speaker, text)")
    texts = [encode(Entry("", "", 0.0, one)) for one in said]
    name = session or sha256("\n".join(texts).encode()).hexdigest()[:16]
    when = at.timestamp() if isinstance(at, datetime) else time.time() if at is None else at
    with lend_memory(project, say) as one:
        kept = project.sessions_folder / DIALOGUES
        key = f"{uuid5(NAMESPACE_OID, name)}.jsonl"
        with (
            Folder(kept) as files,
            FileLock(kept / LOCK).hold(PATIENCE),
            Journal.open(files, key) as journal,
        ):
            known = list(_entries(journal))
            new = _unrecorded([e.record for e in known if isinstance(e.record, _KINDS)], said)
            for text in texts[len(said) - len(new) :]:
                one.store.forgotten.guard("", text.encode())
            rows: list[Record] = [*new]
            if not known:
                rows.insert(0, Started(name, str(project), "", "1", SOURCE))
            journal.append([encode(e) for e in _chained(rows, known, when)])
            journal.sync()
    count = plural(len(new), "message")
    return Saved("saved" if new else "unchanged", name, "", reason=count if new else "")


def learned_from(messages: Sequence[object]) -> list[object]:
    """The messages as `learn` takes them: of pairs, those of the user and the assistant."""
    pairs = [(one, _pair(one)) for one in messages]
    return [
        {"role": pair[0], "content": pair[1]} if pair else one
        for one, pair in pairs
        if not pair or pair[0] in ROLES
    ]


_KINDS = (UserMessage, AssistantMessage)


def _entries(journal: Journal) -> Iterator[Entry]:
    for line in journal.read():
        if not isinstance(line, BadLine):
            yield decode(line.text)


def _unrecorded(known: Sequence[_Message], said: list[_Message]) -> list[_Message]:
    """The messages behind those that the end of the transcript has already; none where all of
    them stand in it one after the other."""
    count = len(said)
    if any(list(known[n : n + count]) == said for n in range(len(known) - count + 1)):
        return []
    most = min(len(known), count)
    over = next((n for n in range(most, 0, -1) if list(known[-n:]) == said[:n]), 0)
    return said[over:]


def _chained(rows: Sequence[Record], known: Sequence[Entry], at: float) -> Iterator[Entry]:
    parent = known[-1].id if known else ""
    for number, row in enumerate(rows, len(known)):
        ident = f"m{number}"
        yield Entry(ident, parent, at, row)
        parent = ident


# Messages


def _messages(given: Sequence[object]) -> Iterator[_Message]:
    """What was said, from messages of any format, pairs of speaker and text, or texts."""
    if isinstance(given, (str, bytes)):
        raise InvalidMessage("A conversation is a list of messages", where=type(given).__name__)
    values = [value_of(one) for one in given if not isinstance(one, str) and not _pair(one)]
    form = format_of(values)[0]
    for one in given:
        pair = ("user", one) if isinstance(one, str) else _pair(one)
        if pair:
            yield _said(*pair)
            continue
        parsed = parse_message(value_of(one), form)
        if not parsed.blocks:
            continue
        if parsed.speaker == "assistant":
            yield AssistantMessage(parsed.blocks)
            continue
        results = all(block.type == "tool_result" for block in parsed.blocks)
        origin = "client" if parsed.speaker == "other" else "tool" if results else "user"
        yield UserMessage(parsed.blocks, origin)


def _pair(one: object) -> tuple[str, str] | None:
    """A pair of speaker and text."""
    if not isinstance(one, (tuple, list)) or len(cast("Sequence[object]", one)) != 2:
        return None
    speaker, text = cast("Sequence[object]", one)
    if not isinstance(speaker, str) or not isinstance(text, str):
        return None
    return speaker, text


def _said(speaker: str, text: str) -> _Message:
    blocks = (text_block(text),)
    if speaker == "assistant":
        return AssistantMessage(blocks)
    return UserMessage(blocks, f"{NAMED}{speaker}" if speaker not in ("", "user") else "user")
