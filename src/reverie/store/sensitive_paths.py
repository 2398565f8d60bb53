"""Which files are nobody else's business, told by their names alone.

`is_secret` is the one answer for every interface: what may hold keys or passwords, wherever it is.
`is_private` adds the folders in which agents keep their own files, ours among them. Nothing here
touches the disk, so a file that hides its purpose behind another name is not seen. The names are
data (`data/secret_names.txt`); here is how a name is compared with them.
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from reverie.light import pattern
from reverie.store.paths import beneath

_ROWS = files("reverie.store").joinpath("data/secret_names.txt").read_text("utf-8").splitlines()
_NAMES = tuple(row for row in _ROWS if row and not row.startswith("#"))
_FOLDERS = frozenset(row[:-1] for row in _NAMES if row.endswith("/"))
_FILES = tuple(row for row in _NAMES if not row.endswith("/"))
_PLAIN = frozenset(row for row in _FILES if not re.search("[*?[/]", row))
_GLOBS = tuple(row for row in _FILES if row not in _PLAIN)
SECRETS = (*_FOLDERS, *_PLAIN)
"""Names that a search can leave out from the start; what it finds is asked of `is_secret`."""

_ANY_GLOB = pattern(rf"\A(?:{'|'.join(map(fnmatch.translate, _GLOBS)).replace('.*', '[^/]*')})")
_DEEPEST = max(row.count("/") for row in _GLOBS)
# What editors, people and package managers add to the name of a copy.
_COPY = pattern(
    r"#(?P<a>.+)#|\.#(?P<b>.+)|\.(?P<c>.+)\.sw[a-p]|copy of (?P<d>.+)|(?P<e>.+?)(?:~|[ ._-]"
    r"(?:bak|backup|old|orig|saved?|copy|tmp|rej|prev|sw[a-p]|dpkg-\w+|rpm(?:save|new|orig)|gz|bz2"
    r"|xz|zst|zip|\d{1,14})| ?\(\d{1,3}\)| - copy)(?P<f>\.\w{1,10})?"
)
# The public half of a key, a page about a file, and settings that only show what is to be set.
_OPEN = pattern(
    r".*\.(?:pub|md|mdx|rst|adoc)"
    r"|(?!.*\.(?:key|pem|p8|p12|pfx|ppk|pvk|jks|bks|kdbx?|keystore|keytab)$)"
    r".*(?:^|[._-])(?:example|sample|template|tmpl|tpl|dist|schema)s?(?:[._-].*)?"
)
AGENT_FOLDERS = frozenset(
    {
        ".reverie",
        ".claude",
        ".codex",
        ".gemini",
        ".cursor",
        ".continue",
        ".aider",
        ".windsurf",
        ".codeium",
        ".copilot",
        ".goose",
        ".opencode",
        ".qwen",
    }
)
GIT = ".git"
_GIT_FILES = frozenset({"config", "config.worktree", "credentials"})


def is_secret(path: Path) -> bool:
    """Whether a file's name says that it may hold keys or passwords."""
    names = _names(path)
    if not names:
        return False
    folders, last = names[:-1], names[-1]
    if last in _FOLDERS or (not _FOLDERS.isdisjoint(folders) and not last.endswith(".pub")):
        return True
    return is_git_setting(path) or _is_secret_name(tuple(folders[-_DEEPEST:]), last)


@lru_cache(4096)
def _is_secret_name(folders: tuple[str, ...], name: str) -> bool:
    names = tuple(_originals(name))
    return not _OPEN.fullmatch(names[-1]) and any(_fits(folders, one) for one in names)


def _fits(folders: tuple[str, ...], name: str) -> bool:
    if name in _PLAIN or (name.startswith("id_") and "." not in name):
        return True
    ends = ("/".join((*folders[at:], name)) for at in range(len(folders) + 1))
    return any(map(_ANY_GLOB.match, ends))


def _originals(name: str) -> Iterator[str]:
    """The name, and what it is a copy of, step by step."""
    yield name
    while found := _COPY.fullmatch(name):
        name = (
            found["a"] or found["b"] or found["c"] or found["d"] or found["e"] + (found["f"] or "")
        )
        yield name


def is_git_setting(path: Path) -> bool:
    """Whether it is git's configuration, which holds addresses with passwords, or a hook."""
    names = _names(path)
    if GIT not in names:
        return False
    below = names[names.index(GIT) + 1 :]
    return "hooks" in below or (below[-1:] != [] and below[-1] in _GIT_FILES)


def is_gits(path: Path) -> bool:
    """Whether it belongs to git's own files."""
    return GIT in _names(path)


def is_private(path: Path, homes: Iterable[Path] = ()) -> bool:
    """Whether it may hold keys, or lies in a folder of an agent; `homes` are more of those."""
    if is_secret(path) or AGENT_FOLDERS.intersection(_names(path)):
        return True
    return any(beneath(home, path) for home in homes)


def _names(path: Path) -> list[str]:
    return [part if part.isascii() and part.islower() else _plain(part) for part in path.parts]


def _plain(name: str) -> str:
    """Return a name as it looks: small letters of usual width, without signs that are not seen."""
    seen = "".join(sign for sign in name if unicodedata.category(sign) not in ("Cf", "Cc"))
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold()).rstrip(
        " ."
    )
