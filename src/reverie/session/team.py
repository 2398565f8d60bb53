"""Team memory as a session uses it; push on change.

Team memory as every door uses it: whether it is on, with whom, and a sync when one is asked for.

It is on where the flag is, a server's address and a token are set by the user, and the repository
has a name. A git remote needs no token: `teamUrl` is `git` for the project's own, or `git+` before
an address. What is missing is said in one sentence. Only trusted settings name a server.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from reverie.errors import NotAvailable, ReverieError
from reverie.light import dataclass
from reverie.providers.connection import extra
from reverie.settings.catalog import Settings
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project
from reverie.team.client import Offline
from reverie.topics.entry import TEAM
from reverie.topics.prompt import both_modes
from reverie.world import Notice, Say

if TYPE_CHECKING:
    from reverie.team.protocol import CountedRefusal
    from reverie.team.sync import RemoteSide, SyncMode, SyncReport

TOKEN = "REVERIE_TEAM_TOKEN"
SECONDS = 30.0
START_SECONDS = 5.0
"""How long a session's start or end may wait for a server."""


@dataclass(frozen=True, slots=True)
class TeamStatus:
    """Where both sides stand, without changing either."""

    url: str
    repo: str
    folder: str
    to_pull: tuple[str, ...]
    to_push: tuple[str, ...]
    conflicts: tuple[str, ...]
    returning: tuple[str, ...]
    """Deleted here; a pull brings them back."""
    taken_back: tuple[str, ...]
    """A teammate's change that was undone here; it stays so until they change it again."""
    blocked: dict[str, str]

    def value(self) -> dict[str, object]:
        return {
            "url": self.url,
            "repo": self.repo,
            "folder": self.folder,
            "to_pull": list(self.to_pull),
            "to_push": list(self.to_push),
            "conflicts": list(self.conflicts),
            "returning": list(self.returning),
            "taken_back": list(self.taken_back),
            "blocked": self.blocked,
        }


DIFFERS = {
    "conflict": "changed on both sides",
    "pull": "a sync takes it",
    "push": "a sync sends it",
    "returning": "deleted here; a sync brings it back",
    "taken back": "taken back here, until a teammate changes it again",
    "blocked": "not shared",
}
"""In words, what a sync does about a file in which both sides differ."""


@dataclass(frozen=True, slots=True)
class TeamChange:
    """A file in which both sides differ, with both texts; None where one has none."""

    key: str
    what: str  # one of `DIFFERS`
    author: str
    here: str | None
    there: str | None
    why: str = ""

    def value(self) -> dict[str, object]:
        told = {"key": self.key, "what": self.what, "author": self.author, "why": self.why}
        return {**told, "here": self.here, "there": self.there}


def is_on(project: Project) -> bool:
    """Whether sessions share memory: the flag is on, and no daily log is kept."""
    return project.flags.on("team_memory") and not project.flags.on("daily_log")


def connect(project: Project, *, seconds: float = SECONDS) -> RemoteSide:
    """The other side of this project's team; `NotAvailable` says what is missing."""
    from reverie.team.folder import remote_of, repository_of

    settings = project.settings
    if why := missing(project):
        raise NotAvailable(f"Team memory is off: {why[0]}", where=str(project.root), do=why[1])
    repo = settings.team_repository or repository_of(project.root)
    url = settings.team_url or ""
    if not is_git(url):
        from reverie.team.client import TeamClient

        return TeamClient(url, project.environ[TOKEN], repo, seconds=seconds)
    from reverie.team.git_remote import GitRemote
    from reverie.toolbox.shell import find_program

    program = find_program("git", project.environ.get("PATH"), [project.root])
    if not program:
        raise NotAvailable("Team memory through git needs git", do="Install git")
    remote = remote_of(project.root) if url == "git" else url.removeprefix("git+")
    folder = project.sessions_folder / "team-git"
    return GitRemote(remote, repo, folder, program=program, environ=project.environ)


def is_git(url: str) -> bool:
    return url == "git" or url.startswith("git+")


