"""How forgetting rewrites each kind of file, so that every step can be cut off and done again.

What others name by hash is written anew under its new hash first, then what names it, and the
old one goes last: a process that dies in between leaves everything readable, and doing it again
gives the same bytes. A transcript keeps its checksums and gets one record more, which tells the
session that what it sent no longer stands, and which thinking blocks that takes with it. Files
keep their times: forgetting makes nothing newer.

Nothing here takes a lock or decides what is forgotten.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from reverie.errors import InvalidMessage, NotFound
from reverie.store.files import Folder
from reverie.store.fs import digest
from reverie.store.history import LOG, is_kept
from reverie.store.history_cache import CACHE_NAME as HEADS
from reverie.store.journal import seal, unseal
from reverie.store.objects import OBJECTS, object_key
from reverie.topics.redaction import ForgetWords
from reverie.transcript.blocks import dump
from reverie.transcript.codec import blob_name, decode, encode
from reverie.transcript.records import AssistantMessage, Entry, Strip, Unknown

RECORD = "forgotten"


_KEY = re.compile(rb'"key":("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """A file that was changed, or would be."""

    path: str
    kind: str
    count: int


@dataclass(slots=True)
class Rewriter:
    """Takes words out of files below one folder; `touched` tells what it did."""

    files: Folder
    words: ForgetWords
    at: float
    new_id: Callable[[], str]
    touched: list[RewrittenFile] = field(default_factory=list[RewrittenFile])

    def _did(self, key: str, kind: str, count: int) -> None:
        self.touched.append(RewrittenFile(str(self.files.root / key), kind, count))

    def _put(self, key: str, data: bytes) -> None:
        """Replace a file's contents, and leave its time."""
        try:
            when = self.files.stat(key).modified
        except NotFound:
            when = 0
        self.files.write(key, data)
        if when:
            os.utime(self.files.root / key, ns=(when, when), follow_symlinks=False)

    def _list(self, under: str) -> tuple[str, ...]:
        try:
            return self.files.list(under)
        except NotFound:
            return ()

    # Plain files

    def plain(self, key: str, kind: str = "file") -> None:
        """A file that nothing names by hash: text, JSON, or lines of JSON."""
        data = self.files.read(key)
        new, count = self._redact_file(key, data)
        if new != data:
            self._put(key, new)
            self._did(key, kind, count)

    def _redact_file(self, key: str, data: bytes) -> tuple[bytes, int]:
        if key.endswith(".jsonl"):
            return self._lines(data, self._text)
        text = data.decode("utf-8", "surrogateescape")
        if key.endswith(".json") and _is_json(text):
            new, count = self.words.replaced_in_json(text)
            return new.encode("utf-8", "surrogateescape"), count
        return self._words(data)

    def _words(self, data: bytes) -> tuple[bytes, int]:
        new, count = self.words.replaced(data.decode("utf-8", "surrogateescape"))
        return new.encode("utf-8", "surrogateescape"), count

    def _text(self, text: str) -> tuple[str, int]:
        return self.words.replaced_in_json(text)

    def _lines(self, data: bytes, change: Callable[[str], tuple[str, int]]) -> tuple[bytes, int]:
        total = 0
        out: list[bytes] = []
        for raw in data.split(b"\n"):
            line, count = self._line(raw, change)
            out.append(line)
            total += count
        return b"\n".join(out), total

    def _line(self, raw: bytes, change: Callable[[str], tuple[str, int]]) -> tuple[bytes, int]:
        """One line of JSON, with its checksum made anew where it had one."""
        found = unseal(raw.rstrip(b"\r"))
        try:
            body = raw if found is None or not found[1] else found[0]
            text = body.decode()
            if not text.strip() or (found is None and not _is_json(text)):
                return self._words(raw)
            new, count = change(text)
            if new == text:
                return raw, 0
            return (seal(new) if found and found[1] else new.encode()), count
        except (UnicodeDecodeError, InvalidMessage):
            return self._words(raw)

    def removed(self, key: str, kind: str) -> None:
        """A file that can be made again from others: it goes whole."""
        with contextlib.suppress(NotFound):
            self.files.remove(key)
            self._did(key, kind, 1)

    # A session

    def session(self, base: str, session: str) -> None:
        """A transcript, those of its agents, and every file beside them."""
        below = f"{base}{session}/"
        blobs = self._blobs(f"{below}blobs")
        results = self._results(f"{below}tool-results")
        journals = [key for key in self._list(f"{below}agents") if key.endswith(".jsonl")]
        for key in (f"{base}{session}.jsonl", *journals):
            if self.files.exists(key):
                self._transcript(key, f"{below}blobs", blobs, results)
        for key, data, count in results:
            self._put(key, data)
            self._did(key, "stored result", count)
        done = {key for key, _, _ in results}.union(journals)
        for key in self._list(below.rstrip("/")):
            if key not in done and not key.startswith(f"{below}blobs/"):
                self.plain(key, "session file")
        for old in blobs:
            self.removed(f"{below}blobs/{old}.json", "blob")

    def _blobs(self, under: str) -> dict[str, str]:
        """New blobs for those that hold the words; gives the old names with the new."""
        renamed: dict[str, str] = {}
        for key in self._list(under):
            text = self.files.read(key).decode("utf-8", "surrogateescape")
            new, count = self.words.replaced_in_json(text)
            if count:
                old, name = key.rpartition("/")[2].removesuffix(".json"), blob_name(new)
                self.files.write(f"{under}/{name}.json", new.encode())
                renamed[old] = name
        return renamed

    def _results(self, under: str) -> list[tuple[str, bytes, int]]:
        found: list[tuple[str, bytes, int]] = []
        for key in self._list(under):
            data = self.files.read(key)
            new, count = self._redact_file(key, data)
            if count:
                found.append((key, new, count))
        return found

    def _transcript(
        self,
        key: str,
        blobs_at: str,
        blobs: dict[str, str],
        results: Iterable[tuple[str, bytes, int]],
    ) -> None:
        hashes = {
            digest(self.files.read(name)): (self.files.stat(name).size, digest(new), len(new))
            for name, new, _ in results
        }
        moved = False

        def change(text: str) -> tuple[str, int]:
            nonlocal moved
            new, count = self.words.replaced_in_json(text)
            for old, name in blobs.items():
                moved = moved or old in new
                new = new.replace(f'"blob":"{old}"', f'"blob":"{name}"')
            for old, (size, name, length) in hashes.items():
                if f'"sha256":"{old}"' in new:
                    new = new.replace(f'"sha256":"{old}"', f'"sha256":"{name}"')
                    new = new.replace(f'"size":{size}', f'"size":{length}')
            return new, count

        data = self.files.read(key)
        new, count = self._lines(data, change)
        if new == data:
            return
        if count or moved:
            end = b"" if new.endswith(b"\n") or not new else b"\n"
            new += end + self._removal_record(data, new, count, blobs_at) + b"\n"
        self._put(key, new)
        self._did(key, "transcript", count)

    def _removal_record(self, old: bytes, new: bytes, count: int, blobs_at: str) -> bytes:
        """The record that says so: from the first changed entry on, no thinking block stands."""
        leaf, strips, changed = "", list[Strip](), False
        for before, after in zip(old.split(b"\n"), new.split(b"\n"), strict=False):
            changed = changed or before != after
            entry = self._entry(after, blobs_at)
            if entry is None:
                continue
            leaf = entry.id if entry.on_chain else leaf
            if changed and isinstance(entry.record, AssistantMessage):
                thinks = [n for n, b in enumerate(entry.record.blocks) if b.thinking]
                strips += [Strip(entry.id, n) for n in thinks]
        gone = [{"message": one.message, "block": one.block} for one in strips]
        body = dump({"count": count, "strips": gone})
        return seal(encode(Entry(self.new_id(), leaf, self.at, Unknown(RECORD, body))))

    def _entry(self, line: bytes, blobs_at: str) -> Entry | None:
        def load(name: str) -> str | None:
            try:
                return self.files.read(f"{blobs_at}/{name}.json").decode()
            except (NotFound, UnicodeDecodeError):
                return None

        found = unseal(line.rstrip(b"\r"))
        if found is None or not found[1]:
            return None
        try:
            return decode(found[0].decode(), load)
        except (InvalidMessage, UnicodeDecodeError):
            return None

    # Memory and its history

    def memory(self, folder: Folder | None, history: Folder | None) -> None:
        """A memory folder and the versions of its files, hashes and names changed alike."""
        renames = {} if folder is None else self._renames(folder)
        kept = None if history is None else replace(self, files=history)
        old: dict[str, str] = {}
        if kept is not None:
            renames = {**kept._past_renames(), **renames}
            old = kept._objects(renames)
            kept._log(old, renames)
        if folder is not None:
            replace(self, files=folder)._memories(renames)
        if kept is not None:
            for name in old:
                kept.removed(object_key(name), "version")
            for key in (*kept._list("review"), *kept._list("dropped")):
                kept.plain(key, "review")
            kept.removed(HEADS, "derived")

    def _renames(self, folder: Folder) -> dict[str, str]:
        out: dict[str, str] = {}
        for key in filter(is_kept, folder.list()):
            above, slash, name = key.rpartition("/")
            stem, dot, ending = name.rpartition(".")
            if dot and self.words.names(stem):
                mark = digest(self._redact_memory(folder.read(key), {})[0])[:8]
                out[key] = f"{above}{slash}memory-{mark}.{ending}"
        return out

    def _past_renames(self) -> dict[str, str]:
        """Names of files that are gone, and that only the history still knows."""
        out: dict[str, str] = {}
        known = self.files.read(LOG) if self.files.exists(LOG) else b""
        for raw in dict.fromkeys(_KEY.findall(known)):
            with contextlib.suppress(ValueError):
                key = str(json.loads(raw))
                above, slash, name = key.rpartition("/")
                stem, dot, ending = name.rpartition(".")
                if dot and self.words.names(stem):
                    out[key] = f"{above}{slash}memory-{os.urandom(4).hex()}.{ending}"
        return out

    def _redact_memory(self, data: bytes, renames: dict[str, str]) -> tuple[bytes, int]:
        """A memory file's bytes without the words, its pointers to files of a new name."""
        for old, new in renames.items():
            for before, after in ((old, new), (old.rpartition("/")[2], new.rpartition("/")[2])):
                data = data.replace(f"({before})".encode(), f"({after})".encode())
        return self._words(data)

    def _objects(self, renames: dict[str, str]) -> dict[str, str]:
        changed: dict[str, str] = {}
        for key in self._list(OBJECTS):
            name = key.removeprefix(f"{OBJECTS}/").replace("/", "").removesuffix(".z")
            try:
                data = zlib.decompress(self.files.read(key))
            except zlib.error:
                continue
            new, _ = self._redact_memory(data, renames)
            if new != data:
                changed[name] = digest(new)
                if not self.files.exists(object_key(changed[name])):
                    self.files.write(object_key(changed[name]), zlib.compress(new, 6))
        return changed

    def _log(self, hashes: dict[str, str], renames: dict[str, str]) -> None:
        def change(text: str) -> tuple[str, int]:
            new, count = self.words.replaced_in_json(text)
            for old, name in hashes.items():
                new = new.replace(f'"{old}"', f'"{name}"')
            for old, name in renames.items():
                new = new.replace(f'"key":{dump(old)}', f'"key":{dump(name)}')
                new = new.replace(f"({dump(old)[1:-1]})", f"({dump(name)[1:-1]})")
            return new, count

        if not self.files.exists(LOG):
            return
        data = self.files.read(LOG)
        new, count = self._lines(data, change)
        if new != data:
            self._put(LOG, new)
            self._did(LOG, "history", count)

    def _memories(self, renames: dict[str, str]) -> None:
        for key in filter(is_kept, self.files.list()):
            data = self.files.read(key)
            new, count = self._redact_memory(data, renames)
            target = renames.get(key, key)
            if target != key:
                when = self.files.stat(key).modified
                self.files.write(target, new)
                os.utime(self.files.root / target, ns=(when, when), follow_symlinks=False)
                self.files.remove(key)
                self._did(key, "memory", max(1, count))
            elif new != data:
                self._put(key, new)
                self._did(key, "memory", count)


def _is_json(text: str) -> bool:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict | list)
