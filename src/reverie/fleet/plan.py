"""Jobs as values, and the plan of a home.

Jobs as values: what is to be done to which memory, and by which key it is the same job.

A key names a job for good: planned twice it is one job, landed once. It is made of ids and hashes,
never of words from a memory. Nothing here reads a clock or a disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import socket
from collections.abc import Callable, Generator, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias
from uuid import uuid4

from reverie.errors import InvalidInput, NotFound, ReverieError, StoreError
from reverie.light import dataclass
from reverie.memory.tasks import dream_gates, memory_roots
from reverie.session.library import SessionLibrary
from reverie.session.open_memory import find_memory
from reverie.store.files import Folder
from reverie.store.fs import make_folder, open_plain
from reverie.store.lock import PATIENCE, FileLock, process_start
from reverie.store.project import Project
from reverie.store.transaction import JobFence
from reverie.team.protocol import check_repo
from reverie.world import say_nothing

KINDS = ("learn", "hygiene", "dream", "replay", "sync")
"""What there is to do, in the order in which a memory gets it."""
JobState: TypeAlias = Literal["queued", "running", "done", "skipped", "dead", "cancelled"]
OPEN: tuple[JobState, ...] = ("queued", "running")
TENANT = "default"
TEAM = "team:"
"""How the root of a memory begins that lies with the team's server; the repository follows."""
_MARK = 16
_MAX_TENANT = 60


@dataclass(frozen=True, slots=True)
class Job:
    """One job. `host` is the id of the one home that reaches the memory, or nobody's in particular;
    `due` says that the memory's own gates decide once more when it begins."""

    tenant: str
    key: str
    kind: str
    root: str
    night: str = ""
    about: str = ""  # a session's id
    size: int = 0  # bytes of its transcript when it was planned
    host: str = ""
    due: bool = True

    @property
    def memory(self) -> str:
        """One writer at a time has this."""
        return memory_id(self.root, self.host)


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job that somebody has taken up, and the fence of this try."""

    job: Job
    fence: JobFence
    tries: int
    requests: int = 0  # of earlier tries
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is: counts alone."""

    phase: str = ""
    rounds: int = 0
    files: int = 0
    requests: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a try ended. A job that goes back to the queue begins after `wait` seconds; one that
    only had to wait has not used up a try."""

    state: JobState
    code: str = ""
    wait: float = 0.0
    counted: bool = True
    progress: Progress = Progress()
    ident: str = ""


def memory_id(root: str, host: str = "") -> str:
    """A memory by its root; the same path for another home is another memory."""
    text = f"{host}\0{root}" if host else root
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:_MARK]


def nightly(kind: str, root: str, night: str, *, tenant: str, host: str, due: bool) -> Job:
    """A job that is done once a night."""
    key = f"{kind}:{memory_id(root, host)}:{night}"
    return Job(tenant, key, kind, root, night, host=host, due=due)


def of_session(
    kind: str, root: str, session: str, digest: str, size: int, *, tenant: str, host: str
) -> Job:
    """A job over a transcript as it is now: one that grows is another job."""
    key = f"{kind}:{session}:{digest[:_MARK]}"
    return Job(tenant, key, kind, root, about=session, size=size, host=host)


def checked_tenant(name: str) -> str:
    """A tenant's name; it becomes the name of a queue."""
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    if not plain.isalnum() or not plain.isascii() or len(name) > _MAX_TENANT:
        raise InvalidInput(
            "This is no name for a tenant", where=name[:80], do="Use letters, digits, - _ ."
        )
    return name


