"""Layer 6, dreaming: when a dream is due, and what it is told.

The gates are asked after each turn, the cheapest first, and the first that is shut answers with
its reason. The instruction has the four phases of SPEC §9 and the form in which a dream says why
something is gone. Pure: what a gate needs is handed in, and what costs a look is asked for only
when the gates before it stand open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files

from reverie.light import dataclass
from reverie.settings import Settings
from reverie.text.format import plural
from reverie.text.untrusted import defused, frame
from reverie.transcript.tasks import DoubtedRule, KnownMemory
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
            left = settings.dream_hours - max(0.0, hours)
            return f"the next is due in {plural(max(1, round(left)), 'hour')}"
        if self.looked is not None and now - self.looked < settings.dream_scan_minutes * 60:
            return "sessions were counted a moment ago"
        since = last if last is not None and last <= now else 0.0
        if self.days is not None and self.flags.get("daily_log"):
            return "" if self.days(since) else "every day of the log is distilled"
        touched = self.sessions(since)
        if touched < settings.dream_sessions:
            return f"{touched} of {settings.dream_sessions} sessions since the last dream"
        return ""


def instruction(
    folder: str,
    transcripts: str,
    today: str,
    settings: Settings,
    memories: Sequence[KnownMemory] = (),
    texts: Mapping[str, str] | None = None,
    rules: Sequence[DoubtedRule] = (),
) -> str:
    """What a dream is told: the files by name, and themselves while they are few; and of rules
    those that are doubted."""
    text = _prompt()
    known = {
        "folder": folder,
        "transcripts": transcripts,
        "today": today,
        "lines": f"{settings.index_lines:,}",
        "bytes": f"{settings.index_bytes:,}",
        "width": str(settings.index_line_characters),
        "hits": str(settings.dream_grep_hits),
        "manifest": manifest(memories),
        "texts": _files(texts or {}),
        "rules": _rules(rules),
    }
    parts = re.split(r"\{(\w+)\}", text)
    return "".join(known.get(one, one) if n % 2 else one for n, one in enumerate(parts)).rstrip()


def manifest(memories: Sequence[KnownMemory]) -> str:
    """A line for each file: its type, its name, when it was written, what it says it is about."""
    rows = [_row(one) for one in memories[:MAX_LISTED]]
    more = len(memories) - len(rows)
    rows += [f"- {more:,} more: List shows them"] if more else []
    return "\n".join(rows) or "The folder is empty."


def _row(one: KnownMemory) -> str:
    kind = f"[{one.type}] " if one.type else ""
    when = f"{datetime.fromtimestamp(one.saved, UTC):%a %Y-%m-%d}" if one.saved else "day unknown"
    about = f": {' '.join(one.description.split())}" if one.description else ""
    return defused(f"- {kind}{one.file} ({when}){about}"[:MAX_ROW])


def _rules(rules: Sequence[DoubtedRule]) -> str:
    """The rules that are doubted, each with its words and what is known; nothing where none is."""
    if not rules:
        return ""
    rows = ["", _DOUBTED]
    for one in rules:
        told = (*one.doubts, *((one.did,) if one.did else ()))
        about = f"; speaks of: {one.speaks_of}" if one.speaks_of else ""
        row = f"- {one.file}: {'; '.join(told)}{about}"
        rows.append(defused(f"{row[:MAX_ROW]}\n  > {' '.join(one.words.split())}"))
    return "\n".join([*rows, ""])


_DOUBTED = """\
## Rules in doubt
Calls that agents make are held against these memories, by `applies_to` in the head or, without \
one, by what the sentence names to the letter. Below is what is known of each, counted while \
agents worked. You may change its `applies_to`, so that it names just the calls that the words \
are against, or write `applies_to: none` where the words hold no longer: that retires the rule, \
the words stay, and no call is held for them. Do so only where the words leave no doubt. A rule \
that no call goes against is most often kept: that alone is no reason. One that is overridden \
every time may be right all the same; mend it where it holds calls that its words allow. Of two \
that exclude each other the newer one holds. Leave `level` alone, and the heads of all other \
rules.

A head is `applies_to: {command: git push, has: --force|-f}`. `tool`, `command`, `paths`, \
`words` and `file_type` name what a call does, one of several; `has` is in the command, `lacks` \
is missing from it; `!` before a path spares it. All keys must fit."""


def _files(texts: Mapping[str, str]) -> str:
    """The files themselves, where all of them are little to read."""
    if not texts or sum(map(len, texts.values())) > MAX_SENT:
        return ""
    rows = ["", "## The files as they are"]
    for key, text in texts.items():
        rows.append(frame(text, session=key, source=key))
    return "\n".join(rows)


MAX_LISTED = 1_000
MAX_ROW = 300
MAX_SENT = 24_000
"""Characters of all files together up to which they are sent with the instruction."""


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
