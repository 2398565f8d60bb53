"""The local side of a sync, and which repository it is.

This side of a sync: the `team/` folder of a memory, what was agreed last, and what lost.

Only plain files that may be shared are offered: `.md`, UTF-8 text within the limits, no secret, and
never a memory of type `user`. What a pull brings lands as one step of the memory's own history,
as untrusted as a teammate's words are, and can be undone. What the server's words replace is
kept, before, as a file of its own in `team-lost/` beside the history.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from reverie.errors import (
    Held,
    InvalidInput,
    NotFound,
    PathRefused,
    ReverieError,
    SecretFound,
    StoreError,
    WriteFailed,
)
from reverie.secrets.scanner import check_clean
from reverie.settings.sources import git_folder, small_text
from reverie.store import transaction
from reverie.store.fs import digest
from reverie.store.memory_store import MemoryStore
from reverie.team.protocol import BATCH_BYTES, check_repo, is_sha256, why_no_key
from reverie.topics.entry import INDEX, TEAM, TopicFile, is_topic
from reverie.topics.index import find_pointer
from reverie.topics.trust import Trust
from reverie.topics.versions import Origin

STATE = "team-sync.json"
LOST = "team-lost"
_LARGEST_STATE = 16 * 1024 * 1024


@dataclass(slots=True)
class SyncBase:
    """What both sides held when they last agreed; for one server and repository."""

    url: str
    repo: str
    tag: str = ""
    known: dict[str, str] = field(default_factory=dict[str, str])
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """What lies there and is not taken, and why: a status names it."""
    declined: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """A teammate's text that was taken back here: theirs, and what stands here instead."""


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The folder as it is: bytes by key, and why some of them must stay here."""

    data: Mapping[str, bytes]
    blocked: Mapping[str, str]

    @property
    def sums(self) -> dict[str, str]:
        return {key: digest(data) for key, data in self.data.items()}


def read_files(memories: MemoryStore) -> LocalFiles:
    """All files below `team/`, without that prefix."""
    found: dict[str, bytes] = {}
    blocked: dict[str, str] = {}
    below = f"{TEAM}/"
    listing = memories.folder.files.survey()
    for one in listing.refused:  # links, and names that not every system can have
        if one.key.startswith(below):
            reason = f"{one.reason[:1].lower()}{one.reason[1:]}"
            blocked[one.key.removeprefix(below)] = reason
    for name in listing.keys:
        if not name.startswith(below):
            continue
        key = name.removeprefix(below)
        if why := why_no_key(key):
            blocked[key] = why
            continue
        try:
            data = memories.folder.bytes_of(name, BATCH_BYTES + 1)
        except (NotFound, PathRefused):  # a disk that fails is not a file that was deleted
            continue
        found[key] = data
        if reason := why_not(key, data):
            blocked[key] = reason
    return LocalFiles(found, blocked)


def why_not(key: str, data: bytes) -> str:
    """Why a file is not shared, or "". The value of a secret is never in it."""
    if len(data) + len(key.encode()) > BATCH_BYTES:
        return f"it is over {BATCH_BYTES:,} bytes"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "it is not UTF-8 text"
    if "\0" in text:
        return "it has a NUL character"
    if is_topic(f"{TEAM}/{key}") and TopicFile(key, data).type == "user":
        return "a memory of type user stays private"
    try:
        check_clean(data, key)
    except SecretFound as error:
        return f"{error.what[:1].lower()}{error.what[1:]}"
    return ""


def unlisted_keys(memories: MemoryStore, keys: Iterable[str]) -> list[str]:
    """Of these, the memories that no line of the team's index names: no session is told of them."""
    try:
        index = memories.folder.bytes_of(f"{TEAM}/{INDEX}", BATCH_BYTES)
    except ReverieError:
        index = b""
    return [key for key in sorted(keys) if _is_unlisted(memories, index, key)]


def _is_unlisted(memories: MemoryStore, index: bytes, key: str) -> bool:
    if not is_topic(f"{TEAM}/{key}") or find_pointer(index, key):
        return False
    try:
        return not memories.folder.read(f"{TEAM}/{key}").is_unverified
    except ReverieError:  # deleted, or no longer a plain file
        return False


