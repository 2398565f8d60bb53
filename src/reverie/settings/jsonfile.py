"""One JSON object from a file that anybody may have written.

Bounded in size and depth, strict about twice-given keys, and never an exception: what
is wrong comes back beside what could be read.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from reverie.settings.problems import Problem

LIMIT = 1024 * 1024


class _Twice(dict[str, object]):
    """An object with the keys that it had more than once."""

    __slots__ = ("twice",)

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        self.twice = tuple(key for key, _ in pairs if key in seen or seen.add(key))


def read_object(path: Path) -> tuple[dict[str, object], list[Problem]]:
    """The file's object without twice-given keys, and what was wrong with it."""
    text, reason = _text(path)
    if text is None:
        return {}, [Problem("error", str(path), "", reason)] if reason else []
    return parse_object(text, str(path))


def parse_object(text: str, place: str) -> tuple[dict[str, object], list[Problem]]:
    """The object that `text` is, without twice-given keys, and what was wrong with it."""
    try:
        value: object = json.loads(text, object_pairs_hook=_Twice, parse_constant=_no_constant)
    except RecursionError:
        return {}, [Problem("error", place, "", "not usable: nested too deep")]
    except ValueError as error:
        return {}, [Problem("error", place, "", f"not JSON: {error}")]
    return keys_of(value, place)


def keys_of(value: object, place: str, key: str = "") -> tuple[dict[str, object], list[Problem]]:
    """The keys of an object that was read here, without those given twice."""
    if not isinstance(value, _Twice):
        return {}, [Problem("error", place, key, "not a JSON object")]
    below = f"{key}." if key else ""
    problems = [Problem("error", place, f"{below}{it}", "given twice") for it in value.twice]
    return {it: given for it, given in value.items() if it not in value.twice}, problems


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _text(path: Path) -> tuple[str | None, str]:
    """The file's text, or None and the reason; a missing file has no reason."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None, ""
    except (OSError, ValueError) as error:
        return None, f"cannot be read: {error}"
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None, "cannot be read: not a regular file"
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(LIMIT + 1)
    except OSError as error:
        return None, f"cannot be read: {error}"
    finally:
        os.close(handle)
    if len(data) > LIMIT:
        return None, f"too large: more than {LIMIT:,} bytes"
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as error:
        return None, f"not UTF-8: {error}"
