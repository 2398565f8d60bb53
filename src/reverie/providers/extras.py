"""How a package that is not there is installed: the command, for the Python that is running."""

from __future__ import annotations

import shlex
import sys
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec

DISTRIBUTION = "reverie"


def install_command(package: str) -> str:
    """What installs a package that an extra of ours asks for, in this very environment."""
    wanted = shlex.quote(_requirement(package))
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python} {wanted}"
    return f"{python} -m pip install {wanted}"


def _requirement(package: str) -> str:
    """The package with the versions that we work with."""
    try:
        known = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        known = []
    found = (line.partition(";")[0].strip() for line in known)
    return next((one for one in found if one.startswith(package)), package)
