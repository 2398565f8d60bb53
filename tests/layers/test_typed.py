"""What the user said is one question: collapse, extraction and recall give it one answer."""

from __future__ import annotations

import pytest

from reverie.layers.collapse.lines import seal_lines
from reverie.layers.extraction import user_words
from reverie.session.recall.select import said
from reverie.settings import DEFAULTS
from reverie.transcript.blocks import text_block
from reverie.transcript.fold import fold
from reverie.transcript.records import Entry, UserMessage

pytestmark = pytest.mark.spec("4.typed")

NOTICES = (
    "<system-reminder>The file was changed.</system-reminder>",
    "\n<command-name>/review</command-name>\n<command-args></command-args>",
    "<local-command-stdout>I prefer tabs.</local-command-stdout>",
    "<bash-input>git push</bash-input>",
    "<bash-stdout>Always use spaces.</bash-stdout>",
    "<task-notification>\nagent_nine is done\n</task-notification>",
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
    view = fold([Entry("a", "", 0.0, record)])
    items = tuple(view.items)
    sealed = seal_lines(DEFAULTS, items).startswith("<user>")
    return sealed, bool(user_words(view, items)), bool(said(record))


@pytest.mark.parametrize("text", NOTICES)
def test_what_a_client_framed_is_nobodys_word_anywhere(text: str) -> None:
    assert answers(text) == (False, False, False)


@pytest.mark.parametrize("text", TYPED)
def test_what_a_person_typed_is_theirs_everywhere(text: str) -> None:
    assert answers(text) == (True, True, True)
