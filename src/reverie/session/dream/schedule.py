"""When a dream is due, and its prompt.

After each turn: is a dream due? One that is runs as a job of the session.

With a language model configured a dream costs money, so the first one is asked for: until a
person has run one (`/dream`, `reverie dream run`), the session says once that one is due. After a
failure or a kill this session does not try again; the next may. Where no person is there the
session ends with its answer, and a dream would end with it: the next with a person dreams. With
the flag `dream` off none begins, also where a person asks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from anyio import to_thread

from reverie.errors import Held, NotFound, StoreError
from reverie.session.library import SessionLibrary
from reverie.settings.catalog import Settings
from reverie.store.consolidation_lock import ConsolidationLock
from reverie.store.files import Folder
from reverie.store.memory_store import MemoryStore
from reverie.text.format import plural
from reverie.text.safety import frame, neutralize_markup
from reverie.topics.entry import LOGS, is_index
from reverie.transcript.tasks import DoubtedRule, KnownMemory
from reverie.world import FlagReader, Notice

if TYPE_CHECKING:
    from reverie.session.dream.branch import Dream
    from reverie.session.dream.context import DreamContext
    from reverie.session.dream.run import DreamTrigger
    from reverie.session.host import JobContext

ALLOWED = "dreams-allowed"
OFF = "Dreams are switched off; `reverie flags set dream on` allows them again"


@dataclass
class DreamSchedule:
    """What one session knows of its dreams."""

    looked: float | None = None
    ended: bool = False  # one failed or was killed
    asked: bool = False
    now: Dream | None = None  # the one under way

    async def start(self, host: JobContext) -> str:
        """Dream because a person asked; says what happens."""
        if not host.world.flags.get(NAME):
            return OFF
        dreamer = dreamer_of(host)
        if dreamer is None:
            return "There is no long-term memory here to dream about"
        if NAME in host.jobs.running:
            return "A dream is under way already; /tasks lists it"
        if host.home is not None and not dreamer.model.capabilities.free:
            await to_thread.run_sync(allow, host.home)
        self.ended = False
        host.jobs.start(NAME, lambda: self._run(dreamer, "manual"))
        return "A dream has begun; /tasks lists it and ends it"

    async def consider(self, host: JobContext) -> None:
        """Ask the gates; where all stand open, dream in the background."""
        world, memories = host.world, host.memories
        if memories is None or world.model is None or self.ended or not host.interactive:
            return
        settings, now = world.settings, world.clock.now()
        lock = ConsolidationLock.of(memories.root, world.clock.now, settings)

        def count_sessions(since: float) -> int:
            self.looked = now
            return count_used_sessions(host.library, since, host.id)

        days = partial(count_undistilled_days, memories)
        gates = DreamGates(world.flags, lock.last, count_sessions, self.looked, days)
        shut = await to_thread.run_sync(lambda: gates.shut(settings, now))
        if shut or NAME in host.jobs.running:
            return
        if not is_dream_allowed(host):
            self._ask(host)
            return
        dreamer = dreamer_of(host)
        if dreamer is not None:
            host.jobs.start(NAME, lambda: self._run(dreamer, "auto"))

    def _ask(self, host: JobContext) -> None:
        if not self.asked:
            self.asked = True
            text = (
                "a dream is due: it would tidy the memory with the model in use, within the day's "
                "budget. `/dream` runs it and allows later ones; the flag `dream` switches them off"
            )
            host.world.say(Notice(NAME, text))

    async def _run(self, dreamer: DreamContext, trigger: DreamTrigger) -> None:
        from reverie.session.dream.run import run_dream  # it judges, which takes a while to load

        try:
            done = await run_dream(dreamer, trigger, shown=self._update_dream)
        except Held as error:  # another process dreams
            if trigger == "manual":
                dreamer.say(Notice(NAME, str(error), "warning"))
            return
        self.ended = done.status in ("failed", "killed")

    def _update_dream(self, dream: Dream) -> None:
        self.now = dream


def dreamer_of(host: JobContext) -> DreamContext | None:
    """What a session's dream needs; None where it has no memory or no model."""
    from reverie.session.dream.context import DreamContext, guards_at
    from reverie.toolbox.guard import Guards

    world, memories, guards = host.world, host.memories, host.guards
    if memories is None or world.model is None:
        return None
    root = Path(host.view.started.project if host.view.started else ".")
    if not isinstance(guards, Guards):  # a caller's own loop: our tools, within our walls
        guards = guards_at(root, host.library.path, memories, world)
    return DreamContext(
        memories,
        host.library,
        root,
        world.model,
        guards,
        world.clock,
        world.settings,
        world.flags,
        host.budget,
        world.say,
        summariser=world.summariser,
    )


def count_used_sessions(library: SessionLibrary, since: float, current: str = "") -> int:
    """How many sessions were used since, but for the current one."""
    return sum(1 for one in library.sessions() if one.id != current and one.mtime > since)


def count_undistilled_days(memories: MemoryStore, since: float) -> int:
    """How many days of the daily log were written to since."""
    found = 0
    for key in memories.folder.all_keys():
        if key.startswith(f"{LOGS}/") and key.endswith(".md"):
            with suppress(NotFound, StoreError):
                found += memories.folder.stat(key).modified / 1e9 > since
    return found


def is_dream_allowed(host: JobContext) -> bool:
    """Whether a dream may use this session's model without being asked for."""
    model, home = host.world.model, host.home
    if model is None or model.capabilities.free:
        return True
    return home is not None and os.path.lexists(home / ALLOWED)


def allow(home: Path) -> None:
    """A person ran a dream with a model: later ones need not be asked for."""
    if not os.path.lexists(home / ALLOWED):
        with Folder(home) as folder:
            folder.write(ALLOWED, b"")


