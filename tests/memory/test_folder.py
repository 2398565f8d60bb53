"""The memory folder on disk: a file and its pointer as one step, and nothing lost on the way."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reverie.errors import (
    InvalidInput,
    NotFound,
    PathRefused,
    ReverieError,
    StoreError,
    WriteFailed,
)
from reverie.session import gather, index_files
from reverie.settings import Settings
from reverie.store import (
    MAX_INDEX,
    Changed,
    MemoryFolder,
    PendingWrite,
    Project,
    digest,
    is_temporary,
    release,
    take,
    take_turn,
)
from reverie.topics import IndexLimits, new, newest_first
from reverie.world import Notice
from tests.faults import Ack, Death, Outcome, every_error, every_kill, quick_folder, run_with_error
from tests.memory.folders import index_faults

pytestmark = pytest.mark.spec("7.folder")


def topic(name: str, about: str = "about it", kind: str = "user") -> bytes:
    return new("x.md", name=name, description=about, type=kind, body="Body.").data


@pytest.fixture
def said() -> list[Notice]:
    return []


@pytest.fixture
def memory(tmp_path: Path, said: list[Notice]) -> Iterator[MemoryFolder]:
    with MemoryFolder(tmp_path / "memory", say=said.append) as folder:
        yield folder


def test_a_save_writes_the_file_and_its_pointer(memory: MemoryFolder) -> None:
    saved = memory.save("a.md", topic("Ay"))
    assert memory.index().data == "- [Ay](a.md) — about it\n".encode()
    assert [change.key for change in saved.changes] == ["a.md", "MEMORY.md"]
    one = memory.read("a.md")
    assert (one.name, one.type, one.is_cut) == ("Ay", "user", False)
    assert memory.keys() == ("a.md",)
    assert index_faults(memory) == ()


def test_files_and_folders_are_for_their_owner_alone(memory: MemoryFolder) -> None:
    memory.save("team/a.md", topic("Ay"))
    modes = {path.name: path.stat().st_mode & 0o777 for path in memory.root.rglob("*")}
    assert modes == {
        "team": 0o700,
        "a.md": 0o600,
        "MEMORY.md": 0o600,
        ".reverie-memory.lock": 0o600,
    }


def test_a_second_save_changes_the_line_and_keeps_the_title_it_has(memory: MemoryFolder) -> None:
    memory.write("MEMORY.md", b"# Mine\r\n- [My own title](a.md) - old\r\nkept \xff\r\n")
    memory.save("a.md", topic("Ay", "new"))
    expected = "# Mine\r\n- [My own title](a.md) — new\r\nkept ".encode() + b"\xff\r\n"
    assert memory.index().data == expected
    memory.save("a.md", topic("Ay", "new"), title="Other", hook="hook")
    assert memory.index().data == expected.replace(
        "My own title](a.md) — new".encode(), "Other](a.md) — hook".encode()
    )


def test_a_folder_that_was_left_is_not_used_any_more(tmp_path: Path) -> None:
    with MemoryFolder(tmp_path / "m") as folder:
        folder.save("t.md", topic("T"))
    with pytest.raises(StoreError):
        folder.read("t.md")


def test_a_removal_takes_file_and_pointers(memory: MemoryFolder) -> None:
    memory.save("a.md", topic("Ay"))
    memory.save("b.md", topic("Bee"))
    gone = memory.remove("a.md")
    assert memory.index().data == "- [Bee](b.md) — about it\n".encode()
    assert memory.keys() == ("b.md",)
    assert gone.changes[-1] == PendingWrite("a.md", topic("Ay"), None)
    with pytest.raises(NotFound):
        memory.remove("a.md")


def test_the_teams_files_have_the_teams_index(memory: MemoryFolder) -> None:
    memory.save("team/a.md", topic("Ay"))
    memory.save("b.md", topic("Bee"))
    assert memory.index("team/MEMORY.md").data == "- [Ay](a.md) — about it\n".encode()
    assert memory.index().data == "- [Bee](b.md) — about it\n".encode()
    assert index_faults(memory) == index_faults(memory, "team/MEMORY.md") == ()
    sent = index_files(memory, team=True)
    assert [(one.kind, one.path.endswith("team/MEMORY.md")) for one in sent] == [
        ("memory", False),
        ("team", True),
    ]
    memory.remove("team/a.md")
    assert memory.index("team/MEMORY.md").data == b""


def test_a_save_lands_only_on_what_was_read(memory: MemoryFolder) -> None:
    memory.save("a.md", topic("Ay"), exclusive=True)
    before = memory.index().data
    for refused in (
        {"exclusive": True},
        {"expect": digest(b"something else")},
    ):
        with pytest.raises(Changed):
            memory.save("a.md", topic("Other"), **refused)  # type: ignore[arg-type]
    assert memory.read("a.md").data == topic("Ay")
    assert memory.index().data == before
    memory.save("a.md", topic("Other"), expect=digest(topic("Ay")))
    assert memory.read("a.md").name == "Other"


@pytest.mark.parametrize("key", ["MEMORY.md", "team/MEMORY.md", "logs/2026/01/x.md", "a.txt"])
def test_only_topic_files_are_saved_as_such(memory: MemoryFolder, key: str) -> None:
    with pytest.raises(InvalidInput, match="not a topic file"):
        memory.save(key, b"x")


@pytest.mark.parametrize(
    "key", ["../a.md", "/a.md", "a/../../b.md", "a\\b.md", "a%2e.md", "NUL.md"]
)
def test_no_key_leaves_the_folder(memory: MemoryFolder, key: str) -> None:
    for attempt in (
        lambda: memory.save(key, b"x"),
        lambda: memory.read(key),
        lambda: memory.remove(key),
    ):
        with pytest.raises(PathRefused):
            attempt()


def test_a_guard_sees_every_byte_and_may_refuse(tmp_path: Path) -> None:
    seen: list[tuple[str, bytes]] = []

    def guard(key: str, data: bytes) -> None:
        seen.append((key, data))
        if b"key-123" in data:
            raise StoreError("a rule refused this")

    with MemoryFolder(tmp_path / "m", guard=guard) as memory:
        memory.save("a.md", topic("Ay"))
        assert set(seen) == {
            ("a.md", topic("Ay")),
            ("MEMORY.md", "- [Ay](a.md) — about it\n".encode()),
        }
        before = state(memory.root)
        for refused in (
            lambda: memory.save("b.md", topic("Bee", "key-123")),
            lambda: memory.save("b.md", topic("Bee"), hook="key-123"),
            lambda: memory.write("MEMORY.md", b"key-123"),
        ):
            with pytest.raises(StoreError, match="a rule refused"):
                refused()
        assert state(memory.root) == before
        (memory.root / "MEMORY.md").write_bytes(b"- [Ay](a.md) key-123\n")
        memory.remove("a.md")  # what is removed needs no leave
        assert memory.keys() == ()


def test_whoever_keeps_history_is_told_each_change(tmp_path: Path) -> None:
    told: list[PendingWrite] = []
    with MemoryFolder(tmp_path / "m", landed=told.append) as memory:
        memory.save("a.md", topic("Ay"))
        memory.save("a.md", topic("Ay", "more"))
        memory.remove("a.md")
    now: dict[str, bytes | None] = {}
    for change in told:
        assert now.get(change.key) == change.before
        now[change.key] = change.after
    assert now == {"a.md": None, "MEMORY.md": b""}
    assert len(told) == 6


def test_an_index_that_grows_too_large_is_said_when_it_is_written(
    tmp_path: Path, said: list[Notice]
) -> None:
    with MemoryFolder(tmp_path / "m", say=said.append, limits=IndexLimits(lines=3)) as memory:
        for n in range(3):
            assert memory.save(f"a{n}.md", topic("A")).warnings == ()
        saved = memory.save("a3.md", topic("A"))
        assert "4 lines (limit 3)" in saved.warnings[0]
        assert [one.text for one in said] == list(saved.warnings)
        sent = memory.index_sent()
        assert (sent.ranked, sent.shown, sent.hidden) == (True, 2, 2)
        assert "a3.md" in sent.text


def test_a_scan_gives_topics_newest_first(memory: MemoryFolder) -> None:
    for n, key in enumerate(("old.md", "sub/new.md", "team/mid.md")):
        memory.save(key, topic(key, f"about {key}"))
        os.utime(memory.root / key, (1_000_000 + (n * 7) % 5, 1_000_000 + (n * 7) % 5))
    memory.write("logs/2026/01/2026-01-01.md", b"- 10:00 x")
    memory.write("plain.md", b"no head")
    os.utime(memory.root / "plain.md", (0, 0))
    assert "\n".join(one.line for one in newest_first(memory.scan())) == (
        "- [user] team/mid.md (1970-01-12T13:46:44Z): about team/mid.md\n"
        "- [user] sub/new.md (1970-01-12T13:46:42Z): about sub/new.md\n"
        "- [user] old.md (1970-01-12T13:46:40Z): about old.md\n"
        "- plain.md (1970-01-01T00:00:00Z)"
    )


def test_frontmatter_that_closes_late_is_not_looked_for(memory: MemoryFolder) -> None:
    late = b"---\nname: x\n" + b"# c\n" * 28 + b"---\n"
    memory.write("in.md", b"---\nname: x\n" + b"# c\n" * 27 + b"---\n")
    memory.write("out.md", late)
    assert {one.key: one.name for one in memory.scan()} == {"in.md": "x", "out.md": "out"}


def test_what_another_program_adds_meanwhile_stays(tmp_path: Path) -> None:
    """A program without our lock writes between our look at the index and our write."""
    root = tmp_path / "m"
    added = iter(["- [One](one.md)\n", "- [Two](two.md)\n"])

    def meanwhile(key: str, data: bytes) -> None:
        if key == "MEMORY.md" and (line := next(added, "")):
            with open(root / "MEMORY.md", "a") as file:
                file.write(line)

    with MemoryFolder(root, guard=meanwhile) as memory:
        memory.save("a.md", topic("Ay"))
        keys = [one.key for one in memory.index().pointers]
    assert sorted(keys) == ["a.md", "one.md", "two.md"]


def test_the_lock_may_be_held_over_several_writes(memory: MemoryFolder) -> None:
    with memory.locked(), memory.locked():
        memory.save("a.md", topic("Ay"))
        memory.remove("a.md")
    assert memory.keys() == ()


def test_a_folder_in_use_is_waited_for_and_given_up_in_the_end(memory: MemoryFolder) -> None:
    """The lock goes to whoever waits; one that has given up takes it from nobody."""
    memory.write("x.txt", b"")
    held, mine = (memory.files.open_append(".reverie-memory.lock") for _ in range(2))
    assert take(held)
    assert not take_turn(mine, 0.01)
    release(mine)
    release(held)
    waiting = memory.files.open_append(".reverie-memory.lock")
    assert take_turn(waiting, 60.0)
    with ThreadPoolExecutor(1) as pool:
        saved = pool.submit(memory.save, "a.md", topic("Ay"))
        assert not saved.done()
        release(waiting)
        assert saved.result(timeout=60).key == "a.md"


def test_an_endless_index_is_not_changed(memory: MemoryFolder) -> None:
    with open(memory.root / "MEMORY.md", "wb") as file:
        file.truncate(MAX_INDEX + 1)
    with pytest.raises(InvalidInput, match="Shorten it by hand"):
        memory.save("a.md", topic("Ay"))
    assert memory.keys() == ()


# -- what goes wrong -------------------------------------------------------------------


def state(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not is_temporary(path.name) and not path.name.endswith(".lock")
    }


OLD = {"a.md": topic("Old"), "MEMORY.md": "- [Old](a.md) — about it\n".encode()}
NEW = {"a.md": topic("New", "new"), "MEMORY.md": "- [New](a.md) — new\n".encode()}
KEPT = {**NEW, "MEMORY.md": "- [Old](a.md) — new\n".encode()}  # a title that stands stays
BETWEEN = {"a.md": NEW["a.md"], "MEMORY.md": OLD["MEMORY.md"]}


def fill(root: Path) -> Path:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for name, data in OLD.items():
        (root / name).write_bytes(data)
    return root


def test_a_full_disk_leaves_the_old_file_and_the_user_is_told(tmp_path: Path) -> None:
    said: list[Notice] = []
    with MemoryFolder(fill(tmp_path / "m"), say=said.append) as memory:
        outcome = run_with_error(
            lambda: memory.save("a.md", NEW["a.md"]),
            1,
            errno.ENOSPC,
            sticky=True,
            calls=["os.write"],
        )
        assert isinstance(outcome.error, WriteFailed)
        assert state(memory.root) == OLD
        assert [one.level for one in said] == ["warning"]
        assert "No space left on device" in said[0].text
        assert memory.scan()[0].name == "Old"
        memory.save("a.md", NEW["a.md"])
    assert state(memory.root) == NEW


def test_every_failure_of_a_save_leaves_whole_files_and_says_so() -> None:
    with quick_folder() as stage:
        memory = [MemoryFolder(fill(stage / "m"))]

        def attempt() -> object:
            memory[0].close()
            memory[0] = MemoryFolder(fill(stage / "m"))
            return lambda: memory[0].save("a.md", NEW["a.md"])

        def check(outcome: Outcome) -> None:
            now = state(stage / "m")
            if outcome.error is None:
                assert now in (NEW, KEPT)
            else:
                assert isinstance(outcome.error, ReverieError)
                assert now in (OLD, BETWEEN, NEW, KEPT)
            with MemoryFolder(stage / "m") as again:
                again.save("a.md", NEW["a.md"])
            assert state(stage / "m") in (NEW, KEPT)

        points = every_error(attempt, check, codes=[errno.ENOSPC])  # type: ignore[arg-type]
        memory[0].close()
    assert points > 100


def test_a_save_that_is_killed_leaves_no_pointer_to_nothing() -> None:
    with quick_folder() as stage:

        def attempt() -> object:
            root = fill(stage / "m")

            def work(ack: Ack) -> None:
                with MemoryFolder(root) as memory:
                    memory.save("b.md", topic("Bee"))
                    ack("saved")
                    memory.remove("a.md")
                    ack("removed")

            return work

        def check(death: Death) -> None:
            with MemoryFolder(stage / "m") as memory:
                kinds = {(one.kind, one.key) for one in index_faults(memory)}
                assert kinds <= {("unlisted", "b.md"), ("unlisted", "a.md")}
                if death.acked:
                    assert memory.read("b.md").data == topic("Bee")
                    assert ("unlisted", "b.md") not in kinds
                if death.acked[1:]:
                    assert memory.keys() == ("b.md",)

        points = every_kill(attempt, check, whens=("after", "partial"))  # type: ignore[arg-type]
    assert points > 30


def test_row_39_a_folder_that_is_removed_costs_one_warning(
    memory: MemoryFolder, said: list[Notice], tmp_path: Path
) -> None:
    memory.save("a.md", topic("Ay"))
    shutil.rmtree(memory.root)
    before = sorted(tmp_path.rglob("*"))
    for _ in range(3):
        assert memory.scan() == ()
        assert memory.index().data == b""
        assert memory.index_sent().text == ""
        with pytest.raises(NotFound):
            memory.save("a.md", topic("Ay"))
        with pytest.raises(NotFound):
            memory.remove("a.md")
    project = Project.at(tmp_path, home=tmp_path / "h", environ={}, settings=Settings())
    context = gather(project, memory=memory)
    assert context.files == ()
    assert sorted(tmp_path.rglob("*")) == before
    assert len(said) == 1
    assert "the session goes on" in said[0].text


def test_row_39_a_folder_made_anew_is_not_taken_for_the_old_one(
    memory: MemoryFolder, said: list[Notice]
) -> None:
    shutil.rmtree(memory.root)
    memory.root.mkdir()
    with pytest.raises(NotFound, match="replaced"):
        memory.save("a.md", topic("Ay"))
    assert list(memory.root.iterdir()) == []
    assert len(said) == 1


def test_row_39_a_folder_that_becomes_read_only_costs_one_warning(
    memory: MemoryFolder, said: list[Notice]
) -> None:
    memory.save("a.md", topic("Ay"))
    before = state(memory.root)

    def work() -> None:
        for _ in range(3):
            with pytest.raises(WriteFailed):
                memory.save("a.md", topic("Other"))
            assert memory.scan()[0].name == "Ay"

    calls = ["os.write", "os.rename", "os.mkdir", "os.unlink"]
    outcome = run_with_error(work, 1, errno.EROFS, sticky=True, calls=calls)
    assert outcome.error is None
    assert state(memory.root) == before
    assert len(said) == 1
    assert "Read-only" in said[0].text
