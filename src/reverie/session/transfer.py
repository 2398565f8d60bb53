"""Sessions in and out of a project: import of recorded ones, export of our own.

An import is one new transcript, put in place whole or not at all, with the rows' own
ids; what could not be placed is named row by row. The file it came from is only read.
An export holds all a session has, its lines and files; what has a second name is refused.
Nothing that a recorded file says chooses a path.
"""

from __future__ import annotations

import base64
import json
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast
from uuid import uuid4

import reverie
from reverie.errors import ImportFailed, InvalidMessage, PathRefused, ReverieError
from reverie.providers.cli_programs import MARK
from reverie.session.library import SessionLibrary
from reverie.store.files import Folder
from reverie.store.home import session_id
from reverie.store.journal import BadLine, Journal, seal, unseal
from reverie.store.paths import check_key
from reverie.transcript.blocks import dump, parse, text_of
from reverie.transcript.codec import blob_name, decode, encode
from reverie.transcript.fold import fold_entries
from reverie.transcript.recordings import is_ours, read
from reverie.transcript.records import (
    AssistantMessage,
    Attached,
    Entry,
    Started,
    TurnEnded,
    UserMessage,
)
from reverie.transcript.view import View

if TYPE_CHECKING:
    from reverie.session.extraction.past_sessions import PastSession

LARGEST = 2 * 2**30  # bytes that an imported file may have once unpacked

ENDINGS = (".jsonl", ".jsonl.gz")
FILES = ("blobs", "tool-results", "agents", "session-memory")
"""The folders of a session that an export carries and an import takes back."""
_CHUNK = 1 << 20
_GZIP = zlib.MAX_WBITS | 16


@dataclass(frozen=True, slots=True)
class SessionArchive:
    """A recorded session, ready to be written, and what became of each row of its file."""

    program: str
    recorded: str  # the session's id in the file
    lines: list[bytes]
    rows: int
    on_chain: int
    off: dict[int, str]  # row number -> why it is not in the conversation
    faults: tuple[str, ...]
    files: dict[str, bytes]
    at: float = 0.0
    cwd: str = ""
    known: str = ""  # the session that the lines themselves say they are
    file: str = ""


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """What became of a parcel."""

    parcel: SessionArchive
    session: str
    written: bool

    def value(self) -> dict[str, Any]:
        """For `--json`."""
        parcel = self.parcel
        return {
            "file": parcel.file,
            "program": parcel.program,
            "recorded": parcel.recorded,
            "session": self.session,
            "written": self.written,
            "entries": len(parcel.lines),
            "rows": parcel.rows,
            "on_chain": parcel.on_chain,
            "off": [{"row": row, "why": why} for row, why in parcel.off.items()],
            "faults": list(parcel.faults),
        }


def parcel_of(file: Path) -> SessionArchive:
    """A recorded session as it would be written; the file is only read."""
    lines, faults = lines_of(file)
    _refuse_own_work(lines, file)
    found = _ours(lines) if lines and is_ours(lines[0]) else _foreign(lines, file)
    return replace(found, file=str(file), faults=(*faults, *found.faults))


def land(
    library: SessionLibrary | None, parcel: SessionArchive, root: Path, *, again: bool = False
) -> ImportedSession:
    """Make a session of it, or with no library only say which; the same one comes in once,
    unless it is asked for `again`."""
    session = _new_id(parcel.recorded)
    there = library is not None and library.folder.exists(f"{session}.jsonl")
    if there and again:
        session, there = str(uuid4()), False
    if library is not None and not there:
        _write(library, session, parcel, root)
    return ImportedSession(parcel, session, library is not None and not there)


def _write(library: SessionLibrary, session: str, parcel: SessionArchive, root: Path) -> None:
    for key, data in parcel.files.items():
        library.folder.write(f"{session}/{key}", data)
    lines = parcel.lines
    if parcel.known != session:
        start = Started(session, str(root), parcel.cwd or str(root), reverie.__version__)
        said = seal(encode(Entry(str(uuid4()), "", parcel.at, start)))
        lines = [*lines, said] if parcel.known else [said, *lines]
    library.folder.write(f"{session}.jsonl", b"".join(b + b"\n" for b in lines), exclusive=True)


