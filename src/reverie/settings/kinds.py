"""What is known about one setting: its kind, its range, who may set it and what it is for.

Each function here is a field's right side: it gives the default to the dataclass and what
is known to whoever reads the field's metadata. No setting is named and no value read here.

A file that the repository may have brought counts for what the setting says: for nothing
(`NEVER`, what holds where nothing is said), only to lower or to raise the value (`LESS`,
`MORE`, whichever is stricter or cheaper), or like any other file (`FREE`).
"""

from __future__ import annotations

from dataclasses import field

from reverie.light import dataclass

TYPE_CHECKING = False
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
