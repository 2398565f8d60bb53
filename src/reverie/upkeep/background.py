"""What background work needs where no session is open: learning from a past one, and a dream.

Each is handed a project, its open memory and a model. A model that bills is counted in the day's
budget; one that is free needs none. Nothing is read or written until the work begins.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

from reverie.clock import SystemClock
from reverie.session.budget import Budget
from reverie.session.compaction.summariser import NamedSummariser, summariser_for
from reverie.session.context import index_files, memory_section
from reverie.session.dream.run import Dreamer
from reverie.session.extraction.landing import WordsSource
from reverie.session.extraction.run import ExtractionContext, guards_at
from reverie.session.fork import worker_world
from reverie.session.options import Head
from reverie.settings import Settings
from reverie.store.fences import Fence
from reverie.store.files import Folder
from reverie.store.memories import Memories
from reverie.tools import standard
from reverie.transcript.records import HeadSet
from reverie.upkeep.place import ProjectPlace
from reverie.world import Model, Say

SYSTEM = "You look back at a session that is over, and keep what is worth remembering."


def daily_budget(place: ProjectPlace, settings: Settings, model: Model) -> Budget | None:
    """What may be spent today; None where nothing is billed."""
    if model.capabilities.free:
        return None
    return Budget(Folder(place.home), settings, SystemClock())


def learning_context(
    place: ProjectPlace,
    settings: Settings,
    memories: Memories,
    model: Model,
    say: Say,
    *,
    dry: bool = False,
    fence: Fence | None = None,
) -> ExtractionContext:
    """What an extraction over a past session stands on."""
    world = worker_world(model, settings, place.flags(), SystemClock(), say=say)
    guards = guards_at(place.root, place.library_to_write().path, memories, world)
    return ExtractionContext(memories, world, guards, WordsSource(""), dry, fence)


def learning_head(context: ExtractionContext) -> HeadSet:
    """The head of the conversation in which it is done."""
    memory, world = context.memories.folder, context.world
    about = memory_section(world.settings, memory)
    index = "\n\n".join(one.text for one in index_files(memory))
    system = f"{SYSTEM}\n\n{about}"
    options = {"max_tokens": 8_000}
    return Head(world.model_name, system, standard().definitions(), index, options).record("learn")


@contextmanager
def dreaming(
    place: ProjectPlace,
    settings: Settings,
    memories: Memories,
    model: Model,
    say: Say,
    *,
    fence: Fence | None = None,
    counted: bool = True,
) -> Generator[Dreamer]:
    """Everything a dream needs. Its cost is `counted` in the day's budget of this home, unless
    whoever hands in the model counts it elsewhere."""
    clock = SystemClock()
    library = place.library_to_write()
    world = worker_world(model, settings, place.flags(), clock, say=say)
    guards = guards_at(place.root, library.path, memories, world)
    budget = daily_budget(place, settings, model) if counted else None
    try:
        yield Dreamer(
            memories,
            library,
            place.root,
            model,
            guards,
            clock,
            settings,
            place.flags(),
            budget,
            summariser=summariser_for(settings, place.environ, world.window, clock),
            fence=fence,
        )
    finally:
        library.close()
        if budget is not None:
            budget.close()


@asynccontextmanager
async def closing(dreamer: Dreamer) -> AsyncGenerator[None]:
    """A model for summaries that a dream had made is given back behind it."""
    try:
        yield
    finally:
        if isinstance(dreamer.summariser, NamedSummariser):
            await dreamer.summariser.aclose()
