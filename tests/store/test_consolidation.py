"""A dream's lock: one holder, never stuck for longer than the rules allow."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reverie.errors import Held, PathRefused, StoreError
from reverie.store import GATE, LOCK_NAME, ConsolidationLock, LockLost, process_start
from reverie.testing import ManualClock
from tests.conftest import Scale

HOUR = 3600.0
STALE = 60 * 60.0
pytestmark = pytest.mark.spec("9")


def hand() -> ManualClock:
    return ManualClock(1_800_000_000.0)


def lock(folder: Path, clock: ManualClock, pid: int | None = None) -> ConsolidationLock:
    return ConsolidationLock(folder, now=clock.now, stale_seconds=STALE, pid=pid)


def dead_pid() -> int:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    return gone.pid


@pytest.fixture
def sleeper() -> object:
    """Another process that lives."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_no_file_means_never(tmp_path: Path) -> None:
    found = lock(tmp_path, hand())
    assert found.last() is None
    assert found.look().state == "never"
    assert list(tmp_path.iterdir()) == []


def test_the_body_is_the_pid_and_the_time_before(tmp_path: Path) -> None:
    clock = hand()
    first = lock(tmp_path, clock)
    with first.landing(first.take()):
        pass
    clock.time += 30 * HOUR
    taken = first.take()
    lines = (tmp_path / LOCK_NAME).read_text().splitlines()
    assert lines[0] == str(os.getpid())
    assert float(lines[1]) == clock.time - 30 * HOUR == taken.earlier
    assert (tmp_path / LOCK_NAME).stat().st_mtime == clock.time


def test_success_keeps_the_time_and_empties_the_body(tmp_path: Path) -> None:
    clock = hand()
    one = lock(tmp_path, clock)
    taken = one.take()
    clock.time += 600
    with one.landing(taken):
        pass
    assert (tmp_path / LOCK_NAME).read_bytes() == b""
    assert one.last() == taken.at
    assert one.look().state == "free"


def test_failure_puts_the_time_back_and_that_of_the_first_leaves_never(tmp_path: Path) -> None:
    clock = hand()
    one = lock(tmp_path, clock)
    assert one.give_back(one.take())
    assert one.last() is None
    with one.landing(one.take()):
        pass
    before = one.last()
    clock.time += 30 * HOUR
    assert one.give_back(one.take())
    assert one.last() == before
    assert (tmp_path / LOCK_NAME).read_bytes() == b""


def test_an_error_while_landing_keeps_the_lock(tmp_path: Path) -> None:
    one = lock(tmp_path, hand())
    taken = one.take()
    with pytest.raises(ValueError, match="full"), one.landing(taken):
        raise ValueError("full")
    assert one.look().state == "held"
    assert one.give_back(taken)


