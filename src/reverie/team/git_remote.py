"""Team memory through any git remote: no server, no account but the one that git has.

The shared files are the tree of one branch of the remote, `reverie/team-memory`, which shares no
history with the code. A write is a commit on the tip it was made for, pushed with a lease: where
somebody else pushed meanwhile, git refuses, and the round starts over. The tag of a state is its
commit. Every version stays in the branch, with its author.

Git works in a bare repository of our own beside the memory, never in the project: none of the
project's settings, hooks or filters take part.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reverie import programs
from reverie.errors import InvalidInput, PathRefused
from reverie.store.paths import check_key, format_path
from reverie.team.client import Hostile, Offline, Permanent, Stale
from reverie.team.protocol import (
    BEGINNING,
    REPOSITORY_BYTES,
    REPOSITORY_ENTRIES,
    EntryChange,
    EntryVersion,
    RemoteState,
    why_no_key,
)

BRANCH = "refs/heads/reverie/team-memory"
_OURS = "refs/reverie/there"
_SECONDS = 120
_LOOKED = 1_000  # versions in which the last author of each file is looked for
_SCHEMES = ("https://", "ssh://", "file://", "git://", "http://")
_WHO = tuple(f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL"))
_FILE = "100644"
_BLOBS = (b"100644", b"100755")
_SAFE = (
    *("-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never"),
    *("-c", "gc.auto=0", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false"),
    *("-c", "push.followTags=false", "-c", "fetch.fsckObjects=true"),
)


class GitRemote:
    """One repository's shared memory on one git remote."""

    def __init__(
        self, remote: str, repo: str, folder: Path, *, program: str, environ: Mapping[str, str]
    ) -> None:
        plain = remote.startswith(_SCHEMES) or (":" in remote and not remote.startswith("-"))
        if not (plain or remote.startswith("/")) or any(c.isspace() for c in remote):
            raise InvalidInput(
                "This is not a git remote",
                where=remote[:200],
                do="Use git+https://…, git+ssh://… or git+file:///…",
            )
        self.url = f"git+{remote}"
        self.repo = repo
        self._remote = remote
        self._folder = folder
        self._program = program
        self._last: tuple[str, dict[str, bytes], dict[str, str]] = ("", {}, {})
        self._environ = {
            **{k: v for k, v in environ.items() if not k.startswith("GIT_") or k in _WHO},
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            "GIT_DIR": str(folder),
        }

    def hashes(self, known: str = "") -> RemoteState | None:
        """The checksums; None where the branch still is where the tag says. Git knows texts by
        other hashes, so that each is read, once."""
        tip = self._tip()
        if known and known == _tag(tip):
            return None
        tip = self._fetch_tip(tip)
        texts, refused = self._texts(tip)
        sums = {key: hashlib.sha256(data).hexdigest() for key, data in texts.items()}
        return RemoteState(_tag(tip), sums, refused=refused)

    def state(self, known: str = "") -> RemoteState | None:
        """All texts of the branch's tip."""
        found = self.hashes(known)
        if found is None:
            return None
        tip = "" if found.tag == BEGINNING else found.tag.strip('"')
        contents = {k: data.decode() for k, data in self._texts(tip)[0].items()}
        authors = {one.key: one.author for one in reversed(self._log(tip, _LOOKED))}
        return replace(found, contents=contents, authors=authors)

    def put(self, drafts: Sequence[EntryChange], expected: str) -> str:
        """Commit a batch on the tip that the tag names, and push it."""
        base = "" if expected == BEGINNING else expected.strip('"')
        index = self._folder / "reverie-index"
        try:
            if base:
                self._git("read-tree", base, index=index)
            self._git("update-index", "-z", "--index-info", index=index, feed=self._lines(drafts))
            tree = self._git("write-tree", index=index).decode().strip()
        finally:
            index.unlink(missing_ok=True)
        parents = ("-p", base) if base else ()
        names = ", ".join(one.key for one in drafts)
        commit = self._commit(tree, parents, f"Share {names}"[:2000])
        lease = f"--force-with-lease={BRANCH}:{base}"
        done = self._run("push", "--porcelain", lease, self._remote, f"{commit}:{BRANCH}")
        if done.returncode:
            said = done.stdout + done.stderr
            if b"stale info" in said or b"rejected" in said or b"cannot lock ref" in said:
                raise Stale("Somebody else pushed meanwhile", where=self.repo)
            raise self._offline_error(done, "The team's branch could not be pushed")
        return f'"{commit}"'

    def log(self, most: int = 100) -> list[EntryVersion]:
        """Who wrote what, the newest first."""
        return self._log(self._fetch_tip(self._tip()), most)

    def _log(self, tip: str, most: int) -> list[EntryVersion]:
        if not tip:
            return []
        text = self._git(
            *("log", f"--max-count={most}", "--format=%x01%an%x00%at", "--raw", "-z"),
            *("--no-abbrev", "--no-renames", "--root", tip),
        )
        rows: list[EntryVersion] = []
        commits = text.decode("utf-8", "replace").split("\x01")[1:]
        for at, part in enumerate(commits):
            author, when, *fields = part.split("\0")
            rows += _changes(author, float(when.strip() or 0), len(commits) - at, fields)
        return rows[:most]

    # Git

    def _tip(self) -> str:
        """Where the branch is now, or "" where there is none yet; nothing is fetched."""
        self._make()
        found = self._run("ls-remote", "--exit-code", self._remote, BRANCH)
        if found.returncode == 2:
            return ""
        if found.returncode:
            raise self._offline_error(found, "The git remote does not answer")
        return found.stdout.split(b"\t")[0].decode("ascii", "replace")

    def _fetch_tip(self, tip: str) -> str:
        """The branch here, with everything in it: this tip, or one that came meanwhile."""
        if not tip or not self._run("cat-file", "-e", f"{tip}^{{commit}}").returncode:
            return tip
        self._git("fetch", "--quiet", "--no-tags", self._remote, f"+{BRANCH}:{_OURS}")
        return self._git("rev-parse", _OURS).decode().strip()

    def _make(self) -> None:
        if not (self._folder / "HEAD").exists():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._git("init", "--quiet", "--bare", str(self._folder))

    def _texts(self, tip: str) -> tuple[dict[str, bytes], dict[str, str]]:
        """The files of a commit, and why others of it are not read; the last ones are kept."""
        if tip != self._last[0]:
            texts, refused = self._read(tip) if tip else ({}, {})
            self._last = (tip, texts, refused)
        return self._last[1:]

    def _read(self, tip: str) -> tuple[dict[str, bytes], dict[str, str]]:
        rows = [row for row in self._git("ls-tree", "-r", "-z", "-l", tip).split(b"\0") if row]
        if len(rows) > REPOSITORY_ENTRIES:
            raise Hostile("The team's branch has more files than a repository may have")
        names: dict[str, bytes] = {}
        refused: dict[str, str] = {}
        total = 0
        for row in rows:
            meta, _, path = row.partition(b"\t")
            mode, kind, name, size = meta.split()
            key, why = _key(path)
            if kind != b"blob" or mode not in _BLOBS:
                why = "it is a link or a module of git"
            if why:
                refused[key] = why
                continue
            total += int(size)
            names[key] = name
        if total > REPOSITORY_BYTES:
            raise Hostile(f"The team's branch has over {REPOSITORY_BYTES:,} bytes")
        found = dict(zip(names, self._blobs(names.values()), strict=True))
        for key, data in tuple(found.items()):
            try:
                data.decode()
            except UnicodeDecodeError:
                refused[key] = "it is not UTF-8 text"
                del found[key]
        return found, refused

    def _blobs(self, names: Iterable[bytes]) -> list[bytes]:
        data = self._git("cat-file", "--batch", feed=b"".join(name + b"\n" for name in names))
        found: list[bytes] = []
        at = 0
        while at < len(data):
            end = data.index(b"\n", at)
            size = int(data[at:end].split()[2])
            found.append(data[end + 1 : end + 1 + size])
            at = end + 2 + size
        return found

    def _lines(self, drafts: Sequence[EntryChange]) -> bytes:
        """What `update-index` is told, with every text stored as a blob first."""
        lines: list[bytes] = []
        for one in drafts:
            if one.content is None:
                lines.append(b"0 " + b"0" * 40 + b"\t" + one.key.encode())
                continue
            blob = self._git("hash-object", "-w", "--stdin", feed=one.content.encode()).strip()
            lines.append(_FILE.encode() + b" " + blob + b"\t" + one.key.encode())
        return b"".join(line + b"\0" for line in lines)

    def _commit(self, tree: str, parents: Sequence[str], message: str) -> str:
        found = self._run("commit-tree", tree, *parents, feed=message.encode())
        if found.returncode:
            who = self._environ.get("USER") or self._environ.get("LOGNAME") or "reverie"
            named = ("-c", f"user.name={who}", "-c", f"user.email={who}@localhost")
            found = self._run("commit-tree", tree, *parents, feed=message.encode(), more=named)
        if found.returncode:
            raise self._offline_error(found, "The commit could not be made")
        return found.stdout.decode().strip()

    def _git(self, *words: str, feed: bytes = b"", index: Path | None = None) -> bytes:
        done = self._run(*words, feed=feed, index=index)
        if done.returncode:
            raise self._offline_error(done, f"git {words[0]} failed")
        return done.stdout

    def _run(
        self,
        *words: str,
        feed: bytes = b"",
        index: Path | None = None,
        more: Sequence[str] = (),
    ) -> programs.CompletedProcess[bytes]:
        environ = dict(self._environ)
        if index is not None:
            environ["GIT_INDEX_FILE"] = str(index)
        try:
            line = [self._program, *_SAFE, *more, *words]
            return programs.run(line, environ, os.sep, seconds=_SECONDS, feed=feed, umask=0o077)
        except programs.TimeoutExpired:
            raise Offline(
                "The git remote does not answer", where=self.url, do="It is tried again later"
            ) from None
        except OSError as error:
            raise Permanent(f"git cannot be run: {error.strerror}", do="Install git") from error

    def _offline_error(self, done: programs.CompletedProcess[bytes], what: str) -> Offline:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        plain = next((line for line in said if line.isprintable()), "")
        return Offline(
            f"{what}: {plain[:200]}" if plain else what,
            where=self.url,
            do="See that `git ls-remote` reaches it; it is tried again later",
        )


def _tag(tip: str) -> str:
    return f'"{tip}"' if tip else BEGINNING


def _key(path: bytes) -> tuple[str, str]:
    """The key that a path is, and why no team shares it."""
    key = path.decode("utf-8", "surrogateescape")
    try:
        check_key(key)
        return key, why_no_key(key)
    except PathRefused as error:
        return format_path(key), f"{error.what[:1].lower()}{error.what[1:]}"


def _changes(author: str, at: float, number: int, fields: Sequence[str]) -> list[EntryVersion]:
    """The files of one commit: a line that begins with a colon, then a path."""
    rows: list[EntryVersion] = []
    for meta, path in itertools.pairwise(fields):
        if meta.lstrip().startswith(":"):
            words = meta.split()
            rows.append(EntryVersion(path, number, words[3], author, at, words[4] == "D"))
    return rows
