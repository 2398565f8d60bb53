"""An index mended: one pointer a memory, none to nothing, lines short, and no content.

What a line says beyond the width goes into the memory it points to, and a line that is no pointer
becomes a memory of its own: the words move, none is lost. A pointer to a file that was merged
points to where it went; one whose file lies elsewhere under the same name is led there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from reverie.memory.facts import FolderFacts
from reverie.memory.format import index as indexes
from reverie.memory.format.entry import (
    INDEX,
    TopicFile,
    index_of,
    is_index,
    is_topic,
    key_for,
    new,
    shown,
)
from reverie.memory.format.index import Index, Pointer
from reverie.memory.format.titles import sort_of, title_of, uncut
from reverie.memory.hygiene.links import called
from reverie.memory.ranking import IndexLimits
from reverie.memory.repair.edits import Edit
from reverie.memory.repair.merging import says
from reverie.text.terms import terms

_PLAIN = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])?[ \t]*")


@dataclass(slots=True)
class Pointers:
    """One index of a folder under repair; `files` is changed where words move into a memory."""

    key: str
    files: dict[str, bytes]
    moved: dict[str, str]  # a file that was merged, and where it went
    hooks: dict[str, tuple[str, str]]  # a file's description before and after the repair
    limits: IndexLimits
    unread: frozenset[str] = frozenset()  # files that are there and are left as they are
    edits: list[Edit] = field(default_factory=list[Edit])

    @property
    def below(self) -> str:
        return self.key.removesuffix(INDEX)

    def own(self) -> dict[str, str]:
        """The memories of this index, by their names in it."""
        topics = (key for key in {*self.files, *self.unread} if _is_own(key, self.key))
        return {key.removeprefix(self.below): key for key in sorted(topics)}

    def mend(self) -> list[Edit]:
        before = self.files.get(self.key, b"")
        data = self._contents(before)
        data = self._lines(indexes.parse(data))
        data = self._unlisted(data)
        if data != before:
            self.files[self.key] = data
        return self.edits

    # Lines that are no pointers

    def _contents(self, data: bytes) -> bytes:
        index = indexes.parse(data)
        faults = indexes.check(index, (), width=self.limits.width)
        wrong = {fault.line for fault in faults if fault.kind == "content"}
        rows = data.splitlines(keepends=True)
        kept: list[bytes] = []
        for number, row in enumerate(rows, 1):
            text = _PLAIN.sub("", shown(row).strip())
            if number in wrong and re.search(r"\w", text):
                self._into_memory(text)
            else:
                kept.append(row)
        return b"".join(kept)

    def _into_memory(self, text: str) -> None:
        folder = FolderFacts({k: v for k, v in self.files.items() if _is_own(k, self.key)})
        home = next((key for key in folder.files if says(folder, key, text)), "")
        if not home:
            title, kind = title_of(text), sort_of(text)
            taken = frozenset(self.files)
            home = self.below + key_for(title, kind, taken)
            about = indexes.shorten(text, self.limits.width)
            made = new(home, name=title, description=about, type=kind, body=text)
            self.files[home] = made.data
        self.edits.append(Edit(self.key, text, None, "merged_into", home))

    # Pointers

    def _lines(self, index: Index) -> bytes:
        own = self.own()
        rows: list[bytes] = []
        at = 0
        seen: set[str] = set()
        listed = {one.key for one in index.pointers}
        for one in index.pointers:
            rows.append(index.data[at : one.start])
            at = one.end
            raw = index.data[one.start : one.end]
            key = self._led(one, own, listed)
            if not key or key in seen:
                why = "duplicate_of" if key else "pointer"
                target = self.below + key if key else ""
                self._gone(one, why, target)
                continue
            seen.add(key)
            rows.append(self._line(one, key, raw))
        return b"".join([*rows, index.data[at:]])

    def _led(self, one: Pointer, own: dict[str, str], listed: set[str]) -> str:
        """The memory that a pointer leads to, or was meant to."""
        if one.fault:
            return ""
        if one.key in own:
            return one.key
        went = self.moved.get(self.below + one.key, "").removeprefix(self.below)
        if went in own:
            return went
        name = posixpath.basename(one.key).casefold()
        alike = [key for key in own if posixpath.basename(key).casefold() == name]
        if len(alike) != 1 or alike[0] in listed or self.below + alike[0] not in self.files:
            return ""
        title = TopicFile(alike[0], self.files[self.below + alike[0]]).title
        return alike[0] if called(one.title, terms(title, titled=True).all) else ""

    def _gone(self, one: Pointer, why: str, target: str) -> None:
        """Say why a pointer goes; what its hook alone says is kept."""
        went = self.moved.get(self.below + one.key, "")
        if went:
            self.edits.append(Edit(self.key, one.hook, None, "merged_into", went))
        elif why == "duplicate_of":
            self._keep(one.hook, target)
            self.edits.append(Edit(self.key, one.hook, None, "duplicate_of", target))
        else:
            self.edits.append(Edit(self.key, one.hook, None, "pointer"))

    def _line(self, one: Pointer, key: str, raw: bytes) -> bytes:
        """A pointer's line as it should be: the file it leads to, a hook that holds, its width."""
        file = self.below + key
        text = shown(raw).rstrip("\r\n")
        hook, why = one.hook, ""
        was, now = self.hooks.get(file, ("", ""))
        if was != now and was and one.hook and was.startswith(one.hook.rstrip("…").rstrip()):
            hook, why = now, "contradicted_by"
        short = len(text) <= self.limits.width and not why
        if (key == one.key and short) or file in self.unread:
            return raw
        if len(text) > self.limits.width:
            self._keep(hook, file)
        end = raw[len(raw.rstrip(b"\r\n")) :]
        made = indexes.line(key, one.title, hook, width=self.limits.width).encode()
        if made.strip() == raw.strip():
            return raw
        if key != one.key:
            self.edits.append(Edit(self.key, one.hook, hook, "pointer", file))
        elif why:
            self.edits.append(Edit(self.key, one.hook, hook, "contradicted_by", file))
        else:
            self.edits.append(Edit(self.key, one.hook, hook, "shortened", file))
        return made + end

    def _keep(self, hook: str, file: str) -> None:
        """What a hook says, in the memory it points to."""
        if file in self.unread:
            return
        text = shown(self.files[file])
        folder = FolderFacts({file: self.files[file]})
        if hook and not says(folder, file, uncut(hook)):
            self.files[file] = f"{text.rstrip()}\n\n{uncut(hook)}\n".encode()

    def _unlisted(self, data: bytes) -> bytes:
        listed = {one.key for one in indexes.parse(data).pointers}
        for name, key in self.own().items():
            if name not in listed and key not in self.unread:
                entry = TopicFile(key, self.files[key])
                width = self.limits.width
                data = indexes.parse(data).put(name, entry.title, entry.description, width=width)
                self.edits.append(Edit(self.key, "", entry.title, "pointer", key))
        return data


def _is_own(key: str, index: str) -> bool:
    return is_topic(key) and index_of(key) == index


def all_indexes(files: dict[str, bytes]) -> Iterator[str]:
    """The indexes that a folder has or should have."""
    yield from sorted(
        {key for key in files if is_index(key) and key == index_of(key)}
        | {index_of(key) for key in files if is_topic(key)}
    )
