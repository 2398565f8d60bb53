"""List dialogs: tool calls, background tasks.

A dialog: a list to choose from, what is known of the chosen one, and keys that act on it.

The terminal's thread draws it and takes the keys; whoever opened it fills it and acts, in the main
thread. Only the choice itself moves without asking.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue

from reverie.agent.agent import Agent
from reverie.agent.subagents.registry import AgentRecord
from reverie.apps.tui.footer import Line, apart, apply_key, box, cut, pad_or_truncate, wrap_lines
from reverie.apps.tui.markdown import terminal_text
from reverie.apps.tui.screen import LOOK, TerminalScreen
from reverie.session.dream.branch import Dream
from reverie.text.format import plural
from reverie.text.safety import line

FRAME = 4  # rows of a box that are not its body
LEAVES = ("escape", "q", "c-c", "c-d")


@dataclass(frozen=True, slots=True)
class ListItem:
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
        self._entries: Sequence[ListItem] = ()
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

    def fill(self, entries: Sequence[ListItem]) -> None:
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
            self.typed = apply_key(self.typed or "", key)
        self._pressed.put("moved")

    def lines(self, width: int, height: int) -> list[Line]:
        inner = max(1, width - 4)
        room = max(3, height - FRAME)
        rows: list[Line] = []
        if self.typed is not None or self.head:
            search = f"/ {self.typed}▌" if self._typing else f"/ {self.typed or 'search…'}"
            rows += [("", apart(search if self.typed is not None else "", self.head, inner))]
            rows += [("", "")]
        body = [(style, part) for style, text in self._body for part in wrap_lines(text, inner)]
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
        said = (
            [("class:yellow", part) for part in wrap_lines(self.said, inner)] if self.said else []
        )
        left = max(0, room - len(rows) - (len(said) + 1 if said else 0))
        self._scrolled = max(0, min(self._scrolled, len(body) - left))
        rows += [(style, cut(text, inner)) for style, text in body[self._scrolled :][:left]]
        if said:
            rows += [("", ""), *said]
        return box(self.title, rows, self.keys, width)


# --- The dialog of tool calls: walk through them, and read what each gave, whole.


KEYS = "↑↓ choose   enter opens and closes   pageup pagedown scroll   esc back"


def calls_dialog(screen: TerminalScreen) -> None:
    """Until the person goes back; the newest is first and open."""
    panel = ListPanel("Calls", KEYS, "No tool was called yet.")
    calls = screen.calls[::-1]
    opened = {"0"}
    with screen.holding(panel):
        key = "moved"
        while key != "escape" and not screen.terminal.is_gone:
            if key == "enter":
                opened ^= {panel.chosen}
            entries: list[ListItem] = []
            for number, call in enumerate(calls):
                sign = "▾" if str(number) in opened else "▸"
                right = f"{call.outcome}  {call.seconds:.1f} s"
                entries.append(ListItem(str(number), f"{sign} {call.name} {call.given}", right))
            panel.fill(entries)
            body: list[Line] = []
            if panel.chosen in opened and calls:
                body = [("", row) for row in calls[int(panel.chosen)].text.split("\n")]
            panel.tell(body)
            screen.refresh()
            key = panel.wait(LOOK)


# --- The dialog of what runs in the background: agents, the dream, the session's own work,
# commands.
#
# What they do is shown as they do it. To end one asks nothing: a dream works on a copy, and what
# it held goes back as it was.


TASKS_KEYS = "↑↓ choose   k kill   esc back"
COPY = "It works on a copy: your memories change only when it lands."
UNTOUCHED = "It worked on a copy: your memories are as they were."
UNLANDED = ("killed", "failed")
ROUNDS = 8
OVER = 10  # agents and dreams that are over and still listed


def tasks_dialog(
    screen: TerminalScreen, agent: Agent, call: Callable[[Callable[[], Awaitable[bool]]], bool]
) -> None:
    """Until the person goes back."""
    panel = ListPanel("Tasks", TASKS_KEYS, "Nothing runs in the background.")
    with screen.holding(panel):
        key = "moved"
        while key != "escape" and not screen.terminal.is_gone:
            if key == "k" and panel.chosen:
                ended = call(partial(agent.kill, panel.chosen))
                panel.said = f"Ended {panel.chosen}." if ended else "It is over already."
            _fill(panel, agent)
            screen.refresh()
            key = panel.wait(LOOK)


def _fill(panel: ListPanel, agent: Agent) -> None:
    now = agent.session.world.clock.now()
    dream, members = agent.session.dreams.now, {one.name: one for one in agent.at_work}
    entries: list[ListItem] = []
    for name in agent.tasks:
        if name == "dream" and dream is not None:
            entries.append(_dream(dream, now))
        elif name in members:
            entries.append(_member(members[name], now))
        else:
            entries.append(ListItem(name, name, "running"))
    panel.title = f"Tasks  {len(entries)} running"
    if dream is not None and dream.over:
        entries.append(_dream(dream, now))
    entries += [_member(one, now) for one in agent.over[-OVER:]]
    panel.fill(entries)
    panel.tell(_task_lines(panel.chosen, agent, dream))


def _dream(dream: Dream, now: float) -> ListItem:
    last = line(terminal_text(dream.rounds[-1]), 60) if dream.rounds else dream.phase
    counts = (
        f"{plural(len(dream.touched), 'file')}  {_format_duration(dream.began, dream.ended or now)}"
    )
    return _entry("dream", "dream", last, counts, dream.status)


def _member(one: AgentRecord, now: float) -> ListItem:
    counts = f"{plural(one.requests, 'call')}  {_format_duration(one.began, one.ended or now)}"
    return _entry(
        one.name, one.name, line(terminal_text(one.doing or one.about), 60), counts, one.state
    )


def _entry(name: str, kind: str, what: str, counts: str, state: str) -> ListItem:
    return ListItem(
        name, f"{pad_or_truncate(line(terminal_text(kind), 20), 9)} {what}", f"{counts}  {state:>9}"
    )


def _format_duration(began: float, until: float) -> str:
    seconds = max(0, int(until - began)) if began else 0
    return f"{seconds // 60}:{seconds % 60:02}"


def _task_lines(name: str, agent: Agent, dream: Dream | None) -> list[Line]:
    if name == "dream" and dream is not None:
        rows: list[Line] = [("", line(terminal_text(text), 200)) for text in dream.rounds[-ROUNDS:]]
        rows.append(("class:dim", plural(dream.tools, "call")))
        rows += [("", f"touched {line(terminal_text(key), 200)}") for key in dream.touched]
        if dream.reason:
            rows.append(("class:yellow", line(terminal_text(dream.reason), 400)))
        told = COPY if not dream.over else UNTOUCHED if dream.status in UNLANDED else ""
        return [*rows, ("", ""), ("class:dim", told)] if told else rows
    for one in (*agent.at_work, *agent.over):
        if one.name == name:
            told = [one.line, one.result]
            return [("", row) for text in told if text for row in terminal_text(text).split("\n")]
    return []
