"""Kill switches that act while the program runs.

Each look at a flag asks anew: policy, what the program itself set, the environment,
`<home>/flags.json`, then the settings files. A file is read again when its stamp has
changed, so a switch thrown in another window acts at the next look, without a restart.
A file that a repository may have brought can switch a flag off, and nothing else.

Nothing here writes: `with_flag` gives the text that a door then writes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from reverie.errors import SettingsError
from reverie.settings import git
from reverie.settings.numbers import DEFAULTS, Settings
from reverie.settings.sources import POLICY, Tracks, settings_files
from reverie.settings.switches import (
    BY_NAME,
    FLAGS,
    Flag,
    FlagValue,
    checked,
    flag_named,
    from_json,
    from_text,
)
from reverie.settings.values import Problem, ValueOrigin, keys_of, nearest, read_object

_RACY_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class FlagState:
    """A flag's value now, and who gave it."""

    flag: Flag
    value: FlagValue
    origin: ValueOrigin


@dataclass(frozen=True, slots=True)
class _Read:
    """A file's flags as of one stamp."""

    stamp: tuple[int, ...] | None
    values: Mapping[str, FlagValue]
    origin: ValueOrigin
    problems: tuple[Problem, ...]


class Flags:
    """The flags of one process. `environ` may be live: it is asked at each look."""

    __slots__ = ("_environ", "_home", "_overrides", "_paths", "_place", "_reads", "_settings")

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        home: Path,
        root: Path | None = None,
        policy: Path = POLICY,
        tracks: Tracks = git.tracks,
        settings: Settings = DEFAULTS,
    ) -> None:
        self._environ = environ
        self._home = home
        self._place = (root, tracks)
        self._paths = _paths(policy, home, root)
        self._settings = settings
        self._overrides: dict[str, FlagValue] = {}
        self._reads: dict[Path, _Read] = {}

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
        self._overrides[flag.name] = checked(flag, value)

    def clear(self, name: str) -> None:
        """Take back what `set` did."""
        self._overrides.pop(flag_named(name).name, None)

    def snapshot(self) -> Mapping[str, FlagState]:
        """All flags as they are now, for display."""
        return MappingProxyType({flag.name: self._state(flag) for flag in FLAGS.values()})

    def problems(self) -> tuple[Problem, ...]:
        """What was given and not used, or not known."""
        found = [problem for path in self._paths for problem in self._read(path).problems]
        for flag in FLAGS.values():
            for key, text in self._variables(flag):
                _, reasons = from_text(flag, text)
                found += [Problem("error", "environment", key, reason) for reason in reasons]
        return tuple(dict.fromkeys(found))

    def _state(self, flag: Flag) -> FlagState:
        for value, origin in self._given(flag):
            return FlagState(flag, value, origin)
        own = flag.name == "extract_every"
        value = self._settings.extract_every if own else flag.default
        return FlagState(flag, value, ValueOrigin("default", "", True))

    def _given(self, flag: Flag) -> Iterator[tuple[FlagValue, ValueOrigin]]:
        """Every value given for the flag, strongest first, found one by one."""
        policy, *others = self._paths
        yield from self._in_file(flag, policy)
        if flag.name in self._overrides:
            yield self._overrides[flag.name], ValueOrigin("override", "", True)
        for key, text in self._variables(flag):
            value, _ = from_text(flag, text)
            if value is not None:
                yield value, ValueOrigin("environment", key, True)
        for path in others:
            yield from self._in_file(flag, path)

    def _in_file(self, flag: Flag, path: Path) -> Iterator[tuple[FlagValue, ValueOrigin]]:
        read = self._read(path)
        if flag.name in read.values:
            yield read.values[flag.name], read.origin

    def _variables(self, flag: Flag) -> Iterator[tuple[str, str]]:
        for key in flag.variables:
            text = self._environ.get(key, "")
            if text.strip():
                yield key, text

    def _read(self, path: Path) -> _Read:
        stamp = _stamp(path)
        before = self._reads.get(path)
        if before is not None and stamp is not None and before.stamp == stamp:
            return before
        if stamp is None:
            return _Read(None, {}, ValueOrigin("", str(path), True), ())
        read = _read_flags(self._origin(path), path, _settled(stamp))
        self._reads[path] = read
        return read

    def _origin(self, path: Path) -> ValueOrigin:
        if path.name == "flags.json":
            return ValueOrigin("flags", str(path), True)
        root, tracks = self._place
        files = settings_files(home=self._home, root=root, policy=self._paths[0], tracks=tracks)
        return next(file.origin for file in files if file.path == path)


def _paths(policy: Path, home: Path, root: Path | None) -> tuple[Path, ...]:
    """The files that may hold flags, strongest first."""
    own, user = home / "flags.json", home / "settings.json"
    if root is None:
        return policy, own, user
    folder = root / ".reverie"
    return policy, own, folder / "settings.local.json", folder / "settings.json", user


def _read_flags(origin: ValueOrigin, path: Path, stamp: tuple[int, ...] | None) -> _Read:
    """The flags in one file, without what it may not set."""
    read, problems = read_object(path)
    prefix = ""
    if origin.source != "flags":
        problems = [problem for problem in problems if problem.key in ("", "flags")]
        given, prefix = read.get("flags"), "flags."
        read = {}
        if given is not None:
            read, more = keys_of(given, origin.place, "flags")
            problems += more
    values: dict[str, FlagValue] = {}
    for key, raw in sorted(read.items(), key=lambda item: item[0] not in FLAGS):
        flag = BY_NAME.get(key)
        if flag is None:
            reason = f"unknown flag{nearest(key, BY_NAME)}"
            problems.append(Problem("warning", origin.place, prefix + key, reason))
            continue
        value, reasons = from_json(flag, raw)
        if value is not None and not origin.trusted and value is not False:
            value = None
            reasons = ["ignored: a file that the repository may have brought can only switch off"]
        problems += [Problem("error", origin.place, prefix + key, reason) for reason in reasons]
        if value is not None:
            values.setdefault(flag.name, value)
    return _Read(stamp, values, origin, tuple(problems))


def _stamp(path: Path) -> tuple[int, ...] | None:
    """What changes when the file does; None where there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


def _settled(stamp: tuple[int, ...]) -> tuple[int, ...] | None:
    """The stamp, unless the file is so new that one more write could leave it the same."""
    return stamp if time.time_ns() - max(stamp[0], stamp[1]) > _RACY_NS else None


def _other(name: str, kind: str) -> SettingsError:
    return SettingsError(f"The flag is not a {kind}", where=name, do="Ask for it with `get`.")
