"""The head of the first message: instructions, index, small memories, git state.

What a session's head says of its surroundings: instruction files, memory, the memory prompt.

Everything is read when a session begins, or when its beginning is replaced, and never while a
request is rendered. Reading is bounded and takes plain files only. A project gets what lies in
it; a link or an include that leads out is followed only where the user approved that
(`approvals`), and never to keys or into an agent's own folder. Whatever fails here is said once,
and the session goes on without it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reverie.errors import NotFound, StoreError
from reverie.light import dataclass
from reverie.session.recall.excerpts import in_head, trust_at
from reverie.settings.catalog import Settings
from reverie.settings.sources import claude_home, claude_settings, excludes, settings_files
from reverie.store import paths
from reverie.store.approvals import IncludeApprovals
from reverie.store.fs import open_plain, read_open
from reverie.store.home import canonical_root
from reverie.store.memory_folder import MemoryFolder
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project
from reverie.store.sensitive_paths import is_secret
from reverie.text.dates import latest
from reverie.toolbox import path_patterns
from reverie.topics import instructions, prompt
from reverie.topics.entry import INDEX, TEAM, TopicFile, decode_text
from reverie.topics.index import without
from reverie.topics.instructions import (
    MAX_BYTES,
    InstructionFile,
    InstructionKind,
    InstructionSet,
    InstructionText,
    PathRule,
    RefusedFile,
)
from reverie.topics.manifest import ManifestLine, iso_time
from reverie.topics.trust import Trust, without_orders
from reverie.transcript.blocks import TEXT_BYTES, text_block
from reverie.world import Notice, Say, say_nothing

MANAGED = Path("/etc/reverie/CLAUDE.md")
MAX_RULES = 200
MAX_DEPTH = 8
"""Folders below a folder of rules."""
APPROVE = "To approve a file, answer when a conversation starts here, or approve it by name."
_SNIFFED = 8 * 1024
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


# Instruction files


class DiskReader:
    """`instructions.Reader` over the file system; `top` is the root of the working tree."""

    def __init__(
        self,
        top: Path,
        approvals: IncludeApprovals,
        *,
        most: int = MAX_BYTES,
        excludes: Sequence[str] = (),
    ) -> None:
        self._top = str(top)
        self._approvals = approvals
        self._most = most
        self._excludes = excludes

    def _is_excluded(self, path: str, kind: InstructionKind) -> bool:
        """What an administrator gave is always read; the user's own is theirs to exclude."""
        if kind == "managed" or not self._excludes:
            return False
        names = [part for part in os.path.realpath(path).split("/") if part]
        given = [part for part in path.split("/") if part]
        return any(_excludes(one, names) or _excludes(one, given) for one in self._excludes)

    def read(self, path: str, kind: InstructionKind) -> InstructionText | RefusedFile | None:
        if "\0" in path or self._is_excluded(path, kind):
            return None
        real = os.path.realpath(path)
        if not os.path.lexists(real) or os.path.isdir(real):
            return None
        return self._refusal(real, kind) or self._read(real)

    def _refusal(self, real: str, kind: InstructionKind) -> RefusedFile | None:
        """What a repository brings may name any file of the user's; what it may not read."""
        if kind in ("managed", "user"):
            return None
        if is_secret(Path(real)):
            return RefusedFile("its name says that it may hold keys or passwords")
        if instructions.is_inside(real, self._top):
            return None
        if self._approvals.is_barred(Path(real)):
            return RefusedFile("it lies in the folder of an agent, outside the project")
        if self._approvals.approved(canonical_root(Path(self._top)), real):
            return None
        return RefusedFile("it lies outside the project, and nobody approved it", outside=real)

    def _read(self, real: str) -> InstructionText | RefusedFile | None:
        try:
            fd = open_plain(real)
        except FileNotFoundError:
            return None
        except OSError as error:
            return RefusedFile(f"it cannot be opened: {os.strerror(error.errno or 0)}")
        if fd is None:
            return RefusedFile("it is no plain file")
        try:
            if not _is_at(fd, real):
                return RefusedFile("it is no plain file")
            size = os.fstat(fd).st_size
            data = read_open(fd, self._most + 1)
        except OSError as error:
            return RefusedFile(f"it cannot be read: {os.strerror(error.errno or 0)}")
        finally:
            os.close(fd)
        if not _is_text(data):
            return RefusedFile("it is no text")
        return _instruction_text(real, data, max(size, len(data)), self._most)

    def rules(self, folder: str) -> Sequence[str]:
        found: list[str] = []
        for base, folders, names in os.walk(folder):  # a folder that is a link is not entered
            folders.sort()
            del folders[MAX_RULES:]
            found += [os.path.join(base, n) for n in names if n.lower().endswith(".md")]
            if len(found) > MAX_RULES * 10 or base.count("/") - folder.count("/") >= MAX_DEPTH:
                folders.clear()
        return sorted(found)[:MAX_RULES]


