"""Packages that an extra of ours brings: what is said without them, and what installs them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec

from reverie.errors import NotAvailable

DISTRIBUTION = "reverie"


@contextmanager
def extra(name: str, what: str, where: str = "") -> Generator[None]:
    """Imports that need an extra; NotAvailable says what cannot be done without, and the remedy."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == DISTRIBUTION:
            raise
        raise NotAvailable(
            f"{what}: {error.name} is not installed",
            where=where,
            do=f"Install it: {install_command(name)}",
        ) from error


def install_command(name: str = "") -> str:
    """What installs the packages of an extra (of none: those we cannot do without), in this very
    environment; the Reverie that is there stays."""
    wanted = shlex.quote(f"{DISTRIBUTION}[{name}]" if name else DISTRIBUTION)
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python} {wanted}"
    return f"{python} -m pip install {wanted}"