def _new_id(recorded: str) -> str:
    """The recorded id where it is one of a session's, else a new one."""
    try:
        return session_id(recorded)
    except ReverieError:
        return str(uuid4())


# --- reading a file


def expand_folders(files: Iterable[str]) -> Iterator[str]:
    """The files, each folder by the session files in it."""
    for given in files:
        path = Path(given)
        if path.is_dir():
            found = [str(f) for f in sorted(path.iterdir()) if f.name.endswith(ENDINGS)]
            yield from found or [given]  # which is then said to hold none
        else:
            yield given


def lines_of(file: Path) -> tuple[list[str], tuple[str, ...]]:
    """A file's lines, unpacked where it is packed; a torn end is said, not fatal."""
    if file.is_dir():
        raise ImportFailed(
            "There is no session file in this folder",
            where=str(file),
            do=f"Give one with files that end in {' or '.join(ENDINGS)}",
        )
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        why = error.strerror or str(error)
        raise ImportFailed(f"The file cannot be read: {why}", where=str(file)) from error
    except ValueError as error:
        raise ImportFailed(f"The file cannot be read: {error}", where=str(file)) from error
    with os.fdopen(handle, "rb") as plain:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ImportFailed("This is not a regular file", where=str(file))
        packed = plain.read(2) == b"\x1f\x8b"
        plain.seek(0)
        data, faults = _read_bounded(_unpack_gzip(plain) if packed else _pieces(plain), file)
    return data.decode("utf-8", "replace").removeprefix("\ufeff").split("\n"), faults


def _refuse_own_work(lines: Sequence[str], path: Path) -> None:
    """Refuse a session in which an agent program did background work of ours."""
    first = next((line for line in lines if '"type":"user"' in line), "")
    with suppress(ValueError, TypeError, KeyError):
        row: Any = json.loads(first)
        if row["entrypoint"] == "sdk-cli" and text_of(row["message"]["content"]).startswith(MARK):
            raise ImportFailed("This session is background work of Reverie's", where=str(path))


def past_in(path: Path, told: Callable[[str], object]) -> PastSession:
    """Return the recorded session in a file to learn from; what cannot be read of it is told."""
    from reverie.session.extraction.past_sessions import PastSession

    lines, faults = lines_of(path)
    for fault in faults:
        told(f"{path}: {fault}")
    _refuse_own_work(lines, path)
    if lines and is_ours(lines[0]):
        return _our_session(lines, path)
    found = read(lines, str(path))
    name = found.session or path.name.partition(".")[0]
    return PastSession(name, found.entries, str(path), found.program, found.cwd)


def _our_session(lines: Sequence[str], path: Path) -> PastSession:
    from reverie.session.extraction.past_sessions import PastSession

    entries: list[Entry] = []
    for text in lines:
        found = unseal(text.encode("utf-8", "surrogateescape"))
        try:
            entries.append(decode((found[0].decode() if found else text), lambda _: None))
        except (InvalidMessage, UnicodeDecodeError):
            continue  # a head whose parts lie elsewhere, or a torn line: nobody's words
    started = next((e.record for e in entries if isinstance(e.record, Started)), None)
    name = started.session if started else path.name.partition(".")[0]
    return PastSession(name, tuple(entries), str(path), "reverie", started.cwd if started else "")


def _pieces(plain: IO[bytes]) -> Iterator[bytes]:
    while piece := plain.read(_CHUNK):
        yield piece


def _unpack_gzip(plain: IO[bytes]) -> Iterator[bytes]:
    """The bytes of a gzip file, piece by piece, all that come before a fault."""
    stream = zlib.decompressobj(_GZIP)
    for packed in _pieces(plain):
        left = packed
        while left:
            if stream.eof:
                stream = zlib.decompressobj(_GZIP)
            yield stream.decompress(left, _CHUNK)
            left = stream.unused_data if stream.eof else stream.unconsumed_tail
    if not stream.eof:
        raise EOFError("it ends before its time")


