"""A folder's files: whole or not at all, compared before they land, found again."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reverie.errors import Held, NotFound, PathRefused, StoreError, WriteFailed
from reverie.store import (
    Changed,
    Folder,
    FolderListing,
    SkippedEntry,
    digest,
    is_being_written,
    lock,
    open_plain,
    read_plain,
    take,
    temporary,
)
from tests.conftest import Scale
from tests.faults import Plan, open_files, run_with_error, shim

pytestmark = pytest.mark.spec("1.store")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path / "root") as folder:
        yield folder


def names(folder: Folder) -> set[str]:
    return {path.name for path in folder.root.rglob("*") if path.is_file()}


def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def leave_temp(folder: Folder, pid: int, age: float = 0.0, below: str = "") -> Path:
    path = folder.root / below / f".reverie-{pid}-{os.urandom(8).hex()}.tmp"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"half")
    when = time.time() - age
    os.utime(path, (when, when))
    return path


def test_what_is_written_is_read_back(folder: Folder) -> None:
    for data in (b"", b"x", b"\0\xff\n" * 1000, os.urandom(3 << 20)):
        folder.write("a/b.md", data)
        assert folder.read("a/b.md") == data
        assert folder.stat("a/b.md").size == len(data)
        assert folder.digest("a/b.md") == digest(data) == hashlib.sha256(data).hexdigest()
    assert names(folder) == {"b.md"}


@pytest.mark.parametrize(
    ("durable", "order"),
    [
        (True, ["os.write", "os.fsync", "os.rename", "os.fsync"]),  # the file, then the folder
        (False, ["os.write", "os.rename"]),
    ],
)
def test_a_durable_write_is_synced_and_no_other(
    folder: Folder, durable: bool, order: list[str]
) -> None:
    calls = run_with_error(lambda: folder.write("a.md", b"x", durable=durable), 0, None).calls
    assert [one for one in calls if one in ("os.write", "os.fsync", "os.rename")] == order


def test_read_stops_at_the_limit(folder: Folder) -> None:
    folder.write("a.md", b"0123456789" * 300_000)
    assert folder.read("a.md", 0) == b""
    assert folder.read("a.md", 15) == b"012345678901234"
    assert len(folder.read("a.md", 2_500_000)) == 2_500_000
    assert len(folder.read("a.md", 9_000_000)) == 3_000_000


def test_what_is_missing_is_not_found(folder: Folder) -> None:
    for attempt in (folder.read, folder.stat, folder.digest, folder.remove, folder.list):
        for key in ("none.md", "no/such.md"):
            with pytest.raises(NotFound) as caught:
                attempt(key)
            assert str(folder.root / key) in str(caught.value)
    with pytest.raises(NotFound):
        folder.sub("none", create=False)
    with pytest.raises(NotFound):
        Folder(folder.root / "none", create=False)
    assert not folder.exists("none.md")
    assert not folder.exists("no/such.md")


def test_exists_is_about_regular_files(folder: Folder) -> None:
    folder.write("a/b.md", b"")
    assert folder.exists("a/b.md")
    assert not folder.exists("a")
    with pytest.raises(PathRefused):
        folder.exists("../a")


def test_remove_takes_one_file(folder: Folder) -> None:
    folder.write("a/b.md", b"x")
    with pytest.raises(PathRefused, match="folder"):
        folder.remove("a")
    folder.remove("a/b.md")
    assert not folder.exists("a/b.md")
    folder.write("a/c.md", b"x")
    folder.remove("a/c.md", durable=False)
    assert folder.list() == ()


def test_a_write_lands_only_on_what_was_read(folder: Folder) -> None:
    folder.write("a.md", b"one")
    folder.write("a.md", b"two", expect=digest(b"one"))
    with pytest.raises(Changed, match="changed since"):
        folder.write("a.md", b"three", expect=digest(b"one"))
    assert folder.read("a.md") == b"two"
    with pytest.raises(Changed, match="gone"):
        folder.write("b.md", b"x", expect=digest(b""))
    assert names(folder) == {"a.md"}


def test_a_removal_lands_only_on_what_was_read(folder: Folder) -> None:
    folder.write("a.md", b"one")
    with pytest.raises(Changed):
        folder.remove("a.md", expect=digest(b"other"))
    assert folder.read("a.md") == b"one"
    folder.remove("a.md", expect=digest(b"one"))
    with pytest.raises(Changed, match="gone"):
        folder.remove("a.md", expect=digest(b"one"))


def test_an_exclusive_write_never_replaces(folder: Folder) -> None:
    folder.write("a.md", b"one", exclusive=True)
    with pytest.raises(Changed, match="already there"):
        folder.write("a.md", b"two", exclusive=True)
    assert folder.read("a.md") == b"one"
    assert names(folder) == {"a.md"}


def test_many_writers_that_compare_lose_no_update(folder: Folder, scale: Scale) -> None:
    folder.write("count.md", b"0", durable=False)
    rounds, workers = scale.pick(50, 1_000), 4

    def add() -> None:
        # A folder of its own: the lock is on the directory, not on the object.
        with Folder(folder.root) as mine:
            for _ in range(rounds):
                while True:
                    before = mine.read("count.md")
                    after = str(int(before) + 1).encode()
                    try:
                        mine.write("count.md", after, durable=False, expect=digest(before))
                        break
                    except Changed:
                        continue

    threads = [threading.Thread(target=add) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert folder.read("count.md") == str(rounds * workers).encode()


def test_sub_is_a_folder_of_its_own(folder: Folder) -> None:
    with folder.sub("a/b") as below:
        below.write("c.md", b"x")
        assert below.root == folder.root / "a" / "b"
        assert below.path("c.md") == folder.path("a/b/c.md")
        with pytest.raises(PathRefused):
            below.read("../c.md")
    assert folder.list() == ("a/b/c.md",)
    assert folder.list("a") == ("a/b/c.md",)
    with folder.sub("a", create=False) as again:
        assert again.read("b/c.md") == b"x"


def test_a_survey_says_what_it_left_alone(folder: Folder, tmp_path: Path) -> None:
    folder.write("b.md", b"")
    folder.write("a/deep.md", b"")
    (folder.root / "link.md").symlink_to(tmp_path)
    (folder.root / "a" / "linked").symlink_to(tmp_path, target_is_directory=True)
    (folder.root / "what?.md").write_bytes(b"")
    (folder.root / os.fsdecode(b"\xff.md")).write_bytes(b"")
    os.mkfifo(folder.root / "pipe.md")
    leave_temp(folder, os.getpid())
    survey = folder.survey()
    assert survey.keys == ("a/deep.md", "b.md")
    assert {one.key for one in survey.refused} == {
        "link.md",
        "a/linked",
        "what?.md",
        "'\\udcff.md'",
        "pipe.md",
    }
    assert SkippedEntry("pipe.md", "It is a special file") in survey.refused


def test_a_survey_goes_no_deeper_than_keys_do(folder: Folder) -> None:
    deep = folder.root.joinpath(*"abcdefghij")
    deep.mkdir(parents=True)
    (deep / "x.md").write_bytes(b"")
    survey = folder.survey()
    assert survey.keys == ()
    assert [one.key for one in survey.refused] == ["a/b/c/d/e/f/g/h/i"]


def test_sweep_takes_only_what_a_dead_writer_left(folder: Folder) -> None:
    gone = dead_pid()
    old = [leave_temp(folder, gone, 3600), leave_temp(folder, gone, 3600, "below")]
    old.append(leave_temp(folder, os.getppid(), 2 * 86_400))
    old.append(leave_temp(folder, os.getpid(), 3600))
    old.append(leave_temp(folder, gone, -3600))
    fresh = leave_temp(folder, gone)
    living = leave_temp(folder, os.getppid(), 3600)
    folder.write("a.md", b"")
    near = folder.root / ".reverie-x.tmp"
    near.write_bytes(b"")
    assert folder.sweep() == len(old)
    assert [path for path in old if path.exists()] == []
    assert fresh.exists()
    assert living.exists()
    assert near.exists()
    assert folder.exists("a.md")
    assert folder.sweep(older_than=0) == 1
    assert folder.sweep(older_than=0, now=time.time() + 2 * 86_400) == 1


def test_sweep_leaves_the_file_being_written(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    real = os.rename

    def rename(*args: Any, **kwargs: Any) -> None:
        seen.append(folder.sweep(older_than=0))
        real(*args, **kwargs)

    monkeypatch.setattr(os, "rename", rename)
    folder.write("a.md", b"x")
    assert seen == [0]
    assert folder.read("a.md") == b"x"


def test_a_directory_kept_locked_is_not_waited_for_without_end(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "PATIENCE", 0.02)
    fd = os.open(folder.root, os.O_RDONLY)
    try:
        assert take(fd)
        with pytest.raises(Held) as caught:
            folder.write("a.md", b"x")
        if sys.platform == "linux":
            assert str(os.getpid()) in str(caught.value)
    finally:
        os.close(fd)
    assert names(folder) == set()
    folder.write("a.md", b"x")


@pytest.mark.parametrize(
    ("call", "at", "code"),
    [
        ("fcntl.flock", 1, errno.ENOLCK),
        ("fcntl.flock", 1, errno.EBADF),
        ("os.fsync", 2, errno.EINVAL),  # the second of the two: the folder's
        ("os.fsync", 2, errno.ENOTSUP),
    ],
)
def test_a_file_system_without_locks_or_syncs_of_folders_still_takes_writes(
    folder: Folder, call: str, at: int, code: int
) -> None:
    sticky = call == "fcntl.flock"
    write = lambda: folder.write("a.md", b"x")  # noqa: E731
    outcome = run_with_error(write, at, code, sticky=sticky, calls=[call])
    assert (outcome.hit, outcome.error) == (call, None)
    assert folder.read("a.md") == b"x"


def test_a_failed_folder_sync_tells_that_the_file_is_in_place(folder: Folder) -> None:
    folder.write("a.md", b"old")
    outcome = run_with_error(lambda: folder.write("a.md", b"new"), 2, errno.EIO, calls=["os.fsync"])
    assert isinstance(outcome.error, WriteFailed)
    assert "in place" in str(outcome.error)
    assert folder.read("a.md") == b"new"


def test_an_error_names_path_and_cause(folder: Folder) -> None:
    outcome = run_with_error(
        lambda: folder.write("a.md", b"x"), 1, errno.ENOSPC, calls=["os.write"]
    )
    assert isinstance(outcome.error, WriteFailed)
    text = str(outcome.error)
    assert str(folder.root / "a.md") in text
    assert "No space left on device (ENOSPC)" in text
    assert isinstance(outcome.error.__cause__, OSError)


def test_a_system_that_takes_no_bytes_is_an_error(folder: Folder) -> None:
    real = os.write
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: 0)
        with pytest.raises(WriteFailed):
            folder.write("a.md", b"x")
    assert os.write is real
    assert names(folder) == set()


def test_a_file_of_the_wrong_size_is_not_put_in_place(folder: Folder) -> None:
    folder.write("a.md", b"old")
    with pytest.MonkeyPatch.context() as patch:
        # The system says that it took all, and did not.
        real = os.write
        patch.setattr(os, "write", lambda fd, data: (real(fd, data[:1]), len(data))[1])
        with pytest.raises(WriteFailed):
            folder.write("a.md", b"new")
    assert folder.read("a.md") == b"old"
    assert names(folder) == {"a.md"}


def test_a_root_that_is_gone_is_not_made_again(folder: Folder, tmp_path: Path) -> None:
    folder.root.rmdir()
    with pytest.raises(WriteFailed):
        folder.write("a/b.md", b"x")
    with pytest.raises(WriteFailed):
        folder.write("b.md", b"x")
    with pytest.raises(NotFound):
        folder.read("b.md")
    assert list(tmp_path.iterdir()) == []


def test_a_root_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "file" / "below", "nul\0"):
        with pytest.raises(StoreError):
            Folder(path)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = open_files()
    with Folder(tmp_path / "root") as folder:
        folder.write("a/b/c.md", b"x")
        folder.read("a/b/c.md")
        folder.survey()
        folder.sweep()
        folder.append_line("log", b"x")
        for key in ("a", "a/b/c.md/d", "none"):
            with pytest.raises(StoreError if key != "none" else NotFound):
                folder.read(key)
        os.close(folder.open_append("j"))
        folder.flush("a/b/c.md")
        folder.remove("j")
    assert open_files() == before


def test_what_is_no_plain_file_leaves_no_descriptor_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    before = open_files()
    assert read_plain(tmp_path / "pipe", 10) is None
    assert open_files() == before


def test_a_temporary_file_is_busy_only_while_it_is_written(tmp_path: Path) -> None:
    at = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with temporary(at) as name:
            assert is_being_written(name)
        assert not is_being_written(name)
        with pytest.raises(KeyError), temporary(at) as name:
            raise KeyError
        assert not is_being_written(name)
    finally:
        os.close(at)


def test_a_dropped_folder_closes_itself(tmp_path: Path) -> None:
    before = open_files()
    Folder(tmp_path / "root").write("a.md", b"")
    assert open_files() == before


def test_is_current_sees_a_replaced_file(folder: Folder) -> None:
    folder.write("a.md", b"one")
    fd = folder.open_read("a.md")
    try:
        assert folder.is_current("a.md", fd)
        folder.write("a.md", b"two")
        assert not folder.is_current("a.md", fd)
        folder.remove("a.md")
        assert not folder.is_current("a.md", fd)
    finally:
        os.close(fd)


def test_a_line_is_added_on_a_line_of_its_own(folder: Folder) -> None:
    folder.append_line("log", b"one")
    (folder.root / "log").write_bytes(b"one\ntor")
    folder.append_line("log", b"two")
    assert folder.read("log") == b"one\ntor\ntwo\n"
    with pytest.raises(ValueError, match="newline"):
        folder.append_line("log", b"a\nb")


def test_a_line_waits_for_whoever_has_the_file(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "PATIENCE", 0.02)
    fd = folder.open_append("log")
    try:
        assert take(fd)
        with pytest.raises(Held):
            folder.append_line("log", b"x")
    finally:
        os.close(fd)
    folder.append_line("log", b"x")


def test_flush_syncs_every_folder_up_to_the_root(folder: Folder) -> None:
    folder.write("a/b/c.md", b"")
    calls = run_with_error(lambda: folder.flush("a/b/c.md"), 0, None).calls
    assert calls.count("os.fsync") == 3


def test_new_folders_are_synced_into_the_one_above(folder: Folder) -> None:
    calls = run_with_error(lambda: folder.sub("a/b").close(), 0, None).calls
    made = [call for call in calls if call in ("os.mkdir", "os.fsync")]
    assert made == ["os.mkdir", "os.fsync"] * 2


def test_a_folder_whose_name_the_disk_did_not_take_goes_again(folder: Folder) -> None:
    outcome = run_with_error(lambda: folder.sub("a/b"), 2, errno.EIO, calls=["os.fsync"])
    assert isinstance(outcome.error, WriteFailed)
    assert list(folder.root.rglob("*")) == [folder.root / "a"]


def test_a_folder_is_synced_before_the_first_thing_is_put_into_it(folder: Folder) -> None:
    """Who made it may have died before that; where something is in it, it was done."""
    (folder.root / "a").mkdir()

    def syncs() -> int:
        work = lambda: folder.write("a/b.md", b"x", durable=False)  # noqa: E731
        return run_with_error(work, 0, None).calls.count("os.fsync")

    assert (syncs(), syncs()) == (1, 0)


def test_the_shim_puts_everything_back() -> None:
    before = {name: getattr(os, name) for name in ("open", "write", "fsync", "rename")}
    with shim(Plan(0)):
        assert os.open is not before["open"]
    assert {name: getattr(os, name) for name in before} == before


def test_a_folder_removed_during_a_survey_is_passed_over(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("a/x.md", b"")
    folder.write("b.md", b"")
    real = os.scandir

    def scandir(at: int) -> Any:
        found = real(at)
        if (folder.root / "a").exists():
            (folder.root / "a" / "x.md").unlink()
            (folder.root / "a").rmdir()
        return found

    monkeypatch.setattr(os, "scandir", scandir)
    assert folder.survey() == FolderListing(("b.md",), ())


@pytest.mark.parametrize(
    ("code", "outcome"), [(0, "full"), (errno.ENOTSUP, "plain"), (errno.EIO, "error")]
)
def test_where_a_full_sync_is_known_it_is_asked_for_first(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, code: int, outcome: str
) -> None:
    """As on macOS, where a plain fsync stops at the drive's own memory."""
    asked: list[int] = []

    def control(fd: int, command: int) -> int:
        asked.append(command)
        if code:
            raise OSError(code, os.strerror(code))
        return 0

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)
    ran = run_with_error(lambda: folder.write("a.md", b"x"), 0, None)
    assert asked == [51]
    assert isinstance(ran.error, WriteFailed) == (outcome == "error")
    # The folder's own sync is always a plain one.
    assert ran.calls.count("os.fsync") == {"full": 1, "plain": 2, "error": 0}[outcome]


def test_no_descriptor_stays_open_where_a_root_is_made_gone_or_unreadable(tmp_path: Path) -> None:
    before = open_files()
    folder = Folder(tmp_path / "a" / "b" / "c")
    assert open_files() == before
    (tmp_path / "a" / "b" / "c").rename(tmp_path / "gone")
    (tmp_path / "a" / "b" / "c").mkdir()
    with pytest.raises(NotFound):
        folder.read("x.md")
    assert open_files() == before
    (tmp_path / "plain").write_bytes(b"x")
    outcome = run_with_error(
        lambda: open_plain(tmp_path / "plain"), 1, errno.EIO, calls=["os.fstat"]
    )
    assert isinstance(outcome.error, OSError)
    assert open_files() == before
