"""Tools by which a client's own model dreams: open, write, close. No model is asked here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reverie.consolidation.reasons import WHYS, RemovalReason
from reverie.errors import InvalidInput
from reverie.text.format import cut_line
from reverie.toolbox.toolset import Offer, ToolAnswer

if TYPE_CHECKING:
    from reverie.memory.memory import Memory
    from reverie.session.dream.client_dream import ClientDream
    from reverie.session.open_memory import OpenMemory

OPEN, WRITE, CLOSE = "dream_open", "dream_write", "dream_close"
MAX_ISSUES = 30
MAX_TEXT = 64 * 1024
NOT_OPEN = "No dream is open"
_TEXT = {"type": "string", "maxLength": 2_000}
_FILE = {"type": "string", "maxLength": 300}
_REASON: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "enum": [one for one in WHYS if one != "merged_into"]},
        "fact": {**_TEXT, "description": "The words that are gone, copied exactly"},
        "file": {**_FILE, "description": "Where they stood, if in another file"},
        "target": {**_FILE, "description": "The file that replaces them"},
        "by": {**_TEXT, "description": "The line there that does"},
    },
    "required": ["reason", "fact"],
    "additionalProperties": False,
}
_OPENED: Mapping[str, Any] = {
    "page": {"type": "integer", "minimum": 1, "description": "Further files of an open dream"}
}
_WRITTEN: Mapping[str, Any] = {
    "file": {"type": "string", "minLength": 1, "maxLength": 300},
    "text": {
        "type": "string",
        "maxLength": MAX_TEXT,
        "description": "The whole file, frontmatter included; empty removes it",
    },
    "reasons": {
        "type": "array",
        "items": _REASON,
        "maxItems": 200,
        "description": "One for every fact that is gone",
    },
}
_ABOUT_OPEN = (
    "Begins a dream: you tidy the long-term memory. Gives the instructions, the files and known "
    "issues; nothing changes before dream_close. Use it when the person asks for a dream, or to "
    "tidy, merge or clean up the memory."
)
_ABOUT_WRITE = (
    "Writes one file of the open dream, whole, with a reason for every fact that goes. Answers "
    "with what is wrong with the work so far."
)
_ABOUT_CLOSE = (
    "Ends the open dream: checks it, applies what passed and names what was left out. With "
    "`discard` nothing is applied."
)


class ClientDreams:
    """The dream that the clients of one memory have open; one at a time."""

    def __init__(self, memory: Memory, now: Callable[[], float] = time.time) -> None:
        self._memory, self._now = memory, now
        self._lock = threading.Lock()
        self._dream: ClientDream | None = None
        self._opened: OpenMemory | None = None

    def offers(self, client: str) -> list[Offer]:
        """The three tools, as one client calls them."""
        return [
            self._offer(OPEN, _ABOUT_OPEN, _OPENED, [], lambda given: self._open(given, client)),
            self._offer(WRITE, _ABOUT_WRITE, _WRITTEN, ["file", "text"], self._write),
            self._offer(CLOSE, _ABOUT_CLOSE, {"discard": {"type": "boolean"}}, [], self._close),
        ]

    def _offer(
        self,
        name: str,
        about: str,
        properties: Mapping[str, Any],
        required: list[str],
        run: Callable[[Mapping[str, Any]], str],
    ) -> Offer:
        schema = {
            "type": "object",
            "properties": dict(properties),
            "required": required,
            "additionalProperties": False,
        }

        def alone(given: Mapping[str, Any]) -> ToolAnswer:
            with self._lock:
                return ToolAnswer(run(given))

        return Offer(name, name, about, schema, alone)

    def _open(self, given: Mapping[str, Any], client: str) -> str:
        number = int(given.get("page") or 1)
        if number > 1:
            return self._current().page(number)
        self._drop_overdue()
        if self._dream is not None:
            raise InvalidInput("A dream is open already", do=f"Go on with it, or call {CLOSE}")
        from reverie.session.dream.client_dream import ClientDream
        from reverie.session.dream.schedule import OFF
        from reverie.session.open_memory import OpenMemory

        project = self._memory.__project__
        if not project.flags.get("dream"):
            raise InvalidInput(OFF)
        found = self._memory.check()
        issues = [cut_line(str(one), 300) for one in found.faults[:MAX_ISSUES]]
        opened = OpenMemory.of(project, now=self._now)
        try:
            parts = (project.root, project.settings, self._now, client or "mcp")
            self._dream = ClientDream(opened.store, *parts)
        except BaseException:
            opened.close()
            raise
        self._opened = opened
        return self._dream.page(1, issues)

    def _write(self, given: Mapping[str, Any]) -> str:
        file = str(given["file"])
        return self._current().write(file, str(given["text"]), _reasons(file, given))

    def _close(self, given: Mapping[str, Any]) -> str:
        dream = self._current()
        try:
            if given.get("discard"):
                return dream.abandon("the client discarded it")
            return dream.close()
        finally:
            self._let_go()

    def _current(self) -> ClientDream:
        told = self._drop_overdue()
        if self._dream is None:
            raise InvalidInput(told or NOT_OPEN, do=f"Call {OPEN} to begin one")
        return self._dream

    def _drop_overdue(self) -> str:
        if self._dream is None or not self._dream.is_overdue:
            return ""
        try:
            return self._dream.abandon()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        self._dream = None
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def _reasons(file: str, given: Mapping[str, Any]) -> Sequence[RemovalReason]:
    found: list[Mapping[str, Any]] = given.get("reasons") or []
    return [
        RemovalReason(
            WHYS[str(one["reason"])],
            str(one.get("file") or file),
            *(str(one.get(name) or "") for name in ("target", "fact", "by")),
        )
        for one in found
    ]
