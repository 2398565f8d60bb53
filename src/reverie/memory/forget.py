"""Forget: the one operation that rewrites. Words go everywhere under home, and stay away.

Under the locks the words are replaced in memory files, all their versions, session notes, stored
results, transcripts with those of agents, and every other file of ours; what is derived is
removed, to be made again. A salted hash of the words stays, so that no later write brings them
back. Then every file is read once more, as a plain search would, and what still holds the words
is named: nothing left is the proof.

A session in use is refused with who holds it, before anything is changed. A run that is cut off
leaves a mark without the words; running it again completes it. Files of other programs, and the
user's own settings, are never rewritten: they are named.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from reverie.errors import NotFound, PathRefused
from reverie.memory.rewriters import Rewriter, RewrittenFile
from reverie.session.summaries import FILE as LISTING
from reverie.store import home as places
from reverie.store.files import Folder
from reverie.store.fs import read_plain
from reverie.store.home import address_folders
from reverie.store.journal import Journal
from reverie.store.lists import FORGOTTEN as HASHES
from reverie.store.lists import ForgottenWords
from reverie.store.lock import FileLock
from reverie.store.memory_folder import MemoryFolder
from reverie.store.objects import OBJECTS
from reverie.store.paths import is_temporary
from reverie.store.project import HISTORY, Project, agent_memories
from reverie.topics.redaction import ForgetWords

LOCK = ".reverie-forget.lock"
_PASSES = 3
_PATIENCE = 10.0
_SESSION = re.compile(
    r"(?P<base>(?:.*?/)??)(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.jsonl|/.*)",
    re.ASCII,
)
_DERIVED = re.compile(
    r".*\.(?:sqlite3?|db)(?:-wal|-shm|-journal)?|.*\.(?:rules|seen)|" + re.escape(LISTING), re.ASCII
)
_COPY = re.compile(r"/dreams/[^/]+/(?:base|work)/[^/]+\.md\Z", re.ASCII)
_OWN = ("settings.json", "flags.json")

ForgetProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ForgetHit:
    """A file that holds the words, or is named by them."""

    path: Path
    kind: str
    count: int


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was changed where, and what still holds the words, with the reason."""

    touched: tuple[RewrittenFile, ...] = ()
    remaining: tuple[tuple[str, str], ...] = ()
    searched: int = 0
    dry_run: bool = False

    @property
    def proven(self) -> bool:
        return not self.dry_run and not self.remaining


