"""One small JSON list: forgotten words, review queue, approvals, trust, local settings.

Small lists that outlive a session: words that must not come back, items that wait for a person,
limits that providers named.

Forgotten words themselves are nowhere. A home has one random salt; an entry is the length of the
words as they are compared and a keyed hash of them. A text is refused if any stretch of that
length hashes the same, so the guard knows them inside longer texts too. Who holds both the salt
and a guess can test the guess, as with any such list: it lies under home, for the user alone. An
entry that is not marked done belongs to a `forget` that was cut off. The list never shrinks by
itself, and a salt once made is never replaced.

The review queue is what somebody untrusted wants remembered. An item is one JSON file below the
history, with the whole text, where it came from and why it waits. It is in no index and is never
sent to a model; a person accepts or drops it. What was dropped lies beside it for thirty days and
can be put back. An item that cannot be read is named and left.

A provider that refuses a request says how much it takes: `<home>/learned.json` keeps it by model,
the newest word counts, and the next session with that model begins with it. A file that cannot
be read counts as empty and is replaced by the next thing learned; a limit no window could have
is not taken. Reading never makes a file.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

from reverie.errors import InvalidInput, NotFound, StoreError
from reverie.light import dataclass
from reverie.settings.sources import record, record_key
from reverie.store.files import Changed, Folder
from reverie.store.fs import digest
from reverie.topics.entry import TopicFile
from reverie.topics.redaction import ForgetWords, fold, unescaped_forms
from reverie.topics.trust import CommandEvidence, trust_of
from reverie.topics.versions import Origin

_TRIES = 20


def rewrite(
    folder: Folder,
    key: str,
    make: Callable[[bytes | None], bytes | None],
    most: int | None = None,
) -> bool:
    """Replace a small file by what `make` makes of its bytes, again where others write meanwhile.

    `make` gets None where there is no file, and gives None to leave it. At most `most` bytes are
    read. False where the file was changed by others each time.
    """
    for _ in range(_TRIES):
        before = expect = None
        with contextlib.suppress(NotFound):
            before = folder.read(key, most)
        after = make(before)
        if after is None:
            return True
        if before is not None:
            is_whole = most is None or len(before) < most
            expect = digest(before) if is_whole else folder.digest(key)
        with contextlib.suppress(Changed):
            folder.write(key, after, expect=expect, exclusive=before is None)
            return True
    return False


FORGOTTEN = "forgotten"
SALT = f"{FORGOTTEN}/salt"
LIST = f"{FORGOTTEN}/words.jsonl"
_SIZE = 32


class ForgottenTextRefused(StoreError, InvalidInput, code="forgotten"):
    """A text holds words that were asked to be forgotten; it was not written."""


ForgottenTextRefused.__name__ = "Forgotten"  # as `--json` shows it


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
        self.home = home
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
            line = json.dumps(body, separators=(",", ":")).encode()
            self.files.append_line(LIST, line, durable=True)
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
            for seen in map(fold, unescaped_forms(text))
            for length in lengths
            for at in range(len(seen) - length + 1)
        )

    def guard(self, key: str, data: bytes) -> None:
        """Refuse bytes, or a name, that would bring forgotten words back."""
        text = data.decode("utf-8", "replace")
        if self.within(text) or self.within(key.rpartition("/")[2]):
            raise ForgottenTextRefused(
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
            self.files.write(SALT, os.urandom(_SIZE).hex().encode() + b"\n", exclusive=True)
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
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


REVIEW = "review"
DROPPED = "dropped"
KEPT = 30 * 86_400.0
"""Seconds for which what was dropped can be put back."""
_NO_ITEM = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A memory that waits: its file's name and bytes, origin, and the reasons."""

    id: str
    key: str
    text: str
    at: float
    origin: Origin
    evidence: tuple[CommandEvidence, ...]

    @property
    def body(self) -> str:
        """Its text without the head."""
        return TopicFile(self.key, self.text.encode("utf-8", "replace")).body.strip()

    @property
    def reason(self) -> str:
        """Why it waits, in a line."""
        return "; ".join(f"{found.rule}: {found.words}" for found in self.evidence)


