"""Where settings come from: policy, environment, local, project and user, in this order.

A repository's own files are not trusted, nor is a local one that the user has not approved:
what could move writes, spend money or weaken a guard is ignored from them, and it is said.
Each file is read once, so that what is judged is what is used. Nothing here raises for a bad
setting, follows a value into a program, or writes. `environment()` is the only place that
hands out the process's environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from reverie.errors import SettingsError
from reverie.light import dataclass
from reverie.settings.kinds import SettingValue, camel
from reverie.settings.numbers import DEFAULTS, SETTINGS, Settings
from reverie.settings.trust import distrust
from reverie.settings.values import (
    Problem,
    ValueOrigin,
    from_json,
    from_text,
    nearest,
    object_in,
    read_bytes,
)

POLICY = Path("/etc/reverie/settings.json")
OTHER_KEYS = frozenset({"flags", "hooks", "permissions", "claudeMdExcludes", "$schema"})
OTHER_VARIABLES = ("REVERIE_HOME", "REVERIE_MCP_TOKEN", "REVERIE_TELEMETRY")
ORDERED = (
    ("result_characters", "message_result_characters"),
    ("result_preview_bytes", "result_characters"),
    ("cache_edit_kept", "cache_edit_count"),
    ("api_clear_at_least_tokens", "api_clear_trigger_tokens"),
    ("notes_section_tokens", "notes_total_tokens"),
    ("notes_compact_min_tokens", "notes_compact_max_tokens"),
    ("restore_file_tokens", "restore_files_tokens"),
    ("restore_skill_tokens", "restore_skills_tokens"),
    ("collapse_kept", "collapse_tail"),
    ("recall_file_bytes", "recall_total_bytes"),
    ("dream_limit_minutes", "dream_stale_lock_minutes"),
    ("cache_short_minutes", "cache_long_minutes"),
)
"""Pairs of which the first may not exceed the second."""

_FIELD_OF = {camel(name): name for name in SETTINGS} | {name: name for name in SETTINGS}
_DEFAULT = ValueOrigin("default", "", True)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, where each came from, and what was wrong on the way."""

    settings: Settings
    origins: Mapping[str, ValueOrigin]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """One settings file as it was read, and whether its word counts for everything."""

    origin: ValueOrigin
    path: Path
    data: bytes | None
    """None where it is not there or cannot be read."""
    value: Mapping[str, object]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Given:
    values: Mapping[str, tuple[SettingValue, ValueOrigin]]
    problems: Sequence[Problem]


def environment() -> Mapping[str, str]:
    """The process's environment, live: a variable changed later is seen."""
    return os.environ


def variable(name: str) -> str:
    """The environment variable of a field."""
    return f"REVERIE_{name.upper()}"


def load(
    environ: Mapping[str, str], *, home: Path, root: Path | None, policy: Path = POLICY
) -> Loaded:
    """All settings for `root`, each from the strongest source that gives a good value."""
    first, *files = settings_files(home=home, root=root, policy=policy)
    values: dict[str, SettingValue] = {}
    origins = dict.fromkeys(SETTINGS, _DEFAULT)
    problems: list[Problem] = []

    def take(given: _Given) -> None:
        for name, (value, origin) in given.values.items():
            values[name], origins[name] = value, origin
        problems[:0] = given.problems

    for file in reversed(files):
        take(_from_file(file, environ, replace(DEFAULTS, **values)))
    take(_from_environment(environ))
    take(_from_file(first, environ, DEFAULTS))
    settings, misfits = _ordered(replace(DEFAULTS, **values), origins)
    return Loaded(settings, MappingProxyType(origins), (*problems, *misfits))


def settings_files(
    *, home: Path, root: Path | None, policy: Path = POLICY
) -> tuple[SettingsFile, ...]:
    """The settings files, strongest first, each read once; they need not exist."""
    places = settings_places(home=home, root=root, policy=policy)
    return tuple(settings_file(source, path, home) for source, path in places.items())


def settings_places(*, home: Path, root: Path | None, policy: Path = POLICY) -> dict[str, Path]:
    """Where each settings file would be, strongest first."""
    places = {"policy": policy}
    if root is not None:
        places["local"] = root / ".reverie" / "settings.local.json"
        places["project"] = root / ".reverie" / "settings.json"
    return {**places, "user": home / "settings.json"}


