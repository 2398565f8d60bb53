"""From what was written to what is meant: an object from a file, one value, and what was wrong.

A file may be anybody's: it is bounded in size and depth, and a key given twice counts for
none. A value is checked against its setting; a reason that is not empty says why it must not
be used. Nothing here raises: what is wrong comes back beside what could be read.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from reverie.light import dataclass
from reverie.settings.kinds import ProblemCode, Setting, SettingValue


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """Who gave a value."""

    source: str
    """default, policy, environment, local, project, user, flags or override."""
    place: str
    """The file, or the environment variable; "" for a default."""
    trusted: bool


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that was not taken as given, and why."""

    level: str
    """warning: nothing is lost by it. error: a value was not used."""
    place: str
    key: str
    reason: str
    code: ProblemCode = ""
    """What a program asks about; the words are for people."""

    def __str__(self) -> str:
        where = f"{self.place}: {self.key}" if self.key else self.place
        return f"{where}: {self.reason}"

    def value(self) -> dict[str, str]:
        """For a report."""
        return {"level": self.level, "place": self.place, "key": self.key, "reason": self.reason}


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A question naming the known word most like `word`, or ""."""
    import difflib

    close = difflib.get_close_matches(word[:200], list(known), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]}?" if close else ""


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
    data, problems = read_bytes(path)
    return ({}, problems) if data is None else object_in(data, str(path))


def object_in(data: bytes, place: str) -> tuple[dict[str, object], list[Problem]]:
    """The object that a file's bytes are, and what was wrong with it."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return {}, [Problem("error", place, "", f"not UTF-8: {error}")]
    return parse_object(text, place)


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


def read_bytes(path: Path) -> tuple[bytes | None, list[Problem]]:
    """The file's bytes, or None and what was wrong; that a file is missing is not wrong."""
    try:
        data = _bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        return None, []
    except (OSError, ValueError) as error:
        return None, [Problem("error", str(path), "", f"cannot be read: {error}", "unreadable")]
    if len(data) > LIMIT:
        return None, [Problem("error", str(path), "", f"too large: more than {LIMIT:,} bytes")]
    return data, []


def _bytes(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("not a regular file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(LIMIT + 1)
    finally:
        os.close(handle)


_ON = frozenset({"1", "true", "yes", "on"})
_OFF = frozenset({"0", "false", "no", "off"})
_WORDS = {"True": "true", "False": "false", "None": "null"}
_LONGEST_TEXT = 100_000
_WHOLE = re.compile(r"[+-]?[0-9][0-9_]{0,30}", re.ASCII)
_DRIVE = re.compile(r"[A-Za-z]:")

CheckedValue = tuple[SettingValue, str]


def from_json(known: Setting, raw: object, environ: Mapping[str, str]) -> CheckedValue:
    """A setting's value as a settings file gives it."""
    if known.kind == "switch":
        return (raw, "") if isinstance(raw, bool) else (None, f"must be true or false{_not(raw)}")
    if known.kind in ("whole", "number"):
        return _in_range(known, raw)
    if not isinstance(raw, str):
        return None, f"must be a text{_not(raw)}"
    if known.kind == "choice":
        wanted = " or ".join(known.choices)
        return (raw, "") if raw in known.choices else (None, f"must be {wanted}{_not(raw)}")
    return _text(raw) if known.kind == "text" else folder(raw, environ)


def from_text(known: Setting, text: str, environ: Mapping[str, str]) -> CheckedValue:
    """A setting's value as the environment or a command line gives it."""
    if known.kind == "switch":
        return switch(text)
    if known.kind in ("whole", "number"):
        number = to_number(text.strip())
        if number is None:
            return None, f"must be a number{_not(text)}"
        return _in_range(known, number)
    return from_json(known, text if known.kind == "text" else text.strip(), environ)


def switch(text: str) -> tuple[bool | None, str]:
    """On or off, in the words people use."""
    word = text.strip().lower()
    if word in _ON or word in _OFF:
        return word in _ON, ""
    return None, f"must be one of 1, true, yes, on, 0, false, no, off{_not(text)}"


def to_number(text: str) -> int | float | None:
    """A whole number or a decimal one; None where it is neither."""
    if _WHOLE.fullmatch(text):
        return int(text.replace("_", ""))
    try:
        return float(text) if len(text) < 40 and text.isascii() else None
    except ValueError:
        return None


def folder(text: str, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """An absolute folder that may be written to; `~/` expands, and what is too wide is refused."""
    checked, reason = _text(text)
    if checked is None:
        return None, reason
    user = environ.get("HOME", "") or os.path.expanduser("~")
    expanded = os.path.join(user, text[2:]) if text.startswith("~/") else text
    if expanded.startswith(("//", "\\\\")) or _DRIVE.match(expanded):
        return None, f"must not be a drive or a network share{_not(text)}"
    if not os.path.isabs(expanded):
        return None, f"must be an absolute path, or begin with ~/{_not(text)}"
    path = os.path.normpath(expanded)
    if path.count("/") < 2:
        return None, f"must lie at least two folders deep{_not(text)}"
    if f"{os.path.normpath(user)}/".startswith(f"{path}/"):
        return None, f"must not be the user's own folder or above it{_not(text)}"
    return path, ""


def _in_range(known: Setting, raw: object) -> CheckedValue:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None, f"must be a number{_not(raw)}"
    if known.kind == "whole" and not isinstance(raw, int):
        return None, f"must be a whole number{_not(raw)}"
    if not known.low <= raw <= known.high:
        return None, f"must lie between {known.low:,} and {known.high:,}{_not(raw)}"
    return (raw if known.kind == "whole" else float(raw)), ""


def _text(text: str) -> tuple[str | None, str]:
    if len(text) > _LONGEST_TEXT:
        return None, f"is longer than {_LONGEST_TEXT:,} characters"
    if "\0" in text:
        return None, "must not contain NUL"
    try:
        text.encode()
    except UnicodeEncodeError:
        return None, "is not valid Unicode"
    return (text, "") if text.strip() else (None, "must not be empty")


def _not(raw: object) -> str:
    """What was given instead, short, for the end of a reason."""
    if isinstance(raw, dict | list):
        return ", not an object" if isinstance(raw, dict) else ", not a list"
    shown = ascii(raw) if isinstance(raw, str) else _WORDS.get(repr(raw), repr(raw))
    return f", not {shown[:60]}…" if len(shown) > 60 else f", not {shown}"