def _excludes(pattern: str, names: Sequence[str]) -> bool:
    try:
        return path_patterns.matcher(pattern, folders=True)(names)
    except path_patterns.BadPattern:
        return False


def _instruction_text(real: str, data: bytes, size: int, most: int) -> InstructionText:
    if len(data) <= most:
        return InstructionText(real, decode_text(data), size)
    head = data[:most]
    end = head.rfind(b"\n")
    return InstructionText(real, decode_text(head[: end + 1] if end > 0 else head), size, cut=True)


def _is_text(data: bytes) -> bool:
    return data.startswith(_WIDE) or b"\0" not in data[:_SNIFFED]


def _is_at(fd: int, real: str) -> bool:
    """Whether what was opened lies where it was looked for; folders may be swapped meanwhile."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}") == real
    except OSError:
        return os.path.realpath(real) == real


def instruction_files(project: Project, *, managed: Path = MANAGED) -> InstructionSet:
    """Read all instruction files for a session in a project's working folder."""
    return _collect(project, _sources(project, managed))


def path_rules(project: Project) -> tuple[PathRule, ...]:
    """Read the rules that wait for a file they are meant for, and only folders of rules."""
    places = _sources(project, MANAGED)
    folders = tuple(one for one in places if one.folder and os.path.isdir(one.path))
    return _collect(project, folders).rules if folders else ()


def _sources(project: Project, managed: Path) -> tuple[instructions.InstructionSource, ...]:
    """Return where instruction files of a project may lie."""
    return instructions.sources(
        managed=str(managed),
        home=str(project.home),
        top=str(project.worktree),
        cwd=os.path.realpath(project.cwd),
        claude=str(claude_home(project.environ)),
    )


def _collect(project: Project, places: Sequence[instructions.InstructionSource]) -> InstructionSet:
    top, excluded = project.worktree, _is_excluded(project)
    reader = DiskReader(top, IncludeApprovals(project.home), excludes=excluded)
    return instructions.collect(
        places, reader, user=project.user_home, top=str(top), settings=project.settings
    )


def _is_excluded(project: Project) -> tuple[str, ...]:
    """What the user excludes anywhere; a project may exclude what lies in it."""
    home, top = project.home, project.worktree
    files = (*settings_files(home=home, root=top), *claude_settings(home, top, project.environ))
    own = excludes(tuple(one for one in files if one.origin.trusted))
    theirs = excludes(tuple(one for one in files if not one.origin.trusted))
    inside = f"{os.path.realpath(top)}/"
    return (*own, *(one for one in theirs if one.startswith(inside)))


def unapproved_notice(missing: Sequence[instructions.PendingInclude]) -> Notice:
    """What the project asked for outside itself, in one sentence, and how to let it."""
    named = "; ".join(
        f"{paths.format_path(one.path)} (for {paths.format_path(one.by)})" for one in missing
    )
    text = f"Not read, since it lies outside the project: {named}. {APPROVE}"
    return Notice("instructions", text, "warning")


