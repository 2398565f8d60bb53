"""When a memory was written, over import, export, restore, checkout and undo."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.memory import ImportCandidate, exported_files, import_file, restore
from reverie.session import written_times
from reverie.settings import DEFAULTS
from reverie.store import MemoryStore, Project
from reverie.text import relative
from reverie.topics import Origin, Trust, file_time, files_sharing_time, head_time, line_times, new

pytestmark = [pytest.mark.spec("9")]

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC).timestamp()
MARCH = datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0
BY = Origin("save", Trust.USER, agent="user")


def text(key: str, said: str, head: str = "") -> bytes:
    data = new(key, name=key[:-3], description=f"on {key[:-3]}", type="project", body=said).data
    return data.replace(b"type: project\n", b"type: project\n" + head.encode())


class Home:
    """A project's memory with a clock that is set by hand."""

    def __init__(self, base: Path, now: float = MARCH) -> None:
        self.now = now
        root = base / "project"
        root.mkdir(parents=True, exist_ok=True)
        self.memories = MemoryStore.of(
            Project.at(root, home=base / "home", environ={}, settings=DEFAULTS),
            now=lambda: self.now,
        )

    @property
    def folder(self) -> Path:
        return self.memories.folder.root

    def meant(self, key: str) -> list[str]:
        """What each relative date of a file means, by the time its line was written."""
        self.memories.look()
        data = (self.folder / key).read_bytes()
        every = {p.name: p.read_bytes() for p in self.folder.glob("*.md")}
        times = written_times(self.memories, every, NOW)
        found: list[str] = []
        for number, row in enumerate(data.decode().splitlines()):
            of_lines = times.lines.get(key, ())
            at = of_lines[number] if of_lines else times.files[key]
            found += [when.meant if at else "?" for when in relative(row, at or NOW)]
        return found

    def age(self, key: str) -> int | None:
        """Whole days since a file was written; None where nobody knows."""
        self.memories.look()
        every = {p.name: p.read_bytes() for p in self.folder.glob("*.md")}
        at = written_times(self.memories, every, NOW).files[key]
        return int((NOW - at) // DAY) if at else None

    def close(self) -> None:
        self.memories.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    one = Home(tmp_path)
    yield one
    one.close()


def imported(home: Home, source: Path, key: str) -> None:
    path = source / key
    found = ImportCandidate(path, key, path.read_bytes(), "claude", Trust.AGENT)
    assert import_file(home.memories, found, False).outcome == "imported"


def test_an_imported_memory_of_march_means_march(home: Home, tmp_path: Path) -> None:
    source = tmp_path / "claude"
    source.mkdir()
    (source / "a.md").write_bytes(text("a.md", "Yesterday Rosa moved the ledger."))
    os.utime(source / "a.md", (MARCH, MARCH))
    home.now = NOW - 7 * DAY
    imported(home, source, "a.md")
    assert home.meant("a.md") == ["On 2026-03-09"]
    assert home.age("a.md") == 252


def test_a_head_is_believed_before_the_file(home: Home) -> None:
    head = "metadata:\n  node_type: memory\n  modified: 2026-03-10T08:00:00Z\n"
    (home.folder).mkdir(parents=True, exist_ok=True)
    (home.folder / "a.md").write_bytes(text("a.md", "Yesterday Rosa moved the ledger.", head))
    assert home.meant("a.md") == ["On 2026-03-09"]
    assert head_time(text("a.md", "x", "created: 2031-01-01\n"), NOW) == 0


def test_each_line_is_of_the_version_that_wrote_it(home: Home) -> None:
    first = text("a.md", "Yesterday Rosa moved the ledger.")
    home.memories.save("a.md", first, BY)
    home.now += 30 * DAY
    home.memories.save("a.md", first + b"\nPavel checked it yesterday.\n", BY)
    assert home.meant("a.md") == ["On 2026-03-09", "on 2026-04-08"]


def test_an_undo_gives_lines_their_old_time_back(home: Home) -> None:
    first = text("a.md", "Yesterday Rosa moved the ledger.")
    home.memories.save("a.md", first, BY)
    home.now += 30 * DAY
    home.memories.save("a.md", text("a.md", "Nothing is here."), BY)
    version = home.memories.history.log("a.md")[-1]
    home.now += 30 * DAY
    home.memories.revert("group", version.group, Origin("undo", Trust.USER, agent="user"))
    assert (home.folder / "a.md").read_bytes() == first
    assert home.meant("a.md") == ["On 2026-03-09"]


def test_after_a_checkout_nothing_is_resolved_and_nothing_is_new(home: Home) -> None:
    home.folder.mkdir(parents=True, exist_ok=True)
    for key in ("a.md", "b.md", "c.md"):
        (home.folder / key).write_bytes(text(key, f"Yesterday Rosa moved {key}."))
        os.utime(home.folder / key, (NOW - 60, NOW - 60))
    assert [home.meant(key) for key in ("a.md", "b.md", "c.md")] == [["?"]] * 3
    assert home.age("a.md") is None


def test_times_that_differ_from_one_another_are_believed(home: Home) -> None:
    """Two files of one day, set by whoever restored them, are no checkout of all."""
    home.folder.mkdir(parents=True, exist_ok=True)
    for number, key in enumerate(("a.md", "b.md", "c.md", "d.md", "e.md")):
        (home.folder / key).write_bytes(text(key, f"Yesterday Rosa moved {key}."))
        at = MARCH + DAY * max(0, number - 1)
        os.utime(home.folder / key, (at, at))
    assert [home.meant(key) for key in ("a.md", "b.md", "e.md")] == [
        ["On 2026-03-09"],
        ["On 2026-03-09"],
        ["On 2026-03-12"],
    ]
    assert home.age("a.md") == 252


@pytest.mark.needs("git")
def test_the_history_of_a_folder_in_git_tells_when_a_file_was_written(home: Home) -> None:
    home.folder.mkdir(parents=True, exist_ok=True)
    for number, key in enumerate(("a.md", "b.md", "c.md")):
        (home.folder / key).write_bytes(text(key, f"Yesterday Rosa moved {key}."))
        if not number:
            run_git(home.folder, "init", "-q")
        run_git(home.folder, "add", key)
        run_git(home.folder, "commit", "-qm", key, at=MARCH + number * DAY)
    for key in ("a.md", "b.md", "c.md"):
        os.utime(home.folder / key, (NOW - 60, NOW - 60))
    assert [home.meant(key) for key in ("a.md", "c.md")] == [["On 2026-03-09"], ["On 2026-03-11"]]
    assert home.age("b.md") == 251


def run_git(folder: Path, *words: str, at: float = NOW) -> None:
    when = f"{at:.0f} +0000"
    environ = {**os.environ, "GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when}
    named = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *named, *words], cwd=folder, env=environ, check=True)


