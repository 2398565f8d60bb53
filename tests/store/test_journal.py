"""The journal: what was acknowledged is read back, whatever lies between and after it."""

from __future__ import annotations

import errno
import gc
import json
import os
import resource
import stat
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import Held, InvalidMessage, NotFound, PathRefused, StoreError, WriteFailed
from reverie.store import BadLine, Folder, Journal, Line, seal, unseal
from tests.conftest import Scale
from tests.faults import Plan, open_files, quick_folder, run_with_error, shim

pytestmark = pytest.mark.spec("1.store")

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab{},:é"), inner),
    max_leaves=6,
)
records = st.dictionaries(st.text("abé\"'{}sum"), values, max_size=4).map(
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path / "root") as folder:
        yield folder


def texts(journal: Journal, *, checked: bool = True) -> list[str]:
    return [found.text for found in journal.read(checked=checked) if isinstance(found, Line)]


def faults(journal: Journal, *, checked: bool = True) -> list[BadLine]:
    return [found for found in journal.read(checked=checked) if isinstance(found, BadLine)]


def raw(folder: Folder, data: bytes, key: str = "j.jsonl") -> Journal:
    (folder.root / key).write_bytes(data)
    return Journal.open(folder, key, write=False)


@given(st.lists(st.lists(records, max_size=3), max_size=5))
def test_lines_come_back_as_they_were_handed_in(batches: list[list[str]]) -> None:
    with quick_folder() as path, Folder(path) as folder:
        with Journal.open(folder, "j.jsonl") as journal:
            for batch in batches:
                journal.append(batch)
            expected = [text for batch in batches for text in batch]
            assert texts(journal) == expected
            assert faults(journal) == []
        for line in folder.read("j.jsonl").splitlines():
            assert len(json.loads(line)["sum"]) == 8


@given(records)
def test_a_seal_is_the_crc_of_what_stands_before_it(text: str) -> None:
    line = seal(text)
    assert json.loads(line) == json.loads(text) | {"sum": line[-10:-2].decode()}
    assert int(line[-10:-2], 16) == zlib.crc32(text[:-1].encode())
    assert unseal(line) == (text.encode(), True)


