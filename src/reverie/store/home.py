"""Where things lie under home.

Where things lie: home, the project's folder, and the files of a session.

Every worktree of a repository has one root, found by reading git's own files; a folder
that merely claims to belong to a repository is not believed. A project's folder belongs
to one root, said by a small file in it that is only ever written under a lock; a
repository that was moved keeps its folder, and nobody's folder is taken while its root
still exists. What has no root (a project that is a name, one user's or one agent's part of a
project) has a folder named by slug and digest, which is its own root: no name becomes a path.
No program is run here, and nothing outside home is written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

from reverie.errors import InvalidInput, PathRefused, StoreError
from reverie.light import dataclass
from reverie.settings import schema, sources
from reverie.store import paths
from reverie.store.files import Folder
from reverie.store.lock import PATIENCE, FileLock

OWNER = ".reverie-root"
LAYOUT = ".reverie-home"
LOCK = ".reverie-projects.lock"
DIALOGUES = "dialogues"
"""The folder beside a project's transcripts for conversations that a program recorded."""

_ANOTHER = "Set REVERIE_HOME to a folder of your own, or leave it unset."
_LONGEST_SLUG = 200
_TRIES = 100
_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SessionFile:
    """One transcript on disk."""

    id: str
    path: Path
    mtime: float
    size: int
    stamp: str = ""  # the same only while the file is


@dataclass(frozen=True, slots=True)
class _Owner:
    """Whose a project folder is, and by what its repository is known after a move."""

    root: str
    identity: str


def home(environ: Mapping[str, str]) -> Path:
    """`REVERIE_HOME`, or `~/.reverie`."""
    user = environ.get("HOME", "") or os.path.expanduser("~")
    named = environ.get("REVERIE_HOME", "").strip() or "~/.reverie"
    text = user + named[1:] if named == "~" or named.startswith("~/") else named
    path = os.path.normpath(text)
    if "\0" in text or not os.path.isabs(text) or path.strip("/") == "":
        raise PathRefused(
            "Home must be an absolute folder other than /",
            where=ascii(named),
            do=_ANOTHER,
        )
    return Path(path)


def check_folder(home: Path) -> None:
    """Raise where home can be no folder: something else is in its place, or above it."""
    there = next(one for one in (home, *home.parents) if os.path.lexists(one))
    if not there.is_dir():
        raise PathRefused("Home must be a folder, and this is none", where=str(there), do=_ANOTHER)


# The root of a project


def canonical_root(cwd: Path) -> Path:
    """The root whose memory `cwd` shares: the main repository's, or `cwd` outside git."""
    if "\0" in str(cwd):
        raise PathRefused("A folder's name cannot contain NUL", where=paths.format_path(str(cwd)))
    start = Path(os.path.realpath(cwd))
    for folder in (start, *start.parents):
        if os.path.lexists(folder / ".git"):
            return _main_root(folder)
        if folder.name != ".git" and _is_git_folder(folder):
            return folder
    return start


def _main_root(folder: Path) -> Path:
    """The main repository's root for a folder with a `.git`; itself where that is not proven."""
    linked = sources.git_folder(folder)
    named = None if linked is None else sources.small_text(linked / "commondir")
    if linked is None or named is None or not (folder / ".git").is_file():
        return folder
    common = Path(os.path.realpath(linked / named.strip("\n\r ")))
    if not _is_git_folder(common) or not _is_registered(folder, linked, common):
        return folder
    for candidate in (common.parent, _work_tree(common)):
        if candidate is not None and sources.git_folder(candidate) == common:
            return candidate
    return common


def _is_registered(folder: Path, linked: Path, common: Path) -> bool:
    """Whether the repository itself lists this folder as one of its worktrees."""
    if linked.parent != Path(os.path.realpath(common / "worktrees")):
        return False
    back = sources.small_text(linked / "gitdir")
    if back is None:
        return False
    entry = linked / back.strip("\n\r ")
    return entry.name == ".git" and Path(os.path.realpath(entry.parent)) == folder


def _work_tree(common: Path) -> Path | None:
    """The folder that a repository's own settings name as its work tree."""
    text = sources.small_text(common / "config") or ""
    found = re.search(r"^\s*worktree\s*=\s*\"?([^\"\n]+?)\"?\s*$", text, re.MULTILINE | re.I)
    return None if found is None else Path(os.path.realpath(common / found[1]))


def _is_git_folder(folder: Path) -> bool:
    head = (folder / "HEAD").is_symlink() or (folder / "HEAD").is_file()
    return head and (folder / "objects").is_dir() and (folder / "refs").is_dir()


# The project's folder


def slug(root: Path) -> str:
    """The root as one file name; the same for roots that differ in marks alone."""
    name = re.sub(r"[^A-Za-z0-9]", "-", str(root))
    return name if len(name) <= _LONGEST_SLUG else _hashed_name(name, root, 0)


