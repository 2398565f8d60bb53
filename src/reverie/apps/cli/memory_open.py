"""What the `reverie memory` commands begin with: the project's memory, notices on stderr."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

import click

from reverie.apps.cli.show import tell
from reverie.errors import InvalidInput, NotFound
from reverie.memory.trust import Trust
from reverie.memory.versions import Origin
from reverie.session import open_memory as opening
from reverie.store.memories import Memories
from reverie.store.project import Project


def find_memory(project: Project) -> AbstractContextManager[Memories | None]:
    """The project's memory; None where there is none."""
    return opening.find_memory(project, tell)


def open_memory(project: Project) -> AbstractContextManager[Memories]:
    """The project's memory, made where it is missing."""
    return opening.open_memory(project, tell)


def by_user(kind: str, note: str = "") -> Origin:
    """A change that a person asked for on the command line."""
    return Origin(kind, Trust.USER, agent="user", tool="cli", note=note)


with_option = click.option(
    "--with",
    "source",
    default="",
    metavar="FILE",
    help="A file with the new contents; - for stdin.",
)


def contents_from(source: str) -> bytes:
    """The bytes of a file that was named, or with `-` of stdin."""
    if source == "-":
        return text_from("-").encode()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise NotFound(f"The file cannot be read: {error.strerror}", where=source) from error


def text_from(given: str) -> str:
    """A text given as it is, or with `-` on stdin."""
    if given != "-":
        return given
    with os.fdopen(os.dup(0), "rb") as stdin:
        data = stdin.read()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1} is {data[error.start]:#04x}"
        raise InvalidInput(
            f"What came on stdin is no UTF-8 text: {byte}",
            do="Convert it first, as with `iconv -f latin1 -t utf-8`",
        ) from None