def _read_bounded(source: Iterator[bytes], file: Path) -> tuple[bytes, tuple[str, ...]]:
    pieces: list[bytes] = []
    length = 0
    faults: tuple[str, ...] = ()
    try:
        for piece in source:
            pieces.append(piece)
            length += len(piece)
            if length > LARGEST:
                raise ImportFailed(f"The file has more than {LARGEST:,} bytes", where=str(file))
    except (OSError, EOFError, zlib.error) as error:
        faults = (f"the file's end cannot be read: {error}",)
    return b"".join(pieces), faults


# --- another program's session


def _foreign(lines: Sequence[str], file: Path) -> SessionArchive:
    found = read(lines, str(file))
    view = fold_entries(found.entries)
    held = held_ids(view)
    named = {entry.id: entry for entry in found.entries}
    lost = {n: _why(named[entry]) for n, entry in found.places.items() if entry not in held}
    return SessionArchive(
        found.program,
        found.session,
        [seal(encode(entry)) for entry in _with_turns(found.entries, held)],
        len(found.places) + len(found.left_out),
        len(found.places) - len(lost),
        dict(sorted({**found.left_out, **lost}.items())),
        found.faults,
        {},
        next((e.at for e in found.entries if e.at), 0.0),
        found.cwd,
    )


def _why(entry: Entry) -> str:
    """Why an entry of the file is not in the conversation."""
    record = entry.record
    blocks = record.blocks if isinstance(record, (UserMessage, AssistantMessage, Attached)) else ()
    if all(block.blank for block in blocks):
        return "nothing is said in it"
    if all(block.type == "tool_result" for block in blocks):
        return "results that no call waits for"
    return "on a branch that was left"


def held_ids(view: View) -> frozenset[str]:
    """The entries that are in the conversation, as they are or within what replaced them."""
    every: frozenset[str] = frozenset()
    return every.union(*(item.covers | {item.id} for item in view.items))


def _with_turns(entries: Sequence[Entry], held: frozenset[str]) -> Iterator[Entry]:
    """The entries, with the end of each turn said as we say it."""
    chain = [e for e in entries if e.id in held]
    after = {e.id: chain[n + 1] if n + 1 < len(chain) else None for n, e in enumerate(chain)}
    for entry in entries:
        yield entry
        record = entry.record
        if not isinstance(record, AssistantMessage) or entry.id not in after:
            continue
        following = after[entry.id]
        asked = following is None or isinstance(following.record, UserMessage)
        if asked and not any(b.type == "tool_use" for b in record.blocks):
            yield Entry(f"{entry.id}:turn", entry.id, entry.at, TurnEnded())


# --- our own


def _ours(lines: Sequence[str]) -> SessionArchive:
    kept: list[bytes] = []
    files: dict[str, bytes] = {}
    faults: list[str] = []
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        found = unseal(text.rstrip("\r").encode())
        if found is None or not found[1]:
            faults.append(f"line {number} is skipped: it has no checksum that fits")
            continue
        carried = _carried_file(found[0].decode())
        if carried is None:
            kept.append(text.rstrip("\r").encode())
        elif _is_ours(carried[0]):
            files[carried[0]] = carried[1]
        else:
            faults.append(f"line {number} is skipped: it names a file that no session has")
    entries, more = _decode_entries(kept, files)
    view = fold_entries(entries)
    held = held_ids(view)
    off = {n: _why(e) for n, e in enumerate(entries, 1) if e.on_chain and e.id not in held}
    return SessionArchive(
        "reverie",
        view.session,
        kept,
        len(kept),
        len(entries) - len(off),
        off,
        (*faults, *more),
        files,
        known=view.session,
    )


