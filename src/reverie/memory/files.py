"""A memory as a folder of files at `/memories`, for models that know it so.

Six commands: view, create, str_replace, insert, delete, rename. What a model writes comes back to
the byte; our head with name, description and type stands before it in the file and is not shown.
Each change is a version that can be taken back, an agent's word, and refused where it holds a
secret or a forgotten word. A file that does not end in `.md` lies under its name with an
ending of ours. The index is kept by itself: it is neither listed nor written.

The sentences are those of the SDK's own file system tool, since models were trained on them.
"""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from reverie.errors import InvalidInput, NotFound, ReverieError
from reverie.store.files import Changed
from reverie.store.fs import digest
from reverie.topics import entry as entries
from reverie.topics.entry import TopicFile, is_index, is_topic, sort_of, summary_of

if TYPE_CHECKING:
    from reverie.memory.memory import Memory
    from reverie.session.open_memory import OpenMemory
    from reverie.store.memory_store import SaveOutcome
    from reverie.topics.versions import Origin

Author: TypeAlias = "Callable[..., Origin]"
"""Makes the origin of a change out of an action and a note."""
ROOT = "/memories"
TOOL = "memory"
OTHER = ".file.md"
"""The ending under which a file lies whose own is not `.md`."""
MAX_LINES = 999_999
_WIDTH = len(str(MAX_LINES))
_FOLDER_SIZE = 4096
_UNITS = ("B", "K", "M", "G")


class CommandRefused(ReverieError, code="command_refused"):
    """A command that cannot be done; the sentence is for the model."""


