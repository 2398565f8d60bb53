"""The plan of a home: which memories get which jobs, as values.

Making one changes nothing: `--dry-run` shows it, the ledger takes it. A dream is planned where the
memory's own gates stand open, or for all; a session is learned from where its transcript was
written to lately. What is passed over is told with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from reverie.errors import NotFound, ReverieError
from reverie.fleet.jobs import TEAM, Job, nightly, of_session
from reverie.light import dataclass
from reverie.session.library import Library
from reverie.session.open_memory import find_memory
from reverie.store.project import Project
from reverie.team.values import check_repo
from reverie.upkeep.tasks import dream_gates, memory_roots
from reverie.world import say_nothing

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What is asked of a plan."""

    kinds: tuple[str, ...] = ("dream",)
    night: str = ""
    tenant: str = "default"
    host: str = ""  # the one home that reaches these folders, by its id; nobody's if shared
    due: bool = True
    days: float = 7.0  # how far back sessions are looked at
    roots: tuple[Path, ...] = ()  # these alone
    team: tuple[str, ...] = ()  # repositories whose memory lies with the team's server


@dataclass(frozen=True, slots=True)
class Plan:
    """Jobs in the order in which they should begin, and what is passed over with its reason."""

    jobs: tuple[Job, ...] = ()
    passed: tuple[tuple[str, str], ...] = ()
    looked: int = 0  # at so many memories, of projects and in them of users and agents

    def value(self) -> dict[str, Any]:
        return {
            "jobs": [{"key": j.key, "kind": j.kind, "root": j.root} for j in self.jobs],
            "passed_over": [{"root": root, "reason": why} for root, why in self.passed],
        }


def plan(place: Project, asked: PlanRequest, now: Callable[[], float]) -> Plan:
    """What there is to do under a home."""
    jobs: list[Job] = []
    passed: list[tuple[str, str]] = []
    for repo in asked.team:
        root = f"{TEAM}{check_repo(repo)}"
        jobs.append(nightly("dream", root, asked.night, tenant=asked.tenant, host="", due=False))
    roots = asked.roots or (() if asked.team else tuple(memory_roots(place)))
    for root in roots:
        here = place.sibling(root)
        try:
            for kind in asked.kinds:
                jobs += _jobs(here, kind, asked, now())
                if kind == "dream" and not (jobs and jobs[-1].root == str(root)):
                    passed.append((str(root), _shut(here, now()) or "it has no memory"))
        except ReverieError as error:
            passed.append((str(root), str(error)))
    return Plan(tuple(jobs), tuple(passed), len(roots))


def _jobs(place: Project, kind: str, asked: PlanRequest, now: float) -> Iterator[Job]:
    root, about = str(place.root), {"tenant": asked.tenant, "host": asked.host}
    if not place.memory_folder.is_dir():
        return
    if kind in ("learn", "replay"):
        for session, digest, size in _sessions(place, now - asked.days * DAY):
            yield of_session(kind, root, session, digest, size, **about)
        return
    if kind == "dream" and asked.due and _shut(place, now):
        return
    yield nightly(kind, root, asked.night, due=asked.due, **about)


def _sessions(place: Project, since: float) -> Iterator[tuple[str, str, int]]:
    """The sessions that were written to since: id, SHA-256 and size of the transcript."""
    library = Library.find(place)
    if library is None:
        return
    for one in library.sessions():
        if one.mtime < since:
            continue
        try:
            data = library.folder.read(f"{one.id}.jsonl")
        except NotFound:
            continue
        if data:
            yield one.id, sha256(data).hexdigest(), len(data)


def _shut(place: Project, now: float) -> str:
    """Why no dream is due, or nothing; as a session would ask."""
    with find_memory(place, say_nothing) as memories:
        return dream_gates(place, memories, now) if memories else "it has no memory"
