"""Sessions on disk: open, read, list, copy, remove.

The sessions of a project on disk: begin, go on, read, list, copy, remove; and each one's folder.

Reading needs no lock and works while another process writes. Nothing here changes a
transcript that exists; `remove` takes a session whole, and never memory. A session's own folder
is what the Disk port sees; a private session has none.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal
from uuid import uuid4

from anyio import to_thread

from reverie.concurrency import in_thread
from reverie.errors import (
    Held,
    InvalidInput,
    InvalidMessage,
    LaterVersion,
    NotFound,
    ReverieError,
    StoreError,
)
from reverie.light import dataclass
from reverie.session.conversation import NoLog, TranscriptLog
from reverie.session.summaries import SessionListing, SessionSummary, Transcript, transcript_of
from reverie.settings.schema import read_object
from reverie.store import home as places
from reverie.store import paths
from reverie.store.files import Folder
from reverie.store.home import SessionFile
from reverie.store.journal import BadLine, Journal, Line
from reverie.store.lock import Holder, holder_of
from reverie.store.project import Project
from reverie.transcript.codec import decode, is_later


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
        if self.get_blob(name) != text:  # not there, or damaged
            self._folder.write(self._blob(name), text.encode())

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


DAY = 86_400.0
_PREFIX = re.compile(r"[0-9a-f-]{1,36}", re.ASCII)
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class OpenTranscript:
    """A session open for writing."""

    id: str
    log: TranscriptLog
    disk: SessionDisk | NoDisk
    transcript: Transcript
    copied: bool = False


class SessionLibrary:
    """One project's sessions."""

    def __init__(self, path: Path, project: Path) -> None:
        self.path = path
        self.project = project

    @classmethod
    def of(cls, project: Project, *, claim: bool = True) -> SessionLibrary:
        """Return a project's sessions; make its folder unless `claim` is false."""
        if claim:
            project.claim()
            places.project_folder(project.home, project.root, environ=project.environ)
        return cls(project.sessions_folder, project.folder())

    @classmethod
    def find(cls, project: Project) -> SessionLibrary | None:
        """Return a project's sessions to read; None where it has no folder yet."""
        found = cls.of(project, claim=False)
        return found if found.path.is_dir() else None

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
    ) -> OpenTranscript:
        """Open a new session, or one that exists, for writing."""
        if private:
            return OpenTranscript(str(uuid4()), NoLog(), NoDisk(), Transcript(""))
        if not resume:
            return self._open(str(uuid4()))
        session = places.session_id(resume)
        self._must_exist(session)
        try:
            return self._open(session, keeps=True)
        except (Held, LaterVersion):
            if on_held == "refuse":
                raise
        return self._copy(session)

    def _open(self, session: str, *, keeps: bool = False) -> OpenTranscript:
        log = Journal.open(self.folder, f"{session}.jsonl")
        try:
            disk = SessionDisk(self.folder, session)
            transcript = transcript_of(session, log.read() if keeps else (), disk.get_blob)
            if transcript.later:
                raise LaterVersion(
                    "This session holds records that a later version of Reverie wrote; "
                    "nothing is added to what is not understood",
                    where=session,
                    do="Update Reverie; or read it with `reverie sessions show`; or go on in a "
                    'copy without those records, on_held="fork"',
                )
            return OpenTranscript(session, log, disk, transcript)
        except BaseException:
            log.close()
            raise

    def _copy(self, session: str) -> OpenTranscript:
        """A session of its own id that starts as a copy, with all that the original stored for
        itself. What a later version wrote stays behind."""
        source = Journal.open(self.folder, f"{session}.jsonl", write=False)
        begun = self._open(str(uuid4()))
        try:
            for key in self.files(session):
                if key.startswith(COPIED):
                    data = self.folder.read(f"{session}/{key}")
                    self.folder.write(f"{begun.id}/{key}", data)
            lines = list(source.read())
            disk = SessionDisk(self.folder, begun.id)
            found = transcript_of(begun.id, lines, disk.get_blob)
            if found.later:
                lines = [line for line in lines if not _is_later(line)]
                told = found.faults
                found = replace(transcript_of(begun.id, lines, disk.get_blob), faults=told)
            begun.log.append([line.text for line in lines if isinstance(line, Line)])
        except BaseException:
            begun.log.close()
            raise
        return OpenTranscript(begun.id, begun.log, begun.disk, found, copied=True)

    def read(self, session: str) -> Transcript:
        """A session as it stands, at any time, without its lock."""
        session = places.session_id(session)
        self._must_exist(session)
        log = Journal.open(self.folder, f"{session}.jsonl", write=False)
        return transcript_of(session, log.read(), SessionDisk(self.folder, session).get_blob)

    def _must_exist(self, session: str) -> None:
        if not self.folder.exists(f"{session}.jsonl"):
            raise NotFound(
                "there is no such session in this project",
                where=session,
                do="`reverie sessions list` shows the ids",
            )

    def begin_agent(self, session: str, agent: str) -> OpenTranscript:
        """Open the transcript of an agent, beside the session's, new or as it was left."""
        log = self.agent_log(session, agent)
        try:
            disk = SessionDisk(self.folder, session)
            found = transcript_of(agent, self.agent_lines(session, agent), disk.get_blob)
        except BaseException:
            log.close()
            raise
        return OpenTranscript(agent, log, disk, found)

    def agent_log(self, session: str, agent: str) -> Journal:
        """The transcript of a fork or sub-agent, beside the session's."""
        return Journal.open(self.folder, f"{session}/agents/{agent}.jsonl")

    def agent_lines(self, session: str, agent: str) -> Iterator[Line | BadLine]:
        """What such a transcript holds."""
        return Journal.open(self.folder, f"{session}/agents/{agent}.jsonl", write=False).read()

    def sessions(self) -> list[SessionFile]:
        """All sessions, the newest first."""
        return places.sessions(self.path)

    def newest(self) -> str:
        found = self.sessions()
        if not found:
            raise NotFound("this project has no session yet", where=str(self.path))
        return found[0].id

    def summary(self, file: SessionFile) -> SessionSummary:
        """One session in a line; its transcript is read where that has changed."""
        return self._listing.summary(file, self.read)

    def keep_summaries(self) -> None:
        """Keep what was found out of the sessions, for the next list."""
        if "_listing" in self.__dict__:
            self._listing.keep([file.id for file in self.sessions()])

    @cached_property
    def _listing(self) -> SessionListing:
        return SessionListing(self.folder)

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