class MemoryFiles:
    """The files of one memory."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @contextmanager
    def _open_writer(self) -> Generator[tuple[Author, OpenMemory]]:
        """The memory, for this command alone; whatever is refused is told to the model."""
        memory = self._memory.__as_model__(TOOL)
        try:
            with memory._open() as one:  # pyright: ignore[reportPrivateUsage]
                yield memory._origin, one  # pyright: ignore[reportPrivateUsage]
        except CommandRefused:
            raise
        except ReverieError as error:
            raise CommandRefused(str(error)) from None

    # Looking

    def view(self, path: str, lines: Sequence[int] | None = None) -> str:
        with self._open_writer() as (_, one):
            key = _key(path)
            if key and _is_file(one, key):
                return _numbered_text(path, _text(one, key), lines)
            if not _is_folder(one, key):
                raise _missing(path)
            return _list_folder(one, key, path)

    # Changing

    def create(self, path: str, text: str) -> str:
        with self._open_writer() as (origin, one):
            key = _writable_key(path)
            if _is_folder(one, _key(path)):
                raise CommandRefused(f"File {path} already exists")
            try:
                data = _new(key, _name(key), text)
                _check_saved(one.store.save(key, data, origin("save"), exclusive=True))
            except Changed:
                raise CommandRefused(f"File {path} already exists") from None
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old: str, new: str) -> str:
        with self._open_writer() as (origin, one):
            key = _existing(one, path)
            text = _text(one, key)
            count = text.count(old)
            if count == 0:
                raise CommandRefused(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in "
                    f"{path}."
                )
            if count > 1:
                where = ", ".join(map(str, _lines_of(text, old)))
                raise CommandRefused(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in "
                    f"lines: {where}. Please ensure it is unique"
                )
            changed = text.replace(old, new)
            _put(origin, one, key, changed)
        rows = changed.split("\n")
        at = text[: text.find(old)].count("\n")
        first, end = max(0, at - 2), min(len(rows), at + 3)
        snippet = _rows(rows[first:end], first + 1)
        told = "The memory file has been edited. Here is the snippet showing the change"
        return f"{told} (with line numbers):\n{snippet}"

    def insert(self, path: str, line: int, text: str) -> str:
        with self._open_writer() as (origin, one):
            key = _existing(one, path)
            rows = _text(one, key).split("\n")
            if rows[-1] == "":
                rows.pop()
            if line < 0 or line > len(rows):
                raise CommandRefused(
                    f"Invalid `insert_line` parameter: {line}. It should be within the range "
                    f"[0, {len(rows)}]."
                )
            rows.insert(line, text.rstrip("\n"))
            made = "\n".join(rows)
            _put(origin, one, key, made if made.endswith("\n") else f"{made}\n")
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        with self._open_writer() as (origin, one):
            key = _key(path)
            if not key:
                raise CommandRefused(f"Cannot delete the {ROOT} directory itself")
            _must_not_be_the_index(key)
            if _is_file(one, key):
                one.store.remove(key, origin("remove"))
            elif _is_folder(one, key):
                for found in _below(one, key):
                    one.store.remove(found, origin("remove"))
                _forget_folders(one, key)
            else:
                raise CommandRefused(f"The path {path} does not exist")
        return f"Successfully deleted {path}"

    def rename(self, old: str, new: str) -> str:
        with self._open_writer() as (origin, one):
            source, target = _key(old), _key(new)
            if not source:
                raise CommandRefused(f"Cannot rename the {ROOT} directory itself")
            _must_not_be_the_index(source)
            if not target or _is_file(one, target) or _is_folder(one, target):
                raise CommandRefused(f"The destination {new} already exists")
            if _is_file(one, source):
                _move(origin, one, source, _writable_key(new))
            elif _is_folder(one, source):
                for key in _below(one, source):
                    _move(origin, one, key, f"{_folder(new)}{key.removeprefix(_folder(old))}")
                _forget_folders(one, source)
            else:
                raise CommandRefused(f"The path {old} does not exist")
        return f"Successfully renamed {old} to {new}"

    def clear(self) -> str:
        with self._open_writer() as (origin, one):
            for key in tuple(one.store.folder.keys()):
                one.store.remove(key, origin("remove"))
        return "All memory cleared"


# Paths


def _inside(path: str) -> str:
    """A path below the root, as it resolves."""
    if not path.startswith(ROOT):
        raise CommandRefused(f"Path must start with {ROOT}, got: {path}")
    found = posixpath.normpath(f"{ROOT}/{path.removeprefix(ROOT).lstrip('/')}")
    if found != ROOT and not found.startswith(f"{ROOT}/"):
        raise CommandRefused(f"Path {path} would escape {ROOT} directory")
    return found.removeprefix(ROOT).lstrip("/")


def _key(path: str) -> str:
    """The file in the memory that a path names; "" for the root."""
    found = _inside(path)
    if not found or found.lower().endswith(".md"):
        return found
    return f"{found}{OTHER}"


def _folder(path: str) -> str:
    return f"{_inside(path)}/"


def _writable_key(path: str) -> str:
    """The same, for a file that is to be written."""
    key = _key(path)
    _must_not_be_the_index(key)
    if not key or key.removesuffix(OTHER).endswith(OTHER) or not is_topic(key):
        raise CommandRefused(f"{path} is not a name for a memory file")
    if _inside(path).lower().endswith(OTHER):
        raise CommandRefused(f"Names do not end in {OTHER}: {path}")
    return key


def _must_not_be_the_index(key: str) -> None:
    if key and is_index(key):
        raise CommandRefused(f"{ROOT}/{key} is kept by itself: write a file for each subject")


def _name(key: str) -> str:
    """A file as the model knows it."""
    return key.removesuffix(OTHER)


def _missing(path: str) -> CommandRefused:
    return CommandRefused(f"The path {path} does not exist. Please provide a valid path.")


def _existing(one: OpenMemory, path: str) -> str:
    key = _key(path)
    if key and is_topic(key) and one.store.folder.exists(key):
        return key
    if _is_folder(one, key):
        raise CommandRefused(f"The path {path} is not a file.")
    _must_not_be_the_index(key)
    raise _missing(path)


def _is_file(one: OpenMemory, key: str) -> bool:
    return (is_topic(key) or is_index(key)) and one.store.folder.exists(key)


def _below(one: OpenMemory, key: str) -> list[str]:
    """The files in a folder and those below it."""
    start = f"{key.removesuffix(OTHER)}/" if key else ""
    every = one.store.folder.keys()
    return [found for found in every if found.startswith(start)]


def _is_folder(one: OpenMemory, key: str) -> bool:
    if not key or _below(one, key):
        return True
    path = one.store.root.joinpath(*_name(key).split("/"))
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def _forget_folders(one: OpenMemory, key: str) -> None:
    """Take away the folders that are left empty."""
    top = one.store.root.joinpath(*_name(key).split("/"))
    for folder in (*sorted((p for p in top.rglob("*") if p.is_dir()), reverse=True), top):
        try:
            folder.rmdir()
        except OSError:
            return


# Texts


def _new(key: str, name: str, text: str) -> bytes:
    """A file with our head before the model's own text."""
    kind = sort_of(text)
    about = summary_of(text) if text.strip() else name
    head = entries.new(key, name=name, description=about, type=kind, body="")
    return head.data[: head.front.body] + b"\n" + _encode_text(text)