def project_folder(home: Path, root: Path, *, environ: Mapping[str, str] | None = None) -> Path:
    """The folder of `root`, made and claimed where it was not.

    `environ` matters once, when home is first used: it may say that home is Claude Code's.
    """
    owned = _owned_folder(home, root)
    if owned is not None and _read_owner(owned) == _claim(root, owned):
        return owned
    with _claiming(home, environ) as files:
        folder = find_project_folder(home, root)
        _write_owner(files, folder, _claim(root, folder))
        return folder


def claim_address(home: Path, folder: Path, *, environ: Mapping[str, str] | None = None) -> None:
    """Make a folder that is a root with itself as its folder."""
    if not is_address(home, folder):
        with _claiming(home, environ) as files:
            _write_owner(files, folder, _Owner(str(folder), ""))


@contextlib.contextmanager
def _claiming(home: Path, environ: Mapping[str, str] | None) -> Generator[Folder]:
    """Home, while nobody else gives out folders in it."""
    with Folder(home) as files, FileLock(home / LOCK).hold(PATIENCE):
        _settle_layout(files, environ)
        yield files


def _write_owner(home: Folder, folder: Path, owner: _Owner) -> None:
    body = json.dumps({"root": owner.root, "identity": owner.identity})
    key = folder.relative_to(home.root).as_posix()
    home.write(f"{key}/{OWNER}", body.encode() + b"\n")


def is_address(home: Path, root: Path) -> bool:
    """Whether a root is such a folder: it lies among home's projects, and says so itself."""
    if not root.is_relative_to(home / "projects"):
        return False
    owner = _read_owner(root)
    return owner is not None and owner.root == str(root)


def find_project_folder(home: Path, root: Path) -> Path:
    """The folder that `root` has or would get; nothing is written."""
    owned = _owned_folder(home, root)
    if owned is not None:
        return owned
    taken = {paths.fold_key(name): name for name in _list_folder(home / "projects")}
    for folder in _candidates(home, root):
        twin = taken.get(paths.fold_key(folder.name), folder.name)
        if twin != folder.name or _read_owner(folder) is not None:
            continue
        moved = None if (folder / "memory").is_dir() else _moved_folder(home, root)
        return moved or folder
    raise StoreError(
        "No free name is left for the project's folder",
        where=str(home / "projects" / slug(root)),
        do=f"Look at the files {OWNER} in the folders beside it",
    )


def _owned_folder(home: Path, root: Path) -> Path | None:
    """The folder that says it belongs to `root`; the obvious names are looked at first."""
    if is_address(home, root):
        return root
    for folder in _candidates(home, root):
        owner = _read_owner(folder)
        if owner is None:
            break
        if owner.root == str(root):
            return folder
    found = (folder for folder, owner in _owners(home) if owner.root == str(root))
    return next(found, None)


def _claim(root: Path, folder: Path) -> _Owner:
    """What the folder's file should say once it is `root`'s."""
    before = _read_owner(folder)
    known = before.identity if before is not None and before.root == str(root) else ""
    return _Owner(str(root), _identity(root) or known)


def _moved_folder(home: Path, root: Path) -> Path | None:
    """The one folder whose repository is this one, at a place that is gone."""
    identity = _identity(root)
    if not identity:
        return None
    found = [
        folder
        for folder, owner in _owners(home)
        if owner.identity == identity and _is_gone(owner.root)
    ]
    return found[0] if len(found) == 1 else None


def _candidates(home: Path, root: Path) -> Iterator[Path]:
    name = slug(root)
    yield home / "projects" / name
    for number in range(1, _TRIES):
        yield home / "projects" / _hashed_name(name, root, number)


def _hashed_name(name: str, root: Path, number: int) -> str:
    mark = hashlib.sha256(os.fsencode(root) + b"\0" * number).hexdigest()[:12]
    return f"{name[: _LONGEST_SLUG - 13]}-{mark}"


def _owners(home: Path) -> Iterator[tuple[Path, _Owner]]:
    for name in _list_folder(home / "projects"):
        folder = home / "projects" / name
        owner = _read_owner(folder)
        if owner is not None:
            yield folder, owner


