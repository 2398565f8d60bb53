"""Layer 6, dreaming: when a dream is due, and what it is told.

The gates are asked after each turn, the cheapest first, and the first that is shut answers with
its reason. The instruction has the four phases of SPEC §9 and the form in which a dream says why
something is gone. Pure: what a gate needs is handed in, and what costs a look is asked for only
when the gates before it stand open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from reverie.settings import Settings
from reverie.world import FlagReader

NAME = "dream"
_CLOCKS = 1.0  # hours by which two clocks may differ; a dream further ahead was at another time
TOOLS = ("Read", "Grep", "Glob", "List", "Bash", "Edit", "Write")


@dataclass(frozen=True, slots=True)
class Gates:
    """What the gates ask for; each is looked at only when those above it are open."""

    flags: FlagReader
    last: Callable[[], float | None]  # when the last one was: one `stat`
    sessions: Callable[[float], int]  # transcripts touched since, but for the current one
    looked: float | None = None  # when sessions were last counted
    days: Callable[[float], int] | None = None  # days of the daily log that are not distilled yet

    def shut(self, settings: Settings, now: float) -> str:
        """Why no dream is due; empty where one is, but for its lock."""
        if off := settings.memory_off():
            return off
        if not self.flags.get(NAME):
            return f"the flag {NAME} is off"
        last = self.last()
        hours = (now - last) / 3600 if last is not None else None
        if hours is not None and -_CLOCKS < hours < settings.dream_hours:
            return f"the last dream was {max(0.0, hours):.1f} hours ago"
        if self.looked is not None and now - self.looked < settings.dream_scan_minutes * 60:
            return "sessions were counted a moment ago"
        since = last if last is not None and last <= now else 0.0
        if self.days is not None and self.flags.get("daily_log"):
            return "" if self.days(since) else "every day of the log is distilled"
        touched = self.sessions(since)
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


def faults_told(faults: Iterable[str]) -> str:
    """What goes back to a dream whose work may not all be used."""
    rows = list(faults)
    shown = [f"- {row}" for row in rows[:MAX_FAULTS]]
    more = [f"- {len(rows) - MAX_FAULTS:,} more"] if len(rows) > MAX_FAULTS else []
    return "\n".join([_FAULTS, "", *shown, *more])


MAX_FAULTS = 30
_FAULTS = (
    "What you left was compared with the original, and these changes cannot be used as they are. "
    "Mend each, or put the file back as it was; all else you did is fine. A sentence that is gone "
    "must stand word for word somewhere, or have a line in a `reasons` block. Give only the "
    "reasons that are new, and end."
)


@lru_cache(maxsize=1)
def _prompt() -> str:
    return (files("reverie.layers") / "prompts" / "dream.md").read_text("utf-8")
