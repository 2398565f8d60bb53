"""What the user decided about local settings files, written into home.

One record for each file, put in place whole; `settings.trust` reads it. Nothing else in home
is touched, and the settings file itself never.
"""

from __future__ import annotations

from pathlib import Path

from reverie.errors import NotFound
from reverie.settings.trust import record, record_key
from reverie.store.files import Folder


def decide(home: Path, path: Path, data: bytes, *, trusted: bool) -> None:
    """Record that the user trusts, or declined, exactly these bytes at this place."""
    with Folder(home) as folder:
        folder.write(record_key(path), record(path, data, trusted))


def forget(home: Path, path: Path) -> bool:
    """Take back what was decided about a file; says whether there was anything."""
    if not home.is_dir():
        return False
    with Folder(home) as folder:
        try:
            folder.remove(record_key(path))
        except NotFound:
            return False
    return True
