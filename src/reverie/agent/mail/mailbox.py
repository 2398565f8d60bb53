"""Mailboxes in files, a leader's, and one agent's inbox.

Mailboxes in files: one folder a recipient, in it one a sender, in that one file a message.

    <session>/mail/reviewer/lead/000000000007.json

A message is acknowledged when `put` returns: it is on the disk, whole. Each sender counts its own,
so they are taken in that order. One is delivered when it stands in the recipient's transcript; only
then the cursor moves and the file goes, and after a crash the transcript says what was delivered:
none comes twice, none is lost, whichever side dies. What is torn, too large, not signed by its
sender or owned by another user is refused, said, and set aside. How many wait is bounded, and how
many are taken at once. Nothing here waits, and nothing here calls a model.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from reverie.agent.mail.messages import (
    LEAD,
    MAX_BYTES,
    NAME,
    AgentMessage,
    LeaderKeys,
    MailKeys,
    check_message,
    check_name,
    decode,
    delivered_numbers,
    encode,
)
from reverie.errors import InvalidMessage, NotAvailable, NotFound, PathRefused, StoreError
from reverie.store.files import Changed, Folder
from reverie.store.fs import close, read_open, words
from reverie.store.lock import FileLock
from reverie.text.safety import clean
from reverie.transcript.records import UserMessage
from reverie.transcript.view import View
from reverie.world import Notice, Say, say_nothing

MAX_WAITING = 100
"""Messages of one sender that may wait for one recipient."""
MAX_SENDERS = 64
MAX_TAKEN = 20
"""Messages that are taken at once."""
MAX_TAKEN_CHARACTERS = 40_000
MAX_SET_ASIDE = 20
PATIENCE = 10.0
CURSOR = "cursor"
_REFUSED = (InvalidMessage, PathRefused)
_FILE = re.compile(r"(\d{12})\.json")
_SET_ASIDE = ".refused"


class Mailbox:
    """What is sent to one recipient. Both sides open it, each in its own process."""

    def __init__(self, root: Folder, owner: str, keys: MailKeys, say: Say = say_nothing) -> None:
        self.owner = check_name(owner)
        self._root = root
        self._keys = keys
        self._say = say
        self._aside = 0

    # --- the sender's side

    def next_number(self, sender: str) -> int:
        """The number that this sender's next letter gets."""
        return self._newest(sender, self._numbers(sender)) + 1

    def put(self, letter: AgentMessage) -> AgentMessage:
        """Send; the letter with its number. It is on the disk when this returns. One that has a
        number already is sent once, however often it is put."""
        sender = check_name(letter.sender)
        key = self._keys.key(sender, self.owner)
        if key is None:
            raise InvalidMessage("a message can be signed by its own sender alone", where=sender)
        letter = check_message(letter)
        with self._hold_lock(sender):
            numbers, taken = self._numbers(sender), self._cursor(sender)
            if letter.number and (letter.number <= taken or self._is_ours(sender, letter.number)):
                return letter
            waiting = [number for number in numbers if number > taken]
            if len(waiting) >= MAX_WAITING:
                raise NotAvailable(
                    f"{MAX_WAITING} messages of yours wait there already",
                    where=self.owner,
                    do="Go on without an answer, or wait until some are read",
                )
            number = letter.number or self._newest(sender, numbers) + 1
            sent = replace(letter, number=number)
            data = encode(sent, key)
            self._root.write(self._key(sender, sent.number), data, twin="")
            return sent

    def _newest(self, sender: str, numbers: list[int]) -> int:
        """The last number that this sender used; what others put there does not count."""
        taken = self._cursor(sender)
        own = (n for n in reversed(numbers) if n > taken and self._is_ours(sender, n))
        return next(own, taken)

    def _is_ours(self, sender: str, number: int) -> bool:
        """Whether this sender's own letter stands there; what cannot be read now is not decided,
        since a number that is given again would take the place of a letter."""
        with contextlib.suppress(*_REFUSED, NotFound):
            self._read(sender, number)
            return True
        return False

    # --- the recipient's side

    def waiting(self, delivered: Mapping[str, int], *, bounded: bool = True) -> list[AgentMessage]:
        """Messages behind those that were delivered, in each sender's order; a bounded number.
        What is not to be trusted is set aside. Where a disk fails, that sender's wait."""
        found: list[AgentMessage] = []
        characters = 0
        for letter in self._letters(delivered):
            characters += len(letter.text)
            full = len(found) >= MAX_TAKEN or characters > MAX_TAKEN_CHARACTERS
            if bounded and found and full:
                return found
            found.append(letter)
        return found

    def _letters(self, delivered: Mapping[str, int]) -> Generator[AgentMessage]:
        for sender in self._senders():
            try:
                after = max(self._cursor(sender), delivered.get(sender, 0))
                for number in (n for n in self._numbers(sender) if n > after):
                    letter = self._read_trusted(sender, number)
                    if letter is not None:
                        yield letter
            except StoreError as error:
                self._say(Notice("mail", f"messages of {sender} wait: {error}", "warning"))

    def clear(self, delivered: Mapping[str, int]) -> None:
        """What was delivered is not needed any more: the cursor first, then the files. Where the
        folder was lost, or the transcript is a copy, numbers go on behind those delivered."""
        known = (name for name in delivered if NAME.fullmatch(name))
        mine = (name for name in known if self._keys.key(name, self.owner) is not None)
        for sender in dict.fromkeys((*self._senders(), *mine)):
            newest = delivered.get(sender, 0)
            if newest > self._cursor(sender):
                self._root.write(f"{self.owner}/{sender}/{CURSOR}", str(newest).encode(), twin="")
            done = max(newest, self._cursor(sender))
            for number in (n for n in self._numbers(sender) if n <= done):
                with contextlib.suppress(NotFound):
                    self._root.remove(self._key(sender, number), durable=False)

    def _read_trusted(self, sender: str, number: int) -> AgentMessage | None:
        try:
            return self._read(sender, number)
        except NotFound:
            return None
        except _REFUSED as error:
            place = clean(str(self._root.path(self._key(sender, number))))
            self._say(Notice("mail", f"a message was refused, {error.what}: {place}", "warning"))
            self._set_aside(sender, number)
            return None

    def _set_aside(self, sender: str, number: int) -> None:
        path = self._root.path(self._key(sender, number))
        self._aside += 1
        with contextlib.suppress(OSError):
            if self._aside <= MAX_SET_ASIDE:
                os.rename(path, path.with_suffix(_SET_ASIDE))
            else:
                os.unlink(path)

    def _read(self, sender: str, number: int) -> AgentMessage:
        fd = self._root.open_read(self._key(sender, number))
        try:
            if os.fstat(fd).st_uid != os.getuid():
                raise InvalidMessage("it belongs to another user")
            data = read_open(fd, MAX_BYTES + 1)
        except OSError as error:
            where = str(self._root.path(self._key(sender, number)))
            raise StoreError(f"It could not be read: {words(error)}", where=where) from error
        finally:
            close(fd)
        return decode(data, self._keys, sender, self.owner, number)

    # --- both

    def _senders(self) -> list[str]:
        names = _names(self._root.root / self.owner)
        found = [n for n in sorted(names) if (self._root.root / self.owner / n).is_dir()]
        return [n for n in found if self._keys.key(n, self.owner) is not None][:MAX_SENDERS]

    def _numbers(self, sender: str) -> list[int]:
        """The numbers that are there, the oldest first; no more than may wait."""
        names = _names(self._root.root / self.owner / sender)
        found = sorted(int(known[1]) for name in names if (known := _FILE.fullmatch(name)))
        return found[: 2 * MAX_WAITING]

    def _cursor(self, sender: str) -> int:
        try:
            text = self._root.read(f"{self.owner}/{sender}/{CURSOR}", 32)
        except NotFound:
            return 0
        return int(text) if text.isdigit() and len(text) <= 12 else 0

    def _key(self, sender: str, number: int) -> str:
        return f"{self.owner}/{sender}/{number:012}.json"

    @contextlib.contextmanager
    def _hold_lock(self, sender: str) -> Generator[None]:
        with self._root.sub(f"{self.owner}/{sender}"):
            pass  # so that the lock has a folder
        with FileLock(self._root.root / self.owner / f"{sender}.lock").hold(PATIENCE):
            yield


