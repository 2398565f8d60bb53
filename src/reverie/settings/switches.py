"""The flags themselves: names, aliases, defaults, and what each can hold.

Values and pure functions only. Who sets a flag, and which word counts, is in `flags`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from reverie.errors import SettingsError
from reverie.light import dataclass
from reverie.settings.catalog import NOTES, SETTINGS
from reverie.settings.schema import REFUSED, camel, nearest, parse_object, switch_value, to_number

TYPE_CHECKING = False  # as `typing` has it, without importing it

if TYPE_CHECKING:
    from typing import TypeGuard

FlagValue = bool | int | Mapping[str, int]

_LARGEST = 1_000_000_000
_NOTES_KEYS = (
    {name: name for name in NOTES}
    | {camel(name): name for name in NOTES}
    | {
        "minimumMessageTokensToInit": "notes_first_tokens",
        "minimumTokensBetweenUpdate": "notes_growth_tokens",
        "toolCallsBetweenUpdates": "notes_tool_calls",
    }
)


@dataclass(frozen=True, slots=True)
class Flag:
    """One kill switch, or a value that may change while the program runs."""

    name: str
    default: FlagValue
    aliases: tuple[str, ...]
    section: str
    about: str
    committed_off: bool = True
    """Whether a file that the repository may have brought can switch it off: not where that
    would make the session dearer."""

    def refusal(self, value: FlagValue) -> str:
        """Why a committed `value` is not taken, or nothing."""
        if value is not False:
            return f"{REFUSED} can only switch off"
        return "" if self.committed_off else f"{REFUSED} cannot set this"

    @property
    def kind(self) -> str:
        """switch, whole or object."""
        if isinstance(self.default, bool):
            return "switch"
        return "whole" if isinstance(self.default, int) else "object"

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that set it, ours first."""
        others = [other for name in self.aliases for other in (name, _variable(name))]
        return (_variable(self.name), *others)


def _variable(name: str) -> str:
    return f"REVERIE_FLAG_{name.upper()}"


_EMPTY: Mapping[str, int] = MappingProxyType({})

_ALL = (
    Flag("session_memory", True, ("tengu_session_memory",), "5", "notes kept along the session"),
    Flag(
        "session_memory_compaction",
        True,
        ("tengu_sm_compact",),
        "5",
        "the notes stand in for a summary where they can",
        committed_off=False,
    ),
    Flag(
        "session_memory_config",
        _EMPTY,
        ("tengu_sm_config",),
        "5",
        "numbers of the session notes, by the names of their settings",
    ),
    Flag("dream", True, ("tengu_onyx_plover",), "9", "dreams"),
    Flag(
        "extract_memories",
        True,
        ("tengu_passport_quail", "EXTRACT_MEMORIES"),
        "7",
        "extraction at the end of a turn",
    ),
    Flag(
        "extract_noninteractive",
        False,
        ("tengu_slate_thimble",),
        "7",
        "extraction also where no person is there",
    ),
    Flag(
        "extraction_exclusive",
        False,
        (),
        "7",
        "extraction passes over what stands before a memory that the agent saved itself",
    ),
    Flag("skip_index", False, (), "7", "extraction saves no pointers where recall finds the files"),
    Flag("extract_every", 1, ("tengu_bramble_lintel",), "7", "extract after every Nth turn"),
    Flag(
        "time_microcompact",
        True,
        ("tengu_slate_heron",),
        "4",
        "clearing after a long pause",
        committed_off=False,
    ),
    Flag(
        "cache_edit_microcompact",
        True,
        ("CACHED_MICROCOMPACT",),
        "4",
        "clearing inside the provider's cache, where the provider can",
        committed_off=False,
    ),
    Flag(
        "tool_result_thresholds",
        _EMPTY,
        ("tengu_satin_quoll",),
        "3",
        "characters a result may have, by tool name",
    ),
    Flag("recall", True, ("tengu_moth_copse",), "8", "memories recalled at the start of a turn"),
    Flag("search_past", True, ("tengu_coral_fern",), "7", "the prompt says how to search the past"),
    Flag("team_memory", False, ("TEAMMEM",), "11", "memory shared with a team"),
    Flag("daily_log", False, ("KAIROS",), "7", "a daily log in place of extraction"),
    Flag("context_collapse", True, ("CONTEXT_COLLAPSE",), "4", "the collapse policy may be chosen"),
    Flag("rules", True, (), "B20", "calls are held against rules of memory", committed_off=False),
    Flag("history_snip", True, ("HISTORY_SNIP",), "4", "ranges of the history can be snipped"),
)

