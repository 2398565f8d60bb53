"""The sessions of a project on disk: begin, go on, read, list, copy, remove; and each one's folder.

Reading needs no lock and works while another process writes. Nothing here changes a
transcript that exists; `remove` takes a session whole, and never memory. A session's own folder
is what the Disk port sees; a private session has none.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal
from uuid import uuid4

from anyio import to_thread

from reverie.errors import Held, InvalidMessage, NotFound, StoreError
from reverie.session.conversation import Log, NoLog
from reverie.session.uncancelled import in_thread
from reverie.store import home as places
from reverie.store.files import Folder
from reverie.store.home import SessionFile
from reverie.store.journal import BadLine, Journal
from reverie.transcript.codec import decode
from reverie.transcript.fold import fold
from reverie.transcript.records import AssistantMessage, Entry, Unknown, UserMessage
from reverie.transcript.view import EMPTY, View


class SessionDisk:
    """`world.Disk` over one session's folder inside the project's."""

    def __init__(self, folder: Folder, session: str) -> None:
        self._folder = folder
        self._session = session

    async def write(self, key: str, data: bytes) -> str:
        place = f"{self._session}/{key}"
        await in_thread(lambda: self._folder.write(place, data))
        return str(self._folder.path(place))

    async def read(self, key: str, limit: int | None = None) -> bytes:
        place = f"{self._session}/{key}"
        return await to_thread.run_sync(lambda: self._folder.read(place, limit))

    def put_blob(self, name: str, text: str) -> None:
        """A part of the request's head, once for each content."""
        place = self._blob(name)
        if not self._folder.exists(place):
            self._folder.write(place, text.encode())

    def get_blob(self, name: str) -> str | None:
        try:
            return self._folder.read(self._blob(name)).decode()
        except (StoreError, NotFound, UnicodeDecodeError):
            return None

    def _blob(self, name: str) -> str:
        return f"{self._session}/blobs/{name}.json"


class NoDisk:
    """`world.Disk` of a private session: it stores nothing."""

    async def write(self, key: str, data: bytes) -> str:
        raise StoreError(f"a private session stores nothing, not {len(data):,} bytes", where=key)

    async def read(self, key: str, limit: int | None = None) -> bytes:
        del limit
        raise NotFound("a private session has no stored files", where=key)

    def put_blob(self, name: str, text: str) -> None:
        """Nothing is kept."""
        del name, text

    def get_blob(self, name: str) -> str | None:
        del name


TITLE = 80
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a session's file holds, and what of it could not be read."""

    id: str
    entries: tuple[Entry, ...] = ()
    faults: tuple[str, ...] = ()
    view: View = EMPTY


@dataclass(frozen=True, slots=True)
class Begun:
    """A session open for writing."""

    id: str
    log: Log
    disk: SessionDisk | NoDisk
    transcript: Transcript
    copied: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """A session in a line."""

    id: str
    title: str
    at: float
    size: int
    messages: int
    turns: int
    tokens: int
    faults: int


