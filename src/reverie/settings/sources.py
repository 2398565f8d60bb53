"""Settings files in order, Claude Code's included, and which are trusted.

Where settings come from: policy, environment, local, project and user, in this order.

A repository's own files are not trusted, nor is a local one that the user has not approved:
what could move writes, spend money or weaken a guard is ignored from them, and it is said.
Each file is read once, so that what is judged is what is used. Nothing here raises for a bad
setting, follows a value into a program, or writes. `environment()` is the only place that
hands out the process's environment.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from reverie.errors import SettingsError
from reverie.light import dataclass
from reverie.settings.catalog import DEFAULTS, SETTINGS, Settings
from reverie.settings.schema import (
    Problem,
    SettingValue,
    ValueOrigin,
    camel,
    from_json,
    from_text,
    nearest,
    object_in,
    read_bytes,
    read_object,
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
class LoadedSettings:
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
class _SourceValue:
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
) -> LoadedSettings:
    """All settings for `root`, each from the strongest source that gives a good value."""
    first, *files = settings_files(home=home, root=root, policy=policy)
    values: dict[str, SettingValue] = {}
    origins = dict.fromkeys(SETTINGS, _DEFAULT)
    problems: list[Problem] = []

    def take(given: _SourceValue) -> None:
        for name, (value, origin) in given.values.items():
            values[name], origins[name] = value, origin
        problems[:0] = given.problems

    for file in reversed(files):
        take(_from_file(file, environ, replace(DEFAULTS, **values)))
    take(_from_environment(environ))
    take(_from_file(first, environ, DEFAULTS))
    settings, misfits = _enforce_order(replace(DEFAULTS, **values), origins)
    return LoadedSettings(settings, MappingProxyType(origins), (*problems, *misfits))


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


def _from_file(file: SettingsFile, environ: Mapping[str, str], held: Settings) -> _SourceValue:
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
        value, problem = _check_value(file, key, name, environ, held)
        if problem:
            problems.append(problem)
        else:
            values[name] = value, file.origin
    return _SourceValue(values, problems)


def _check_value(
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


def _from_environment(environ: Mapping[str, str]) -> _SourceValue:
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
    return _SourceValue(values, [*problems, *_misspelt(environ)])


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


def _enforce_order(
    settings: Settings, origins: dict[str, ValueOrigin]
) -> tuple[Settings, list[Problem]]:
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


# --- Claude Code's own settings files, as far as they guard or instruct an agent: read, never
# written.
#
# The user's file, and one that an administrator manages, count in full. What lies in a project may
# have come with it, and is trusted only where the user approved that very file (`reverie trust`).


MANAGED = Path("/etc/claude-code/managed-settings.json")
FOLDER = ".claude"
EXCLUDES = "claudeMdExcludes"
MAX_EXCLUDES = 200


def claude_home(environ: Mapping[str, str]) -> Path:
    """Claude Code's own folder of this user."""
    user = environ.get("HOME", "") or os.path.expanduser("~")
    return Path(environ.get("CLAUDE_CONFIG_DIR", "") or Path(user) / FOLDER)


def project_files(top: Path) -> tuple[Path, Path]:
    """Where a project may bring settings for Claude Code, the stronger first."""
    return top / FOLDER / "settings.local.json", top / FOLDER / "settings.json"


def claude_settings(
    home: Path, top: Path, environ: Mapping[str, str], managed: Path = MANAGED
) -> tuple[SettingsFile, ...]:
    """The files that are there, strongest first; what is wrong inside them is Claude Code's own
    business."""
    users = claude_home(environ) / "settings.json"
    same = os.path.realpath(users)
    brought = [one for one in project_files(top) if os.path.realpath(one) != same]
    found = (
        settings_file("policy", managed, home),
        *(_foreign_settings_file(path, home) for path in brought),
        settings_file("user", users, home),
    )
    return tuple(one for one in found if one.data is not None)


def _foreign_settings_file(path: Path, home: Path) -> SettingsFile:
    file = settings_file("local", path, home)
    data = file.data or b""
    if was_declined(home, path, data):  # the user has seen it and said no
        return replace(file, data=None)
    trusted = not distrust(home, path, data)
    return replace(file, origin=replace(file.origin, trusted=trusted), problems=())


