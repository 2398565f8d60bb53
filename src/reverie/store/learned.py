"""Limits that providers' errors named, by model: `<home>/learned.json`.

A provider that refuses a request says how much it takes; the next session with that model
begins with it. The newest word counts. A file that cannot be read counts as empty and is
replaced by the next thing learned; a limit no window could have is not taken. Reading never
makes a file.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, cast

from reverie.errors import NotFound, StoreError
from reverie.store.digests import digest
from reverie.store.files import Changed, Folder

FILE = "learned.json"
LEAST, MAX = 1_000, 100_000_000
_MOST_BYTES = 1_000_000
_MOST_MODELS = 1_000
_TRIES = 20


def learned_window(home: Path, model: str) -> int | None:
    """The limit known for a model; None where none is, or nothing can be read."""
    with contextlib.suppress(StoreError, NotFound), Folder(home, create=False) as folder:
        return _windows(_read(folder)).get(model)
    return None


def learn_window(home: Path, model: str, limit: int) -> bool:
    """Keep a limit; False where it is not one a window can have. Others learn meanwhile:
    what they wrote stays."""
    if not model or not LEAST <= limit <= MAX:
        return False
    with Folder(home) as folder:
        for _ in range(_TRIES):
            before = _read(folder)
            known = _windows(before)
            if known.get(model) == limit:
                return True
            known.pop(model, None)
            kept = dict([*known.items(), (model, limit)][-_MOST_MODELS:])
            text = json.dumps({"v": 1, "windows": kept}, ensure_ascii=False, indent=1) + "\n"
            with contextlib.suppress(Changed):
                _write(folder, text.encode("utf-8", "replace"), before)
                return True
    raise StoreError("what was learned could not be kept: others write all the time", where=FILE)


def _read(folder: Folder) -> bytes | None:
    try:
        return folder.read(FILE, _MOST_BYTES)
    except NotFound:
        return None


def _write(folder: Folder, data: bytes, before: bytes | None) -> None:
    if before is None:
        folder.write(FILE, data, exclusive=True)
    else:
        whole = folder.digest(FILE) if len(before) >= _MOST_BYTES else digest(before)
        folder.write(FILE, data, expect=whole)


def _windows(data: bytes | None) -> dict[str, int]:
    """Model and limit, from a file that may hold anything."""
    try:
        value: Any = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        return {}
    found = cast("dict[str, Any]", value).get("windows") if isinstance(value, dict) else None
    if not isinstance(found, dict):
        return {}
    return {
        name: limit
        for name, limit in cast("dict[str, Any]", found).items()
        if isinstance(limit, int) and not isinstance(limit, bool) and LEAST <= limit <= MAX
    }
