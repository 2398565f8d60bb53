"""Slash commands, and what a model can do to a screen, without a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reverie.agent import AgentOptions
from reverie.apps.cli import (
    AnswerScreen,
    ChatController,
    ExitChat,
    LineScreen,
    SlashCommand,
    SlashCommands,
    SwitchSession,
    filling,
    standard,
    status,
)
from reverie.apps.tui import status_text
from reverie.errors import InvalidInput, NotFound
from reverie.transcript import UserMessage
from reverie.wire import Delta
from tests.cli.typed import Typed
from tests.loop.stage import calls, simulated

pytestmark = pytest.mark.spec("18.commands")


@contextmanager
def chatting(tmp: Path) -> Iterator[Typed]:
    (tmp / ".reverie" / "skills" / "one").mkdir(parents=True)
    (tmp / ".reverie" / "skills" / "one" / "SKILL.md").write_text("Do it.")
    (tmp / "notes.txt").write_text("heron\n")
    model = simulated(calls(("Read", {"file_path": "notes.txt"})), otherwise="fine")
    wanted = AgentOptions(tmp, home=tmp / "home", mode="allow", environ={"HOME": str(tmp)})
    with ChatController(AnswerScreen()).open(wanted, model) as desk:
        yield Typed(desk)


def test_the_commands_of_a_chat(tmp_path: Path) -> None:
    with chatting(tmp_path) as chat:
        desk, session = chat.desk, chat.desk.agent.session
        with pytest.raises(InvalidInput, match="no turn to undo"):
            chat.types("/undo")
        desk.turn("first")
        with pytest.raises(InvalidInput, match="first turn"):
            chat.types("/undo")
        desk.turn("zweitens")
        used = session.view.tokens
        assert "Taken back: zweitens" in chat.types("/undo")
        assert session.view.tokens < used
        assert "in the background" in chat.types("/tasks")
        with pytest.raises(InvalidInput, match="no such task"):
            chat.types("/tasks kill shell_9")
        chat.types("/skill one")
        with pytest.raises(NotFound):
            chat.types("/skill two")
        desk.turn("third")
        assert session.last_request is not None
        body = session.last_request.body()
        assert "Do it." in body
        assert "zweitens" not in body
        shown = chat.types("/context")
        assert f"{session.view.tokens:,} of " in shown
        assert "tool results" in shown
        assert session.id in chat.types("/resume")
        with pytest.raises(SwitchSession) as switch:
            chat.types(f"/resume {session.id[:6]}")
        assert switch.value.session == session.id
        with pytest.raises(SwitchSession):
            chat.types("/clear")
        for leaves in ("/quit", "/exit"):
            with pytest.raises(ExitChat):
                chat.types(leaves)
        assert chat.types("/help exit") == chat.types("/help quit")
        assert "tokens until collapse" in status_text(status(desk.agent))
        assert all(f"/{c.name}" in chat.types("/help") for c in chat.commands)


def test_snip_takes_messages_out_of_the_context_alone(tmp_path: Path) -> None:
    with chatting(tmp_path) as chat:
        desk, session = chat.desk, chat.desk.agent.session
        desk.turn("look at the notes")
        desk.turn("zweitens")
        listed = chat.types("/snip")
        assert "heron" in listed
        for wrong in ("0", "99", "one", "1 2 3"):
            with pytest.raises(InvalidInput, match="name one message"):
                chat.types(f"/snip {wrong}")
        assert "Snipped" in chat.types("/snip 2 3")
        desk.turn("and now")
        assert session.last_request is not None
        body = session.last_request.body()
        assert "heron" not in body
        assert "snipped here" in body
        assert "look at the notes" in body
        said = [e.record for e in session.view.entries if isinstance(e.record, UserMessage)]
        assert any("heron" in b.text for record in said for b in record.blocks)


def test_what_fills_the_context_adds_up(tmp_path: Path) -> None:
    with chatting(tmp_path) as chat:
        chat.desk.turn("first")
        view = chat.desk.agent.session.view
        assert sum(count for _, count in filling(view)) == view.head_tokens + view.estimated


def test_others_add_their_commands_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    commands = standard()
    commands.add(SlashCommand("polish", "Cuts", lambda chat, rest: chat.say(f"cut {rest}")))
    with pytest.raises(InvalidInput, match="already there"):
        commands.add(SlashCommand("polish", "Cuts", lambda chat, rest: None))
    with chatting(tmp_path) as chat:
        chat.commands = commands
        assert chat.types("/polish 1-2") == "cut 1-2"
        with pytest.raises(InvalidInput, match="did you mean context"):
            chat.types("/contxt")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("/help", True), ("/x y", True), ("/etc/hosts?", False), ("/", False), ("a /help", False)],
)
def test_what_counts_as_a_command(text: str, is_one: bool) -> None:
    assert SlashCommands().is_command(text) is is_one


def test_a_model_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    screen = LineScreen()
    for text in ("\x1b]0;title\x07", "\x1b[2J", "a\x1b", "[31mred\r", "\x9b2J", "[bold]x[/bold]"):
        screen.event(Delta("text", text))
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\r" not in said
    assert "\x9b" not in said
    assert "[bold]x[/bold]" in said
