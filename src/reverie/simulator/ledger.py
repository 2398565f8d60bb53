"""Every request, and what it cost, by session.

The ledger only grows. A session is told by the request's metadata, a session header,
or the key. Keys themselves are never kept. A log file gets one JSON line a request.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO, cast

from reverie.errors import InvalidMessage
from reverie.simulator.prompt_cache import Charge
from reverie.transcript.blocks import Json, Object, dump

NOTHING = Charge()
SESSION_HEADERS = ("x-claude-code-session-id", "x-reverie-session-id", "session_id", "session-id")
SECRET = ("x-api-key", "authorization", "cookie")


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request and what became of it."""

    number: int
    at: float
    path: str
    session: str
    body: str  # as it came
    headers: Mapping[str, str]
    status: int = 200
    message_id: str = ""
    error: str = ""
    charge: Charge = NOTHING
    output: int = 0
    cost: float = 0.0
    fault: str = ""

    def line(self) -> str:
        """The entry as one line of JSON."""
        return dump(
            {
                "n": self.number,
                "at": self.at,
                "path": self.path,
                "session": self.session,
                "status": self.status,
                "message": self.message_id or None,
                "error": self.error or None,
                "fault": self.fault or None,
                "read": self.charge.read,
                "written_5m": self.charge.written_5m,
                "written_1h": self.charge.written_1h,
                "plain": self.charge.plain,
                "output": self.output,
                "cost": self.cost,
                "headers": dict(self.headers),
                "body": self.body,
            }
        )


@dataclass
class Bill:
    """What one session has cost, in units of one plain input token."""

    session: str
    requests: list[LoggedRequest] = field(default_factory=list[LoggedRequest])
    read: int = 0
    written_5m: int = 0
    written_1h: int = 0
    plain: int = 0
    output: int = 0
    cost: float = 0.0

    def add(self, entry: LoggedRequest) -> None:
        self.requests.append(entry)
        self.read += entry.charge.read
        self.written_5m += entry.charge.written_5m
        self.written_1h += entry.charge.written_1h
        self.plain += entry.charge.plain
        self.output += entry.output
        self.cost += entry.cost

    @property
    def hit_rate(self) -> float:
        total = self.read + self.written_5m + self.written_1h + self.plain
        return self.read / total if total else 0.0


class Ledger:
    """The log and the bills of one engine."""

    def __init__(self, file: Path | None = None, *, bodies: bool = True) -> None:
        self.log: list[LoggedRequest] = []
        self.bills: dict[str, Bill] = {}
        self._bodies = bodies
        self._path = file
        self._file: TextIO | None = None

    def add(self, entry: LoggedRequest) -> None:
        self.log.append(entry)
        self.bills.setdefault(entry.session, Bill(entry.session)).add(entry)
        if self._path is not None:
            if self._file is None:
                self._file = self._path.open("a", encoding="utf-8")
            self._file.write(entry.line() + "\n")
            self._file.flush()

    def kept(self, body: str | bytes | Mapping[str, Json]) -> str:
        """The body as the log keeps it."""
        if not self._bodies:
            return ""
        if isinstance(body, bytes):
            return body.decode("utf-8", "replace")
        if isinstance(body, str):
            return body
        try:
            return dump(dict(body))
        except InvalidMessage:  # the engine refuses it too
            return reprlib.repr(dict(body))  # however deep it is

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def session_of(body: Object, headers: Mapping[str, str], key: str) -> str:
    """Whose bill a request goes on."""
    for name in SESSION_HEADERS:
        if headers.get(name):
            return headers[name]
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    if isinstance(user, str) and user:
        return _session_in(user)
    for name in ("prompt_cache_key", "user"):
        found = body.get(name)
        if isinstance(found, str) and found:
            return found
    return f"key …{key[-4:]}" if key else "nobody"


def _session_in(user: str) -> str:
    try:
        value = cast("Json", json.loads(user))
    except ValueError:
        return user
    found = value.get("session_id") if isinstance(value, dict) else None
    return found if isinstance(found, str) and found else user


def public(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers without what is secret."""
    return {k.lower(): v for k, v in headers.items() if k.lower() not in SECRET}
