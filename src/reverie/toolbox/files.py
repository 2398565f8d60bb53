"""Read, Write and Edit: a file's lines or a picture, whole files, and exact replacements.

Read shows at most `LINES` lines and as many characters as a result may have; a note says how to
read on. Files of any size are read in bounded memory: one that is small enough to edit is read
at once and its hash noted, a larger one is passed over line by line. Binary files are named, not
shown. Bytes that are not UTF-8 are shown as replacement signs.

A file that exists must have been read before it is written, and must still be what was read;
then it is replaced in one step. Edit works on bytes: what it does not replace stays as it is,
line ends and stray bytes included. Neither ever leaves a file half written.
"""

from __future__ import annotations

import base64
import io
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from anyio import to_thread

from reverie.errors import NotFound
from reverie.store.files import Changed
from reverie.store.fs import digest, read_open
from reverie.store.paths import format_path
from reverie.text.format import plural
from reverie.toolbox.file_access import EDITABLE, content
from reverie.toolbox.tool import Input, ProposedEdit, Tool, ToolContext, ToolFailed, ToolOutput

LINES = 2_000
LINE = 2_000
PICTURE = 3_750_000
AROUND = 3  # lines shown about an edit
_PIECE = 64 * 1024
_PASSED = 4 * 1024 * 1024 * 1024
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


@dataclass
class FilePage:
    """Numbered lines up to a limit, and what was left out."""

    most_lines: int
    most_characters: int
    lines: list[str] = field(default_factory=list)
    used: int = 0
    cut: int = 0

    def add(self, number: int, text: str, length: int) -> bool:
        """Add a line; False where the page is full."""
        if length > LINE:
            text = f"{text[:LINE]} […{length - LINE:,} more bytes in this line]"
            self.cut += 1
        row = f"{number:6d}\t{text}"
        full = len(self.lines) >= self.most_lines or self.used + len(row) > self.most_characters
        if full and self.lines:
            return False
        self.lines.append(row[: self.most_characters])
        self.used += len(row) + 1
        return True


async def read(value: Input, context: ToolContext) -> ToolOutput:
    path = context.files.find(str(value["file_path"]))
    offset = int(value.get("offset") or 1)
    count = min(int(value.get("limit") or LINES), LINES)
    page = FilePage(count, context.settings.result_characters)
    return await to_thread.run_sync(_read, path, offset, page, context, abandon_on_cancel=True)


def _read(path: Path, offset: int, page: FilePage, context: ToolContext) -> ToolOutput:
    fd = context.files.open(path)
    try:
        info = os.fstat(fd)
        if stat.S_ISDIR(info.st_mode):
            raise ToolFailed("it is a folder", where=format_path(str(path)), do="Use List")
        head = os.pread(fd, 8_192, 0) if info.st_size else b""
        kind = picture(head)
        if kind:
            return _picture(fd, kind, info.st_size, path)
        if b"\0" in head:
            raise ToolFailed(
                f"it is a binary file of {info.st_size:,} bytes",
                where=format_path(str(path)),
                do="A command can look into it",
            )
        if info.st_size <= EDITABLE:
            return _small(fd, path, offset, page, context)
        with os.fdopen(os.dup(fd), "rb") as file:
            more = _fill(page, file, offset)
        return _format_page(page, offset, more, path, info.st_size)
    finally:
        os.close(fd)


def _small(fd: int, path: Path, offset: int, page: FilePage, context: ToolContext) -> ToolOutput:
    data = read_open(fd, EDITABLE + 1)
    more = _fill(page, io.BytesIO(data), offset)
    if len(data) <= EDITABLE:
        context.reads.note(path, digest(data))
    return _format_page(page, offset, more, path, len(data))


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Each line's beginning and its whole length, in bounded memory."""
    passed = 0
    while passed < _PASSED and (piece := file.readline(_PIECE)):
        length = len(piece)
        rest = piece
        while not rest.endswith(b"\n") and (rest := file.readline(_PIECE)):
            length += len(rest)
        passed += length
        ended = 1 if (rest or piece).endswith(b"\n") else 0
        yield piece, length - ended


def _fill(page: FilePage, file: BinaryIO, offset: int) -> int | None:
    """Put lines on the page; the number of the first that found no room, if any."""
    passed = _skip(file, offset - 1)
    number = passed
    for number, (piece, length) in enumerate(_lines(file), passed + 1):
        text = piece.rstrip(b"\r\n")[: LINE * 4].decode("utf-8", "replace")
        if number == 1:
            text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
        if not page.add(number, text.replace("\0", "\N{REPLACEMENT CHARACTER}"), length):
            return number
    if number < offset and number:
        raise ToolFailed(f"the file has {plural(number, 'line')}; line {offset:,} is past its end")
    return None


