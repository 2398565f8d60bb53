"""What must not come back: salted hashes of forgotten words, and the guard that knows them.

The words themselves are nowhere. A home has one random salt; an entry is the length of the
words as they are compared and a keyed hash of them. A text is refused if any stretch of that
length hashes the same, so the guard knows them inside longer texts too. Who holds both the salt
and a guess can test the guess, as with any such list: it lies under home, for the user alone.

An entry that is not marked done belongs to a `forget` that was cut off. The list never shrinks
by itself, and a salt once made is never replaced.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

from reverie.errors import InvalidInput, NotFound, StoreError
from reverie.memory.words import ForgetWords, fold, unescaped
from reverie.store.files import Changed, Folder

FOLDER = "forgotten"
SALT = f"{FOLDER}/salt"
LIST = f"{FOLDER}/words.jsonl"
_SIZE = 32


class Forgotten(StoreError, InvalidInput):
    """A text holds words that were asked to be forgotten; it was not written."""


@dataclass(frozen=True, slots=True)
class ForgottenMark:
    """One thing forgotten: what it hashes to, when, and whether all of it is done."""

    id: str
    length: int
    at: float
    done: bool


class ForgottenWords:
    """The list of one home."""

    def __init__(self, home: Path, *, create: bool = True) -> None:
        self.files = Folder(home, create=create)
        self._salt = b""
        self._known: tuple[int, dict[str, ForgottenMark]] = (-1, {})

    def close(self) -> None:
        self.files.close()

    # Adding

    def add(self, words: ForgetWords, at: float, *, done: bool) -> tuple[ForgottenMark, ...]:
        """Refuse these words from now on; `done` once they are gone everywhere."""
        salt = self._make_salt()
        marks = tuple(
            ForgottenMark(_hash(salt, needle), len(needle), at, done) for needle in words.needles
        )
        for mark in marks:
            body = {"v": 1, "hash": mark.id, "length": mark.length, "at": at, "done": done}
            self.files.append_line(LIST, json.dumps(body, separators=(",", ":")).encode())
        self.files.flush(LIST)
        return marks

    def marks(self) -> tuple[ForgottenMark, ...]:
        return tuple(self._marks().values())

    def unfinished(self) -> tuple[ForgottenMark, ...]:
        """What was begun and has not been seen through."""
        return tuple(mark for mark in self.marks() if not mark.done)

    # Refusing

    def within(self, text: str) -> bool:
        """Whether a text holds anything that was forgotten."""
        known = self._marks()
        if not known:
            return False
        salt = self._read_salt()
        lengths = {mark.length for mark in known.values()}
        return any(
            _hash(salt, seen[at : at + length]) in known
            for seen in map(fold, unescaped(text))
            for length in lengths
            for at in range(len(seen) - length + 1)
        )

    def guard(self, key: str, data: bytes) -> None:
        """Refuse bytes, or a name, that would bring forgotten words back."""
        text = data.decode("utf-8", "replace")
        if self.within(text) or self.within(key.rpartition("/")[2]):
            raise Forgotten(
                "It holds words that were asked to be forgotten",
                do="Leave them out; what was forgotten is not learned again",
            )

    # The files

    def _marks(self) -> dict[str, ForgottenMark]:
        try:
            size = self.files.stat(LIST).size
        except NotFound:
            return {}
        if size != self._known[0]:
            found: dict[str, ForgottenMark] = {}
            for line in self.files.read(LIST).split(b"\n"):
                mark = _mark(line)
                if mark is not None:
                    found[mark.id] = mark
            self._known = (size, found)
        return self._known[1]

    def _make_salt(self) -> bytes:
        with contextlib.suppress(Changed):
            self.files.write(SALT, secrets.token_hex(_SIZE).encode() + b"\n", exclusive=True)
        return self._read_salt()

    def _read_salt(self) -> bytes:
        if not self._salt:
            self._salt = self.files.read(SALT).strip()
        return self._salt


def _hash(salt: bytes, text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return blake2b(data, key=salt[:64], digest_size=16).hexdigest()


def _mark(line: bytes) -> ForgottenMark | None:
    try:
        value: Any = json.loads(line)
        found = cast("dict[str, Any]", value)
        return ForgottenMark(
            str(found["hash"]), int(found["length"]), float(found["at"]), bool(found["done"])
        )
    except (ValueError, KeyError, TypeError):
        return None
