"""The page about settings and flags, made from the code, so that it cannot be wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from reverie.settings.kinds import Committed, Setting, SettingValue, camel
from reverie.settings.numbers import DEFAULTS, SETTINGS
from reverie.settings.sources import variable
from reverie.settings.switches import FLAGS, Flag

_HEAD = """\
# Settings and flags

This page is made from the code: `python -m scripts.reference`.

## Where settings come from

Strongest first. The first source with a good value answers, for each setting by itself.

1. policy: `/etc/reverie/settings.json`
2. environment: the variables below; where a variable has an alias, our own name goes first
3. local: `.reverie/settings.local.json` below the repository's root
4. project: `.reverie/settings.json` below the repository's root
5. user: `settings.json` in home (`~/.reverie`, or `REVERIE_HOME`)

Files are JSON objects. A setting may be spelt as its JSON key or as its name. A value that
cannot be used is reported with its file, key and reason, and the next source answers.

The local file is trusted where its digest stands in home: recorded when you answered "always" at
a permission prompt, or ran `reverie trust`, which shows what the file would do. A file that
nobody approved, that was declined, or that has changed since counts as committed, like the
project's file. The column *committed* says what such a file can do to a setting, compared with
the value that holds without it: nothing where it says *ignored*.

A `share` is a fraction between 0 and 1. A folder must be absolute or begin with `~/`, lie at
least two folders deep, and not be the user's own folder or above it.

## Settings
"""

_COMMITTED: Mapping[Committed, str] = {
    "never": "ignored",
    "less": "can lower",
    "more": "can raise",
    "free": "can set",
}

_FLAGS_HEAD = """
## Flags

Flags act while the program runs, without a restart. Strongest first: policy, what the program
itself has set, the environment, `flags.json` in home (`reverie flags set NAME VALUE`), and an
object `flags` in the local, project and user settings. An alias is accepted wherever a name
is, also as an environment variable. A file that a repository may have brought can
switch off the flags marked so, and do nothing else.
"""


def page() -> str:
    """The whole page, as Markdown."""
    defaults: Mapping[str, SettingValue] = asdict(DEFAULTS)
    settings = _table(
        ("name", "JSON key", "environment", "default", "range", "§", "what for", "committed"),
        (_setting(name, known, defaults[name]) for name, known in SETTINGS.items()),
    )
    flags = _table(
        ("name", "default", "environment", "aliases", "§", "what for", "committed"),
        map(_flag, FLAGS.values()),
    )
    return f"{_HEAD}\n{settings}{_FLAGS_HEAD}\n{flags}"


def _setting(name: str, known: Setting, default: SettingValue) -> tuple[str, ...]:
    variables = [variable(name)] + ([known.alias] if known.alias else [])
    can = _COMMITTED[known.committed]
    return (
        f"`{name}`",
        f"`{camel(name)}`",
        ", ".join(f"`{it}`" for it in variables),
        _shown(default),
        _range(known),
        known.section,
        known.about,
        "can switch off" if known.kind == "switch" and known.committed == "less" else can,
    )


def _flag(flag: Flag) -> tuple[str, ...]:
    aliases = ", ".join(f"`{alias}`" for alias in flag.aliases)
    default = "{}" if flag.kind == "object" else _shown(flag.default)
    variables = f"`{flag.variables[0]}`"
    can = "can switch off" if flag.kind == "switch" and flag.committed_off else "ignored"
    return f"`{flag.name}`", default, variables, aliases, flag.section, flag.about, can


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _range(known: Setting) -> str:
    if known.kind in ("whole", "number"):
        return f"{known.low:,} to {known.high:,}"
    return " or ".join(known.choices) if known.choices else known.kind.replace("switch", "on, off")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
