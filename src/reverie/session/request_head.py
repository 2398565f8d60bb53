"""What an agent is told of its place: prompt, surroundings, git state.

Where an agent works, and what it is told of the place: once, at the head of its session.

The system prompt with the memory section, the instruction files with the memory index, and the
surroundings. Rendered when a session begins, and again only behind a compaction that replaced the
conversation's beginning. Nothing here opens a session.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reverie.errors import NotFound
from reverie.session.attachments import date_line, frame_text, local_date
from reverie.session.context import gather, memory_section, young_memories
from reverie.session.team import is_on
from reverie.settings.catalog import Settings
from reverie.settings.sources import git_folder, small_text
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project, work_root
from reverie.text.safety import clean, neutralize_markup
from reverie.world import Capabilities, Clock, Notice, Say, say_nothing


def project_at(
    folder: Path, home: Path | None, environ: Mapping[str, str], say: Say = say_nothing
) -> Project:
    """Return the project around a working folder; say what is wrong with its settings."""
    found = Project.at(working_folder(folder), home=home, environ=environ)
    for problem in found.problems:
        say(Notice("settings", str(problem), "warning"))
    return found


SEALED_ROUNDS = """\
Earlier rounds of a long conversation are sealed: short lines at its beginning stand for them, each
with a reference such as r:abc123. A line leaves things out: before you rely on what it only names,
read that with ReadBack.
"""


def system_prompt(project: Project, text: str, memories: MemoryStore | None, say: Say) -> str:
    """The system prompt, with what there is to say about sealed rounds and about memory."""
    if project.settings.context_policy == "collapse":
        text = f"{text.rstrip()}\n\n{SEALED_ROUNDS}"
    if memories is None:
        return text
    flags = project.flags
    section = memory_section(
        project.settings,
        memories.folder,
        team=flags.on("team_memory"),
        daily_log=flags.on("daily_log"),
        search_past=flags.on("search_past"),
        say=say,
    )
    return f"{text.rstrip()}\n\n{section}" if section else text


def head_context(project: Project, clock: Clock, memories: MemoryStore | None, say: Say) -> str:
    """Instruction files and the memory index, then where and when this is."""
    folder = None if memories is None else memories.folder
    scanned = () if memories is None else memories.folder.scan()
    young = () if memories is None else young_memories(memories, project.settings, scanned)
    found = gather(
        project, memory=folder, young=young, scanned=scanned, team=is_on(project), say=say
    )  # fmt: skip
    here = surroundings(project.cwd, clock.now())
    return f"{found.text}\n{here}" if found.text else here


def working_folder(project: Path) -> Path:
    """The folder to work in, as an absolute path; NotFound where it is gone."""
    try:
        folder = Path(os.path.abspath(project))
        if not folder.is_dir():
            raise FileNotFoundError
    except FileNotFoundError:
        raise NotFound(
            "the working folder is not there", where=str(project), do="Go to one that exists"
        ) from None
    return folder


def surroundings(cwd: Path, now: float) -> str:
    """Where an agent works, told once at the head of its session."""
    top = work_root(cwd)
    there = os.path.lexists(top / ".git")
    lines = (
        f"Working folder: {cwd}",
        f"Git checkout: {top if there else 'none'}",
        *(git_state_lines(top) if there else ()),
        f"Platform: {platform.system()} {platform.release()}",
        date_line(local_date(now)),
    )
    return frame_text("environment", "\n".join(lines))


# How it thinks

LEAST_THINKING = 1_024  # tokens of the smallest budget, and what is left for the answer


def thinking_options(settings: Settings, known: Capabilities) -> dict[str, Any]:
    """Thinking and effort as the settings say and the model can."""
    options: dict[str, Any] = {}
    if settings.thinking != "off" and known.thinking:
        way = settings.thinking if settings.thinking in known.thinking else known.thinking[0]
        most = min(known.max_output or settings.max_output_tokens, settings.max_output_tokens)
        budget = max(LEAST_THINKING, min(settings.thinking_tokens, most - LEAST_THINKING))
        enabled = {"type": "enabled", "budget_tokens": budget}
        options["thinking"] = {"type": "adaptive"} if way == "adaptive" else enabled
    if settings.effort != "default" and known.efforts:
        options["output_config"] = {"effort": settings.effort}
    return options


# --- Git's state as a session begins: branch, newest commits, changed files.
#
# Read from git's own files, bounded, and without running git: in a repository one does not trust,
# running it can run that repository's programs. What cannot be read with certainty is left out.
# Commits are those of the log that this checkout keeps of itself; files that git does not track
# are not looked for.


COMMITS = 5
CHANGED = 10
SUBJECT = 100
_LOG = 256 * 1024  # bytes of the log's end
_INDEX = 16 * 1024 * 1024
_ENTRIES = 20_000
_HASHED = 1024 * 1024  # bytes of one file that is compared by its hash
_FIXED = 62


def git_state_lines(root: Path) -> tuple[str, ...]:
    """Lines for the head of a session; none where git's files say nothing."""
    folder = git_folder(root)
    if folder is None:
        return ()
    lines = (_branch(folder), _changes(folder, root), *_commits(folder))
    return tuple(line for line in lines if line)


