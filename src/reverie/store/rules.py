"""Compiled rules and their counters on disk.

The rules of a project on disk: compiled from its memories, and the ledger of what they did.

Both lie below home in a folder of their own, where a hook finds them by the project's root alone.
The compiled file is derived: it is made anew where a memory changed, from the files that changed,
or by another version of the compiler, from all of them; it may be deleted at any time. The ledger
is added to line by line, by any process, and summed up where it has grown long; it names files of
rules and holds nothing of their text.

Only the user's own rules may ask or block. A memory's level counts where the user set it by a
door of ours; what an agent, a teammate or another program wrote there reminds at most.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from reverie import __version__
from reverie.errors import NotFound, ReverieError, StoreError
from reverie.light import dataclass
from reverie.rules import rule as reading
from reverie.rules.match import ASK, BLOCK, OFF, CompiledRule
from reverie.rules.rule import contradictions, faults_in
from reverie.rules.rule_file import FOLDER, PERSONAL, PackedRules, pack_rules, rule_file_name
from reverie.rules.rule_set import (
    CONDITIONS,
    RuleSet,
    compile_rule,
    conditions_of,
    final_calls,
)
from reverie.store import rules_ledger
from reverie.store.files import Folder
from reverie.store.home import personal_project
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project
from reverie.store.rules_ledger import MATCHED, RuleCounts
from reverie.text.format import utc_day
from reverie.topics import frontmatter
from reverie.topics.entry import TEAM, TopicFile, is_topic
from reverie.topics.frontmatter import BOM, MAX_BYTES
from reverie.topics.trust import Trust
from reverie.topics.versions import outside, trust_in

MAX_LEDGER = 512 * 1024
"""Bytes from which on a ledger is summed up by day."""
MAX_HEAD = MAX_BYTES + len(BOM) + 4_096
"""Bytes of a memory that are read for its rule: the head, and the sentence behind it."""
MAX_FILE = 64 * 1024 * 1024
COMPILER = f"{__version__}.3"
"""Who compiled: what another one made is compiled again, since it may have read it otherwise.
The last number goes up where rules are read otherwise between two versions."""


def _file(root: str) -> str:
    return f"{FOLDER}/{rule_file_name(root)}"


def compile_written(memories: MemoryStore, root: Path) -> None:
    """Bring the compiled rules up to date with what was written through this memory, so that a
    hook finds what was saved last; what that costs does not grow with the folder. Where nothing
    can be read or written, they stay as they are."""
    written, memories.history.written = memories.history.written, set()
    with contextlib.suppress(ReverieError, OSError):
        RuleStore(memories, root).put(key for key in written if is_topic(key))


class RuleStore:
    """The rules of one project. `book` brings the compiled file up to date."""

    def __init__(self, memories: MemoryStore, root: Path) -> None:
        self._memories = memories
        self._root = str(memories.project or root)  # another's rules are kept by its own name
        self._name = _file(self._root)
        self._stamp: tuple[object, ...] | None = None
        self._book = RuleSet(())

    @property
    def _files(self) -> Folder:
        return self._memories.forgotten.files  # home's own

    def book(self) -> RuleSet:
        """The rules as the memories are now; only files that changed are read."""
        stamp = self._now()
        if stamp is not None and stamp == self._stamp:
            return self._book
        seen, changed = self._read_seen(), False
        found: dict[str, list[Any]] = {}
        for key in list(self._memories.folder.keys()):
            with contextlib.suppress(StoreError, NotFound):
                stat = self._memories.folder.stat(key)
                row = seen.get(key)
                if row is None or row[:2] != [stat.modified, stat.size]:
                    row, changed = [stat.modified, stat.size, self._rule(key)], True
                found[key] = row
        rules = [row[2] for row in found.values() if row[2] is not None]
        self._book, self._stamp = RuleSet(rules), stamp
        if (changed or found.keys() != seen.keys()) and (rules or seen or self._is_compiled()):
            self._write(found, rules)
        return self._book

    def put(self, keys: Iterable[str]) -> None:
        """Compile these files alone into what is there; all of them where there is nothing yet, or
        another version compiled it."""
        fresh = {key: self._rule(key) if self._exists(key) else None for key in keys}
        known = self._read_compiled()
        if known is None:
            if any(fresh.values()) or self._is_compiled():
                self.book()
            return
        if not any(fresh.values()) and not any(rule.get("file") in fresh for rule in known):
            return
        kept = [rule for rule in known if rule.get("file") not in fresh]
        rules = [*kept, *filter(None, fresh.values())]
        rules.sort(key=lambda rule: rule.get("file", ""))
        self._files.write(f"{self._name}.rules", self._pack_rules(rules), durable=False)

    def _pack_rules(self, rules: Sequence[CompiledRule]) -> bytes:
        return pack_rules(self._root, str(self._memories.root), rules, COMPILER, final_calls())

    def _exists(self, key: str) -> bool:
        return self._memories.folder.exists(key)

    def _read_compiled(self) -> list[CompiledRule] | None:
        """The rules as they were compiled last; None where they are not, or cannot be read, or
        were compiled otherwise."""
        try:
            found = PackedRules(self._files.read(f"{self._name}.rules", MAX_FILE))
            if found.by != COMPILER:
                return None
            return [found.rule_at(number) for number in range(len(found))]
        except (NotFound, StoreError, ValueError, LookupError, TypeError):
            return None

    def read_personal(self) -> RuleSet:
        """The rules of the user's own memory as it is now: they hold everywhere. Their files are
        named below `personal/`."""
        own = Project.personal(home=self._files.root)
        if str(own.root) == self._root or not own.has_memory:
            return RuleSet(())
        try:
            with MemoryStore(
                own.memory_folder,
                own.history_folder,
                own.home,
                now=self._memories.now,
                create=False,
                settings=own.settings,
            ) as memories:
                rules = RuleStore(memories, own.root).book().rules
        except (ReverieError, OSError):
            return RuleSet(())
        return RuleSet([{**rule, "file": f"{PERSONAL}{rule.get('file', '')}"} for rule in rules])

    def _is_compiled(self) -> bool:
        return self._files.exists(f"{self._name}.rules")

    def _now(self) -> tuple[object, ...] | None:
        """What changes whenever a file is put into the folder, or taken out of it."""
        try:
            found = self._memories.root.stat()
            team = self._memories.root / TEAM
            below = team.stat().st_mtime_ns if team.is_dir() else 0
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, below

    def _rule(self, key: str) -> CompiledRule | None:
        data = self._memories.folder.bytes_of(key, MAX_HEAD)
        one = TopicFile(key, data)
        level = reading.level_of(one.front)
        granted = level not in (ASK, BLOCK) or self._is_granted(key, level)
        return compile_rule(one, own=self._is_own(key, one), granted=granted)

    def _is_own(self, key: str, one: TopicFile) -> bool:
        """Whether a rule is the user's: not the team's, and not of a source nobody trusts."""
        if key.startswith(f"{TEAM}/") or one.is_unverified:
            return False
        try:
            versions = self._memories.history.log(key)
        except (StoreError, NotFound):
            return False
        trust = trust_in(versions, key) if versions else outside().trust
        return trust is not Trust.UNTRUSTED

    def _is_granted(self, key: str, level: str) -> bool:
        """Whether it was the user who set a level that still stands."""
        by_user = False
        for version in self._memories.history.log(key):
            if not version.after:
                by_user = False
                continue
            try:
                front = frontmatter.parse_frontmatter(self._memories.history.content(version.after))
            except ReverieError:
                return False
            if reading.level_of(front) != level:
                by_user = False
            elif not by_user:
                by_user = version.origin.trust is Trust.USER
        return by_user

    # --- the files

    def _read_seen(self) -> dict[str, list[Any]]:
        try:
            value = json.loads(self._files.read(f"{self._name}.seen", MAX_FILE))
        except (NotFound, StoreError, ValueError):
            return {}
        known = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        return known.get("files", {}) if known.get("v") == COMPILER else {}

    def _write(self, found: dict[str, list[Any]], rules: Sequence[CompiledRule]) -> None:
        """Both files, or neither: a disk that is full keeps no rule from being looked at."""
        value = {"v": COMPILER, "files": found}
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        with contextlib.suppress(StoreError):
            self._files.write(f"{self._name}.rules", self._pack_rules(rules), durable=False)
            self._files.write(f"{self._name}.seen", text.encode(), durable=False)

    # --- the ledger

    def count(self, events: Iterable[tuple[str, str]], at: float, session: str = "") -> None:
        """Add what happened: pairs of a rule's file and an event. A full disk loses a count."""
        own = _file(str(personal_project(self._files.root)))
        with contextlib.suppress(StoreError):
            for file, event in events:
                name = own if file.startswith(PERSONAL) else self._name
                line = rules_ledger.line(file.removeprefix(PERSONAL), event, at, session)
                self._files.append_line(f"{name}.ledger", line)

    def counts(self) -> dict[str, RuleCounts]:
        """What the rules did so far."""
        key = f"{self._name}.ledger"
        try:
            data = self._files.read(key, MAX_FILE)
        except (NotFound, StoreError):
            return {}
        found = rules_ledger.sum_by_rule(data)
        if len(data) > MAX_LEDGER:
            with contextlib.suppress(StoreError):
                self._files.write(
                    key, rules_ledger.compact_ledger(list(found.values())), durable=False
                )
        return found


