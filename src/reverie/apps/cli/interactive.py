"""A conversation at a terminal, and its dialogs.

A conversation at a terminal: a prompt, a turn, a footer, and slash commands between.

Ctrl-C during a turn cancels the turn. At a prompt it clears the line; twice at an empty
one, or Ctrl-D, leaves. An error ends the turn it came from, never the conversation.
"""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

import reverie
from reverie.agent.agent import Agent, AgentOptions
from reverie.apps.cli.chat import ask_for_files, model_named, with_session
from reverie.apps.cli.controller import ChatController, RuleSuggestions, TurnCancelled, TurnDisplay
from reverie.apps.cli.keyboard import Keyboard, PromptHistory, tell_off, welcome
from reverie.apps.cli.memory import edit_memory
from reverie.apps.cli.memory_review import OUTCOMES, edit_item
from reverie.apps.cli.recall import by_user
from reverie.apps.cli.screens import LineScreen
from reverie.apps.cli.slash_commands import (
    ExitChat,
    SlashCommands,
    SwitchSession,
    room_left,
    standard,
)
from reverie.apps.cli.trust import offer
from reverie.apps.tui.footer import FooterStatus, status_text
from reverie.errors import NotAvailable, ReverieError
from reverie.memory.values import fold_case, list_memories
from reverie.providers.costs import dollars, money
from reverie.providers.selection import EMBEDDED
from reverie.session.open_memory import find_memory
from reverie.session.summaries import title_of
from reverie.session.turn import TurnResult
from reverie.store.project import Project
from reverie.text.format import plural
from reverie.text.safety import clean, line
from reverie.world import Model

if TYPE_CHECKING:
    from collections.abc import Callable

    from reverie.apps.tui.panels import Offer
    from reverie.apps.tui.screen import TerminalScreen
    from reverie.apps.tui.terminal import Terminal

TWICE = 2.0  # seconds in which a second Ctrl-C leaves


class ChatDisplay(TurnDisplay, Protocol):
    """A screen that a conversation is held on."""

    watch: Callable[[], FooterStatus] | None
    plain: bool  # one line an event: how things stand is said, not shown

    @property
    def width(self) -> int:
        """Columns of a line."""
        ...

    def line(self, text: str, style: str = "") -> None: ...
    def confirm(self, question: str) -> bool | str:
        """A question that may wait: where the person says neither yes nor no, what they say."""
        ...

    def gap(self) -> None:
        """Stand apart from what comes next, where that reads better."""
        ...

    def aside(self) -> AbstractContextManager[None]:
        """The terminal as it is, for whatever asks in its own way."""
        ...


class InteractiveSession:
    """One session at the terminal; it is what slash commands are given."""

    def __init__(
        self,
        desk: ChatController,
        screen: ChatDisplay,
        commands: SlashCommands,
        dialogs: Callable[[str], bool] | None = None,
    ) -> None:
        self.desk = desk
        self.commands = commands
        self._dialogs = dialogs
        self._screen = screen
        self._offers = RuleSuggestions(screen)
        self._warned = 0.0  # when Ctrl-C was pressed once at the prompt
        screen.watch = lambda: status(desk.agent)

    def say(self, text: str, style: str = "") -> None:
        self._screen.line(text, style)

    @property
    def width(self) -> int:
        return min(120, self._screen.width)

    def dialog(self, name: str) -> bool:
        return self._dialogs is not None and self._dialogs(name)

    def run(self) -> None:
        """Until Leave or Switch."""
        while True:
            self.desk.show_waiting()
            text = self._read()
            if not text:
                continue
            try:
                if self.commands.is_command(text):
                    self.commands.run(self, text)
                    self.desk.show_waiting()
                else:
                    self._turn(text)
            except ReverieError as error:
                told = str(error)
                self.say(f"{told[:1].upper()}{told[1:]}", "red")
            except KeyboardInterrupt:
                self.say("(interrupted)", "dim")
            self._screen.gap()

    def _read(self) -> str:
        """The next line, without space around it; empty where there is nothing to do."""
        said = self.desk.agent.inbox.typed()
        if said:
            return "\n".join(str(s) for s in said).strip()
        try:
            text = self.desk.read()
        except EOFError:
            raise ExitChat from None
        except KeyboardInterrupt:
            self._handle_interrupt()
            return ""
        self._warned = 0.0
        return text

    def _handle_interrupt(self) -> None:
        now = time.monotonic()
        if self._warned and now - self._warned <= TWICE:
            raise ExitChat
        self._warned = now
        self.say("Ctrl-C again, or Ctrl-D, leaves.", "dim")

    def _turn(self, text: str) -> None:
        try:
            result = self.desk.turn(text)
        except TurnCancelled:
            self.say("(cancelled)", "yellow")
        else:
            self._report_outcome(result)
        if self._screen.plain:
            self.say(status_text(status(self.desk.agent)), "dim")
        self._offers.ask(self.desk)

    def _report_outcome(self, result: TurnResult) -> None:
        if result.outcome == "limit":
            self.say(f"Stopped at a limit: {result.reason}", "yellow")
        elif result.outcome == "blocked":
            self.say(f"A hook blocked the prompt: {result.reason}", "yellow")
        elif result.outcome == "refused":
            told = "The model refused to answer. It may refuse again while this turn stands: "
            self.say(f"{told}/undo takes the turn back.", "yellow")
        elif result.outcome in ("truncated", "empty"):
            self.say(f"The answer is not whole: {result.reason}", "yellow")


