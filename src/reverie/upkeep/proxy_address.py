"""Where the proxy listens, the same after every start: clients' settings name it.

The port has a default; the token, which every request must carry as the first part of its path,
is made once and kept for its owner alone. The addresses are secrets like the token in them.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from reverie.errors import NotFound, StoreError
from reverie.store.files import Changed, Folder

PORT = 8786
HOST = "127.0.0.1"
STATUS = "status"
_FOLDER, _TOKEN = "proxy", "token"
_FORM = re.compile(r"[A-Za-z0-9_-]{20,64}", re.ASCII)
_MOST = 65_536


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """The two base URLs that clients are given."""

    port: int
    token: str

    @property
    def base(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}"

    @property
    def anthropic(self) -> str:
        return f"{self.base}/anthropic"

    @property
    def openai(self) -> str:
        return f"{self.base}/openai/v1"

    def value(self) -> dict[str, str]:
        return {"anthropic": self.anthropic, "openai": self.openai}


def make_token(home: Path) -> str:
    """The token of this home; made where there is none."""
    with Folder(home / _FOLDER) as folder:
        with contextlib.suppress(Changed):
            if not folder.exists(_TOKEN):
                folder.write(_TOKEN, secrets.token_urlsafe(24).encode(), exclusive=True)
        found = folder.read(_TOKEN, 100).decode("ascii", "replace").strip()
    if not _FORM.fullmatch(found):
        where = str(home / _FOLDER / _TOKEN)
        raise StoreError(
            "The proxy's token cannot be used", where=where, do="Remove the file: a new one is made"
        )
    return found


def known_token(home: Path) -> str:
    """The token of this home, or "": nothing is made."""
    try:
        with Folder(home / _FOLDER, create=False) as folder:
            return folder.read(_TOKEN, 100).decode("ascii", "replace").strip()
    except NotFound:
        return ""


def forget_token(home: Path) -> None:
    """Remove the token: addresses that hold it are refused once the proxy starts anew."""
    with contextlib.suppress(NotFound), Folder(home / _FOLDER, create=False) as folder:
        folder.remove(_TOKEN)
    with contextlib.suppress(OSError):
        (home / _FOLDER).rmdir()


def status(address: ProxyAddress, seconds: float = 2.0) -> dict[str, Any] | None:
    """What the proxy at this address says of itself; None where none of ours answers."""
    import http.client

    asked = http.client.HTTPConnection(HOST, address.port, timeout=seconds)
    try:
        asked.request("GET", f"/{address.token}/{STATUS}")
        answer = asked.getresponse()
        found: Any = json.loads(answer.read(_MOST)) if answer.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        asked.close()
    return object_in({"": found}, "") if isinstance(found, dict) else None


def object_in(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object under a name in what somebody else has written; an empty one for all else."""
    found: Any = value.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