def _list_folder(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _identity(root: Path) -> str:
    """What stays the same when a repository is moved, and no other repository has.

    Git writes these files once, when it makes the repository, and moving or copying with
    times keeps their times to the nanosecond. They can be neither guessed nor shipped in a
    clone. Times without a fraction of a second come from archives, and tell nothing.
    """
    marks: list[str] = []
    for name in ("", "description", "info", "info/exclude"):
        try:
            found = os.lstat(root / ".git" / name)
        except OSError:
            return ""
        if stat.S_ISDIR(found.st_mode) != (name in ("", "info")):
            return ""
        if stat.S_ISREG(found.st_mode):
            marks.append(f"{name}:{found.st_size}:{found.st_mtime_ns}")
            if found.st_mtime_ns % 1_000_000 == 0 or found.st_nlink != 1:
                return ""
    return hashlib.sha256("\n".join(marks).encode()).hexdigest()


def _is_gone(root: str) -> bool:
    """Whether nothing is at that place any more; in doubt it is still there."""
    try:
        os.lstat(root)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def _read_owner(folder: Path) -> _Owner | None:
    """Whose the folder is; a file that cannot be opened makes it somebody else's."""
    found, problems = schema.read_object(folder / OWNER)
    root, identity = found.get("root"), found.get("identity")
    if isinstance(root, str):
        return _Owner(root, identity if isinstance(identity, str) else "")
    closed = any(problem.code == "unreadable" for problem in problems)
    return _Owner("", "") if closed else None


# Beside Claude Code


def is_shared(home: Path, environ: Mapping[str, str] | None = None) -> bool:
    """Whether home is also Claude Code's folder. Decided at the first use, then kept."""
    layout = schema.read_object(home / LAYOUT)[0].get("layout")
    if layout in ("own", "shared"):
        return layout == "shared"
    named = (environ or {}).get("CLAUDE_CONFIG_DIR", "")
    if home.name == ".claude" or (named and os.path.realpath(named) == os.path.realpath(home)):
        return True
    return any(_looks_shared(home / "projects" / name) for name in _list_folder(home / "projects"))


def transcripts_folder(project: Path, home: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Where a project's transcripts lie: apart from Claude Code's, where home is shared."""
    return project / "reverie" if is_shared(home, environ) else project


def _looks_shared(project: Path) -> bool:
    """Transcripts in a folder that is not ours, or ours where only a shared home has them."""
    ours = os.path.lexists(project / OWNER)
    kept = project / "reverie" if ours else project
    return any(name.endswith(".jsonl") for name in _list_folder(kept))


def _settle_layout(files: Folder, environ: Mapping[str, str] | None) -> None:
    if not files.exists(LAYOUT):
        layout = "shared" if is_shared(files.root, environ) else "own"
        files.write(LAYOUT, json.dumps({"layout": layout}).encode() + b"\n")


# The files of a session; `folder` is what `transcripts_folder` answers


def session_id(text: str) -> str:
    """The id as given, where it is a UUID in its usual spelling; InvalidInput otherwise."""
    if not _SESSION.fullmatch(text):
        raise InvalidInput(
            "A session's id is a UUID in lower case",
            where=paths.format_path(text),
            do="`reverie sessions list` shows the ids",
        )
    return text


def session_folder(folder: Path, session: str) -> Path:
    """The folder beside a transcript, for all other files of the session."""
    return folder / session_id(session)


def tool_results_folder(folder: Path, session: str) -> Path:
    return session_folder(folder, session) / "tool-results"


def sessions(folder: Path) -> list[SessionFile]:
    """The transcripts in a folder, newest first, without those of agents."""
    found: list[SessionFile] = []
    for name in _list_folder(folder):
        stem, dot, ending = name.rpartition(".")
        if not dot or ending != "jsonl" or not _SESSION.fullmatch(stem):
            continue
        try:
            seen = os.lstat(folder / name)
        except OSError:
            continue
        if stat.S_ISREG(seen.st_mode):
            stamp = f"{seen.st_ino}:{seen.st_size}:{seen.st_mtime_ns}:{seen.st_ctime_ns}"
            found.append(SessionFile(stem, folder / name, seen.st_mtime, seen.st_size, stamp))
    return sorted(found, key=lambda one: (-one.mtime, one.id))


# --- Where memory lies that belongs to no root: a project that is a name, a user, an agent.
#
# A name never becomes a path: its folder is called by what can be read of it and a digest of the
# whole, so any text will do, `../..` and NUL among them, and no two share a folder. An address's
# folder is its own root (`home.claim_address`): everything that is made from a root, be it memory,
# history, index or lock, is made from it in the same way. Nothing here writes.


_SLUG, _MARK = 40, 24


def named_project(home: Path, name: str) -> Path:
    """Where a project lies that is a name and no folder; nothing is made."""
    return home / "projects" / _digest_name(name)


def personal_project(home: Path) -> Path:
    """Where the memory of the person lies whose home it is; no root and no name gives this."""
    return home / "projects" / "personal"


def address_folder(transcripts: Path, user: str = "", agent: str = "") -> Path:
    """Where one user's, one agent's part of a project lies; nothing is made. `transcripts` is
    what `transcripts_folder` answers for the project."""
    folder = transcripts
    for above, name in (("users", user), ("agents", agent)):
        folder = folder / above / _digest_name(name) if name else folder
    return folder


def address_folders(transcripts: Path) -> Iterator[Path]:
    """The folders of all users and agents of a project."""
    for user in _beneath(transcripts / "users"):
        yield user
        yield from _beneath(user / "agents")
    yield from _beneath(transcripts / "agents")


def _digest_name(name: str) -> str:
    """Any text as the name of a folder: what can be read of it, and what tells it apart."""
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
    read = re.sub(r"[^a-z0-9]+", "-", name[:_SLUG].lower(), flags=re.ASCII).strip("-")
    return f"{read}-{mark}" if read else mark


def _beneath(folder: Path) -> list[Path]:
    """The addresses right below a folder."""
    return sorted(owner.parent for owner in folder.glob(f"*/{OWNER}"))
