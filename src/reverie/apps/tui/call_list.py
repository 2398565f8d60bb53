"""The dialog of tool calls: walk through them, and read what each gave, whole."""

from __future__ import annotations

from reverie.apps.tui.boxes import Line
from reverie.apps.tui.lists import Entry, ListPanel
from reverie.apps.tui.screen import LOOK, TerminalScreen

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
            entries: list[Entry] = []
            for number, call in enumerate(calls):
                sign = "▾" if str(number) in opened else "▸"
                right = f"{call.outcome}  {call.seconds:.1f} s"
                entries.append(Entry(str(number), f"{sign} {call.name} {call.given}", right))
            panel.fill(entries)
            body: list[Line] = []
            if panel.chosen in opened and calls:
                body = [("", row) for row in calls[int(panel.chosen)].text.split("\n")]
            panel.tell(body)
            screen.refresh()
            key = panel.wait(LOOK)
