"""Whose a local settings file is: the user's where its digest stands in home, else nobody's.

The digest is recorded when the user, or a prompt at the user's word, wrote or approved the
file. Where it lies, who owns it and whether git tracks it say nothing: an archive brings all
of that along. A file that has changed since is not trusted. Nothing here writes; `record`
gives the bytes that `store.trusted` then writes.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from reverie.settings.values import read_object

FOLDER = "trusted"
"""The records in home, one file for each settings file that somebody decided about."""


def record_key(path: Path) -> str:
    """Where home keeps the record of a settings file."""
    return f"{FOLDER}/{hashlib.sha256(os.fsencode(path)).hexdigest()}.json"


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
