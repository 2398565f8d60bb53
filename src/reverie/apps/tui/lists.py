"""A dialog: a list to choose from, what is known of the chosen one, and keys that act on it.

The terminal's thread draws it and takes the keys; whoever opened it fills it and acts, in the main
thread. Only the choice itself moves without asking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from reverie.apps.tui.boxes import Line, apart, box, cut, typed, wrapped

FRAME = 4  # rows of a box that are not its body
LEAVES = ("escape", "q", "c-c", "c-d")


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a list: its name for whoever acts on it, and its two ends."""

    name: str
    left: str
    right: str = ""


class ListPanel:
    """Takes the whole screen until it is left."""

    whole = True

    def __init__(self, title: str, keys: str, empty: str) -> None:
        self.title = title
        self.keys = keys
        self.head = ""  # at the right of the search
        self.said = ""  # what the last key did
        self.typed: str | None = None  # what is searched for; None where nothing can be
        self.empty = empty
        self._entries: Sequence[Entry] = ()
        self._body: Sequence[Line] = ()
        self._at = 0
        self._scrolled = 0
        self._typing = False
        self._pressed: SimpleQueue[str] = SimpleQueue()

    # --- for whoever opened it

    @property
    def chosen(self) -> str:
        """The name of the chosen entry; empty where there is none."""
        return self._entries[self._at].name if self._entries else ""

    def fill(self, entries: Sequence[Entry]) -> None:
        """The entries as they are now; the choice stays where its name does."""
        before = self.chosen
        names = [one.name for one in entries]
        self._entries = entries
        at = names.index(before) if before in names else self._at
        self._at = max(0, min(at, len(entries) - 1))

    def tell(self, body: Sequence[Line]) -> None:
        """What is known of the chosen one."""
        self._body = body

    def wait(self, seconds: float) -> str:
        """The next key that means something to whoever opened it; empty where none came."""
        try:
            return self._pressed.get(timeout=seconds)
        except Empty:
            return ""

    # --- in the terminal's thread

    def press(self, key: str) -> None:
        if self._typing:
            self._search(key)
            return
        moves = {"up": -1, "down": 1}
        if key in moves:
            self._at = max(0, min(self._at + moves[key], len(self._entries) - 1))
            self._scrolled = 0
            self._pressed.put("moved")
        elif key in ("pageup", "pagedown"):
            self._scrolled = max(0, self._scrolled + (8 if key == "pagedown" else -8))
        elif key == "/" and self.typed is not None:
            self._typing = True
        else:
            self._pressed.put("escape" if key in LEAVES else key)

    def _search(self, key: str) -> None:
        if key in ("enter", "escape", "down", "tab", "c-c"):
            self._typing = False
            if key in ("escape", "c-c"):
                self.typed = ""
        else:
            self.typed = typed(self.typed or "", key)
        self._pressed.put("moved")

    def lines(self, width: int, height: int) -> list[Line]:
        inner = max(1, width - 4)
        room = max(3, height - FRAME)
        rows: list[Line] = []
        if self.typed is not None or self.head:
            search = f"/ {self.typed}▌" if self._typing else f"/ {self.typed or 'search…'}"
            rows += [("", apart(search if self.typed is not None else "", self.head, inner))]
            rows += [("", "")]
        body = [(style, part) for style, text in self._body for part in wrapped(text, inner)]
        shown = max(1, min(len(self._entries), max(3, room - len(rows) - len(body) - 2)))
        shown = min(shown, max(3, room // 2))
        first = max(0, min(self._at - shown // 2, len(self._entries) - shown))
        for number, one in enumerate(self._entries[first : first + shown], first):
            sign = "› " if number == self._at else "  "
            style = "class:title" if number == self._at else ""
            rows.append((style, apart(sign + one.left, f"  {one.right}", inner)))
        if not self._entries:
            rows.append(("class:dim", self.empty))
        rows.append(("", ""))
        said = [("class:yellow", part) for part in wrapped(self.said, inner)] if self.said else []
        left = max(0, room - len(rows) - (len(said) + 1 if said else 0))
        self._scrolled = max(0, min(self._scrolled, len(body) - left))
        rows += [(style, cut(text, inner)) for style, text in body[self._scrolled :][:left]]
        if said:
            rows += [("", ""), *said]
        return box(self.title, rows, self.keys, width)