COPIED = ("blobs/", "tool-results/", "session-memory/")
"""What a copy of a session needs of its folder. Agents had transcripts of their own."""


def _is_later(line: Line | BadLine) -> bool:
    if isinstance(line, BadLine):
        return False
    try:
        return is_later(decode(line.text).record)
    except InvalidMessage:
        return False


def _remove_empty(folder: Path) -> None:
    """Take away folders with nothing in them; what holds a file of someone else stays."""
    if folder.is_symlink():
        return
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def home_libraries(project: Project) -> Iterator[tuple[str, SessionLibrary]]:
    """Yield the sessions of all projects in a project's home, each with the root it belongs to."""
    above = project.home / "projects"
    for name in sorted(os.listdir(above)) if above.is_dir() else ():
        owner = read_object(above / name / places.OWNER)[0].get("root")
        path = places.transcripts_folder(above / name, project.home, project.environ)
        library = SessionLibrary(path, above / name)
        if library.sessions():
            yield (owner if isinstance(owner, str) else ""), library


def find_session(library: SessionLibrary | None, given: str) -> str:
    """Return the id of the session that an id, or the beginning of one, names."""
    text = given.lower()
    if not _PREFIX.fullmatch(text):
        raise InvalidInput(
            "This is not a session id, nor the beginning of one",
            where=paths.format_path(given),
            do="`reverie sessions list` shows the ids",
        )
    found = [f.id for f in library.sessions() if f.id.startswith(text)] if library else []
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFound(
            "There is no such session in this project",
            where=given,
            do="`reverie sessions list` shows the ids, with `--all` those of every project",
        )
    shown = ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")
    raise InvalidInput(
        "Several sessions have ids that begin like this",
        where=shown,
        do="Give more of the id",
        code="ambiguous",
    )


# --- Sessions that nobody has touched for long go, whole: transcript, stored results, blobs,
# agents.
#
# Never memory, never one that is in use, and never a file that is not one of ours.


@dataclass(frozen=True, slots=True)
class OldSessions:
    """The sessions that may go, and those that stay, each with the reason."""

    due: tuple[str, ...] = ()
    kept: dict[str, str] = field(default_factory=dict[str, str])


def find_old(library: SessionLibrary, days: float, now: float) -> OldSessions:
    """The sessions untouched for so many days; one in use is kept."""
    due: list[str] = []
    kept: dict[str, str] = {}
    for file in library.sessions():
        if now - file.mtime < days * DAY:
            continue
        who = holder(library, file)
        if who is None:
            due.append(file.id)
        else:
            kept[file.id] = f"in use by {who}"
    return OldSessions(tuple(due), kept)


def remove_session(library: SessionLibrary, session: str) -> str:
    """Remove one; gives why it stays, or nothing."""
    try:
        library.remove(session)
    except ReverieError as error:
        return str(error)
    return ""


def holder(library: SessionLibrary, file: SessionFile) -> Holder | None:
    """The process that has a session open, as far as the kernel tells."""
    try:
        handle = library.folder.open_read(f"{file.id}.jsonl")
    except ReverieError:
        return None
    try:
        return holder_of(handle)
    finally:
        os.close(handle)
