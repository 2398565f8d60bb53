"""Layer 6, dreaming: when a dream is due, and what it is told.

The gates are asked after each turn, the cheapest first, and the first that is shut answers with
its reason. The instruction has the four phases of SPEC §9 and the form in which a dream says why
something is gone. Pure: what a gate needs is handed in, and what costs a look is asked for only
when the gates before it stand open.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files

from reverie.light import dataclass
from reverie.settings import Settings
from reverie.world import FlagReader

NAME = "dream"
TOOLS = ("Read", "Grep", "Glob", "List", "Bash", "Edit", "Write")


@dataclass(frozen=True, slots=True)
class Gates:
    """What the gates ask for; each is looked at only when those above it are open."""

    flags: FlagReader
    last: Callable[[], float | None]  # when the last one was: one `stat`
    sessions: Callable[[float], int]  # transcripts touched since, but for the current one
    looked: float | None = None  # when sessions were last counted

    def shut(self, settings: Settings, now: float) -> str:
        """Why no dream is due; empty where one is, but for its lock."""
        if off := settings.memory_off():
            return off
        if not self.flags.get(NAME):
            return f"the flag {NAME} is off"
        last = self.last()
        hours = (now - last) / 3600 if last is not None else None
        if hours is not None and hours < settings.dream_hours:
            return f"the last dream was {hours:.1f} hours ago"
        if self.looked is not None and now - self.looked < settings.dream_scan_minutes * 60:
            return "sessions were counted a moment ago"
        touched = self.sessions(last or 0.0)
        if touched < settings.dream_sessions:
            return f"{touched} of {settings.dream_sessions} sessions since the last dream"
        return ""


def instruction(folder: str, transcripts: str, today: str, settings: Settings) -> str:
    """What a dream is told."""
    text = _prompt()
    known = {
        "folder": folder,
        "transcripts": transcripts,
        "today": today,
        "lines": f"{settings.index_lines:,}",
        "bytes": f"{settings.index_bytes:,}",
        "width": str(settings.index_line_characters),
        "hits": str(settings.dream_grep_hits),
    }
    for name, value in known.items():
        text = text.replace("{" + name + "}", value)
    return text


@lru_cache(maxsize=1)
def _prompt() -> str:
    return (files("reverie.layers") / "prompts" / "dream.md").read_text("utf-8")