def checked_kinds(names: tuple[str, ...]) -> tuple[str, ...]:
    """Kinds that there are, each once, in their order."""
    for name in names:
        if name not in KINDS:
            raise InvalidInput("There is no such job", where=name, do=f"Use {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in names)


# --- A home as the fleet knows it: its id, and the processes that are at work in it.
#
# A host's name says neither. It changes with a network or a container, and two homes on one host
# share it: a job bound to a name could wait for a host that is called otherwise by now, or be
# worked where its memory is not. So a home has an id of its own, made once and kept in it; and a
# process that works holds a lock in it, which ends with the process however that ends.


LOCK = "fleet/fleet.lock"
ID = "fleet/id"
WORKERS = "fleet/workers"
_IS_ID = re.compile(r"[A-Za-z0-9._-]{1,80}")
_MAX_ID = 1_000
_MAX_NAME = 40


@contextlib.contextmanager
def fleet_locked(home: Path) -> Generator[None]:
    """The fleet's folder of a home, for this process alone; says which disk has no locks."""
    make_folder(home / "fleet")
    with FileLock(home / LOCK).hold(PATIENCE):
        yield


# Its id


def home_id(home: Path) -> str:
    """What jobs are bound to that are for this home alone. It begins with the name that the host
    had when it was made, for people; nobody reads it from there."""
    with fleet_locked(home), Folder(home) as folder:
        with contextlib.suppress(NotFound):
            return _check_home_id(home, folder.read(ID, _MAX_ID))
        name = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname())[:_MAX_NAME].strip("-")
        made = f"{name or 'home'}-{uuid4().hex[:12]}"
        folder.write(ID, f"{made}\n".encode())
        return made


def _check_home_id(home: Path, data: bytes) -> str:
    text = data.decode("utf-8", "replace").strip()
    if not _IS_ID.fullmatch(text):
        raise StoreError(
            "This is not the id of a home",
            where=str(home / ID),
            do="Put the old one back, or remove the file: the next plan makes a new one",
        )
    return text


# Who works in it


def worker_name() -> str:
    """This process, told apart from a later one of the same number."""
    pid = os.getpid()
    return f"{socket.gethostname()}:{pid}:{process_start(pid) or 0}"


@contextlib.contextmanager
def at_work(home: Path) -> Generator[str]:
    """The name of a worker of this home, and for as long as it works the sign that it does."""
    make_folder(home / WORKERS)
    _sweep(home)
    name = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:12]}"
    lock = FileLock(_sign(home, name))
    lock.acquire(PATIENCE)
    try:
        yield name
    finally:
        lock.path.unlink(missing_ok=True)
        lock.release()


def lives(home: Path, worker: str) -> bool:
    """Whether a worker of this home still runs, by the lock that it holds."""
    try:
        fd = open_plain(_sign(home, worker))
    except OSError:
        return False
    if fd is None:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # beside others who ask
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _sign(home: Path, worker: str) -> Path:
    token = worker.rpartition(":")[2]
    return home / WORKERS / f"{token if token.isalnum() else 'nobody'}.lock"


def _sweep(home: Path) -> None:
    """Take away the signs of workers that were killed."""
    for path in (home / WORKERS).glob("*.lock"):
        with contextlib.suppress(StoreError), FileLock(path):  # held by who is at work
            path.unlink(missing_ok=True)


# --- The plan of a home: which memories get which jobs, as values.
#
# Making one changes nothing: `--dry-run` shows it, the ledger takes it. A dream is planned where
# the memory's own gates stand open, or for all; a session is learned from where its transcript was
# written to lately. What is passed over is told with its reason.


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
class FleetPlan:
    """Jobs in the order in which they should begin, and what is passed over with its reason."""

    jobs: tuple[Job, ...] = ()
    passed: tuple[tuple[str, str], ...] = ()
    looked: int = 0  # at so many memories, of projects and in them of users and agents

    def value(self) -> dict[str, Any]:
        return {
            "jobs": [{"key": j.key, "kind": j.kind, "root": j.root} for j in self.jobs],
            "passed_over": [{"root": root, "reason": why} for root, why in self.passed],
        }


def plan_jobs(place: Project, asked: PlanRequest, now: Callable[[], float]) -> FleetPlan:
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
    return FleetPlan(tuple(jobs), tuple(passed), len(roots))


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
    library = SessionLibrary.find(place)
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
