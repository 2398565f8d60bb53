"""Frozen decisions and their log.

What was decided, for good: by which key, and in which bytes.

A result is known by its call and its content, whatever becomes of the history around it; a
reminder by the thread and the chain at the block it follows. "Nothing" is a decision too. A line
of the log holds one decision; reading all lines again gives the same state. Pure values.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from reverie.errors import InvalidMessage, WriteFailed
from reverie.light import dataclass
from reverie.store.files import Folder
from reverie.store.fs import flush_file, words, write_whole
from reverie.store.lock import release, take_soon
from reverie.transcript.blocks import Json, dump, parse

if TYPE_CHECKING:
    from reverie.interception.mirror import MirrorSession
    from reverie.interception.patches import InterceptedRequest
    from reverie.wire.lists import Format


@dataclass(frozen=True, slots=True)
class MirrorPosition:
    """How far a shadow session has taken a conversation in."""

    session: str
    entry: str


@dataclass(slots=True)
class Decisions:
    """Everything that was decided, in one home."""

    results: dict[tuple[str, str, str], str] = field(
        default_factory=dict[tuple[str, str, str], str]
    )
    """By tenant, call and content: the text in its place; "" where it stays as it is."""
    rules: dict[tuple[str, str, str], str] = field(default_factory=dict[tuple[str, str, str], str])
    """By tenant, call and content: what rules say to the call, behind its result; or ""."""
    reminders: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """By chain, then by thread: what follows that block; "" where nothing does."""
    positions: dict[str, dict[str, MirrorPosition]] = field(
        default_factory=dict[str, dict[str, MirrorPosition]]
    )
    """By thread, then by chain."""
    owners: dict[str, str] = field(default_factory=dict[str, str])
    """Which thread was the last to be at a chain that the assistant spoke in."""
    sessions: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """By thread: its shadow session, and the root of its project."""

    def take(self, line: Mapping[str, Json]) -> None:
        """One line of the log; the first decision about a thing stands."""
        value = cast("Mapping[str, Any]", line)
        match value.get("kind"):
            case "result" | "rule" as kind:
                key = (str(value["tenant"]), str(value["call"]), str(value["content"]))
                found = self.results if kind == "result" else self.rules
                found.setdefault(key, str(value["text"]))
            case "reminder":
                here = self.reminders.setdefault(str(value["chain"]), {})
                here.setdefault(str(value["thread"]), str(value["text"]))
            case "position":
                place = MirrorPosition(str(value["session"]), str(value["entry"]))
                thread, at = str(value["thread"]), str(value["chain"])
                self.positions.setdefault(thread, {})[at] = place
                if value.get("spoken"):
                    self.owners[at] = thread
            case "session":
                self.sessions[str(value["thread"])] = (str(value["session"]), str(value["root"]))
            case _:  # of a later version
                pass

    def reminder(self, thread: str, chain: str, parent: str) -> str | None:
        """What follows a block in a thread: its own decision, else its parent's; None: not
        decided."""
        known = self.reminders.get(chain)
        if known is None:
            return None
        return known.get(thread, known.get(parent) if parent else None)

    def parent(self, thread: str, chains: Iterator[str], root: str) -> str:
        """The thread that was last where this one is, told by the deepest chain, newest first;
        none of another project."""
        found = next((self.owners[at] for at in chains if at in self.owners), thread)
        return found if self.sessions.get(found, ("", root))[1] == root else thread


def result_line(tenant: str, call: str, content: str, text: str) -> dict[str, Json]:
    return {"kind": "result", "tenant": tenant, "call": call, "content": content, "text": text}


def rule_line(tenant: str, call: str, content: str, text: str) -> dict[str, Json]:
    return {**result_line(tenant, call, content, text), "kind": "rule"}


def reminder_line(thread: str, chain: str, text: str) -> dict[str, Json]:
    return {"kind": "reminder", "thread": thread, "chain": chain, "text": text}


def position_line(
    thread: str, chain: str, place: MirrorPosition, *, spoken: bool
) -> dict[str, Json]:
    line: dict[str, Json] = {"kind": "position", "thread": thread, "chain": chain}
    return {**line, "session": place.session, "entry": place.entry, "spoken": spoken}


def session_line(thread: str, session: str, root: str) -> dict[str, Json]:
    return {"kind": "session", "thread": thread, "session": session, "root": root}


# --- Which conversation this is: one digest after another over its blocks, in normal form.
#
# Two requests that say the same have the same chain, whatever moves between them: cache marks, a
# text in place of one text block, how blocks are spread over messages, thinking that was left out.
# The seed is the credential alone, so that two people never share a chain. What is made here is
# hashed and never sent.


SIZE = 16
MARK = "cache_control"
TEXTS = ("text", "input_text", "output_text")


def normal(value: object) -> object:
    """A block without what may change while it says the same."""
    if isinstance(value, list):
        return [normal(one) for one in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    found = {k: normal(v) for k, v in cast("dict[str, object]", value).items() if k != MARK}
    if found.get("type") in TEXTS:
        return {"type": "text", "text": found.get("text")}
    if found.get("type") == "tool_result":
        if found.get("is_error") is False:
            del found["is_error"]
        found["content"] = content(found.get("content"))
    return dict(sorted(found.items()))


def content(value: object) -> object:
    """What a result holds: a text is the one block that it stands for."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [] if value is None else normal(value)


