"""A conversation at a terminal: a prompt, a turn, a footer, and slash commands between.

Ctrl-C during a turn cancels the turn. At a prompt it clears the line; twice at an empty
one, or Ctrl-D, leaves. An error ends the turn it came from, never the conversation.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

import reverie
from reverie.agent.agent import Agent, AgentOptions
from reverie.apps.cli.chat import model_named, resumed
from reverie.apps.cli.commands import Leave, SlashCommands, Switch, standard
from reverie.apps.cli.context import room_left
from reverie.apps.cli.desk import Cancelled, Desk, Screen
from reverie.apps.cli.keyboard import KeptHistory, Keyboard
from reverie.apps.cli.outside import ask_for_files
from reverie.apps.cli.rule_offers import RuleOffers
from reverie.apps.cli.screens import LineScreen
from reverie.apps.cli.show import line
from reverie.apps.cli.trust import offer
from reverie.apps.cli.welcome import welcome
from reverie.apps.tui.footer import Status, spoken
from reverie.errors import NotAvailable, ReverieError
from reverie.providers.choose import EMBEDDED
from reverie.providers.prices import dollars, money
from reverie.session.listing import title_of
from reverie.session.turn import TurnResult
from reverie.store.project import Project
from reverie.text.counts import plural
from reverie.world import Model

if TYPE_CHECKING:
    from collections.abc import Callable

    from reverie.apps.tui.screen import TerminalScreen
    from reverie.apps.tui.terminal import Terminal

TWICE = 2.0  # seconds in which a second Ctrl-C leaves


class Shown(Screen, Protocol):
    """A screen that a conversation is held on."""

    watch: Callable[[], Status] | None
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
        desk: Desk,
        screen: Shown,
        commands: SlashCommands,
        dialogs: Callable[[str], bool] | None = None,
    ) -> None:
        self.desk = desk
        self.commands = commands
        self._dialogs = dialogs
        self._screen = screen
        self._offers = RuleOffers(screen)
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
            raise Leave from None
        except KeyboardInterrupt:
            self._interrupted()
            return ""
        self._warned = 0.0
        return text

    def _interrupted(self) -> None:
        now = time.monotonic()
        if self._warned and now - self._warned <= TWICE:
            raise Leave
        self._warned = now
        self.say("Ctrl-C again, or Ctrl-D, leaves.", "dim")

    def _turn(self, text: str) -> None:
        try:
            result = self.desk.turn(text)
        except Cancelled:
            self.say("(cancelled)", "yellow")
        else:
            self._ended(result)
        if self._screen.plain:
            self.say(spoken(status(self.desk.agent)), "dim")
        self._offers.ask(self.desk)

    def _ended(self, result: TurnResult) -> None:
        if result.outcome == "limit":
            self.say(f"Stopped at a limit: {result.reason}", "yellow")
        elif result.outcome == "blocked":
            self.say(f"A hook blocked the prompt: {result.reason}", "yellow")
        elif result.outcome == "refused":
            told = "The model refused to answer. It may refuse again while this turn stands: "
            self.say(f"{told}/undo takes the turn back.", "yellow")
        elif result.outcome in ("truncated", "empty"):
            self.say(f"The answer is not whole: {result.reason}", "yellow")


def status(agent: Agent) -> Status:
    """How much room is left, what the cache gave and the session cost, what runs beside it."""
    session, used = agent.session, agent.spend.usage
    window, tokens = session.world.window, session.view.tokens
    left, until = room_left(session)
    free = agent.model.capabilities.free
    cost = dollars(agent.model.name, used, free=free)
    return Status(
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
    screen: Shown = app or LineScreen(Keyboard(home))
    commands = standard()
    if welcome(place.home, place.settings, private=wanted.private, say=screen.line):
        screen.line("")
    with screen.aside():
        offer(place)
    if not wanted.resume:
        ask_for_files(place.reload(), screen)
    while True:
        desk = Desk(screen)
        try:
            with desk.open(wanted, _model(place, model, wanted.resume, screen)) as desk:
                _greet(screen, desk.agent)
                dialogs = None if app is None else _dialogs(app, desk, place, commands)
                InteractiveSession(desk, screen, commands, dialogs).run()
        except Switch as switch:
            wanted = resumed(wanted, switch.session)
        except Leave:
            return _how_to_go_on(desk)


def _app_screen(terminal: Terminal, home: Path | None) -> TerminalScreen:
    from reverie.apps.tui.screen import TerminalScreen

    history = KeptHistory(home)
    terminal.remember(history.messages())
    return TerminalScreen(terminal, history.keep)


def _dialogs(
    screen: TerminalScreen, desk: Desk, place: Project, commands: SlashCommands
) -> Callable[[str], bool]:
    from reverie.apps.cli.dialogs import Dialogs, Offers

    dialogs = Dialogs(screen, desk, place)
    screen.opens = lambda command: dialogs.open(command[1:])
    screen.terminal.offers = Offers(commands, place, desk).of
    return dialogs.open


def _how_to_go_on(desk: Desk) -> str:
    agent = getattr(desk, "agent", None)
    if agent is None or agent.session.budget is None or not agent.session.view.turns:
        return ""
    return f"reverie --resume {agent.session.id}"


def _model(place: Project, name: str, resume: str, screen: Shown) -> Model:
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
            raise Leave from None
        return model_named(place, EMBEDDED)


def _greet(screen: Shown, agent: Agent) -> None:
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
