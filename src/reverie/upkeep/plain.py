"""The one way a file that anybody may have put there is read: a regular file, never for ever.

No link is followed and nothing blocks, so that a pipe in the way of a search cannot stop it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_plain(path: str | Path, limit: int) -> bytes | None:
    """At most `limit` + 1 bytes of a regular file; None where it is something else.

    Raises OSError where it cannot be opened.
    """
    handle = os.open(path, _FLAGS)
    with os.fdopen(handle, "rb") as file:
        return file.read(limit + 1) if stat.S_ISREG(os.fstat(handle).st_mode) else None