@dataclass(slots=True)
class ForgetRun:
    """One home, and the memory folders that lie outside it, each with its history."""

    home: Path
    environ: Mapping[str, str]
    now: Callable[[], float]
    outside: Sequence[tuple[Path, Path]] = ()
    step: ForgetProgress = lambda _: None
    new_id: Callable[[], str] = lambda: str(uuid4())
    searched: int = field(default=0, init=False)

    @classmethod
    def of(cls, project: Project) -> ForgetRun:
        """Prepare to forget in a project's home, and in its memories that lie elsewhere."""
        folder, home = project.memory_folder, project.home
        outside = [] if folder.is_relative_to(home) else [(folder, project.history_folder)]
        return cls(home, project.environ, time.time, [*outside, *agent_memories(project)])

    def run(self, text: str, *, dry_run: bool = False) -> ForgetReport:
        """Forget these words; a dry run only says where they are."""
        words = ForgetWords.of(text)
        if not self.home.is_dir():
            return ForgetReport(dry_run=dry_run)
        if dry_run:
            hits = self.search(words)
            found = tuple(
                RewrittenFile(str(h.path), h.kind, h.count) for h in hits if self._ours(h)
            )
            left = tuple((str(h.path), _WHY) for h in hits if not self._ours(h))
            return ForgetReport(found, left, self.searched, True)
        with FileLock(self.home / LOCK).hold(_PATIENCE):
            return self._forget_words(words)

    def _forget_words(self, words: ForgetWords) -> ForgetReport:
        marks = ForgottenWords(self.home)
        touched: list[RewrittenFile] = []
        try:
            for attempt in range(_PASSES):
                hits = [hit for hit in self.search(words) if self._ours(hit)]
                with self._lock_home(hits):
                    if not attempt:
                        marks.add(words, self.now(), done=False)
                    self._rewrite(words, hits, touched)
                if not hits:
                    break
            left = self._left(words)
            marks.add(words, self.now(), done=True)
        finally:
            marks.close()
        return ForgetReport(tuple(touched), left, self.searched)

    def _left(self, words: ForgetWords) -> tuple[tuple[str, str], ...]:
        self.searched = 0
        left = [
            (str(hit.path), "it could not be changed" if self._ours(hit) else _WHY)
            for hit in self.search(words)
        ]
        folders = (Path(above, n) for above, names, _ in os.walk(self.home) for n in names)
        left += [(str(path), _NAMED) for path in folders if words.within(path.name)]
        return tuple(left)

    # Searching

    def search(self, words: ForgetWords) -> list[ForgetHit]:
        """Every file that holds the words, read whole as a plain search would read it."""
        found: list[ForgetHit] = []
        for path in self._files():
            self.searched += 1
            self.step(str(path))
            count = _count(words, path)
            named = words.names(path.stem) if path.suffix == ".md" else words.within(path.name)
            if count or named:
                found.append(ForgetHit(path, self._kind(path), max(count, 1)))
        return found

    def _files(self) -> Iterator[Path]:
        roots = [self.home, *(path for pair in self.outside for path in pair)]
        seen: set[Path] = set()
        for root in roots:
            for above, _, files in os.walk(root):
                for name in sorted(files):
                    path = Path(above, name)
                    if path not in seen and not path.is_symlink():
                        seen.add(path)
                        yield path

    def _kind(self, path: Path) -> str:
        if is_temporary(path.name):
            return "temporary"
        if _DERIVED.fullmatch(path.name):
            return "derived"
        for memory, history in self._pairs():
            if path.is_relative_to(history):
                return "history"
            if path.is_relative_to(memory):
                return "memory"
        return "session" if _SESSION.fullmatch(self._relative(path)) else "file"

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.home).as_posix() if path.is_relative_to(self.home) else ""

    def _pairs(self) -> list[tuple[Path, Path]]:
        """Memory folders with their histories."""
        found: list[tuple[Path, Path]] = list(self.outside)
        projects = self.home / "projects"
        for name in sorted(os.listdir(projects)) if projects.is_dir() else ():
            project = projects / name
            kept = places.transcripts_folder(project, self.home, self.environ)
            found.append((project / "memory", kept / HISTORY))
            for one in address_folders(kept):
                of_one = places.transcripts_folder(one, self.home, self.environ)
                found.append((one / "memory", of_one / HISTORY))
        return found

    def _ours(self, hit: ForgetHit) -> bool:
        """Whether a file is one that we may rewrite."""
        if hit.path.name.startswith(".reverie-") and hit.kind not in ("temporary", "derived"):
            return False
        if hit.kind in ("memory", "history"):
            return not any(part.startswith(".") for part in hit.path.parts[-1:])
        inside = self._relative(hit.path)
        if inside in _OWN or inside.startswith(f"{HASHES}/"):
            return False
        if not places.is_shared(self.home, self.environ):
            return True
        parts = inside.split("/")
        return len(parts) > 3 and parts[0] == "projects" and parts[2] == "reverie"

    # Changing

    @contextlib.contextmanager
    def _lock_home(self, hits: Sequence[ForgetHit]) -> Generator[None]:
        """Hold every session and memory folder that is to be changed, or change nothing."""
        with contextlib.ExitStack() as stack:
            for base, session in self._sessions(hits):
                folder = stack.enter_context(Folder(self.home))
                agents = f"{base}{session}/agents"
                with contextlib.suppress(NotFound):
                    for key in (k for k in folder.list(agents) if k.endswith(".jsonl")):
                        stack.enter_context(Journal.open(folder, key))
                if folder.exists(f"{base}{session}.jsonl"):
                    stack.enter_context(Journal.open(folder, f"{base}{session}.jsonl"))
            for memory, _ in self._pairs_of(hits):
                if memory.is_dir():
                    open_folder = stack.enter_context(MemoryFolder(memory, create=False))
                    stack.enter_context(open_folder.locked())
            yield

    def _sessions(self, hits: Sequence[ForgetHit]) -> list[tuple[str, str]]:
        found = [_SESSION.fullmatch(self._relative(h.path)) for h in hits if h.kind == "session"]
        return sorted({(one["base"], one["id"]) for one in found if one})

    def _pairs_of(self, hits: Sequence[ForgetHit]) -> list[tuple[Path, Path]]:
        paths = [hit.path for hit in hits if hit.kind in ("memory", "history")]
        return [
            pair
            for pair in self._pairs()
            if any(path.is_relative_to(root) for path in paths for root in pair)
        ]

    def _rewrite(
        self, words: ForgetWords, hits: Sequence[ForgetHit], touched: list[RewrittenFile]
    ) -> None:
        with Folder(self.home) as files:
            rewriter = Rewriter(files, words, self.now(), self.new_id, touched)
            for base, session in self._sessions(hits):
                self.step(session)
                rewriter.session(base, session)
            for hit in hits:
                key = self._relative(hit.path)
                if _COPY.search(key) and words.names(hit.path.stem):
                    rewriter.removed(key, "copy of a dream")
            for memory, history in self._pairs_of(hits):
                self.step(str(memory))
                with _open_if_present(memory) as folder, _open_if_present(history) as versions:
                    rewriter.memory(folder, versions)
            for hit in hits:
                if hit.kind == "file":
                    with contextlib.suppress(PathRefused):
                        rewriter.plain(self._relative(hit.path))
            for hit in self._index_hits() if hits else ():
                with contextlib.suppress(PathRefused, NotFound):
                    rewriter.removed(self._relative(hit.path), hit.kind)
            for hit in hits:
                if hit.kind == "temporary":
                    _swept(hit.path, touched)

    def _index_hits(self) -> Iterator[ForgetHit]:
        """Every index there is: it holds stems and pages, which a plain search may not find."""
        for path in self._files():
            hit = ForgetHit(path, "derived", 1)
            if self._relative(path) and _DERIVED.fullmatch(path.name) and self._ours(hit):
                yield hit


_WHY = "it does not belong to Reverie, so it is not rewritten"
_NAMED = "a folder has this name"


@contextlib.contextmanager
def _open_if_present(path: Path) -> Generator[Folder | None]:
    if not path.is_dir():
        yield None
        return
    with Folder(path, create=False) as folder:
        yield folder


def _swept(path: Path, touched: list[RewrittenFile]) -> None:
    """What a writer that died left behind; one that lives puts its file in place soon."""
    with Folder(path.parent, create=False) as folder:
        if folder.sweep(older_than=0.0):
            touched.append(RewrittenFile(str(path), "temporary", 1))


def _count(words: ForgetWords, path: Path) -> int:
    """How often a file holds the words; a packed version is unpacked first."""
    data = read_whole(path)
    if path.suffix == ".z" and OBJECTS in path.parts:
        with contextlib.suppress(zlib.error):
            data = zlib.decompress(data)
    text = data.decode("utf-8", "surrogateescape")
    return words.count(text) if words.within(text) else 0


def read_whole(path: Path) -> bytes:
    """A regular file's bytes; nothing for what is none, or is gone."""
    try:
        return read_plain(path, os.lstat(path).st_size) or b""
    except OSError:
        return b""