def test_a_time_that_is_still_to_come_tells_nothing() -> None:
    data = text("a.md", "Yesterday.")
    assert file_time(data, (), NOW + 400 * DAY, NOW, sure=True) == 0
    assert set(line_times(data, (), lambda _: b"", NOW + 400 * DAY, NOW, sure=True)) == {0.0}
    assert file_time(data, (), MARCH, NOW, sure=True) == MARCH


def test_with_the_clock_set_back_a_year_lines_keep_their_day(home: Home) -> None:
    home.memories.save("a.md", text("a.md", "Yesterday Rosa moved the ledger."), BY)
    home.now -= 365 * DAY
    assert home.meant("a.md") == ["On 2026-03-09"]


@given(st.lists(st.floats(1e9, 2e9), unique=True, max_size=30))
def test_only_times_that_are_shared_are_doubted(stamps: list[float]) -> None:
    known = {f"{n}.md": at for n, at in enumerate(stamps)}
    near = {a for a, x in known.items() for b, y in known.items() if a != b and -2.0 <= y - x < 2.0}
    assert files_sharing_time(known) == near


_MOVES = st.lists(
    st.sampled_from(["export and restore", "copied export", "undo", "touch", "import"]), max_size=3
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.tuples(st.integers(0, 200), st.booleans()), min_size=1, max_size=3),
    _MOVES,
)
def test_times_survive_every_move(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bool]], moves: list[str]
) -> None:
    """Whatever a folder went through, a line means the day it meant, or nobody says."""
    base = tmp_path_factory.mktemp("times")
    home = Home(base / "0")
    said: list[tuple[str, date]] = []
    data = text("a.md", "The ledger.")
    at = MARCH
    for number, (days, _) in enumerate(steps):
        at += (days + 1) * DAY
        home.now = at
        data = data.rstrip(b"\n") + f"\n\nYesterday step {number} was done.\n".encode()
        home.memories.save("a.md", data, BY)
        said.append((f"step {number}", datetime.fromtimestamp(at, UTC).date() - timedelta(1)))
    for number, move in enumerate(moves, 1):
        home = moved(home, move, base / str(number))
    meant = home.meant("a.md")
    home.close()
    assert len(meant) == len(said)
    for found, (_, day) in zip(meant, said, strict=True):
        assert found in (f"On {day}", "?")
    if "import" not in moves:
        assert "?" not in meant


def moved(home: Home, move: str, base: Path) -> Home:
    home.now += 3 * DAY
    if move == "undo":
        home.memories.save("a.md", text("a.md", "Gone."), BY)
        group = home.memories.history.log("a.md")[-1].group
        home.now += DAY
        home.memories.revert("group", group, Origin("undo", Trust.USER, agent="user"))
        return home
    if move == "touch":
        os.utime(home.folder / "a.md")
        return home
    if move == "import":
        other = Home(base, home.now)
        imported(other, home.folder, "a.md")
        home.close()
        return other
    out = base / "export"
    for key, data in exported_files(home.memories, lambda _: None):
        path = out / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    if move == "copied export":
        shutil.copytree(out, base / "copy", copy_function=shutil.copyfile)
        out = base / "copy"
    other = Home(base, home.now)
    list(restore(other.memories, out, False))
    assert (other.folder / "a.md").stat().st_mtime_ns == (home.folder / "a.md").stat().st_mtime_ns
    home.close()
    return other
