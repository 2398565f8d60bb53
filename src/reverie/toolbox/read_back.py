"""ReadBack over stored and sealed content; Snip.

ReadBack: what was stored out of the context, by its reference.

A reference is the path, key or call id that a stored result was announced with, or
whatever another source knows. The file is compared with the hash in its record: one that
was deleted or changed since is said to be so. One answer has at most as many tokens as
the setting allows; offset and limit read on, a query gives the lines that have its words. Lines
have the numbers of the file; a very long one comes in parts, read on by column. It reads from
the session's own project alone, whatever path a text names.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from anyio import to_thread

from reverie.errors import InvalidMessage, NotFound, PathRefused, StoreError
from reverie.layers.tool_results import FOLDER
from reverie.light import dataclass
from reverie.store.files import Folder
from reverie.store.fs import digest
from reverie.store.paths import beneath
from reverie.text.format import plural
from reverie.toolbox.tool import (
    Input,
    ReferencedText,
    StoredResults,
    Tool,
    ToolContext,
    ToolFailed,
    ToolOutput,
)
from reverie.transcript.blocks import Json, media_of, parse, text_of
from reverie.transcript.mentions import REFERENCE, part_reference, reference, round_text
from reverie.transcript.records import AssistantMessage, Record, ResultDecided, UserMessage
from reverie.transcript.view import Call, View

LINE = 2_000
_PARSED = 32 * 1024 * 1024
_TERM = re.compile(r'"([^"]+)"|([^\s"]+)')  # a phrase, or a word
_ANNOUNCED = re.compile(r"stored whole in (.+?)\\n")


@dataclass(frozen=True, slots=True)
class ReadRange:
    """Which part of a text: from a line and column on, so many lines, perhaps only those with
    a query."""

    query: str
    offset: int
    column: int
    limit: int | None
    bytes: int

    @property
    def begins(self) -> bool:
        """Whether it is the beginning: pictures and documents come with that."""
        return self.offset == 1 and self.column == 1 and not self.query


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One stored file: its key in the project's folder, and the record it must match."""

    key: str
    record: ResultDecided | None


async def read_back(value: Input, context: ToolContext) -> ToolOutput:
    reference = str(value["reference"]).strip()
    settings = context.settings
    wanted = ReadRange(
        str(value.get("query") or ""),
        int(value.get("offset") or 1),
        int(value.get("column") or 1),
        value.get("limit"),
        settings.collapse_reference * settings.text_bytes_per_token,
    )
    if context.stored is not None:
        stored = context.stored
        found = await to_thread.run_sync(
            _read_stored, reference, wanted, stored, abandon_on_cancel=True
        )
        if found is not None:
            return found
    for source in context.sources:
        known = await source.find(reference)
        if known is not None:
            text = io.BytesIO(known.text.encode("utf-8", "replace"))
            return _output(page(known.title, known.warning, text, wanted), known.media, wanted)
    raise ToolFailed(
        "nothing is stored under this reference",
        where=reference[:200],
        do="Use the path or the call's id from the result that was stored",
    )


def _output(text: str, media: Sequence[Mapping[str, Any]], wanted: ReadRange) -> ToolOutput:
    """A page, and at the beginning the pictures and documents that belong to it."""
    if not media or not wanted.begins:
        return ToolOutput(text)
    return ToolOutput([{"type": "text", "text": text}, *map(dict, media)])


def _read_stored(reference: str, wanted: ReadRange, stored: StoredResults) -> ToolOutput | None:
    shelf = locate(reference, stored)
    if shelf is None:
        return None
    try:
        fd = stored.folder.open_read(shelf.key)
    except NotFound:
        raise ToolFailed("the stored file was deleted since", where=shelf.key) from None
    with os.fdopen(fd, "rb") as file:
        warning = _difference(shelf, stored)
        text, media = _text(file, shelf.key)
        return _output(page(shelf.key, warning, text, wanted), media, wanted)


def locate(reference: str, stored: StoredResults) -> StoredFile | None:
    """The file a reference names; None where it names none of this project's."""
    records = {c: d for c, d in stored.view().decisions.items() if d.path}
    if reference in records:
        return StoredFile(_key(records[reference], stored), records[reference])
    root, session = stored.folder.root, stored.session
    path = os.path.normpath(os.path.join(root / session, reference))
    base = os.path.realpath(root)
    for start in (str(root), base):
        if path.startswith(f"{start}/"):
            key = path[len(start) + 1 :]
            break
    else:
        return None
    if FOLDER not in key.split("/")[:-1] or not _exists_or_known(key, stored, records):
        return None
    return StoredFile(key, next((r for r in records.values() if _key(r, stored) == key), None))


def _exists_or_known(key: str, stored: StoredResults, records: dict[str, ResultDecided]) -> bool:
    if any(_key(r, stored) == key for r in records.values()):
        return True
    try:
        return stored.folder.exists(key)
    except PathRefused:
        return False


