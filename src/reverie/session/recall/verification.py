"""What a memory says about the repository, looked at: present, moved, gone, or not to be told.

Files are looked at as they lie in the working tree, names come from git's own index, commits
from its object files; git itself is run only to learn of a rename, with nothing of the
repository's configuration that could start a program. Every look is bounded in time and size:
what could not be looked at in time is unverifiable, never guessed.

Nothing is written, no link is followed out of the repository, and no memory is changed for it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from reverie import programs
from reverie.light import dataclass
from reverie.settings import sources
from reverie.store.fs import read_plain
from reverie.text.safety import neutralize_markup
from reverie.toolbox.shell import find_program
from reverie.topics.claims import Claim

Status: TypeAlias = Literal["present", "moved", "gone", "unverifiable"]

SECONDS = 2.0
"""Time for all claims of a text, where nobody waits for a request."""
LATE = "there was no time to look"
MAX_FILES = 50_000
MAX_FILE = 1024 * 1024
MAX_SHOWN = 12
MAX_PACKS = 200
MAX_NAMES = 200_000
_INDEX = 64 * 1024 * 1024
_GIT_NEEDS = 0.03
_RENAMES = 5
_PROSE = (".md", ".rst", ".txt", ".adoc", ".lock", ".svg", ".map", ".min.js", ".ipynb", ".csv")
_SKIPPED = frozenset(
    {".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", "dist", "build"}
)
_SAFE = (
    *("--no-pager", "--literal-pathspecs", "--no-replace-objects"),
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "log.showSignature=false", "-c", "diff.external=", "-c", "protocol.allow=never"),
)
_ENVIRON: Mapping[str, str] = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
}


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim and what became of it; `where` is the place it moved to, or was found at."""

    claim: Claim
    status: Status
    where: str = ""
    why: str = ""

    def __str__(self) -> str:
        told = f"moved to {self.where}" if self.status == "moved" else self.status
        return f"{self.claim.text} {told}"


