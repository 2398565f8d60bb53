"""Where memory lies: the folder of a project, its parts, and the folders of agents.

The first answer counts: an override of the full path, a folder from settings that a
repository cannot have brought, the project's own. A path that is relative, too wide, a drive,
a network share or holds NUL is refused, whoever gave it. Nothing here looks at the disk, and
nothing is ever repaired into another path.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from pathlib import Path
from typing import Literal, TypeAlias

from reverie.errors import PathRefused
from reverie.settings.catalog import Settings
from reverie.topics.entry import LOGS

Scope: TypeAlias = Literal["user", "project", "local"]

SCOPES: tuple[Scope, ...] = ("user", "project", "local")
FOLDER = "memory"
AGENTS = "agent-memory"
LOCAL_AGENTS = "agent-memory-local"
DOTFOLDER = ".reverie"
LOG_PATTERN = f"{LOGS}/YYYY/MM/YYYY-MM-DD.md"

_DRIVE = re.compile(r"[A-Za-z]:")
_DAY = re.compile(r"(\d{4})-(\d{2})-\d{2}", re.ASCII)
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|\Z)", re.IGNORECASE)
_LONGEST_TYPE = 64


def base(settings: Settings, home: Path) -> Path:
    """What stands in for home as the base of memory."""
    remote = settings.remote_memory_dir
    return home if remote is None else check_folder(remote)


def memory_paths(settings: Settings, project: Path) -> Path:
    """Return the memory folder; `project` is the project's folder below `base`."""
    given = settings.memory_path_override
    if given is None:
        given = settings.auto_memory_directory
    return project / FOLDER if given is None else check_folder(given)


def check_folder(text: str) -> Path:
    """The path in its normal form, or PathRefused where no memory may lie there."""
    why = _why_not(text)
    if why:
        raise PathRefused(
            f"This cannot be a memory folder: {why}",
            where=ascii(text)[:200],
            do="Give an absolute path at least two folders deep",
        )
    return Path(posixpath.normpath(text))


def _why_not(text: str) -> str:
    if "\0" in text:
        return "it has a NUL byte"
    if text.startswith(("//", "\\\\")):
        return "it is a network share"
    if _DRIVE.match(text) or "\\" in text:
        return "it is a path of another system"
    if not text.startswith("/"):
        return "it is relative"
    path = posixpath.normpath(text)
    if path.count("/") < 2:
        return "it is too wide"
    return ""


def log_key(day: str) -> str:
    """The key of a day's log, the day given as YYYY-MM-DD."""
    found = _DAY.fullmatch(day)
    if found is None:
        raise PathRefused("This is not a date", where=ascii(day)[:80], do="Write it as YYYY-MM-DD")
    return f"{LOGS}/{found[1]}/{found[2]}/{day}.md"


# The memory of agents


def agent_folder(
    agent: str,
    scope: Scope,
    *,
    home: Path,
    root: Path,
    remote_project: Path | None = None,
) -> Path:
    """Return the memory folder of one type of agent.

    `root` is the canonical root of the repository; `remote_project` the project's folder below
    a remote base, which takes the place of local agent memory where there is one.
    """
    name = agent_name(agent)
    if scope == "user":
        return home / AGENTS / name
    if scope == "project":
        return root / DOTFOLDER / AGENTS / name
    above = root / DOTFOLDER if remote_project is None else remote_project
    return above / LOCAL_AGENTS / name


def agent_name(agent: str) -> str:
    """An agent's type as the name of a folder; PathRefused where it cannot be one."""
    name = unicodedata.normalize("NFC", agent.replace(":", "-"))
    fits = (
        0 < len(name) <= _LONGEST_TYPE
        and unicodedata.normalize("NFKC", name) == name
        and all(letter.isalnum() or letter in "._-" for letter in name)
        and name[0] not in ".-"
        and name[-1] != "."
        and not _DEVICE.match(name)
    )
    if not fits:
        raise PathRefused(
            "This agent type cannot name a folder",
            where=ascii(agent)[:200],
            do="Use letters, digits and . _ - :",
        )
    return name
