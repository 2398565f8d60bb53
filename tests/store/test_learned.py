"""Limits learned from errors: kept by model, whatever the file holds, whoever else writes."""

from __future__ import annotations

import multiprocessing
import stat
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from reverie.errors import StoreError
from reverie.store import FILE, learn_window, learned_window, lists

pytestmark = pytest.mark.spec("B10")


def test_a_limit_is_kept_by_model_and_the_newest_counts(home: Path):
    assert learned_window(home, "m") is None
    assert not home.exists()
    assert learn_window(home, "m", 128_000)
    assert learn_window(home, "other", 200_000)
    assert learn_window(home, "m", 96_000)
    assert learned_window(home, "m") == 96_000
    assert learned_window(home, "other") == 200_000
    assert learned_window(home, "third") is None
    assert stat.S_IMODE((home / FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("limit", [0, -1, 999, 10**9])
def test_a_limit_no_window_can_have_is_not_taken(home: Path, limit: int):
    assert not learn_window(home, "m", limit)
    assert not home.exists()


STRANGE = b'{"windows": {"m": "many", "n": true, "o": 5, "p": 1e400}}'
HELD = (b"", b"{", b"[]", b"\xff\xfe", b'{"windows": 3}', b"[" * 100_000, b"x" * 2_000_000)


@pytest.mark.parametrize("held", [*HELD, STRANGE], ids=range(8))
def test_a_file_that_holds_anything_counts_as_empty_and_is_replaced(home: Path, held: bytes):
    home.mkdir()
    (home / FILE).write_bytes(held)
    assert learned_window(home, "m") is None
    assert learn_window(home, "m", 50_000)
    assert learned_window(home, "m") == 50_000


def test_a_folder_or_a_link_in_its_place_is_refused_and_left_alone(home: Path, tmp_path: Path):
    home.mkdir()
    (tmp_path / "elsewhere").write_text('{"windows": {"m": 5000}}')
    (home / FILE).symlink_to(tmp_path / "elsewhere")
    assert learned_window(home, "m") is None
    with pytest.raises(StoreError):
        learn_window(home, "m", 9_000)
    (home / FILE).unlink()
    (home / FILE).mkdir()
    assert learned_window(home, "m") is None
    with pytest.raises(StoreError):
        learn_window(home, "m", 9_000)


def _learn(home: Path, number: int, together: Barrier) -> None:
    for n in range(30):
        together.wait(60)
        learn_window(home, f"m{number}-{n}", 10_000 + number)


def test_what_others_learn_at_the_same_time_stays(home: Path):
    fresh = multiprocessing.get_context("spawn")
    together = fresh.Barrier(4)
    workers = [fresh.Process(target=_learn, args=(home, n, together)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(worker.exitcode == 0 for worker in workers)
    found = [learned_window(home, f"m{n}-{k}") for n in range(4) for k in range(30)]
    assert found == [10_000 + n for n in range(4) for _ in range(30)]


@pytest.mark.parametrize(("first", "later"), [("abc", "d"), ("ab", "cd")])
def test_a_model_that_is_learned_again_is_the_newest(
    home: Path, monkeypatch: pytest.MonkeyPatch, first: str, later: str
):
    monkeypatch.setattr(lists, "_MOST_MODELS", 3)
    for name in first:
        assert learn_window(home, name, 100_000)
    assert learn_window(home, "a", 90_000)
    for name in later:
        assert learn_window(home, name, 100_000)
    assert [learned_window(home, name) for name in "abcd"] == [90_000, None, 100_000, 100_000]
