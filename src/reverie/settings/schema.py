"""Kinds of settings, and values read against them.

What is known about one setting: its kind, its range, who may set it and what it is for.

Each function here is a field's right side: it gives the default to the dataclass and what
is known to whoever reads the field's metadata. No setting is named and no value read here.

A file that the repository may have brought counts for what the setting says: for nothing
(`NEVER`, what holds where nothing is said), only to lower or to raise the value (`LESS`,
`MORE`, whichever is stricter or cheaper), or like any other file (`FREE`).
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from reverie.light import dataclass

TYPE_CHECKING = False  # as `typing` has it, without importing it

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

SettingValue = bool | int | float | str | None
Committed: TypeAlias = "Literal['never', 'less', 'more', 'free']"
ProblemCode: TypeAlias = "Literal['', 'unreadable', 'not_trusted', 'refused']"

NEVER: Committed = "never"
LESS: Committed = "less"
MORE: Committed = "more"
FREE: Committed = "free"

TOKENS = 100_000_000
BYTES = 1_000_000_000
COUNT = 100_000
MINUTES = 525_600
SECONDS = 86_400

REFUSED = "ignored: a file that the repository may have brought"
"""How every reason begins why a committed value is not taken."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known about one field of `Settings`."""

    kind: str
    """One of switch, whole, number, text, folder, choice."""
    section: str
    about: str
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()
    committed: Committed = NEVER
    """What a file that the repository may have brought can do to it."""
    alias: str = ""
    """Another name under which the environment may give it."""

    def refusal(self, value: SettingValue, held: SettingValue) -> str:
        """Why a committed `value` is not taken where `held` holds without it, or nothing."""
        if self.committed == "free":
            return ""
        fixed = self.committed == "never"
        if fixed or isinstance(value, str | None) or isinstance(held, str | None):
            return f"{REFUSED} cannot set this"
        if self.kind == "switch":
            return "" if value <= held else f"{REFUSED} can only switch this off"
        if self.committed == "less":
            return "" if value <= held else f"{REFUSED} can only lower this; it is {held:,}"
        return "" if value >= held else f"{REFUSED} can only raise this; it is {held:,}"


def whole(
    default: int, section: str, about: str, low: int, high: int, committed: Committed = NEVER
) -> int:
    known = Setting("whole", section, about, low, high, committed=committed)
    return field(default=default, metadata={"setting": known})


def window(section: str, about: str) -> int | None:
    known = Setting("whole", section, about, 1_000, TOKENS)
    return field(default=None, metadata={"setting": known})


def number(
    default: float, section: str, about: str, low: float, high: float, committed: Committed = NEVER
) -> float:
    known = Setting("number", section, about, low, high, committed=committed)
    return field(default=default, metadata={"setting": known})


def share(default: float, section: str, about: str) -> float:
    return number(default, section, about, 0.0, 1.0)


def switch(
    default: bool, section: str, about: str, committed: Committed = NEVER, alias: str = ""
) -> bool:
    known = Setting("switch", section, about, committed=committed, alias=alias)
    return field(default=default, metadata={"setting": known})


def text(section: str, about: str, alias: str = "") -> str | None:
    known = Setting("text", section, about, alias=alias)
    return field(default=None, metadata={"setting": known})


def folder(section: str, about: str, alias: str = "") -> str | None:
    known = Setting("folder", section, about, alias=alias)
    return field(default=None, metadata={"setting": known})


def choice(
    default: str,
    section: str,
    about: str,
    choices: tuple[str, ...],
    committed: Committed = NEVER,
) -> str:
    known = Setting("choice", section, about, choices=choices, committed=committed)
    return field(default=default, metadata={"setting": known})


def camel(name: str) -> str:
    """The JSON spelling of a field's name."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


# --- From what was written to what is meant: an object from a file, one value, and what was wrong.
#
# A file may be anybody's: it is bounded in size and depth, and a key given twice counts for none.
# A value is checked against its setting; a reason that is not empty says why it must not be used.
# Nothing here raises: what is wrong comes back beside what could be read.


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


class _DuplicateKeys(dict[str, object]):
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
        value: object = json.loads(
            text, object_pairs_hook=_DuplicateKeys, parse_constant=_no_constant
        )
    except RecursionError:
        return {}, [Problem("error", place, "", "not usable: nested too deep")]
    except ValueError as error:
        return {}, [Problem("error", place, "", f"not JSON: {error}")]
    return keys_of(value, place)


def keys_of(value: object, place: str, key: str = "") -> tuple[dict[str, object], list[Problem]]:
    """The keys of an object that was read here, without those given twice."""
    if not isinstance(value, _DuplicateKeys):
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
    return _text(raw) if known.kind == "text" else folder_value(raw, environ)


def from_text(known: Setting, text: str, environ: Mapping[str, str]) -> CheckedValue:
    """A setting's value as the environment or a command line gives it."""
    if known.kind == "switch":
        return switch_value(text)
    if known.kind in ("whole", "number"):
        number = to_number(text.strip())
        if number is None:
            return None, f"must be a number{_not(text)}"
        return _in_range(known, number)
    return from_json(known, text if known.kind == "text" else text.strip(), environ)


def switch_value(text: str) -> tuple[bool | None, str]:
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


def folder_value(text: str, environ: Mapping[str, str]) -> tuple[str | None, str]:
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