def settings_file(source: str, path: Path, home: Path) -> SettingsFile:
    """One settings file, read."""
    data, problems = read_bytes(path)
    value: Mapping[str, object] = {}
    why = ""
    if data is not None:
        value, problems = object_in(data, str(path))
        why = distrust(home, path, data) if source == "local" else ""
    if why and value:
        told = f"{why}; it counts as committed"
        problems.append(Problem("warning", str(path), "", told, "not_trusted"))
    origin = ValueOrigin(source, str(path), source != "project" and not why)
    return SettingsFile(origin, path, data, value, tuple(problems))


def _from_file(file: SettingsFile, environ: Mapping[str, str], held: Settings) -> _Given:
    """What a file gives where `held` holds without it."""
    problems = list(file.problems)
    values: dict[str, tuple[SettingValue, ValueOrigin]] = {}
    place = file.origin.place
    for key in file.value:
        name = _FIELD_OF.get(key)
        if name is None:
            if key not in OTHER_KEYS:
                hint = nearest(key, _FIELD_OF)
                problems.append(Problem("warning", place, key, f"unknown setting{hint}"))
            continue
        value, problem = _checked(file, key, name, environ, held)
        if problem:
            problems.append(problem)
        else:
            values[name] = value, file.origin
    return _Given(values, problems)


def _checked(
    file: SettingsFile, key: str, name: str, environ: Mapping[str, str], held: Settings
) -> tuple[SettingValue, Problem | None]:
    """A value that the file may give, or why it is not taken."""
    known, place = SETTINGS[name], file.origin.place
    value, reason = from_json(known, file.value[key], environ)
    if reason := reason or _twice(key, name, file.value):
        return value, Problem("error", place, key, reason)
    reason = "" if file.origin.trusted else known.refusal(value, getattr(held, name))
    return value, Problem("error", place, key, reason, "refused") if reason else None


def _twice(key: str, name: str, read: Mapping[str, object]) -> str:
    other = camel(name) if key == name else name
    return f"given twice, also as {other}" if other != key and other in read else ""


def _from_environment(environ: Mapping[str, str]) -> _Given:
    values: dict[str, tuple[SettingValue, ValueOrigin]] = {}
    problems: list[Problem] = []
    for name, known in SETTINGS.items():
        for key in (variable(name), known.alias):
            text = environ.get(key, "") if key else ""
            if not text.strip():
                continue
            value, reason = from_text(known, text, environ)
            if not reason:
                values[name] = value, ValueOrigin("environment", key, True)
                break
            problems.append(Problem("error", "environment", key, reason))
    return _Given(values, [*problems, *_misspelt(environ)])


def _misspelt(environ: Mapping[str, str]) -> list[Problem]:
    """Variables that are nearly one of ours; others may belong to someone else."""
    known = {*map(variable, SETTINGS), *OTHER_VARIABLES}
    found: list[Problem] = []
    for key in environ:
        if not key.startswith("REVERIE_") or key in known or key.startswith("REVERIE_FLAG_"):
            continue
        hint = nearest(key, known, 0.85)
        if hint:
            found.append(Problem("warning", "environment", key, f"unknown setting{hint}"))
    return found


def _ordered(settings: Settings, origins: dict[str, ValueOrigin]) -> tuple[Settings, list[Problem]]:
    """The settings with no smaller number above its larger one."""
    problems: list[Problem] = []
    for smaller, larger in ORDERED:
        most = getattr(settings, larger)
        if getattr(settings, smaller) <= most:
            continue
        settings = replace(settings, **{smaller: most})
        blamed = origins[smaller] if origins[smaller] != _DEFAULT else origins[larger]
        reason = f"lowered to {most:,}, the value of {camel(larger)}, which it may not exceed"
        problems.append(Problem("warning", blamed.place, camel(smaller), reason))
        origins[smaller] = blamed
    return settings, problems


def override(
    base: Settings, given: Settings | Mapping[str, object] | None, environ: Mapping[str, str]
) -> Settings:
    """Return the settings that count: those given whole, or what is given on top of `base`."""
    if isinstance(given, Settings):
        return given
    values: dict[str, object] = {}
    for name, raw in (given or {}).items():
        known = SETTINGS.get(name)
        if known is None:
            raise SettingsError("There is no such setting", where=name[:80])
        values[name], reason = from_json(known, raw, environ)
        if reason:
            raise SettingsError(f"The setting cannot have this value: {reason}", where=name)
    return replace(base, **values)  # pyright: ignore[reportArgumentType]