# --- Layer 6, dreaming: when a dream is due, and what it is told.
#
# The gates are asked after each turn, the cheapest first, and the first that is shut answers with
# its reason. The instruction has the four phases of SPEC §9 and the form in which a dream says why
# something is gone. Pure: what a gate needs is handed in, and what costs a look is asked for only
# when the gates before it stand open.


NAME = "dream"
_CLOCKS = 1.0  # hours by which two clocks may differ; a dream further ahead was at another time
DreamForm: TypeAlias = Literal["tools", "words", "mcp"]
TOOLS = ("Read", "Grep", "Glob", "List", "Bash", "Edit", "Write")


@dataclass(frozen=True, slots=True)
class DreamGates:
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


def dream_prompt(
    folder: str,
    transcripts: str,
    today: str,
    settings: Settings,
    memories: Sequence[KnownMemory] = (),
    texts: Mapping[str, str] | None = None,
    rules: Sequence[DoubtedRule] = (),
    form: DreamForm = "tools",
) -> str:
    """What a dream is told: the files by name, and themselves while they are few; and of rules
    those that are doubted."""
    text = _prompt(form)
    known = {
        "folder": folder,
        "transcripts": transcripts,
        "today": today,
        "lines": f"{settings.index_lines:,}",
        "bytes": f"{settings.index_bytes:,}",
        "width": str(settings.index_line_characters),
        "hits": str(settings.dream_grep_hits),
        "manifest": manifest(memories),
        "texts": _files(texts or {}, MAX_SENT if form == "tools" else MAX_READ),
        "rules": _rules(rules),
    }
    parts = re.split(r"\{(\w+)\}", text)
    return "".join(known.get(one, one) if n % 2 else one for n, one in enumerate(parts)).rstrip()


def day_of(now: float) -> str:
    """A day as a dream is told it."""
    return datetime.fromtimestamp(now, UTC).strftime("%A, %Y-%m-%d")


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
    return neutralize_markup(f"- {kind}{one.file} ({when}){about}"[:MAX_ROW])


def _rules(rules: Sequence[DoubtedRule]) -> str:
    """The rules that are doubted, each with its words and what is known; nothing where none is."""
    if not rules:
        return ""
    rows = ["", _DOUBTED]
    for one in rules:
        told = (*one.doubts, *((one.did,) if one.did else ()))
        about = f"; speaks of: {one.speaks_of}" if one.speaks_of else ""
        row = f"- {one.file}: {'; '.join(told)}{about}"
        rows.append(neutralize_markup(f"{row[:MAX_ROW]}\n  > {' '.join(one.words.split())}"))
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


def _files(texts: Mapping[str, str], most: int) -> str:
    """The files themselves, where all of them are little to read."""
    if not texts or sum(map(len, texts.values())) > most:
        return ""
    rows = ["", "## The files as they are"]
    for key, text in texts.items():
        rows.append(frame(text, session=key, source=key))
    return "\n".join(rows)


def newest_files(texts: Mapping[str, str], memories: Sequence[KnownMemory]) -> dict[str, str]:
    """The index and the files that were last written, as many as can be sent; in their order."""
    at = {one.file: one.saved for one in memories}
    left, kept = MAX_READ, set[str]()
    for key in sorted(texts, key=lambda one: (not is_index(one), -at.get(one, 0.0))):
        left -= len(texts[key])
        if left < 0:
            break
        kept.add(key)
    return {key: text for key, text in texts.items() if key in kept}


MAX_LISTED = 1_000
MAX_ROW = 300
MAX_SENT = 24_000
"""Characters of all files together up to which they are sent with the instruction."""
MAX_READ = 100_000
"""The same where nothing can be read later."""


def faults_told(faults: Iterable[str], form: DreamForm = "tools") -> str:
    """What goes back to a dream whose work may not all be used."""
    rows, said = list(faults), _FAULTS[form]
    shown = [f"- {row}" for row in rows[:MAX_FAULTS]]
    more = [f"- {len(rows) - MAX_FAULTS:,} more"] if len(rows) > MAX_FAULTS else []
    return "\n".join([said, "", *shown, *more])


MAX_FAULTS = 30
_BY_TOOLS = (
    "What you left was compared with the original, and these changes cannot be used as they are. "
    "Mend each, or put the file back as it was; all else you did is fine. A sentence that is gone "
    "must stand word for word somewhere, or have a line in a `reasons` block. Give only the "
    "reasons that are new, and end."
)


_BY_CLIENT = (
    "These changes cannot be used as they are. Write these files again, whole: corrected, or as "
    "they were. A sentence that is gone must stand word for word somewhere, or have a reason. If "
    "you cannot correct a change, call dream_close: it is left out."
)
_IN_WORDS = (
    "Your files were compared with the original, and these changes cannot be used as they are. "
    "Give these files again, whole: corrected, or as they were. Files without a fault need no "
    "block. A sentence that is gone must stand word for word somewhere, or have a line in a "
    "`reasons` block. Give only the reasons that are new."
)


_FAULTS: Mapping[DreamForm, str] = {"tools": _BY_TOOLS, "words": _IN_WORDS, "mcp": _BY_CLIENT}


@lru_cache(maxsize=3)
def _prompt(form: DreamForm) -> str:
    """The prompt of one form: a line such as `[words mcp]` begins a part of these alone."""
    kept: list[str] = []
    mine = True
    for line in (files("reverie.layers") / "prompts" / "dream.md").read_text("utf-8").splitlines():
        if found := re.fullmatch(r"\[(end|(?:tools|words|mcp| )+)\]", line):
            mine = found[1] == "end" or form in found[1].split()
        elif mine:
            kept.append(line)
    return "\n".join([*kept, ""])
