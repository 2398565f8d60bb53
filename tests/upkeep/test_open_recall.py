"""Recall that stays open for many questions reads the history on, and never whole again."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

import reverie
from reverie.session import OpenMemory, recall_rows
from reverie.store import Project
from reverie.topics import decode

pytestmark = pytest.mark.spec("18.web")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home"))
    (tmp_path / "shop").mkdir()
    return Project.at(tmp_path / "shop")


@pytest.fixture
def recall(place: Project) -> Iterator[OpenMemory]:
    with OpenMemory.of(place) as made:
        yield made


def ask(recall: OpenMemory, text: str, now: float, k: int) -> list[dict[str, object]]:
    recall.keep_index()
    return recall_rows(recall, text, now, k, recall.project.root, beside=True)


def add(place: Project, *texts: str) -> None:
    with reverie.Memory(place.root, home=place.home) as memory:
        for text in texts:
            memory.add(text)


def decoded(work: Callable[[], object]) -> int:
    """How many lines of a history some work reads."""
    count = 0

    def called(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code is decode.__code__

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_a_second_question_reads_what_was_added_to_the_history_alone(
    place: Project, recall: OpenMemory
) -> None:
    add(place, *(f"Service {n} listens on port {8000 + n}" for n in range(9)))
    now = time.time()
    first = decoded(lambda: ask(recall, "the port of service 7", now, 10))
    assert first >= 9
    assert decoded(lambda: ask(recall, "the port of service 9", now, 10)) == 0
    add(place, "The zebra gateway listens on port 9911")
    recall.refresh_index()
    rows: list[dict[str, object]] = []
    assert 0 < decoded(lambda: rows.extend(ask(recall, "zebra gateway", now, 10))) < first
    assert rows[0]["saved"]


def test_a_history_that_another_took_the_place_of_is_read_anew(
    place: Project, recall: OpenMemory
) -> None:
    add(place, "The zebra gateway listens on port 9911")
    assert ask(recall, "zebra gateway", time.time(), 1)[0]["saved"]
    shutil.rmtree(place.history_folder)
    assert ask(recall, "zebra gateway", time.time(), 1)  # no history: what the file's time tells
    add(place, "The lion gateway listens on port 9912")
    recall.refresh_index()
    read = decoded(lambda: ask(recall, "lion gateway", time.time(), 1))
    assert read > 0
