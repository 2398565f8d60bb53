"""The dialog of what runs in the background: agents, the dream, the session's own work, commands.

What they do is shown as they do it. To end one asks nothing: a dream works on a copy, and what it
held goes back as it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from reverie.agent.agent import Agent
from reverie.agent.subagents.roster import Member
from reverie.apps.tui.boxes import Line, filled
from reverie.apps.tui.lists import Entry, ListPanel
from reverie.apps.tui.markdown import shown
from reverie.apps.tui.screen import LOOK, TerminalScreen
from reverie.session.dream.branch import Dream
from reverie.text.format import plural
from reverie.text.terminal import line

KEYS = "↑↓ choose   k kill   esc back"
COPY = "It works on a copy: your memories change only when it lands."
UNTOUCHED = "It worked on a copy: your memories are as they were."
UNLANDED = ("killed", "failed")
ROUNDS = 8
OVER = 10  # agents and dreams that are over and still listed


def tasks_dialog(
    screen: TerminalScreen, agent: Agent, call: Callable[[Callable[[], Awaitable[bool]]], bool]
) -> None:
    """Until the person goes back."""
    panel = ListPanel("Tasks", KEYS, "Nothing runs in the background.")
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
    entries: list[Entry] = []
    for name in agent.tasks:
        if name == "dream" and dream is not None:
            entries.append(_dream(dream, now))
        elif name in members:
            entries.append(_member(members[name], now))
        else:
            entries.append(Entry(name, name, "running"))
    panel.title = f"Tasks  {len(entries)} running"
    if dream is not None and dream.over:
        entries.append(_dream(dream, now))
    entries += [_member(one, now) for one in agent.over[-OVER:]]
    panel.fill(entries)
    panel.tell(_known(panel.chosen, agent, dream))


def _dream(dream: Dream, now: float) -> Entry:
    last = line(shown(dream.rounds[-1]), 60) if dream.rounds else dream.phase
    counts = f"{plural(len(dream.touched), 'file')}  {_lasted(dream.began, dream.ended or now)}"
    return _entry("dream", "dream", last, counts, dream.status)


def _member(one: Member, now: float) -> Entry:
    counts = f"{plural(one.requests, 'call')}  {_lasted(one.began, one.ended or now)}"
    return _entry(one.name, one.name, line(shown(one.doing or one.about), 60), counts, one.state)


def _entry(name: str, kind: str, what: str, counts: str, state: str) -> Entry:
    return Entry(name, f"{filled(line(shown(kind), 20), 9)} {what}", f"{counts}  {state:>9}")


def _lasted(began: float, until: float) -> str:
    seconds = max(0, int(until - began)) if began else 0
    return f"{seconds // 60}:{seconds % 60:02}"


def _known(name: str, agent: Agent, dream: Dream | None) -> list[Line]:
    if name == "dream" and dream is not None:
        rows: list[Line] = [("", line(shown(text), 200)) for text in dream.rounds[-ROUNDS:]]
        rows.append(("class:dim", plural(dream.tools, "call")))
        rows += [("", f"touched {line(shown(key), 200)}") for key in dream.touched]
        if dream.reason:
            rows.append(("class:yellow", line(shown(dream.reason), 400)))
        told = COPY if not dream.over else UNTOUCHED if dream.status in UNLANDED else ""
        return [*rows, ("", ""), ("class:dim", told)] if told else rows
    for one in (*agent.at_work, *agent.over):
        if one.name == name:
            told = [one.line, one.result]
            return [("", row) for text in told if text for row in shown(text).split("\n")]
    return []