def test_a_live_young_holder_is_left_alone(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    clock = hand()
    lock(tmp_path, clock, sleeper.pid).take()
    clock.time += STALE - 1
    with pytest.raises(Held, match=str(sleeper.pid)):
        lock(tmp_path, clock).take()


def test_an_old_holder_loses_it_and_may_not_land(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    """37: stopped past its age limit, then awake again."""
    clock = hand()
    old = lock(tmp_path, clock, sleeper.pid)
    taken = old.take()
    clock.time += STALE
    mine = lock(tmp_path, clock).take()
    assert mine.earlier is None  # the lost one was no consolidation
    with pytest.raises(LockLost), old.landing(taken):
        pytest.fail("it landed")
    assert not old.give_back(taken)
    assert old.look().token == mine.token


def test_the_last_one_is_the_one_before_where_a_holder_died(tmp_path: Path) -> None:
    """A dream cut off does not shut the gate for a day."""
    clock = hand()
    one = lock(tmp_path, clock)
    lock(tmp_path, clock, dead_pid()).take()
    assert one.last() is None
    with one.landing(one.take()):
        pass
    last = clock.time
    clock.time += 30 * HOUR
    lock(tmp_path, clock, dead_pid()).take()
    assert one.last() == last
    assert (tmp_path / LOCK_NAME).stat().st_mtime == clock.time
    assert (one.look().state, one.look().last) == ("dead", last)
    assert one.take().earlier == last


def test_while_it_is_held_the_last_one_is_now(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    clock = hand()
    lock(tmp_path, clock, sleeper.pid).take()
    assert lock(tmp_path, clock).last() == clock.time
    clock.time += STALE
    assert lock(tmp_path, clock).last() is None


def test_a_pid_used_again_is_another_process(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    """34: the start tells two processes of one number apart; without it the age does."""
    clock = hand()
    lock(tmp_path, clock, sleeper.pid).take()
    path = tmp_path / LOCK_NAME
    lines = path.read_text().split("\n")
    assert int(lines[2]) == process_start(sleeper.pid)
    lines[2] = str(int(lines[2]) - 1)
    path.write_text("\n".join(lines))
    os.utime(path, (clock.time, clock.time))
    assert lock(tmp_path, clock).look().state == "dead"
    path.write_text(f"{sleeper.pid}\n")
    os.utime(path, (clock.time, clock.time))
    assert lock(tmp_path, clock).look().state == "held"
    clock.time += STALE
    assert lock(tmp_path, clock).look().state == "stale"
    path.write_text(f"{os.getpid()}\n\n{10**12 - 1}\ntoken\n")  # a start of twelve digits
    os.utime(path, (clock.time, clock.time))
    assert lock(tmp_path, clock).look().state == "dead"


@pytest.mark.parametrize(
    "body", [b"0\n", b"-1\n", b"1" + b"0" * 20, b"abc", b"", b"7" * 2**20, b"\xff\x00\n12\n", None]
)
def test_a_body_that_names_nobody_alive_holds_nothing(tmp_path: Path, body: bytes | None) -> None:
    """35; and a program that leaves its number alone (None) has consolidated."""
    clock = hand()
    (tmp_path / LOCK_NAME).write_bytes(f"{dead_pid()}\n".encode() if body is None else body)
    os.utime(tmp_path / LOCK_NAME, (clock.time - HOUR, clock.time - HOUR))
    one = lock(tmp_path, clock)
    assert body is None or one.look().state == "free"
    assert one.last() == clock.time - HOUR
    assert one.take().earlier == clock.time - HOUR


@pytest.mark.parametrize("kind", ["folder", "link", "dangling", "pipe"])
def test_a_lock_that_is_no_plain_file_is_refused(tmp_path: Path, kind: str) -> None:
    """35: and what a link points to is not touched."""
    path, other = tmp_path / LOCK_NAME, tmp_path / "other"
    other.write_text("mine")
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(other if kind == "link" else tmp_path / "nowhere")
    with pytest.raises(PathRefused, match=r"link, a folder or a special file"):
        lock(tmp_path, hand()).take()
    assert other.read_text() == "mine"


def test_a_time_in_the_future_counts_as_now_once(tmp_path: Path) -> None:
    """36: a year ahead shuts the gate for the usual wait, not for a year."""
    clock = hand()
    (tmp_path / LOCK_NAME).write_bytes(b"")
    year = clock.time + 365 * 24 * HOUR
    os.utime(tmp_path / LOCK_NAME, (year, year))
    one = lock(tmp_path, clock)
    assert one.last() == clock.time
    taken = one.take()
    assert taken.earlier == clock.time
    assert one.give_back(taken)
    assert (tmp_path / LOCK_NAME).stat().st_mtime == clock.time


def test_a_clock_that_steps_back_does_not_lock_out(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    """36."""
    clock = hand()
    lock(tmp_path, clock, sleeper.pid).take()
    clock.time -= 10 * HOUR
    other = lock(tmp_path, clock)
    with pytest.raises(Held):
        other.take()
    clock.time += STALE
    assert other.take().token


def test_epoch_zero_is_a_time_like_any_other(tmp_path: Path) -> None:
    clock = hand()
    (tmp_path / LOCK_NAME).write_bytes(b"")
    os.utime(tmp_path / LOCK_NAME, (0, 0))
    assert lock(tmp_path, clock).last() == 0.0


def test_what_a_death_left_beside_it_is_swept(tmp_path: Path) -> None:
    (tmp_path / f"{LOCK_NAME}.0badc0de.tmp").write_text("12")
    one = lock(tmp_path, hand())
    one.take()
    assert sorted(p.name for p in tmp_path.iterdir()) == [LOCK_NAME, GATE]


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="could not be taken"):
        lock(tmp_path / "nowhere", hand()).take()


# --- the race


RACER = """
import json, os, random, sys, time, uuid
from pathlib import Path
from reverie.errors import Held
from reverie.store.consolidation_lock import ConsolidationLock, LockLost
folder, log, seed, until = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
rng = random.Random(seed)
skew = 0.0
def now():
    return time.time() + skew
fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def told(what, token):
    row = json.dumps([time.monotonic(), os.getpid(), what, token]) + "\\n"
    os.write(fd, row.encode())
def named():  # asked for under the OS lock, so that the log has the order of the takes
    token = uuid.uuid4().hex
    told("took", token)
    return token
while time.time() < until:
    skew = rng.choice([0.0, 0.0, 0.0, -3.0, 3.0, -86400.0, 86400.0])
    lock = ConsolidationLock(folder, now=now, stale_seconds=1.0, new_token=named)
    try:
        taken = lock.take()
    except Held:
        time.sleep(rng.random() * 0.02)
        continue
    time.sleep(rng.random() * 0.03)
    if rng.random() < 0.25:
        os.kill(os.getpid(), 9)
    if rng.random() < 0.1:
        time.sleep(1.2)
    try:
        if rng.random() < 0.3:
            lock.give_back(taken)
            continue
        with lock.landing(taken):
            told("lands", taken.token)
            time.sleep(rng.random() * 0.005)
            told("landed", taken.token)
    except LockLost:
        told("lost", taken.token)
"""


def test_many_processes_race_and_never_two_land(tmp_path: Path, scale: Scale) -> None:
    """33: random kills, clock jumps and holders that oversleep; read from the fencing log."""
    racers, seconds = scale.pick(16, 64), scale.pick(6.0, 60.0)
    folder, log = tmp_path / "memory", tmp_path / "fence.jsonl"
    folder.mkdir()
    rng, until = random.Random(7 + scale.seed), time.time() + seconds
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        command = [sys.executable, "-c", RACER, str(folder), str(log)]
        running.append(subprocess.Popen([*command, str(rng.random())[2:10], str(until)]))

    for _ in range(racers):
        start()
    deaths = 0
    while time.time() < until:
        time.sleep(0.05)
        for process in [p for p in running if p.poll() is not None]:
            deaths += process.returncode == -signal.SIGKILL
            running.remove(process)
            if time.time() < until - 1:
                start()
    for process in running:
        process.wait(timeout=30)
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    check_fence(rows)
    assert deaths
    assert any(row[2] == "landed" for row in rows)
    one = ConsolidationLock(folder, now=time.time, stale_seconds=1.0)
    time.sleep(1.1)
    assert one.give_back(one.take())


def check_fence(rows: list[tuple[float, int, str, str]]) -> None:
    """Landings do not overlap, each is of the newest take, and the log is never silent for
    longer than a stale lock may hold it."""
    newest, landing = "", ""
    last = rows[0][0]
    for at, _, what, token in sorted(rows):
        assert at - last < 5.0, "nobody could take the lock"
        last = at
        if what == "took":
            assert not landing, "taken while another lands"
            newest = token
        elif what == "lands":
            assert not landing, "two land at once"
            assert token == newest, "one that lost the lock lands"
            landing = token
        elif what == "landed":
            assert token == landing
            landing = ""
