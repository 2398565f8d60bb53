"""The rules of a project on disk: compiled from its memories, and the ledger of what they did.

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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from reverie import __version__
from reverie.errors import NotFound, ReverieError, StoreError
from reverie.memory.format import frontmatter
from reverie.memory.format.entry import TEAM, TopicFile, is_topic
from reverie.memory.format.frontmatter import BOM, MAX_BYTES
from reverie.memory.rules import ledger, reading
from reverie.memory.rules.book import RuleBook, compile_rule
from reverie.memory.rules.file import FOLDER, PackedRules, name_of, packed
from reverie.memory.rules.ledger import RuleCounts
from reverie.memory.rules.match import ASK, BLOCK, CompiledRule
from reverie.memory.trust import Trust
from reverie.memory.versions import outside, trust_in
from reverie.store.files import Folder
from reverie.store.memories import Memories

MAX_LEDGER = 512 * 1024
"""Bytes from which on a ledger is summed up by day."""
MAX_HEAD = MAX_BYTES + len(BOM) + 4_096
"""Bytes of a memory that are read for its rule: the head, and the sentence behind it."""
MAX_FILE = 64 * 1024 * 1024
COMPILER = f"{__version__}.1"
"""Who compiled: what another one made is compiled again, since it may have read it otherwise.
The last number goes up where rules are read otherwise between two versions."""


def compile_written(memories: Memories, root: Path) -> None:
    """Bring the compiled rules up to date with what was written through this memory, so that a
    hook finds what was saved last; what that costs does not grow with the folder. Where nothing
    can be read or written, they stay as they are."""
    written, memories.history.written = memories.history.written, set()
    with contextlib.suppress(ReverieError, OSError):
        RuleStore(memories, root).put(key for key in written if is_topic(key))


class RuleStore:
    """The rules of one project. `book` brings the compiled file up to date."""

    def __init__(self, memories: Memories, root: Path) -> None:
        self._memories = memories
        self._root = str(root)
        self._name = f"{FOLDER}/{name_of(self._root)}"
        self._stamp: tuple[object, ...] | None = None
        self._book = RuleBook(())

    @property
    def _files(self) -> Folder:
        return self._memories.forgotten.files  # home's own

    def book(self) -> RuleBook:
        """The rules as the memories are now; only files that changed are read."""
        stamp = self._now()
        if stamp is not None and stamp == self._stamp:
            return self._book
        seen, changed = self._seen(), False
        found: dict[str, list[Any]] = {}
        for key in list(self._memories.folder.keys()):
            with contextlib.suppress(StoreError, NotFound):
                stat = self._memories.folder.stat(key)
                row = seen.get(key)
                if row is None or row[:2] != [stat.modified, stat.size]:
                    row, changed = [stat.modified, stat.size, self._rule(key)], True
                found[key] = row
        rules = [row[2] for row in found.values() if row[2] is not None]
        self._book, self._stamp = RuleBook(rules), stamp
        if (changed or found.keys() != seen.keys()) and (rules or seen or self._is_compiled()):
            self._write(found, rules)
        return self._book

    def put(self, keys: Iterable[str]) -> None:
        """Compile these files alone into what is there; all of them where there is nothing yet, or
        another version compiled it."""
        fresh = {key: self._rule(key) if self._exists(key) else None for key in keys}
        known = self._compiled()
        if known is None:
            if any(fresh.values()) or self._is_compiled():
                self.book()
            return
        if not any(fresh.values()) and not any(rule.get("file") in fresh for rule in known):
            return
        kept = [rule for rule in known if rule.get("file") not in fresh]
        rules = [*kept, *filter(None, fresh.values())]
        rules.sort(key=lambda rule: rule.get("file", ""))
        self._files.write(f"{self._name}.rules", self._packed(rules), durable=False)

    def _packed(self, rules: Sequence[CompiledRule]) -> bytes:
        return packed(self._root, str(self._memories.root), rules, COMPILER)

    def _exists(self, key: str) -> bool:
        return self._memories.folder.exists(key)

    def _compiled(self) -> list[CompiledRule] | None:
        """The rules as they were compiled last; None where they are not, or cannot be read, or
        were compiled otherwise."""
        try:
            found = PackedRules(self._files.read(f"{self._name}.rules", MAX_FILE))
            if found.by != COMPILER:
                return None
            return [found.rule_at(number) for number in range(len(found))]
        except (NotFound, StoreError, ValueError, LookupError, TypeError):
            return None

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
                front = frontmatter.parse(self._memories.history.content(version.after))
            except ReverieError:
                return False
            if reading.level_of(front) != level:
                by_user = False
            elif not by_user:
                by_user = version.origin.trust is Trust.USER
        return by_user

    # --- the files

    def _seen(self) -> dict[str, list[Any]]:
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
            self._files.write(f"{self._name}.rules", self._packed(rules), durable=False)
            self._files.write(f"{self._name}.seen", text.encode(), durable=False)

    # --- the ledger

    def count(self, events: Iterable[tuple[str, str]], at: float, session: str = "") -> None:
        """Add what happened: pairs of a rule's file and an event. A full disk loses a count."""
        with contextlib.suppress(StoreError):
            for file, event in events:
                self._files.append_line(
                    f"{self._name}.ledger", ledger.line(file, event, at, session)
                )

    def counts(self) -> dict[str, RuleCounts]:
        """What the rules did so far."""
        key = f"{self._name}.ledger"
        try:
            data = self._files.read(key, MAX_FILE)
        except (NotFound, StoreError):
            return {}
        found = ledger.counted(data)
        if len(data) > MAX_LEDGER:
            with contextlib.suppress(StoreError):
                self._files.write(key, ledger.shortened(list(found.values())), durable=False)
        return found
