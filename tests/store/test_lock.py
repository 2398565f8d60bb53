"""Locks: one holder, named, and gone when its process is."""

from __future__ import annotations

import fcntl
import io
import json
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from reverie.errors import Held, PathRefused, StoreError
from reverie.store import FileLock, Holder, alive, holder_of, lock, process_start, take
from tests.conftest import Scale
from tests.faults import open_files, run_with_error

pytestmark = pytest.mark.spec("1.store")

HOLD = """
import sys
from pathlib import Path
from reverie.store.lock import FileLock
lock = FileLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "the.lock"


def hold(path: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.communicate()


def test_one_holder_at_a_time(path: Path) -> None:
    first, second = FileLock(path), FileLock(path)
    with first:
        assert first.held
        with pytest.raises(Held):
            second.acquire()
        with pytest.raises(Held):
            first.acquire()
    assert not first.held
    with second:
        assert second.held
    second.release()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_who_holds_it_is_named(path: Path) -> None:
    child = hold(path)
    try:
        with pytest.raises(Held) as caught:
            FileLock(path).acquire()
        assert f"process {child.pid} on " in str(caught.value)
        assert str(path) in str(caught.value)
        holder = FileLock(path).holder()
        assert holder is not None
        assert holder.pid == child.pid
        assert holder.since is not None
        assert holder.started == process_start(child.pid)
    finally:
        end(child)


def test_a_holder_is_named_where_a_longer_name_was_left_behind(path: Path) -> None:
    path.write_text(json.dumps({"pid": 1, "host": "h" * 500}))  # by one that died
    with FileLock(path) as lock:
        holder = lock.holder()
    assert holder is not None
    assert holder.pid == os.getpid()


def test_the_lock_ends_with_its_process(path: Path) -> None:
    child = hold(path)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    assert FileLock(path).holder() is None
    with FileLock(path) as mine:
        holder = mine.holder()
        assert holder is not None
        assert holder.pid == os.getpid()
    assert FileLock(path).holder() is None


def test_waiting_ends_when_the_lock_is_free(path: Path) -> None:
    first, second = FileLock(path), FileLock(path)
    first.acquire()
    waiting = threading.Event()

    def wait() -> None:
        waiting.set()
        second.acquire(timeout=60)

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    with pytest.raises(Held):
        FileLock(path).acquire(timeout=0.01)
    first.release()
    thread.join()
    assert second.held
    second.release()


def test_a_lock_file_taken_away_under_a_waiter_is_not_enough(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = FileLock(path), FileLock(path)
    first.acquire()
    real = fcntl.flock

    def late(fd: int, how: int) -> None:
        # The holder removes its file and lets go between our open and our lock.
        monkeypatch.undo()
        path.unlink()
        first.release()
        real(fd, how)

    monkeypatch.setattr(fcntl, "flock", late)
    second.acquire()
    assert os.path.samestat(path.stat(), os.fstat(second._fd or 0))
    second.release()


BODIES = [
    b"",
    b"abc",
    b"{}",
    b"[]",
    b"null",
    b"[" * 4000,
    b"\xff\xfe",
    b"x" * (1 << 20),
    *(
        json.dumps({"pid": pid, "host": "h", "since": 1, "started": 1}).encode()
        for pid in (0, -1, 10**20, "1", True, None, 1.5)
    ),
    json.dumps({"pid": 1, "host": 7}).encode(),
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_row_35_a_garbage_body_names_nobody_and_locks_nothing(path: Path, body: bytes) -> None:
    path.write_bytes(body)
    assert FileLock(path).holder() is None
    with FileLock(path) as mine:
        path.write_bytes(body)
        with pytest.raises(Held, match="another process"):
            FileLock(path).acquire()
        assert mine.held


def test_row_35_no_signal_is_ever_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    for pid in (0, -1, -(2**40), 10**20):
        assert not alive(pid)
    assert sent == []
    assert alive(4)
    assert sent == [(4, 0)]


@pytest.mark.parametrize("body", [{"since": 10**400}, {"since": "x"}, {"started": 1.5}, {}])
def test_what_a_body_says_wrongly_is_left_out(path: Path, body: dict[str, object]) -> None:
    path.write_text(json.dumps({"pid": 7, "host": "else\u202ewhere", **body}))
    assert FileLock(path).holder() == Holder(7, "elsewhere")


def test_a_time_beyond_all_clocks_is_still_words() -> None:
    assert str(Holder(1, "h", float("nan"))) == "process 1 on h since an unknown time"
    assert str(Holder(1, "h", 1e11)).startswith("process 1 on h since ")
    assert str(Holder(1, "h")) == "process 1 on h"


def test_row_35_a_lock_that_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    os.link(tmp_path / "file", tmp_path / "hard")
    os.mkfifo(tmp_path / "pipe")
    before = open_files()
    for name in ("folder", "link", "dangling", "hard", "pipe"):
        with pytest.raises(PathRefused):
            FileLock(tmp_path / name).acquire()
        assert FileLock(tmp_path / name).holder() is None
    with pytest.raises(StoreError):
        FileLock(tmp_path / "none" / "x.lock").acquire()
    assert open_files() == before
    assert (tmp_path / "file").read_bytes() == b"mine"
    assert not (tmp_path / "none").exists()


def test_a_full_disk_takes_the_name_not_the_lock(path: Path) -> None:
    mine = FileLock(path)
    outcome = run_with_error(mine.acquire, 1, 28, calls=["os.pwrite"])
    assert outcome.hit == "os.pwrite"
    assert outcome.error is None
    with pytest.raises(Held, match="another process"):
        FileLock(path).acquire()
    mine.release()


def test_a_forked_child_does_not_free_its_parents_lock(path: Path) -> None:
    with FileLock(path) as mine:
        child = os.fork()
        if child == 0:
            mine.release()
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(Held):
            FileLock(path).acquire()


@pytest.mark.skipif(sys.platform != "linux", reason="needs linux: /proc/locks")
def test_the_kernel_tells_who_holds_a_file(path: Path) -> None:
    child = hold(path)
    try:
        fd = os.open(path, os.O_RDONLY)
        holder = holder_of(fd)
        os.close(fd)
        assert holder is not None
        assert (holder.pid, holder.started) == (child.pid, process_start(child.pid))
    finally:
        end(child)


def test_where_the_kernel_does_not_tell_nobody_is_named(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.open", _no_proc)
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        assert take(fd)
        assert holder_of(fd) is None
        assert process_start(os.getpid()) is None
    finally:
        os.close(fd)


def _no_proc(*_: object, **__: object) -> None:
    raise FileNotFoundError(2, "no /proc here")


def _race(path: Path, rounds: int, start, wins) -> None:
    """Take the lock over and over; count inside it with reads and writes that must not mix."""
    start.wait()
    counter = path.with_name("counter")
    for _ in range(rounds):
        with_lock = FileLock(path)
        with_lock.acquire(timeout=60)
        value = int(counter.read_text() or 0)
        counter.write_text(str(value + 1))
        with_lock.release()
    wins.put(rounds)


def test_a_process_that_runs_has_a_start_and_its_child_a_later_one() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        ours, its = process_start(os.getpid()), process_start(child.pid)
        assert ours is not None
        assert its is not None
        assert 0 < ours <= its
    finally:
        child.communicate(b"\n")


def test_row_33_eight_takers_at_once_never_hold_together(path: Path, scale: Scale) -> None:
    rounds, workers = scale.pick(50, 1_000), 8
    context = multiprocessing.get_context("spawn")
    path.with_name("counter").write_text("0")
    start, wins = context.Barrier(workers), context.Queue()
    children = [
        context.Process(target=_race, args=(path, rounds, start, wins)) for _ in range(workers)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * workers
    assert int(path.with_name("counter").read_text()) == rounds * workers


def test_a_process_of_another_user_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError(1, "not yours")

    monkeypatch.setattr(os, "kill", refuse)
    assert alive(1)


@pytest.mark.parametrize(
    ("rows", "pid"),
    [
        ("1: FLOCK  ADVISORY  WRITE 7 ff:ff:{inode} 0 EOF", 7),
        ("1: POSIX  ADVISORY  WRITE 7 ff:ff:{inode} 0 EOF", None),
        ("1: FLOCK  ADVISORY  WRITE 0 ff:ff:{inode} 0 EOF", None),
        ("1: FLOCK  ADVISORY  WRITE -1 ff:ff:{inode} 0 EOF", None),
        ("1: -> FLOCK  ADVISORY  WRITE 7 ff:ff:{inode} 0 EOF", None),
        ("1: FLOCK ADVISORY WRITE 7 f:f:{inode} 0\n2: FLOCK ADVISORY WRITE 8 e:e:{inode} 0", None),
        ("short\n\n", None),
    ],
)
def test_what_the_kernel_says_of_locks_is_read_with_care(
    path: Path, monkeypatch: pytest.MonkeyPatch, rows: str, pid: int | None
) -> None:
    path.write_bytes(b"")
    fd = os.open(path, os.O_RDONLY)
    text = rows.format(inode=os.fstat(fd).st_ino)

    def kernel(path: str, *_: object, **__: object) -> io.StringIO:
        if path != "/proc/locks":
            raise FileNotFoundError(2, path)
        return io.StringIO(text)

    monkeypatch.setattr("builtins.open", kernel)
    try:
        holder = holder_of(fd)
    finally:
        os.close(fd)
    assert (holder and holder.pid) == pid


def test_a_lock_that_is_free_names_nobody(path: Path) -> None:
    with FileLock(path):
        assert path.stat().st_size > 0
    assert path.read_bytes() == b""


def test_the_first_process_of_a_container_can_hold_a_lock() -> None:
    found = lock._process(1)  # pyright: ignore[reportPrivateUsage]
    assert found is not None
    assert found.pid == 1
    assert lock._process(0) is None  # pyright: ignore[reportPrivateUsage]
