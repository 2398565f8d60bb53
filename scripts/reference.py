"""Writes the pages of docs/reference that are made from the code.

Settings and flags, commands and their options, the library. `--check` writes nothing and fails
where a page is not what the code says, or where a public name, a setting, an option or an argument
says nothing of itself.

    python -m scripts.reference [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from reverie.apps.cli import COMMANDS, build, load
from reverie.settings import FLAGS, SETTINGS
from reverie.settings import page as settings_page
from scripts import api_reference

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("docs/reference")

COMMAND_LINE = """\
# Every command

[The command line](../cli.md) tells what the commands are for, with examples, and what exit codes
mean. `reverie help COMMAND` shows at a terminal what this page says.
"""

Walked = Iterator[tuple[str, click.Command]]


def commands() -> Walked:
    """Every command with the words that call it, the program itself first."""
    top = build()
    yield "reverie", top
    for name in COMMANDS:
        yield from _below(f"reverie {name}", load(name))


def _below(words: str, command: click.Command) -> Walked:
    yield words, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _below(f"{words} {name}", inner)


def cli_page() -> str:
    """Each command, what it does and what it takes."""
    told = (_command(words, one) for words, one in commands())
    return "\n".join([COMMAND_LINE, *told, api_reference.FOOT])


def _command(words: str, command: click.Command) -> str:
    level = "##" if words.count(" ") < 2 else "###"
    context = click.Context(command, info_name=words)
    usage = " ".join([words, *command.collect_usage_pieces(context)])
    rows = [_row(context, one) for one in command.params if not getattr(one, "hidden", False)]
    table = ["| given | what it does |", "| --- | --- |", *rows] if rows else []
    about = (command.help or "").replace("\b\n", "").strip()
    lines = [f"{level} {words}", "", f"`{usage}`", "", *_flush(about), ""]
    return "\n".join([*lines, *table, *([""] if table else [])])


def _flush(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def _row(context: click.Context, one: click.Parameter) -> str:
    told = one.get_help_record(context)
    name = told[0] if told else one.make_metavar(context)
    about = told[1] if told else ""
    return f"| `{_cell(name)}` | {_cell(about)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def silent(walked: Walked) -> Iterator[str]:
    """Options and arguments without a word of help, commands and settings without any."""
    for words, command in walked:
        if not (command.help or "").strip():
            yield f"`{words}` says nothing of itself"
        for one in command.params:
            if not getattr(one, "help", "") and not getattr(one, "hidden", False):
                yield f"`{words}`: {'/'.join(one.opts)} has no help"
    for name, known in (*SETTINGS.items(), *FLAGS.items()):
        if not known.about:
            yield f"{name}: nothing says what it is for"


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page.page,
    "cli.md": cli_page,
    "api.md": api_reference.library_page,
    "modules.md": api_reference.modules_page,
}


def stale(folder: Path) -> Iterator[str]:
    """Pages that are not what the code says."""
    for name, made in PAGES.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != made():
            yield f"{FOLDER / name}: not what the code says; run `python -m scripts.reference`"


def main(*given: str) -> int:
    folder = ROOT / FOLDER
    if "--check" in given:
        found = [*stale(folder), *silent(commands()), *api_reference.problems()]
        print("\n".join(found) or f"reference: {len(PAGES)} pages say what the code says")
        return bool(found)
    folder.mkdir(parents=True, exist_ok=True)
    for name, made in PAGES.items():
        (folder / name).write_text(made(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
