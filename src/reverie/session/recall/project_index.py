"""One project's index, vectors and times, kept up to date.

The recall index of one project, kept up to date beside its use.

A look searches at once where bringing the index up to date takes long, and afterwards where it
is quick: small memories are always seen as they are, large ones as they were a turn ago. The
index lies with the project's transcripts and may be deleted at any time. Its file is open while
it is used and no longer. Closed is closed: a look that comes late does not open it again.

With a model of meaning in this process, every look asks it; texts get their vectors beside looks.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.errors import NotFound, ProviderError, StoreError
from reverie.light import dataclass
from reverie.recall.gate import Embeddings, LocalModel, QueryVector, sentences
from reverie.recall.ranker import Query
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.store.history import History
from reverie.store.home import DIALOGUES
from reverie.store.memory_folder import MemoryFolder
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project
from reverie.store.recall.index import INDEX_NAME, SESSIONS, HitKind, RecallHit, RecallIndex
from reverie.store.recall.memories import folder_time
from reverie.text.dates import relative
from reverie.topics.entry import TopicFile, decode_text
from reverie.topics.times import file_time, files_copied, line_times
from reverie.topics.versions import Version
from reverie.world import Notice, Say, say_nothing

if TYPE_CHECKING:
    from reverie.providers.embeddings import EndpointEmbeddings

REHEARSED = "What was said about this last week?"
LOOKED = 20
"""Memories of a turn that are looked at closely."""
QUICK, FEW = 0.01, 500
"""Seconds that bringing the index up to date may take in front of a search; and memories of which
it is taken to be quick before it was tried."""


AGAIN = 10.0
"""Times what a slow refresh takes, until the next one in front of a search looks at each file."""


@dataclass(frozen=True, slots=True)
class RankedMemories:
    """How many memories there are, and those that fit best."""

    considered: int
    hits: tuple[RecallHit, ...] = ()


class MemoryIndex:
    """The index over one memory folder and the transcripts of its project."""

    def __init__(
        self,
        folder: Path,
        transcripts: Path,
        *,
        settings: Settings = DEFAULTS,
        say: Say = say_nothing,
        now: Callable[[], float] = time.monotonic,
        model: Callable[[], LocalModel | None] | None = None,
    ) -> None:
        self.folder = folder
        self.transcripts = transcripts
        self._header_lines = settings.recall_header_lines
        self._say = say
        self._now = now
        self._load_model = model or partial(local_model, settings, say)
        self._model: LocalModel | None = None  # loaded beside looks, never in front of one
        self._index: RecallIndex | None = None
        self._closed = False
        self._users = 0
        self._looking = False  # a look has begun that `settle` ends
        self._opening = threading.Lock()
        self._took: float | None = None
        self._ended = 0.0
        self._folders: Mapping[str, int] = {}
        self._seen = 0

    @classmethod
    def of(cls, project: Project, *, say: Say = say_nothing) -> MemoryIndex:
        """Return the index of a project's memory; nothing is made."""
        kept = project.sessions_folder
        return cls(project.memory_folder, kept, settings=project.settings, say=say)

    @contextmanager
    def opened(self) -> Generator[RecallIndex]:
        """The index, open for as long as anybody uses it."""
        index = self._acquire_index()
        try:
            yield index
        finally:
            self._given_back()

    def _acquire_index(self) -> RecallIndex:
        path = self.transcripts / INDEX_NAME
        with self._opening:
            if self._closed:
                raise StoreError("the recall index is closed", where=str(path))
            if self._index is None:
                lines = self._header_lines
                self._index = RecallIndex.open(path, say=self._say, header_lines=lines)
            self._users += 1
            return self._index

    def _given_back(self) -> None:
        with self._opening:
            self._users -= 1
            self._rest()

    def _rest(self) -> None:
        if self._index is not None and not self._users and not self._looking:
            self._index.close()
            self._index = None

    def close(self) -> None:
        with self._opening:
            if self._index is not None:
                self._index.close()
            self._index, self._closed = None, True

    def refresh(self) -> None:
        """Bring the index up to date with the memory folder."""
        start = self._now()
        with self.opened() as index:
            self._seen = index.refresh(self.folder).seen
            self._folders = index.folders
        self._took, self._ended = self._now() - start, self._now()

    def _catch_up(self) -> None:
        """Bring the index up to date, unless that takes long, was done a moment ago, and no file
        came or went since."""
        lately = self._is_slow and self._now() - self._ended < AGAIN * (self._took or 0.0)
        if not lately or any(folder_time(path) != at for path, at in self._folders.items()):
            self.refresh()

    def look(self, text: str, now: float, without: Container[str] = ()) -> RankedMemories:
        """The memories that fit a text, best first; the file stays open until `settle`."""
        self._looking = True
        with self.opened() as index:
            if not self._is_slow:
                self.refresh()
            self._seen = self._seen or index.count
            model = self._model
            meant = meanings(model, text, now) if model is not None else []
            begun = index.begun
            hits = index.about(text, now, k=LOOKED, exclude=without, meanings=meant)
            if index.begun != begun:  # it was deleted, and is empty
                self.refresh()
                hits = index.about(text, now, k=LOOKED, exclude=without, meanings=meant)
        return RankedMemories(self._seen, tuple(hits))

    def rehearse(self, now: float) -> RankedMemories:
        """A look whose answer nobody takes: the newest memory, and everything loaded."""
        self._looking = True
        with self.opened() as index:
            index.about(REHEARSED, now, k=1)
            return RankedMemories(0, tuple(index.newest(1)))

    def alone(self, at: float) -> bool:
        """Whether at most one memory's file is of this time, and not many of a checkout or copy."""
        try:
            with self.opened() as index:
                return index.alone(at)
        except StoreError:  # it was closed meanwhile: nobody knows
            return False

    @property
    def _is_slow(self) -> bool:
        """Whether a refresh takes too long to do in front of a look."""
        if self._took is not None:
            return self._took > QUICK
        with self.opened() as index:
            return index.count > FEW

    def settle(self) -> None:
        """Beside a look: what is too slow to do in front of it."""
        with self.opened() as index:
            self._looking = False
            if self._is_slow or self._took is None:
                self.refresh()
            self._model = self._load_model()
            if self._model is not None:
                fill(index, self._model)

    def search(
        self,
        text: str,
        now: float,
        *,
        k: int,
        kinds: Sequence[HitKind] = ("memory",),
        without: Container[str] = (),
        meaning: QueryVector | None = None,
        beside: bool = False,
    ) -> list[RecallHit]:
        """A search that somebody asked for: everything is brought up to date first. With `beside`
        somebody else does that where it is too slow to do in front of a search."""
        with self.opened() as index:
            if "memory" in kinds and not (beside and self._is_slow):
                self._catch_up()
            if "transcript" in kinds:
                index.refresh_transcripts(self.transcripts, recorded=without is SESSIONS)
            model = self._load_model() if meaning is None else None
            if model is not None:
                fill(index, model, kinds)
                (vector,) = model.encode([text])
                meaning = QueryVector(model.name, vector)
            query, begun = Query.of(text, now), index.begun
            hits = index.search(query, k=k, kinds=kinds, exclude=without, meaning=meaning)
            if index.begun != begun:  # it was deleted, and is empty
                self.refresh()
                hits = index.search(query, k=k, kinds=kinds, exclude=without, meaning=meaning)
            return hits

    @property
    def seen(self) -> int:
        """How many memories the last look at the folder saw."""
        return self._seen

    @property
    def has_dialogues(self) -> bool:
        """Whether any conversation was recorded."""
        return (self.transcripts / DIALOGUES).is_dir()

    def around(self, hit: RecallHit) -> list[tuple[int, str, str]]:
        """Place, speaker and words of a turn that was found, and of those beside it."""
        with self.opened() as index:
            return index.around(hit)