def _key(record: ResultDecided, stored: StoredResults) -> str:
    """Where a record's file lies: in this session, or in the one this is a copy of."""
    own = f"{stored.session}/{record.path}"
    if stored.folder.exists(own):
        return own
    announced = _ANNOUNCED.search(record.content)
    if announced is not None:
        path = stored.folder.root / announced[1]
        if beneath(stored.folder.root, path):
            return str(path.relative_to(stored.folder.root))
    return own


def _difference(shelf: StoredFile, stored: StoredResults) -> str:
    if shelf.record is None:
        return ""
    try:
        same = stored.folder.digest(shelf.key) == shelf.record.sha256
    except StoreError as error:
        return f"the stored file could not be checked: {error}"
    return "" if same else "the stored file was changed since; this is what it holds now"


def _text(file: BinaryIO, key: str) -> tuple[BinaryIO, tuple[Mapping[str, Any], ...]]:
    """A structured result as its text and its media; anything else as it is."""
    if not key.endswith(".json"):
        return file, ()
    data = file.read(_PARSED)
    text, media = _parsed(data)
    return io.BytesIO(text.encode("utf-8", "replace")), media


def _parsed(data: bytes) -> tuple[str, tuple[Mapping[str, Any], ...]]:
    try:
        content = parse(data.decode())
    except (InvalidMessage, UnicodeDecodeError):
        return data.decode("utf-8", "replace"), ()
    return text_of(content), media_of(content)


@dataclass(frozen=True, slots=True)
class LinePart:
    """A line, or where it is very long one part of it: which line, and from which column."""

    number: int
    column: int
    text: str

    @property
    def row(self) -> str:
        return f"{self.number:6d}{'+' if self.column > 1 else ''}\t{self.text}"

    def since(self, offset: int, column: int) -> LinePart | None:
        """What of it stands at or behind a place; None where nothing does."""
        if self.number != offset or self.column >= column:
            return self if self.number >= offset else None
        rest = self.text[column - self.column :]
        return LinePart(self.number, column, rest) if rest else None


def _parts(file: BinaryIO, longest: int) -> Iterator[LinePart]:
    """Lines in bounded memory; one that is longer comes in parts, none of it lost."""
    carried, number, column = b"", 1, 1
    while piece := file.readline(longest - len(carried)):
        data = carried + piece
        ended = data.endswith(b"\n")
        carried = b"" if ended else _half_a_character(data)
        whole = data[: len(data) - len(carried)]
        whole = whole.rstrip(b"\r\n") if ended else whole
        text = whole.decode("utf-8", "replace").replace("\0", "�")
        yield LinePart(number, column, text)
        number, column = (number + 1, 1) if ended else (number, column + len(text))


