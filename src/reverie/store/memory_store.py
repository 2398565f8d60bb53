"""One project's long-term memory, ready to use: saving, removing, undoing, reviewing.

Everything that changes a memory goes through here: each write is searched for secrets and for
words that were forgotten, has an origin, is kept as a version, and lands as file, then pointer.
What is untrusted and reads like an instruction waits in the review queue instead, and so does an
order from a writer without a conversation. "Remember" and "forget" act at once: they have
returned = it is on the disk.

What may be saved is for the one who saves to judge; what must not be, is refused here. A full
disk leaves the old file as it was and raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from reverie.errors import InvalidInput, NotFound, ReverieError, StoreError
from reverie.light import dataclass
from reverie.secrets.scanner import check_clean
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.store import home as places
from reverie.store import transaction
from reverie.store.files import Folder
from reverie.store.fs import digest
from reverie.store.history import History
from reverie.store.history_cache import ALIKE, PendingWrite, SavedFile
from reverie.store.lists import ForgottenWords, ReviewItem, ReviewQueue
from reverie.store.long_index import LongIndexes
from reverie.store.memory_folder import LONG_INDEX, MemoryFolder
from reverie.store.project import Project
from reverie.text.format import changed_lines
from reverie.text.safety import whole
from reverie.topics import entry as entries
from reverie.topics.entry import TopicFile, sort_of, summary_of, title_of
from reverie.topics.index import pointers_with, without
from reverie.topics.manifest import IndexLimits
from reverie.topics.trust import CommandEvidence, Trust, gives_orders, goes_to_review
from reverie.topics.versions import (
    ABSENT,
    By,
    Origin,
    UndoneVersion,
    Version,
    from_origin,
    trust_in,
    undo_all,
)
from reverie.world import Notice, Say, say_nothing


@dataclass(frozen=True, slots=True)
class SaveOutcome:
    """What became of a request: saved, waiting for review, or there already."""

    key: str
    saved: SavedFile | None = None
    queued: ReviewItem | None = None

    @property
    def outcome(self) -> str:
        return "saved" if self.saved else "queued" if self.queued else "unchanged"

    @property
    def unverified(self) -> bool:
        """Whether it has a file, and no pointer until it is accepted."""
        return self.saved is not None and self.queued is not None


@dataclass(frozen=True, slots=True)
class UndoOutcome:
    """What taking back did, file by file, and what it left alone with the reason."""

    group: str
    done: tuple[UndoneVersion, ...]
    refused: tuple[UndoneVersion, ...]


class MemoryStore:
    """The memory of one project. Close it, or use it as a context."""

    def __init__(
        self,
        folder: Path,
        history: Path,
        home: Path,
        *,
        now: Callable[[], float],
        say: Say = say_nothing,
        create: bool = True,
        settings: Settings = DEFAULTS,
        long_index: int = LONG_INDEX,
    ) -> None:
        self.now = now
        self.forgotten = ForgottenWords(home, create=create)
        self.history = History(history, now=now, say=say, create=create)
        self.indexes = LongIndexes(self.history)
        self.folder = MemoryFolder(
            folder,
            create=create,
            guard=self._guard,
            landed=self.history.landed,
            say=say,
            limits=IndexLimits.of(settings),
            header_lines=settings.recall_header_lines,
            known=self.indexes,
            long_index=long_index,
        )
        self.history.bind(self.folder)
        self.review = ReviewQueue(self.beside)
        self.project: Path | None = None  # its root, where that is known

    @property
    def root(self) -> Path:
        """Where the memories lie."""
        return self.folder.root

    @property
    def home(self) -> Path:
        return self.forgotten.home

    @property
    def beside(self) -> Folder:
        """The folder beside the memories: their history, what waits, and what is planned."""
        return self.history.files

    @classmethod
    def of(
        cls, project: Project, *, now: Callable[[], float], say: Say = say_nothing
    ) -> MemoryStore:
        """Open a project's memory; make its folders where they are missing."""
        project.claim()
        places.project_folder(project.home, project.root, environ=project.environ)
        memories = cls(
            project.memory_folder,
            project.history_folder,
            project.home,
            now=now,
            say=say,
            settings=project.settings,
        )
        memories.project = project.root
        try:
            transaction.finish(memories)
        except ReverieError as error:
            text = f"a change that was cut off while it landed is not whole yet: {error}"
            say(Notice("memory", text, "warning"))
        with suppress(ReverieError):
            if memories.forgotten.unfinished():
                text = "A forget was cut off: forget the same words again to finish it"
                say(Notice("memory", text, "warning"))
        return memories

    def compile_rules(self) -> None:
        """Compile the rules among what was written, so that hooks find them."""
        if self.project is not None and self.history.written:
            from reverie.store.rules import compile_written

            compile_written(self, self.project)

    def close(self) -> None:
        self.compile_rules()
        self.folder.close()
        self.history.close()
        self.forgotten.close()

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Guards

    def _guard(self, key: str, data: bytes) -> None:
        self.allow(key, data)
        self.history.guard(key, data)

    def allow(self, key: str, data: bytes) -> None:
        """Refuse secrets and forgotten words in what a write adds, and what tells of the user
        among what is shared."""
        if key.startswith(f"{entries.TEAM}/") and TopicFile(key, data).type == "user":
            raise InvalidInput(
                "A memory of type user stays private", where=key, do="Save it outside of team/"
            )
        fresh = self._fresh(key, data) if entries.is_index(key) else data
        check_clean(fresh, key)
        self.forgotten.guard(key, fresh)

    def _fresh(self, key: str, data: bytes) -> bytes:
        """The lines of an index that are new: what stands there already is not this write's."""
        if b"\n" not in data:
            return data  # one line, to be added
        try:
            old = self.folder.bytes_of(key)
        except NotFound:
            return data
        before, after = changed_lines(old, data)
        known = set(before.splitlines())
        return b"\n".join(line for line in after.splitlines() if line not in known)

    # Saving

    def remember(
        self,
        text: str,
        origin: Origin,
        *,
        name: str = "",
        description: str = "",
        type: str = "",  # noqa: A002
        key: str = "",
    ) -> SaveOutcome:
        """Save a memory now. What is not given is made from the text."""
        body = whole(text.strip())
        if not body:
            raise InvalidInput("There is nothing to remember", do="Say what to remember")
        check_clean(text, key)  # by the lines of the text itself; the write looks at the file
        title = name or title_of(body)
        kind = type or sort_of(body)
        with self.folder.locked(), self.history.by(origin):
            transaction.finish(self)  # it may take out the file that has these words
            known, free = self._find_same_body(body, entries.key_for(title, kind))
            if known and not key:
                there = self.folder.read(known)
                if there.superseded:  # said again, it holds in place of what superseded it
                    again = there.with_value("", entries.SUPERSEDED)
                    return self.save(known, again.data, origin, expect=digest(there.data))
                pointed = self.folder.point(known)
                return SaveOutcome(known, pointed if pointed.changes else None)
        made = entries.new(
            key or free,
            name=title,
            description=description or summary_of(body),
            type=kind,
            body=body,
        )
        return self.save(made.key, made.data, origin, exclusive=not key)

    def save(
        self,
        key: str,
        data: bytes,
        origin: Origin,
        *,
        expect: str | None = None,
        exclusive: bool = False,
        hook: str = "",
        reviewed: bool = False,
        pointer: bool = True,
        queues: bool = True,
        group: str = "",
        planned: bool = False,
    ) -> SaveOutcome:
        """Save a topic file, with its pointer unless none is wanted. What is not trusted waits for
        review: alone where it would command or tell of the user, else beside a marked file without
        a pointer; or only as that file, where it is one of many (`queues`). `group` is a step
        that goes on. `planned` applies file and pointer together, however the process ends."""
        by_hand = origin.kind in ("save", "edit") and not origin.session
        if by_hand and b"applies_to" in data:  # an extraction keeps the memory, without its rule
            from reverie.rules.rule import refuse_faults

            refuse_faults(key, data, self.folder.bytes_of(key) if self.folder.exists(key) else b"")
        text = data.decode("utf-8", "replace")
        origin = origin if reviewed else self.vouched(key, data, origin)
        trusted = reviewed or origin.trust is not Trust.UNTRUSTED
        evidence = () if trusted else self.waits(key, data)
        waiting: ReviewItem | None = None
        if not trusted:
            self.allow(key, data)
        if not trusted and (evidence or queues):
            why = evidence or (
                CommandEvidence("source", 1, "it does not rest on the user's words"),
            )
            waiting = self.review.add(key, text, self.now(), origin, why)
        if evidence:
            return SaveOutcome(key, None, waiting)
        if not trusted:
            data = TopicFile(key, data).with_value(entries.UNVERIFIED, entries.TRUST).data
        with self.folder.locked(), self.history.by(origin, group=group):
            transaction.finish(self)
            if planned and trusted and pointer:
                changes = self.folder.with_pointer(key, data, hook)
                there = {one: _digest(self.folder, one) for one in changes}
                if expect is not None or exclusive:
                    there[key] = expect or ABSENT
                transaction.land_over(self, changes, there, origin)
                done = self.folder.point(key)
            else:
                done = self.folder.save(
                    key,
                    data,
                    hook=hook,
                    expect=expect,
                    exclusive=exclusive,
                    pointer=trusted and pointer,
                )
            if trusted:
                from reverie.store.replacement import supersede  # due where a rule is saved

                supersede(self, TopicFile(key, data), origin)
        return SaveOutcome(key, done, waiting)

    def vouched(self, key: str, data: bytes, origin: Origin) -> Origin:
        """Return the origin as far as it can vouch: it is untrusted where it adds an order to
        override, leak, hide or run, and neither a session nor a person's own hand is behind it."""
        chosen = origin.kind == "import" and origin.trust is Trust.USER  # a person named the file
        if origin.session or origin.in_person or chosen:
            return origin
        old = self.folder.bytes_of(key) if self.folder.exists(key) else b""
        _, added = changed_lines(old, data)
        orders = gives_orders(added.decode("utf-8", "replace"))
        return replace(origin, trust=Trust.UNTRUSTED) if orders else origin

    def waits(self, key: str, data: bytes) -> Sequence[CommandEvidence]:
        """Why an untrusted memory gets no file before a person has seen it; nothing where a
        marked one will do: it tells of the project or of a place, and of nothing known so far."""
        found = goes_to_review(Trust.UNTRUSTED, data.decode("utf-8", "replace"))
        if found:
            return found
        kind = TopicFile(key, data).type
        if kind in ("user", "feedback"):
            return (CommandEvidence("source", 1, f"{kind}, and not in the user's words"),)
        if self.folder.exists(key) and not self.folder.read(key).is_unverified:
            return (CommandEvidence("source", 1, "it would change a memory that is trusted"),)
        return ()

    def _find_same_body(self, body: str, key: str) -> tuple[str, str]:
        """The memory with just this body, of those that are named or described like it, or
        nothing; and the first free file name. The others are not read."""
        stem, number, free = key.removesuffix(".md"), 1, key
        while self.folder.exists(free):
            if self._body(free) == body:
                return free, ""
            number += 1
            free = f"{stem}_{number}.md"
        found = (one for one in self._like(summary_of(body)[:ALIKE]) if self._body(one) == body)
        return (known, "") if (known := next(found, "")) else ("", free)

    def _like(self, about: str) -> Sequence[str]:
        """The memories whose pointers say something like this."""
        if self.folder.is_long(entries.INDEX):
            with self.folder.locked():
                return self.indexes.known_like(entries.INDEX, about)
        found = pointers_with(self.folder.index_data(), about.encode())
        return [one.key for one in found if one.key]

    def _body(self, key: str) -> str:
        try:
            return self.folder.read(key).body.strip()
        except (NotFound, StoreError):
            return ""

    # Removing

    def find(self, name: str) -> TopicFile:
        """A memory by its file's name, with or without ending, or by its own name."""
        keys = self.folder.keys()
        wanted = name.strip().casefold()
        for key in keys:
            if wanted in (key.casefold(), entries.stem(key).casefold(), f"{key.casefold()}.md"):
                return self.folder.read(key)
        found = [one for one in self.folder.scan() if one.name.strip().casefold() == wanted]
        if len(found) == 1:
            return self.folder.read(found[0].key)
        raise NotFound(
            "There is no such memory" if not found else "Several memories have this name",
            where=name[:200],
            do="List the memories to see their files and names",
            code="ambiguous" if found else "",
        )

    def remove(self, key: str, origin: Origin) -> SavedFile:
        """Remove a memory and its pointer; its versions stay, so it can be undone."""
        index = entries.index_of(key)
        name = key.removeprefix(index.removesuffix(entries.INDEX))
        with self.folder.locked(), self.history.by(origin):
            transaction.finish(self)
            if not self.folder.exists(key):
                raise NotFound("There is no such memory", where=key, do="List the memories")
            if self.folder.exists(index):
                self.history.intend(index, without(self.folder.bytes_of(index), name))
            self.history.intend(key, None)
            return self.folder.remove(key)

    # Looking and taking back

    def look(self, origin: Origin | None = None) -> tuple[Version, ...]:
        """Record what others wrote since the last look."""
        return self.history.look(origin)

    def trust(self, key: str) -> Trust:
        return trust_in(self.history.log(key), key)

    def undo(self, name: str, origin: Origin) -> UndoOutcome:
        """Take one change back, with all that was made in the same step; all of it or nothing."""
        with self.folder.locked():
            transaction.finish(self)
            self.look()
            chosen = self.history.find(name) if name else self._newest()
            steps = from_origin(self.history.log(), "group", chosen.group or chosen.id)
            return self._revert(steps, origin, whole=True)

    def revert(self, by: By, value: str, origin: Origin) -> UndoOutcome:
        """Take back all that came from one origin; what cannot be is left and named."""
        with self.folder.locked():
            transaction.finish(self)
            self.look()
            every = self.history.log()
            undone = {name for version in every for name in version.undoes}
            found = [v for v in from_origin(every, by, value) if v.id not in undone]
            if not found:
                raise NotFound(f"Nothing came from this {by}", where=value[:200])
            return self._revert(found, origin, whole=False)

    def _newest(self) -> Version:
        every = self.history.log()
        undone = {name for version in every for name in version.undoes}
        for version in reversed(every):
            if not version.undoes and version.id not in undone:
                return version
        raise NotFound("There is nothing to undo")

    def _revert(self, steps: Sequence[Version], origin: Origin, *, whole: bool) -> UndoOutcome:
        found = undo_all(steps, self.history.state.heads, self.history.content)
        refused = tuple(one for one in found if one.refusal)
        if refused and whole:
            told = "; ".join(f"{one.key}: {one.refusal}" for one in refused)
            raise InvalidInput(
                f"It cannot be taken back without touching what others wrote: {told}",
                do="Look at the difference, and edit the file instead",
            )
        done = tuple(one for one in found if not one.refusal)
        undoes = tuple(name for one in done for name in one.undoes)
        here = {one.key: one.expect for one in done}
        changes = {one.key: one.data for one in done if not _is_there(one)}
        group = transaction.land_over(self, changes, here, origin, undoes)
        return UndoOutcome(group, done, refused)

    def take_out(self, key: str, expect: str) -> None:
        """Remove one file that still has this SHA-256, and nothing else; its versions stay."""
        files = self.folder.files
        self.history.intend(key, None)
        before = files.read(key)
        files.remove(key, expect=expect)
        self.history.landed(PendingWrite(key, before, None))

    # The review queue

    def accept(self, item: ReviewItem, origin: Origin, data: bytes = b"") -> SaveOutcome:
        """Save what waited, or what a person made of it. Its own origin stays in the note."""
        done = self.save(item.key, data or item.text.encode(), origin, reviewed=True)
        self.review.remove(item.id)
        return done

    def drop(self, item: ReviewItem) -> None:
        self.review.drop(item, self.now())


def _digest(folder: MemoryFolder, key: str) -> str:
    return folder.digest(key) if folder.exists(key) else ABSENT


def _is_there(undone: UndoneVersion) -> bool:
    return undone.expect == (ABSENT if undone.data is None else digest(undone.data))
