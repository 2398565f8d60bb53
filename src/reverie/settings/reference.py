"""The page about settings and flags, made from the code, so that it cannot be wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from reverie.settings.catalog import DEFAULTS, SETTINGS
from reverie.settings.schema import Committed, Setting, SettingValue, camel
from reverie.settings.sources import variable
from reverie.settings.switches import FLAGS, Flag

_HEAD = """\
# Settings and flags

`reverie config` shows every setting as it is for you, and who gave it; `reverie flags` the
switches.

## Where settings come from

Strongest first. The first source with a good value answers, for each setting by itself.

1. policy: `/etc/reverie/settings.json`
2. environment: the variables below; where a variable has an alias, our own name goes first
3. local: `.reverie/settings.local.json` below the repository's root
4. project: `.reverie/settings.json` below the repository's root
5. user: `settings.json` in home (`~/.reverie`, or `REVERIE_HOME`)

Files are JSON objects. The tables show a setting's JSON key and its environment variables; in
Python, and in a file if you like, its name is the same in lower case: `resultCharacters` is
`result_characters`. A value that cannot be used is reported with its file, key and reason, and the
next source answers.

The local file is trusted where its digest stands in home: recorded when you answered "always" at
a permission prompt, or ran `reverie trust`, which shows what the file would do. A file that
nobody approved, that was declined, or that has changed since counts as committed, like the
project's file. The column *committed* says what such a file can do to a setting, compared with
the value that holds without it: nothing where it says *ignored*.

A `share` is a fraction between 0 and 1. A folder must be absolute or begin with `~/`, lie at
least two folders deep, and not be the user's own folder or above it.
"""
_FOOT = "\nThis page is made from the code by `python -m scripts.reference`.\n"

_CHAPTERS: Mapping[str, tuple[str, ...]] = {
    "Tokens and the window": ("2",),
    "Large results": ("3",),
    "Clearing old results": ("4",),
    "Collapse": ("B11",),
    "Session notes": ("5",),
    "Compaction": ("6", "B10"),
    "Memory and extraction": ("7", "15"),
    "Recall": ("8",),
    "Dreams": ("9", "B6"),
    "Agents": ("10",),
    "Team memory": ("11",),
    "Instruction files": ("12",),
    "Hooks, tools and answers": ("13",),
    "The prompt cache": ("14",),
    "Prices and the day's budget": ("B18",),
    "Your own agent as the background model": ("B23",),
    "Keeping transcripts": ("18",),
}
"""Titles, with the parts of the specification that their settings belong to."""

_COMMITTED: Mapping[Committed, str] = {
    "never": "ignored",
    "less": "can lower",
    "more": "can raise",
    "free": "can set",
}

_FLAGS_HEAD = """
## Flags

Flags act while the program runs, without a restart. Strongest first: policy, what the program
itself has set, the environment (the last of the names below), `flags.json` in home
(`reverie flags set NAME VALUE`), and an object `flags` in the local, project and user settings. An
alias is accepted wherever a name is, also as an environment variable. A file that a repository may
have brought can switch off the flags marked so, and do nothing else.
"""


def page() -> str:
    """The whole page, as Markdown."""
    chapters = "".join(_chapter(title, parts) for title, parts in _CHAPTERS.items())
    flags = _table(("flag", "default", "what for", "committed"), map(_flag, FLAGS.values()))
    return f"{_HEAD}{chapters}{_FLAGS_HEAD}\n{flags}{_FOOT}"


def _chapter(title: str, parts: tuple[str, ...]) -> str:
    defaults: Mapping[str, SettingValue] = asdict(DEFAULTS)
    rows = (
        _setting(name, known, defaults[name])
        for name, known in SETTINGS.items()
        if known.section in parts
    )
    return f"\n## {title}\n\n{_table(('setting', 'default', 'what for', 'committed'), rows)}"


def _setting(name: str, known: Setting, default: SettingValue) -> tuple[str, ...]:
    names = [camel(name), variable(name)] + ([known.alias] if known.alias else [])
    can = _COMMITTED[known.committed]
    return (
        _lines(names),
        "<br>".join(filter(None, (_format_value(default), _range(known)))),
        known.about,
        "can switch off" if known.kind == "switch" and known.committed == "less" else can,
    )


def _flag(flag: Flag) -> tuple[str, ...]:
    names = dict.fromkeys((flag.name, *flag.aliases, flag.variables[0]))
    default = "{}" if flag.kind == "object" else _format_value(flag.default)
    can = "can switch off" if flag.kind == "switch" and flag.committed_off else "ignored"
    return _lines(list(names)), default, flag.about, can


def _lines(names: list[str]) -> str:
    return "<br>".join(f"`{name}`" for name in names)


def _format_value(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _range(known: Setting) -> str:
    if known.kind in ("whole", "number") and known.low == known.high:
        return "(fixed)"
    if known.kind in ("whole", "number"):
        return f"({known.low:,} to {known.high:,})"
    if known.kind == "switch":
        return ""
    return f"({' or '.join(known.choices) if known.choices else known.kind})"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
