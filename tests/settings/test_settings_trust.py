"""Trust by record: a local settings file is the user's where home has its digest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reverie.settings import load, record_key, settings_file, was_declined
from reverie.store import decide, forget
from tests.settings.test_settings_load import Place, said

pytestmark = pytest.mark.spec("15.trust")

MOVED = {"autoMemoryDirectory": "/srv/some/where", "recallFiles": 2}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def is_trusted(place: Place) -> bool:
    return settings_file("local", place.path("local"), place.base / "home").origin.trusted


def test_a_local_file_that_nobody_approved_counts_as_committed(place: Place) -> None:
    path = place.write("local", MOVED)
    loaded = place.load()
    assert loaded.settings.auto_memory_directory is None
    assert loaded.settings.recall_files == 2
    assert loaded.origins["recall_files"].trusted is False
    assert f"{path}: not trusted: nobody has approved it" in said(loaded)
    assert f"{path}: autoMemoryDirectory: ignored" in said(loaded)


def test_an_approved_one_counts_for_everything_until_it_changes(place: Place) -> None:
    path = place.write("local", MOVED)
    place.trust()
    loaded = place.load()
    assert loaded.settings.auto_memory_directory == "/srv/some/where"
    assert loaded.problems == ()
    path.write_bytes(path.read_bytes() + b"\n")
    loaded = place.load()
    assert loaded.settings.auto_memory_directory is None
    assert "it has changed since it was approved" in said(loaded)


def test_trust_is_of_a_file_at_its_place(place: Place) -> None:
    """The same bytes in another project are another file."""
    path = place.write("local", MOVED)
    place.trust()
    other = place.base / "other" / ".reverie"
    other.mkdir(parents=True)
    (other / path.name).write_bytes(path.read_bytes())
    home = place.base / "home"
    assert settings_file("local", path, home).origin.trusted
    assert not settings_file("local", other / path.name, home).origin.trusted


def test_neither_owner_nor_git_make_a_file_trusted(place: Place) -> None:
    path = place.write("local", MOVED)
    (path.parent.parent / ".git").mkdir()
    assert os.stat(path).st_uid == os.getuid()
    assert not is_trusted(place)


def test_declined_and_forgotten(place: Place) -> None:
    path, home = place.write("local", MOVED), place.base / "home"
    decide(home, path, path.read_bytes(), trusted=False)
    assert not is_trusted(place)
    assert was_declined(home, path, path.read_bytes())
    assert not was_declined(home, path, b"{}")
    assert "you declined it" in said(place.load())
    place.trust()
    assert is_trusted(place)
    assert forget(home, path)
    assert not forget(home, path)
    assert not is_trusted(place)


@pytest.mark.parametrize("broken", [b"", b"{", b"[]", b'{"sha256": 3}', b'{"trusted": true}'])
def test_a_broken_record_is_none(place: Place, broken: bytes) -> None:
    path = place.write("local", MOVED)
    place.trust()
    (place.base / "home" / record_key(path)).write_bytes(broken)
    assert not is_trusted(place)


def test_without_files_there_is_nothing_to_trust(place: Place) -> None:
    assert load({}, home=place.base, root=place.base, policy=place.path("policy")).problems == ()
    assert not (place.base / "trusted").exists()