def missing(project: Project) -> tuple[str, str] | None:
    """What team memory lacks here, and what to do; None where it lacks nothing."""
    from reverie.team.folder import repository_of

    settings = project.settings
    if not settings.team_url:
        return "no server is set", "Set teamUrl in your own settings, or REVERIE_TEAM_URL"
    if not is_git(settings.team_url) and not project.environ.get(TOKEN):
        return "there is no token", f"Set {TOKEN}"
    if not (settings.team_repository or repository_of(project.root)):
        return (
            "the project has no git remote that names owner/name",
            "Add one, or set teamRepository",
        )
    if said := both_modes(daily_log=project.flags.on("daily_log"), team=True):
        return said, "Switch the daily log off: reverie flags set daily_log off"
    return None


def mode_of(settings: Settings) -> SyncMode:
    from reverie.team.sync import SyncMode

    return SyncMode(merging=settings.team_merge, deletions=settings.team_deletions)


def sync_team(
    memories: MemoryStore,
    project: Project,
    *,
    now: Callable[[], float] = time.time,
    pull_only: bool = False,
    seconds: float = SECONDS,
) -> SyncReport:
    """Sync this project's shared memory once."""
    from reverie.team.sync import sync_memory

    other = connect(project, seconds=seconds)
    return sync_memory(
        memories, other, now=now, mode=mode_of(project.settings), pull_only=pull_only
    )


def team_status(memories: MemoryStore, project: Project) -> TeamStatus:
    """What a sync would do."""
    from reverie.team.sync import compare

    other = connect(project)
    both = compare(memories, other, mode_of(project.settings))
    found, blocked = both.found, both.here.blocked
    apart = {*found.returned, *found.lost}
    return TeamStatus(
        other.url,
        other.repo,
        str(memories.root / TEAM),
        tuple(key for key in found.take if key not in apart),
        (*(key for key in found.push if key not in blocked), *found.delete),
        (*found.lost, *found.merge),
        tuple(found.returned),
        tuple(both.quiet),
        dict(blocked),
    )


def team_changes(memories: MemoryStore, project: Project) -> list[TeamChange]:
    """What a sync would take, send or leave, with both texts; nothing is changed."""
    from reverie.team.sync import compare

    other = connect(project)
    both = compare(memories, other, mode_of(project.settings))
    found, here = both.found, both.here
    kinds = {
        **dict.fromkeys(found.push, "push"),
        **dict.fromkeys(found.delete, "push"),
        **dict.fromkeys(here.blocked, "blocked"),
        **dict.fromkeys(found.take, "pull"),
        **dict.fromkeys(found.remove, "pull"),
        **dict.fromkeys(found.returned, "returning"),
        **dict.fromkeys((*found.lost, *found.merge), "conflict"),
        **dict.fromkeys(both.quiet, "taken back"),
    }
    there = (other.state() or both.there) if kinds else both.there

    def text(key: str) -> str | None:
        data = here.data.get(key)
        return None if data is None else data.decode("utf-8", "replace")

    return [
        TeamChange(
            key,
            what,
            there.authors.get(key, ""),
            text(key),
            there.contents.get(key),
            here.blocked.get(key, ""),
        )
        for key, what in sorted(kinds.items())
    ]


def refused_by_server(project: Project, most: int) -> list[CountedRefusal]:
    """What the team's server refused, as far as our token may know it."""
    from reverie.team.client import TeamClient

    other = connect(project)
    if not isinstance(other, TeamClient):
        raise NotAvailable(
            "A git remote keeps no list of what it refused",
            where=other.url,
            do="Ask whoever runs the git server",
        )
    return other.refused(most)


# As long as a session lives


async def pull_at_start(memories: MemoryStore | None, project: Project, say: Say) -> None:
    """Take what teammates wrote before a session's head is made; a server that is away, or
    anything else that is wrong, is said and costs a few seconds at most."""
    if memories is None or not is_on(project):
        return
    pull = partial(sync_team, memories, project, pull_only=True, seconds=START_SECONDS)
    try:
        done = await anyio.to_thread.run_sync(pull)
    except ReverieError as error:
        say(Notice("team", f"what teammates wrote could not be taken: {error}", "warning"))
        return
    if done.pulled:
        say(Notice("team", f"taken from the team: {', '.join(done.pulled[:10])}"))


@asynccontextmanager
async def shared_while_open(
    memories: MemoryStore | None, project: Project, say: Say
) -> AsyncGenerator[None]:
    """What changes below `team/` while the block runs is pushed when it has come to rest, and
    what is left once more at the end."""
    if memories is None or not is_on(project):
        yield
        return
    if why := missing(project):
        say(Notice("team", f"team memory is off: {why[0]}. {why[1]}", "warning"))
        yield
        return
    stop = anyio.Event()
    told: set[str] = set()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_watch, memories, project, say, stop, told)
            try:
                yield
            finally:
                stop.set()
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await _push_rest(memories, project, say, told)
    except BaseExceptionGroup as many:  # the watcher never raises: it is what the block raised
        raise many.exceptions[0] from None


