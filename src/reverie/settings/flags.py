"""Kill switches that act while the program runs.

Each look at a flag asks anew: policy, what the program itself set, the environment,
`<home>/flags.json`, then the settings files. A file is read again when its stamp has
changed, so a switch thrown in another window acts at the next look, without a restart.
A file that a repository may have brought can switch some flags off, and nothing else.

Nothing here writes: `with_flag` gives the text that a door then writes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from reverie.errors import SettingsError
from reverie.light import dataclass
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.settings.schema import Problem, ValueOrigin, keys_of, nearest, read_object
from reverie.settings.sources import POLICY, record_key, settings_file, settings_places
from reverie.settings.switches import (
    BY_NAME,
    FLAGS,
    Flag,
    FlagValue,
    check_flag_value,
    flag_named,
    from_json,
    from_text,
)

_RACY_NS = 50_000_000
_PARTS = 5  # of one file's stamp; the first two are times


@dataclass(frozen=True, slots=True)
class FlagState:
    """A flag's value now, and who gave it."""

    flag: Flag
    value: FlagValue
    origin: ValueOrigin


@dataclass(frozen=True, slots=True)
class _FlagSnapshot:
    """A file's flags as of one stamp."""

    stamp: tuple[int, ...] | None
    values: Mapping[str, FlagValue]
    origin: ValueOrigin
    problems: tuple[Problem, ...]


class Flags:
    """The flags of one process. `environ` may be live: it is asked at each look."""

    __slots__ = ("_environ", "_home", "_overrides", "_places", "_reads", "_settings")

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        home: Path,
        root: Path | None = None,
        policy: Path = POLICY,
        settings: Settings = DEFAULTS,
    ) -> None:
        self._environ = environ
        self._home = home
        self._places = _places(policy, home, root)
        self._settings = settings
        self._overrides: dict[str, FlagValue] = {}
        self._reads: dict[str, _FlagSnapshot] = {}

    def get(self, name: str) -> FlagValue:
        """The flag's value now; SettingsError where there is no such flag."""
        return self._state(flag_named(name)).value

    def on(self, name: str) -> bool:
        """Whether a switch is on."""
        value = self.get(name)
        if not isinstance(value, bool):
            raise _other(name, "switch")
        return value

    def number(self, name: str) -> int:
        """The value of a flag that is a number."""
        value = self.get(name)
        if isinstance(value, bool | Mapping):
            raise _other(name, "number")
        return value

    def table(self, name: str) -> Mapping[str, int]:
        """The value of a flag that is an object."""
        value = self.get(name)
        if not isinstance(value, Mapping):
            raise _other(name, "object")
        return value

    def set(self, name: str, value: FlagValue) -> None:
        """Set a flag for this process alone; only policy goes before it."""
        flag = flag_named(name)
        self._overrides[flag.name] = check_flag_value(flag, value)

    def clear(self, name: str) -> None:
        """Take back what `set` did."""
        self._overrides.pop(flag_named(name).name, None)

    def snapshot(self) -> Mapping[str, FlagState]:
        """All flags as they are now, for display."""
        return MappingProxyType({flag.name: self._state(flag) for flag in FLAGS.values()})

    def problems(self) -> tuple[Problem, ...]:
        """What was given and not used, or not known."""
        found = [problem for source in self._places for problem in self._read(source).problems]
        for flag in FLAGS.values():
            for key, text in self._variables(flag):
                _, reasons = from_text(flag, text)
                found += [Problem("error", "environment", key, reason) for reason in reasons]
        return tuple(dict.fromkeys(found))

    def _state(self, flag: Flag) -> FlagState:
        for value, origin in self._flag_values(flag):
            return FlagState(flag, value, origin)
        own = flag.name == "extract_every"
        value = self._settings.extract_every if own else flag.default
        return FlagState(flag, value, ValueOrigin("default", "", True))

    def _flag_values(self, flag: Flag) -> Iterator[tuple[FlagValue, ValueOrigin]]:
        """Every value given for the flag, strongest first, found one by one."""
        policy, *others = self._places
        yield from self._in_file(flag, policy)
        if flag.name in self._overrides:
            yield self._overrides[flag.name], ValueOrigin("override", "", True)
        for key, text in self._variables(flag):
            value, _ = from_text(flag, text)
            if value is not None:
                yield value, ValueOrigin("environment", key, True)
        for source in others:
            yield from self._in_file(flag, source)

    def _in_file(self, flag: Flag, source: str) -> Iterator[tuple[FlagValue, ValueOrigin]]:
        read = self._read(source)
        if flag.name in read.values:
            yield read.values[flag.name], read.origin

    def _variables(self, flag: Flag) -> Iterator[tuple[str, str]]:
        for key in flag.variables:
            text = self._environ.get(key, "")
            if text.strip():
                yield key, text

    def _read(self, source: str) -> _FlagSnapshot:
        path = self._places[source]
        stamp = self._stamp(source)
        before = self._reads.get(source)
        if before is not None and stamp is not None and before.stamp == stamp:
            return before
        if stamp is None:
            return _FlagSnapshot(None, {}, ValueOrigin("", str(path), True), ())
        read = _read_flags(source, path, self._home, _stable_stamp(stamp))
        self._reads[source] = read
        return read

    def _stamp(self, source: str) -> tuple[int, ...] | None:
        """What changes when the file does, or what the user decided about it."""
        path = self._places[source]
        stamp = _stamp(path)
        if stamp is None or source != "local":
            return stamp
        return (*stamp, *(_stamp(self._home / record_key(path)) or ()))


