"""What a session's head says of its surroundings: instruction files, memory, the memory prompt.

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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reverie.errors import StoreError
from reverie.light import dataclass
from reverie.memory import instructions, prompt
from reverie.memory.format.entry import INDEX, TEAM, shown
from reverie.memory.instructions import (
    MAX_BYTES,
    Collected,
    InstructionFile,
    InstructionKind,
    InstructionText,
    PathRule,
    RefusedFile,
)
from reverie.memory.ranking import ManifestLine
from reverie.memory.trust import without_orders
from reverie.settings import Settings
from reverie.settings.claude import claude_home, claude_settings, excludes
from reverie.settings.sources import settings_files
from reverie.store import keys
from reverie.store.approvals import IncludeApprovals
from reverie.store.home import canonical_root
from reverie.store.memory import MemoryFolder
from reverie.store.plain import open_plain, read_open
from reverie.store.private import is_secret
from reverie.store.project import Project
from reverie.tools import globs
from reverie.world import Notice, Say, say_nothing

if TYPE_CHECKING:
    from reverie.store.memories import Memories

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
        return _found(real, data, max(size, len(data)), self._most)

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
        return globs.matcher(pattern, folders=True)(names)
    except globs.BadPattern:
        return False


def _found(real: str, data: bytes, size: int, most: int) -> InstructionText:
    if len(data) <= most:
        return InstructionText(real, shown(data), size)
    head = data[:most]
    end = head.rfind(b"\n")
    return InstructionText(real, shown(head[: end + 1] if end > 0 else head), size, cut=True)


def _is_text(data: bytes) -> bool:
    return data.startswith(_WIDE) or b"\0" not in data[:_SNIFFED]


def _is_at(fd: int, real: str) -> bool:
    """Whether what was opened lies where it was looked for; folders may be swapped meanwhile."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}") == real
    except OSError:
        return os.path.realpath(real) == real


def instruction_files(project: Project, *, managed: Path = MANAGED) -> Collected:
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


def _collect(project: Project, places: Sequence[instructions.InstructionSource]) -> Collected:
    top, excluded = project.worktree, _excluded(project)
    reader = DiskReader(top, IncludeApprovals(project.home), excludes=excluded)
    return instructions.collect(
        places, reader, user=project.user_home, top=str(top), settings=project.settings
    )


def _excluded(project: Project) -> tuple[str, ...]:
    """What the user excludes anywhere; a project may exclude what lies in it."""
    home, top = project.home, project.worktree
    files = (*settings_files(home=home, root=top), *claude_settings(home, top, project.environ))
    own = excludes(tuple(one for one in files if one.origin.trusted))
    theirs = excludes(tuple(one for one in files if not one.origin.trusted))
    inside = f"{os.path.realpath(top)}/"
    return (*own, *(one for one in theirs if one.startswith(inside)))


def unapproved_notice(missing: Sequence[instructions.Unapproved]) -> Notice:
    """What the project asked for outside itself, in one sentence, and how to let it."""
    named = "; ".join(f"{keys.shown(one.path)} (for {keys.shown(one.by)})" for one in missing)
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
        prompt.Options(
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


def index_files(
    memory: MemoryFolder, *, team: bool = False, scanned: Sequence[ManifestLine] | None = None
) -> tuple[InstructionFile, ...]:
    """The memory index as it is sent, and the team's after it, without lines that would command:
    teammates' words are untrusted."""
    found: list[InstructionFile] = []
    kinds: list[tuple[str, InstructionKind]] = [(INDEX, "memory")]
    if team:
        kinds.append((f"{TEAM}/{INDEX}", "team"))
    for key, kind in kinds:
        sent = memory.index_sent(key, scanned)
        index, left_out = without_orders(sent.text) if kind == "team" else (sent.text, "")
        text = "\n\n".join(filter(None, (index.rstrip("\r\n"), sent.warning, left_out)))
        if text.strip():
            found.append(InstructionFile(str(memory.root / key), kind, text))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Context:
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
) -> Context:
    """Instruction files, the memory index, then memories sent whole: the head's context."""
    collected = instruction_files(project, managed=managed)
    for warning in collected.warnings:
        say(Notice("instructions", warning, "warning"))
    if collected.unapproved:
        say(unapproved_notice(collected.unapproved))
    indexes = () if memory is None else index_files(memory, team=team, scanned=scanned)
    files = (*collected.files, *indexes, *young)
    return Context(instructions.render(files), files)


# --- the head of a session with memory


def remembering_head(
    system: str | Sequence[Mapping[str, Any]],
    project: Project,
    memories: Memories,
    wider: Sequence[Project],
    say: Say,
) -> tuple[str | Sequence[Mapping[str, Any]], str]:
    """Return the system prompt with its section about memory, and what stands before the first
    message: instruction files, the index, memories that are sent whole."""
    from reverie.session.recall.young import young_memories

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
    from reverie.session.recall.young import young_memories

    for part in projects:
        if part.has_memory:
            with OpenMemory.of(part, say=say) as opened:
                store = opened.store
                scanned = store.folder.scan()
                yield from index_files(store.folder, scanned=scanned)
                yield from young_memories(store, settings, scanned)