def _skip(file: BinaryIO, count: int) -> int:
    """Go past so many lines, piece by piece; how many there were."""
    passed, at, ended = 0, 0, True
    while passed < count and (piece := file.read(1 << 20)):
        found = piece.count(b"\n")
        if passed + found >= count:
            start = 0
            while passed < count:
                start = piece.index(b"\n", start) + 1
                passed += 1
            file.seek(at + start)
            return passed
        passed += found
        at += len(piece)
        ended = piece.endswith(b"\n")
    return passed if ended else passed + 1


def _format_page(
    page: FilePage, offset: int, more: int | None, path: Path, size: int
) -> ToolOutput:
    if not page.lines:
        return ToolOutput("(the file is empty)" if not size else "(nothing to show)")
    body = "\n".join(page.lines)
    if more is None:
        return ToolOutput(body)
    note = (
        f"[{format_path(str(path))} has {size:,} bytes; these are lines {offset:,} to "
        f"{more - 1:,}. "
        f"Read on with offset {more}]"
    )
    return ToolOutput(f"{body}\n{note}")


def picture(head: bytes) -> str:
    """The media type of a picture by its first bytes; nothing for anything else."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), "")


def _picture(fd: int, kind: str, size: int, path: Path) -> ToolOutput:
    if size > PICTURE:
        raise ToolFailed(
            f"the picture has {size:,} bytes; {PICTURE:,} can be shown",
            where=format_path(str(path)),
        )
    data = base64.b64encode(read_open(fd, PICTURE)).decode("ascii")
    source = {"type": "base64", "media_type": kind, "data": data}
    return ToolOutput([{"type": "image", "source": source}])


_PATH = {"type": "string", "description": "The file; a relative path is one of the project"}

READ = Tool(
    "Read",
    "Reads a file and gives its lines with their numbers, at most 2,000 lines and 50,000 "
    "characters at once; a note says how to read on. Also shows PNG, JPEG, GIF and WebP pictures.",
    {
        "type": "object",
        "properties": {
            "file_path": _PATH,
            "offset": {"type": "integer", "minimum": 1, "description": "The first line to read"},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines at most"},
        },
        "required": ["file_path"],
        "additionalProperties": False,
    },
    read,
    read_only=True,
    limit=None,
    path="file_path",
)


async def write(value: Input, context: ToolContext) -> ToolOutput:
    path = context.files.target(str(value["file_path"]))
    return await to_thread.run_sync(_write, path, _content(value), context)


async def preview_write(value: Input, context: ToolContext) -> ProposedEdit:
    path = context.files.target(str(value["file_path"]))
    return ProposedEdit(await to_thread.run_sync(_replaced_content, path, context), _content(value))


def _content(value: Input) -> bytes:
    data = encode_text(str(value["content"]))
    if len(data) > EDITABLE:
        raise ToolFailed(f"the content has {len(data):,} bytes; {EDITABLE:,} can be written")
    return data


def _write(path: Path, data: bytes, context: ToolContext) -> ToolOutput:
    old = _replaced_content(path, context)
    _land(path, data, None if old is None else digest(old), context)
    done = "Wrote" if old is None else "Replaced"
    return ToolOutput(f"{done} {format_path(str(path))} ({len(data):,} bytes)")


def _replaced_content(path: Path, context: ToolContext) -> bytes | None:
    """What a write would replace; ToolFailed where that is not what was read."""
    try:
        old = _bytes(path, context)
    except NotFound:
        return None
    where, read_as = format_path(str(path)), context.reads.digest(path)
    if read_as is None:
        raise ToolFailed("the file exists and was not read yet", where=where, do="Read it first")
    if read_as != digest(old):
        raise _changed_error(where)
    return old


def _changed_error(where: str) -> ToolFailed:
    return ToolFailed("the file changed since it was read", where=where, do="Read it again")


def _bytes(path: Path, context: ToolContext) -> bytes:
    fd = context.files.open(path)
    try:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise ToolFailed("it is a folder", where=format_path(str(path)))
        return content(fd, path)
    finally:
        os.close(fd)


def _land(path: Path, data: bytes, expect: str | None, context: ToolContext) -> None:
    try:
        context.files.write(path, data, expect)
    except Changed as error:
        raise _changed_error(format_path(str(path))) from error
    context.reads.note(path, digest(data))


@dataclass(frozen=True, slots=True)
class _FileEdit:
    """A file before and after an edit, and where that was made."""

    before: bytes
    after: bytes
    count: int
    at: int  # the first place, in bytes
    length: int


async def edit(value: Input, context: ToolContext) -> ToolOutput:
    path = context.files.target(str(value["file_path"]))
    return await to_thread.run_sync(_edit, path, _replacement(value), context)


async def preview_edit(value: Input, context: ToolContext) -> ProposedEdit:
    path = context.files.target(str(value["file_path"]))
    done = await to_thread.run_sync(_apply_edit, path, _replacement(value), context)
    return ProposedEdit(done.before, done.after)


def _replacement(value: Input) -> tuple[bytes, bytes, bool]:
    old, new = str(value["old_string"]), str(value["new_string"])
    if not old:
        raise ToolFailed("old_string is empty", do="Use Write for a new file")
    if old == new:
        raise ToolFailed("old_string and new_string are the same")
    return encode_text(old), encode_text(new), bool(value.get("replace_all"))


def _edit(path: Path, change: tuple[bytes, bytes, bool], context: ToolContext) -> ToolOutput:
    done = _apply_edit(path, change, context)
    _land(path, done.after, digest(done.before), context)
    told = _around(done.after, done.at, done.length)
    return ToolOutput(f"Replaced {done.count:,} in {format_path(str(path))}\n{told}")


def _apply_edit(path: Path, change: tuple[bytes, bytes, bool], context: ToolContext) -> _FileEdit:
    """What an edit makes of the file as it is now; ToolFailed where it cannot be made."""
    where = format_path(str(path))
    seen = context.reads.digest(path)
    if seen is None:
        raise ToolFailed("the file was not read yet", where=where, do="Read it first")
    try:
        data = _bytes(path, context)
    except NotFound as error:
        raise ToolFailed("the file is gone", where=where) from error
    if digest(data) != seen:
        raise _changed_error(where)
    old, new, every = _line_ends(data, change)
    count = data.count(old)
    if not count:
        raise ToolFailed(
            "old_string is not in the file", where=where, do="Copy it exactly, spaces included"
        )
    if count > 1 and not every:
        raise ToolFailed(
            f"old_string is in the file {count:,} times",
            where=where,
            do="Give more of the text around it, or set replace_all",
        )
    result = data.replace(old, new) if every else data.replace(old, new, 1)
    if len(result) > EDITABLE:
        raise ToolFailed(f"the file would have {len(result):,} bytes", where=where)
    return _FileEdit(data, result, count, data.index(old), len(new))


def _line_ends(data: bytes, change: tuple[bytes, bytes, bool]) -> tuple[bytes, bytes, bool]:
    """The change with the file's own line ends, where it only fits with them."""
    old, new, every = change
    if old in data or b"\r\n" not in data or b"\r" in old:
        return change
    return old.replace(b"\n", b"\r\n"), new.replace(b"\n", b"\r\n"), every


