"""ReadBack: what was stored out of the context, by its reference.

A reference is the path, key or call id that a stored result was announced with, or
whatever another source knows. The file is compared with the hash in its record: one that
was deleted or changed since is said to be so. One answer has at most as many tokens as
the setting allows; offset and limit read on, a query gives the lines that hold it. Lines have
the numbers of the file; a very long one comes in parts, read on by column. It
reads from the session's own project alone, whatever path a text names.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from typing import BinaryIO

from anyio import to_thread

from reverie.errors import InvalidMessage, NotFound, PathRefused, StoreError
from reverie.layers.tool_results import FOLDER
from reverie.light import dataclass
from reverie.store.keys import beneath
from reverie.text.format import plural
from reverie.tools.tool import Input, Output, StoredResults, Tool, ToolContext, ToolFailed
from reverie.transcript.blocks import parse, text_of
from reverie.transcript.records import ResultDecided

LINE = 2_000
_PARSED = 32 * 1024 * 1024
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


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One stored file: its key in the project's folder, and the record it must match."""

    key: str
    record: ResultDecided | None


async def read_back(value: Input, context: ToolContext) -> Output:
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
        found = await to_thread.run_sync(_stored, reference, wanted, stored, abandon_on_cancel=True)
        if found is not None:
            return found
    for source in context.sources:
        known = await source.find(reference)
        if known is not None:
            text = io.BytesIO(known.text.encode("utf-8", "replace"))
            return page(known.title, known.warning, text, wanted)
    raise ToolFailed(
        "nothing is stored under this reference",
        where=reference[:200],
        do="Use the path or the call's id from the result that was stored",
    )


def _stored(reference: str, wanted: ReadRange, stored: StoredResults) -> Output | None:
    shelf = locate(reference, stored)
    if shelf is None:
        return None
    try:
        fd = stored.folder.open_read(shelf.key)
    except NotFound:
        raise ToolFailed("the stored file was deleted since", where=shelf.key) from None
    with os.fdopen(fd, "rb") as file:
        warning = _difference(shelf, stored)
        return page(shelf.key, warning, _text(file, shelf.key), wanted)


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


def _text(file: BinaryIO, key: str) -> BinaryIO:
    """A structured result as its text; anything else as it is."""
    if not key.endswith(".json"):
        return file
    data = file.read(_PARSED)
    try:
        return io.BytesIO(text_of(parse(data.decode())).encode("utf-8", "replace"))
    except (InvalidMessage, UnicodeDecodeError):
        return io.BytesIO(data)


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


def page(title: str, warning: str, file: BinaryIO, wanted: ReadRange) -> Output:
    needle = wanted.query.casefold()
    rows = [f"[{title}{': ' + warning if warning else ''}]"]
    used, lines = len(rows[0]), 0
    for part in _parts(file, min(LINE, wanted.bytes // 2)):
        lines = part.number
        found = part.since(wanted.offset, wanted.column)
        if found is None or (needle and needle not in found.text.casefold()):
            continue
        used += len(found.row.encode("utf-8", "replace")) + 1
        full = wanted.limit is not None and len(rows) > wanted.limit
        if full or (used > wanted.bytes and len(rows) > 1):
            rows.append(f"[there is more; go on with {_place(found)}]")
            break
        rows.append(found.row)
    if len(rows) == 1:
        what = f"no line holds {wanted.query!r}" if needle else f"it has {plural(lines, 'line')}"
        rows.append(f"[nothing: {what}]")
    return Output("\n".join(rows))


def _place(part: LinePart) -> str:
    column = f" and column {part.column}" if part.column > 1 else ""
    return f"offset {part.number}{column}"


READ_BACK = Tool(
    "ReadBack",
    "Reads back what left the conversation, by the reference that stands in its place, such as "
    "r:abc123: a call with its whole result, or a message. With "
    "query, only the lines that hold that text, in either case. Lines keep their numbers; about "
    "8,000 tokens come at once, and offset reads on.",
    {
        "type": "object",
        "properties": {
            "reference": {
                "type": "string",
                "description": "Such as r:abc123; or a stored path, a call's id",
            },
            "query": {"type": "string", "description": "Only lines that hold this text"},
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