def _branch(folder: Path) -> str:
    head = (small_text(folder / "HEAD", 4_096) or "").strip()
    if head.startswith("ref: refs/heads/"):
        return f"Git branch: {_format_subject(head.removeprefix('ref: refs/heads/'))}"
    return f"Git: at commit {head[:12]}, on no branch" if head.isalnum() else ""


def _commits(folder: Path) -> list[str]:
    """The newest commits made or taken over here, newest first."""
    text = _end(folder / "logs" / "HEAD", _LOG).decode("utf-8", "replace")
    found: list[str] = []
    for line in reversed(text.splitlines()):
        about, _, what = line.partition("\t")
        kind, _, subject = what.partition(": ")
        parts = about.split(" ")
        if kind.startswith("commit") and len(parts) > 1:
            found.append(f"- {_format_subject(parts[1][:8])} {_format_subject(subject)}")
        if len(found) == COMMITS:
            break
    return ["Newest commits of this checkout:", *found] if found else []


def _changes(folder: Path, root: Path) -> str:
    data = _end(folder / "index", _INDEX + 1)
    if not data or len(data) > _INDEX:
        return ""
    changed: list[str] = []
    try:
        for name, size, moment, blob in _entries(data):
            if _differs(root / name, size, moment, blob):
                changed.append(_format_subject(name))
            if len(changed) > CHANGED:
                break
    except (ValueError, struct.error, OSError):
        return ""
    if not changed:
        return "Git: no tracked file was changed"
    more = ", and more" if len(changed) > CHANGED else ""
    return f"Git: changed files: {', '.join(changed[:CHANGED])}{more}"


def _entries(data: bytes) -> Iterator[tuple[str, int, int, bytes]]:
    """Name, size, time of change and hash of plain files in an index of version 2 or 3."""
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in (2, 3) or count > _ENTRIES:
        raise ValueError("an index of another kind")
    at = 12
    for _ in range(count):
        seconds, nanos, _, _, mode, _, _, size = struct.unpack_from(">8I", data, at + 8)
        blob = data[at + 40 : at + 60]
        (flags,) = struct.unpack_from(">H", data, at + 60)
        begin = at + _FIXED + (2 if flags & 0x4000 else 0)
        end = data.index(b"\0", begin)
        if stat.S_ISREG(mode) and not flags & 0x4000:  # no link, none that git leaves out
            yield os.fsdecode(data[begin:end]), size, seconds * 10**9 + nanos, blob
        at += (end - at + 8) // 8 * 8


def _differs(path: Path, size: int, moment: int, blob: bytes) -> bool:
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return True
    if not stat.S_ISREG(info.st_mode):
        return True
    if info.st_size == size and info.st_mtime_ns == moment:
        return False
    if info.st_size != size or size > _HASHED:
        return info.st_size != size
    data = _end(path, _HASHED)
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest() != blob


def _end(path: Path, most: int) -> bytes:
    """The last bytes of a plain file; nothing where it is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            return b""
        file.seek(max(0, info.st_size - most))
        return file.read(most)


def _format_subject(text: str) -> str:
    """A name or subject of the repository's on one line."""
    return " ".join(neutralize_markup(clean(text)).split())[:SUBJECT]
