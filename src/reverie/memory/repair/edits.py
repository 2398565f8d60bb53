"""Edits with reasons: near-duplicates made one, and an index mended.

Of two duplicates the older file stays and takes in what only the other says. A passage of the
other that the older file already has, word for word or in other words with all its numbers, names
and identifiers, is not repeated. Everything else is put behind what is there, in the order and
the words it had, code and tables whole. Nothing is reworded. A name or description that was cut
is left out where what it was cut from is there.

An index has one pointer a memory, none to nothing, short lines and no content. What a line says
beyond the width goes into the memory it points to, and a line that is no pointer becomes a memory
of its own: the words move, none is lost. A pointer to a file that was merged points to where it
went; one whose file lies elsewhere under the same name is led there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from reverie.light import dataclass
from reverie.memory.facts import SAME_MATTER, DropReason, Fact, FolderFacts, Reason, repeats
from reverie.memory.format import index as indexes
from reverie.memory.format.entry import (
    INDEX,
    TopicFile,
    index_of,
    is_cut,
    is_index,
    is_topic,
    key_for,
    new,
    shown,
    sort_of,
    title_of,
    uncut,
)
from reverie.memory.format.index import Index, Pointer
from reverie.memory.hygiene.faults import called
from reverie.memory.hygiene.reading import Passage, PassageKind, passages
from reverie.memory.ranking import IndexLimits
from reverie.text.terms import plain, terms


@dataclass(frozen=True, slots=True)
class Edit:
    """Words of a file, what stands in their place (None: the file or line is gone), and why."""

    file: str
    before: str
    after: str | None
    why: DropReason
    target: str = ""

    @property
    def reason(self) -> Reason:
        """Without words before it, it is about the whole file."""
        return Reason(self.why, self.file, self.target, self.before)


@dataclass(frozen=True, slots=True)
class Repaired:
    """`files` holds only what changed; None is a file that is gone."""

    files: Mapping[str, bytes | None]
    edits: tuple[Edit, ...] = ()

    @property
    def reasons(self) -> tuple[Reason, ...]:
        return tuple(dict.fromkeys(one.reason for one in self.edits))


_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")


def clusters(pairs: Sequence[tuple[str, str]], times: Mapping[str, float]) -> list[list[str]]:
    """Files that are duplicates of one another, in groups, the oldest of each first."""
    group: dict[str, set[str]] = {}
    for a, b in pairs:
        joined = group.get(a, {a}) | group.get(b, {b})
        for key in joined:
            group[key] = joined
    seen: set[frozenset[str]] = {frozenset(one) for one in group.values()}
    rows = [sorted(one, key=lambda key: (times.get(key, 0.0), key)) for one in seen]
    return sorted(rows)


def merged(key: str, text: str, other: str) -> str:
    """The text of a file with what only the other one says behind it."""
    known = FolderFacts({key: text.encode("utf-8", "replace")})
    entry = TopicFile(key, other.encode("utf-8", "replace"))
    said = list(_only_in(entry.body, key, known))
    whole = FolderFacts({key: "\n\n".join([text, *said]).encode("utf-8", "replace")})
    parts = [*_head(entry, key, whole), *said]
    if not parts:
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    added = "\n\n".join(parts).replace("\r\n", "\n").replace("\n", end)
    return f"{text.rstrip()}{end}{end}{added}{end}"


def _head(entry: TopicFile, key: str, whole: FolderFacts) -> Iterator[str]:
    """What the head of the other file says and the merged one does not."""
    for value in dict.fromkeys((entry.front.get("name"), entry.description)):
        if not value or repeats(plain(value), plain(entry.body)):
            continue
        fact = Fact(key, 0, value, plain(value), "value")
        cut = is_cut(value) and whole.about(key, fact.terms, SAME_MATTER)
        if not cut and not says(whole, key, value, "value"):
            yield uncut(value)


def _only_in(body: str, key: str, known: FolderFacts) -> Iterator[str]:
    for chunk in _chunks(body):
        pieces = [one for one in passages(chunk) if not says(known, key, one.text, one.kind)]
        if not pieces:
            continue
        if any(one.kind in ("code", "row") for one in pieces):
            yield chunk.strip("\n")
        else:
            yield from _lines(pieces)


def _lines(pieces: Sequence[Passage]) -> Iterator[str]:
    """Passages as they stood: headings and sentences on their own, items as a list."""
    items = [f"- {one.text}" for one in pieces if one.kind == "item"]
    for one in pieces:
        if one.kind == "heading":
            yield f"## {one.text}"
        elif one.kind == "sentence":
            yield one.text
    if items:
        yield "\n".join(items)


def says(known: FolderFacts, key: str, text: str, kind: PassageKind = "sentence") -> bool:
    """Whether a file has a passage's words, or all that it tells in other words."""
    fact = Fact(key, 0, text, plain(text), kind)
    if not fact.plain or known.says(fact):
        return True
    return known.in_file(key, fact.terms, SAME_MATTER)


def _chunks(body: str) -> Iterator[str]:
    """A body cut at blank lines, but for those inside code."""
    rows: list[str] = []
    fence = ""
    for row in body.splitlines():
        mark = _FENCE.match(row)
        if mark is not None:
            closes = bool(fence) and mark[1].startswith(fence)
            fence = "" if closes else fence or mark[1]
        if row.strip() or fence:
            rows.append(row)
        elif rows:
            yield "\n".join(rows)
            rows = []
    if rows:
        yield "\n".join(rows)


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
                if entry.is_unverified:
                    continue
                width = self.limits.width
                data = indexes.put(data, name, entry.title, entry.description, width=width)
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
