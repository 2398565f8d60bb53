"""What a dream works with: its surroundings, and the copy of the memory with the verdict on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass as mutable
from dataclasses import field, replace
from pathlib import Path

from reverie.consolidation import branch as branches
from reverie.consolidation.changes import BranchVerdict, change_verdict
from reverie.consolidation.folder import CheckInput
from reverie.consolidation.reasons import RemovalReason, Tombstone
from reverie.light import dataclass
from reverie.secrets.scanner import remove_secrets
from reverie.session.budget import Budget
from reverie.session.dream import schedule
from reverie.session.dream.branch import Dream, DreamBranch, snapshot
from reverie.session.dream.results import doubted_rules
from reverie.session.library import SessionLibrary
from reverie.session.recall.project_index import TopicTimes, written_times
from reverie.settings.catalog import Settings
from reverie.store.consolidation_lock import ConsolidationLock
from reverie.store.memory_store import MemoryStore
from reverie.store.transaction import JobFence
from reverie.toolbox.file_access import UnconfinedFiles
from reverie.toolbox.guard import Guards
from reverie.toolbox.kit import standard
from reverie.toolbox.sandbox import Sandbox
from reverie.toolbox.tool import ToolContext
from reverie.topics.entry import TopicFile, decode_text, is_topic
from reverie.transcript.tasks import DoubtedRule, KnownMemory
from reverie.world import Clock, FlagReader, Model, Say, Summariser, World

HIDDEN = "{key}: this file was not shown, so it stays as it is"


@dataclass(frozen=True, slots=True)
class DreamContext:
    """Everything that a dream of one project needs."""

    memories: MemoryStore
    library: SessionLibrary
    root: Path
    model: Model
    guards: Guards
    clock: Clock
    settings: Settings
    flags: FlagReader
    budget: Budget | None = None
    say: Say = lambda _: None
    summariser: Summariser | None = None  # who writes summaries, where it is another model
    fence: JobFence | None = None  # where it is a job that may be tried again

    @property
    def home(self) -> Path:
        return self.memories.home

    @property
    def course_settings(self) -> Settings:
        """The settings for the agent: a dream compacts its own transcript. The embedded model
        reads all it did from the conversation, and takes one of any length: nothing of it may
        give way."""
        settings = replace(self.settings, context_policy="classic")
        if not self.model.capabilities.free:
            return settings
        return replace(settings, auto_compact_enabled=False)

    @property
    def lock(self) -> ConsolidationLock:
        return ConsolidationLock.of(self.memories.root, self.clock.now, self.settings)


def guards_at(root: Path, sessions: Path, memories: MemoryStore, world: World) -> Guards:
    """Guards for a project without an agent's toolbox."""
    home = memories.home
    context = ToolContext(
        root, root, UnconfinedFiles(root), world.clock, settings=world.settings, say=world.say
    )
    refused = (home, Path(os.path.expanduser("~")) / ".ssh")
    return Guards(standard(), lambda: context, (root, sessions), refused, Sandbox())


@mutable
class MemoryCopy:
    """A memory as it was when a dream began, beside the branch that the dream changes."""

    branch: DreamBranch
    memories: MemoryStore
    root: Path
    settings: Settings
    now: Callable[[], float]
    base: dict[str, bytes] = field(default_factory=dict[str, bytes])
    times: TopicTimes = field(default_factory=TopicTimes)
    rules: tuple[DoubtedRule, ...] = ()

    def begin(self) -> None:
        """Copy the memory."""
        folder = self.memories.folder
        with folder.locked():
            self.memories.look()
            self.base = snapshot(folder)
            stamps = {key: folder.stat(key).modified / 1e9 for key in self.base}
            self.times = written_times(self.memories, self.base, self.now())
            self.rules = doubted_rules(self.memories, self.root, self.base)
        self.branch.begin(self.base, stamps)

    def manifest(self) -> tuple[KnownMemory, ...]:
        """The files of the copy, with what is known of each."""
        found: list[KnownMemory] = []
        for key, at in sorted(self.times.files.items()):
            entry = TopicFile(key, self.base[key])
            about = (entry.type, entry.name, entry.description) if is_topic(key) else ("", "", "")
            found.append(KnownMemory(key, *about, at, self.times.lines.get(key, ())))
        return tuple(found)

    def texts(self) -> dict[str, str]:
        return {key: decode_text(data) for key, data in sorted(self.base.items())}

    def shown(self) -> dict[str, str]:
        """The files that stand in the instruction where nothing can be read later."""
        return schedule.newest_files(self.texts(), self.manifest())

    def prompt(self, transcripts: str, form: schedule.DreamForm) -> str:
        """What a dream is told."""
        today = schedule.day_of(self.now())
        texts = self.texts() if form == "tools" else self.shown()
        parts = (str(self.branch.work), transcripts, today, self.settings, self.manifest())
        return schedule.dream_prompt(*parts, texts, self.rules, form)

    def put(self, texts: Mapping[str, str], shown: Collection[str]) -> tuple[str, ...]:
        """Write files that were shown, and new ones; return what is wrong with the others."""
        hidden = {*self.base} - {*shown}
        faults = self.branch.put({key: text for key, text in texts.items() if key not in hidden})
        return (*faults, *(HIDDEN.format(key=key) for key in texts if key in hidden))

    def verdict(self, reasons: Sequence[RemovalReason]) -> BranchVerdict:
        """What of the work may be applied."""
        work = branches.without_emptied(self.branch.state("work"), self.base)
        given = CheckInput(
            self.base,
            now=self.now(),
            limits=self.memories.folder.limits,
            trust=self.memories.trust,
        )
        return change_verdict(given, work, reasons, [one.file for one in self.rules])

    def judged(
        self,
        dream: Dream,
        found: BranchVerdict,
        reasons: Sequence[RemovalReason],
        refused: Sequence[str],
    ) -> Dream:
        """What is known of a dream once its work was judged; nothing secret in it."""
        strangers = [f"{key}: this is no memory file" for key in self.branch.strangers()]
        left = (*strangers, *refused, *map(str, found.left))
        pairs = {(one.file, one.target) for one in reasons if one.target}
        return replace(
            dream,
            changed=branches.changed_keys(self.base, found.work),
            left_out=tuple(remove_secrets(one)[0] for one in left),
            drawn=tuple({"from": a, "to": b} for a, b in sorted(pairs) if a != b),
            tombstones=tuple(_grave(one) for one in found.tombstones),
        )


def _grave(one: Tombstone) -> dict[str, str]:
    """A fact that went, as it is kept; nothing secret with it."""
    found = {"file": one.file, "fact": one.fact, "why": one.why, "target": one.target, "by": one.by}
    return {name: remove_secrets(text)[0] for name, text in found.items() if text}