# --- Recall by meaning: the model there is for it, and vectors kept up with memories and turns.
#
# A model in this process (the extra `semantic`, or a folder that `embeddingModel` names) is used
# wherever recall looks, unless the setting names a server or says `off`. One behind an endpoint is
# used where somebody waits for `reverie recall`: what goes there is the beginning of memories that
# have no vector yet, and the words that are looked for; nothing goes anywhere unless the setting
# names a model.
#
# A text gets its vector once for each of its states. Bounded: many get theirs over several looks.


OFF = "off"
AT_ONCE = 256
"""Memories that are taken at a time: what was paid for is kept before more is asked for."""
MAX = 4_096
"""Memories that get their vectors in one look."""
LOCAL_AT_ONCE = 16
LOCAL_MAX = 64
"""Texts that a model in this process gives their vectors beside one look: about a second."""
QUERY_TOKENS = 40
"""Of a message, for its sentences together: what fits into the time a request waits."""
MIN_TOKENS = 12


def embeddings_by(settings: Settings, environ: Mapping[str, str]) -> EndpointEmbeddings | None:
    """The model behind an endpoint that the setting names; None where it names none."""
    name = settings.embedding_model
    if not name or name == OFF or os.path.isdir(name):
        return None
    from reverie.providers.embeddings import embeddings_for

    return embeddings_for(name, environ)


