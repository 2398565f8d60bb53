"""A conversation at a terminal: a prompt, a turn, a footer, and slash commands between.

Ctrl-C during a turn cancels the turn. At a prompt it clears the line; twice at an empty
one, or Ctrl-D, leaves. An error ends the turn it came from, never the conversation.
"""

from __future__ import annotations

import click

import reverie
from reverie.agent.agent import Agent, AgentOptions
from reverie.apps.cli.chat import model_named, resumed
from reverie.apps.cli.commands import Leave, SlashCommands, Switch, standard
from reverie.apps.cli.desk import Cancelled, Desk
from reverie.apps.cli.keyboard import Keyboard
from reverie.apps.cli.outside import ask_for_files
from reverie.apps.cli.rule_offers import RuleOffers
from reverie.apps.cli.screens import LineScreen
from reverie.apps.cli.show import line
from reverie.errors import NotAvailable, ReverieError
from reverie.providers.choose import EMBEDDED
from reverie.providers.prices import dollars, money
from reverie.session.listing import title_of
from reverie.session.turn import TurnResult
from reverie.text.counts import plural
from reverie.upkeep.place import ProjectPlace
from reverie.world import Model


class InteractiveSession:
    """One session at the terminal; it is what slash commands are given."""

    def __init__(self, desk: Desk, screen: LineScreen, commands: SlashCommands) -> None:
        self.desk = desk
        self.commands = commands
        self._screen = screen
        self._offers = RuleOffers(screen)
        self._warned = False  # Ctrl-C was pressed once at the prompt

    def say(self, text: str, style: str = "") -> None:
        self._screen.line(text, style)

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
                else:
                    self._turn(text)
            except ReverieError as error:
                self.say(str(error), "red")
            except KeyboardInterrupt:
                self.say("(interrupted)", "dim")

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
        self._warned = False
        return text

    def _interrupted(self) -> None:
        print()
        if self._warned:
            raise Leave
        self._warned = True
        self.say("Ctrl-C again, or Ctrl-D, leaves.", "dim")

    def _turn(self, text: str) -> None:
        try:
            result = self.desk.turn(text)
        except Cancelled:
            self.say("(cancelled)", "yellow")
        else:
            self._ended(result)
        self.say(footer(self.desk.agent), "dim")
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


def footer(agent: Agent) -> str:
    """How much room is left, what the cache gave and the session cost, what runs beside it."""
    session, used = agent.session, agent.spend.usage
    world = session.world
    left = world.settings.left_until_compact(world.window, session.view.tokens)
    parts = [f"{left:,} tokens until compaction"]
    if not agent.model.capabilities.free:
        parts.append(f"cache {used.hit_rate:.0%}")
        cost = dollars(agent.model.name, used)
        parts += [] if cost is None else [money(cost)]
    others = [name for name in agent.tasks if name != "dream"]
    if session.dreams.pill:
        parts.append(session.dreams.pill)
    if others:
        parts.append(f"{plural(len(others), 'task')} (/tasks)")
    return " · ".join(parts)


def converse(place: ProjectPlace, wanted: AgentOptions, model: str) -> None:
    """Talk until the person leaves; from one session to the next where they ask for it."""
    screen = LineScreen(Keyboard(None if wanted.private else place.home))
    commands = standard()
    if not wanted.resume:
        ask_for_files(place, wanted.project, screen)
    while True:
        desk = Desk(screen)
        try:
            with desk.open(wanted, _model(place, model, wanted.resume, screen)) as desk:
                _greet(screen, desk.agent)
                InteractiveSession(desk, screen, commands).run()
        except Switch as switch:
            wanted = resumed(wanted, switch.session)
        except Leave:
            return


def _model(place: ProjectPlace, name: str, resume: str, screen: LineScreen) -> Model:
    """The model asked for; where only its package is missing, the embedded one if the person
    wants it meanwhile."""
    try:
        return model_named(place, name, resume)
    except NotAvailable as error:
        screen.line(str(error), "yellow")
        meanwhile = "Go on with the embedded model? It follows fixed rules and costs nothing."
        if not click.confirm(meanwhile, default=True):
            raise Leave from None
        return model_named(place, EMBEDDED)


def _greet(screen: LineScreen, agent: Agent) -> None:
    session = agent.session
    what = "resumed" if session.view.turns else "new"
    screen.line(f"Reverie {reverie.__version__} · {agent.model.name} · /help", "bold")
    private = session.budget is None
    where = "nothing is recorded" if private else f"{what} session {session.id}"
    screen.line(where, "dim")
    if session.view.turns:
        title = line(title_of(list(session.view.entries)), 80)
        screen.line(f"{plural(session.view.turns, 'turn')} so far: {title}", "dim")
