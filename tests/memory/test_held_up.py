"""Whoever has to wait for the memory folder is told for whom, and waits no longer than it helps."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reverie.errors import Held, NotFound, StoreError
from reverie.store import memory_access
from tests.memory.folders import opened
from tests.memory.test_undo import AGENT, seen, topic
from tests.tally import counted

pytestmark = [pytest.mark.spec("1.held-up")]


@pytest.fixture
def child(tmp_path: Path) -> Iterator[int]:
    """A process that has the folder locked and does nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with opened(tmp_path) as memories, memories.folder.locked():
            os.write(writer, b"x")
            signal.pause()
    os.read(reader, 1)
    os.close(reader)
    os.close(writer)
    yield child
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_process_that_was_stopped_is_named_and_not_waited_for(
    tmp_path: Path, child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_access, "MOMENT", 0.05)
    os.kill(child, signal.SIGSTOP)
    os.waitpid(child, os.WUNTRACED)
    began = time.monotonic()
    with opened(tmp_path) as memories, pytest.raises(Held) as told:
        memories.save("a.md", topic("A", "words"), AGENT)
    assert time.monotonic() - began < 5
    assert f"process {child}" in told.value.what
    assert "was stopped" in told.value.what
    assert f"kill -CONT {child}" in told.value.do
    counted("stops", drawn=False)


def test_a_process_that_works_is_waited_for_and_named_at_last(
    tmp_path: Path, child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_access, "MOMENT", 0.02)
    monkeypatch.setattr(memory_access, "PATIENCE", 0.1)
    with opened(tmp_path) as memories, pytest.raises(Held, match="seconds and more") as told:
        memories.save("a.md", topic("A", "words"), AGENT)
    assert f"process {child}" in told.value.what
    assert "Wait until it is done" in told.value.do


def test_a_file_system_without_locks_is_named_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as memories:
        monkeypatch.setattr(fcntl, "flock", _no_locks)
        with pytest.raises(StoreError, match="has no locks"):
            memories.save("a.md", topic("A", "words"), AGENT)


def _no_locks(*_: object) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def test_removing_what_is_not_there_is_not_found_and_leaves_no_trace(tmp_path: Path) -> None:
    with opened(tmp_path) as memories:
        memories.save("a.md", topic("A", "words"), AGENT)
        before = seen(tmp_path), (memories.beside.root / "log.jsonl").read_bytes()
        for key in ("b.md", "team/b.md"):
            with pytest.raises(NotFound, match="no such memory"):
                memories.remove(key, AGENT)
        assert (seen(tmp_path), (memories.beside.root / "log.jsonl").read_bytes()) == before