def _names(folder: Path) -> list[str]:
    """What is in a folder; nothing where there is none. A disk that fails is not an empty one: a
    number that is given again would take the place of a letter."""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        what = f"The mail could not be looked at: {words(error)}"
        raise StoreError(what, where=str(folder)) from error


# --- The mail of a lead: the folder of its session's mailboxes, its own among them, and the keys.
#
# The session's master key is made once and kept beside the mailboxes, where its user alone can
# read: a letter outlives the process that it was sent in. Who can read that file can sign as
# anybody.


MAIL = "mail"
KEY = "key"
KEY_BYTES = 32


class LeaderMailboxes:
    """All mailboxes of one session, as its lead opens them."""

    def __init__(self, session: Path, say: Say) -> None:
        self.folder = Folder(session / MAIL)
        self.keys = LeaderKeys(_master(self.folder))
        self.own = Mailbox(self.folder, LEAD, self.keys, say)

    def put(self, letter: AgentMessage) -> AgentMessage:
        """Send to whomever it is for."""
        return Mailbox(self.folder, letter.to, self.keys).put(letter)

    def close(self) -> None:
        self.folder.close()


def is_there(session: Path) -> bool:
    """Whether a session had mail before."""
    return (session / MAIL / KEY).exists()


def _master(folder: Folder) -> bytes:
    made = secrets.token_bytes(KEY_BYTES)
    try:
        found = folder.read(KEY, 2 * KEY_BYTES)
    except NotFound:
        try:
            folder.write(KEY, made, exclusive=True)
            return made
        except Changed:  # somebody else was quicker
            found = folder.read(KEY, 2 * KEY_BYTES)
    if len(found) != KEY_BYTES:  # damaged: what was signed with it is lost either way
        folder.write(KEY, made)
        return made
    return found


