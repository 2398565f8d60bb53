"""Where settings come from: policy, environment, local, project and user, in this order.

A repository's own files are not trusted: what could move writes, spend money or switch
off a guard is ignored from them, and it is said. Nothing here raises for a bad setting,
follows a value into a program, or writes. `environment()` is the only place that hands
out the process's environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from reverie.settings import git
from reverie.settings.kinds import Setting, SettingValue, camel
from reverie.settings.numbers import DEFAULTS, SETTINGS, Settings
from reverie.settings.values import Problem, ValueOrigin, from_json, from_text, nearest, read_object

POLICY = Path("/etc/reverie/settings.json")
OTHER_KEYS = frozenset({"flags", "hooks", "permissions", "$schema"})
OTHER_VARIABLES = ("REVERIE_HOME",)
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
    ("agent_summary_min_words", "agent_summary_max_words"),
    ("cache_short_minutes", "cache_long_minutes"),
)
"""Pairs of which the first may not exceed the second."""

_FIELD_OF = {camel(name): name for name in SETTINGS} | {name: name for name in SETTINGS}
_DEFAULT = ValueOrigin("default", "", True)

Tracks = Callable[[Path], bool]


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, where each came from, and what was wrong on the way."""

    settings: Settings
    origins: Mapping[str, ValueOrigin]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """One settings file, and whether its word counts for everything."""

    origin: ValueOrigin
    path: Path


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
    environ: Mapping[str, str],
    *,
    home: Path,
    root: Path | None,
    policy: Path = POLICY,
    tracks: Tracks = git.tracks,
) -> Loaded:
    """All settings for `root`, each from the strongest source that gives a good value."""
    files = settings_files(home=home, root=root, policy=policy, tracks=tracks)
    given = [_from_file(file, environ) for file in files]
    given.insert(1, _from_environment(environ))
    values: dict[str, SettingValue] = {}
    origins = dict.fromkeys(SETTINGS, _DEFAULT)
    for source in reversed(given):
        for name, (value, origin) in source.values.items():
            values[name], origins[name] = value, origin
    settings, misfits = _ordered(replace(DEFAULTS, **values), origins)
    problems = [problem for source in given for problem in source.problems] + misfits
    return Loaded(settings, MappingProxyType(origins), tuple(problems))


def settings_files(
    *, home: Path, root: Path | None, policy: Path = POLICY, tracks: Tracks = git.tracks
) -> list[SettingsFile]:
    """The settings files, strongest first; they need not exist."""
    found = [SettingsFile(ValueOrigin("policy", str(policy), True), policy)]
    if root is not None:
        local = root / ".reverie" / "settings.local.json"
        own = not os.path.lexists(local) or (_owned(local) and not tracks(local))
        found.append(SettingsFile(ValueOrigin("local", str(local), own), local))
        project = root / ".reverie" / "settings.json"
        found.append(SettingsFile(ValueOrigin("project", str(project), False), project))
    user = home / "settings.json"
    found.append(SettingsFile(ValueOrigin("user", str(user), True), user))
    return found


def _owned(path: Path) -> bool:
    """Whether the file is this user's or the system's."""
    try:
        return path.stat().st_uid in (os.getuid(), 0)
    except OSError:
        return False


def _from_file(file: SettingsFile, environ: Mapping[str, str]) -> _Given:
    place = file.origin.place
    read, problems = read_object(file.path)
    values: dict[str, tuple[SettingValue, ValueOrigin]] = {}
    for key, raw in read.items():
        name = _FIELD_OF.get(key)
        if name is None:
            if key not in OTHER_KEYS:
                hint = nearest(key, _FIELD_OF)
                problems.append(Problem("warning", place, key, f"unknown setting{hint}"))
            continue
        value: SettingValue = None
        reason = _refused(file.origin, SETTINGS[name]) or _twice(key, name, read)
        if not reason:
            value, reason = from_json(SETTINGS[name], raw, environ)
        if reason:
            problems.append(Problem("error", place, key, reason))
        else:
            values[name] = value, file.origin
    return _Given(values, problems)


def _refused(origin: ValueOrigin, known: Setting) -> str:
    if origin.trusted or not known.trusted_only:
        return ""
    return "ignored: a file that the repository may have brought cannot set this"


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
