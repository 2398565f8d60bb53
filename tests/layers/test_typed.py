"""What the user said: collapse, extraction and recall ask in one place."""

from __future__ import annotations

import pytest

from reverie.layers import seal_lines
from reverie.session import spoken_text, user_words
from reverie.settings import DEFAULTS
from reverie.transcript import Entry, UserMessage, fold_entries, text_block

pytestmark = pytest.mark.spec("4.typed")

NOTICES = (
    "<system-reminder>The file was changed.</system-reminder>",
    "<local-command-stdout>I prefer tabs.</local-command-stdout>",
    "<bash-stdout>Always use spaces.</bash-stdout>",
    "<task-notification>\nagent_nine is done\n</task-notification>",
)
COMMANDS = (
    "\n<command-name>/review</command-name>\n<command-args></command-args>",
    "<bash-input>git push</bash-input>",
)
TYPED = (
    "Always use tabs.",
    "<app-root> is empty, why?",
    "why <system-reminder>?",
    "<command> fails",
)


def answers(text: str) -> tuple[bool, bool, bool]:
    """Whether it is the user's, to each of the three."""
    record = UserMessage((text_block(text),))
    view = fold_entries([Entry("a", "", 0.0, record)])
    items = tuple(view.items)
    sealed = seal_lines(DEFAULTS, items).startswith("<user>")
    return sealed, bool(user_words(view, items)), bool(spoken_text(record))


@pytest.mark.parametrize("text", NOTICES)
def test_what_a_client_framed_is_nobodys_word_anywhere(text: str) -> None:
    assert answers(text) == (False, False, False)


@pytest.mark.parametrize("text", COMMANDS)
def test_a_command_stays_as_the_users_and_teaches_nothing(text: str) -> None:
    assert answers(text) == (True, False, False)


@pytest.mark.parametrize("text", TYPED)
def test_what_a_person_typed_is_theirs_everywhere(text: str) -> None:
    assert answers(text) == (True, True, True)
