"""A dream that the model of an MCP client thinks through: opened, written to, closed.

No model is asked here. The client is given the files, writes whole files with its reasons, and is
told after each what is wrong. Closing applies what passed, like any dream: same branch, verdict,
lock and undo. A client that never closes loses its branch after the time that a dream may take.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias
from uuid import uuid4

from reverie.consolidation.reasons import RemovalReason
from reverie.errors import InvalidInput, ReverieError
from reverie.session.dream import schedule
from reverie.session.dream.branch import Dream, DreamBranch, dreams_folder, land, sources_of
from reverie.session.dream.context import MemoryCopy
from reverie.session.dream.results import describe_dream
from reverie.settings.catalog import Settings
from reverie.store.consolidation_lock import ConsolidationLock
from reverie.store.memory_store import MemoryStore
from reverie.text.safety import frame

DreamEnd: TypeAlias = Literal["completed", "waiting", "dropped"]
PAGE = 30_000
"""Characters of files that one answer has: clients cut long ones."""
ABANDONED = "it was not closed within {minutes:g} minutes, and nothing of it was applied"


class ClientDream:
    """One dream of a client, open."""

    def __init__(
        self,
        memories: MemoryStore,
        root: Path,
        settings: Settings,
        now: Callable[[], float],
        client: str,
    ) -> None:
        self._settings, self._clock = settings, now
        self._memories = memories
        self._lock = ConsolidationLock.of(memories.root, now, settings)
        self._taken = self._lock.take()
        try:
            self._branch = DreamBranch(dreams_folder(memories), str(uuid4()), create=True)
            self._copy = MemoryCopy(self._branch, memories, root, settings, now)
            self._copy.begin()
        except BaseException:
            self._lock.give_back(self._taken)
            raise
        self.dream = Dream(self._branch.id, trigger="manual", model=f"host:{client}")
        self.dream = replace(self.dream, pid=os.getpid(), began=now())
        self._branch.write(self.dream)
        self._shown: set[str] = set()
        self._reasons: list[RemovalReason] = []
        self._refused: dict[str, str] = {}

    # --- what the client is given

    def page(self, number: int, issues: Sequence[str] = ()) -> str:
        """The instruction with the first files, or further files."""
        pages = self._pages()
        if not 1 <= number <= len(pages):
            raise InvalidInput(f"Page not found: {number}", do=f"There are {len(pages)} pages")
        keys = pages[number - 1]
        self._shown |= {*keys}
        texts = self._copy.texts()
        parts = [frame(texts[key], session=key, source=key) for key in keys]
        if number == 1:
            rows = "\n".join(f"- {one}" for one in issues) or "None."
            parts[:0] = [self._instruction(), f"## Issues that rules found\n{rows}\n", "## Files"]
        if number < len(pages):
            parts.append(f"[Page {number} of {len(pages)}: call dream_open with page {number + 1}]")
        return "\n".join(parts)

    def _instruction(self) -> str:
        return schedule.dream_prompt(
            "", "", schedule.day_of(self._clock()), self._settings,
            self._copy.manifest(), {}, self._copy.rules, "mcp",
        )  # fmt: skip

    def _pages(self) -> list[list[str]]:
        pages: list[list[str]] = [[]]
        size = 0
        for key, text in self._copy.texts().items():
            if pages[-1] and size + len(text) > PAGE:
                pages.append([])
                size = 0
            pages[-1].append(key)
            size += len(text)
        return pages

    # --- what it does

    def write(self, key: str, text: str, reasons: Sequence[RemovalReason]) -> str:
        """Write one file of the copy; return what is wrong with the work so far."""
        self._reasons += reasons
        faults = self._copy.put({key: text}, self._shown)
        self._refused.pop(key, None)
        if faults:
            self._refused[key] = faults[0]
        self.dream = replace(
            self.dream,
            phase="updating",
            tools=self.dream.tools + 1,
            touched=tuple(dict.fromkeys((*self.dream.touched, key))),
        )
        self._branch.write(self.dream)
        return self._faults_told()

    def _faults_told(self) -> str:
        told = (*self._refused.values(), *self._copy.verdict(self._reasons).faults)
        return schedule.faults_told(told, "mcp") if told else "Written. Nothing is wrong so far."

    def close(self) -> str:
        """Apply what passed, or leave it for review; return what was done."""
        try:
            return self._apply()
        except ReverieError as error:
            self.abandon(error.what)
            raise

    def _apply(self) -> str:
        copy = self._copy
        found = copy.verdict(self._reasons)
        self.dream = copy.judged(self.dream, found, self._reasons, [*self._refused.values()])
        self._branch.settle(found.work)
        waits = bool(self.dream.changed) and self._settings.dream_review
        with self._lock.landing(self._taken):
            if not waits:
                drawn = sources_of(self.dream)
                done = land(self._memories, self._branch, copy.base, found.work, drawn)
                self.dream = replace(self.dream, changed=done.changed, conflicts=done.conflicts)
        self._end("waiting" if waits else "completed", "")
        left = [f"- left out: {one}" for one in self.dream.left_out]
        return "\n".join([describe_dream(self.dream), *left, f"Dream {self.dream.id[:8]}."])

    def abandon(self, reason: str = "") -> str:
        """Drop the branch; the memory and the time of the last dream are as they were."""
        minutes = self._settings.dream_limit_minutes
        self._lock.give_back(self._taken)
        self._end("dropped", reason or ABANDONED.format(minutes=minutes))
        return f"a dream was dropped: {self.dream.reason}"

    @property
    def is_overdue(self) -> bool:
        return self._clock() - self.dream.began >= self._settings.dream_limit_minutes * 60

    def _end(self, status: DreamEnd, reason: str) -> None:
        at = self._clock()
        self.dream = replace(self.dream, status=status, reason=reason, ended=at)
        try:
            self._branch.write(self.dream)
            if status != "waiting":
                self._branch.drop_copies()
        finally:
            self._branch.close()
