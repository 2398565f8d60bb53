"""A dream over a memory that lies with the team's server, on a private copy of it.

The copy is a memory of its own under this host's home. It is made the server's state, dreamt, and
what the dream changed is put back under the tag that the state had. That tag is the fence: where
somebody wrote meanwhile the server refuses, nothing lands, and the next try begins from what
stands there then. A job that is done twice finds nothing to change the second time.

What may not be shared stays here; what a guard of ours refuses to take is left alone there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from anyio import to_thread

from reverie.errors import NotAvailable, ReverieError
from reverie.fleet.jobs import TEAM
from reverie.light import dataclass
from reverie.memory.trust import Trust
from reverie.memory.versions import Origin
from reverie.session.dream.branch import snapshot
from reverie.session.open_memory import open_memory
from reverie.session.team import connect
from reverie.store import home as places
from reverie.store import landing
from reverie.store.addresses import named_project
from reverie.store.memories import Memories
from reverie.store.plain import digest
from reverie.store.project import Project
from reverie.team.client import Stale
from reverie.team.folder import why_not
from reverie.team.round import Shared
from reverie.team.sync import batches
from reverie.team.values import BATCH_BYTES, Draft, RemoteState
from reverie.upkeep.tasks import Shown, TaskOutcome, TaskRun, dream_memory


@dataclass(frozen=True, slots=True)
class PulledCopy:
    """The server's state as the copy has it."""

    tag: str
    files: Mapping[str, bytes]


async def dream_shared(
    place: Project, run: TaskRun, repo: str, shown: Shown = lambda _: None
) -> TaskOutcome:
    """Pull, dream, and land under the tag that was pulled."""
    remote = _remote(place, repo)
    copy = _copy(place, remote)
    pulled = await to_thread.run_sync(_pull, copy, run, remote)
    if not pulled.files:
        return TaskOutcome("passed over", "no-memory", "nobody has written anything yet")
    alone = replace(run, fence=None)  # the server's tag is the fence
    outcome, dream = await dream_memory(copy, alone, due=False, shown=shown)
    if outcome.result != "done" or dream is None:
        return outcome
    try:
        count = await to_thread.run_sync(_push, copy, run, remote, pulled)
    except Stale as error:
        return replace(outcome, result="failed", code="changed-meanwhile", reason=str(error))
    return replace(outcome, files=count)


def _remote(place: Project, repo: str) -> Shared:
    settings = replace(place.settings, team_repository=repo)
    if not settings.team_url:
        raise NotAvailable("No team server is set", do="Set teamUrl in your own settings")
    return connect(replace(place, settings=settings))


def _copy(place: Project, remote: Shared) -> Project:
    """Where the private copy lies: a project that is a name."""
    root: Path = named_project(place.home, f"{TEAM}{remote.url}:{remote.repo}")
    places.claim_address(place.home, root, environ=place.environ)
    return place.sibling(root)


def _pull(copy: Project, run: TaskRun, remote: Shared) -> PulledCopy:
    """Make the copy what the server holds."""
    state: RemoteState = remote.state() or RemoteState("", {})
    with open_memory(copy, run.say) as memories:
        there = {key: text.encode() for key, text in state.contents.items()}
        good = {key: data for key, data in there.items() if _is_allowed(memories, key, data)}
        here = snapshot(memories.folder)
        changes: dict[str, bytes | None] = dict.fromkeys(key for key in here if key not in good)
        changes |= {key: data for key, data in good.items() if here.get(key) != data}
        origin = Origin("pull", Trust.UNTRUSTED, agent="team", tool="fleet")
        landing.land(memories, changes, here, origin)
        return PulledCopy(state.tag, good)


def _is_allowed(memories: Memories, key: str, data: bytes) -> bool:
    try:
        memories.allow(key, data)
    except ReverieError:
        return False
    return len(data) <= BATCH_BYTES


def _push(copy: Project, run: TaskRun, remote: Shared, pulled: PulledCopy) -> int:
    """Put what changed back: texts first, then what goes, where deletions travel."""
    with open_memory(copy, run.say) as memories:
        now = snapshot(memories.folder)
    drafts = [
        Draft(key, data.decode(), digest(data))
        for key, data in sorted(now.items())
        if data != pulled.files.get(key) and not why_not(key, data)
    ]
    if copy.settings.team_deletions:
        drafts += [Draft(key, None, "") for key in sorted(pulled.files) if key not in now]
    tag = pulled.tag
    for batch in batches(drafts):
        tag = remote.put(batch, tag)
    return len(drafts)
