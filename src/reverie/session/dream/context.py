"""What a dream with a model of its own needs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from reverie.light import dataclass
from reverie.session.budget import Budget
from reverie.session.library import SessionLibrary
from reverie.settings.catalog import Settings
from reverie.store.consolidation_lock import ConsolidationLock
from reverie.store.memory_store import MemoryStore
from reverie.store.transaction import JobFence
from reverie.toolbox.file_access import UnconfinedFiles
from reverie.toolbox.guard import Guards
from reverie.toolbox.kit import standard
from reverie.toolbox.sandbox import Sandbox
from reverie.toolbox.tool import ToolContext
from reverie.world import Clock, FlagReader, Model, Say, Summariser, World


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