FLAGS: Mapping[str, Flag] = MappingProxyType({flag.name: flag for flag in _ALL})
"""All flags by their own names."""

BY_NAME: Mapping[str, Flag] = MappingProxyType(
    {name: flag for flag in _ALL for name in (flag.name, *flag.aliases)}
)
"""All flags by their own names and by their aliases."""


def flag_named(name: str) -> Flag:
    """The flag of a name or alias; SettingsError where there is none."""
    flag = BY_NAME.get(name)
    if flag is None:
        hint = nearest(name, BY_NAME).removeprefix("; ")
        do = hint[:1].upper() + hint[1:] if hint else "`reverie flags` lists them"
        raise SettingsError("There is no such flag", where=name[:100], do=do)
    return flag


def check_flag_value(flag: Flag, value: object) -> FlagValue:
    """The value as the flag holds it; SettingsError where it cannot."""
    found, reasons = from_json(flag, value)
    if found is None or reasons:
        raise _flag_refusal(flag, reasons, is_rule=found is None)
    return found


def parse_flag(name: str, text: str) -> FlagValue:
    """A flag's value from a command line; SettingsError where it is none."""
    flag = flag_named(name)
    found, reasons = from_text(flag, text)
    if found is None or reasons:
        raise _flag_refusal(flag, reasons, is_rule=flag.kind != "object")
    return found


def with_flag(text: str, name: str, value: FlagValue | None) -> str:
    """The text of `flags.json` with one flag changed, or removed by None.

    A text that is no JSON object is refused, so that nobody's edit is lost.
    """
    flag = flag_named(name)
    read, problems = parse_object(text if text.strip() else "{}", "flags.json")
    if problems:
        raise SettingsError(
            "The flags cannot be changed", where=str(problems[0]), do="Repair or remove that file."
        )
    kept = {key: given for key, given in read.items() if BY_NAME.get(key) is not flag}
    if value is not None:
        found = check_flag_value(flag, value)
        kept[flag.name] = dict(found) if isinstance(found, Mapping) else found
    return json.dumps(kept, indent=2, sort_keys=True) + "\n"


def from_text(flag: Flag, text: str) -> tuple[FlagValue | None, list[str]]:
    """A flag's value from the environment, and why it, or a part of it, is not used."""
    if flag.kind == "switch":
        value, reason = switch_value(text)
        return value, [reason] if reason else []
    if flag.kind == "whole":
        return from_json(flag, to_number(text.strip()))
    read, problems = parse_object(text, flag.name)
    if problems:
        return None, [problem.reason for problem in problems]
    return from_json(flag, read)


def from_json(flag: Flag, raw: object) -> tuple[FlagValue | None, list[str]]:
    """A flag's value from a file, and why it, or a part of it, is not used."""
    if flag.kind == "switch":
        return (raw, []) if isinstance(raw, bool) else (None, ["must be true or false"])
    if flag.kind == "whole":
        if isinstance(raw, int) and not isinstance(raw, bool) and 1 <= raw <= _LARGEST:
            return raw, []
        return None, ["must be a whole number from 1 on"]
    return _table(flag, raw) if _is_object(raw) else (None, ["must be an object"])


def _is_object(raw: object) -> TypeGuard[Mapping[object, object]]:
    return isinstance(raw, Mapping)


def _table(flag: Flag, raw: Mapping[object, object]) -> tuple[Mapping[str, int], list[str]]:
    values: dict[str, int] = {}
    reasons: list[str] = []
    notes = flag.name == "session_memory_config"
    for key, given in ((str(key), given) for key, given in raw.items()):
        name = _NOTES_KEYS.get(key, "") if notes else key
        if not name:
            reasons.append(f"unknown key {key[:100]}{nearest(key, _NOTES_KEYS)}")
            continue
        low, high = (SETTINGS[name].low, SETTINGS[name].high) if notes else (1, _LARGEST)
        if isinstance(given, int) and not isinstance(given, bool) and low <= given <= high:
            values[name] = given
        else:
            reasons.append(f"{key[:100]} must be a whole number between {low:,} and {high:,}")
    return MappingProxyType(values), reasons


def _flag_refusal(flag: Flag, reasons: list[str], *, is_rule: bool) -> SettingsError:
    """The refusal of a value; a rule tells what a value must be, and needs its subject."""
    do = "It " * is_rule + "; ".join(reasons)
    return SettingsError("The flag cannot take this value", where=flag.name, do=do)
