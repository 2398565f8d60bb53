"""Letters in courses drawn by chance that are killed, fail and lose power at any call."""

from __future__ import annotations

import contextlib
import errno
import re
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest

from reverie.agent import AgentInbox, AgentMessage, LeaderKeys, Mailbox
from reverie.errors import ReverieError
from reverie.store import BadLine, Folder, Journal
from reverie.transcript import EMPTY, Entry, apply, decode, encode
from tests.breaking import Acked, attempted, cut, failed, killed
from tests.conftest import Scale
from tests.faults import Ack, run_with_error

pytestmark = [pytest.mark.spec("1.courses")]
KEYS = LeaderKeys(b"k" * 32)
OWNER = "mate"
LOG = "mate.jsonl"
_TEXT = re.compile(r"letter (\w+) (\d+) (\d+)")


class Reader:
    """The recipient: what it reads stands in its transcript before it counts as delivered."""

    def __init__(self, base: Path) -> None:
        self.files = Folder(base / "home")
        self.log = Journal.open(self.files, LOG)
        self.view = EMPTY
        for line in self.log.read():
            if not isinstance(line, BadLine):
                self.view = apply(self.view, decode(line.text))
        self.mail = Folder(base / "mail")
        self.post = AgentInbox(lambda: self.view, [Mailbox(self.mail, OWNER, KEYS)])

    def read(self, ack: Ack) -> bool:
        letters = self.post.letters()
        for message in letters:
            entry = Entry(f"e{len(self.view.entries)}", self.view.leaf, 0.0, message)
            self.log.append([encode(entry)])
            self.log.sync()
            self.view = apply(self.view, entry)
            ack("read " + said(entry))
        return bool(letters)

    def close(self) -> None:
        self.log.close()
        self.files.close()
        self.mail.close()


def said(entry: Entry) -> str:
    blocks = getattr(entry.record, "blocks", ())
    known = _TEXT.search(" ".join(block.raw for block in blocks))
    assert known is not None
    return known[0]


class MailCourse:
    """Some senders write to one who reads, in an order drawn by chance."""

    def __init__(self, chance: Random) -> None:
        names = ["lead", "ann", "bob"][: chance.randint(1, 3)]
        self.steps = [chance.choice([*names, OWNER]) for _ in range(chance.randint(3, 7))]
        self.sizes = [chance.choice([1, 20, 5_000]) for _ in self.steps]

    def begin(self, base: Path) -> None:
        self._put(base, "lead", "letter lead 0 0")

    def _put(self, base: Path, sender: str, text: str) -> bool:
        with Folder(base / "mail") as mail:
            Mailbox(mail, OWNER, KEYS).put(AgentMessage(sender, OWNER, text))
        return True

    def act(self, base: Path, ack: Ack) -> None:
        for at, (name, size) in enumerate(zip(self.steps, self.sizes, strict=True), start=1):
            if name == OWNER:
                attempted(self._read, base, ack)
                continue
            text = f"letter {name} {at} {size} {'x' * size}"
            if attempted(self._put, base, name, text):
                ack(f"sent letter {name} {at} {size}")
        ack("over")

    def _read(self, base: Path, ack: Ack) -> None:
        reader = Reader(base)
        try:
            reader.read(ack)
        finally:
            reader.close()

    def check(self, base: Path, acked: Acked) -> None:
        reader = Reader(base)
        while reader.read(lambda _: None):
            pass
        reader.close()
        found = [said(entry) for entry in reader.view.entries]
        assert len(found) == len(set(found)), "a letter came twice"
        assert "letter lead 0 0" in found
        for word in acked:
            kind, _, letter = word.partition(" ")
            assert kind == "over" or letter in found, f"lost: {word}"
        numbers: dict[str, list[int]] = defaultdict(list)
        for letter in found:
            numbers[letter.split()[1]].append(int(letter.split()[2]))
        assert all(one == sorted(one) for one in numbers.values()), "out of order"
        self._put(base, "lead", "letter lead 99 0")
        reader = Reader(base)
        assert reader.read(lambda _: None), "nothing comes any more"
        reader.close()


def test_a_letter_that_was_sent_or_read_outlives_a_kill(scale: Scale) -> None:
    killed(MailCourse, Random(f"mail kills:{scale.seed}"), scale.pick(5, 300))


def test_a_letter_outlives_a_call_that_fails(scale: Scale) -> None:
    failed(MailCourse, Random(f"mail faults:{scale.seed}"), scale.pick(12, 1_000))


def test_a_letter_outlives_a_power_cut(scale: Scale) -> None:
    cut(MailCourse, Random(f"mail power:{scale.seed}"), scale.pick(12, 1_000))


def test_a_disk_that_fails_for_a_moment_costs_no_letter(tmp_path: Path) -> None:
    """What cannot be looked at now is neither an empty box nor a forged letter."""
    course = MailCourse(Random(0))
    course.begin(tmp_path)
    for call in ("os.listdir", "os.open", "os.read"):
        for n in range(1, 12):
            with Folder(tmp_path / "mail") as mail, contextlib.suppress(ReverieError):
                box = Mailbox(mail, OWNER, KEYS)
                run_with_error(lambda b=box: b.waiting({}), n, errno.EIO, calls=[call])
                letter = AgentMessage("lead", OWNER, f"letter lead {n} {len(call)}")
                run_with_error(lambda b=box, one=letter: b.put(one), n, errno.EIO, calls=[call])
    with Folder(tmp_path / "mail") as mail:
        first, *_ = Mailbox(mail, OWNER, KEYS).waiting({})
    assert first.text == "letter lead 0 0"
    assert not list((tmp_path / "mail").rglob("*.refused"))
