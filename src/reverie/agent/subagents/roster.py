"""Who works for a session: one small file an agent, beside its transcript.

    <session>/agents/<id>.json

It is written before an agent begins and when it is over, so that a session whose process was killed
can say, resumed, what became of each. Reading needs no lock; what cannot be read is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, cast

from reverie.errors import Held, NotFound, StoreError
from reverie.store.files import Folder
from reverie.store.journal import Journal
from reverie.text.format import plural
from reverie.text.terminal import clean

AgentMode: TypeAlias = Literal["foreground", "background", "fork", "teammate"]
AgentState: TypeAlias = Literal[
    "running", "idle", "completed", "failed", "cancelled", "limit", "lost"
]
OPEN: frozenset[str] = frozenset({"running", "idle"})
LOST = "its session was ended from outside while it worked"
MAX_BYTES = 64 * 1024
MAX_RESULT = 2_000
_LETTERS = 120


@dataclass
class Member:
    """One agent of a session, and how it stands."""

    id: str
    name: str
    type: str
    about: str  # its task in a few words
    mode: AgentMode = "foreground"
    state: AgentState = "running"
    began: float = 0.0
    ended: float = 0.0
    doing: str = ""
    requests: int = 0
    tokens: int = 0  # of its context
    weighted: float = 0.0
    reason: str = ""
    result: str = ""  # the beginning of what it brought
    worktree: str = ""
    restarts: int = 0
    taken: dict[str, Any] = field(default_factory=dict[str, Any])  # not written

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def line(self) -> str:
        """How it stands, in a line for people and for its lead."""
        about = clean(self.about)[:_LETTERS]
        now = clean(self.doing)[:_LETTERS] if self.is_open and self.doing else ""
        told = f"{self.state}: {now}" if now else self.state
        why = f" ({clean(self.reason)[:_LETTERS]})" if self.reason else ""
        cost = f"{self.weighted:,.0f} price-weighted tokens"
        counts = f"{plural(self.requests, 'request')}, {self.tokens:,} tokens, {cost}"
        tree = f", worktree {self.worktree}" if self.worktree else ""
        return f"{self.name} [{self.type}, {self.mode}] {about} · {told}{why} · {counts}{tree}"

    @property
    def live(self) -> str:
        """What it does right now, in a line that is written over."""
        cost = f"{self.tokens:,} tokens, cost {self.weighted:,.0f}"
        return f"{self.name}: {clean(self.doing) or self.state} · {cost}"


class Roster:
    """The files of one session's agents; nothing is kept of a private one's."""

    def __init__(self, folder: Folder | None, session: str) -> None:
        self._folder = folder
        self._session = session

    def write(self, member: Member) -> None:
        if self._folder is None:
            return
        value = asdict(replace(member, taken={}))
        value.pop("taken")
        value["result"] = member.result[:MAX_RESULT]
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        self._folder.write(f"{self._session}/agents/{member.id}.json", data)

    def read(self) -> list[Member]:
        """All there are, the oldest first."""
        return [] if self._folder is None else members(self._folder, self._session)


def members(folder: Folder, session: str) -> list[Member]:
    """The agents of a session as its files tell."""
    try:
        keys = [key for key in folder.list(f"{session}/agents") if key.endswith(".json")]
    except (NotFound, StoreError):
        return []
    found: list[Member] = []
    for key in keys:
        made = _member(folder, key)
        if made is not None:
            found.append(made)
    return sorted(found, key=lambda one: (one.began, one.name))


def as_they_stand(folder: Folder, session: str) -> list[Member]:
    """The same for whoever only looks: one that seems open in a session that nobody holds is
    lost."""
    found = members(folder, session)
    if any(one.is_open for one in found):
        try:
            Journal.open(folder, f"{session}.jsonl").close()
        except (Held, StoreError):
            return found
        found = [replace(one, state="lost", reason=LOST) if one.is_open else one for one in found]
    return found


def _member(folder: Folder, key: str) -> Member | None:
    try:
        value: object = json.loads(folder.read(key, MAX_BYTES))
    except (ValueError, RecursionError, NotFound, StoreError):
        return None
    if not isinstance(value, dict):
        return None
    given = cast("Mapping[str, Any]", value)
    known = {one.name: one.default for one in fields(Member) if one.name != "taken"}
    plain = {name: given[name] for name in known if name in given}
    kinds = {"began": (int, float), "ended": (int, float), "weighted": (int, float)}
    counts = {"requests": int, "tokens": int, "restarts": int}
    fits = all(
        isinstance(text, kinds.get(name, counts.get(name, str))) for name, text in plain.items()
    )
    if not fits or not {"id", "name", "type", "about"} <= plain.keys():
        return None
    return Member(**plain)
