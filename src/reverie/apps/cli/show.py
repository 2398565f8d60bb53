"""What a person sees, and what a program reads.

Text of others is never printed as it is: escape sequences, control signs and signs that
turn the direction of writing are taken out first, since a terminal would obey them.
Colour and boxes are for a terminal alone; into a pipe goes plain text in columns. With
`--json` a command prints one JSON document and nothing else on stdout.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO, TypeVar

from reverie.text.terminal import clean, line

if TYPE_CHECKING:
    import click
    from rich.console import Console

    from reverie.world import Notice

T = TypeVar("T")
U = TypeVar("U")

PATIENCE = 1.0
"""Seconds after which people are shown that something goes on."""

_NARROWEST = 12

_UNPRINTABLE = re.compile(
    r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff]"
)


def inert(text: str) -> str:
    """A JSON text of the same value that a terminal can show: what it would obey is escaped."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def encoded(value: object) -> str:
    """A value as JSON text, safe to print anywhere."""
    return inert(json.dumps(value, ensure_ascii=False, indent=2))


def json_line(value: object) -> None:
    """A value on one line, at once: what a server says when it listens."""
    print(inert(json.dumps(value, ensure_ascii=False)), flush=True)


def document(value: object) -> None:
    """The one answer of a command to `--json`."""
    sys.stdout.write(encoded(value) + "\n")


def hand_down(context: click.Context) -> None:
    """What was given before a command's name counts for the command too."""
    given = {name: value for name, value in context.params.items() if value}
    if "project" in given:
        given["project"] = given["project"].cwd  # the folder, as the option takes it
    if context.invoked_subcommand is not None:
        context.default_map = {context.invoked_subcommand: given}


def raw(text: str) -> None:
    """JSON text to stdout byte for byte; on a terminal in a spelling that is inert there."""
    if sys.stdout.isatty():
        sys.stdout.write(inert(text) + "\n")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")
    sys.stdout.buffer.flush()


def console(stream: TextIO | None = None) -> Console:
    """A console that colours on a terminal alone, and never reads markup out of a text."""
    from rich.console import Console

    from reverie.settings import environment

    out = stream or sys.stdout
    on_terminal = out.isatty()
    return Console(
        file=out,
        force_terminal=on_terminal,
        no_color=bool(environment().get("NO_COLOR")) or not on_terminal,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=not on_terminal,
    )


def say(text: str = "", style: str = "", indent: int = 0) -> None:
    """Lines for people, on stdout."""
    if not sys.stdout.isatty():
        for one in clean(text).split("\n"):
            sys.stdout.write((" " * indent + one).rstrip() + "\n")
        return
    from rich.padding import Padding
    from rich.text import Text

    shown = Text(clean(text), style=style)
    console().print(Padding(shown, (0, 0, 0, indent)) if indent else shown)


def note(text: str) -> None:
    """A line beside the answer, on stderr."""
    sys.stderr.write(clean(text) + "\n")


def tell(notice: Notice) -> None:
    """What the library has to say, on stderr."""
    note(notice.text)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    right: bool = False
    style: str = ""
    wraps: bool = False
    cut: bool = False  # gives way where a terminal is too narrow for all


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Rows under heads: boxes and colours on a terminal, plain columns elsewhere."""
    cells = [[clean(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _boxed(columns, cells)
    else:
        _plain(columns, cells)


def _boxed(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    out = console()
    heads = [column.name for column in columns]
    widths = [max(map(cell_len, cells_of)) for cells_of in zip(heads, *cells, strict=True)]
    fixed = sum(w for w, column in zip(widths, columns, strict=True) if not column.cut)
    sharing = max(1, sum(column.cut for column in columns))
    room = max(_NARROWEST, (out.width - fixed - 3 * len(columns)) // sharing)
    for column in columns:
        shown.add_column(
            column.name,
            justify="right" if column.right else "left",
            style=column.style or None,
            no_wrap=not column.wraps,
            overflow="fold" if column.wraps else "ellipsis",
            min_width=_NARROWEST if column.cut and column.wraps else None,
            max_width=room if column.cut else None,
        )
    for row in cells:
        shown.add_row(*[Text(cell) for cell in row])
    out.print(shown)


def _plain(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> None:
    from rich.cells import cell_len

    every = [[column.name for column in columns], *([line(c, 10_000) for c in r] for r in cells)]
    widths = [max(cell_len(row[n]) for row in every) for n in range(len(columns))]
    for row in every:
        padded: list[str] = []
        for cell, width, column in zip(row, widths, columns, strict=True):
            space = " " * (width - cell_len(cell))
            padded.append(space + cell if column.right else cell + space)
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def watched(items: Sequence[T], what: str, work: Callable[[T], U]) -> Iterator[U]:
    """The work on each item; on a terminal, with progress once a second has passed."""
    started = time.monotonic()
    bar = None
    try:
        for count, item in enumerate(items):
            if bar is None and sys.stderr.isatty() and time.monotonic() - started > PATIENCE:
                from rich.progress import Progress

                bar = Progress(console=console(sys.stderr), transient=True)
                bar.add_task(what, total=len(items), completed=count)
                bar.start()
            yield work(item)
            if bar is not None:
                bar.advance(bar.task_ids[0])
    finally:
        if bar is not None:
            bar.stop()


@contextlib.contextmanager
def waiting(what: str) -> Generator[None]:
    """A sign of life for work in one piece: on a terminal, once a second has passed."""
    if not sys.stderr.isatty():
        yield
        return
    status = console(sys.stderr).status(what)
    later = threading.Timer(PATIENCE, status.start)
    later.daemon = True
    later.start()
    try:
        yield
    finally:
        later.cancel()
        later.join()
        status.stop()
