"""What the calls of a round touched, as a query: files by their names, and errors that came back.

That a memory is about the words of it is not enough: errors speak of sessions, requests and paths
as everything does. A memory belongs to a file where it names it, and not one of that name in
another folder; to an error where it has of it what no other error has: a name, a code, or a stretch
of its words. Pure functions of a view and of texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.light import dataclass, pattern
from reverie.memory.rules.calls import CallPlace, parse
from reverie.transcript.blocks import Block, text_of
from reverie.transcript.names import names
from reverie.transcript.records import AssistantMessage, UserMessage
from reverie.transcript.view import View


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAX_PATHS = 12
MAX_ERROR = 400
MAX_FOLDER = 100
LEAST_NAME = 5
"""Letters of a file's name that tell it from others."""
MANY_FILES = 12
"""Files that a memory names, from which on it is about none of them."""
IN_A_ROW = 5
"""Words of an error in a row that are said of no other by chance."""
ALONE = 12
"""Letters of a name in an error that tells it from others by itself; of shorter ones two do."""
_STOCK = pattern(
    r"</?[a-z_]+>|exit (?:code|status) \d+|no such file or directory|permission denied"
    r"|command not found|(?:path|file) does not exist",
    re.IGNORECASE,
)
_CODE = pattern(r"\b[A-Z]+\d{2,}\b")
"""What an error is called in its own list: E0308, TS2345."""
_LOOSE = pattern(r"\b(?:[A-Z]{5,}|\d{3,})\b")
"""What tells beside another: FATAL, 5433."""
_FILE = pattern(r"(?<![\w-])[\w-]{2,}\.[a-z]{1,4}\b")
_SHOUTED = frozenset(("ERROR", "FAILED", "FATAL", "WARNING", "PANIC", "ABORTED"))
_WORD = pattern(r"[^\W_]+")
_APART = pattern(r"[^\w.-]")
_COMMON = _set(
    "readme.md index.ts index.js index.tsx main.py main.go main.rs __init__.py package.json "
    "setup.py mod.rs lib.rs makefile dockerfile test.py utils.py index.html tsconfig.json"
)


@dataclass(frozen=True, slots=True)
class Touched:
    """Names of files, and texts of errors."""

    names: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What is looked for: a sentence each."""
        return "\n".join((*self.names, *self.errors))

    def is_in(self, memory: str) -> bool:
        """Whether a memory, in small letters, names one of the files, or tells of an error."""
        lists = len(set(_FILE.findall(memory))) > MANY_FILES
        named = not lists and any(_is_named(name.lower(), memory) for name in self.names)
        return named or any(_is_told(error, memory) for error in self.errors)


def _is_named(path: str, memory: str) -> bool:
    """Whether a file is named, alone or with the folder it lies in."""
    folder, _, name = path.rpartition("/")
    for found in re.finditer(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", memory):
        before = memory[max(0, found.start() - MAX_FOLDER) : found.start()]
        above = _APART.split(before[:-1])[-1] if before.endswith("/") else ""
        if not folder or above in ("", ".", folder):
            return True
    return False


def _is_told(error: str, memory: str) -> bool:
    """Whether a memory has of an error what tells it from others."""
    said = _STOCK.sub(" ", error)
    words = {*names(said), *_CODE.findall(said), *_LOOSE.findall(said)} - _SHOUTED
    there = [one for one in words if _has(memory, one.lower())]
    if len(there) > 1 or any(len(one) >= ALONE or _CODE.fullmatch(one) for one in there):
        return True
    text = " ".join(_WORD.findall(memory))
    return any(f" {row} " in f" {text} " for row in _rows(said.lower()))


def _has(memory: str, word: str) -> bool:
    return re.search(rf"(?<![\w]){re.escape(word)}(?![\w])", memory) is not None


def _rows(said: str) -> Iterator[str]:
    """Each stretch of a few words in a row, within a line."""
    for line in said.splitlines():
        words = _WORD.findall(line)
        for at in range(len(words) - IN_A_ROW + 1):
            yield " ".join(words[at : at + IN_A_ROW])


def touched(view: View) -> Touched:
    """What the calls touched whose results were added last; nothing where it was no round."""
    results = _last_results(view)
    if not results:
        return Touched()
    answered = {block.call for block in results}
    calls = [block for block in _last_calls(view) if block.call in answered]
    files = dict.fromkeys(name for block in calls for name in _names(block))
    errors = [text_of(b.value)[:MAX_ERROR] for b in results if b.value.get("is_error") is True]
    return Touched(tuple(files)[:MAX_PATHS], tuple(filter(None, errors))[:2])


def _last_results(view: View) -> tuple[Block, ...]:
    found: list[Block] = []
    for at in range(len(view.entries) - 1, -1, -1):
        record = view.entries[at].record
        if isinstance(record, AssistantMessage):
            break
        if isinstance(record, UserMessage):
            found += [block for block in record.blocks if block.type == "tool_result"]
    return tuple(found)


def _last_calls(view: View) -> tuple[Block, ...]:
    for at in range(len(view.entries) - 1, -1, -1):
        record = view.entries[at].record
        if isinstance(record, AssistantMessage):
            return tuple(block for block in record.blocks if block.type == "tool_use")
    return ()


def _names(block: Block) -> Iterator[str]:
    call = parse(block.get("name"), block.value.get("input"), CallPlace("/"))
    for act in call.acts:
        for path in act.paths:
            folder, _, name = path.rstrip("/").rpartition("/")
            telling = len(name) >= LEAST_NAME and "." in name and name.lower() not in _COMMON
            if telling:
                yield f"{folder.rpartition('/')[2]}/{name}".lstrip("/")
