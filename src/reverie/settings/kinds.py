"""What is known about one setting: its kind, its range, who may set it and what it is for.

Each function here is a field's right side: it gives the default to the dataclass and what
is known to whoever reads the field's metadata. No setting is named and no value read here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SettingValue = bool | int | float | str | None

TOKENS = 100_000_000
BYTES = 1_000_000_000
COUNT = 100_000
MINUTES = 525_600
SECONDS = 86_400


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
    trusted_only: bool = False
    alias: str = ""
    """Another name under which the environment may give it."""


def whole(
    default: int, section: str, about: str, low: int, high: int, trusted_only: bool = False
) -> int:
    known = Setting("whole", section, about, low, high, trusted_only=trusted_only)
    return field(default=default, metadata={"setting": known})


def window(section: str, about: str) -> int | None:
    known = Setting("whole", section, about, 1_000, TOKENS)
    return field(default=None, metadata={"setting": known})


def number(
    default: float, section: str, about: str, low: float, high: float, trusted_only: bool = False
) -> float:
    known = Setting("number", section, about, low, high, trusted_only=trusted_only)
    return field(default=default, metadata={"setting": known})


def share(default: float, section: str, about: str) -> float:
    return number(default, section, about, 0.0, 1.0)


def switch(
    default: bool, section: str, about: str, trusted_only: bool = False, alias: str = ""
) -> bool:
    known = Setting("switch", section, about, trusted_only=trusted_only, alias=alias)
    return field(default=default, metadata={"setting": known})


def text(section: str, about: str, trusted_only: bool = False, alias: str = "") -> str | None:
    known = Setting("text", section, about, trusted_only=trusted_only, alias=alias)
    return field(default=None, metadata={"setting": known})


def folder(section: str, about: str, alias: str = "") -> str | None:
    known = Setting("folder", section, about, trusted_only=True, alias=alias)
    return field(default=None, metadata={"setting": known})


def choice(default: str, section: str, about: str, choices: tuple[str, ...]) -> str:
    known = Setting("choice", section, about, choices=choices)
    return field(default=default, metadata={"setting": known})


def camel(name: str) -> str:
    """The JSON spelling of a field's name."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
