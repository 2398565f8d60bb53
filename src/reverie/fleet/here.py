"""A home as the fleet knows it: its id, and the processes that are at work in it.

A host's name says neither. It changes with a network or a container, and two homes on one host
share it: a job bound to a name could wait for a host that is called otherwise by now, or be worked
where its memory is not. So a home has an id of its own, made once and kept in it; and a process
that works holds a lock in it, which ends with the process however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import socket
from collections.abc import Generator
from pathlib import Path
from uuid import uuid4

from reverie.errors import NotFound, StoreError
from reverie.store.files import Folder
from reverie.store.folders import make_folder
from reverie.store.lock import PATIENCE, FileLock, process_start
from reverie.store.plain import open_plain

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
            return _checked(home, folder.read(ID, _MAX_ID))
        name = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname())[:_MAX_NAME].strip("-")
        made = f"{name or 'home'}-{uuid4().hex[:12]}"
        folder.write(ID, f"{made}\n".encode())
        return made


def _checked(home: Path, data: bytes) -> str:
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
