"""Crashes, torn tails, full disks and several writers: rows 16 and 27 to 31 of the threats.

The kill and error points themselves, call by call, are in tests/store/test_crash.py.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from reverie.errors import Held, WriteFailed
from reverie.store import BadLine, Folder, Journal, Line, seal
from tests.conftest import Scale
from tests.faults import ERRORS, run_with_error, run_with_kill
from tests.processes import at_once

pytestmark = pytest.mark.spec("1.store")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path / "root") as folder:
        yield folder


def texts(journal: Journal) -> list[str]:
    return [found.text for found in journal.read() if isinstance(found, Line)]


# -- row 16: bytes are bytes ------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe\x00",
        "é\ud800".encode("utf-8", "surrogatepass"),
        "x".encode("utf-16"),
        b"a\r\nb\r",
    ],
)
def test_row_16_contents_are_kept_byte_for_byte(folder: Folder, data: bytes) -> None:
    folder.write("a.md", data)
    assert folder.read("a.md") == data


# -- row 27: whoever reads sees old or new -----------------------------------------------

SIZES = (1, 4_096, 70_000, 1)


def _replace(root: Path, rounds: int) -> None:
    with Folder(root) as folder:
        for number in range(rounds):
            letter = b"%c" % (97 + number % 26)
            folder.write("a.md", letter * SIZES[number % len(SIZES)], durable=False)


def test_row_27_a_reader_never_sees_a_mix(folder: Folder, scale: Scale) -> None:
    folder.write("a.md", b"z")
    rounds = scale.pick(3_000, 100_000)
    child = multiprocessing.get_context("spawn").Process(
        target=_replace, args=(folder.root, rounds)
    )
    child.start()
    seen: set[bytes] = set()
    reads = 0
    while child.is_alive():
        data = folder.read("a.md")
        assert data == data[:1] * len(data)
        assert len(data) in SIZES
        seen.add(data[:1])
        reads += 1
    child.join()
    assert child.exitcode == 0
    print(f"{reads} reads during {rounds} replacements, {len(seen)} contents seen, 0 mixed")
    assert len(seen) > 2


@pytest.mark.parametrize("call", ["os.write", "os.fsync", "os.rename", "os.close"])
def test_row_27_the_next_start_cleans_up(folder: Folder, call: str) -> None:
    folder.write("a.md", b"old")
    root = folder.root

    def work(ack) -> None:
        with Folder(root) as mine:
            mine.write("a.md", b"new" * 1000)

    death = run_with_kill(work, 1, when="before", calls=[call])
    assert death.hit
    assert folder.read("a.md") == b"old"
    assert folder.list() == ("a.md",)
    folder.sweep(older_than=0)
    assert os.listdir(root) == ["a.md"]


# -- row 28: tails ----------------------------------------------------------------------

ONE, TWO = seal('{"n":1}') + b"\n", seal('{"n":2}')
TAILS = {
    "torn": TWO[:11],
    "torn inside a character": '{"x":"é'.encode()[:-1],
    "NULs": b"\0" * 4096,
    "NULs after half a line": TWO[:9] + b"\0" * 512,
    "one brace": b"{",
    "garbage": b"\xff\x00\x80 not json",
    "blank": b"   ",
}


@pytest.mark.parametrize("name", TAILS)
def test_row_28_a_bad_tail_is_reported_kept_and_passed_over(folder: Folder, name: str) -> None:
    before = ONE + ONE + TAILS[name]
    folder.write("j.jsonl", before)
    with Journal.open(folder, "j.jsonl") as journal:
        assert journal.tail is not None
        assert (journal.tail.number, journal.tail.offset) == (3, 2 * len(ONE))
        assert journal.tail.reason
        journal.append(['{"n":3}', '{"n":4}'])
        journal.sync()
        assert texts(journal) == ['{"n":1}', '{"n":1}', '{"n":3}', '{"n":4}']
        bad = [found for found in journal.read() if isinstance(found, BadLine)]
        assert [fault.number for fault in bad] == ([] if name == "blank" else [3])
    assert folder.read("j.jsonl").startswith(before + b"\n")
    with Journal.open(folder, "j.jsonl") as journal:
        assert journal.tail is None


def test_row_28_a_whole_line_that_lacks_its_newline_is_kept(folder: Folder) -> None:
    folder.write("j.jsonl", ONE + TWO)
    with Journal.open(folder, "j.jsonl") as journal:
        assert journal.tail == BadLine(2, len(ONE), "whole, but without its newline")
        assert texts(journal) == ['{"n":1}', '{"n":2}']
        journal.append(['{"n":3}'])
        assert texts(journal) == ['{"n":1}', '{"n":2}', '{"n":3}']
        assert not any(isinstance(found, BadLine) for found in journal.read())


# -- row 29: the middle -------------------------------------------------------------------


def test_row_29_garbage_in_the_middle_costs_only_itself(folder: Folder) -> None:
    middle = {
        b"garbage": "not a JSON object",
        b"\xff\xfe": "not a JSON object",
        b'{"n":\xff}': "has no checksum",
        b"\0\0\0\0": "holds NUL bytes",
        b'{"a":"\0"}': "holds NUL bytes",
        b'{"no":"sum"}': "has no checksum",
        TWO.replace(b"2", b"3", 1): "does not match its checksum",
        TWO + TWO: "does not match its checksum",
        TWO[:-3]: "has no checksum",
        b"[" * 50_000: "not a JSON object",
        b"{" * 50_000: "has no checksum",
    }
    folder.write("j.jsonl", b"".join(ONE + bad + b"\n" for bad in middle) + TWO + b"\n")
    journal = Journal.open(folder, "j.jsonl", write=False)
    assert texts(journal) == ['{"n":1}'] * len(middle) + ['{"n":2}']
    reasons = [found.reason for found in journal.read() if isinstance(found, BadLine)]
    assert reasons == list(middle.values())


def test_row_29_invalid_utf8_under_a_good_checksum_is_a_fault(folder: Folder) -> None:
    body = b'{"a":"\xff"'
    folder.write("j.jsonl", body + b',"sum":"%08x"}\n' % zlib.crc32(body) + ONE)
    journal = Journal.open(folder, "j.jsonl", write=False)
    assert next(iter(journal.read())) == BadLine(1, 0, "not valid UTF-8")
    assert texts(journal) == ['{"n":1}']


def test_row_29_duplicate_lines_are_all_handed_on(folder: Folder) -> None:
    folder.write("j.jsonl", ONE * 3)
    assert texts(Journal.open(folder, "j.jsonl", write=False)) == ['{"n":1}'] * 3


def test_row_29_a_huge_line_is_passed_over(folder: Folder) -> None:
    folder.write("j.jsonl", ONE + seal('{"x":"%s"}' % ("x" * 5_000_000)) + b"\n" + TWO)
    journal = Journal.open(folder, "j.jsonl", write=False, cap=1_000_000)
    assert texts(journal) == ['{"n":1}', '{"n":2}']
    assert [f.number for f in journal.read() if isinstance(f, BadLine)] == [2]


# -- row 30: several writers ---------------------------------------------------------------


def _add(root: Path, who: int, count: int) -> None:
    with Folder(root) as folder:
        for number in range(count):
            folder.append_line("log", b"%d:%d:" % (who, number) + b"x" * 60_000)


def test_row_30_lines_of_several_processes_stay_whole(folder: Folder, scale: Scale) -> None:
    workers, count = scale.pick(4, 16), scale.pick(30, 300)
    at_once(_add, [(folder.root, who, count) for who in range(workers)], "spawn")
    last = dict.fromkeys(range(workers), -1)
    for line in folder.read("log").splitlines():
        who, number, rest = line.split(b":")
        assert rest == b"x" * 60_000
        assert int(number) == last[int(who)] + 1
        last[int(who)] += 1
    assert set(last.values()) == {count - 1}


HOLD = """
import sys
from reverie.store.files import Folder
from reverie.store.journal import Journal
journal = Journal.open(Folder(sys.argv[1]), "j.jsonl")
journal.append(['{"from":"child"}'])
print("held", flush=True)
sys.stdin.read()
"""


def test_row_30_a_journal_has_one_writer_and_the_second_is_told_who(folder: Folder) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(Held) as caught:
            Journal.open(folder, "j.jsonl")
        if sys.platform == "linux":
            assert f"process {child.pid} on " in str(caught.value)
        assert texts(Journal.open(folder, "j.jsonl", write=False)) == ['{"from":"child"}']
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
    with Journal.open(folder, "j.jsonl") as journal:
        journal.append(['{"from":"me"}'])
        assert texts(journal) == ['{"from":"child"}', '{"from":"me"}']


# -- row 31: the disk says no ---------------------------------------------------------------


@pytest.mark.parametrize("code", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["os.write", "os.fsync", "os.rename", "os.open"])
def test_row_31_the_old_file_is_intact_and_the_error_says_why(
    folder: Folder, call: str, code: int
) -> None:
    folder.write("a.md", b"old")
    outcome = run_with_error(lambda: folder.write("a.md", b"new"), 1, code, calls=[call])
    assert isinstance(outcome.error, WriteFailed)
    assert errno.errorcode[code] in str(outcome.error)
    assert os.strerror(code) in str(outcome.error)
    assert folder.read("a.md") == b"old"
    assert os.listdir(folder.root) == ["a.md"]


def test_row_31_a_disk_that_is_really_full(folder: Folder) -> None:
    """Through the kernel: a limit on the size of files stands for the full disk."""
    root = folder.root
    folder.write("a.md", b"old")

    def work(ack) -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))
        with Folder(root) as mine, Journal.open(mine, "j.jsonl") as journal:
            journal.append(['{"n":1}'])
            ack("one")
            for attempt in (
                lambda: mine.write("a.md", b"x" * 10_000),
                lambda: journal.append(['{"x":"%s"}' % ("x" * 10_000)]),
            ):
                try:
                    attempt()
                except WriteFailed as error:
                    ack("EFBIG" if "EFBIG" in str(error) else str(error))
            journal.append(['{"n":2}'])
            journal.sync()
            ack("two")

    death = run_with_kill(work, 0)
    assert death.acked == ["one", "EFBIG", "EFBIG", "two"]
    assert folder.read("a.md") == b"old"
    assert sorted(os.listdir(root)) == ["a.md", "j.jsonl"]
    assert folder.read("j.jsonl") == ONE + TWO + b"\n"