def local_model(settings: Settings, say: Say) -> LocalModel | None:
    """The model in this process: that of the folder that the setting names, or the one that is
    installed, where it names no other."""
    name = settings.embedding_model or ""
    if (name and not os.path.isdir(name)) or find_spec("numpy") is None:
        return None  # nothing is loaded to find out that there is no model
    from reverie.providers.embeddings import minilm, onnx_model

    try:
        return onnx_model(name) if name else minilm()
    except ProviderError as error:
        say(Notice("recall", f"searched by words only: {error}", "warning"))
        return None


def meanings(model: LocalModel, text: str, now: float) -> list[QueryVector]:
    """What the sentences of a message mean, in their order."""
    asked = [query.text for query in sentences(text, now)]
    most = max(QUERY_TOKENS // len(asked), MIN_TOKENS)
    return [QueryVector(model.name, vector) for vector in model.encode(asked, most)]


def fill(
    index: RecallIndex,
    model: LocalModel,
    kinds: Sequence[HitKind] = ("memory",),
    most: int = LOCAL_MAX,
) -> int:
    """Give texts that lack a vector theirs, the newest first; gives how many were kept."""
    done = 0
    for kind in kinds:
        while done < most:
            missing = index.without_vector(model.name, LOCAL_AT_ONCE, kind)
            if not missing:
                break
            vectors = model.encode([text for _, text in missing])
            found = [(ident, vector) for (ident, _), vector in zip(missing, vectors, strict=True)]
            kept = index.put_vectors(model.name, found, kind)
            if not kept:
                break
            done += kept
    return done


async def meaning(index: RecallIndex, model: Embeddings, text: str, most: int = MAX) -> QueryVector:
    """What a text means to a model, once the memories that lack their vectors have them."""
    done = 0
    while done < most:
        kept = await _add_vectors(index, model)
        if not kept:
            break
        done += kept
    (vector,) = await model.embed([text])
    return QueryVector(model.name, vector)


async def _add_vectors(index: RecallIndex, model: Embeddings) -> int:
    """Give some memories their vectors; gives how many were kept."""
    from anyio import to_thread

    missing = await to_thread.run_sync(index.without_vector, model.name, AT_ONCE)
    if not missing:
        return 0
    vectors = await model.embed([text for _, text in missing])
    found = [(ident, vector) for (ident, _), vector in zip(missing, vectors, strict=True)]
    return await to_thread.run_sync(index.put_vectors, model.name, found)


# --- When the memories of a folder were written: files, and lines where that makes a difference.


_HEAD_BYTES = 16_384
_ANY_DAY = 86_400.0 * 10_000


@dataclass(frozen=True, slots=True)
class TopicTimes:
    """Times in seconds, 0 where nobody knows; `lines` only for files that tell a date by the day
    they were written on."""

    files: Mapping[str, float] = field(default_factory=dict[str, float])
    lines: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])