class Library:
    """One project's sessions."""

    def __init__(self, path: Path, project: Path) -> None:
        self.path = path
        self.project = project

    @classmethod
    def of(
        cls, home: Path, root: Path, environ: Mapping[str, str], *, claim: bool = True
    ) -> Library:
        """The sessions of the project at `root`. Its folder is made and claimed, but for a
        private session, which writes nothing."""
        if claim:
            project = places.project_folder(home, root, environ=environ)
        else:
            project = places.find_project_folder(home, root)
        return cls(places.transcripts_folder(project, home, environ), project)

    @cached_property
    def folder(self) -> Folder:
        return Folder(self.path)

    def close(self) -> None:
        """Close the folder; it opens again when it is needed."""
        opened = self.__dict__.pop("folder", None)
        if opened is not None:
            opened.close()

    def begin(
        self, resume: str = "", on_held: Literal["refuse", "fork"] = "refuse", private: bool = False
    ) -> Begun:
        """Open a new session, or one that exists, for writing."""
        if private:
            return Begun(str(uuid4()), NoLog(), NoDisk(), Transcript(""))
        if not resume:
            return self._open(str(uuid4()))
        session = places.session_id(resume)
        self._must_exist(session)
        try:
            return self._open(session)
        except Held:
            if on_held == "refuse":
                raise
        return self._copy(session)

    def _open(self, session: str) -> Begun:
        log = Journal.open(self.folder, f"{session}.jsonl")
        disk = SessionDisk(self.folder, session)
        transcript = self._load(session, log, disk)
        return Begun(session, log, disk, transcript)

    def _copy(self, session: str) -> Begun:
        """A session of its own id that starts as a copy; stored results stay where they are."""
        source = self.read(session)
        begun = self._open(str(uuid4()))
        for key in self.files(session):
            if key.startswith("blobs/"):
                data = self.folder.read(f"{session}/{key}")
                self.folder.write(f"{begun.id}/{key}", data)
        log = Journal.open(self.folder, f"{session}.jsonl", write=False)
        begun.log.append([line.text for line in log.read() if not isinstance(line, BadLine)])
        return Begun(begun.id, begun.log, begun.disk, source, copied=True)

    def read(self, session: str) -> Transcript:
        """A session as it stands, at any time, without its lock."""
        session = places.session_id(session)
        self._must_exist(session)
        log = Journal.open(self.folder, f"{session}.jsonl", write=False)
        return self._load(session, log, SessionDisk(self.folder, session))

    def _must_exist(self, session: str) -> None:
        if not self.folder.exists(f"{session}.jsonl"):
            raise NotFound(
                "there is no such session in this project",
                where=session,
                do="List the project's sessions to see their ids",
            )

    def _load(self, session: str, log: Journal, disk: SessionDisk) -> Transcript:
        entries: list[Entry] = []
        faults: list[str] = []
        for line in log.read():
            if isinstance(line, BadLine):
                faults.append(f"line {line.number} is skipped: {line.reason}")
                continue
            try:
                entry = decode(line.text, disk.get_blob)
            except InvalidMessage as error:
                faults.append(f"line {line.number} is skipped: {error}")
                continue
            if isinstance(entry.record, Unknown) and entry.record.fault:
                faults.append(f"line {line.number}: {entry.record.fault}")
            entries.append(entry)
        return Transcript(session, tuple(entries), tuple(faults), fold(entries))

    def agent_log(self, session: str, agent: str) -> Journal:
        """The transcript of a fork or sub-agent, beside the session's."""
        return Journal.open(self.folder, f"{session}/agents/{agent}.jsonl")

    def sessions(self) -> list[SessionFile]:
        """All sessions, the newest first."""
        return places.sessions(self.path)

    def newest(self) -> str:
        found = self.sessions()
        if not found:
            raise NotFound("this project has no session yet", where=str(self.path))
        return found[0].id

    def summary(self, file: SessionFile) -> Summary:
        """One session in a line."""
        found = self.read(file.id)
        said = [e for e in found.entries if isinstance(e.record, (UserMessage, AssistantMessage))]
        at = said[-1].at if said else file.mtime
        return Summary(
            file.id,
            title_of(found.entries),
            at,
            file.size,
            len(said),
            found.view.turns,
            found.view.tokens,
            len(found.faults),
        )

    def files(self, session: str) -> list[str]:
        """The keys of the files beside a transcript, below the session's own folder."""
        try:
            return [key.partition("/")[2] for key in self.folder.list(session)]
        except NotFound:
            return []

    def remove(self, session: str) -> None:
        """Remove a session under its own lock, its transcript last; Held where it is in use."""
        log = Journal.open(self.folder, f"{session}.jsonl")
        try:
            for key in self.files(session):
                with contextlib.suppress(NotFound):
                    self.folder.remove(f"{session}/{key}", durable=False)
            _remove_empty(self.path / session)
            self.folder.remove(f"{session}.jsonl")
        finally:
            log.close()


def _remove_empty(folder: Path) -> None:
    """Take away folders with nothing in them; what holds a file of someone else stays."""
    if folder.is_symlink():
        return
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def title_of(entries: Sequence[Entry]) -> str:
    """The first words the user said."""
    for entry in entries:
        record = entry.record
        if isinstance(record, UserMessage) and record.origin == "user":
            text = " ".join(" ".join(b.get("text") for b in record.blocks).split())
            if text:
                return text if len(text) <= TITLE else text[: TITLE - 1] + "…"
    return "(nothing said)"
