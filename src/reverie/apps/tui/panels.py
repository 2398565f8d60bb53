"""What the terminal draws and is asked with: colours, panels that take the keys, completions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.styles import Style

from reverie.apps.tui.footer import Line

STYLE = Style.from_dict(
    {
        "edge": "ansibrightblack",
        "footer": "ansibrightblack",
        "keys": "",
        "title": "bold",
        "chosen": "reverse",
        "dim": "ansibrightblack",
        "red": "ansired",
        "green": "ansigreen",
        "yellow": "ansiyellow",
    }
)

OFFERED = 6  # completions shown at a time
Offer = tuple[str, int, str]  # what is put in, how many signs it replaces, what it is


class Panel(Protocol):
    """Something that takes the keys: a question, a dialog."""

    whole: bool  # takes the whole screen, and gives it back as it was

    def lines(self, width: int, height: int) -> list[Line]: ...
    def press(self, key: str) -> None: ...


def nothing(text: str) -> Iterable[Offer]:
    del text
    return ()


class CompletionMenu(Completer):
    """What the terminal is told to offer, as the input takes it."""

    def __init__(self, offered: Callable[[str], Iterable[Offer]]) -> None:
        self._offered = offered

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        del complete_event
        for text, back, about in self._offered(document.text_before_cursor):
            yield Completion(text, start_position=-back, display_meta=about)


def completion_lines(state: CompletionState, width: int) -> StyleAndTextTuples:
    """The completions about the chosen one, a line each."""
    at = state.complete_index or 0
    first = max(0, min(at - OFFERED + 1, len(state.completions) - OFFERED))
    room = max([8, *(len(one.text) for one in state.completions)])
    out: StyleAndTextTuples = []
    for number, one in enumerate(state.completions[first : first + OFFERED], first):
        chosen = number == state.complete_index
        row = f"  {one.text:<{room}}  {one.display_meta_text}"[: width - 1]
        out += [("class:chosen" if chosen else "class:dim", row), ("", "\n")]
    return out[:-1]
