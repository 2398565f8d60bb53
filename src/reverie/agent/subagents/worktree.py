"""A git worktree of an agent's own: made at the commit of the lead's checkout, on a new branch.

It lies in the project's `.reverie/worktrees/NAME`, which git ignores, on the branch `agent/NAME`.
One that was not changed is removed with its branch; one that was stays, and is named. Hooks of the
repository do not run. Nothing here commits, merges, or touches the lead's own files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from anyio import to_thread

from reverie.errors import InvalidInput, NotAvailable, StoreError
from reverie.light import dataclass
from reverie.store.files import Folder
from reverie.text.format import plural
from reverie.tools.process import Command, Gathered, run

FOLDER = ".reverie/worktrees"
BRANCHES = "agent/"
SECONDS = 120.0
OUTPUT = 1024 * 1024
MAX_SHOWN = 20
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Worktree:
    """A worktree that was made for one agent."""

    top: Path  # of the lead's checkout
    path: Path
    branch: str
    base: str  # the commit it began at


@dataclass(frozen=True, slots=True)
class KeptTree:
    """What became of a worktree: nothing of it where it was not changed."""

    path: str = ""
    branch: str = ""
    changed: tuple[str, ...] = ()
    commits: int = 0

    def __str__(self) -> str:
        if not self.path:
            return "Its worktree was not changed, and is removed."
        more = len(self.changed) - MAX_SHOWN
        files = ", ".join(self.changed[:MAX_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
        parts = [f"branch {self.branch}"]
        parts += [plural(self.commits, "commit")] if self.commits else []
        parts += [f"not committed: {files}"] if self.changed else []
        return f"Its worktree is kept: {self.path} ({'; '.join(parts)})."


async def make(top: Path, name: str, environ: Mapping[str, str]) -> Worktree:
    """A new worktree; InvalidInput says why there can be none."""
    if not _NAME.fullmatch(name):
        raise InvalidInput("this cannot name a worktree", where=name[:80], do="Use a-z 0-9 _ -")
    if not await to_thread.run_sync(os.path.lexists, top / ".git"):
        raise InvalidInput("a worktree needs a git repository", where=str(top))
    code, base = await _git(top, environ, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if code:
        raise InvalidInput(
            "the repository has no commit yet that a worktree could begin at",
            where=str(top),
            do="Commit something first, or let the agent work without a worktree",
        )
    branch, path = f"{BRANCHES}{name}", top / FOLDER / name
    code, _ = await _git(top, environ, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
    if not code or await to_thread.run_sync(os.path.lexists, path):
        raise InvalidInput(
            "a worktree or branch of this name is there already",
            where=f"{path} ({branch})",
            do="Give the agent another name; or merge what is there, then remove both",
        )
    _ignored(top)
    code, said = await _git(top, environ, "worktree", "add", "-b", branch, str(path), base.strip())
    if code:
        raise StoreError("git could not make a worktree", where=said.strip()[-300:])
    return Worktree(top, path, branch, base.strip())


async def settle(tree: Worktree, environ: Mapping[str, str]) -> KeptTree:
    """Remove a worktree that was not changed; of one that was, say what is in it."""
    code, said = await _git(tree.path, environ, "status", "--porcelain", "-z", "-uall")
    changed = tuple(row[3:] for row in said.split("\0") if len(row) > 3)
    _, count = await _git(tree.path, environ, "rev-list", "--count", f"{tree.base}..HEAD")
    commits = int(count) if count.strip().isdecimal() else 0
    if code or changed or commits:  # what cannot be looked at is not removed
        return KeptTree(str(tree.path), tree.branch, changed, commits)
    code, said = await _git(tree.top, environ, "worktree", "remove", str(tree.path))
    if code:
        return KeptTree(str(tree.path), tree.branch)
    await _git(tree.top, environ, "branch", "-D", tree.branch)
    return KeptTree()


def _ignored(top: Path) -> None:
    with Folder(top / FOLDER) as folder:
        if not folder.exists(".gitignore"):
            folder.write(".gitignore", b"*\n")


async def _git(cwd: Path, environ: Mapping[str, str], *words: str) -> tuple[int, str]:
    sink = Gathered(OUTPUT)
    known = {**environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    known.setdefault("PATH", os.defpath)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        known.pop(name, None)
    ended = await run(Command(["git", *_QUIET, *words], cwd, known), sink, SECONDS)
    if ended.cause != "itself":
        raise NotAvailable(f"git did not end ({ended.cause})", where=" ".join(words)[:200])
    return ended.code, sink.data.decode("utf-8", "replace")
