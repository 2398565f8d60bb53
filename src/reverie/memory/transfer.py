"""Memories in from other programs, and everything out as files.

An import only reads where it comes from; each file is one memory with the origin `import`, as
trusted as its source: what the user or their agent kept is; what a repository brought, and what
is named by its path alone, is not unless the user says so, and waits for review where it reads
like instructions. What is here under the same name with other
contents stays as it is and is named. An export holds memory, every version and the review queue
as plain files, and importing it into an empty project gives the same project back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from reverie.errors import ImportFailed, NotFound, ReverieError
from reverie.session.recall.project_index import commit_times
from reverie.store import home as places
from reverie.store.files import Folder
from reverie.store.fs import read_plain
from reverie.store.history import LOG
from reverie.store.lists import REVIEW
from reverie.store.memory_store import MemoryStore
from reverie.store.objects import OBJECTS
from reverie.store.project import Project
from reverie.topics import entry as entries
from reverie.topics import index as indexes
from reverie.topics.trust import Trust
from reverie.topics.versions import Origin
from reverie.world import Notice, Say

Program = Literal["claude", "codex", "gemini", "agents"]

MEMORY, HISTORY = "memory", "history"
TIMES = "times.json"
_LARGEST = 4 * 2**20
_ABOVE = {"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "gemini": "GEMINI_HOME"}


@dataclass(frozen=True, slots=True)
class ImportCandidate:
    """A file that could become a memory: its bytes, name here, hook, and how far it is trusted."""

    path: Path
    key: str
    data: bytes
    program: str
    trust: Trust
    hook: str = ""
    at: float = 0.0  # when git last saw it change


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """What became of one file."""

    path: str
    file: str
    outcome: str


def import_file(memories: MemoryStore, found: ImportCandidate, dry_run: bool) -> ImportedFile:
    """Save one file as a memory, unless it is here already."""
    where = str(found.path)
    for key in memories.folder.keys():  # noqa: SIM118 - a folder, no dict
        if memories.folder.read(key).data == found.data:
            return ImportedFile(where, key, "already here")
    if found.key in memories.folder.keys():  # noqa: SIM118
        return ImportedFile(where, found.key, "another memory has this name")
    if dry_run:
        return ImportedFile(where, found.key, "would be imported")
    origin = Origin("import", found.trust, found.program, note=found.path.name)
    try:
        done = memories.save(found.key, found.data, origin, exclusive=True, hook=found.hook)
    except ReverieError as error:
        return ImportedFile(where, found.key, f"refused: {error.what}")
    if done.saved:
        keep_time(memories, found.key, int(found.at * 1e9) or _time_of(found.path))
    how = "imported, unverified" if done.unverified else "imported"
    return ImportedFile(where, found.key, how if done.saved else "waits for review")


def _time_of(path: Path) -> int:
    try:
        return path.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def keep_time(memories: MemoryStore, key: str, at: int) -> None:
    """A file that came from elsewhere is as old here as it was there."""
    if at > 0:
        with suppress(OSError):
            os.utime(memories.folder.root / key, ns=(at, at), follow_symlinks=False)


# --- what other programs keep


def files_of_program(program: Program, place: Project) -> Iterator[ImportCandidate]:
    """What another program keeps for this project and its user."""
    user = Path(place.environ.get("HOME", "") or os.path.expanduser("~"))
    if program == "claude":
        yield from _claude(_above(program, user, place.environ), place.root)
    elif program == "codex":
        base = _above(program, user, place.environ)
        yield from _one(base / "AGENTS.md", program, Trust.USER)
        for path in _markdown(base / "memories"):
            yield from _one(path, program, Trust.AGENT)
    elif program == "gemini":
        yield from _one(_above(program, user, place.environ) / "GEMINI.md", program, Trust.USER)
        yield from _one(place.root / "GEMINI.md", program, Trust.UNTRUSTED)
    else:
        yield from _one(place.root / "AGENTS.md", program, Trust.UNTRUSTED)


def _above(program: str, user: Path, environ: Mapping[str, str]) -> Path:
    return Path(environ.get(_ABOVE[program], "") or user / f".{program}")


def _claude(base: Path, root: Path) -> Iterator[ImportCandidate]:
    """Claude Code's own memory of this repository, file by file, with the hooks of its index."""
    folder = base / "projects" / places.slug(root) / "memory"
    hooks: dict[str, str] = {}
    index = _read(folder / entries.INDEX)
    if index is not None:
        hooks = {one.key: one.hook for one in indexes.parse_index(index).pointers if one.key}
    for path in _markdown(folder):
        key = path.relative_to(folder).as_posix()
        data = _read(path)
        if data is not None and entries.is_topic(key):
            yield ImportCandidate(path, key, data, "claude", Trust.AGENT, hooks.get(key, ""))


def _one(path: Path, program: str, trust: Trust) -> Iterator[ImportCandidate]:
    """A file of instructions or notes as one reference memory."""
    data = _read(path)
    if data is None or not data.strip():
        return
    text = data.decode("utf-8", "replace")
    if text.startswith("---"):
        key = entries.key_for(entries.stem(path.name), program)
        yield ImportCandidate(path, key, data, program, trust)
        return
    name = f"{path.stem} of {program}"
    made = entries.new(
        entries.key_for(name, "reference"),
        name=name,
        description=f"What {path.name} says, imported from {program}",
        type="reference",
        body=text,
    )
    yield ImportCandidate(path, made.key, made.data, program, trust)