# --- The rules of a project one by one: what each speaks of, may do and did, and what is known
# against it.
#
# What is told of a rule is told of it as it stands: what calls did before it was last made to name
# other calls does not count. A head that cannot be read, a rule that can never hold or would
# always, one that another excludes, one that is overridden every time or that no call goes
# against, one that asks for more than it may do.


IDLE_DAYS = 90
"""Days without a call that a rule speaks of, from which on that is told."""
OVERRIDDEN = "held and overridden every time"
_IDLE = "either it is kept, or it names the wrong calls (`reverie memory rules test`)"


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule as it is shown."""

    rule: CompiledRule
    counts: RuleCounts | None = None
    doubts: tuple[str, ...] = ()  # what is known against it
    notes: tuple[str, ...] = ()  # the same and what else a person should know, with what to do
    idle: str = ""  # since when no call was matched, where that is long ago; one of the notes

    def value(self) -> dict[str, Any]:
        rule = self.rule
        return {
            "file": rule.get("file", ""),
            "name": rule.get("name", ""),
            "level": rule.get("level", ""),
            "source": rule.get("source", ""),
            "said": rule.get("said", 1),
            "read_from": rule.get("read", ""),
            "applies_to": applies(rule),
            "counts": self.counts.value() if self.counts else {},
            "notes": list(self.notes),
        }


def applies(rule: CompiledRule) -> dict[str, list[str]]:
    """What a rule speaks of, in words."""
    found: dict[str, list[str]] = {}
    for key in CONDITIONS:
        value = rule.get(key)
        if value:
            found[key] = [_words(one) for one in value]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType, reportUnknownArgumentType]
    return found


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value
    parts: list[Any] = list(value)
    if parts and isinstance(parts[0], str):
        return " ".join(parts)
    return " or ".join(_words(one) for one in parts)


def list_rules(memories: MemoryStore, root: Path) -> list[RuleRow]:
    """Every rule, and every memory whose head speaks of calls and cannot be used."""
    store = RuleStore(memories, root)
    book, counts = store.book(), store.counts()
    against = contradictions(book.rules)
    rows: list[RuleRow] = []
    for rule in book.rules:
        file = rule.get("file", "")
        rows.append(_row(memories, rule, counts.get(file), against.get(file, ())))
    known = {row.rule.get("file") for row in rows}
    return rows + [row for row in _faulty(memories) if row.rule.get("file") not in known]


def _row(
    memories: MemoryStore, rule: CompiledRule, counts: RuleCounts | None, against: Sequence[str]
) -> RuleRow:
    doubts = [f"contradicts {other}" for other in against]
    notes = list(doubts)
    if _is_overridden(memories, rule, counts):
        doubts.append(OVERRIDDEN)
        notes.append(f"{OVERRIDDEN}: mend it, raise its level, or turn it off")
    notes += _asks(memories, rule)
    since, idle = _idle(memories, rule, counts), ""
    if since:
        doubts.append(f"no call has gone against it since {since}")
        idle = f"{doubts[-1]}: {_IDLE}"
        notes.append(idle)
    return RuleRow(rule, counts, tuple(doubts), tuple(notes), idle)


def _asks(memories: MemoryStore, rule: CompiledRule) -> list[str]:
    """What is told of a rule whose head asks for more than it may do."""
    file = rule.get("file", "")
    try:
        asked = reading.level_of(memories.folder.read(file).front)
    except (NotFound, StoreError):
        return []
    if asked == rule.get("level"):
        return []
    do = f"`reverie memory rules level {file} {asked}`"
    return [f"asks to {asked}, and you have not said so: {do}"]


def _is_overridden(memories: MemoryStore, rule: CompiledRule, counts: RuleCounts | None) -> bool:
    if counts is None or not counts.is_overridden:
        return False
    since, named_others = _named_since(memories, rule.get("file", ""))
    return not named_others or counts.after(since).is_overridden


def _idle(memories: MemoryStore, rule: CompiledRule, counts: RuleCounts | None) -> str:
    """The day since which no call has gone against a rule, where that is long ago."""
    days: Mapping[str, Mapping[str, int]] = counts.days if counts is not None else {}
    last = max((day for day, did in days.items() if did.get(MATCHED)), default="")
    before = utc_day(memories.now() - IDLE_DAYS * 86_400)
    file = rule.get("file", "")
    if rule.get("level") == OFF or last > before or not _is_older(memories, file, before):
        return ""
    began, _ = _named_since(memories, file)
    return max(last, began) if began and began <= before else ""


def _is_older(memories: MemoryStore, key: str, day: str) -> bool:
    """Whether a memory was there on a day; of a young one no version has to be read."""
    try:
        return any(utc_day(one.at) <= day for one in memories.history.log(key)[:1])
    except ReverieError:
        return False


def _named_since(memories: MemoryStore, key: str) -> tuple[str, bool]:
    """The day since which a memory names the calls it names, "" where nobody knows; and whether
    it named others before."""
    day, others, known = "", False, dict[str, Any]()
    try:
        for version in memories.history.log(key):
            data = memories.history.content(version.after) if version.after else b""
            named = conditions_of(TopicFile(key, data))
            if not day or named != known:
                day, others, known = utc_day(version.at), bool(day), named
    except ReverieError:
        return "", False
    return day, others


def _faulty(memories: MemoryStore) -> list[RuleRow]:
    found: list[RuleRow] = []
    for key in list(memories.folder.keys()):
        try:
            one = memories.folder.read(key)
        except (NotFound, StoreError):
            continue
        faults = tuple(faults_in(one.front, one.type))
        if faults:
            rule: CompiledRule = {"file": key, "name": one.name, "level": "off", "read": "head"}
            found.append(RuleRow(rule, None, faults, faults))
    return found
