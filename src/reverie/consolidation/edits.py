"""Edits with reasons, and an index repaired.

An index has one pointer per memory, none to nothing, short lines and no content. What a line says
beyond the width goes into the memory it points to, and a section with content becomes a memory,
heading and all: the words move, none is lost. Words that introduce pointers stay. A pointer to a
file that was merged points to where it went; one whose file has another folder is led there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from reverie.consolidation.folder import passages
from reverie.consolidation.reasons import DropReason, RemovalReason
from reverie.consolidation.text_checks import names_subject, same_words
from reverie.light import dataclass
from reverie.text.tokens import split_terms
from reverie.topics import entry as entries
from reverie.topics import index as indexes
from reverie.topics.entry import INDEX, TopicFile, decode_text, index_of, is_index, is_topic
from reverie.topics.frontmatter import BOM
from reverie.topics.index import Index, Pointer
from reverie.topics.manifest import IndexLimits

_BLANKS = re.compile(rb"(\r?\n)(?:[ \t]*\r?\n){2,}")


@dataclass(frozen=True, slots=True)
class TopicEdit:
    """Words of a file, what stands in their place (None: the file or line is gone), and why."""

    file: str
    before: str
    after: str | None
    why: DropReason
    target: str = ""

    @property
    def reason(self) -> RemovalReason:
        """Without words before it, it is about the whole file."""
        return RemovalReason(self.why, self.file, self.target, self.before)


@dataclass(frozen=True, slots=True)
class FixResult:
    """`files` holds only what changed; None is a file that is gone."""

    files: Mapping[str, bytes | None]
    edits: tuple[TopicEdit, ...] = ()

    @property
    def reasons(self) -> tuple[RemovalReason, ...]:
        return tuple(dict.fromkeys(one.reason for one in self.edits))


@dataclass(slots=True)
class Pointers:
    """One index of a folder under repair; `files` is changed where words move into a memory."""

    key: str
    files: dict[str, bytes]
    moved: dict[str, str]  # a file that was merged, and where it went
    limits: IndexLimits
    unread: frozenset[str] = frozenset()  # files that are there and are left as they are
    edits: list[TopicEdit] = field(default_factory=list[TopicEdit])

    @property
    def below(self) -> str:
        return self.key.removesuffix(INDEX)

    def own(self) -> dict[str, str]:
        """The memories of this index, by their names in it."""
        keys = sorted({*self.files, *self.unread})
        topics = (key for key in keys if is_topic(key) and index_of(key) == self.key)
        return {key.removeprefix(self.below): key for key in topics}

    def repair(self) -> list[TopicEdit]:
        before = self.files.get(self.key, b"")
        data = self._add_unlisted(self._lines(indexes.parse_index(self._contents(before))))
        if data != before:
            self.files[self.key] = data
        return self.edits

    def _edit(self, before: str, after: str | None, why: DropReason, target: str = "") -> None:
        self.edits.append(TopicEdit(self.key, before, after, why, target))

    # Lines that are no pointers

    def _contents(self, data: bytes) -> bytes:
        """Each section that holds content becomes a memory; its lines leave the index."""
        found = indexes.contents(indexes.parse_index(data))
        rows = data.splitlines(keepends=True)
        if not found or decode_text(data).encode() != data.removeprefix(BOM):
            return data
        gone: set[int] = set()
        for one in found:
            lines = [decode_text(rows[number - 1]).rstrip("\r\n") for number in one.lines]
            self._into_memory(one.title, "\n".join(lines).strip("\n"))
            gone.update((*one.lines, one.heading))
        kept = [row for number, row in enumerate(rows, 1) if number not in gone]
        return _BLANKS.sub(rb"\1\1", b"".join(kept))

    def _into_memory(self, title: str, text: str) -> None:
        first = next((one.text for one in passages(text) if one.kind != "heading"), text)
        name = " ".join(title.split()) or entries.title_of(first)
        same = [key for key in self.own().values() if self._is_called(key, name)]
        if len(same) == 1:
            home = same[0]
            known = decode_text(self.files[home])
            if text not in known:
                self.files[home] = f"{known.rstrip()}\n\n{text}\n".encode("utf-8", "replace")
        else:
            home = self.below + entries.key_for(name, "", frozenset(self.files))
            about = indexes.shorten(" ".join(first.split()), self.limits.width)
            body, kind = f"# {name}\n\n{text}" if title else text, entries.sort_of(text)
            made = entries.new(home, name=name, description=about, type=kind, body=body)
            self.files[home] = made.data
        self._edit(name if title else first, None, "merged_into", home)

    def _is_called(self, key: str, name: str) -> bool:
        title = "" if key in self.unread else TopicFile(key, self.files[key]).title
        return bool(title) and same_words(title) == same_words(name)

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
            key = self._leads_to(one, own, listed)
            if not key or key in seen:
                self._drop(one, self.below + key if key else "")
                continue
            seen.add(key)
            rows.append(self._line(one, key, index.data[one.start : one.end]))
        return b"".join([*rows, index.data[at:]])

    def _leads_to(self, one: Pointer, own: dict[str, str], listed: set[str]) -> str:
        """The memory that a pointer leads to, or was meant to."""
        if one.fault or one.key in own:
            return "" if one.fault else one.key
        went = self.moved.get(self.below + one.key, "").removeprefix(self.below)
        if went in own:
            return went
        name = posixpath.basename(one.key).casefold()
        alike = [key for key in own if posixpath.basename(key).casefold() == name]
        if len(alike) != 1 or alike[0] in listed or self.below + alike[0] not in self.files:
            return ""
        title = TopicFile(alike[0], self.files[self.below + alike[0]]).title
        return alike[0] if names_subject(one.title, split_terms(title, titled=True).all) else ""

    def _drop(self, one: Pointer, target: str) -> None:
        """Say why a pointer goes; what it alone says is kept."""
        went = self.moved.get(self.below + one.key, "")
        if went or target:
            self._keep(one.title, went or target)
            self._keep(one.hook, went or target)
            self._edit(one.hook, None, "merged_into" if went else "duplicate_of", went or target)
        else:
            said = f"{one.title} — {one.hook}" if one.hook else one.title
            self._edit(said, None, "pointer")

    def _line(self, one: Pointer, key: str, raw: bytes) -> bytes:
        """A pointer's line as it should be: the file it leads to, a hook that holds, its width."""
        file = self.below + key
        long = len(decode_text(raw).rstrip("\r\n")) > self.limits.width
        if (key == one.key and not long) or file in self.unread:
            return raw
        if long:
            self._keep(one.hook, file)
        made = indexes.line(key, one.title, one.hook, width=self.limits.width).encode()
        if made.strip() == raw.strip():
            return raw
        self._edit(one.hook, one.hook, "shortened" if key == one.key else "pointer", file)
        return made + raw[len(raw.rstrip(b"\r\n")) :]

    def _keep(self, hook: str, file: str) -> None:
        """What a hook says, in the memory it points to."""
        text = "" if file in self.unread else decode_text(self.files[file])
        if text and hook and not _says(text, hook):
            self.files[file] = f"{text.rstrip()}\n\n{entries.uncut(hook)}\n".encode()

    def _add_unlisted(self, data: bytes) -> bytes:
        listed = {one.key for one in indexes.parse_index(data).pointers}
        for name, key in self.own().items():
            if name in listed or key in self.unread:
                continue
            entry = TopicFile(key, self.files[key])
            if not entry.is_unverified:
                width = self.limits.width
                data = indexes.put(data, name, entry.title, entry.description, width=width)
                self._edit("", entry.title, "pointer", key)
        return data


def _says(text: str, words: str) -> bool:
    """Whether a passage of a text is just these words, or what they were cut from."""
    known = [same_words(one.text) for one in passages(text)]
    if entries.is_cut(words):
        begun = same_words(entries.uncut(words).rpartition(" ")[0])
        return bool(begun) and any(f"{one} ".startswith(f"{begun} ") for one in known)
    return same_words(words) in known


def all_indexes(files: dict[str, bytes]) -> Iterator[str]:
    """Yield the indexes that a folder has or should have."""
    yield from sorted(
        {key for key in files if is_index(key) and key == index_of(key)}
        | {index_of(key) for key in files if is_topic(key)}
    )
