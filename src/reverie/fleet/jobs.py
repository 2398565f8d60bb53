"""Jobs as values: what is to be done to which memory, and by which key it is the same job.

A key names a job for good: planned twice it is one job, landed once. It is made of ids and hashes,
never of words from a memory. Nothing here reads a clock or a disk.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Literal, TypeAlias

from reverie.errors import InvalidInput
from reverie.light import dataclass
from reverie.store.fences import Fence

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
class TakenJob:
    """A job that somebody has taken up, and the fence of this try."""

    job: Job
    fence: Fence
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
