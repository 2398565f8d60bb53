"""Which names may be files below one of our folders, on every system we might meet.

A key is a relative path with `/` between its names: `MEMORY.md`, `team/topic.md`. What passes
here stays inside its folder and can be created on Linux, macOS and Windows alike. The rule is
positive: letters, marks and digits of any script, and a few signs; all else is refused.

Nothing here touches the disk, and a key is never repaired: it passes or it is refused.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from urllib.parse import unquote

from reverie.errors import PathRefused

NAME_BYTES = 255
PATH_BYTES = 4096
DEPTH = 8

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
        raise _refused(key, "The name has a character that reads as another one (NFKC)")
    names = key.split("/")
    if len(names) > DEPTH:
        raise _refused(key, f"The path is more than {DEPTH} names deep", "Use fewer folders")
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


def shown(text: str) -> str:
    """Give the text, or where printing it is not safe, with controls and surrogates escaped."""
    quoted = text if text and text.isprintable() else repr(text)
    return quoted if len(quoted) <= 500 else quoted[:500] + "…"


def _check_text(key: str) -> None:
    if not key:
        raise _refused(key, "The name is empty")
    if "\0" in key:
        raise _refused(key, "The name has a NUL byte")
    if "\\" in key:
        raise _refused(key, "The name has a backslash", "Write / between folder and file")
    if "%" in key:
        once = unquote(key, errors="replace")
        hidden = f"The name hides {shown(once)} behind % signs"
        raise _refused(key, hidden if once != key else "The name has a % sign")
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise _refused(key, "The name is not valid Unicode") from None
    if size > PATH_BYTES:
        raise _refused(key, f"The path is longer than {PATH_BYTES} bytes", "Shorten it")


def _check_name(key: str, name: str) -> None:
    if name in ("", ".", ".."):
        raise _refused(key, "The path is absolute, ends in / or leaves its folder")
    if len(name.encode()) > NAME_BYTES:
        raise _refused(key, f"A name is longer than {NAME_BYTES} bytes", "Shorten it")
    if ":" in name:
        raise _refused(key, "The name has a colon, which names a drive or a stream on Windows")
    if not _PLAIN.fullmatch(name):
        _check_letters(key, name)
    if name[-1] in ". " or name[0] == " ":
        raise _refused(key, "A name begins with a space or ends with a dot or space")
    if name.partition(".")[0].rstrip(" ").upper() in _DEVICES:
        raise _refused(key, "The name belongs to a device on Windows")
    if is_temporary(name):
        raise _refused(key, "The name is reserved for temporary files")


def _check_letters(key: str, name: str) -> None:
    for character in name:
        kind = unicodedata.category(character)[0]
        if character not in _SIGNS and (kind not in "LMN" or character in _INVISIBLE):
            label = f"U+{ord(character):04X}"
            raise _refused(key, f"The name has a character that is not allowed, {label}")
    if unicodedata.category(name[0])[0] == "M":
        raise _refused(key, "A name begins with a combining mark")


def _refused(key: str, what: str, do: str = _RENAME) -> PathRefused:
    return PathRefused(what, where=shown(key), do=do)