def files_at(paths: Sequence[Path]) -> Iterator[ImportCandidate]:
    """Files and folders that the user names, as old as git knows them. That they chose a file does
    not say who wrote it."""
    for path in paths:
        if not path.exists():
            raise NotFound("There is no such file", where=str(path))
        folder = path if path.is_dir() else path.parent
        committed = commit_times(folder)
        for found in _files_below(path):
            name = found.path.relative_to(folder).as_posix()
            yield replace(found, at=committed.get(name, 0.0))


def _files_below(path: Path) -> Iterator[ImportCandidate]:
    for file in _markdown(path) if path.is_dir() else [path]:
        data = _read(file)
        if data is None:
            raise ImportFailed(
                "The file cannot be a memory: it is not a text file, or too large",
                where=str(file),
            )
        if entries.is_index(file.name):
            continue
        if data.startswith(b"---"):
            name = file.name if entries.is_topic(file.name) else f"{file.stem}.md"
            yield ImportCandidate(file, name, data, "file", Trust.UNTRUSTED)
        else:
            yield from _one(file, "file", Trust.UNTRUSTED)


def _markdown(folder: Path) -> list[Path]:
    """The Markdown files below a folder, through no link."""
    found: list[Path] = []
    for above, _, names in os.walk(folder):
        found += [Path(above, name) for name in names if name.lower().endswith(".md")]
    return sorted(found)


def _read(path: Path) -> bytes | None:
    """A regular file of bearable size; None for anything else."""
    try:
        data = read_plain(path, _LARGEST)
    except OSError:
        return None
    return data if data is not None and len(data) <= _LARGEST else None


# --- an export of ours, out and in


def exported_files(memories: MemoryStore, say: Say) -> Iterator[tuple[str, bytes]]:
    """Every file of an export by its path there; a version that cannot be read is said."""
    for key in memories.folder.all_keys():
        if not any(part.startswith(".") for part in key.split("/")):
            yield f"{MEMORY}/{key}", memories.folder.files.read(key, single_link=True)
    yield f"{HISTORY}/{TIMES}", json.dumps(_times(memories), sort_keys=True).encode()
    kept = memories.history
    versions = kept.log()
    if versions:
        yield f"{HISTORY}/{LOG}", kept.files.read(LOG, single_link=True)
    named = {n for v in versions for n in (v.before, v.after) if n}
    for name in sorted(named - kept.state.grown.keys()):  # what grew is in the log
        try:
            yield f"{HISTORY}/{OBJECTS}/{name}", kept.content(name)
        except ReverieError as error:
            say(Notice("memory", f"A version is left out: {error}", "warning"))
    for item in memories.review.items():
        key = f"{REVIEW}/{item.id}.json"
        yield key, kept.files.read(key, single_link=True)


def _times(memories: MemoryStore) -> dict[str, int]:
    """The time of each file in nanoseconds: a copy of an export may not keep them."""
    folder = memories.folder
    keys = [k for k in folder.all_keys() if not any(p.startswith(".") for p in k.split("/"))]
    return {key: folder.stat(key).modified for key in keys}


def _times_in(source: Folder) -> dict[str, int]:
    try:
        value: Any = json.loads(source.read(f"{HISTORY}/{TIMES}"))
    except (NotFound, ValueError):
        return {}
    found = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return {key: at for key, at in found.items() if type(at) is int and 0 < at < 2**63}


def is_export(path: Path) -> bool:
    """Whether a folder is an export of ours."""
    return (path / MEMORY).is_dir()


def restore(
    memories: MemoryStore, path: Path, dry_run: bool, *, trusted: bool = False
) -> list[ImportedFile]:
    """An export put back: whole into an empty project, else its memories as an import."""
    empty = not memories.history.log() and not memories.folder.keys()
    with Folder(path.absolute(), create=False) as source:
        if not empty or dry_run or not source.exists(f"{HISTORY}/{LOG}"):
            folder, trust = path / MEMORY, Trust.USER if trusted else Trust.UNTRUSTED
            return [import_file(memories, one, dry_run) for one in _export_topics(folder, trust)]
        return list(_put_back(memories, source))


def _export_topics(folder: Path, trust: Trust) -> Iterator[ImportCandidate]:
    for path in _markdown(folder):
        data, key = _read(path), path.relative_to(folder).as_posix()
        if data is not None and entries.is_topic(key):
            yield ImportCandidate(path, key, data, "export", trust)


def _put_back(memories: MemoryStore, source: Folder) -> Iterator[ImportedFile]:
    """Versions first, then the files that the last ones are, so that a look finds nothing new."""
    kept = memories.history
    times = _times_in(source)
    for key in source.list():
        memories.forgotten.guard(key, source.read(key))
    with memories.folder.locked():
        for key in _list_keys(source, f"{HISTORY}/{OBJECTS}"):
            name = key.rpartition("/")[2]
            if kept.put(source.read(key)) != name:
                raise ImportFailed("A version in the export is damaged", where=name)
        for key in _list_keys(source, MEMORY):
            name = key.removeprefix(f"{MEMORY}/")
            data = source.read(key)
            memories.allow(name, data)
            at = times.get(name) or _time_of(source.root / key)
            memories.folder.files.write(name, data, modified=at)
            yield ImportedFile(str(source.root / key), name, "imported")
        for key in _list_keys(source, REVIEW):
            kept.files.write(key, source.read(key))
        kept.files.write(LOG, source.read(f"{HISTORY}/{LOG}"))
    memories.look()


def _list_keys(folder: Folder, under: str) -> tuple[str, ...]:
    try:
        return folder.list(under)
    except NotFound:
        return ()
