"""The dialogs of the terminal app, put to what they act on; a screen of lines has none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reverie.apps.cli.commands import SlashCommands
from reverie.apps.cli.desk import Desk
from reverie.apps.cli.memory import edit_memory
from reverie.apps.cli.memory_open import by_user
from reverie.apps.cli.memory_review import OUTCOMES, edit_item
from reverie.apps.cli.show import clean, line
from reverie.session.open_memory import find_memory
from reverie.store.project import Project
from reverie.upkeep.memory import fold_case, list_memories

if TYPE_CHECKING:
    from reverie.apps.tui.panels import Offer
    from reverie.apps.tui.screen import TerminalScreen


MAX_OFFERED = 50


class Offers:
    """What a person may mean by what they have typed so far: commands, paths behind `@`, sessions
    and memories behind the commands that take them."""

    def __init__(self, commands: SlashCommands, place: Project, desk: Desk) -> None:
        self._commands = commands
        self._place = place
        self._desk = desk

    def of(self, text: str) -> list[Offer]:
        last = text.rsplit(maxsplit=1)[-1] if text and not text[-1].isspace() else ""
        if text.startswith("/") and " " not in text:
            return [
                (f"/{one.name}", len(text), one.about)
                for one in self._commands
                if f"/{one.name}".startswith(text)
            ]
        if text.startswith("/resume "):
            return self._sessions(text.removeprefix("/resume "))
        if text.startswith("/memory "):
            return self._memories(text.removeprefix("/memory "))
        return self._paths(last[1:]) if last.startswith("@") else []

    def _sessions(self, typed: str) -> list[Offer]:
        library = self._desk.agent.session.library
        found = [one for one in library.sessions() if one.id.startswith(typed)][:MAX_OFFERED]
        return [(one.id, len(typed), line(library.summary(one).title, 60)) for one in found]

    def _memories(self, typed: str) -> list[Offer]:
        memories = self._desk.agent.memories
        rows = [] if memories is None else list_memories(memories)
        named = [(line(row.name or row.file, 80), line(row.description, 60)) for row in rows]
        fit = [one for one in named if fold_case(one[0]).startswith(fold_case(typed))]
        return [(name, len(typed), about) for name, about in fit[:MAX_OFFERED]]

    def _paths(self, typed: str) -> list[Offer]:
        folder, _, begun = typed.rpartition("/")
        try:
            names = sorted(os.listdir(os.path.join(self._place.root, folder)))
        except (OSError, ValueError):
            return []
        fit = [n for n in names if n.startswith(begun) and (begun or not n.startswith("."))]
        return [(clean(name), len(begun), "") for name in fit[:MAX_OFFERED] if clean(name) == name]


class Dialogs:
    """Each opens by its name, and comes back when the person leaves it."""

    def __init__(self, screen: TerminalScreen, desk: Desk, place: Project) -> None:
        self._screen = screen
        self._desk = desk
        self._place = place

    def open(self, name: str) -> bool:
        """Says whether there is one of that name."""
        work = {"tasks": self._tasks, "memory": self._memory, "calls": self._calls}.get(name)
        if work is not None:
            work()
        return work is not None

    def _tasks(self) -> None:
        from reverie.apps.tui.tasks import tasks_dialog

        tasks_dialog(self._screen, self._desk.agent, self._desk.call)

    def _calls(self) -> None:
        from reverie.apps.tui.call_list import calls_dialog

        calls_dialog(self._screen)

    def _memory(self) -> None:
        from reverie.apps.tui.memories import MemoryDialog

        with find_memory(self._place.reload(), self._screen.notice) as memories:
            if memories is None:
                self._screen.line("There is no long-term memory here yet.", "dim")
                return

            def edit(key: str) -> str:
                with self._screen.aside():
                    done = edit_memory(memories, key)
                return f"{done.key} {'saved' if done.outcome == 'saved' else 'was not changed'}."

            def revise(name: str) -> str:
                key = memories.review.find(name).key
                with self._screen.aside():
                    outcome = edit_item(memories, name)
                return f"{key} {OUTCOMES[outcome]}."

            MemoryDialog(self._screen, memories, by_user, edit, revise).browse()
