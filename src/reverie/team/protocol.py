"""What a team server and its clients say to each other, as values; and the limits of both.

A repository's whole state has one tag, which changes with every write and never comes back: a
counter, and a word drawn when the repository began. An entry is a text with the SHA-256 of its
UTF-8 bytes. A deletion is an entry without a text, kept where the server keeps tombstones.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from reverie.errors import InvalidInput, ReverieError

BATCH_BYTES = 200_000
"""UTF-8 bytes of the texts and keys in one PUT, and of the largest single text."""
BATCH_ENTRIES = 1_000
BODY_BYTES = 2_000_000
"""Bytes of a request's body: JSON may need several for one of the text."""
REPOSITORY_ENTRIES = 20_000
REPOSITORY_BYTES = 64 * 1024 * 1024
WRITES_A_SECOND = 20.0
BEGINNING = '"0"'
"""The tag of a repository that nobody wrote to yet."""

_REPO = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class EntryChange:
    """One change that a client asks for; without a text, a deletion."""

    key: str
    content: str | None
    sha256: str

    @property
    def size(self) -> int:
        return len(self.key.encode()) + len((self.content or "").encode())


@dataclass(frozen=True, slots=True)
class RemoteState:
    """What a server holds of one repository; `contents` only where they were asked for."""

    tag: str
    checksums: Mapping[str, str]
    contents: Mapping[str, str] = field(default_factory=dict[str, str])
    tombstones: Mapping[str, str] = field(default_factory=dict[str, str])
    """Deleted keys, with the SHA-256 of the text that was deleted."""
    authors: Mapping[str, str] = field(default_factory=dict[str, str])
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """What lies there and is not read, and why."""


@dataclass(frozen=True, slots=True)
class EntryVersion:
    """One version of one entry."""

    key: str
    version: int
    sha256: str
    author: str
    at: float
    deleted: bool


@dataclass(frozen=True, slots=True)
class CountedRefusal:
    """How often a server refused one token something within an hour; no token, no author, no
    repository where it does not know them."""

    org: str
    repo: str
    token: str
    author: str
    status: int
    times: int
    begun: float
    latest: float


class HttpRefusal(ReverieError, code="http_refusal"):
    """A request that a server answers with an error; `status` is HTTP's."""

    def __init__(self, status: int, what: str, *, where: str = "", do: str = "") -> None:
        super().__init__(what, where=where, do=do)
        self.status = status


def sha256_of(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def is_sha256(text: str) -> bool:
    return _HEX.fullmatch(text) is not None


def why_no_key(key: str) -> str:
    """Say why no team shares a file of this name, or "": a server or a teammate may hold one."""
    if any(part.startswith(".") for part in key.split("/")):
        return "no part of a team key may begin with a dot"
    if unicodedata.normalize("NFC", key) != key:
        return "the key is not in its canonical spelling (NFC)"
    return "" if key.endswith(".md") else "a team key ends in .md"


def check_repo(name: str) -> str:
    """`owner/name` as it is written, or InvalidInput; never repaired."""
    owner, slash, rest = name.partition("/")
    plain = slash and _REPO.fullmatch(owner) and _REPO.fullmatch(rest)
    if not plain or rest.endswith(".git"):
        raise InvalidInput(
            "A repository is named owner/name",
            where=repr(name[:200]),
            do="Give it without a host and without .git",
        )
    return name
