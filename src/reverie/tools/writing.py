"""Write and Edit: whole files put in place, and exact replacements in them.

A file that exists must have been read before, and must still be what was read; then it
is replaced in one step. Edit works on bytes: what it does not replace stays as it is,
line ends and stray bytes included. Neither ever leaves a file half written.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from anyio import to_thread

from reverie.errors import NotFound
from reverie.store.files import Changed
from reverie.store.keys import shown
from reverie.store.plain import digest
from reverie.tools.places import EDITABLE, content
from reverie.tools.tool import Input, Output, Tool, ToolContext, ToolFailed

AROUND = 3


async def write(value: Input, context: ToolContext) -> Output:
    path = context.files.target(str(value["file_path"]))
    data = encoded(str(value["content"]))
    if len(data) > EDITABLE:
        raise ToolFailed(f"the content has {len(data):,} bytes; {EDITABLE:,} can be written")
    return await to_thread.run_sync(_write, path, data, context)


def _write(path: Path, data: bytes, context: ToolContext) -> Output:
    old = _present(path, context)
    where = shown(str(path))
    if old is not None and context.reads.digest(path) is None:
        raise ToolFailed("the file exists and was not read yet", where=where, do="Read it first")
    if old is not None and context.reads.digest(path) != old:
        raise _changed(where)
    _land(path, data, old, context)
    return Output(f"{'Replaced' if old else 'Wrote'} {where} ({len(data):,} bytes)")


def _changed(where: str) -> ToolFailed:
    return ToolFailed("the file changed since it was read", where=where, do="Read it again")


def _present(path: Path, context: ToolContext) -> str | None:
    """The hash of what is there now; None where nothing is."""
    try:
        return digest(_bytes(path, context))
    except NotFound:
        return None


def _bytes(path: Path, context: ToolContext) -> bytes:
    fd = context.files.open(path)
    try:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise ToolFailed("it is a folder", where=shown(str(path)))
        return content(fd, path)
    finally:
        os.close(fd)


def _land(path: Path, data: bytes, expect: str | None, context: ToolContext) -> None:
    try:
        context.files.write(path, data, expect)
    except Changed as error:
        raise _changed(shown(str(path))) from error
    context.reads.note(path, digest(data))


async def edit(value: Input, context: ToolContext) -> Output:
    path = context.files.target(str(value["file_path"]))
    old, new = str(value["old_string"]), str(value["new_string"])
    if not old:
        raise ToolFailed("old_string is empty", do="Use Write for a new file")
    if old == new:
        raise ToolFailed("old_string and new_string are the same")
    every = bool(value.get("replace_all"))
    return await to_thread.run_sync(_edit, path, (encoded(old), encoded(new), every), context)


def _edit(path: Path, change: tuple[bytes, bytes, bool], context: ToolContext) -> Output:
    where = shown(str(path))
    seen = context.reads.digest(path)
    if seen is None:
        raise ToolFailed("the file was not read yet", where=where, do="Read it first")
    try:
        data = _bytes(path, context)
    except NotFound as error:
        raise ToolFailed("the file is gone", where=where) from error
    if digest(data) != seen:
        raise _changed(where)
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
    first = data.index(old)
    result = data.replace(old, new) if every else data.replace(old, new, 1)
    if len(result) > EDITABLE:
        raise ToolFailed(f"the file would have {len(result):,} bytes", where=where)
    _land(path, result, seen, context)
    return Output(f"Replaced {count:,} in {where}\n{_around(result, first, len(new))}")


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


def encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolFailed("the text has half a character that cannot be written") from error


_PATH = {"type": "string", "description": "The file"}

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
)
EDIT = Tool(
    "Edit",
    "Replaces an exact text in a file that was read before. The text must be there once, or "
    "replace_all be set. Fails if the file changed since it was read.",
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
)