def status(agent: Agent) -> FooterStatus:
    """How much room is left, what the cache gave and the session cost, what runs beside it."""
    session, used = agent.session, agent.spend.usage
    window, tokens = session.world.window, session.view.tokens
    left, until = room_left(session)
    free = agent.model.capabilities.free
    cost = dollars(agent.model.name, used, free=free)
    return FooterStatus(
        model=agent.model.name,
        used=tokens / window if window else 0.0,
        left=left,
        until=until,
        cache=None if free or not agent.spend.requests else used.hit_rate,
        money="free"
        if free
        else f"{agent.spend.weighted:,.0f} units"
        if cost is None
        else money(cost),
        pill=_pill(agent),
    )


def _pill(agent: Agent) -> str:
    now = agent.session.dreams.now
    if now is not None and not now.over:
        return f"dream: {now.phase}"
    return plural(len(agent.tasks), "task") if agent.tasks else ""


def converse(
    place: Project, wanted: AgentOptions, model: str, terminal: Terminal | None = None
) -> str:
    """Talk until the person leaves; from one session to the next where they ask for it. Gives
    what to say when everything is over: how the last session goes on."""
    home = None if wanted.private else place.home
    app = None if terminal is None else _app_screen(terminal, home)
    screen: ChatDisplay = app or LineScreen(Keyboard(home))
    commands = standard()
    if welcome(place.home, place.settings, private=wanted.private, say=screen.line):
        screen.line("")
    tell_off(place, screen.line)
    with screen.aside():
        offer(place)
    if not wanted.resume:
        ask_for_files(place.reload(), screen)
    while True:
        desk = ChatController(screen)
        try:
            with desk.open(wanted, _model(place, model, wanted.resume, screen)) as desk:
                _greet(screen, desk.agent)
                dialogs = None if app is None else _dialogs(app, desk, place, commands)
                InteractiveSession(desk, screen, commands, dialogs).run()
        except SwitchSession as switch:
            wanted = with_session(wanted, switch.session)
        except ExitChat:
            return _how_to_go_on(desk)


def _app_screen(terminal: Terminal, home: Path | None) -> TerminalScreen:
    from reverie.apps.tui.screen import TerminalScreen

    history = PromptHistory(home)
    terminal.remember(history.messages())
    return TerminalScreen(terminal, history.keep)


def _dialogs(
    screen: TerminalScreen, desk: ChatController, place: Project, commands: SlashCommands
) -> Callable[[str], bool]:
    dialogs = Dialogs(screen, desk, place)
    screen.opens = lambda command: dialogs.open(command[1:])
    screen.terminal.offers = CompletionSource(commands, place, desk).of
    return dialogs.open


def _how_to_go_on(desk: ChatController) -> str:
    agent = getattr(desk, "agent", None)
    if agent is None or agent.session.budget is None or not agent.session.view.turns:
        return ""
    return f"reverie --resume {agent.session.id}"


def _model(place: Project, name: str, resume: str, screen: ChatDisplay) -> Model:
    """The model asked for; where only its package is missing, the embedded one if the person
    wants it meanwhile."""
    try:
        return model_named(place, name, resume)
    except NotAvailable as error:
        screen.line(str(error), "yellow")
        meanwhile = "Go on with the embedded model? It follows fixed rules and costs nothing."
        with screen.aside():
            goes_on = click.confirm(meanwhile, default=True)
        if not goes_on:
            raise ExitChat from None
        return model_named(place, EMBEDDED)


def _greet(screen: ChatDisplay, agent: Agent) -> None:
    session = agent.session
    what = "resumed" if session.view.turns else "new"
    screen.line(f"Reverie {reverie.__version__} · {agent.model.name} · /help", "bold")
    private = session.budget is None
    where = "nothing is recorded" if private else f"{what} session {session.id}"
    screen.line(where, "dim")
    if session.world.settings.simple:
        told = "Without memory, notes, agents and hooks; `reverie on` switches them on."
        screen.line(told, "dim")
    if session.view.turns:
        title = line(title_of(list(session.view.entries)), 80)
        screen.line(f"{plural(session.view.turns, 'turn')} so far: {title}", "dim")
    screen.line("")


# --- The dialogs of the terminal app, put to what they act on; a screen of lines has none.


MAX_OFFERED = 50


class CompletionSource:
    """What a person may mean by what they have typed so far: commands, paths behind `@`, sessions
    and memories behind the commands that take them."""

    def __init__(self, commands: SlashCommands, place: Project, desk: ChatController) -> None:
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

    def __init__(self, screen: TerminalScreen, desk: ChatController, place: Project) -> None:
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
        from reverie.apps.tui.lists import tasks_dialog

        tasks_dialog(self._screen, self._desk.agent, self._desk.call)

    def _calls(self) -> None:
        from reverie.apps.tui.lists import calls_dialog

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