def land(
    memories: MemoryStore, changes: Mapping[str, bytes | None], here: LocalFiles, note: str
) -> tuple[str, dict[str, str]]:
    """Land what a pull brings as one step; its name, and what a guard of ours refused."""
    refused: dict[str, str] = {}
    good: dict[str, bytes | None] = {}
    for key, data in changes.items():
        name = f"{TEAM}/{key}"
        try:
            if data is not None:
                memories.allow(name, data)
            good[name] = data
        except ReverieError as error:
            if type(error) is StoreError or isinstance(error, (WriteFailed, Held)):
                raise  # the disk and not the text: the next round takes it
            refused[key] = error.what
    origin = Origin("pull", Trust.UNTRUSTED, agent="team", tool="sync", note=note)
    known = {f"{TEAM}/{key}": data for key, data in here.data.items()}
    if not good:
        return "", refused
    memories.look()
    return transaction.land(memories, good, known, origin), refused


def keep_lost(memories: MemoryStore, key: str, data: bytes, now: float) -> str:
    """Keep bytes that the server's words are about to replace; where."""
    name = f"{LOST}/{now:.0f}-{digest(data)[:12]}/{key}"
    memories.beside.write(name, data)
    return name


def load(memories: MemoryStore, url: str, repo: str) -> SyncBase:
    """What was agreed with this server; nothing where it was another one, or cannot be read."""
    fresh = SyncBase(url, repo)
    try:
        found: object = json.loads(memories.beside.read(STATE, _LARGEST_STATE))
    except (NotFound, ValueError, RecursionError):
        return fresh
    if not isinstance(found, dict):
        return fresh
    value = cast("dict[str, object]", found)
    if (value.get("url"), value.get("repo")) != (url, repo):
        return fresh
    tag = value.get("tag")
    declined = value.get("declined")
    fresh.tag = tag if isinstance(tag, str) else ""
    fresh.known = _sums(value.get("known"))
    refused = value.get("refused")
    if isinstance(refused, dict):
        fresh.refused = {k: str(why) for k, why in cast("dict[str, object]", refused).items()}
    if isinstance(declined, dict):
        for key, pair in cast("dict[str, object]", declined).items():
            if isinstance(pair, list):
                fresh.declined[key] = [str(one) for one in cast("list[object]", pair)]
    return fresh


def save(memories: MemoryStore, agreed: SyncBase) -> None:
    """Put what was agreed on the disk."""
    value = {
        "url": agreed.url,
        "repo": agreed.repo,
        "tag": agreed.tag,
        "known": dict(sorted(agreed.known.items())),
        "refused": agreed.refused,
        "declined": agreed.declined,
    }
    memories.beside.write(STATE, json.dumps(value, indent=1).encode())


def _sums(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {
        key: sha
        for key, sha in cast("dict[str, object]", value).items()
        if isinstance(sha, str) and is_sha256(sha)
    }


# --- Which repository a folder is, `owner/name`, by its git remote; nothing of it is run.
#
# The remote `origin` counts, else the only one there is. An address of any form that hosts use is
# understood; one without an owner and a name is none.


_SECTION = re.compile(r'\s*\[remote "([^"\\]{1,200})"\]\s*', re.ASCII)
_URL = re.compile(r"\s*url\s*=\s*(\S+)\s*", re.ASCII)
_TAIL = re.compile(r"[/:]([^/:\s]{1,200})/([^/:\s]{1,200}?)(?:\.git)?/?\Z", re.ASCII)


def repository_of(root: Path) -> str:
    """The repository's `owner/name`; "" where there is none to be known."""
    return name_in(remote_of(root))


def remote_of(root: Path) -> str:
    """The address of the remote that counts, or ""."""
    folder = git_folder(root)
    text = None if folder is None else small_text(_common(folder) / "config")
    remotes = _remotes(text or "")
    only = next(iter(remotes.values())) if len(remotes) == 1 else ""
    return remotes.get("origin", only)


def name_in(url: str) -> str:
    """`owner/name` at the end of a remote's address, or ""."""
    found = _TAIL.search(url[-500:])
    if found is None:
        return ""
    try:
        return check_repo(f"{found[1]}/{found[2]}")
    except InvalidInput:
        return ""


def _common(folder: Path) -> Path:
    """A worktree's own folder names the one that it shares with the others."""
    named = (small_text(folder / "commondir") or "").strip()
    return folder / named if named and "\0" not in named else folder


def _remotes(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            section = _SECTION.fullmatch(line)
            name = section[1] if section else ""
        elif name and (url := _URL.fullmatch(line)):
            found.setdefault(name, url[1])
    return found