def _around(data: bytes, at: int, length: int) -> str:
    """The lines about a change, numbered."""
    first = data.count(b"\n", 0, at)
    last = first + data.count(b"\n", at, at + length)
    begin = max(0, first - AROUND)
    lines = data.split(b"\n")[begin : min(last, first + 20) + AROUND + 1]
    texts = [line[:200].decode("utf-8", "replace").rstrip("\r") for line in lines]
    return "\n".join(f"{begin + n:6d}\t{t}" for n, t in enumerate(texts, 1)).replace("\0", "?")


def encode_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolFailed("the text has half a character that cannot be written") from error


WRITE = Tool(
    "Write",
    "Writes a file whole, made with its folders where it is missing. A file that exists must "
    "have been read first.",
    {
        "type": "object",
        "properties": {
            "file_path": _PATH,
            "content": {"type": "string", "description": "All of the new contents"},
        },
        "required": ["file_path", "content"],
        "additionalProperties": False,
    },
    write,
    path="file_path",
    preview=preview_write,
)
EDIT = Tool(
    "Edit",
    "Replaces an exact text in a file that was read before. The text must be there once, or "
    "replace_all be set.",
    {
        "type": "object",
        "properties": {
            "file_path": _PATH,
            "old_string": {"type": "string", "description": "The text to replace, exactly"},
            "new_string": {"type": "string", "description": "The text to put there"},
            "replace_all": {"type": "boolean", "description": "Replace it everywhere"},
        },
        "required": ["file_path", "old_string", "new_string"],
        "additionalProperties": False,
    },
    edit,
    path="file_path",
    preview=preview_edit,
)
