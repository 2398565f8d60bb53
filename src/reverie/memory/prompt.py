"""The section of the system prompt about memory.

A pure function from its options to text: the same options give the same bytes, so it can be
rendered once and kept. It holds paths and rules, never a date, a file's contents or the index
of a project, which is sent with the instruction files. The exception is an agent's own memory,
whose index is always part of its section.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from reverie.light import dataclass
from reverie.memory import prompt_words as words
from reverie.memory.paths import LOG_PATTERN, Scope
from reverie.text.untrusted import defused, strip


@dataclass(frozen=True, slots=True)
class Options:
    """What the section depends on."""

    folder: str
    team: str = ""
    daily_log: bool = False
    search_past: bool = True
    extra: str = ""
    scope: Scope | Literal[""] = ""
    index: str = ""
    lines: int = 200
    width: int = 150
    by_itself: bool = False  # the model has no tool for memory: what is worth keeping is kept


def section(options: Options) -> str:
    """The section, ready to be sent."""
    parts = _saved(options)
    if options.by_itself:
        parts = (words.INTRO_BY_ITSELF, words.BEFORE, _extra(options))
    elif options.daily_log:
        parts = _logged(options)
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def both_modes(*, daily_log: bool, team: bool) -> str:
    """What to say where daily log and team memory are both on, or ""."""
    if not (daily_log and team):
        return ""
    return "the daily log and team memory exclude each other: the daily log is on, the team off"


def _saved(options: Options) -> Iterator[str]:
    folder, by_hand = _path(options.folder), bool(options.team or options.scope)
    if options.scope:
        yield words.INTRO_FILES.format(folder=folder)
        yield words.SCOPES[options.scope]
    elif options.team:
        yield words.INTRO_TEAM.format(folder=folder, team=_path(options.team))
    else:
        yield words.INTRO.format(folder=folder)
    kinds = (_kind(k, scoped=bool(options.team) and not options.scope) for k in words.KINDS)
    yield "\n".join((words.TYPES, *kinds))
    yield words.NEVER
    if by_hand:
        which = " of the same folder" if options.team else ""
        yield words.HOW.format(which=which, width=options.width, lines=options.lines)
    yield from _reading(options)
    if options.scope:
        text = defused(options.index).strip() or words.EMPTY_INDEX
        yield f"## Contents of {folder}/MEMORY.md\n\n{text}"


def _logged(options: Options) -> Iterator[str]:
    folder = _path(options.folder)
    yield words.INTRO_LOG.format(folder=folder)
    yield words.REMEMBER_LOG
    yield words.LOG.format(folder=folder, pattern=LOG_PATTERN)
    yield words.NEVER
    yield from _reading(options)


def _reading(options: Options) -> Iterator[str]:
    yield words.BEFORE
    if options.search_past and not options.scope:
        yield words.SEARCH
    yield _extra(options)


def _extra(options: Options) -> str:
    return f"{words.EXTRA}\n\n{options.extra.strip()}" if options.extra.strip() else ""


def _kind(kind: words.MemoryKind, *, scoped: bool) -> str:
    scope = f" Scope: {kind.scope}." if scoped else ""
    return f"- {kind.name}: {kind.what}{scope}"


def _path(text: str) -> str:
    """A path as one line without anything hidden."""
    return " ".join(strip(text).split("\n")).replace("`", "'")