# Memory


def memory_section(
    settings: Settings,
    memory: MemoryFolder | None,
    *,
    team: bool = False,
    daily_log: bool = False,
    search_past: bool = True,
    by_itself: bool = False,
    say: Say = say_nothing,
) -> str:
    """The part of the system prompt about memory; "" where there is none."""
    if memory is None:
        return ""
    both = prompt.both_modes(daily_log=daily_log, team=team)
    if both:
        say(Notice("memory", both, "warning"))
    shared = team and not daily_log
    if shared:
        with contextlib.suppress(StoreError):
            memory.make_folder(TEAM)
    return prompt.section(
        prompt.PromptOptions(
            str(memory.root),
            team=str(memory.root / TEAM) if shared else "",
            daily_log=daily_log,
            search_past=search_past,
            extra=settings.memory_extra_guidelines or "",
            lines=settings.index_lines,
            width=settings.index_line_characters,
            by_itself=by_itself,
        )
    )


WHOLE = "What this index leaves out stands below as a whole."


def index_files(
    memory: MemoryFolder,
    *,
    team: bool = False,
    scanned: Sequence[ManifestLine] | None = None,
    whole: Sequence[InstructionFile] = (),
) -> tuple[InstructionFile, ...]:
    """The memory index as it is sent, and the team's after it, without lines that would command:
    teammates' words are untrusted. Memories that are sent `whole` have no line in it."""
    found: list[InstructionFile] = []
    kinds: list[tuple[str, InstructionKind]] = [(INDEX, "memory")]
    if team:
        kinds.append((f"{TEAM}/{INDEX}", "team"))
    for key, kind in kinds:
        sent = memory.index_sent(key, scanned)
        index, left_out = without_orders(sent.text) if kind == "team" else (sent.text, "")
        kept = _without_lines(index, memory.root, whole)
        told = WHOLE if kept != index else ""
        text = "\n\n".join(filter(None, (kept.strip("\r\n"), told, sent.warning, left_out)))
        if text.strip():
            found.append(InstructionFile(str(memory.root / key), kind, text))
    return tuple(found)


def _without_lines(index: str, root: Path, whole: Sequence[InstructionFile]) -> str:
    """An index without the lines of memories that are sent whole."""
    data = index.encode("utf-8", "surrogateescape")
    for one in whole:
        path = Path(one.path)
        if path.is_relative_to(root):
            data = without(data, path.relative_to(root).as_posix())
    return data.decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class HeadContext:
    """The text at the head of the first user message, and the files it was made from."""

    text: str
    files: tuple[InstructionFile, ...]


def gather(
    project: Project,
    *,
    memory: MemoryFolder | None = None,
    young: Sequence[InstructionFile] = (),
    scanned: Sequence[ManifestLine] | None = None,
    team: bool = False,
    managed: Path = MANAGED,
    say: Say = say_nothing,
) -> HeadContext:
    """Instruction files, the memory index, then memories sent whole: the head's context."""
    collected = instruction_files(project, managed=managed)
    for warning in collected.warnings:
        say(Notice("instructions", warning, "warning"))
    if collected.unapproved:
        say(unapproved_notice(collected.unapproved))
    indexes = () if memory is None else index_files(memory, team=team, scanned=scanned, whole=young)
    files = (*collected.files, *indexes, *young)
    return HeadContext(instructions.render(files), files)


# --- the head of a session with memory


