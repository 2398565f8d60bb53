"""The dialog of memories: browse, search, look at versions, edit, undo; and what waits for review.

A change is made at once and can be undone. Text that waits for review is shown as its source, with
what hides in it, and no model has seen it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from reverie.apps.tui.footer import Line, pad_or_truncate
from reverie.apps.tui.lists import ListItem, ListPanel
from reverie.apps.tui.markdown import terminal_text
from reverie.apps.tui.screen import LOOK, TerminalScreen
from reverie.errors import NotFound, ReverieError
from reverie.memory.values import (
    MemoryRow,
    describe_origin,
    fold_case,
    list_memories,
    search_memories,
)
from reverie.store.lists import ReviewItem
from reverie.store.memory_store import MemoryStore
from reverie.text.format import age, plural
from reverie.text.safety import line
from reverie.topics.versions import Origin

BROWSE = "↑↓ choose  / search  e edit  u undo  z take it back  r review  esc back"
REVIEW = "↑↓ choose   e edit, then save   a save as it is   d drop   esc back"
VERSIONS = 5
MARKED = "▌ "

ByUser = Callable[[str], Origin]


class MemoryDialog:
    """One project's memory, on the screen."""

    def __init__(
        self,
        screen: TerminalScreen,
        memories: MemoryStore,
        by_user: ByUser,
        edit: Callable[[str], str],
        revise: Callable[[str], str],
    ) -> None:
        self._screen = screen
        self._memories = memories
        self._by_user = by_user
        self._edit = edit
        self._revise = revise  # edit what waits for review, then save it
        self._rows: list[MemoryRow] = []
        self._undone = ""  # the group of the last undo

    def browse(self) -> None:
        panel = ListPanel("Memory", BROWSE, "No memories yet.")
        panel.typed = ""
        self._rows = list_memories(self._memories)
        key = "moved"
        while key != "escape" and not self._screen.terminal.is_gone:
            with self._screen.holding(panel):
                while key not in ("escape", "e", "r") and not self._screen.terminal.is_gone:
                    if key == "u" and panel.chosen:
                        panel.said = self._outcome_text(lambda: self._undo(panel.chosen))
                    elif key == "z":
                        panel.said = self._outcome_text(self._take_back)
                    if key:
                        self._fill(panel)
                    self._screen.refresh()
                    key = panel.wait(LOOK)
            if key == "e" and panel.chosen:
                panel.said = self._outcome_text(lambda: self._edit(panel.chosen))
            elif key == "r":
                self.review()
            if key in ("e", "r"):
                self._rows, key = list_memories(self._memories), "moved"

    def review(self) -> None:
        panel = ListPanel("Review", REVIEW, "Nothing waits for review.")
        key = "moved"
        while key != "escape" and not self._screen.terminal.is_gone:
            with self._screen.holding(panel):
                while key not in ("escape", "e") and not self._screen.terminal.is_gone:
                    if key in ("a", "d") and panel.chosen:
                        decide = self._accept if key == "a" else self._drop
                        panel.said = self._outcome_text(lambda do=decide: do(panel.chosen))
                    if key:
                        self._fill_review(panel)
                    self._screen.refresh()
                    key = panel.wait(LOOK)
            if key == "e":
                if panel.chosen:
                    panel.said = self._outcome_text(lambda: self._revise(panel.chosen))
                key = "moved"

    # --- what is shown

    def _fill(self, panel: ListPanel) -> None:
        waiting = len(self._memories.review.items())
        counts = plural(len(self._rows), "memory", "memories")
        panel.head = f"{counts}, {waiting} to review"
        now = time.time()
        panel.empty = "Nothing has these words." if panel.typed else "No memories yet."
        panel.fill([_entry(row, now) for row in self._matching_rows(panel.typed or "")])
        panel.tell(self._detail_lines(panel.chosen, now))

    def _matching_rows(self, typed: str) -> list[MemoryRow]:
        words = fold_case(typed).split()
        if not words:
            return self._rows
        keys = {one.file for one in search_memories(self._memories, words)}
        return [row for row in self._rows if row.file in keys]

    def _detail_lines(self, key: str, now: float) -> list[Line]:
        if not key:
            return []
        try:
            text = self._memories.folder.read(key).body
        except (NotFound, ReverieError) as error:
            return [("class:yellow", terminal_text(str(error)))]
        rows: list[Line] = [("class:dim", f"── {line(terminal_text(key), 200)}")]
        rows += [("", row) for row in terminal_text(text).strip().split("\n")]
        rows.append(("", ""))
        for step in self._memories.history.log(key)[::-1][:VERSIONS]:
            change = "removed" if not step.after else "added" if not step.before else "changed"
            by = _whose(step.origin)
            rows.append(("class:dim", f"{step.id[:8]} {change} by {by}, {age(now - step.at)} ago"))
        return rows

    def _fill_review(self, panel: ListPanel) -> None:
        items = {item.id: item for item in self._memories.review.items()}
        panel.title = f"Review  {len(items)} waiting"
        entries = [
            ListItem(i.id, line(terminal_text(i.key), 200), _source(i)) for i in items.values()
        ]
        panel.fill(entries)
        chosen = items.get(panel.chosen)
        panel.tell(_suspicion(chosen) if chosen else [])

    # --- what is done

    def _outcome_text(self, work: Callable[[], str]) -> str:
        try:
            return terminal_text(work())
        except ReverieError as error:
            return terminal_text(str(error))

    def _undo(self, key: str) -> str:
        steps = self._memories.history.log(key)
        if not steps:
            return "There is no version to go back to."
        done = self._memories.undo(steps[-1].id, self._by_user("undo"))
        self._rows = list_memories(self._memories)
        self._undone = done.group
        if done.refused:
            return f"Not undone: {done.refused[0].refusal}"
        gone = not self._memories.folder.exists(key)
        return f"{'Removed again' if gone else 'As it was before'}; z takes that back."

    def _take_back(self) -> str:
        """Undo the undo, and nothing else."""
        if not self._undone:
            return "Nothing was undone here."
        self._memories.revert("group", self._undone, self._by_user("undo"))
        self._undone = ""
        self._rows = list_memories(self._memories)
        return "Taken back."

    def _accept(self, name: str) -> str:
        item = self._memories.review.find(name)
        return f"{self._memories.accept(item, self._by_user('accept')).key} saved."

    def _drop(self, name: str) -> str:
        item = self._memories.review.find(name)
        self._memories.drop(item)
        return f"{item.key} dropped."


def _entry(row: MemoryRow, now: float) -> ListItem:
    name = line(terminal_text(row.name or row.file), 100)
    return ListItem(
        row.file, f"{pad_or_truncate(row.type or '–', 10)} {name}", age(now - row.modified)
    )


def _source(item: ReviewItem) -> str:
    return f"from {_whose(item.origin)}"


def _whose(origin: Origin) -> str:
    told = line(terminal_text(describe_origin(origin)), 60)
    return "you" if told == "user" else told


def _suspicion(item: ReviewItem) -> list[Line]:
    """The text, its suspect lines marked, and why it waits."""
    marked = {one.line for one in item.evidence}
    rows: list[Line] = []
    for number, text in enumerate(item.text.split("\n"), 1):
        sign = MARKED if number in marked else "  "
        rows.append(("class:yellow" if number in marked else "", sign + terminal_text(text)))
    rows.append(("", ""))
    rows += [
        ("class:dim", f"line {one.line}  {one.rule}: {line(terminal_text(one.words), 120)}")
        for one in item.evidence
    ]
    return [*rows, ("", ""), ("class:dim", "No model has seen this text.")]