def _half_a_character(data: bytes) -> bytes:
    """The bytes at the end that begin a character and do not finish it."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[-back:] if length > back else b""
        if byte < 0x80:
            break
    return b""


def page(title: str, warning: str, file: BinaryIO, wanted: ReadRange) -> str:
    """What is wanted of a text, and above it what was looked for: the words of a query stand in a
    line in any order."""
    terms = [(phrase or word).casefold() for phrase, word in _TERM.findall(wanted.query)]
    told = ", ".join(terms)
    about = (": " + warning if warning else "") + (f"; lines with {told}" if terms else "")
    rows = [f"[{title}{about}]"]
    used, lines = len(rows[0]), 0
    for part in _parts(file, min(LINE, wanted.bytes // 2)):
        lines = part.number
        found = part.since(wanted.offset, wanted.column)
        if found is None or not all(term in found.text.casefold() for term in terms):
            continue
        used += len(found.row.encode("utf-8", "replace")) + 1
        full = wanted.limit is not None and len(rows) > wanted.limit
        if full or (used > wanted.bytes and len(rows) > 1):
            rows.append(f"[there is more; go on with {_place(found)}]")
            break
        rows.append(found.row)
    if len(rows) == 1:
        what = f"no line holds all of {told}" if terms else f"it has {plural(lines, 'line')}"
        rows.append(f"[nothing: {what}]")
    return "\n".join(rows)


def _place(part: LinePart) -> str:
    column = f" and column {part.column}" if part.column > 1 else ""
    return f"offset {part.number}{column}"


READ_BACK = Tool(
    "ReadBack",
    "Reads back what left the conversation by its reference, such as r:abc123: a call with its "
    "whole result, a message, or a part of the conversation, pictures included. With query, only "
    'the lines with all its words, in any order; "quoted" words as they stand. '
    "About 8,000 tokens come at once; offset reads on.",
    {
        "type": "object",
        "properties": {
            "reference": {
                "type": "string",
                "description": "Such as r:abc123; or a stored path, a call's id",
            },
            "query": {"type": "string", "description": "Only lines with these words"},
            "offset": {"type": "integer", "minimum": 1, "description": "The first line"},
            "column": {"type": "integer", "minimum": 1, "description": "Where in a long line"},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines at most"},
        },
        "required": ["reference"],
        "additionalProperties": False,
    },
    read_back,
    read_only=True,
    limit=None,
)


# --- What left the context, found again by its short reference.
#
# `r:abc123` names a tool call of this session: its input as the model wrote it, its result whole,
# from the transcript or from the file it was stored in, and what was said beside it. It may also
# name a message, of the user's or the assistant's, or a folded part, whose rounds come in their
# order. Pictures and documents come as blocks. A file that was deleted or changed since is
# said to be. Nothing is written.


@dataclass(frozen=True, slots=True)
class SealedCalls:
    """A `Source` for ReadBack over one session."""

    view: Callable[[], View]
    folder: Folder
    session: str

    async def find(self, reference: str) -> ReferencedText | None:
        if not REFERENCE.fullmatch(reference):
            return None
        return await to_thread.run_sync(self.look, reference)

    def look(self, wanted: str) -> ReferencedText | None:
        """The same, for whoever may wait for a disk."""
        view = self.view()
        calls = [call for name, call in view.calls.items() if reference(name) == wanted]
        found = [self._call(view, call) for call in calls]
        found += _messages(view, wanted)
        found = found or self._part(view, wanted)
        if not found:
            return None
        return ReferencedText(
            ", ".join(f.title for f in found),
            "\n\n".join(f.text for f in found),
            " ".join(f.warning for f in found if f.warning),
            tuple(m for f in found for m in f.media),
        )

    def _call(self, view: View, call: Call) -> ReferencedText:
        """A result and the call behind it, so that the result's lines have the numbers that its
        file has; and a warning where it cannot be vouched for."""
        asked = _input(view, call)
        text, media, warning = self._whole(view, call.id, _result(view, call))
        beside = f"\n\n[You said with it: {said}]" if (said := _beside(view, call)) else ""
        told = f"{text}\n\n[The call was {call.name} {asked}]{beside}"
        return ReferencedText(f"{call.name} {call.id}", told, warning, media)

    def _whole(
        self, view: View, call: str, content: Json
    ) -> tuple[str, tuple[Mapping[str, Any], ...], str]:
        """A result's text and media, from its file where it was stored, and a warning."""
        decision = view.decisions.get(call)
        if decision is None or not decision.path:
            return text_of(content), media_of(content), ""
        try:
            data = self.folder.read(f"{self.session}/{decision.path}")
        except (NotFound, StoreError):
            return "", (), "The stored result was deleted; run the tool again."
        same = digest(data) == decision.sha256
        warning = "" if same else "The stored result was changed since it was stored."
        if decision.path.endswith(".json"):
            return *_parsed(data), warning
        return data.decode("utf-8", "replace"), (), warning

    def _part(self, view: View, wanted: str) -> list[ReferencedText]:
        """The rounds of a folded part, from its first message on."""
        spoken = [e for e in view.entries if isinstance(e.record, (UserMessage, AssistantMessage))]
        first = next((e for e in spoken if part_reference(e.id) == wanted), None)
        if first is None:
            return []
        covers = next((i.covers for i in view.items if first.id in i.covers), frozenset[str]())
        rest = [e for e in spoken[spoken.index(first) :] if e.id in covers]
        out = [self._round(view, entry.record) for entry in rest]
        return [ReferencedText(f"part {wanted}", "\n\n".join(out))]

    def _round(self, view: View, record: Record) -> str:
        assert isinstance(record, (UserMessage, AssistantMessage))  # the caller has looked
        stored = {
            b.call: self._whole(view, b.call, b.value.get("content"))[0]
            for b in record.blocks
            if b.type == "tool_result"
        }
        return round_text(
            "assistant" if isinstance(record, AssistantMessage) else "user", record.blocks, stored
        )


def _messages(view: View, wanted: str) -> list[ReferencedText]:
    """Messages of that reference, whole: the user's, or answers of the assistant's."""
    out: list[ReferencedText] = []
    for entry in view.entries:
        record = entry.record
        if isinstance(record, UserMessage) and any(b.type != "tool_result" for b in record.blocks):
            who = "tool" if record.origin == "tool" else "user"
        elif isinstance(record, AssistantMessage):
            who = "assistant"
        else:
            continue
        if reference(entry.id) == wanted:
            text = "\n".join(b.text for b in record.blocks if not b.thinking)
            media = media_of([b.value for b in record.blocks])
            out.append(ReferencedText(f"{who} message {entry.id}", text, media=media))
    return out


def _beside(view: View, call: Call) -> str:
    """What the message of a call says beside it."""
    entry = view.entries.find(call.message)
    record = entry.record if entry else None
    blocks = record.blocks if isinstance(record, AssistantMessage) else ()
    return "\n".join(b.get("text") for b in blocks if b.type == "text" and not b.blank)


def _input(view: View, call: Call) -> str:
    entry = view.entries.find(call.message)
    record = entry.record if entry else None
    if not isinstance(record, AssistantMessage):
        return ""
    return next((text_of(b.value) for b in record.blocks if b.get("id") == call.id), "")


def _result(view: View, call: Call) -> Json:
    """The result as it came: the transcript keeps what the context no longer shows."""
    start = view.entries.place(call.message)
    for entry in view.entries.since(start or 0):
        if isinstance(entry.record, UserMessage):
            for block in entry.record.blocks:
                if block.type == "tool_result" and block.call == call.id:
                    return block.value.get("content")
    return ""