def _decode_entries(
    lines: Sequence[bytes], files: dict[str, bytes]
) -> tuple[list[Entry], list[str]]:
    def load(name: str) -> str | None:
        data = files.get(f"blobs/{name}.json")
        return None if data is None else data.decode("utf-8", "replace")

    entries: list[Entry] = []
    faults: list[str] = []
    for number, text in enumerate(lines, 1):
        found = unseal(text)
        try:
            entries.append(decode((found[0] if found else text).decode(), load))
        except InvalidMessage as error:
            faults.append(f"line {number} says nothing: {error}")
    return entries, faults


def _carried_file(text: str) -> tuple[str, bytes] | None:
    """The file that an exported line carries; None where it is an entry."""
    if '"type":"file"' not in text:
        return None
    try:
        value = parse(text)
    except InvalidMessage:
        return None
    if not isinstance(value, dict) or value.get("type") != "file":
        return None
    data = str(value.get("data"))
    try:
        packed = value.get("encoding") == "base64"
        return str(value.get("key")), base64.b64decode(data) if packed else data.encode()
    except ValueError:
        return "", b""


def _is_ours(key: str) -> bool:
    """Whether a session may have a file of that name."""
    above, _, name = key.partition("/")
    try:
        return above in FILES and bool(name) and check_key(key) == key
    except PathRefused:
        return False


# --- out


def _transcript(library: SessionLibrary, session: str) -> Journal:
    """To read; one that has a second name, perhaps outside home, is refused."""
    os.close(library.folder.open_read(f"{session}.jsonl", single_link=True))
    return Journal.open(library.folder, f"{session}.jsonl", write=False)


def raw_lines(library: SessionLibrary, session: str) -> Iterator[str | BadLine]:
    """A transcript's lines as they lie in the file, and what cannot be read."""
    for found in _transcript(library, session).read():
        yield found if isinstance(found, BadLine) else seal(found.text).decode()


def as_lines(library: SessionLibrary, session: str) -> Iterator[str]:
    """The whole session as lines: its entries, then each of its files."""
    yield from (found for found in raw_lines(library, session) if isinstance(found, str))
    for number, key in enumerate(library.files(session), 1):
        data = library.folder.read(f"{session}/{key}", single_link=True)
        parts: dict[str, Any] = {"v": 1, "id": f"file-{number}", "parent": "", "type": "file"}
        parts |= {"key": key, **_text_or_bytes(data)}
        yield seal(dump(parts)).decode()


def _text_or_bytes(data: bytes) -> dict[str, str]:
    try:
        return {"encoding": "utf-8", "data": data.decode()}
    except UnicodeDecodeError:
        return {"encoding": "base64", "data": base64.b64encode(data).decode()}


def as_value(library: SessionLibrary, session: str) -> dict[str, Any]:
    """The whole session as one value: entries with the parts of the head in place, and files."""
    keys, read = library.files(session), library.folder.read
    files = {key: read(f"{session}/{key}", single_link=True) for key in keys}
    entries: list[Any] = []
    for found in _transcript(library, session).read():
        if isinstance(found, BadLine):
            continue
        try:
            entries.append(_resolve_head(parse(found.text), files))
        except InvalidMessage:
            continue
    kept = {key: _text_or_bytes(data) for key, data in files.items()}
    return {"entries": entries, "files": kept}


def _resolve_head(value: Any, files: dict[str, bytes]) -> Any:
    """A head with its parts as values in place of their hashes."""
    if not isinstance(value, dict):
        return value
    entry = cast("dict[str, Any]", value)
    if entry.get("type") != "head":
        return entry
    for key, part in entry.items():
        named = cast("dict[str, Any]", part).get("blob") if isinstance(part, dict) else None
        text = files.get(f"blobs/{named}.json", b"").decode("utf-8", "replace")
        if isinstance(named, str) and blob_name(text) == named:
            entry[key] = parse(text)
    return entry


def copy_out(library: SessionLibrary, session: str, target: Folder, *, force: bool = False) -> int:
    """Copy a session as it lies on the disk into another folder; gives the number of files."""
    keys = [*(f"{session}/{key}" for key in library.files(session)), f"{session}.jsonl"]
    for key in keys:
        target.write(key, library.folder.read(key, single_link=True), exclusive=not force)
    return len(keys)