def written_times(memories: MemoryStore, files: Mapping[str, bytes], now: float) -> TopicTimes:
    """What the history, the heads, the files' own times and git tell of some files."""
    stamps: dict[str, float] = {}
    for key in files:
        try:
            stamps[key] = memories.folder.stat(key).modified / 1e9
        except (NotFound, StoreError):
            continue
    unsure = files_copied(stamps)
    steps: dict[str, list[Version]] = {}
    for version in memories.history.log():
        steps.setdefault(version.key, []).append(version)
    times: dict[str, float] = {}
    lines: dict[str, tuple[float, ...]] = {}
    committed = commit_times(memories.root) if unsure else {}
    for key, data in files.items():
        own, stamp = steps.get(key, []), stamps.get(key, 0.0)
        sure = key not in unsure and bool(stamp)
        if not sure and key in committed:
            stamp, sure = committed[key], True
        times[key] = file_time(data, own, stamp, now, sure=sure)
        if own and relative(decode_text(data), _ANY_DAY):
            try:
                known = memories.history.content
                lines[key] = line_times(data, own, known, stamp, now, sure=sure)
            except (NotFound, StoreError):
                lines[key] = (0.0,) * (data.count(b"\n") + 1)
    return TopicTimes(times, lines)


GIT_SECONDS = 2.0
"""Time for git to tell when the files of a folder changed."""


def commit_times(folder: Path) -> dict[str, float]:
    """Return when git last saw each file of a folder change; nothing outside a repository."""
    from reverie.session.recall.verification import Repository

    above = Path(os.path.realpath(folder))
    for root in (above, *above.parents):
        if os.path.lexists(root / ".git"):
            return Repository(root, seconds=GIT_SECONDS).commit_times(folder)
    return {}


class FileTimes:
    """When single files were written, asked one by one; what they all need is looked at once.
    Without a history, what the heads and the files' own times tell. `alone` says whether a time is
    that of one file, for whoever knows that without a look at all of them."""

    def __init__(
        self,
        folder: MemoryFolder,
        now: float,
        history: History | None = None,
        alone: Callable[[float], bool] | None = None,
    ) -> None:
        self._folder = folder
        self._now = now
        self._history = history
        self._alone = alone
        self._unsure: frozenset[str] | None = None
        self._committed: Mapping[str, float] | None = None

    def at(self, key: str, known: Sequence[Version] | None = None) -> float:
        """When a file was last written to; 0 where nobody knows."""
        try:
            return self.of(self._folder.read(key, _HEAD_BYTES), known)
        except (NotFound, StoreError):
            return 0.0

    def of(self, one: TopicFile, known: Sequence[Version] | None = None) -> float:
        """The same for a file that was read, at least its head, and the versions known of it."""
        versions = known or ()
        if known is None and self._history is not None:
            with suppress(NotFound, StoreError):
                versions = self._history.log(one.key)
        told = file_time(one.data, versions, 0.0, self._now, sure=False)
        if told:
            return told
        if self._committed is None:
            self._committed = commit_times(self._folder.root)
        stamp = self._committed.get(one.key, 0.0)
        own = bool(stamp) or (self._alone(one.modified) if self._alone else self._is_own(one.key))
        return file_time(one.data, versions, stamp or one.modified, self._now, sure=own)

    def _is_own(self, key: str) -> bool:
        """Whether a file's time is its own, and not that of a checkout or a copy of many."""
        if self._unsure is None:
            stamps: dict[str, float] = {}
            for one in self._folder.all_keys():
                with suppress(NotFound, StoreError):
                    stamps[one] = self._folder.stat(one).modified / 1e9
            self._unsure = files_copied(stamps)
        return key not in self._unsure