def digest(value: object) -> bytes:
    """The digest of a block in normal form."""
    return of_text(dump(normal(value)))


def content_digest(value: object) -> str:
    """The digest of a result's content: with the call's id it is the key of a decision."""
    return of_text(dump(content(value))).hex()


def of_text(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=SIZE).digest()


def chain_seed(credential: str) -> bytes:
    """Where the chain of one tenant begins."""
    return blake2b(
        credential.encode("utf-8", "replace"), digest_size=SIZE, person=b"tenant"
    ).digest()


def seed_of(person: str, tenant: bytes) -> bytes:
    """Where the chain of one person begins, of those behind one credential."""
    named = person.encode("utf-8", "surrogatepass")
    return blake2b(tenant + named, digest_size=SIZE, person=b"person").digest()


def extend_chain(chain: bytes, role: str, block: bytes) -> bytes:
    """The chain behind one more block."""
    return blake2b(chain + role.encode() + block, digest_size=SIZE).digest()


def credential(headers: Mapping[str, str]) -> str:
    """What a client proves itself with; it is hashed and kept nowhere."""
    return headers.get("x-api-key") or headers.get("authorization") or ""


def as_value(found: object) -> dict[str, Any]:
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


# --- The log of decisions on disk: one line each, whole or not at all, synced before it counts.
#
# Several processes may use one home: what another one decided is read before anything is decided
# here, under the lock of the file, and synced too, since its writer may have died before that. A
# file that was written anew (words were forgotten) is read anew.


FILE = "decisions.jsonl"
LARGEST = 32 * 1024 * 1024
Line = dict[str, Json]


