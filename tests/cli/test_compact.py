"""/compact at the chat: whole, from or up to a message, picked from a list."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reverie.agent import AgentOptions
from reverie.apps.cli import AnswerScreen, ChatController, find_items, parse_pivot
from reverie.errors import InvalidInput, ReverieError
from reverie.simulator import Engine, Given, SimulatedModel, last_text
from reverie.transcript import Entry, Object, UserMessage, fold_entries, text_block
from tests.cli.typed import Typed
from tests.session.compacts import ASKED, NOTES, a_summary

pytestmark = [pytest.mark.spec("6")]


@contextmanager
def chatting(tmp: Path, summary: str = "") -> Iterator[Typed]:
    def answer(body: Object) -> Given:
        return (summary or a_summary()) if ASKED in last_text(body) else "fine"

    wanted = AgentOptions(tmp, home=tmp / "home", environ={"HOME": str(tmp), NOTES: "0"})
    model = SimulatedModel(Engine(answerer=answer), window=200_000)
    with ChatController(AnswerScreen()).open(wanted, model) as desk:
        chat = Typed(desk)
        for n in range(4):
            desk.turn(f"Wish {n}. " + "It goes on and on. " * 300)
        yield chat


def test_the_whole_conversation(tmp_path: Path):
    with chatting(tmp_path) as chat:
        before = chat.desk.agent.session.view.tokens
        told = chat.types("/compact keep the names")
        assert told.startswith(f"Compacting {before:,} tokens")
        assert "tokens are" in told
        assert "Fidelity" in told
        view = chat.desk.agent.session.view
        assert [i.kind for i in view.items][:2] == ["head", "replaced"]
        chat.desk.turn("And now?")


@pytest.mark.parametrize("side", ["--from", "--up-to"])
def test_a_message_is_picked_by_a_short_id(tmp_path: Path, side: str):
    with chatting(tmp_path) as chat:
        listed = chat.types(f"/compact {side}")
        assert "Wish 2." in listed
        row = next(one for one in listed.splitlines() if "Wish 2." in one)
        ident = row.split()[0]
        assert len(ident) <= 12
        again = chat.types(f"/compact {side} zzzz")
        assert again == listed
        assert "tokens are" in chat.types(f"/compact {side} {ident} mind the names")
        items = chat.desk.agent.session.view.items
        text = "".join(p.block.text for i in items for p in i.pieces if i.kind == "message")
        assert ("Wish 1." in text) is (side == "--from")
        assert ("Wish 3." in text) is (side == "--up-to")
        chat.desk.turn("And now?")


def test_a_failure_is_said_and_the_conversation_goes_on(tmp_path: Path):
    with chatting(tmp_path, "No.") as chat:
        tokens = chat.desk.agent.session.view.tokens
        with pytest.raises(ReverieError, match="no usable summary"):
            chat.types("/compact")
        assert chat.desk.agent.session.view.tokens == tokens
        chat.desk.turn("And now?")


def test_nothing_to_compact(tmp_path: Path):
    with chatting(tmp_path) as chat:
        chat.types("/compact")
        ident = chat.desk.agent.session.view.items[1].id
        with pytest.raises(InvalidInput, match="nothing before"):
            chat.types(f"/compact --up-to {ident}")


def test_what_is_typed_is_told_apart():
    assert parse_pivot("") == ("", "", "")
    assert parse_pivot("keep the names") == ("", "", "keep the names")
    assert parse_pivot("--from") == ("--from", "", "")
    assert parse_pivot("--from abc") == ("--from", "abc", "")
    assert parse_pivot("--from=abc keep it") == ("--from", "abc", "keep it")
    assert parse_pivot("--up-to abc keep it") == ("--up-to", "abc", "keep it")
    assert parse_pivot("--from-here on") == ("", "", "--from-here on")


def test_an_id_may_be_shortened_as_long_as_it_is_clear():
    ids = (("12", ""), ("123", "12"), ("2", "123"))  # each with the one before
    said = [Entry(i, p, 1.0, UserMessage((text_block(i),))) for i, p in ids]
    view = fold_entries(said)
    assert [i.id for i in find_items(view, "12")] == ["12"]
    assert [i.id for i in find_items(view, "1")] == ["12", "123"]
    assert [i.id for i in find_items(view, "2")] == ["2"]
    assert find_items(view, "") == find_items(view, "3") == []