@given(records, st.data())
def test_any_flipped_bit_is_found(text: str, data: st.DataObject) -> None:
    line = bytearray(seal(text))
    line[data.draw(st.integers(0, len(line) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found = unseal(bytes(line))
    assert found is None or not found[1]


def test_every_flipped_bit_of_a_line_costs_that_line_alone() -> None:
    sealed = seal('{"a":"éx"}')
    with quick_folder() as path, Folder(path) as folder:
        for place in range(len(sealed)):
            for bit in range(8):
                bad = bytearray(sealed)
                bad[place] ^= 1 << bit
                journal = raw(
                    folder, seal('{"n":1}') + b"\n" + bad + b"\n" + seal('{"n":3}\n'[:-1])
                )
                got = texts(journal)
                assert got == ['{"n":1}', '{"n":3}'], (place, bit)


def test_offsets_and_numbers_lead_back_to_the_line(folder: Folder) -> None:
    with Journal.open(folder, "j.jsonl") as journal:
        journal.append(['{"n":%d}' % n for n in range(20)])
        lines = [found for found in journal.read() if isinstance(found, Line)]
        assert [line.number for line in lines] == list(range(1, 21))
        for line in lines:
            again = next(journal.read(line.offset))
            assert isinstance(again, Line)
            assert (again.text, again.offset, again.end) == (line.text, line.offset, line.end)
        assert lines[-1].end == journal.size() == folder.stat("j.jsonl").size
        journal.append(['{"n":20}'])
        assert [found.text for found in journal.read(lines[-1].end)] == ['{"n":20}']  # type: ignore[union-attr]


def test_lines_longer_than_a_read_are_put_together(folder: Folder) -> None:
    sizes = [0, 1, 5, 1 << 20, 3_000_000, 7]
    with Journal.open(folder, "j.jsonl") as journal:
        journal.append(['{"x":"%s"}' % ("é" * size) for size in sizes])
        assert [len(text) for text in texts(journal)] == [size + 8 for size in sizes]


def test_nothing_to_append_writes_nothing(folder: Folder) -> None:
    with Journal.open(folder, "j.jsonl") as journal:
        journal.append([])
        assert journal.size() == 0
        assert list(journal.read()) == []


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "{", "}", '{"a":1', '{"a":"x\ny"}', '{"a":1}\n', '{"a":1}\r', '{"\0":1}'],
)
def test_what_is_no_one_line_object_is_refused_whole(folder: Folder, text: str) -> None:
    with Journal.open(folder, "j.jsonl") as journal:
        with pytest.raises(InvalidMessage):
            journal.append(['{"a":1}', text])
        assert journal.size() == 0


def test_a_lone_surrogate_is_refused_before_anything_is_written(folder: Folder) -> None:
    with Journal.open(folder, "j.jsonl") as journal:
        with pytest.raises(InvalidMessage, match="surrogate"):
            journal.append(['{"a":1}', '{"a":"\ud800"}'])
        assert journal.size() == 0


def test_a_line_that_could_not_be_read_back_is_refused(folder: Folder) -> None:
    with Journal.open(folder, "j.jsonl", cap=100) as journal:
        journal.append(['{"a":"%s"}' % ("x" * 75)])
        with pytest.raises(InvalidMessage, match="longer than 100"):
            journal.append(['{"a":"%s"}' % ("x" * 76)])
        assert len(texts(journal)) == 1


def test_a_line_as_long_as_one_may_be_is_read_and_a_longer_one_named(folder: Folder) -> None:
    whole = seal('{"a":"%s"}' % ("x" * 75))
    raw(folder, whole)
    reasons = []
    for cap in (len(whole), len(whole) - 1):
        found = list(Journal.open(folder, "j.jsonl", write=False, cap=cap).read())
        reasons.append([one.reason if isinstance(one, BadLine) else "" for one in found])
    assert reasons == [[""], ["longer than a line may be"]]


# -- other programs' lines ------------------------------------------------------------


def test_lines_of_other_programs_read_unchecked(folder: Folder) -> None:
    data = b'\xef\xbb\xbf{"a":1}\r\n\r\n  {"b": 2}\n' + seal('{"c":3}') + b'\n{"d":"\xe2\x80\xa8"}'
    journal = raw(folder, data)
    assert texts(journal, checked=False) == ['{"a":1}', '  {"b": 2}', '{"c":3}', '{"d":"\u2028"}']
    assert faults(journal, checked=False) == []
    assert texts(journal) == ['{"c":3}']
    assert [fault.number for fault in faults(journal)] == [1, 3, 5]


def test_an_unchecked_end_without_newline_must_be_whole(folder: Folder) -> None:
    for tail in (b'{"a":{"b":1}', b'{"a"', b"{" * 100_000):
        journal = raw(folder, b'{"x":1}\n' + tail)
        assert texts(journal, checked=False) == ['{"x":1}']
        assert [fault.offset for fault in faults(journal, checked=False)] == [8]


def test_a_wrong_checksum_is_a_fault_unchecked_too(folder: Folder) -> None:
    journal = raw(folder, seal('{"a":1}').replace(b"1", b"2", 1) + b"\n")
    assert faults(journal, checked=False) == [BadLine(1, 0, "does not match its checksum")]


# -- opening, holding, closing ---------------------------------------------------------


def test_reading_needs_a_journal_and_no_lock(folder: Folder) -> None:
    with pytest.raises(NotFound):
        Journal.open(folder, "j.jsonl", write=False)
    with Journal.open(folder, "j.jsonl") as writer:
        reader = Journal.open(folder, "j.jsonl", write=False)
        writer.append(['{"a":1}'])
        assert texts(reader) == ['{"a":1}']
        assert reader.size() == writer.size()
        for attempt in (lambda: reader.append(['{"a":1}']), reader.sync):
            with pytest.raises(StoreError, match="not open for writing"):
                attempt()


def test_a_closed_journal_writes_no_more_and_lets_others(folder: Folder) -> None:
    journal = Journal.open(folder, "j.jsonl")
    with pytest.raises(Held) as caught:
        Journal.open(folder, "j.jsonl")
    if sys.platform == "linux":
        assert f"process {os.getpid()}" in str(caught.value)
    journal.close()
    journal.close()
    with pytest.raises(StoreError):
        journal.append(['{"a":1}'])
    Journal.open(folder, "j.jsonl").close()


def test_a_dropped_journal_lets_go(folder: Folder) -> None:
    Journal.open(folder, "j.jsonl").append(['{"a":1}'])
    gc.collect()
    Journal.open(folder, "j.jsonl").close()


def test_a_forked_child_neither_writes_nor_frees_the_lock(folder: Folder) -> None:
    journal = Journal.open(folder, "j.jsonl")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            journal.append(['{"a":1}'])
        except Held:
            journal.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(Held):
        Journal.open(folder, "j.jsonl")
    assert journal.size() == 0
    journal.close()


def test_a_journal_replaced_while_it_was_opened_is_opened_again(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("j.jsonl", b"")
    real, left = os.lstat, [3]

    def lstat(*args, **kwargs):
        if left[0]:
            left[0] -= 1
            monkeypatch.undo()
            folder.write("j.jsonl", seal('{"a":1}') + b"\n", durable=False)
            monkeypatch.setattr(os, "lstat", lstat)
        return real(*args, **kwargs)

    monkeypatch.setattr(os, "lstat", lstat)
    with Journal.open(folder, "j.jsonl") as journal:
        journal.append(['{"b":2}'])
        assert texts(journal) == ['{"a":1}', '{"b":2}']
    assert left == [0]


def test_a_journal_is_private_and_no_link(folder: Folder, tmp_path: Path) -> None:
    Journal.open(folder, "s/agents/j.jsonl").close()
    path = folder.root / "s" / "agents" / "j.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    outside = tmp_path / "outside"
    outside.write_bytes(b"")
    (folder.root / "link.jsonl").symlink_to(outside)
    os.link(outside, folder.root / "hard.jsonl")
    os.mkfifo(folder.root / "pipe.jsonl")
    for key in ("link.jsonl", "hard.jsonl", "pipe.jsonl", "s"):
        with pytest.raises(PathRefused):
            Journal.open(folder, key)
    assert outside.read_bytes() == b""


def test_no_descriptor_is_left_open(folder: Folder) -> None:
    before = open_files()
    with Journal.open(folder, "j.jsonl") as journal:
        journal.append(['{"a":1}'] * 3)
        journal.sync()
        next(iter(journal.read()))
        for _ in journal.read():
            break
        gc.collect()
        with pytest.raises(Held):
            Journal.open(folder, "j.jsonl")
    assert open_files() == before


# -- durability ------------------------------------------------------------------------


def synced(work) -> list[str]:
    calls = run_with_error(work, 0, None).calls
    return [call for call in calls if call in ("os.fsync", "os.fdatasync")]


def test_the_first_sync_makes_the_name_durable_and_an_idle_one_does_nothing(
    folder: Folder,
) -> None:
    for _ in range(2):
        with Journal.open(folder, "a/j.jsonl") as journal:
            assert synced(lambda: journal.append(['{"a":1}'])) == []
            assert synced(journal.sync) == ["os.fdatasync", "os.fsync", "os.fsync"]
            assert synced(journal.sync) == []
            journal.append(['{"a":1}'])
            assert synced(journal.sync) == ["os.fdatasync"]


@pytest.mark.parametrize("call", ["os.fdatasync", "os.fsync"])
def test_after_a_failed_sync_nothing_is_synced_or_written_until_reopened(
    folder: Folder, call: str
) -> None:
    journal = Journal.open(folder, "j.jsonl")
    journal.append(['{"a":1}'])
    outcome = run_with_error(journal.sync, 1, errno.EIO, calls=[call])
    assert isinstance(outcome.error, WriteFailed)
    assert "EIO" in str(outcome.error)
    with shim(Plan(0)) as seen:
        for attempt in (journal.sync, lambda: journal.append(['{"b":2}']), journal.sync):
            with pytest.raises(WriteFailed, match="open the session again"):
                attempt()
    assert seen.calls == []
    journal.close()
    with Journal.open(folder, "j.jsonl") as again:
        again.append(['{"c":3}'])
        again.sync()
        assert texts(again) == ['{"a":1}', '{"c":3}']


def test_a_failed_append_is_taken_back(folder: Folder) -> None:
    with Journal.open(folder, "j.jsonl") as journal:
        journal.append(['{"a":1}'])
        outcome = run_with_error(
            lambda: journal.append(['{"b":2}', '{"c":3}']),
            1,
            errno.ENOSPC,
            short=True,
            calls=["os.write"],
        )
        assert isinstance(outcome.error, WriteFailed)
        assert "No space left on device (ENOSPC)" in str(outcome.error)
        assert folder.read("j.jsonl") == seal('{"a":1}') + b"\n"
        journal.append(['{"d":4}'])
        assert texts(journal) == ['{"a":1}', '{"d":4}']
        assert faults(journal) == []


def test_a_failed_append_that_cannot_be_taken_back_swallows_nothing(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "no")

    with Journal.open(folder, "j.jsonl") as journal:
        journal.append(['{"a":1}'])
        with monkeypatch.context() as patch:
            patch.setattr(os, "ftruncate", refuse)
            outcome = run_with_error(
                lambda: journal.append(['{"b":2}']),
                1,
                errno.ENOSPC,
                short=True,
                calls=["os.write"],
            )
        assert isinstance(outcome.error, WriteFailed)
        journal.append(['{"c":3}'])
        assert texts(journal) == ['{"a":1}', '{"c":3}']
        assert [fault.number for fault in faults(journal)] == [2]


def test_a_file_cut_short_by_others_is_not_filled_with_zeros(folder: Folder) -> None:
    with Journal.open(folder, "j.jsonl") as journal:
        journal.append(['{"a":1}', '{"b":2}'])
        os.truncate(folder.root / "j.jsonl", 0)
        journal.append(['{"c":3}'])
        assert texts(journal) == ['{"c":3}']

        def cut_and_fail(fd: int, data: object) -> int:
            os.truncate(folder.root / "j.jsonl", 0)
            raise OSError(errno.ENOSPC, "full")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "write", cut_and_fail)
            with pytest.raises(WriteFailed):
                journal.append(['{"d":4}'])
        journal.append(['{"e":5}'])
        assert texts(journal) == ['{"e":5}']
        assert b"\0" not in folder.read("j.jsonl")


# -- tails and garbage -----------------------------------------------------------------


def test_a_journal_cut_at_every_byte_keeps_its_whole_lines() -> None:
    batch = ['{"n":1,"é":"日本"}', "{}", '{"n":3}']
    lines = [seal(text) + b"\n" for text in batch]
    whole = b"".join(lines)
    with quick_folder() as path, Folder(path) as folder:
        for cut in range(len(whole) + 1):
            (path / "j.jsonl").write_bytes(whole[:cut])
            ends = [len(b"".join(lines[: n + 1])) for n in range(len(lines))]
            # A line is whole when all of it but perhaps the newline is there.
            kept = [text for text, end in zip(batch, ends, strict=True) if end - 1 <= cut]
            with Journal.open(folder, "j.jsonl") as journal:
                start = max([0, *[end for end in ends if end <= cut]])
                if start == cut:
                    assert journal.tail is None
                else:
                    assert journal.tail is not None
                    assert journal.tail.offset == start
                    assert journal.tail.number == ends.index(start) + 2 if start else 1
                journal.append(['{"next":1}'])
                assert texts(journal) == [*kept, '{"next":1}']
                assert folder.read("j.jsonl")[:cut] == whole[:cut]


@given(st.binary(max_size=60), st.lists(records, min_size=1, max_size=3))
def test_any_tail_leaves_the_lines_before_and_after_it(tail: bytes, batch: list[str]) -> None:
    with quick_folder() as path, Folder(path) as folder:
        before = b"".join(seal(text) + b"\n" for text in batch)
        (path / "j.jsonl").write_bytes(before + tail)
        with Journal.open(folder, "j.jsonl") as journal:
            journal.append(batch)
            got = texts(journal)
            assert got[: len(batch)] == batch
            assert got[-len(batch) :] == batch
        assert folder.read("j.jsonl").startswith(before + tail)


@given(st.lists(st.binary(max_size=40) | records.map(seal), max_size=12), st.booleans())
def test_reading_never_raises_and_places_everything(pieces: list[bytes], checked: bool) -> None:
    data = b"\n".join(pieces)
    with quick_folder() as path, Folder(path) as folder:
        (path / "j.jsonl").write_bytes(data)
        journal = Journal.open(folder, "j.jsonl", write=False)
        for found in journal.read(checked=checked):
            assert data[: found.offset].count(b"\n") == found.number - 1
            assert found.offset == 0 or data[found.offset - 1 : found.offset] == b"\n"


def test_row_22_huge_lines_are_passed_over_in_little_memory(folder: Folder, scale: Scale) -> None:
    gap = scale.pick(100 << 20, 1 << 30)
    path = folder.root / "j.jsonl"
    with path.open("wb") as file:
        file.write(seal('{"a":1}') + b"\n")
        file.seek(gap, os.SEEK_CUR)
        file.write(b"\n" + seal('{"b":2}') + b"\n")
        file.truncate(file.tell() + gap)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Journal.open(folder, "j.jsonl", cap=1 << 20) as journal:
        assert journal.tail is not None
        journal.append(['{"c":3}'])
        assert texts(journal) == ['{"a":1}', '{"b":2}', '{"c":3}']
        assert [fault.number for fault in faults(journal)] == [2, 4]
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert kilobytes / (1024 if sys.platform == "darwin" else 1) < 50_000


def test_a_disk_that_cannot_be_read_is_an_error_in_our_words(folder: Folder) -> None:
    with Journal.open(folder, "j.jsonl") as journal:
        journal.append(['{"a":1}'])
        outcome = run_with_error(lambda: list(journal.read()), 1, errno.EIO, calls=["os.read"])
        assert isinstance(outcome.error, StoreError)
        assert "EIO" in str(outcome.error)


def test_a_journal_replaced_without_end_is_given_up(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "samestat", lambda one, other: False)
    before = open_files()
    with pytest.raises(StoreError, match="again and again"):
        Journal.open(folder, "j.jsonl")
    assert open_files() == before