class ReviewQueue:
    """The queue in one history's folder, or what was dropped from it."""

    def __init__(
        self,
        files: Folder,
        *,
        new_id: Callable[[], str] = lambda: os.urandom(6).hex(),
        folder: str = REVIEW,
    ) -> None:
        self._files = files
        self._new_id = new_id
        self._folder = folder

    def add(
        self, key: str, text: str, at: float, origin: Origin, evidence: Sequence[CommandEvidence]
    ) -> ReviewItem:
        """Put a memory in the queue; the same text from the same file waits once."""
        for item in self.items():
            if (item.key, item.text) == (key, text):
                return item
        item = ReviewItem(self._new_id(), key, text, at, origin, tuple(evidence))
        self._files.write(self._key(item.id), _encode(item), exclusive=True)
        return item

    def put(self, item: ReviewItem) -> None:
        """Keep an item as it is, under its own id."""
        self._files.write(self._key(item.id), _encode(item))

    def items(self) -> list[ReviewItem]:
        """All that waits, oldest first."""
        found: list[ReviewItem] = []
        for name in self._names():
            try:
                found.append(self._read(name))
            except (StoreError, InvalidInput):
                continue
        return sorted(found, key=lambda item: (item.at, item.id))

    def unreadable(self) -> list[str]:
        """Names of items that are damaged."""
        known = {item.id for item in self.items()}
        return [name for name in self._names() if name not in known]

    def find(self, name: str) -> ReviewItem:
        """The item that an id, or the beginning of one, names."""
        found = [item for item in self.items() if item.id.startswith(name)]
        if len(found) == 1 and name:
            return found[0]
        if not found:
            raise NotFound(
                "Nothing of this name waits for review",
                where=name,
                do="List the review queue to see the ids",
            )
        raise InvalidInput(
            "Several items begin like that", where=name, do="Give more of the id", code="ambiguous"
        )

    def remove(self, name: str) -> None:
        self._files.remove(self._key(name))

    def drop(self, item: ReviewItem, now: float) -> None:
        """Take an item out of the queue; it can be put back for a while."""
        beside = ReviewQueue(self._files, folder=DROPPED)
        beside.put(ReviewItem(item.id, item.key, item.text, now, item.origin, tuple(item.evidence)))
        self.remove(item.id)
        for old in beside.items():
            if old.at < now - KEPT:
                beside.remove(old.id)

    def dropped(self, now: float) -> list[ReviewItem]:
        """What was dropped lately, the newest first; `at` is when."""
        found = ReviewQueue(self._files, folder=DROPPED).items()
        return [one for one in reversed(found) if one.at >= now - KEPT]

    def restore(self, name: str, now: float) -> ReviewItem:
        """Let something that was dropped wait again."""
        beside = ReviewQueue(self._files, folder=DROPPED)
        item = beside.find(name)
        again = ReviewItem(item.id, item.key, item.text, now, item.origin, tuple(item.evidence))
        self.put(again)
        beside.remove(item.id)
        return again

    def _names(self) -> list[str]:
        try:
            keys = self._files.list(self._folder)
        except NotFound:
            return []
        return [key.removeprefix(f"{self._folder}/").removesuffix(".json") for key in keys]

    def _read(self, name: str) -> ReviewItem:
        data = self._files.read(self._key(name))
        try:
            return _decode(name, json.loads(data))
        except _NO_ITEM as error:
            raise StoreError("An item of the review queue is damaged", where=name) from error

    def _key(self, name: str) -> str:
        return f"{self._folder}/{name}.json"


def _encode(item: ReviewItem) -> bytes:
    body = {
        "v": 1,
        "key": item.key,
        "text": item.text,
        "at": item.at,
        "origin": item.origin.value(),
        "evidence": [{"rule": e.rule, "line": e.line, "words": e.words} for e in item.evidence],
    }
    return json.dumps(body, indent=1).encode() + b"\n"


def _decode(name: str, found: Any) -> ReviewItem:
    value = cast("dict[str, Any]", found)
    about = cast("dict[str, Any]", value["origin"])
    origin = Origin(
        str(about["kind"]),
        trust_of(str(about["trust"])),
        str(about["agent"]),
        str(about["session"]),
        tuple(map(str, about["messages"])),
        str(about["tool"]),
        str(about["note"]),
    )
    evidence = tuple(
        CommandEvidence(str(e["rule"]), int(e["line"]), str(e["words"])) for e in value["evidence"]
    )
    return ReviewItem(
        name, str(value["key"]), str(value["text"]), float(value["at"]), origin, evidence
    )


FILE = "learned.json"
LEAST, MAX = 1_000, 100_000_000
_MOST_BYTES = 1_000_000
_MOST_MODELS = 1_000


def learned_window(home: Path, model: str) -> int | None:
    """The limit known for a model; None where none is, or nothing can be read."""
    with contextlib.suppress(StoreError, NotFound), Folder(home, create=False) as folder:
        return _windows(folder.read(FILE, _MOST_BYTES)).get(model)
    return None


def learn_window(home: Path, model: str, limit: int) -> bool:
    """Keep a limit; False where it is not one a window can have. Others learn meanwhile:
    what they wrote stays."""
    if not model or not LEAST <= limit <= MAX:
        return False

    def with_limit(before: bytes | None) -> bytes | None:
        known = _windows(before)
        if known.get(model) == limit:
            return None
        known.pop(model, None)
        kept = dict([*known.items(), (model, limit)][-_MOST_MODELS:])
        text = json.dumps({"v": 1, "windows": kept}, ensure_ascii=False, indent=1) + "\n"
        return text.encode("utf-8", "replace")

    with Folder(home) as folder:
        if not rewrite(folder, FILE, with_limit, _MOST_BYTES):
            told = "what was learned could not be kept: others write all the time"
            raise StoreError(told, where=FILE)
    return True


def _windows(data: bytes | None) -> dict[str, int]:
    """Model and limit, from a file that may hold anything."""
    try:
        value: Any = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        return {}
    found = cast("dict[str, Any]", value).get("windows") if isinstance(value, dict) else None
    if not isinstance(found, dict):
        return {}
    return {
        name: limit
        for name, limit in cast("dict[str, Any]", found).items()
        if isinstance(limit, int) and not isinstance(limit, bool) and LEAST <= limit <= MAX
    }


# --- What the user decided about local settings files, written into home.
#
# One record for each file, put in place whole; `settings.trust` reads it. Nothing else in home is
# touched, and the settings file itself never.


def decide(home: Path, path: Path, data: bytes, *, trusted: bool) -> None:
    """Record that the user trusts, or declined, exactly these bytes at this place."""
    with Folder(home) as folder:
        folder.write(record_key(path), record(path, data, trusted))


def forget(home: Path, path: Path) -> bool:
    """Take back what was decided about a file; says whether there was anything."""
    if not home.is_dir():
        return False
    with Folder(home) as folder:
        try:
            folder.remove(record_key(path))
        except NotFound:
            return False
    return True
