"""Every version is kept, with its origin, whoever wrote it and whoever died writing it."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from reverie.errors import (
    InvalidInput,
    NotFound,
    ReverieError,
    SecretFound,
    StoreError,
    WriteFailed,
)
from reverie.store import LARGEST, Damaged, Journal, MemoryStore, PendingWrite, digest, object_key
from reverie.topics import ABSENT, OUTSIDE, Origin, Trust, blame, new
from tests.conftest import Scale
from tests.faults import (
    Ack,
    Death,
    Outcome,
    copies,
    every_error,
    every_kill,
    in_copies,
    open_files,
    quick_folder,
)
from tests.memory.folders import index_faults, opened
from tests.processes import at_once

pytestmark = [pytest.mark.spec("B3.history")]

USER = Origin("save", Trust.USER, agent="user")
AGENT = Origin("save", Trust.AGENT, agent="main", session="s1", messages=("m1",), tool="Write")
UNDO = Origin("undo", Trust.USER)


def topic(text: str, name: str = "Topic") -> bytes:
    return new("t.md", name=name, description="about it", type="project", body=text).data


@pytest.fixture
def memories(tmp_path: Path):
    with opened(tmp_path / "home") as found:
        yield found


def whole(memories: MemoryStore) -> None:
    """The log tells of every file what lies there, each step begins where the last one ended."""
    heads: dict[str, str] = {}
    for version in memories.history.log():
        assert version.before == heads.get(version.key, ABSENT)
        assert version.before != version.after
        heads[version.key] = version.after
        for name in (version.before, version.after):
            assert digest(memories.history.content(name)) == name or not name
    there = {
        k: digest(memories.folder.files.read(k))
        for k in memories.folder.files.list()
        if k[0] != "."
    }
    assert {key: name for key, name in heads.items() if name} == there
    # A process that died in the middle of a line leaves it there, to be passed over.
    assert [one for one in memories.history.check() if not one.startswith("log, byte")] == []
    assert not memories.history.state.pending


def test_a_save_is_one_step_with_its_origin(memories: MemoryStore) -> None:
    memories.save("t.md", topic("one"), AGENT)
    made, pointer = memories.history.log()
    assert (made.key, pointer.key) == ("t.md", "MEMORY.md")
    assert made.group == pointer.group != ""
    assert made.origin == pointer.origin == AGENT
    assert memories.history.content(made.after) == topic("one")
    memories.save("t.md", topic("two"), USER)
    assert [v.origin for v in memories.history.log("t.md")] == [AGENT, USER]
    whole(memories)


def test_what_others_wrote_is_recorded_at_the_next_look(memories: MemoryStore) -> None:
    memories.save("t.md", topic("one"), AGENT)
    file = memories.folder.root / "t.md"
    file.write_bytes(b"by an editor\n")
    (memories.folder.root / "new.md").write_bytes(b"by another program\n")
    (memories.folder.root / ".consolidate-lock").write_bytes(b"1\n")
    found = memories.look()
    assert sorted((v.key, v.origin.kind) for v in found) == [("new.md", OUTSIDE), ("t.md", OUTSIDE)]
    assert memories.look() == ()
    file.unlink()
    assert [(v.key, v.after) for v in memories.look()] == [("t.md", ABSENT)]
    whole(memories)


def test_a_closed_memory_leaves_no_file_open(tmp_path: Path) -> None:
    before = open_files()
    with opened(tmp_path / "home") as ours:
        ours.save("t.md", topic("one"), AGENT)
        ours.remember("The mill stands by the river.", AGENT)
    assert open_files() == before


def test_memories_of_one_title_get_the_next_free_number(memories: MemoryStore) -> None:
    keys = [memories.remember(f"text {n}", AGENT, name="Mill").key for n in range(3)]
    stem = keys[0].removesuffix(".md")
    assert keys == [f"{stem}.md", f"{stem}_2.md", f"{stem}_3.md"]
    assert memories.remember("text 1", AGENT, name="Mill").key == keys[1]


def test_a_file_too_large_to_keep_is_known_by_its_digest(memories: MemoryStore) -> None:
    data = b"x" * (LARGEST + 1)
    (memories.folder.root / "large.md").write_bytes(data)
    assert [(v.key, v.after) for v in memories.look()] == [("large.md", digest(data))]
    assert memories.look() == ()
    (memories.folder.root / "large.md").write_bytes(data[:-1])  # now it is just small enough
    (kept,) = memories.look()
    assert memories.history.content(kept.after) == data[:-1]


def test_a_check_sees_what_another_process_kept_meanwhile(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as ours, opened(tmp_path / "home") as others:
        ours.save("t.md", topic("one"), AGENT)
        assert ours.history.check() == ()
        others.save("t.md", topic("two"), AGENT)
        others.history.files.remove(object_key(digest(topic("two"))))
        (found,) = ours.history.check()
        assert digest(topic("two"))[:12] in found


def test_a_check_names_a_line_of_the_log_that_was_damaged_meanwhile(memories: MemoryStore) -> None:
    memories.save("t.md", topic("one"), AGENT)
    log = memories.history.files.root / "log.jsonl"
    size = log.stat().st_size
    with log.open("ab") as file:
        file.write(b"no line of ours\n")
    (found,) = memories.history.check()
    assert found.startswith(f"log, byte {size}: ")


def test_a_closed_memory_is_not_used_any_more(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as ours:
        ours.save("t.md", topic("one"), AGENT)
    for files in (ours.folder.files, ours.history.files, ours.forgotten.files):
        with pytest.raises(StoreError):
            files.list()


def test_a_secret_that_nobody_vouches_for_does_not_wait_for_review_either(
    memories: MemoryStore,
) -> None:
    key = "AKIA" + "IOSFODNN7" + "EXAMPLF"
    with pytest.raises(SecretFound):
        memories.save("t.md", topic(f"The key is {key}."), Origin("extraction", Trust.UNTRUSTED))
    assert memories.review.items() == []
    assert memories.folder.keys() == ()


def test_bytes_of_others_are_kept_before_they_are_written_over(memories: MemoryStore) -> None:
    memories.save("t.md", topic("one"), AGENT)
    (memories.folder.root / "t.md").write_bytes(b"unseen\n")
    memories.save("t.md", topic("two"), AGENT)
    kept = [memories.history.content(v.after) for v in memories.history.log("t.md")]
    assert kept == [topic("one"), b"unseen\n", topic("two")]
    (memories.folder.root / "t.md").write_bytes(b"unseen again\n")
    memories.remove("t.md", USER)
    assert b"unseen again\n" in [memories.history.content(v.before) for v in memories.history.log()]
    whole(memories)


def test_the_agents_own_tools_are_told_by_their_caller(memories: MemoryStore) -> None:
    (memories.folder.root / "t.md").write_bytes(topic("one"))
    assert [v.origin for v in memories.look(AGENT)] == [AGENT]


def test_a_folder_that_cannot_be_read_is_no_removal(memories: MemoryStore) -> None:
    memories.save("t.md", topic("one"), AGENT)
    file = memories.folder.root / "t.md"
    file.unlink()
    file.symlink_to("/etc/passwd")
    assert memories.look() == ()


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", "\ufeffa\r\nb".encode(), b"no end", b"\r\r\n\n"])
def test_row_16_bytes_that_are_no_text_come_back_as_they_were(
    memories: MemoryStore, data: bytes
) -> None:
    (memories.folder.root / "t.md").write_bytes(data)
    memories.look()
    memories.save("t.md", topic("one"), AGENT)
    memories.undo("", UNDO)
    assert memories.folder.files.read("t.md") == data
    whole(memories)


def test_row_39_a_folder_that_is_gone_is_no_removal_and_nothing_is_made(
    memories: MemoryStore,
) -> None:
    memories.save("t.md", topic("one"), AGENT)
    count = len(memories.history.log())
    shutil.rmtree(memories.folder.root)
    with pytest.raises(ReverieError):
        memories.look()
    with pytest.raises(ReverieError):
        memories.save("u.md", topic("two"), AGENT)
    assert memories.folder.keys() == ()
    assert len(memories.history.log()) == count
    assert not memories.folder.root.exists()


def test_blame_names_the_version_of_each_line(memories: MemoryStore) -> None:
    memories.save("t.md", b"a\nb\nc\n", AGENT)
    memories.save("t.md", b"a\nB\nc\nd\n", USER)
    steps = memories.history.log("t.md")
    found = [(b.line, b.version.origin.agent) for b in blame(steps, memories.history.content)]
    assert found == [("a\n", "main"), ("B\n", "user"), ("c\n", "main"), ("d\n", "user")]


# -- undo ----------------------------------------------------------------------------


def test_undo_takes_back_file_and_pointer_and_can_be_undone(memories: MemoryStore) -> None:
    memories.save("a.md", topic("one", "A"), AGENT)
    index = memories.folder.files.read("MEMORY.md")
    memories.save("b.md", topic("two", "B"), AGENT)
    memories.undo("", UNDO)
    assert memories.folder.keys() == ("a.md",)
    assert memories.folder.files.read("MEMORY.md") == index
    memories.undo("", UNDO)
    assert memories.folder.keys() == ()
    last = memories.history.log()[-1]
    memories.undo(last.id, UNDO)
    assert memories.folder.keys() == ("a.md",)
    whole(memories)


def test_undo_restores_only_what_the_undone_step_wrote(memories: MemoryStore) -> None:
    memories.save("t.md", b"---\nname: T\n---\n\na\nb\nc\nd\ne\n", USER)
    memories.save("t.md", b"---\nname: T\n---\n\nX\nb\nc\nd\ne\n", AGENT)
    step = memories.history.log("t.md")[-1]
    memories.save("t.md", b"---\nname: T\n---\n\nX\nb\nc\nd\nE by a person\n", USER)
    done = memories.undo(step.id, UNDO)
    assert [one.merged for one in done.done] == [True]
    assert memories.folder.files.read("t.md") == b"---\nname: T\n---\n\na\nb\nc\nd\nE by a person\n"
    whole(memories)


def test_undo_refuses_where_others_wrote_over_it(memories: MemoryStore) -> None:
    memories.save("t.md", b"a\n", USER)
    memories.save("t.md", b"b\n", AGENT)
    step = memories.history.log("t.md")[-1]
    (memories.folder.root / "t.md").write_bytes(b"c by a person\n")
    with pytest.raises(InvalidInput, match="others have changed the same lines"):
        memories.undo(step.id, UNDO)
    assert memories.folder.files.read("t.md") == b"c by a person\n"
    first = memories.history.log("t.md")[0]
    with pytest.raises(InvalidInput, match="others have written to the file"):
        memories.undo(first.id, UNDO)
    with pytest.raises(NotFound):
        memories.undo("nothing", UNDO)


def test_all_from_one_origin_goes_in_one_step(memories: MemoryStore) -> None:
    bad = Origin("save", Trust.UNTRUSTED, agent="extract", session="bad", tool="WebFetch")
    memories.save("good.md", topic("one", "Good"), AGENT)
    memories.save("bad1.md", topic("two", "Bad one"), bad)
    memories.save("good.md", topic("poisoned", "Good"), bad)
    memories.save("mixed.md", topic("three", "Mixed"), bad)
    memories.save("mixed.md", topic("three and a person's words", "Mixed"), USER)
    done = memories.revert("session", "bad", UNDO)
    assert [one.key for one in done.refused] == ["mixed.md"]
    assert memories.folder.keys() == ("good.md", "mixed.md")
    assert memories.folder.files.read("good.md") == topic("one", "Good")
    assert b"bad1.md" not in memories.folder.files.read("MEMORY.md")
    assert b"good.md" in memories.folder.files.read("MEMORY.md")
    with pytest.raises(NotFound):
        memories.revert("session", "nobody", UNDO)
    whole(memories)


# -- damage and death ----------------------------------------------------------------


def test_a_flipped_bit_is_found_and_never_handed_out(memories: MemoryStore) -> None:
    memories.save("t.md", topic("one"), AGENT)
    name = memories.history.log("t.md")[0].after
    file = memories.history.files.root / object_key(name)
    file.write_bytes(zlib.compress(topic("another")))
    with pytest.raises(Damaged):
        memories.history.content(name)
    assert len(memories.history.check()) == 1
    file.write_bytes(b"no zlib")
    with pytest.raises(Damaged):
        memories.history.content(name)


def test_a_damaged_version_is_kept_anew_when_its_bytes_are_at_hand(tmp_path: Path) -> None:
    with opened(tmp_path) as memories:
        memories.save("t.md", topic("one"), AGENT)
        name = memories.history.log("t.md")[0].after
        file = memories.history.files.root / object_key(name)
        file.write_bytes(b"no zlib")
    with opened(tmp_path) as memories:
        memories.save("t.md", topic("two"), AGENT)
        assert memories.history.content(name) == topic("one")
        assert memories.history.check() == ()
        memories.undo("", UNDO)
        assert memories.folder.bytes_of("t.md") == topic("one")


def test_a_full_disk_between_file_and_pointer_is_mended_by_remembering_again(
    memories: MemoryStore,
) -> None:
    with pytest.MonkeyPatch.context() as patch:

        def full(*_: object, **__: object) -> list[PendingWrite]:
            raise WriteFailed("The disk is full")

        patch.setattr(memories.folder, "_change_index", full)
        with pytest.raises(WriteFailed):
            memories.remember("The mill stands by the river.", USER)
    assert index_faults(memories.folder) != ()
    done = memories.remember("The mill stands by the river.", USER)
    assert done.outcome == "saved"
    assert index_faults(memories.folder) == ()
    assert memories.remember("The mill stands by the river.", USER).outcome == "unchanged"
    whole(memories)


@pytest.mark.parametrize("at", ["1" + "0" * 400, '"x"', "null", "[]", "{}", "1e999"])
def test_a_log_line_of_any_content_is_passed_over(memories: MemoryStore, at: str) -> None:
    memories.save("t.md", topic("one"), AGENT)
    line = '{"v":1,"type":"version","id":"x","key":"k","before":"","after":"","at":%s'
    line += ',"origin":{"kind":"save"}}'
    deep = '{"v":1,"type":"version","id":' + "[" * 100_000 + "]" * 100_000 + "}"
    with Journal.open(memories.history.files, "log.jsonl") as log:
        log.append([line % at, deep])
    with MemoryStore(memories.root, memories.beside.root, memories.home, now=lambda: 1.0) as again:
        assert [v.key for v in again.history.log()][:1] == ["t.md"]
        again.save("t.md", topic("two"), AGENT)


def test_a_torn_log_line_is_passed_over(memories: MemoryStore) -> None:
    memories.save("t.md", topic("one"), AGENT)
    log = memories.history.files.root / "log.jsonl"
    with open(log, "ab") as file:
        file.write(b'{"v":1,"type":"version","id":"torn')
    memories.save("t.md", topic("two"), AGENT)
    assert [memories.history.content(v.after) for v in memories.history.log("t.md")] == [
        topic("one"),
        topic("two"),
    ]
    assert memories.history.faults


def test_everything_is_for_the_owner_alone(memories: MemoryStore) -> None:
    memories.save("t.md", topic("one"), AGENT)
    for path in memories.history.files.root.rglob("*"):
        assert os.stat(path).st_mode & 0o077 == 0


WORKS: dict[str, Callable[[MemoryStore], object]] = {
    "add": lambda m: m.save("b.md", topic("new words", "B"), AGENT),
    "edit": lambda m: m.save("a.md", topic("new words", "A"), AGENT),
    "remove": lambda m: m.remove("a.md", AGENT),
    "undo": lambda m: m.undo("", UNDO),
}


def begun(base: Path) -> Callable[[], Path]:
    """Copies of a memory with two versions of one file."""
    with opened(base / "first") as memories:
        memories.save("a.md", topic("first", "A"), USER)
        memories.save("a.md", topic("old words", "A"), USER)
    return copies(base / "first")


@pytest.mark.parametrize("name", WORKS)
def test_kill_at_every_write_leaves_old_or_new_and_a_whole_history(name: str, scale: Scale) -> None:
    states = [topic(text, "A") for text in ("first", "old words", "new words")]
    states.append(topic("new words", "B"))

    def work(home: Path, ack: Ack) -> None:
        with opened(home) as memories:
            WORKS[name](memories)
            ack("done")

    def check(home: Path, death: Death) -> None:
        with opened(home) as memories:
            keys = memories.folder.keys()
            data = [memories.folder.files.read(key) for key in keys]
            assert all(one in states for one in data)
            found = memories.look()
            whole(memories)
            if topic("new words", "A") in data:
                assert memories.history.log("a.md")[-1].origin == AGENT
            assert all(v.origin.kind != OUTSIDE for v in found if v.after), "the origin is kept"
            if death.acked:
                assert not found

    with quick_folder() as base:
        assert every_kill(*in_copies(begun(base), work, check), stride=scale.pick(13, 1)) > 6


def test_an_error_at_every_call_leaves_the_old_file_and_says_so(scale: Scale) -> None:
    def work(home: Path) -> None:
        with opened(home) as memories:
            memories.save("a.md", topic("new words", "A"), AGENT)

    def check(home: Path, outcome: Outcome) -> None:
        assert outcome.error is None or isinstance(outcome.error, ReverieError)
        with opened(home) as memories:
            found = memories.folder.files.read("a.md")
            assert found in (topic("old words", "A"), topic("new words", "A"))
            memories.look()
            whole(memories)

    some = ("os.write", "os.fsync", "os.rename")
    calls = scale.pick(some, (*some, "os.open", "os.close"))
    with quick_folder() as base:
        codes = scale.pick((28,), (28, 5, 30))
        assert every_error(*in_copies(begun(base), work, check), codes=codes, calls=calls) > 20


# -- many writers --------------------------------------------------------------------


def _writer(home: Path, me: int, rounds: int) -> None:
    origin = Origin("save", Trust.AGENT, agent=f"w{me}", session=f"s{me}")
    with opened(home) as memories:
        for n in range(rounds):
            memories.save(f"own{me}.md", topic(f"{me}-{n}", f"Own {me}"), origin)
            with memories.folder.locked():
                old = memories.folder.files.read("shared.md")
                with memories.history.by(origin):
                    memories.folder.write("shared.md", old + f"{me}-{n}\n".encode())


@pytest.mark.timeout(300)
def test_many_writers_lose_no_update_and_no_version(scale: Scale) -> None:
    writers, rounds = scale.pick((8, 5), (64, 48))
    with quick_folder() as base:
        with opened(base) as memories:
            memories.save("shared.md", b"start\n", USER)
        at_once(_writer, [(base, n, rounds) for n in range(writers)], "fork")
        with opened(base) as memories:
            assert memories.look() == ()
            whole(memories)
            lines = memories.folder.files.read("shared.md").splitlines()
            assert len(lines) == len(set(lines)) == 1 + writers * rounds
            own = [v for v in memories.history.log() if v.key.startswith("own")]
            assert len(own) == writers * rounds
            assert index_faults(memories.folder) == ()