# --- One agent's end of the post: what waits for it, given to its conversation, once.
#
# A box is anything that letters wait in: a `Mailbox` of files, or a `InMemoryQueue` in this
# process. What a letter's record in the transcript says is what counts as delivered, so a letter
# that was given and not recorded is given again. Nothing here knows who may write to whom.


class MessageQueue(Protocol):
    """Where letters wait for one recipient."""

    def put(self, letter: AgentMessage) -> AgentMessage: ...
    def waiting(self, delivered: Mapping[str, int]) -> list[AgentMessage]: ...
    def clear(self, delivered: Mapping[str, int]) -> None: ...


class InMemoryQueue:
    """A box in this process: nothing outlives it."""

    def __init__(self, owner: str, next_number: Callable[[], int]) -> None:
        self.owner = owner
        self._next_number = next_number  # of all letters in this process
        self._letters: list[AgentMessage] = []

    def put(self, letter: AgentMessage) -> AgentMessage:
        letter = check_message(letter)
        mine = [one for one in self._letters if one.sender == letter.sender]
        if letter.kind != "result" and len(mine) >= MAX_WAITING:  # a result is never turned away
            raise NotAvailable(
                f"{MAX_WAITING} messages of yours wait there already",
                where=self.owner,
                do="Go on without an answer, or wait until some are read",
            )
        sent = replace(letter, here=True, number=self._next_number())
        self._letters.append(sent)
        return sent

    def waiting(self, delivered: Mapping[str, int]) -> list[AgentMessage]:
        found = [one for one in self._letters if one.number > delivered.get(one.series, 0)]
        return found[:MAX_TAKEN]

    def clear(self, delivered: Mapping[str, int]) -> None:
        self._letters = [n for n in self._letters if n.number > delivered.get(n.series, 0)]


class AgentInbox:
    """The letters of one agent, from all its boxes, as messages of its conversation."""

    def __init__(
        self,
        view: Callable[[], View],
        boxes: Sequence[MessageQueue],
        seen: Callable[[AgentMessage], None] = lambda _: None,
    ) -> None:
        self._view = view
        self._boxes = boxes
        self._seen = seen
        self._known: dict[str, int] = {}
        self._looked = 0  # entries of the transcript that were looked at

    @property
    def delivered(self) -> Mapping[str, int]:
        entries = self._view().entries
        if len(entries) < self._looked:
            self._looked = 0
        for name, number in delivered_numbers(entries[self._looked :]).items():
            self._known[name] = max(number, self._known.get(name, 0))
        self._looked = len(entries)
        return self._known

    def waiting(self) -> list[AgentMessage]:
        done = self.delivered
        return [letter for box in self._boxes for letter in box.waiting(done)]

    def letters(self) -> list[UserMessage]:
        """What waits, for the conversation; what it holds already is cleared away."""
        done = self.delivered
        for box in self._boxes:
            box.clear(done)
        found = self.waiting()
        for letter in found:
            self._seen(letter)
        return [letter.message() for letter in found]
