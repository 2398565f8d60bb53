"""Rules that are meant for some files: told when such a file is first touched.

They are attachments, told once, and again where a compaction took them away. What was touched is
what tools read and wrote in this session. A rule is read when the session begins.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from reverie.memory.instructions import PathRule
from reverie.session.attachments import announced, attached, framed
from reverie.tools import globs
from reverie.tools.tool import ReadLog
from reverie.transcript.records import Attached
from reverie.transcript.view import View

KIND = "path-rule"
LOOKED = 200
"""Files touched last that are held against the rules."""


class PathRules:
    """The rules of one session, as a source of attachments."""

    def __init__(self, rules: Sequence[PathRule], top: Path, reads: Callable[[], ReadLog]) -> None:
        self._rules = tuple(rules)
        self._top = os.path.realpath(top)
        self._reads = reads
        self._told: set[str] = set()

    def at_turn(self, view: View) -> Sequence[Attached]:
        if not self._rules:
            return ()
        shown = set(announced(view, KIND))
        self._told = {rule.path for rule in self._rules if _words(rule, self._top) in shown}
        return self.at_round()

    def at_round(self) -> Sequence[Attached]:
        waiting = [rule for rule in self._rules if rule.path not in self._told]
        if not waiting:
            return ()
        names = [found for path in self._reads().recent(LOOKED) if (found := self._names(path))]
        due = [rule for rule in waiting if any(_fits(rule, one) for one in names)]
        self._told.update(rule.path for rule in due)
        return [_record(rule, self._top) for rule in due]

    def _names(self, path: str) -> tuple[str, ...]:
        """A path below the root, name by name; none for one outside."""
        start = f"{self._top}/"
        return tuple(path[len(start) :].split("/")) if path.startswith(start) else ()


def _fits(rule: PathRule, names: Sequence[str]) -> bool:
    return any(_matches(pattern, names) for pattern in rule.globs)


def _matches(pattern: str, names: Sequence[str]) -> bool:
    """A pattern without a folder in it is meant at any depth."""
    bare = pattern.removeprefix("./").lstrip("/")
    whole = bare if "/" in bare else f"**/{bare}"
    try:
        return globs.matcher(whole)(names)
    except globs.BadPattern:
        return False


def _record(rule: PathRule, top: str) -> Attached:
    shown = rule.path.removeprefix(f"{top}/")
    head = (
        f"A rule for {', '.join(rule.globs)}, of which you touched a file; it comes from {shown}:"
    )
    return attached(KIND, f"{head}\n{framed('path-rule', rule.text)}")


def _words(rule: PathRule, top: str) -> str:
    return "\n".join(block.text for block in _record(rule, top).blocks)