async def _watch(
    memories: MemoryStore, project: Project, say: Say, stop: anyio.Event, told: set[str]
) -> None:
    async def push() -> SyncReport:
        return await anyio.to_thread.run_sync(partial(sync_team, memories, project))

    try:
        memories.folder.make_folder(TEAM)
        await keep_pushing(watch_changes(memories.root / TEAM, stop), push, say, told=told)
    except ReverieError as error:  # sharing fails alone: the session goes on
        say(Notice("team", f"shared memory is pushed only at the end: {error}", "warning"))


async def _push_rest(memories: MemoryStore, project: Project, say: Say, told: set[str]) -> None:
    push = partial(sync_team, memories, project, seconds=START_SECONDS)
    try:
        tell_blocked(await anyio.to_thread.run_sync(push), say, told)
    except ReverieError as error:
        say(Notice("team", f"shared memory waits for the next session: {error}", "warning"))


# --- Pushing by itself: as long as a session lives, what changes below `team/` is shared.
#
# A push comes when nothing was written for two seconds, however many events there were; it
# compares the whole folder, so that an event that was lost costs nothing, and what a pull of ours
# wrote is seen to be there already. A server that is away is tried again, less and less often.
# What stays wrong until somebody changes something is said once and not tried again until a file
# changes.


QUIET_SECONDS = 2.0
LONGEST_SECONDS = 60.0
"""A folder that never comes to rest is pushed this often."""
FIRST_WAIT = 15.0
LONGEST_WAIT = 600.0

Push = Callable[[], Awaitable["SyncReport"]]
Sleep = Callable[[float], Awaitable[None]]


async def watch_changes(folder: Path, stop: anyio.Event) -> AsyncIterator[None]:
    """One item each time that a folder has come to rest after being written to."""
    with extra("team", "memories cannot be shared as you work"):
        from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]
    step = int(QUIET_SECONDS * 1000)
    longest = int(LONGEST_SECONDS * 1000)
    async for _ in awatch(
        folder,
        step=step,
        debounce=longest,
        stop_event=stop,
        watch_filter=_is_ours,
        ignore_permission_denied=True,
        recursive=True,
    ):
        yield


async def keep_pushing(
    events: AsyncIterator[None],
    push: Push,
    say: Say,
    *,
    told: set[str] | None = None,
    sleep: Sleep = anyio.sleep,
) -> None:
    """Push once for each event; after a failure that may pass, also without one. `told` are the
    files of which it was said that they are not shared: it is said once."""
    known: set[str] = set() if told is None else told
    async for _ in events:
        wait = FIRST_WAIT
        while True:
            try:
                report = await push()
            except Offline as error:
                if wait == FIRST_WAIT:
                    say(Notice("team", f"shared memory waits: {error}", "warning"))
                await sleep(max(wait, error.after))
                wait = min(wait * 2, LONGEST_WAIT)
                continue
            except ReverieError as error:
                say(Notice("team", f"shared memory is not synced: {error}", "warning"))
                break
            _tell(report, say)
            tell_blocked(report, say, known)
            break


def _tell(report: SyncReport, say: Say) -> None:
    done = [
        f"{len(keys)} {name}"
        for name, keys in (("pulled", report.pulled), ("pushed", report.pushed))
        if keys
    ]
    if report.conflicts:
        done.append(f"{len(report.conflicts)} changed on both sides: {report.conflicts[0]}")
    if done:
        say(Notice("team", f"shared memory: {', '.join(done)}", "info"))


def tell_blocked(report: SyncReport, say: Say, told: set[str]) -> None:
    """Say of which files why they are not shared, unless that was told."""
    for key, why in sorted(report.blocked.items()):
        if key not in told and not key.startswith("."):  # a disk's own files; a status has them
            told.add(key)
            say(Notice("team", f"{key} is not shared, since {why}", "warning"))


def _is_ours(change: object, path: str) -> bool:
    """Not our own temporary files and locks."""
    del change
    return not Path(path).name.startswith(".")
