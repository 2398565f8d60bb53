"""Team memory as every door uses it: whether it is on, with whom, and a sync when one is asked for.

It is on where the flag is, a server's address and a token are set by the user, and the repository
has a name. A git remote needs no token: `teamUrl` is `git` for the project's own, or `git+` before
an address. What is missing is said in one sentence. Only trusted settings name a server.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from reverie.errors import NotAvailable
from reverie.memory.prompt import both_modes
from reverie.settings import Settings
from reverie.store.memories import Memories, history_folder
from reverie.team import folder
from reverie.team.client import TeamClient
from reverie.team.git import GitRemote
from reverie.team.repository import remote_of, repository_of
from reverie.team.round import Shared, SyncReport, sync
from reverie.team.sync import SyncMode, plan
from reverie.team.values import RemoteState
from reverie.tools.programs import find_program
from reverie.upkeep.place import ProjectPlace

TOKEN = "REVERIE_TEAM_TOKEN"


@dataclass(frozen=True, slots=True)
class TeamStatus:
    """Where both sides stand, without changing either."""

    url: str
    repo: str
    to_pull: tuple[str, ...]
    to_push: tuple[str, ...]
    conflicts: tuple[str, ...]
    returning: tuple[str, ...]
    """Deleted here; a pull brings them back."""
    blocked: dict[str, str]

    def value(self) -> dict[str, object]:
        return {
            "url": self.url,
            "repo": self.repo,
            "to_pull": list(self.to_pull),
            "to_push": list(self.to_push),
            "conflicts": list(self.conflicts),
            "returning": list(self.returning),
            "blocked": self.blocked,
        }


def connect(place: ProjectPlace) -> Shared:
    """The other side of this project's team; `NotAvailable` says what is missing."""
    settings = place.loaded().settings
    if why := missing(place, settings):
        raise NotAvailable(f"Team memory is off: {why[0]}", where=str(place.root), do=why[1])
    repo = settings.team_repository or repository_of(place.root)
    url = settings.team_url or ""
    if not is_git(url):
        return TeamClient(url, place.environ[TOKEN], repo)
    program = find_program("git", place.environ.get("PATH"), [place.root])
    if not program:
        raise NotAvailable("Team memory through git needs git", do="Install git")
    remote = remote_of(place.root) if url == "git" else url.removeprefix("git+")
    folder = history_folder(place.home, place.root, place.environ).parent / "team-git"
    return GitRemote(remote, repo, folder, program=program, environ=place.environ)


def is_git(url: str) -> bool:
    return url == "git" or url.startswith("git+")


def missing(place: ProjectPlace, settings: Settings) -> tuple[str, str] | None:
    """What team memory lacks here, and what to do; None where it lacks nothing."""
    if not settings.team_url:
        return "no server is set", "Set teamUrl in your own settings, or REVERIE_TEAM_URL"
    if not is_git(settings.team_url) and not place.environ.get(TOKEN):
        return "there is no token", f"Set {TOKEN}"
    if not (settings.team_repository or repository_of(place.root)):
        return (
            "the project has no git remote that names owner/name",
            "Add one, or set teamRepository",
        )
    daily = bool(place.flags().get("daily_log"))
    if said := both_modes(daily_log=daily, team=True):
        return said, "Switch the daily log off: reverie flags set daily_log off"
    return None


def mode_of(settings: Settings) -> SyncMode:
    return SyncMode(merging=settings.team_merge, deletions=settings.team_deletions)


def sync_team(
    memories: Memories,
    place: ProjectPlace,
    *,
    now: Callable[[], float] = time.time,
    pull_only: bool = False,
) -> SyncReport:
    """Sync this project's shared memory once."""
    client = connect(place)
    mode = mode_of(place.loaded().settings)
    return sync(memories, client, now=now, mode=mode, pull_only=pull_only)


def team_status(memories: Memories, place: ProjectPlace) -> TeamStatus:
    """What a sync would do."""
    client = connect(place)
    agreed = folder.load(memories, client.url, client.repo)
    here = folder.read_files(memories)
    there = client.hashes(agreed.tag) or RemoteState(agreed.tag, agreed.known)
    found = plan(here.sums, agreed.known, there, mode_of(place.loaded().settings))
    return TeamStatus(
        client.url,
        client.repo,
        tuple(key for key in found.take if key not in found.returned),
        tuple(key for key in found.push if key not in here.blocked) + found.delete,
        found.lost + found.merge,
        found.returned,
        dict(here.blocked),
    )
