"""A process that writes to the others and reads what they write, until it is killed.

    python -m tests.agent.mail_course FOLDER NAME COUNT OTHERS…

It sends COUNT letters to each of the others, numbered in their text, and notes each that was
acknowledged in FOLDER/NAME.sent after `put` returned. What it reads is appended to its transcript,
FOLDER/NAME.jsonl, the way an agent's is: a line is written and synced, then it counts as delivered.
Started again it goes on where its files say it was.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from reverie.agent import AgentInbox, AgentMessage, LeaderMailboxes, Mailbox, TeammateKeys
from reverie.errors import Held, NotAvailable
from reverie.store import BadLine, Folder, Journal
from reverie.transcript import EMPTY, Entry, apply, decode, encode
from reverie.world import Notice


def keys_of(folder: Path, name: str, others: list[str]) -> TeammateKeys:
    lead = LeaderMailboxes(folder / "session", _quiet)
    made = {one: lead.keys.key(one, name) or b"" for one in others}
    keys = TeammateKeys(name, lead.keys.secret(name), made)
    lead.close()
    return keys


def _quiet(notice: Notice) -> None:
    raise AssertionError(notice)


class Course:
    def __init__(self, folder: Path, name: str, count: int, others: list[str]) -> None:
        self.name, self.count, self.others = name, count, others
        self.files = Folder(folder)
        self.mail = Folder(folder / "session/mail")
        self.keys = keys_of(folder, name, others)
        self.log = Journal.open(self.files, f"{name}.jsonl")
        self.view = EMPTY
        for line in self.log.read():
            if not isinstance(line, BadLine):
                self.view = apply(self.view, decode(line.text))
        self.post = AgentInbox(lambda: self.view, [Mailbox(self.mail, name, self.keys, _quiet)])
        self.sent = dict.fromkeys(others, 0)
        key = f"{name}.sent"
        if self.files.exists(key):
            for line in self.files.read(key).decode().splitlines():
                to, _, number = line.partition(" ")
                if number:
                    self.sent[to] = max(self.sent[to], int(number))

    def run(self) -> None:
        while True:
            busy = self._send()
            busy = self._read() or busy
            if not busy:
                time.sleep(0.01)  # a process of its own, not a test

    def _send(self) -> bool:
        """The next letter to each; one that was put and not noted is put again under its number,
        as a teammate's results are."""
        busy = False
        for to in self.others:
            number = self.sent[to] + 1
            if number > self.count:
                continue
            letter = AgentMessage(self.name, to, f"{self.name} {to} {number}", number=number)
            try:
                Mailbox(self.mail, to, self.keys).put(letter)
            except (NotAvailable, Held):
                continue
            self.files.append_line(f"{self.name}.sent", f"{to} {number}".encode(), durable=True)
            self.sent[to] = number
            busy = True
        return busy

    def _read(self) -> bool:
        letters = self.post.letters()
        for message in letters:
            at = len(self.view.entries)
            entry = Entry(f"{self.name}-{at}", self.view.leaf, 0.0, message)
            self.log.append([encode(entry)])
            self.log.sync()
            self.view = apply(self.view, entry)
        return bool(letters)


if __name__ == "__main__":
    Course(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]).run()