class Repository:
    """One working tree, looked at for one text or a few; keep none for long. `also` is a folder
    whose own files a text may name: that of the memories."""

    def __init__(
        self,
        root: Path,
        *,
        seconds: float = SECONDS,
        now: Callable[[], float] = time.monotonic,
        path: str = os.defpath,
        also: Path | None = None,
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self._now = now
        self._end = now() + seconds
        self._search_path = path
        self._also = also
        self._git = sources.git_folder(self.root) if os.path.lexists(self.root / ".git") else None
        self._commits = Commits(self._git) if self._git is not None else None
        self._known: list[str] | None = None
        self._others: list[str] | None = None
        self._tops: set[str] | None = None
        self._whole = True  # whether the list of files is complete

    @property
    def left(self) -> float:
        return self._end - self._now()

    def check(self, claims: Sequence[Claim]) -> tuple[CheckedClaim, ...]:
        """Each claim looked at, those that cost least first; in the order they were given."""
        found: dict[Claim, CheckedClaim] = {}
        for claim in claims:
            if claim.kind == "path":
                found[claim] = self._path(claim)
            elif claim.kind == "commit":
                found[claim] = self._commit(claim)
        moved = {c.claim.text: c.where for c in found.values() if c.status == "moved"}
        names = [c for c in claims if c.kind in ("symbol", "flag")]
        found.update(self._names(names, moved))
        return tuple(found[claim] for claim in claims)

    # Paths

    def _path(self, claim: Claim) -> CheckedClaim:
        if self._also is not None and os.path.lexists(self._also / claim.text):
            return CheckedClaim(claim, "present", str(self._also / claim.text))
        key = self._key(claim.text)
        if key is None:
            return CheckedClaim(claim, "unverifiable", why="it lies outside the repository")
        if "/" in claim.text.rstrip("/") and self._is_there(key):
            return CheckedClaim(claim, "present", key)
        if "/" not in claim.text.rstrip("/"):
            return self._file_name(claim, key)
        if not claim.sure:
            return CheckedClaim(claim, "unverifiable", why="it may be no path")
        return self._elsewhere(claim, key)

    def _elsewhere(self, claim: Claim, key: str) -> CheckedClaim:
        """A path that is not where it says: below a package, moved, not ours, or gone."""
        below = self._from_a_package_down(key)
        if below:
            return CheckedClaim(claim, "present", below)
        where = self._new_location(key)
        if where:
            return CheckedClaim(claim, "moved", where)
        if not self._is_ours(key):
            return CheckedClaim(claim, "unverifiable", why="it may lie elsewhere")
        return CheckedClaim(claim, "gone") if self.left > 0 else _late(claim)

    def _key(self, text: str) -> str | None:
        """The path below the root that a text names; None where it lies elsewhere."""
        if text.startswith("~"):
            return None
        given = text if os.path.isabs(text) else os.path.join(self.root, text)
        key = os.path.relpath(os.path.normpath(given), self.root)
        return None if key == ".." or key.startswith("../") else key

    def _from_a_package_down(self, key: str) -> str:
        """The file or folder that a path names which begins below the root."""
        end = f"/{key.rstrip('/')}"
        return next((f for f in self._files() if f.endswith(end) or f"{end}/" in f"/{f}"), "")

    def _is_ours(self, key: str) -> bool:
        """Whether a path that is not there would be the repository's: it begins at what git
        tracks, and is not what git ignores, which a program makes while it runs."""
        first = key.partition("/")[0]
        if self._tops is None:
            if self._known is None:
                self._known = self._tracked_paths()
            self._tops = {one.partition("/")[0] for one in self._known}
        if self._git is not None and self._tops and first not in self._tops:
            return False
        return not self._is_ignored(key)

    def _is_ignored(self, key: str) -> bool:
        try:
            rows = (read_plain(self.root / ".gitignore", MAX_FILE) or b"").decode(
                "utf-8", "replace"
            )
        except (OSError, ValueError):
            return False
        path = f"/{key.strip('/')}/"
        names = (row.strip().strip("/*") for row in rows.splitlines() if row[:1] not in ("#", "!"))
        return any(f"/{name}/" in path for name in names if name)

    def _is_there(self, key: str) -> bool:
        try:
            real = os.path.realpath(self.root / key)
            return os.path.lexists(real) and (real + "/").startswith(f"{self.root}/")
        except (OSError, ValueError):
            return False

    def _file_name(self, claim: Claim, key: str) -> CheckedClaim:
        """A bare file name may stand for a file in any folder."""
        if self._is_there(key):
            return CheckedClaim(claim, "present", key)
        same = [f for f in self._files() if _base(f) == _base(key) and self._is_there(f)]
        if same:
            return CheckedClaim(claim, "present", same[0] if len(same) == 1 else "")
        if self.left <= 0 or not self._whole:
            return _late(claim)
        return CheckedClaim(claim, "gone")

    def _new_location(self, key: str) -> str:
        """Where a file is now that no longer lies at `key`; "" where that cannot be told."""
        same = [f for f in self._files() if _base(f) == _base(key) and self._is_there(f)]
        best = max((_common_tail(key, f) for f in same), default=0)
        closest = [f for f in same if _common_tail(key, f) == best]
        if len(closest) == 1 and (len(same) == 1 or best > 1):
            return closest[0]
        return self._follow_renames(key)

    def _follow_renames(self, key: str) -> str:
        """Where git says a file went, over several renames."""
        for _ in range(_RENAMES):
            gone = self._run("log", "-1", "--format=%H", "--diff-filter=D", "--", key).strip()
            if not re.fullmatch("[0-9a-f]{40,64}", gone):
                return ""
            shown = self._run(
                "show", "--format=", "-z", "-M", "--name-status", "--diff-filter=R", gone
            )
            rows = shown.split("\0")
            renames = {rows[n + 1]: rows[n + 2] for n in range(0, len(rows) - 2, 3)}
            key = renames.get(key, "")
            if not key or self._is_there(key):
                return key
        return ""

    def commit_times(self, folder: Path) -> dict[str, float]:
        """Return when git last saw each file of a folder change, by its path in the folder."""
        below = f"{Path(os.path.realpath(folder)).relative_to(self.root).as_posix()}/"
        below = "" if below == "./" else below
        said = self._run("log", "-z", "--name-only", "--format=%x01%ct", "--", below or ".")
        found: dict[str, float] = {}
        for commit in said.split("\x01")[1:]:  # the newest first
            at, _, names = commit.partition("\0")
            for name in names.strip("\n").split("\0"):
                if name and at.strip().isdigit():
                    found.setdefault(name.strip("\n").removeprefix(below), float(at))
        return found

    def _run(self, command: str, *args: str) -> str:
        """What git says, or nothing where it is not there, fails or takes too long."""
        if self._git is None or self.left < _GIT_NEEDS:
            return ""
        quiet = ("--no-ext-diff", "--no-textconv", "--no-color")
        program = find_program("git", self._search_path, (self.root,))
        if not program:
            return ""
        argv = [program, *_SAFE, command, *quiet, *args]
        environ = {**_ENVIRON, "PATH": self._search_path}
        try:
            done = programs.run(argv, environ, self.root, seconds=self.left)
        except (OSError, programs.TimeoutExpired):
            return ""
        return os.fsdecode(done.stdout) if done.returncode == 0 else ""

    # Commits

    def _commit(self, claim: Claim) -> CheckedClaim:
        if self._commits is None:
            return CheckedClaim(claim, "unverifiable", why="there is no git repository")
        if self._commits.holds(claim.text):
            return CheckedClaim(claim, "present")
        if not claim.sure:
            return CheckedClaim(claim, "unverifiable", why="it may be no commit")
        if not self._commits.complete:
            return CheckedClaim(claim, "unverifiable", why="the repository is not whole")
        return CheckedClaim(claim, "gone")

    # Symbols and flags

    def _names(
        self, claims: Sequence[Claim], moved: Mapping[str, str]
    ) -> dict[Claim, CheckedClaim]:
        """Names that must stand in some file; the file beside which a name is told goes first."""
        found: dict[Claim, CheckedClaim] = {}
        for claim in claims:
            near = moved.get(claim.near, claim.near)
            key = self._key(near) if near else None
            if key and _holds(self._bytes(key), claim):
                status: Status = "moved" if near != claim.near else "present"
                found[claim] = CheckedClaim(claim, status, key)
        left = [claim for claim in claims if claim not in found]
        for name in self._files() if left else ():
            if not left or self.left <= 0:
                break
            if name.lower().endswith(_PROSE):
                continue
            data = self._bytes(name)
            for claim in [c for c in left if _holds(data, c)]:
                left.remove(claim)
                named = bool(claim.near) and claim.kind == "symbol"
                found[claim] = CheckedClaim(claim, "moved" if named else "present", name)
        whole = self.left > 0 and self._whole
        found.update((claim, _missing(claim) if whole else _late(claim)) for claim in left)
        return found

    def _bytes(self, key: str) -> bytes:
        try:
            data = read_plain(self.root / key, MAX_FILE)
        except (OSError, ValueError):
            return b""
        return b"" if data is None or len(data) > MAX_FILE else data

    # The list of files

    def _files(self) -> Iterator[str]:
        """What git tracks, then what else lies in the tree."""
        if self._known is None:
            self._known = self._tracked_paths()
        yield from self._known
        if self._others is None:
            known = set(self._known)
            self._others = [name for name in self._walk_files() if name not in known]
        yield from self._others

    def _tracked_paths(self) -> list[str]:
        """The paths in git's index; nothing where there is none that can be read."""
        if self._git is None:
            return []
        try:
            with (self._git / "index").open("rb") as file:
                data = file.read(_INDEX + 1)
            size = 20 if self._commits is None else self._commits.size
            return [os.fsdecode(name) for name in sources.index_names(data, size)]
        except (OSError, ValueError, IndexError):
            return []

    def _walk_files(self) -> Iterator[str]:
        count = 0
        for folder, below, names in os.walk(self.root):
            below[:] = sorted(name for name in below if name not in _SKIPPED)
            inside = os.path.relpath(folder, self.root)
            for name in sorted(names):
                count += 1
                if count > MAX_FILES or self.left <= 0:
                    self._whole = False
                    return
                yield name if inside == "." else f"{inside}/{name}"


class Commits:
    """Which objects a repository has, by the beginning of their names. git is not run."""

    def __init__(self, folder: Path) -> None:
        named = sources.small_text(folder / "commondir")
        common = folder if named is None else Path(os.path.realpath(folder / named.strip()))
        config = sources.small_text(common / "config", 1024 * 1024) or ""
        self.size = 32 if "sha256" in config.lower() else 20
        self.complete = not os.path.lexists(common / "shallow")
        others = sources.small_text(common / "objects/info/alternates") or ""
        self._folders = [common / "objects"]
        self._folders += [common / "objects" / one for one in others.splitlines()[:8] if one]

    def holds(self, name: str) -> bool:
        wanted = name.lower()
        return any(self._loose(f, wanted) or self._is_packed(f, wanted) for f in self._folders)

    def _loose(self, folder: Path, name: str) -> bool:
        try:
            return any(one.startswith(name[2:]) for one in os.listdir(folder / name[:2]))
        except OSError:
            return False

    def _is_packed(self, folder: Path, name: str) -> bool:
        try:
            packs = [one for one in os.listdir(folder / "pack") if one.endswith(".idx")]
        except OSError:
            return False
        return any(self._in_pack(folder / "pack" / one, name) for one in packs[:MAX_PACKS])

    def _in_pack(self, path: Path, name: str) -> bool:
        """Whether the sorted names of a pack (index version 2) have one that begins so."""
        first = int(name[:2], 16)
        try:
            with path.open("rb") as file:
                head = file.read(8 + 256 * 4)
                if head[:8] != b"\xfftOc\0\0\0\2" or len(head) < 8 + 256 * 4:
                    return False
                counts = [int.from_bytes(head[8 + 4 * n : 12 + 4 * n]) for n in (first - 1, first)]
                low, high = counts[0] if first else 0, counts[1]
                if not 0 <= high - low <= MAX_NAMES:
                    return False
                file.seek(8 + 256 * 4 + low * self.size)
                names = file.read((high - low) * self.size)
        except OSError:
            return False
        found = (names[n : n + self.size].hex() for n in range(0, len(names), self.size))
        return any(one.startswith(name) for one in found)


def _base(key: str) -> str:
    return key.rstrip("/").rpartition("/")[2]


def _common_tail(one: str, other: str) -> int:
    """How many names two paths have in common at their ends."""
    count = 0
    for a, b in zip(reversed(one.split("/")), reversed(other.split("/")), strict=False):
        if a != b:
            break
        count += 1
    return count


def _holds(data: bytes, claim: Claim) -> bool:
    """Whether a file has the name as a word."""
    name = claim.text.removesuffix("()")
    if claim.kind == "symbol":
        name = re.split(r"\.|::|#", name)[-1]
    sought = name.encode("utf-8", "surrogatepass")
    at = data.find(sought)
    if at < 0 or b"\0" in data[:1024]:
        return False
    return bool(
        re.search(rb"(?<![\w-])" + re.escape(sought) + rb"(?![\w-])", data[max(0, at - 1) :])
    )


def _missing(claim: Claim) -> CheckedClaim:
    if claim.sure:
        return CheckedClaim(claim, "gone")
    return CheckedClaim(claim, "unverifiable", why="it belongs to another program")


def _late(claim: Claim) -> CheckedClaim:
    return CheckedClaim(claim, "unverifiable", why=LATE)


def line(found: Sequence[CheckedClaim], most: int = MAX_SHOWN) -> str:
    """What was found in one line for a model: what changed first; "" where there is nothing."""
    if not found:
        return ""
    order = ("gone", "moved", "unverifiable", "present")
    ranked = sorted(found, key=lambda one: order.index(one.status))
    shown = "; ".join(str(one) for one in ranked[:most])
    more = f"; {len(ranked) - most} more" if len(ranked) > most else ""
    return " ".join(neutralize_markup(f"Checked against the repository: {shown}{more}").split())
