"""What a history keeps of a file: under the name of its bytes, once, up to a size."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.errors import NotFound
from reverie.store import LARGEST, Folder, ObjectStore, object_key

pytestmark = pytest.mark.spec("B3.history")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_the_largest_is_kept_and_one_byte_more_is_only_named(folder: Folder) -> None:
    objects = ObjectStore(folder)
    kept = objects.put(b"a" * LARGEST)
    assert len(objects.content(kept, {})) == LARGEST
    named = objects.put(b"a" * (LARGEST + 1))
    with pytest.raises(NotFound):
        objects.content(named, {})


def test_what_was_written_is_not_read_again_to_be_believed(folder: Folder) -> None:
    objects = ObjectStore(folder)
    name = objects.put(b"kept")
    folder.write(object_key(name), b"damaged behind our back")
    objects.put(b"kept")
    assert folder.read(object_key(name)) == b"damaged behind our back"
    ObjectStore(folder).put(b"kept")  # who has not seen it sound looks, and mends it
    assert ObjectStore(folder).content(name, {}) == b"kept"


def test_what_was_read_once_and_was_sound_is_not_read_again(folder: Folder) -> None:
    name = ObjectStore(folder).put(b"kept")
    later = ObjectStore(folder)
    later.put(b"kept")  # read here
    folder.write(object_key(name), b"damaged behind our back")
    later.put(b"kept")
    assert folder.read(object_key(name)) == b"damaged behind our back"
