"""From what was written to what is meant: one value, checked against its setting.

Each function answers with a value and a reason; a reason that is not empty says why the
value must not be used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from reverie.settings.kinds import Setting, SettingValue

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
