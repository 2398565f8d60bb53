"""Memories of another system, moved in: each is judged, and what is worth keeping is kept.

The rules are those of every writer: nothing blank, no twin of what is here, nothing that should
never have been saved, no secret, no forgotten words. What an export says is nobody's word but its
program's, unless the user says that it is theirs: until then it is kept as unverified, without a
line in the index, and what commands or tells of the user waits for review, a bounded number at a
time. All that one export brings is one step, which one undo takes back. Run again, it goes on
where it was stopped, since what is here is not kept twice.

Where an export has several users, each one's memories go to that user's own part of the project.
What has no text is counted too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field
from hashlib import blake2b
from typing import Literal, TypeAlias

from reverie.errors import ReverieError, SecretFound
from reverie.light import dataclass
from reverie.memory.check import unworthy
from reverie.memory.exports import ForeignMemory
from reverie.memory.transfer import keep_time
from reverie.store.lists import ForgottenTextRefused
from reverie.store.memory_store import MemoryStore
from reverie.topics import entry as entries
from reverie.topics.entry import TopicFile, sort_of, summary_of, title_of
from reverie.topics.trust import Trust
from reverie.topics.versions import Origin

System: TypeAlias = Literal["mem0", "letta", "langgraph"]

MAX_TEXT = 40_000
"""Characters of a memory; more is a document."""
MAX_WAITING = 200
"""Memories of one import that may wait for review at a time: a person has to look at each."""
KEPT, UNVERIFIED, WAITS = "kept", "kept, unverified", "waits for review"


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """What became of one text, and why."""

    text: str
    outcome: str
    why: str = ""
    file: str = ""

    @property
    def is_kept(self) -> bool:
        return self.outcome in (KEPT, UNVERIFIED)


@dataclass(slots=True)
class MemoryImport:
    """One export on its way in."""

    memories: MemoryStore
    system: str
    name: str  # of the file
    trusted: bool = False
    dry_run: bool = False
    counts: Counter[str] = field(default_factory=Counter[str])
    _known: dict[bytes, str] = field(default_factory=dict[bytes, str])
    _taken: set[str] = field(default_factory=set[str])  # names, also in a dry run
    _group: str = ""
    _waiting: int = 0

    def run(self, found: Iterable[ForeignMemory]) -> Iterator[ImportOutcome]:
        """Each text, as it is dealt with."""
        self._look_around()
        for one in found:
            done = self._import_memory(one)
            self.counts[done.outcome] += 1
            yield done

    def _look_around(self) -> None:
        """What is here already, as digests; and the step that goes on, where one was stopped."""
        folder = self.memories.folder
        for key in folder.keys():  # noqa: SIM118 - a folder, no dict
            self._known[_mark(folder.read(key).body)] = key
        for item in self.memories.review.items():
            self._known[_mark(item.body)] = item.key
            self._waiting += item.origin.kind == "import"
        log = self.memories.history.log()
        undone = {name for version in log for name in version.undoes}
        origin = self._origin(ForeignMemory(""))
        for version in reversed(log):
            known = version.origin
            if (known.kind, known.agent, known.tool) == (origin.kind, origin.agent, origin.tool):
                self._group = "" if version.id in undone else version.group
                break
        self._group = self._group or self.memories.history.new_id()

    def _origin(self, one: ForeignMemory) -> Origin:
        trust = Trust.USER if self.trusted else Trust.UNTRUSTED
        ident = (one.ident,) if one.ident else ()
        return Origin("import", trust, self.system, "", ident, self.name, one.about)

    def _import_memory(self, one: ForeignMemory) -> ImportOutcome:
        text = one.text.strip()
        mark = _mark(text)
        refused = self._early_outcome(text, mark)
        if refused is not None:
            return refused
        made = self._build_topic(one, text, mark)
        if isinstance(made, ImportOutcome):
            return made
        self._known[mark] = made.key
        self._taken.add(made.key)
        try:
            return self._save_memory(one, made)
        except ReverieError as error:
            return _of(text, error)

    def _early_outcome(self, text: str, mark: bytes) -> ImportOutcome | None:
        if not text:
            return ImportOutcome("", "left out", "it is empty")
        if len(text) > MAX_TEXT:
            return ImportOutcome(text[:200], "left out", "it is a document, not a memory")
        if mark in self._known:
            known = self._known[mark]
            if self.trusted and self._accept(known):
                return ImportOutcome(text, KEPT, "it was unverified so far", known)
            return ImportOutcome(text, "already here", "", known)
        return None

    def _accept(self, key: str) -> bool:
        """Trust a memory that an earlier run of this kept as unverified."""
        folder = self.memories.folder
        if not folder.exists(key) or not folder.read(key).is_unverified:
            return False
        was = folder.read(key)
        if not self.dry_run:
            made = entries.new(
                key,
                name=was.name,
                description=was.description,
                type=was.type or "reference",
                body=was.body,
            )
            at = folder.stat(key).modified
            origin = Origin("accept", Trust.USER, self.system, tool=self.name)
            self.memories.save(key, made.data, origin, group=self._group)
            keep_time(self.memories, key, at)
        return True

    def _build_topic(self, one: ForeignMemory, text: str, mark: bytes) -> TopicFile | ImportOutcome:
        title = title_of(text)
        kind = one.kind if one.kind in entries.TYPES else sort_of(text)
        kind = "reference" if one.is_agents and kind in ("user", "feedback") else kind
        key = entries.key_for(title, kind)
        if self.memories.folder.exists(key) or key in self._taken:
            key = f"{key.removesuffix('.md')}_{mark.hex()[:8]}.md"
        try:
            made = entries.new(key, name=title, description=summary_of(text), type=kind, body=text)
            self.memories.allow(key, made.data)
        except ReverieError as error:
            return _of(text, error)
        why = self._junk(made)
        return ImportOutcome(text, "left out", f"junk: {why}") if why else made

    def _junk(self, made: TopicFile) -> str:
        """Why it should never have been saved. Other systems keep facts without a subject ("Likes
        pizza"), which are fragments in a conversation but not here; and of the user's own words
        only what is no statement at all is left out."""
        why = unworthy(made)
        if why == "fragment" and len(made.body.split()) > 1:
            return ""
        if self.trusted and why not in ("fragment", "question"):
            return ""
        return why

    def _save_memory(self, one: ForeignMemory, made: TopicFile) -> ImportOutcome:
        origin = self.memories.vouched(made.key, made.data, self._origin(one))
        text, trusted = made.body.strip(), origin.trust is not Trust.UNTRUSTED
        waits = () if trusted else self.memories.waits(made.key, made.data)
        if waits:
            why = "; ".join(found.rule for found in waits)
            if self._waiting >= MAX_WAITING:
                del self._known[_mark(text)]
                why = f"{MAX_WAITING} wait for review already; decide on them and import again"
                return ImportOutcome(text, "left for later", why)
            self._waiting += 1
            if not self.dry_run:
                self.memories.save(made.key, made.data, origin, exclusive=True, group=self._group)
            return ImportOutcome(text, WAITS, why, made.key)
        if not self.dry_run:
            self.memories.save(
                made.key, made.data, origin, exclusive=True, group=self._group, queues=False
            )
            keep_time(self.memories, made.key, int(one.at * 1_000_000_000))
        return ImportOutcome(text, KEPT if trusted else UNVERIFIED, "", made.key)


def _of(text: str, error: ReverieError) -> ImportOutcome:
    if isinstance(error, SecretFound):
        return ImportOutcome("", "left out", f"it holds a secret: {error.what}")
    if isinstance(error, ForgottenTextRefused):
        return ImportOutcome("", "left out", "it holds words that were forgotten")
    return ImportOutcome(text, "left out", error.what)


def _mark(text: str) -> bytes:
    """Equal for texts that say the same but for case and blanks."""
    return blake2b(" ".join(text.casefold().split()).encode(), digest_size=16).digest()
