"""A save costs the same however many memories there are, and loses nothing by it.

A long index is added to at its end. What is counted are bytes and calls, not time. The bound from
which on an index counts as long is set to nothing here, so that few memories show all of it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import sqlite3
from collections.abc import Callable
from operator import le
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.errors import PathRefused, ReverieError, SecretFound
from reverie.memory import ForgetRun, exported_files, restore
from reverie.session.open_memory import open_memory
from reverie.store import (
    CACHE_NAME,
    FOLD,
    Folder,
    History,
    Journal,
    LongIndexes,
    MemoryStore,
    mend,
    observe_file,
    tail,
)
from reverie.topics import OUTSIDE, Origin, Trust, Version, new
from reverie.world import say_nothing
from tests.conftest import Scale
from tests.faults import (
    Ack,
    Death,
    Outcome,
    Plan,
    copies,
    every_error,
    every_kill,
    in_copies,
    open_files,
    quick_folder,
    run_with_error,
    shim,
)
from tests.memory import folders
from tests.memory.test_history import whole

pytestmark = [pytest.mark.spec("1.growth")]

AGENT = Origin("save", Trust.AGENT, agent="main", session="s1")
UNDO = Origin("undo", Trust.USER)
MILL = "The mill stands by the river."


def opened(base: Path) -> MemoryStore:
    return folders.opened(base, long_index=0)


def topic(name: str, text: str = "text", about: str = "") -> bytes:
    told = about or f"about {name}"
    return new("t.md", name=name, description=told, type="project", body=text).data


def filled(base: Path, count: int) -> MemoryStore:
    memories = opened(base)
    rows: list[str] = []
    for number in range(count):
        (memories.root / f"t{number:05}.md").write_bytes(topic(f"T{number}"))
        rows.append(f"- [T{number}](t{number:05}.md) — about T{number}\n")
    (memories.root / "MEMORY.md").write_text("".join(rows))
    memories.look()
    return memories


@pytest.fixture
def memories(tmp_path: Path):
    with filled(tmp_path, 3) as found:
        yield found


def lines(memories: MemoryStore) -> list[str]:
    return memories.folder.index_data().decode().splitlines()


def pieces(memories: MemoryStore) -> list[bytes]:
    """The bytes of each version of the index, oldest first."""
    steps = memories.history.log("MEMORY.md")
    return [memories.history.content(step.after) for step in steps]


# -- what it costs -------------------------------------------------------------------


def costs(work: Callable[[], object]) -> dict[str, int]:
    """Bytes and calls of a piece of work, the database's among them."""

    def now() -> dict[str, int]:
        rows = Path("/proc/self/io").read_text().splitlines()
        return {name: int(value) for name, _, value in (row.partition(": ") for row in rows)}

    before = now()
    with shim(Plan(0)) as seen:
        work()
    after = now()
    found = {name: after[name] - before[name] for name in ("rchar", "wchar", "syscr", "syscw")}
    names = seen.names()
    return found | {name: names.count(name) for name in ("os.listdir", "os.scandir", "os.fsync")}


needs_counts = pytest.mark.skipif(
    not os.access("/proc/self/io", os.R_OK), reason="bytes read and written are not counted here"
)


@needs_counts
def test_a_save_costs_the_same_with_ten_times_the_memories(scale: Scale) -> None:
    small, large = scale.pick((300, 3_000), (2_000, 20_000))
    with quick_folder() as base:
        found: dict[int, list[dict[str, int]]] = {}
        for count in (small, large):
            home = base / str(count)
            with filled(home, count) as memories:
                memories.save("first.md", topic("First"), AGENT)  # the index is read here, once
                found[count] = [costs(lambda m=memories: m.save("n.md", topic("N"), AGENT))]
                found[count] += [costs(lambda m=memories: m.save("n.md", topic("N", "x"), AGENT))]
                found[count] += [costs(lambda m=memories: m.remember(MILL, AGENT))]

            def fresh(home: Path = home) -> None:
                with opened(home) as memories:
                    memories.save("f.md", topic("F"), AGENT)

            found[count] += [costs(fresh)]
        for one, ten in zip(found[small], found[large], strict=True):
            assert ten["wchar"] < one["wchar"] + 2_000
            assert ten["rchar"] < one["rchar"] + 2 * FOLD
            assert ten["syscr"] < one["syscr"] + 60
            assert ten["os.fsync"] <= one["os.fsync"] + 1  # one more where a folder is new
            assert ten["os.listdir"] == 0
        # Nothing is listed; of a folder that is to be written to, the first name is looked at.
        for count in (small, large):
            looks = [one["os.scandir"] for one in found[count]]
            assert all(map(le, looks, (2, 2, 2, 5))), looks


