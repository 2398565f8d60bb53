"""The review queue: what somebody untrusted wants remembered, waiting for a person.

An item is one JSON file below the history, with the whole text, where it came from and why it
waits. It is in no index and is never sent to a model; a person accepts or drops it. An item that
cannot be read is named and left where it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

from reverie.errors import InvalidInput, NotFound, StoreError
from reverie.memory.trust import Evidence, trust_of
from reverie.memory.versions import Origin
from reverie.store.files import Folder

FOLDER = "review"


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A memory that waits: its file's name and bytes, origin, and the reasons."""

    id: str
    key: str
    text: str
    at: float
    origin: Origin
    evidence: tuple[Evidence, ...]


class Review:
    """The queue in one history's folder."""

    def __init__(
        self, files: Folder, *, new_id: Callable[[], str] = lambda: uuid4().hex[:12]
    ) -> None:
        self._files = files
        self._new_id = new_id

    def add(
        self, key: str, text: str, at: float, origin: Origin, evidence: Sequence[Evidence]
    ) -> ReviewItem:
        """Put a memory in the queue; the same text from the same file waits once."""
        for item in self.items():
            if (item.key, item.text) == (key, text):
                return item
        item = ReviewItem(self._new_id(), key, text, at, origin, tuple(evidence))
        self._files.write(_key(item.id), _encode(item), exclusive=True)
        return item

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
        raise InvalidInput("Several items begin like that", where=name, do="Give more of the id")

    def remove(self, name: str) -> None:
        self._files.remove(_key(name))

    def _names(self) -> list[str]:
        try:
            keys = self._files.list(FOLDER)
        except NotFound:
            return []
        return [key.removeprefix(f"{FOLDER}/").removesuffix(".json") for key in keys]

    def _read(self, name: str) -> ReviewItem:
        data = self._files.read(_key(name))
        try:
            return _decode(name, json.loads(data))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError("An item of the review queue is damaged", where=name) from error


def _key(name: str) -> str:
    return f"{FOLDER}/{name}.json"


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
        Evidence(str(e["rule"]), int(e["line"]), str(e["words"])) for e in value["evidence"]
    )
    return ReviewItem(
        name, str(value["key"]), str(value["text"]), float(value["at"]), origin, evidence
    )
