"""Programs that we start ourselves, and the surroundings that a command gets.

A program is taken from an absolute folder of PATH, by its real place, and never from inside the
project: what a repository brings as `bin/rg` is not run because PATH happens to lead there. A
command does not get the keys that were meant for us.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from reverie.store.keys import beneath

_KEYS = re.compile(
    r"(ANTHROPIC|OPENAI|CLAUDE_CODE|AZURE_OPENAI)_.*"
    r"|(.*_)?(API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|SECRET|TOKEN|PASSWORD|CREDENTIALS)(_.*)?",
    re.IGNORECASE,
)


def find_program(name: str, path: str | None, projects: Iterable[Path]) -> str:
    """The real place of a program on `path`, outside every project; "" where there is none.

    A name with a folder in it stands for itself, under the same rule.
    """
    inside = [Path(os.path.realpath(one)) for one in projects]
    folders = [""] if "/" in name else (path or os.defpath).split(os.pathsep)
    for folder in folders:
        found = os.path.join(folder, name)
        if not os.path.isabs(found):
            continue
        real = os.path.realpath(found)
        places = (Path(os.path.realpath(os.path.dirname(found))), Path(real))
        if any(beneath(project, place) for project in inside for place in places):
            continue
        if os.path.isfile(real) and os.access(real, os.X_OK):
            return real
    return ""


def without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a command may have: none that holds a provider's key or a token."""
    return {k: v for k, v in environ.items() if not _KEYS.fullmatch(k)}