def test_a_new_pointer_is_one_line_more_and_the_rest_of_the_index_stays(
    memories: MemoryStore,
) -> None:
    before, inode = memories.folder.index_data(), os.stat(memories.root / "MEMORY.md").st_ino
    memories.save("new.md", topic("New"), AGENT)
    after = memories.folder.index_data()
    assert after == before + "- [New](new.md) — about New\n".encode()
    assert os.stat(memories.root / "MEMORY.md").st_ino == inode
    whole(memories)


def test_a_pointer_that_is_there_stays_and_a_changed_one_is_changed(memories: MemoryStore) -> None:
    memories.save("new.md", topic("New"), AGENT)
    memories.save("new.md", topic("New", "other words"), AGENT)
    assert lines(memories)[-1] == "- [New](new.md) — about New"
    memories.save("new.md", topic("New", "other words", "told anew"), AGENT)
    assert lines(memories)[-1] == "- [New](new.md) — told anew"
    memories.save("t00001.md", topic("T1", "x", "told anew"), AGENT)
    assert lines(memories)[1] == "- [T1](t00001.md) — told anew"
    memories.save("last.md", topic("Last"), AGENT)
    assert len(lines(memories)) == 5
    whole(memories)


def test_a_long_index_stays_known_where_one_of_its_pointers_is_changed(
    memories: MemoryStore,
) -> None:
    memories.save("new.md", topic("New"), AGENT)
    memories.save("t00001.md", topic("T1", "x", "told anew"), AGENT)
    known = memories.history.heads.index("MEMORY.md")
    assert known is not None  # so that the next save need not read it
    assert known.seen == observe_file(memories.folder.files, "MEMORY.md")
    assert known.lines == 4


def test_what_stands_behind_the_pointers_stays_behind_them(memories: MemoryStore) -> None:
    with open(memories.root / "MEMORY.md", "ab") as file:
        file.write(b"\nKeep this short.\n")
    memories.save("new.md", topic("New"), AGENT)
    assert lines(memories)[-3:] == ["- [New](new.md) — about New", "", "Keep this short."]
    assert [v.origin.kind for v in memories.history.log("MEMORY.md")] == [OUTSIDE, OUTSIDE, "save"]
    whole(memories)


@pytest.mark.parametrize("edit", ["line", "removed", "replaced"])
def test_an_index_that_others_changed_is_read_again(memories: MemoryStore, edit: str) -> None:
    memories.save("a.md", topic("A"), AGENT)
    file = memories.root / "MEMORY.md"
    if edit == "line":
        with file.open("ab") as added:
            added.write("- [New](new.md) — by hand\n".encode())
    elif edit == "removed":
        file.write_text("".join(f"{row}\n" for row in lines(memories)[1:]))
    else:
        other = file.with_name("other")
        other.write_text("- [New](new.md) — by hand\n")
        other.rename(file)
    memories.save("new.md", topic("New"), AGENT)
    assert [row for row in lines(memories) if "(new.md)" in row] == ["- [New](new.md) — about New"]
    assert len(lines(memories)) == {"line": 5, "removed": 4, "replaced": 1}[edit]
    whole(memories)


