"""What is known of every version of every memory file: where it came from, and what follows.

A `Version` is one step of one file, from the bytes before to the bytes after, each named by
its SHA-256, with the origin of the change. The functions here read a list of versions: what a
file's head is, who wrote which line, which steps belong to one origin, and what undoing one of
them would give. Undoing restores only what that step wrote: what others wrote since stays, and
where the two cannot be told apart it says so and changes nothing.

No clock, no disk: times and bytes are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from hashlib import sha256
from typing import Any, Literal, TypeAlias, cast

from reverie.errors import InvalidMessage
from reverie.light import dataclass
from reverie.text.format import matching
from reverie.topics.entry import is_index
from reverie.topics.merge import MergeResult, lines_of, merge_file
from reverie.topics.trust import Trust, trust_of
from reverie.transcript.blocks import dump, parse

ABSENT = ""
OUTSIDE = "outside"
FOUND = frozenset({OUTSIDE, "import"})
"""Acts that found a file lying there, and tell nothing of when it was written."""
MOVES = frozenset({"dream", "check"})
"""Acts that move what was written before."""

ReadContent: TypeAlias = Callable[[str], bytes]
By: TypeAlias = Literal["session", "agent", "tool", "kind", "group"]
BY: tuple[By, ...] = ("session", "agent", "tool", "kind", "group")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a change came from. `kind` is what was done: save, edit, remove, undo, import …"""

    kind: str
    trust: Trust
    agent: str = ""
    session: str = ""
    messages: tuple[str, ...] = ()
    tool: str = ""
    note: str = ""
    in_person: bool = False  # typed by a person into an interface of ours; not kept

    def value(self) -> dict[str, Any]:
        """The origin as a plain value, every part of it."""
        return {
            "kind": self.kind,
            "trust": self.trust.label,
            "agent": self.agent,
            "session": self.session,
            "messages": list(self.messages),
            "tool": self.tool,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Version:
    """One step of one file. `before` and `after` name bytes; empty = there was no file.

    Steps with the same `group` were made as one: a topic file and the pointer to it.
    `undoes` names the versions that this one takes back. `was` is the time, in nanoseconds, that
    the file of `before` had; 0 where nobody knows.

    A step that only added to the end of a long file has what it `added`, and the `size` before;
    what its bytes are called is worked out by whoever reads the whole log. `swap` is what a step
    took out of an index and put in its place, where that is little.
    """

    id: str
    key: str
    before: str
    after: str
    at: float
    origin: Origin
    group: str = ""
    undoes: tuple[str, ...] = ()
    was: int = 0
    added: str = ""
    size: int = 0
    swap: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A file that was as its last version says while it had this size, time and inode."""

    key: str
    size: int
    modified: int
    inode: int


Told: TypeAlias = Version | FileStamp | tuple[str, str] | None
"""What a line of the log tells; ("landed" or "void", id) is what became of a version."""


def outside(trust: Trust = Trust.AGENT) -> Origin:
    """The origin of a change found on disk that nobody told us of: an editor, another program."""
    return Origin(OUTSIDE, trust)


# As text


def encode(version: Version) -> str:
    """One line of the log."""
    about = version.origin.value()
    body: dict[str, object] = {
        "v": 2 if version.added else 1,
        "type": "version",
        "id": version.id,
        "key": version.key,
        "before": version.before,
        "after": version.after,
        "at": version.at,
        "origin": {name: value for name, value in about.items() if value},
    }
    body |= {"group": version.group} if version.group else {}
    body |= {"undoes": list(version.undoes)} if version.undoes else {}
    body |= {"was": version.was} if version.was else {}
    body |= {"added": version.added, "size": version.size} if version.added else {}
    body |= {"swap": list(version.swap)} if version.swap else {}
    return dump(body)


def encode_seen(seen: FileStamp) -> str:
    """The line that says how a file looked from outside."""
    stat = [seen.size, seen.modified, seen.inode]
    return dump({"v": 1, "type": "seen", "key": seen.key, "stat": stat})


def decode(text: str) -> Told:
    """What a line tells; None for what is unknown."""
    value = parse(text)
    if not isinstance(value, dict) or value.get("v") not in (1, 2):
        return None
    kind, name = value.get("type"), value.get("id")
    if kind in ("landed", "void") and isinstance(name, str):
        return str(kind), name
    if kind not in ("version", "seen"):
        return None
    try:
        if kind == "seen":
            size, modified, inode = map(int, cast("list[Any]", value["stat"]))
            return FileStamp(str(value["key"]), size, modified, inode)
        return _version(cast("dict[str, Any]", value))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidMessage(f"a version cannot be read: {error}") from error


def _version(value: dict[str, Any]) -> Version:
    about = cast("dict[str, Any]", value["origin"])
    origin = Origin(
        str(about["kind"]),
        trust_of(str(about.get("trust", ""))),
        str(about.get("agent", "")),
        str(about.get("session", "")),
        tuple(map(str, about.get("messages", ()))),
        str(about.get("tool", "")),
        str(about.get("note", "")),
    )
    return Version(
        str(value["id"]),
        str(value["key"]),
        str(value["before"]),
        str(value["after"]),
        float(value["at"]),
        origin,
        str(value.get("group", "")),
        tuple(map(str, value.get("undoes", ()))),
        _time(value.get("was")),
        str(value.get("added", "")),
        _time(value.get("size")),
        _swap(value.get("swap")),
    )


def _swap(value: object) -> tuple[str, str] | None:
    match value:
        case [str() as out, str() as new]:
            return out, new
        case _:
            return None


def _time(value: object) -> int:
    return value if type(value) is int and 0 < value < 2**63 else 0


def time_before(versions: Iterable[Version], key: str, name: str) -> int:
    """The time that a file had when it held these bytes, by the steps that took them away."""
    found = (v.was for v in versions if v.key == key and v.before == name)
    return next(found, 0)


# Reading a log


@dataclass(slots=True)
class HistoryState:
    """A log read so far: the versions that count, each file's head, and what is undecided.

    `grown` leads from the name of bytes that are kept nowhere whole to those before them and what
    was added; `read` gives the bytes of a name.
    """

    read: ReadContent = field(default=lambda _: b"")
    versions: dict[str, Version] = field(default_factory=dict[str, Version])
    heads: dict[str, str] = field(default_factory=dict[str, str])
    last: dict[str, str] = field(default_factory=dict[str, str])  # key -> id of its last version
    pending: dict[str, Version] = field(default_factory=dict[str, Version])
    grown: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    _hashes: dict[str, Any] = field(default_factory=dict[str, Any])  # of the bytes of a name

    def take(self, found: Told) -> None:
        """One more line. A version counts once it has landed."""
        if isinstance(found, Version):
            self.pending[found.id] = found
        elif isinstance(found, tuple):
            version = self.pending.pop(found[1], None)
            if version is not None and found[0] == "landed":
                version = self._hash_growth(version) if version.added else version
                self.versions[version.id] = version
                self.heads[version.key] = version.after
                self.last[version.key] = version.id

    def head(self, key: str) -> str:
        return self.heads.get(key, ABSENT)

    def _hash_growth(self, version: Version) -> Version:
        """The version with the names of its bytes: a hash goes on where the last one ended."""
        before = self.head(version.key)
        hashed = self._hashes.pop(before, None) or sha256(self.read(before))
        hashed.update(version.added.encode("utf-8", "surrogatepass"))
        after = hashed.hexdigest()
        self._hashes[after] = hashed
        self.grown[after] = (before, version.added)
        return replace(version, before=before, after=after)

    def of(self, key: str) -> list[Version]:
        return [version for version in self.versions.values() if version.key == key]


def trust_in(versions: Iterable[Version], key: str) -> Trust:
    """The trust in a file as it stands: the least of what made it since it last began anew.

    A step that was taken back counts no more, and taking it back adds nothing.
    """
    steps = [version for version in versions if version.key == key]
    undone = {name for version in steps for name in version.undoes}
    level: Trust | None = None
    for version in steps:
        if version.id in undone or (version.undoes and version.after):
            continue
        if version.after == ABSENT:
            level = None
        elif level is None or version.origin.kind == "accept":  # a person saw all of it
            level = version.origin.trust
        else:
            level = min(level, version.origin.trust)
    return Trust.UNTRUSTED if level is None else level


def save_time(versions: Sequence[Version]) -> float:
    """When a file was saved here for the last time; 0 where its last version was found, moved or
    taken back, so that the file must be asked."""
    last = versions[-1] if versions else None
    is_saved = last is not None and last.origin.kind not in FOUND | MOVES and not last.undoes
    return last.at if last is not None and is_saved else 0.0


def from_origin(versions: Iterable[Version], by: By, value: str) -> list[Version]:
    """All steps that came from one session, agent, tool, kind of act, or group."""
    if by == "group":
        return [version for version in versions if value in (version.group, version.id)]
    return [version for version in versions if str(getattr(version.origin, by)) == value]


# Who wrote which line


@dataclass(frozen=True, slots=True)
class BlameLine:
    """A line of a file and the version that wrote it."""

    line: str
    version: Version


def blame(versions: Sequence[Version], content: ReadContent) -> list[BlameLine]:
    """Each line of a file as its last version leaves it; `versions` are those of one file."""
    found: list[BlameLine] = []
    for version in versions:
        lines = lines_of(_text(version.after, content))
        made = [BlameLine(line, version) for line in lines]
        for old, new, size in matching([b.line for b in found], lines):
            made[new : new + size] = found[old : old + size]
        found = made
    return found


def difference(before: bytes, after: bytes, names: tuple[str, str]) -> str:
    """A unified diff, for people."""
    old, new = (_decode_text(data).splitlines(keepends=True) for data in (before, after))
    from difflib import unified_diff  # due where somebody looks

    rows = unified_diff(old, new, *names)
    return "".join(
        row if row.endswith("\n") else f"{row}\n\\ no newline at the end\n" for row in rows
    )


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _text(name: str, content: ReadContent) -> str:
    return content(name).decode("utf-8", "surrogateescape") if name else ""


# Undoing


@dataclass(frozen=True, slots=True)
class UndoneVersion:
    """What undoing gives for one file: its new bytes (None = no file), or why it cannot be."""

    key: str
    expect: str
    data: bytes | None
    undoes: tuple[str, ...]
    refusal: str = ""
    merged: bool = False


def undo(
    version: Version,
    head: str,
    content: ReadContent,
    *,
    merges: Callable[[str, str, str, str], MergeResult],
) -> UndoneVersion:
    """Take one step back, and nothing else.

    Where the file is still as the step left it, what was there before comes back. Where others
    wrote since, the step's own change is taken out of what is there by a three-way merge; where
    that is not clear, or the file is gone or came back since, nothing is done.
    """
    base = UndoneVersion(version.key, head, None, (version.id,))
    if head == version.after:
        return replace(base, data=content(version.before) if version.before else None)
    if head == version.before:
        return replace(base, refusal="it is already as it was before")
    if not head:
        return replace(base, refusal="the file has been removed since")
    if not version.after:
        return replace(base, refusal="a new file has taken the place of the one it removed")
    if not version.before and not is_index(version.key):
        return replace(base, refusal="others have written to the file since it was made")
    texts = [_text(name, content) for name in (version.after, head, version.before)]
    done = merges(version.key, *texts)
    if done.conflicts:
        return replace(base, refusal="others have changed the same lines since")
    data = done.text.encode("utf-8", "surrogateescape")
    return replace(base, data=data, merged=True)


def undo_all(
    versions: Sequence[Version], heads: Mapping[str, str], content: ReadContent
) -> list[UndoneVersion]:
    """Take back many steps, given oldest first: the newest first, file by file."""
    results: dict[str, UndoneVersion] = {}
    refused: list[UndoneVersion] = []
    made: dict[str, bytes] = {}

    def stored_content(name: str) -> bytes:
        return made[name] if name in made else content(name)

    for version in reversed(versions):
        before = results.get(version.key)
        head = heads.get(version.key, ABSENT) if before is None else _name_content(before, made)
        done = undo(version, head, stored_content, merges=merge_file)
        if done.refusal:
            refused.append(done)
            continue
        results[version.key] = replace(
            done,
            expect=heads.get(version.key, ABSENT),
            undoes=(*(before.undoes if before else ()), version.id),
        )
    return [*results.values(), *refused]


def _name_content(undone: UndoneVersion, made: dict[str, bytes]) -> str:
    """A name for bytes that are not stored anywhere yet."""
    if undone.data is None:
        return ABSENT
    name = sha256(undone.data).hexdigest()
    made[name] = undone.data
    return name