def _places(policy: Path, home: Path, root: Path | None) -> dict[str, Path]:
    """The files that may hold flags by their sources, strongest first."""
    first, *others = settings_places(home=home, root=root, policy=policy).items()
    return dict((first, ("flags", home / "flags.json"), *others))


def _read_flags(
    source: str, path: Path, home: Path, stamp: tuple[int, ...] | None
) -> _FlagSnapshot:
    """The flags in one file, without what it may not set."""
    if source == "flags":
        read, problems = read_object(path)
        origin, prefix = ValueOrigin(source, str(path), True), ""
    else:
        file = settings_file(source, path, home)
        origin, prefix = file.origin, "flags."
        read, problems = _flags_in(file.value.get("flags"), origin.place)
        problems += [one for one in file.problems if one.key in ("", "flags")]
    values: dict[str, FlagValue] = {}
    for key, raw in sorted(read.items(), key=lambda item: item[0] not in FLAGS):
        flag = BY_NAME.get(key)
        if flag is None:
            reason = f"unknown flag{nearest(key, BY_NAME)}"
            problems.append(Problem("warning", origin.place, prefix + key, reason))
            continue
        value, reasons = from_json(flag, raw)
        if value is not None and not origin.trusted and (reason := flag.refusal(value)):
            problems.append(Problem("error", origin.place, prefix + key, reason, "refused"))
            continue
        problems += [Problem("error", origin.place, prefix + key, reason) for reason in reasons]
        if value is not None:
            values.setdefault(flag.name, value)
    return _FlagSnapshot(stamp, values, origin, tuple(problems))


def _flags_in(given: object, place: str) -> tuple[dict[str, object], list[Problem]]:
    return ({}, []) if given is None else keys_of(given, place, "flags")


def _stamp(path: Path) -> tuple[int, ...] | None:
    """What changes when the file does; None where there is none."""
    if not os.access(path, os.F_OK):  # most often, and told without an error's cost
        return None
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


def _stable_stamp(stamp: tuple[int, ...]) -> tuple[int, ...] | None:
    """The stamp, unless a file is so new that one more write could leave it the same."""
    times = (*stamp[:2], *stamp[_PARTS : _PARTS + 2])
    return stamp if time.time_ns() - max(times) > _RACY_NS else None


def _other(name: str, kind: str) -> SettingsError:
    return SettingsError(f"The flag is not a {kind}", where=name, do="Ask for it with `get`.")
