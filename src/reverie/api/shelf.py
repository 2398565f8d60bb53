"""What a Fitter keeps in a folder: originals beyond the process, and files for a tool that reads.

One journal a conversation: its messages as they came, the memories and summaries that joined them,
and which list was handed out when. So a list that was written over the caller's own is known again
in another process. A journal only grows; a line that cannot be read is passed over. Files are
written whole, once, and named by their reference alone. Nothing is written before it has to be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from reverie.api.fitted import chains
from reverie.errors import InvalidMessage, NotFound, ReverieError, StoreError
from reverie.light import dataclass
from reverie.store.files import Folder
from reverie.store.journal import BadLine, Journal
from reverie.transcript.blocks import dump, parse
from reverie.transcript.codec import decode, encode
from reverie.transcript.records import Entry, Record
from reverie.wire.reading import plain

LISTS = "lists"
NEWEST = 200
"""Conversations that are looked through for a list that comes back."""


@dataclass(slots=True)
class KeptConversation:
    """One conversation as a journal tells it."""

    name: str
    messages: list[Any] = field(default_factory=list[Any])
    joined: dict[str, str] = field(default_factory=dict[str, str])  # memory, by part
    summaries: dict[str, tuple[Record, ...]] = field(default_factory=dict[str, tuple[Record, ...]])
    handed: dict[str, int] = field(default_factory=dict[str, int])  # list → how many messages

    def take(self, line: Mapping[str, Any]) -> None:
        if "message" in line:
            self.messages.append(line["message"])
        elif "joined" in line:
            self.joined[str(line["joined"])] = str(line.get("text"))
        elif "summary" in line:
            records = tuple(decode(str(one)).record for one in line.get("records", ()))
            self.summaries[str(line["summary"])] = records
        elif "handed" in line:
            self.handed[str(line["handed"])] = int(line.get("count", 0))


class Shelf:
    """The folder of a Fitter."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._process = os.getpid()
        self._name = os.urandom(8).hex()
        self._written = 0  # messages that the journal has
        self._told: set[str] = set()  # what else it has
        self._files: set[str] = set()

    # What comes back

    def known(self, messages: Sequence[Any]) -> tuple[KeptConversation, int] | None:
        """The conversation whose last list these messages begin with, and how many of them
        that list had."""
        places = {chain: n + 1 for n, chain in enumerate(chains(messages))}
        for kept in self._conversations():
            found = [chain for chain in kept.handed if chain in places]
            if found:
                best = max(found, key=lambda chain: places[chain])
                kept.messages = kept.messages[: kept.handed[best]]
                return kept, places[best]
        return None

    def anew(self) -> None:
        """Another conversation, or one that came back: it gets a journal of its own."""
        self._process = os.getpid()
        self._told.clear()
        self._written = 0
        self._name = os.urandom(8).hex()

    def _conversations(self) -> Iterator[KeptConversation]:
        folder = self.root / LISTS
        with suppress(OSError):
            paths = sorted(folder.glob("*.jsonl"), key=lambda one: -one.stat().st_mtime)
            for path in paths[:NEWEST]:
                with suppress(ReverieError):
                    yield self._read(path.stem)

    def _read(self, name: str) -> KeptConversation:
        kept = KeptConversation(name)
        with Folder(self.root / LISTS, create=False) as files:
            for line in Journal.open(files, f"{name}.jsonl", write=False).read():
                if not isinstance(line, BadLine):
                    with suppress(InvalidMessage, ValueError, TypeError, KeyError):
                        kept.take(cast("Mapping[str, Any]", parse(line.text, "a line")))
        return kept

    # What is kept

    def keep(
        self,
        messages: Sequence[Any],
        sent: Sequence[Any],
        joined: Mapping[str, str],
        summaries: Mapping[str, Sequence[Record]],
    ) -> None:
        """Keep what is new of a conversation, and the list that goes out for it."""
        if self._process != os.getpid():  # a fork has a journal of its own
            self.anew()
        lines = [dump({"message": plain(one)}) for one in messages[self._written :]]
        lines += [
            dump({"joined": name, "text": text})
            for name, text in joined.items()
            if text and f"joined {name}" not in self._told
        ]
        for name, records in summaries.items():
            if f"summary {name}" not in self._told:
                made = [encode(Entry(f"s{n}", "", 0.0, one)) for n, one in enumerate(records)]
                lines.append(dump({"summary": name, "records": made}))
        lines.append(dump({"handed": chains(sent)[-1], "count": len(messages)}))
        with Folder(self.root / LISTS) as files:
            journal = Journal.open(files, f"{self._name}.jsonl")
            try:
                journal.append(lines)
                journal.sync()
            finally:
                journal.close()
        self._written = len(messages)
        self._told |= {f"joined {name}" for name in joined}
        self._told |= {f"summary {name}" for name in summaries}

    def put(self, name: str, text: str) -> None:
        """A file for the caller's own tool; it is written once."""
        if name in self._files:
            return
        with Folder(self.root) as files:
            data = text.encode("utf-8", "replace")
            try:
                if files.read(name) == data:
                    self._files.add(name)
                    return
            except NotFound:
                pass
            files.write(name, data)
        self._files.add(name)


def folder_of(store: str | os.PathLike[str] | bool) -> Path:
    """The folder that `store=` names; `True` is the project's own, in the home."""
    if store is not True:
        return Path(os.fspath(cast("str", store))).absolute()
    from reverie.settings import environment
    from reverie.store import home as places

    environ = environment()
    home = places.home(environ)
    root = places.canonical_root(Path.cwd())
    try:
        return places.project_folder(home, root, environ=environ) / "fitted"
    except OSError as error:
        raise StoreError(f"the project's folder cannot be made: {error}", where=str(root)) from None