def remembering_head(
    system: str | Sequence[Mapping[str, Any]],
    project: Project,
    memories: MemoryStore,
    wider: Sequence[Project],
    say: Say,
) -> tuple[str | Sequence[Mapping[str, Any]], str]:
    """Return the system prompt with its section about memory, and what stands before the first
    message: instruction files, the index, memories that are sent whole."""
    folder, settings = memories.folder, project.settings
    section = memory_section(settings, folder, by_itself=True, say=say)
    scanned = folder.scan()
    found = gather(
        project,
        memory=folder,
        young=(
            *_wider_memories(wider, settings, say),
            *young_memories(memories, settings, scanned),
        ),
        scanned=scanned,
        say=say,
    )
    if isinstance(system, str):
        return "\n\n".join(filter(None, (system.rstrip(), section))), found.text
    return [*system, {"type": "text", "text": section}], found.text


def _wider_memories(
    projects: Sequence[Project], settings: Settings, say: Say
) -> Iterator[InstructionFile]:
    """Yield the indexes of memories around one, and what of them is sent whole."""
    from reverie.session.open_memory import OpenMemory

    for part in projects:
        if part.has_memory:
            with OpenMemory.of(part, say=say) as opened:
                store = opened.store
                scanned = store.folder.scan()
                young = young_memories(store, settings, scanned)
                yield from index_files(store.folder, scanned=scanned, whole=young)
                yield from young


# --- Young memories, sent whole: while they are few, their bodies stand with the index in the
# head.
#
# All trusted memories while together they are within the limit; above it those about the user, the
# user's rules and what names a day still to come, while these are; above that the rules that had to
# be said again, and recall brings what a turn needs. They are read when a head is made, and a head
# is a record: what changes later reaches the next one. Nothing untrusted, nothing of the team's and
# nothing that cannot be read stands among them.


MAX_HEAD = 1_024
"""Bytes of a file that may be frontmatter: more than the limit and so much is not read at all."""
MAX_PINNED = 20  # rules that had to be said again stand there whatever the limit
MAX_FILES = 200  # a folder of more is not young, however short they are
ABOUT_THE_USER = ("user", "feedback")
_ORDER: tuple[InstructionKind, ...] = ("rule", "person", "remembered")


def young_memories(
    memories: MemoryStore, settings: Settings, scanned: Sequence[ManifestLine]
) -> tuple[InstructionFile, ...]:
    """The memories whose bodies stand in the head, of those that a scan found, rules first and
    the newest last."""
    most = settings.young_tokens
    own = [one for one in scanned if not one.key.startswith(f"{TEAM}/") and not one.superseded]
    now = memories.now()
    about_user = [
        one for one in own if one.type in ABOUT_THE_USER or (latest(one.description) or 0.0) > now
    ]
    pinned = [one for one in about_user if one.said][:MAX_PINNED]
    for records, limit in ((own, most), (about_user, most), (pinned, MAX_PINNED * most)):
        found = _within(memories, records, limit)
        if found is not None:
            return tuple(sorted(found, key=lambda file: _ORDER.index(file.kind)))
    return ()


def _within(
    memories: MemoryStore, records: Sequence[ManifestLine], most: int
) -> list[InstructionFile] | None:
    """The trusted ones as they are sent; None where they are more than the limit."""
    if len(records) > MAX_FILES:
        return None
    trusted: list[ManifestLine] = []
    least = 0
    for one in records:
        if trust_at(memories, one.key) is Trust.UNTRUSTED:
            continue
        trusted.append(one)
        least += max(0, one.size - MAX_HEAD)
        if least > most * TEXT_BYTES:
            return None
    found: list[InstructionFile] = []
    tokens = 0
    for one in reversed(trusted):
        try:
            read = memories.folder.read(one.key)
        except (NotFound, StoreError):
            continue
        tokens += text_block(read.body.strip()).tokens
        if tokens > most:
            return None
        if read.body.strip():
            found.append(_dated_file(memories.root, read))
    return found


def _dated_file(folder: Path, one: TopicFile) -> InstructionFile:
    sent = in_head(folder, one)
    return replace(sent, text=f"{sent.text}\n\n(Saved {iso_time(one.modified)[:10]})")