def excludes(files: tuple[SettingsFile, ...]) -> tuple[str, ...]:
    """Which instruction files are not to be read, as globs of absolute paths. They can only take
    away; that a project cannot take away the user's own is for the reader to see to."""
    found: list[str] = []
    for file in files:
        given = file.value.get(EXCLUDES)
        if isinstance(given, list):
            found += [one for one in given if isinstance(one, str)]  # pyright: ignore[reportUnknownVariableType]
    return tuple(dict.fromkeys(found))[:MAX_EXCLUDES]


# --- What a repository's own files say, read without running git.
#
# Running git in a folder one does not trust can run that folder's programs, so only files are read
# here, bounded in size, and nothing is written.


_SMALL = 64 * 1024


def git_folder(root: Path) -> Path | None:
    """Where `root/.git` is or points to; None where it is broken."""
    entry = root / ".git"
    if entry.is_dir():
        return entry.resolve()
    text = small_text(entry)
    if text is None or not text.startswith("gitdir:"):
        return None
    named = text.removeprefix("gitdir:").strip("\n\r ")
    if not named or "\0" in named:
        return None
    target = Path(os.path.realpath(root / named))
    return target if target.is_dir() else None


def small_text(path: Path, limit: int = _SMALL) -> str | None:
    """The text of a small regular file; None where it is anything else."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError):
        return None
    return None if len(data) > limit else os.fsdecode(data)


def index_names(data: bytes, hash_size: int) -> Iterator[bytes]:
    """The paths in an index file of version 2, 3 or 4; ValueError where it is no such file."""
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index that is known")
    at, name = 12, b""
    for _ in range(int.from_bytes(data[8:12], "big")):
        start = at
        at += 40 + hash_size
        flags = int.from_bytes(data[at : at + 2], "big")
        at += 4 if flags & 0x4000 and version > 2 else 2
        kept = b""
        if version == 4:
            dropped, at = _varint(data, at)
            if dropped > len(name):
                raise ValueError("a name that drops more than there is")
            kept = name[: len(name) - dropped]
        end = data.index(b"\0", at)
        name = kept + data[at:end]
        if len(name) != flags & 0xFFF and flags & 0xFFF != 0xFFF:
            raise ValueError("a name of another length than stated")
        yield name
        at = end + 1 if version == 4 else end + 8 - (end - start) % 8
    _check_extensions(data[at:-hash_size])


def _check_extensions(data: bytes) -> None:
    """Only extensions that may be ignored: a split index keeps its paths elsewhere."""
    at = 0
    while at < len(data):
        name = data[at : at + 4]
        if len(name) < 4 or not (name[:1].isupper() or name == b"sdir"):
            raise ValueError("an extension that changes what the index means")
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at] & 127
    while data[at] & 128:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 127)
    return value, at + 1


# --- Whose a local settings file is: the user's where its digest stands in home, else nobody's.
#
# The digest is recorded when the user, or a prompt at the user's word, wrote or approved the file.
# Where it lies, who owns it and whether git tracks it say nothing: an archive brings all of that
# along. A file that has changed since is not trusted. Nothing here writes; `record` gives the
# bytes that `store.trusted` then writes.


TRUST_FOLDER = "trusted"
"""The records in home, one file for each settings file that somebody decided about."""


def record_key(path: Path) -> str:
    """Where home keeps the record of a settings file."""
    return f"{TRUST_FOLDER}/{hashlib.sha256(os.fsencode(path)).hexdigest()}.json"


def record(path: Path, data: bytes, trusted: bool) -> bytes:
    """The record of what the user decided about these bytes at this place."""
    value = {"file": os.fspath(path), "sha256": _digest(data), "trusted": trusted}
    return json.dumps(value, indent=2).encode("utf-8", "backslashreplace") + b"\n"


def distrust(home: Path, path: Path, data: bytes) -> str:
    """Why these bytes at this place are not trusted; empty where they are."""
    held = read_object(home / record_key(path))[0]
    if not held:
        return "not trusted: nobody has approved it"
    if held.get("sha256") != _digest(data):
        return "not trusted: it has changed since it was approved"
    return "" if held.get("trusted") is True else "not trusted: you declined it"


def was_declined(home: Path, path: Path, data: bytes) -> bool:
    """Whether the user has seen exactly these bytes and said no."""
    held = read_object(home / record_key(path))[0]
    return held.get("sha256") == _digest(data) and held.get("trusted") is not True


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