def test_a_pointer_that_others_took_out_is_known_to_be_gone_also_later(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as memories:
        memories.save("t00001.md", topic("T1", "told"), AGENT)
        kept = [line for line in lines(memories) if "t00001.md" not in line]
        (memories.root / "MEMORY.md").write_text("".join(f"{line}\n" for line in kept))
        memories.save("other.md", topic("Other"), AGENT)  # the index is read again here
    with opened(tmp_path) as later:  # and known from the database alone here
        later.save("t00001.md", topic("T1", "told again"), AGENT)
        assert sum("(t00001.md)" in line for line in lines(later)) == 1


def test_a_save_just_made_is_found_by_its_words_and_by_its_name(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as memories:
        memories.save("mill.md", topic("Mill", about="where the mill stands"), AGENT)
        known = LongIndexes(memories.history)
        assert known.known_like("MEMORY.md", "where the mill stands") == ["mill.md"]
        assert known.known_like("MEMORY.md", "about T1") == ["t00001.md"]
        assert known.twin_of("Mill.md") == "mill.md"
        assert known.twin_of("mill.md") == ""
        memories.remove("mill.md", AGENT)
        assert known.twin_of("Mill.md") == ""


def test_a_pointer_taken_out_right_after_its_save_is_put_back_by_the_next(
    memories: MemoryStore,
) -> None:
    memories.save("a.md", topic("A"), AGENT)
    memories.save("b.md", topic("B"), AGENT)
    kept = [line for line in lines(memories) if "(b.md)" not in line]
    (memories.root / "MEMORY.md").write_text("".join(f"{line}\n" for line in kept))
    memories.save("b.md", topic("B", "told again"), AGENT)
    assert [line for line in lines(memories) if "(b.md)" in line] == ["- [B](b.md) — about B"]
    whole(memories)


def test_a_twin_is_known_from_the_database_too(memories: MemoryStore) -> None:
    memories.save("mill.md", topic("Mill"), AGENT)
    memories.history.heads.keep()
    with opened(memories.home) as later:
        later.history.heads.refresh()
        assert LongIndexes(later.history).twin_of("Mill.md") == "mill.md"
        with pytest.raises(PathRefused, match="is already there"):
            later.save("Mill.md", topic("Mill"), AGENT)


def test_what_is_known_does_not_grow_by_being_kept(memories: MemoryStore) -> None:
    for number in range(3):
        memories.save("a.md", topic("A", f"text {number}"), AGENT)
        memories.history.heads.keep()
    with contextlib.closing(sqlite3.connect(memories.history.files.root / CACHE_NAME)) as base:
        tables = ("place", "pending", "looks", "pointer", "file")
        counts = [base.execute(f"SELECT COUNT(*) FROM {one}").fetchone()[0] for one in tables]
    assert counts == [1, 0, 1, 4, 5]


def test_a_piece_of_a_line_is_cut_off_for_good_and_a_whole_one_stays(tmp_path: Path) -> None:
    files, first, line = Folder(tmp_path), b"- [A](a.md)\n", "- [B](b.md)\n"
    step = Version("v", "MEMORY.md", "", "", 1.0, AGENT, added=line, size=len(first))
    assert not mend(files, step)  # there is no such file at all
    (tmp_path / "MEMORY.md").write_bytes(first + line[:5].encode())
    with shim(Plan(0)) as seen:
        assert not mend(files, step)
    assert (tmp_path / "MEMORY.md").read_bytes() == first
    names = seen.names()
    assert "os.fsync" in names[names.index("os.ftruncate") :]  # a power cut does not bring it back
    (tmp_path / "MEMORY.md").write_bytes(first + line.encode())
    assert mend(files, step)
    assert (tmp_path / "MEMORY.md").read_bytes() == first + line.encode()


def test_guards_see_the_line_that_is_added(memories: MemoryStore) -> None:
    key = "AKIA" + "IOSFODNN7" + "EXAMPLF"
    before = memories.folder.index_data()
    with pytest.raises(SecretFound):
        memories.folder.save("new.md", topic("New"), title=f"The key {key}")
    assert memories.folder.index_data() == before
    assert not memories.folder.exists("new.md")


def test_a_save_leaves_no_file_open(memories: MemoryStore) -> None:
    memories.save("a.md", topic("A"), AGENT)
    before = open_files()
    for number in range(5):
        memories.save(f"n{number}.md", topic(f"N{number}"), AGENT)
    assert open_files() == before


def test_an_index_that_changes_while_it_is_added_to_is_looked_at_again(
    memories: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody without our lock adds a line of theirs after the index was looked at."""
    opens, times = os.open, itertools.count()

    def late(path: str, flags: int, *more: Any, **place: Any) -> int:
        if path == "MEMORY.md" and flags & os.O_ACCMODE != os.O_RDONLY and next(times) < 2:
            with open(memories.root / "MEMORY.md", "ab") as file:
                file.write("- [By hand](t00001.md) — by hand\n".encode())
        return opens(path, flags, *more, **place)

    monkeypatch.setattr(os, "open", late)
    memories.save("new.md", topic("New"), AGENT)
    assert [row[:9] for row in lines(memories)[3:]] == ["- [By han"] * 2 + ["- [New](n"]
    whole(memories)


def test_a_name_that_differs_by_case_alone_is_refused(memories: MemoryStore) -> None:
    memories.save("new.md", topic("New"), AGENT)
    with pytest.raises(PathRefused, match="is already there"):
        memories.save("New.md", topic("New"), AGENT)
    memories.remove("new.md", AGENT)
    memories.save("New.md", topic("New"), AGENT)
    whole(memories)


def test_the_same_words_are_not_remembered_twice(memories: MemoryStore) -> None:
    assert memories.remember(MILL, AGENT).outcome == "saved"
    assert memories.remember(MILL, AGENT).outcome == "unchanged"
    with opened(memories.home) as again:
        assert again.remember(MILL, AGENT, name="Mill").outcome == "unchanged"


def test_an_index_over_its_limits_is_told_with_its_lines_and_bytes(tmp_path: Path) -> None:
    with filled(tmp_path, 300) as memories:
        done = memories.folder.save("new.md", topic("New"))
        size = os.stat(memories.root / "MEMORY.md").st_size
        assert f"301 lines (limit 200) and {size:,} bytes" in done.warnings[0] or size <= 25_000
        assert "301 lines (limit 200)" in done.warnings[0]


# -- what is kept of it --------------------------------------------------------------


def test_every_version_of_a_growing_index_can_be_had_and_taken_back(memories: MemoryStore) -> None:
    states = [memories.folder.index_data()]
    for name in ("a", "b", "c"):
        memories.save(f"{name}.md", topic(name), AGENT)
        states.append(memories.folder.index_data())
    assert pieces(memories) == states
    steps = memories.history.log("b.md")
    memories.undo(steps[0].id, UNDO)
    assert [row[:4] for row in lines(memories)[3:]] == ["- [a", "- [c"]
    assert memories.folder.keys()[:2] == ("a.md", "c.md")
    whole(memories)
    with opened(memories.home) as again:
        assert pieces(again)[:4] == states
        whole(again)


def test_what_was_added_is_kept_once(memories: MemoryStore) -> None:
    memories.save("a.md", topic("A"), AGENT)
    objects = [key for key in memories.history.files.list() if key.startswith("objects/")]
    assert len(objects) == 5  # four files and the first index
    assert memories.history.check() == ()


def test_what_is_known_is_made_anew_where_it_is_damaged_or_gone(memories: MemoryStore) -> None:
    memories.save("a.md", topic("A"), AGENT)
    base = memories.history.files.root / CACHE_NAME
    for number, damage in enumerate([b"no database", b"", base.read_bytes()[:5000], None]):
        if damage is None:
            base.unlink()
        else:
            base.write_bytes(damage)
        with opened(memories.home) as again:
            again.save(f"n{number}.md", topic(f"N{number}"), AGENT)
            again.save(f"n{number}.md", topic(f"N{number}", "x"), AGENT)
            whole(again)
    assert len(lines(memories)) == 8


def test_what_is_known_is_made_anew_under_a_writer_that_is_at_work(memories: MemoryStore) -> None:
    memories.save("a.md", topic("A"), AGENT)
    (memories.history.files.root / CACHE_NAME).write_bytes(b"no database, but of some length")
    memories.save("t00001.md", topic("T1", "x"), AGENT)
    memories.save("b.md", topic("B"), AGENT)
    assert len(lines(memories)) == 5
    whole(memories)


def test_a_log_that_was_rewritten_is_read_from_its_beginning(memories: MemoryStore) -> None:
    memories.save("a.md", topic("A"), AGENT)
    log = memories.history.files.root / "log.jsonl"
    text = log.read_bytes()
    log.unlink()
    log.write_bytes(text)
    memories.save("b.md", topic("B"), AGENT)
    whole(memories)
    with opened(memories.home) as again:
        again.save("c.md", topic("C"), AGENT)
        whole(again)


def test_what_is_known_agrees_with_what_the_log_says(tmp_path: Path) -> None:
    """Asked for each file, after many steps by fresh openers, folded again and again."""
    with filled(tmp_path, 40) as memories:
        memories.save("first.md", topic("First"), AGENT)
    for number in range(30):
        with opened(tmp_path) as memories:
            memories.save(f"n{number % 11}.md", topic(f"N{number}"), AGENT)
            if number % 4 == 3:
                memories.remove(f"n{number % 11}.md", AGENT)
            if number % 7 == 6:
                memories.undo("", UNDO)
            if number % 5 == 4:
                memories.history.heads.keep()
    with opened(tmp_path) as memories:
        known = memories.history.heads
        with memories.folder.locked():
            known.refresh()
            memories.indexes.known_pointer("MEMORY.md", "x.md")
        for key in {version.key for version in memories.history.log()}:
            name = memories.history.state.head(key)
            assert known.head(key) in ({name, None} if key == "MEMORY.md" else {name})
        found = {one.key for one in memories.folder.index().pointers}
        keys = memories.folder.keys()
        for key in keys:
            assert (known.pointer("MEMORY.md", key).times == 1) == (key in found)
        index = known.index("MEMORY.md")
        assert index is not None
        assert index.lines == len(lines(memories))
        whole(memories)


def test_forgotten_words_leave_a_growing_index_and_its_history(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as memories:
        memories.save("a.md", topic("Rumpelstiltskin of the mill"), AGENT)
        memories.save("b.md", topic("B"), AGENT)
    project = tmp_path / "p"
    pair = project / "memory", project / "memory-history"
    (tmp_path / "home").mkdir()
    forgetting = ForgetRun(tmp_path / "home", {}, lambda: 1.0, [pair])
    assert forgetting.run("Rumpelstiltskin of the mill").proven
    for path in (file for file in project.rglob("*") if file.is_file()):
        assert b"Rumpelstiltskin" not in path.read_bytes(), path
    with opened(tmp_path) as memories:
        assert memories.look() == ()
        memories.save("c.md", topic("C"), AGENT)
        assert [row[:4] for row in lines(memories)[-2:]] == ["- [B", "- [C"]
        whole(memories)


def test_an_export_of_a_growing_index_is_put_back_whole(tmp_path: Path) -> None:
    with filled(tmp_path / "one", 3) as memories:
        for name in ("a", "b"):
            memories.save(f"{name}.md", topic(name), AGENT)
        before = pieces(memories)
        out = dict(exported_files(memories, say_nothing))
    assert sum(name.startswith("history/objects/") for name in out) == 6
    for name, data in out.items():
        file = tmp_path / "export" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    with opened(tmp_path / "two") as memories:
        restore(memories, tmp_path / "export", dry_run=False)
        assert pieces(memories) == before
        memories.save("c.md", topic("C"), AGENT)
        whole(memories)


# -- damage and death ----------------------------------------------------------------


def begun(base: Path) -> Callable[[], Path]:
    """Copies of a memory whose index has grown by a line."""
    with filled(base / "first", 3) as memories:
        memories.save("a.md", topic("A"), AGENT)
    return copies(base / "first")


def grow(home: Path, ack: Ack = lambda _: None) -> None:
    with opened(home) as memories:
        memories.save("b.md", topic("B"), AGENT)
        ack("done")


def check_growth(home: Path, acked: list[str]) -> None:
    """The index is as it was or has the new line whole; the history knows, and work goes on."""
    with opened(home) as memories:
        found = memories.look()
        assert all(version.origin.kind != OUTSIDE for version in found), found
        rows = lines(memories)
        assert rows[4:] in ([["- [B](b.md) — about B"]] + ([] if acked else [[]]))
        assert not rows[4:] or memories.folder.exists("b.md")
        whole(memories)
        memories.save("b.md", topic("B"), AGENT)
        memories.save("c.md", topic("C"), AGENT)
        assert [row[:4] for row in lines(memories)[4:]] == ["- [B", "- [C"]
        whole(memories)


def test_a_disk_that_fails_for_a_moment_makes_no_change_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a grown index is reckoned from the bytes it began with."""
    home, real, failed = begun(tmp_path)(), os.open, list[str]()

    def once(path: Any, *given: Any, **named: Any) -> int:
        if str(path).endswith(".z") and not failed:
            failed.append(str(path))
            raise OSError(errno.EIO, "the disk")
        return real(path, *given, **named)

    monkeypatch.setattr(os, "open", once)
    with opened(home) as memories:
        memories.save("b.md", topic("B"), AGENT)
        assert failed
        assert [v.origin.kind for v in memories.history.log()[-2:]] == ["save", "save"]
        whole(memories)


def test_a_kill_at_every_write_leaves_the_line_whole_or_not_there(scale: Scale) -> None:
    def check(home: Path, death: Death) -> None:
        check_growth(home, death.acked)

    with quick_folder() as base:
        assert every_kill(*in_copies(begun(base), grow, check), stride=scale.pick(11, 1)) > 10


@pytest.mark.parametrize("look", [observe_file, tail])
@pytest.mark.parametrize("call", ["os.fstat", "os.read"])
def test_a_long_index_that_cannot_be_looked_at_is_an_error_of_ours(
    memories: MemoryStore, look: Callable[[Folder, str], object], call: str
) -> None:
    work = lambda: look(memories.folder.files, "MEMORY.md")  # noqa: E731
    for n in range(1, 20):
        outcome = run_with_error(work, n, 5, calls=[call])
        assert outcome.error is None or isinstance(outcome.error, ReverieError), outcome.error
        if outcome.hit is None:
            return


def test_an_error_at_every_call_leaves_the_line_whole_or_not_there(scale: Scale) -> None:
    def check(home: Path, outcome: Outcome) -> None:
        assert outcome.error is None or isinstance(outcome.error, ReverieError)
        check_growth(home, [] if outcome.error else ["done"])

    some = ("os.write", "os.fsync", "os.rename")
    calls = scale.pick(some, (*some, "os.open", "os.close", "os.read", "os.fstat"))
    with quick_folder() as base:
        codes = scale.pick((28,), (28, 5, 30))
        assert every_error(*in_copies(begun(base), grow, check), codes=codes, calls=calls) > 20


@pytest.mark.parametrize(
    "torn", [b"- [B](b", b"- [B](b\0\0\0", b"\0\0\0\0", "- [B](b.md) — about B\0".encode()]
)
def test_a_torn_line_is_cut_off_and_what_others_wrote_is_not(
    memories: MemoryStore, torn: bytes
) -> None:
    index = memories.root / "MEMORY.md"
    before = index.read_bytes()
    _cut_before_the_line(memories)
    index.write_bytes(before + torn)
    with opened(memories.home) as again:
        again.look()
        assert index.read_bytes() == before
        whole(again)
    index.write_bytes(before + b"- [B](by hand.md)\n")
    with opened(memories.home) as again:
        again.look()
        assert index.read_bytes() == before + b"- [B](by hand.md)\n"
        whole(again)


class _Cut(BaseException):
    """The process ends here."""


def _cut_before_the_line(memories: MemoryStore) -> None:
    """A save that ends when it comes to write its line into the index."""
    index, write = (memories.root / "MEMORY.md").stat().st_ino, os.write

    def ends(file: int, data: bytes) -> int:
        if os.fstat(file).st_ino == index:
            raise _Cut
        return write(file, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", ends)
        with pytest.raises(_Cut):
            memories.save("b.md", topic("B"), AGENT)


def test_a_write_that_died_is_known_after_the_log_was_folded(memories: MemoryStore) -> None:
    _cut_before_the_line(memories)
    memories.history.heads.keep()
    with opened(memories.home) as again:
        again.history.heads.refresh()
        assert [one.key for one in again.history.heads.pending.values()] == ["MEMORY.md"]
        again.save("b.md", topic("B"), AGENT)
        whole(again)


def test_two_writers_that_both_keep_what_they_know_agree(tmp_path: Path) -> None:
    """What one has put into the database is not counted again by the other."""
    with filled(tmp_path, 3) as one, opened(tmp_path) as other:
        for number in range(6):
            one.save(f"a{number}.md", topic(f"A{number}"), AGENT)
            other.save(f"b{number}.md", topic(f"B{number}"), AGENT)
            other.history.heads.keep()
        for memories in (one, other):
            with memories.folder.locked():
                for pointer in memories.folder.index().pointers:
                    known = memories.indexes.known_pointer("MEMORY.md", pointer.key)
                    assert known.times == 1, pointer
            index = memories.history.heads.index("MEMORY.md")
            assert index is not None
            assert index.lines == 15
            whole(memories)


def test_lines_of_hostile_content_are_passed_over(memories: MemoryStore) -> None:
    memories.save("a.md", topic("A"), AGENT)
    added = '{"v":2,"type":"version","id":"x","key":"MEMORY.md","before":"","after":"","at":1'
    added += ',"origin":{"kind":"save"},"added":"\\ud800","size":-5}'
    hostile = [
        '{"v":1,"type":"seen","key":5,"stat":[1,2]}',
        '{"v":1,"type":"seen","key":"MEMORY.md","stat":[1e400,2,3]}',
        '{"v":1,"type":"seen","key":"MEMORY.md","stat":{}}',
        added,
        '{"v":1,"type":"landed","id":"x"}',
    ]
    with Journal.open(memories.history.files, "log.jsonl") as log:
        log.append(hostile)
    with opened(memories.home) as again:
        again.save("b.md", topic("B"), AGENT)
        again.look()
        assert lines(again)[-1] == "- [B](b.md) — about B"


def test_a_history_by_itself_knows_no_folder(tmp_path: Path) -> None:
    history = History(tmp_path, now=lambda: 1.0)
    with pytest.raises(ReverieError):
        LongIndexes(history).known_pointer("MEMORY.md", "a.md")


# -- changes of one among many --------------------------------------------------------


@needs_counts
def test_update_remove_and_undo_among_many_touch_one_memory(scale: Scale) -> None:
    """Each leaves all others as they are, and works on one file and the index, not on all."""
    count = scale.pick(2_000, 100_000)
    changed, removed = f"t{count // 2:05}.md", f"t{count // 3:05}.md"
    with quick_folder() as base:
        (base / "project").mkdir()
        memory = reverie.Memory(base / "project", home=base / "home", on_notice=lambda _: None)
        root = memory.folder
        root.mkdir(parents=True)
        for number in range(count):
            (root / f"t{number:05}.md").write_bytes(topic(f"T{number}", f"Its port is {number}."))
        pointers = (f"- [T{n}](t{n:05}.md) — about T{n}\n" for n in range(count))
        (root / "MEMORY.md").write_text("".join(pointers))
        with open_memory(memory.__project__, say_nothing) as store:
            store.look()

        def now() -> dict[str, tuple[int, int]]:
            found = ((one.name, one.stat()) for one in os.scandir(root))
            return {name: (at.st_mtime_ns, at.st_size) for name, at in found if ".md" in name}

        def differs(work: Callable[[], object]) -> set[str]:
            before = now()
            cost = costs(work)
            after = now()
            known = sum(one.stat().st_size for one in root.parent.rglob("*.jsonl"))
            assert cost["os.fsync"] <= 40, cost
            assert cost["os.listdir"] + cost["os.scandir"] <= 40, cost
            assert cost["rchar"] <= 20 * (before["MEMORY.md"][1] + known) + 1_000_000, cost
            return {name for name in before | after if before.get(name) != after.get(name)}

        first = (root / removed).read_bytes()
        assert differs(lambda: memory.update(changed, "Its port is new.")) == {changed}
        assert differs(lambda: memory.remove(removed)) == {removed, "MEMORY.md"}
        assert removed not in (root / "MEMORY.md").read_text()
        assert differs(memory.undo) == {removed, "MEMORY.md"}
        assert (root / removed).read_bytes() == first
        assert (root / "MEMORY.md").read_text().count(removed) == 1
        assert differs(memory.undo) == {changed}
        assert "Its port is new." not in (root / changed).read_text()
        assert len(now()) == count + 1