class DecisionLog:
    """All decisions of a home; used from any thread."""

    def __init__(self, folder: Path, most: int = LARGEST) -> None:
        self._folder = Folder(folder)
        self._most = most
        self._turn = threading.RLock()
        self._at: int = 0  # how far the file was read
        self._file: int = 0  # which file that was
        self.decisions = Decisions()
        self._trim()
        with self._open() as fd:
            self._folder.flush(FILE)
            self._read(fd)

    def close(self) -> None:
        self._folder.close()

    def refresh(self) -> None:
        """Take in what others have written meanwhile; where nobody has, this is one look."""
        with self._turn:
            if self._is_known():
                return
            with self._open() as fd:
                self._read(fd)

    def _is_known(self) -> bool:
        try:
            found = os.stat(self._folder.path(FILE))
        except OSError:
            return False
        return (found.st_ino, found.st_size) == (self._file, self._at)

    def _trim(self) -> None:
        """Let the older half of a very long log go: no cache remembers those conversations."""
        if not self._folder.exists(FILE) or self._folder.stat(FILE).size <= self._most:
            return
        data = self._folder.read(FILE)
        middle = data.find(b"\n", len(data) // 2) + 1
        self._folder.write(FILE, data[middle:])

    def note(self, lines: Sequence[Line]) -> None:
        """Write down what a later process would like to know and can do without."""
        self.decide(lambda _: lines, durable=False)

    def decide(self, find: Callable[[Decisions], Sequence[Line]], *, durable: bool = True) -> None:
        """Write down what is still undecided when all that others decided is known."""
        with self._turn, self._open() as fd:
            self._read(fd)
            lines = find(self.decisions)
            if not lines:
                return
            text = "".join(f"{dump(line)}\n" for line in lines).encode()
            _write(fd, text, durable=durable)
            self._at += len(text)
            for line in lines:
                self.decisions.take(line)

    @contextmanager
    def _open(self) -> Generator[int]:
        fd = self._folder.open_append(FILE)
        try:
            take_soon(fd, FILE)
            yield fd
        except OSError as error:
            where = str(self._folder.path(FILE))
            raise WriteFailed(f"Nothing could be decided: {words(error)}", where=where) from error
        finally:
            release(fd)

    def _read(self, fd: int) -> None:
        """Take in the lines that are new; the end of a line that a crash tore off is cut."""
        found = os.fstat(fd)
        if found.st_ino != self._file or found.st_size < self._at:
            self._file, self._at, self.decisions = found.st_ino, 0, Decisions()
        data = b""
        while len(data) < found.st_size - self._at:
            piece = os.pread(fd, found.st_size - self._at - len(data), self._at + len(data))
            if not piece:
                break
            data += piece
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(fd, self._at + whole)
        if whole:
            flush_file(fd)
        for line in data[:whole].splitlines():
            self._take(line)
        self._at += whole

    def _take(self, line: bytes) -> None:
        try:
            value = parse(line.decode())
            if isinstance(value, dict):
                self.decisions.take(value)
        except (InvalidMessage, UnicodeDecodeError, KeyError):
            return  # one line that was damaged; its thing passes as it is


def _write(fd: int, data: bytes, *, durable: bool) -> None:
    """Add lines at the end; on an error none of them stays."""
    at = os.lseek(fd, 0, os.SEEK_END)
    try:
        write_whole(fd, data)
        if durable:
            flush_file(fd)
    except OSError:
        os.ftruncate(fd, at)
        raise


class Seal(Protocol):
    """A request's text with old rounds sealed, from its format, text, the tool by which the client
    reads files, and the folder of its session; None where there is nothing to seal. Where the
    client is `summing` up, nothing is sealed that was not before."""

    def __call__(
        self, form: Format, text: str, reader: str, folder: Path, *, summing: bool = False
    ) -> str | None: ...


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """What goes out in place of a request, and what was done, in a few words."""

    body: bytes
    told: str
    asked: InterceptedRequest | None = None
    shadow: MirrorSession | None = None
    taken: bool = False  # whether the shadow has the request already


@dataclass(slots=True)
class TrafficCounts:
    """What went through, counted."""

    counts: Counter[str] = field(default_factory=Counter[str])
    clients: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """Requests of each installed client that were read, by kind."""
    saved: int = 0
    breaks: int = 0  # ours: none, or there is a fault
    client_breaks: int = 0


class PassThrough(Exception):
    """Something of ours failed, and the client's own bytes go out."""


def undecided_lines(lines: list[Line], decisions: Decisions) -> list[Line]:
    """The lines about what nobody has decided meanwhile."""
    out: list[Line] = []
    for line in lines:
        if line["kind"] in ("result", "rule"):
            key = (str(line["tenant"]), str(line["call"]), str(line["content"]))
            known = key in (decisions.results if line["kind"] == "result" else decisions.rules)
        else:
            known = str(line["thread"]) in decisions.reminders.get(str(line["chain"]), {})
        out += [] if known else [line]
    return out