def _encode_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("The text is not valid Unicode") from None


def _body(topic: TopicFile) -> bytes:
    """What stands behind the head and its empty line."""
    found = topic.data[topic.front.body :]
    if not topic.front.present:
        return found
    return found.removeprefix(b"\r\n") if found.startswith(b"\r\n") else found.removeprefix(b"\n")


def _text(one: OpenMemory, key: str) -> str:
    return _body(one.store.folder.read(key)).decode("utf-8", "replace")


def _put(origin: Author, one: OpenMemory, key: str, text: str) -> None:
    """Another text behind the same head; a description that came from the text follows it."""
    topic = one.store.folder.read(key)
    old = _body(topic)
    made = topic
    if text.strip() and topic.description == summary_of(old.decode("utf-8", "replace")):
        made = topic.with_value(summary_of(text), "description")
    head = made.data[: len(made.data) - len(old)]
    data = head + _encode_text(text)
    _check_saved(one.store.save(key, data, origin("edit"), expect=digest(topic.data)))


def _check_saved(done: SaveOutcome) -> None:
    if done.queued is not None:
        raise CommandRefused(
            f"Not saved yet: it reads like an instruction ({done.queued.reason}), so it waits for "
            "the person's look (`reverie memory review`). Tell them."
        )


def _move(origin: Author, one: OpenMemory, source: str, target: str) -> None:
    """The new file first: cut off between the two, the text is there twice, never not at all."""
    data = one.store.folder.bytes_of(source)
    try:
        made = origin("save", f"was {source}")
        one.store.save(target, data, made, exclusive=True, reviewed=True)  # its words are not new
    except Changed:
        where = f"{ROOT}/{_name(target)}"
        raise CommandRefused(f"The destination {where} already exists") from None
    one.store.remove(source, origin("remove", f"now {target}"))


def _lines_of(text: str, wanted: str) -> Iterator[int]:
    at = text.find(wanted)
    while at != -1:
        yield text[:at].count("\n") + 1
        at = text.find(wanted, at + 1)


def _numbered_text(path: str, text: str, wanted: Sequence[int] | None) -> str:
    rows = text.split("\n")
    if len(rows) > MAX_LINES:
        raise CommandRefused(f"File {path} exceeds maximum line limit of {MAX_LINES:,} lines.")
    first = 1
    if wanted and len(wanted) == 2:
        first = max(1, wanted[0])
        rows = rows[first - 1 : None if wanted[1] == -1 else wanted[1]]
    return f"Here's the content of {path} with line numbers:\n{_rows(rows, first)}"


def _rows(rows: Sequence[str], first: int) -> str:
    return "\n".join(f"{n:>{_WIDTH}}\t{row}" for n, row in enumerate(rows, first))


# Lists


def _list_folder(one: OpenMemory, key: str, path: str) -> str:
    start = f"{key.removesuffix(OTHER)}/" if key else ""
    found: dict[str, int] = {}
    for each in _below(one, key):
        names = _name(each).removeprefix(start).split("/")
        if any(name.startswith(".") for name in names[:2]):
            continue
        for depth in range(1, min(len(names), 3)):
            found["/".join(names[:depth]) + "/"] = _FOLDER_SIZE
        if len(names) <= 2:
            found["/".join(names)] = len(_body(_whole(one, each)))
    rows = [f"{_size(_FOLDER_SIZE)}\t{path}"]
    ordered = sorted(found, key=lambda name: name.rstrip("/").split("/"))
    rows += [f"{_size(found[name])}\t{path}/{name}" for name in ordered]
    told = (
        f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    )
    return "\n".join([told, *rows])


def _whole(one: OpenMemory, key: str) -> TopicFile:
    try:
        return one.store.folder.read(key)
    except NotFound:
        return TopicFile(key, b"")


def _size(count: int) -> str:
    step = min(max(count.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    value = count / 1024**step
    return f"{int(value) if value == int(value) else f'{value:.1f}'}{_UNITS[step]}"
