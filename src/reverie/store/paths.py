"""Keys: which names may be files below one of our folders, and the way down to what they name.

A key is a relative path with `/` between its names: `MEMORY.md`, `team/topic.md`. What passes
here stays inside its folder and can be created on Linux, macOS and Windows alike. The rule is
positive: letters, marks and digits of any script, and a few signs; all else is refused. A key
is never repaired: it passes or it is refused.

A `FolderWalk` knows its root by what it is, not by its name alone, and goes down from it by
descriptor, never through a link and never onto another mount: what a path meant when it was
looked at is what is opened. Between two ways down it holds nothing open; a root that another
folder has taken the place of is refused. It also says, in the house's words, what went wrong
under a key. It writes nothing but the folders it is asked for.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Generator, Sequence
from pathlib import Path

from reverie.errors import NotFound, PathRefused, StoreError, WriteFailed
from reverie.store.fs import (
    FOLDER,
    ROOT,
    SAFE,
    close,
    flush_directory,
    is_empty,
    make_folder,
    make_in,
    words,
)
from reverie.store.lock import NO_LOCKS, release, take_soon

NAME_BYTES = 255
PATH_BYTES = 4096
DEPTH = 8

_BY_CHANCE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}(?:\.jsonl)?"
    r"|[0-9a-f]{62}\.z"
)
TEMP_NAME = re.compile(r"\.reverie-(\d{1,10})-[0-9a-f]{16}\.tmp", re.ASCII)

_SIGNS = "._- +,=@()"
_PLAIN = re.compile(r"[A-Za-z0-9._\- +,=@()]+", re.ASCII)
_DEVICES = frozenset(
    ["CON", "PRN", "AUX", "NUL"] + [f"{kind}{n}" for kind in ("COM", "LPT") for n in range(10)]
)
# Letters and marks by category that show nothing, so that two names would look alike.
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)
_RENAME = "Use letters, digits and . _ - in the name"


def check_key(key: str) -> str:
    """Give the key in its one canonical spelling (NFC), or raise `PathRefused`."""
    _check_text(key)
    canonical = unicodedata.normalize("NFC", key)
    if unicodedata.normalize("NFKC", canonical) != canonical:
        raise _refusal(key, "The name has a character that reads as another one (NFKC)")
    names = key.split("/")
    if len(names) > DEPTH:
        raise _refusal(key, f"The path is more than {DEPTH} names deep", "Use fewer folders")
    for name in names:
        _check_name(key, name)
    return canonical


def fold_key(key: str) -> str:
    """Give what two keys share if some file system would take them for one file."""
    folded = unicodedata.normalize("NFD", key).casefold()
    return unicodedata.normalize("NFC", folded)


def is_temporary(name: str) -> bool:
    return TEMP_NAME.fullmatch(name) is not None


def beneath(root: Path, path: Path) -> bool:
    """Say whether `path` is `root` or lies below it, name by name; `..` is never beneath."""
    if ".." in path.parts or ".." in root.parts or root.is_absolute() != path.is_absolute():
        return False
    return path.parts[: len(root.parts)] == root.parts


def format_path(text: str) -> str:
    """Give the text, or where printing it is not safe, with controls and surrogates escaped."""
    quoted = text if text and text.isprintable() else repr(text)
    return quoted if len(quoted) <= 500 else quoted[:500] + "…"


def _check_text(key: str) -> None:
    if not key:
        raise _refusal(key, "The name is empty")
    if "\0" in key:
        raise _refusal(key, "The name has a NUL byte")
    if "\\" in key:
        raise _refusal(key, "The name has a backslash", "Write / between folder and file")
    if "%" in key:
        from urllib.parse import unquote  # due where a name is refused

        once = unquote(key, errors="replace")
        hidden = f"The name hides {format_path(once)} behind % signs"
        raise _refusal(key, hidden if once != key else "The name has a % sign")
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise _refusal(key, "The name is not valid Unicode") from None
    if size > PATH_BYTES:
        raise _refusal(key, f"The path is longer than {PATH_BYTES} bytes", "Shorten it")


def _check_name(key: str, name: str) -> None:
    if name in ("", ".", ".."):
        raise _refusal(key, "The path is absolute, ends in / or leaves its folder")
    if len(name.encode()) > NAME_BYTES:
        raise _refusal(key, f"A name is longer than {NAME_BYTES} bytes", "Shorten it")
    if ":" in name:
        raise _refusal(key, "The name has a colon, which names a drive or a stream on Windows")
    if not _PLAIN.fullmatch(name):
        _check_letters(key, name)
    if name[-1] in ". " or name[0] == " ":
        raise _refusal(key, "A name begins with a space or ends with a dot or space")
    if name.partition(".")[0].rstrip(" ").upper() in _DEVICES:
        raise _refusal(key, "The name belongs to a device on Windows")
    if is_temporary(name):
        raise _refusal(key, "The name is reserved for temporary files")


def _check_letters(key: str, name: str) -> None:
    for character in name:
        kind = unicodedata.category(character)[0]
        if character not in _SIGNS and (kind not in "LMN" or character in _INVISIBLE):
            label = f"U+{ord(character):04X}"
            raise _refusal(key, f"The name has a character that is not allowed, {label}")
    if unicodedata.category(name[0])[0] == "M":
        raise _refusal(key, "A name begins with a combining mark")


def _refusal(key: str, what: str, do: str = _RENAME) -> PathRefused:
    return PathRefused(what, where=format_path(key), do=do)


_GENERATION = 0x80087601  # FS_IOC_GETVERSION
_NOT_OURS = frozenset([errno.ELOOP, errno.ENOTDIR, errno.EMLINK, errno.ENXIO, errno.EISDIR])
_NO_FOLDER = ("The folder could not be made", "See that you may write to the one above it")


class FolderWalk:
    """A root folder, and every way down from it."""

    def __init__(self, root: Path, fd: int) -> None:
        """The root is what `fd` has open, which is closed."""
        self.root = root
        self._path = os.path.abspath(root)
        self._closed = False
        try:
            self._identity = _identity(fd)
            self._mount = _mount_id(fd)
        finally:
            close(fd)

    def close(self) -> None:
        """No way leads down any more."""
        self._closed = True

    @classmethod
    def from_root(cls, path: Path, *, create: bool) -> FolderWalk:
        """A root by its path, which whoever gives it answers for."""
        try:
            if create:
                make_folder(path)
            return cls(path, os.open(path, ROOT))
        except FileNotFoundError as error:
            if create:
                raise StoreError(
                    f"The folder could not be made: {words(error)}",
                    where=format_path(str(path)),
                    do="See that you may write there; REVERIE_HOME names another place for home",
                ) from error
            raise NotFound("The folder does not exist", where=str(path)) from error
        except (OSError, ValueError) as error:
            raise StoreError(
                f"The folder could not be opened: {words(error)}",
                where=format_path(str(path)),
                do="See that it is a folder you may write to",
            ) from error

    def from_here(self, key: str, *, create: bool) -> FolderWalk:
        """A folder below this one as a root of its own."""
        parts = parts_of(key)
        with self.writes(key, *_NO_FOLDER) if create else self.reads(key):
            return FolderWalk(self.root / key, self.down(parts, key, create=create))

    def must_be_there(self) -> None:
        """Raise NotFound where the root is gone, or another folder has taken its place."""
        try:
            close(self._top())
        except FileNotFoundError as error:
            how = "replaced by another" if os.path.lexists(self._path) else "removed"
            raise NotFound(f"The folder was {how}", where=format_path(self._path)) from error
        except OSError as error:
            what = f"The folder could not be opened: {words(error)}"
            raise StoreError(what, where=format_path(self._path)) from error

    def _top(self) -> int:
        """Open the root; the caller closes it."""
        if self._closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        fd = os.open(self._path, ROOT)
        try:
            if _identity(fd) != self._identity:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._path)
        except BaseException:
            close(fd)
            raise
        return fd

    def down(self, parts: Sequence[str], key: str, *, create: bool = False) -> int:
        """Open the folder that these names lead to; the caller closes it."""
        at = self._top()
        try:
            for part in parts:
                below = self._step(at, part, key, create=create)
                close(at)
                at = below
        except BaseException:
            close(at)
            raise
        return at

    def _step(self, at: int, name: str, key: str, *, create: bool) -> int:
        try:
            fd = os.open(name, FOLDER, dir_fd=at)
        except FileNotFoundError:
            if not create:
                raise
            self._make_below(at, name, key)
            return self._step(at, name, key, create=False)
        except OSError as error:
            if error.errno in _NOT_OURS:
                raise self.refused(key, f"{format_path(name)} is a link or no folder") from error
            raise
        try:
            self._check_mount(fd, key)
            if create and is_empty(fd):
                flush_directory(at)
        except BaseException:
            close(fd)
            raise
        return fd

    def _make_below(self, at: int, name: str, key: str) -> None:
        with self.locked(at, key):
            self.refuse_twin(at, name, key)
            make_in(at, name)

    @contextlib.contextmanager
    def parent(self, key: str, *, create: bool = False) -> Generator[tuple[int, str]]:
        """Give the folder that holds a key, open, and the key's last name."""
        *above, name = parts_of(key)
        at = self.down(above, key, create=create)
        try:
            yield at, name
        finally:
            close(at)

    def open(self, at: int, name: str, key: str, flags: int, *, single_link: bool) -> int:
        """Open a regular file of ours in an open folder; the caller closes it."""
        try:
            fd = os.open(name, flags | SAFE, 0o600, dir_fd=at)
        except OSError as error:
            if error.errno in _NOT_OURS:
                raise self.refused(key, "It is a link or a special file") from error
            raise
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise self.refused(key, "It is not a regular file")
            if single_link and info.st_nlink > 1:
                raise self.refused(key, "It has a second name, perhaps outside its folder")
            self._check_mount(fd, key)
        except BaseException:
            close(fd)
            raise
        return fd

    def _check_mount(self, fd: int, key: str) -> None:
        if os.fstat(fd).st_dev == self._identity[0]:
            return
        # Overlays and subvolumes give other device numbers within one mount.
        mount = _mount_id(fd)
        if mount is None or mount != self._mount:
            raise self.refused(key, "It lies on another file system, mounted here")

    @contextlib.contextmanager
    def locked(self, at: int, key: str) -> Generator[None]:
        """Keep other processes and threads from changing names in a directory.

        A file system that cannot lock a directory leaves rename as the only protection.
        """
        fd = os.open(".", FOLDER, dir_fd=at)
        try:
            try:
                take_soon(fd, self.shown(key))
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise
            yield
        finally:
            release(fd)

    def refuse_twin(self, at: int, name: str, key: str, known: str | None = None) -> None:
        """Refuse a new name that some file system would take for one that is there: `known`,
        where somebody knows, else any in the folder. One that was drawn by chance has no twin,
        and sessions may be many."""
        if _BY_CHANCE.fullmatch(name):
            return
        twin = self._twin(at, name) if known is None else known
        if twin:
            raise self.refused(
                key, f"{format_path(twin)} is already there, the same but for case or accents"
            )

    def _twin(self, at: int, name: str) -> str:
        folded, size = fold_key(name), len(name)
        others = os.listdir(at)
        if name.isascii():  # nothing else of ASCII alone and of another length folds to it
            others = [one for one in others if len(one) == size or not one.isascii()]
        return next((one for one in others if one != name and fold_key(one) == folded), "")

    # Errors in the house's words.

    def shown(self, key: str) -> str:
        return format_path(str(self.root / key))

    def refused(self, key: str, what: str) -> PathRefused:
        return PathRefused(what, where=self.shown(key), do="Move it away or use another name")

    @contextlib.contextmanager
    def reads(self, key: str) -> Generator[None]:
        try:
            with self.missing(key):
                yield
        except OSError as error:
            what = f"The file could not be read: {words(error)}"
            raise StoreError(what, where=self.shown(key)) from error

    @contextlib.contextmanager
    def missing(self, key: str) -> Generator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise NotFound("There is no such file", where=self.shown(key)) from error

    @contextlib.contextmanager
    def writes(self, key: str, what: str, do: str) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise WriteFailed(f"{what}: {words(error)}", where=self.shown(key), do=do) from error


def parts_of(key: str) -> list[str]:
    """Give the names that a key is made of, or raise `PathRefused`."""
    check_key(key)
    return key.split("/")


def _identity(fd: int) -> tuple[int, int, bytes]:
    """Device, number and generation: a folder made anew may get the number of the old one."""
    info = os.fstat(fd)
    generation = b""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # tmpfs has none, and gives no number twice
            generation = fcntl.ioctl(fd, _GENERATION, bytes(8))
    return info.st_dev, info.st_ino, generation


def _mount_id(fd: int) -> str | None:
    """Give the kernel's number of the mount a file lies on, where it tells."""
    try:
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file if ":" in line)
    except OSError:
        return None
    return rows.get("mnt_id", "").strip() or None
