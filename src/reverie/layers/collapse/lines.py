"""The lines that stand for sealed rounds.

What was said stands as `words` has it. A call is one line: its tool, what it was asked, its
reference; under it how it ended, and the names in it that a later step could need. A command
ends in the last line of its output, an edit tells old and new, a list how long it was; an
error is one only where the result is marked as one, or a command printed it. A name or path
is given once in a seal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reverie.layers.collapse import words
from reverie.layers.collapse.words import one_line
from reverie.settings import Settings
from reverie.transcript.blocks import Block, Json, text_of
from reverie.transcript.messages import Item
from reverie.transcript.names import first_names, reference
from reverie.transcript.records import is_wish

RESULT_NAMES = 640  # characters of names kept of a result, at most
LONG_NAMES = 1_500  # the same of a long one, or one that was stored as it arrived
WRITTEN_NAMES = 800  # the same of what a call wrote: names that nobody but the model knows
WRITTEN_AT = 6_000  # characters of it that are searched
NAMES_SHARE = 3  # and never more than this part of the result
LONG_SHARE = 10  # of a long one, this part
LOOKED_AT = 16  # characters that are searched, for each of names
TROUBLE_AT = 600  # characters at its end that are searched for trouble
CHANGED = 40  # characters of each side of an edit
FOREIGN = "mcp__"  # how clients name the tools of other servers
_STORED, _NAMES = "<persisted-output>", "Names in it: "
_TROUBLE = re.compile(
    r"(?<![\w.])(?:(?:[A-Z]\w*)?Error|FAILED|FAIL|Traceback|(?:error|fatal|panic)(?=:))(?!\w)"
)
_PATH_KEYS = ("file_path", "path", "notebook_path")
_WRITTEN = ("new_string", "content", "new_source", "command", "todos", "edits", "prompt")
_LISTS = ("Grep", "Glob", "LS")


def seal_lines(settings: Settings, items: Sequence[Item], behind: Sequence[Item] = ()) -> str:
    """The lines of some rounds, and what stands behind them in plain sight: whether the user
    replied is told by that."""
    sealing = _Sealing(settings, items, behind)
    return "\n".join([line for at in range(len(items)) for line in sealing.item(at)])


class _Sealing:
    """`said` are the names given so far: each is given once."""

    def __init__(self, settings: Settings, items: Sequence[Item], behind: Sequence[Item]) -> None:
        self.items = [*items, *behind]
        self.width = settings.collapse_line
        self.bytes = settings.text_bytes_per_token
        self.said: set[str] = set()
        self.results = {
            piece.block.call: piece.block
            for item in items
            if item.results
            for piece in item.pieces
            if piece.block.type == "tool_result"
        }

    def item(self, at: int) -> Iterator[str]:
        item = self.items[at]
        if item.role == "assistant":
            yield from self._answer(item, at)
        elif item.kind != "attached":
            yield from self._told(item)

    def _told(self, item: Item) -> Iterator[str]:
        for piece in item.pieces:
            block = piece.block
            if block.type == "text":
                text = block.get("text")
                if is_wish(text):
                    yield words.of_user(text, reference(item.id), self.bytes)
                else:
                    yield words.aside(text, reference(item.id))
            elif block.type != "tool_result":
                yield f"[{block.type}] {reference(item.id)}"

    def _answer(self, item: Item, at: int) -> Iterator[str]:
        """A message of the assistant's: its text, then its calls with what came of each."""
        replied = _is_replied_to(self.items, at)
        for piece in item.pieces:
            block = piece.block
            if block.type == "text" and not block.blank:
                text = block.get("text")
                if replied:
                    yield words.of_assistant(text, reference(item.id), None)
                elif item.calls:
                    yield words.in_passing(text)
                else:
                    yield words.of_assistant(text, reference(item.id))
            elif block.type == "tool_use":
                yield from self._call(block)

    def _call(self, block: Block) -> Iterator[str]:
        given, result = block.value.get("input"), self.results.get(block.call)
        name, ref = block.get("name"), reference(block.call)
        asked_for = self._given(given, max(20, self.width - len(name) - len(ref)))
        yield f"> {name} {asked_for} {ref}"
        if result is not None:
            spoken = ""
            if not name.startswith(FOREIGN):  # what such a tool returns is nobody's word
                from reverie.transcript.recorded import asked

                result, spoken = asked.apart(result, name)
            text = text_of(result.value.get("content"))
            failed = result.value.get("is_error") is True
            yield from _outcome(name, given, text, failed, self.width)
            if found := self._names(text, given):
                yield "  " + " ".join(found)
            if spoken:
                yield f"<user>{spoken}</user>"

    def _given(self, value: Json, width: int) -> str:
        """What a call was asked, on one line; a path that was named before, by its last part."""
        parts: list[str] = []
        for key, member in value.items() if isinstance(value, dict) else ():
            if key in _PATH_KEYS and isinstance(member, str):
                bare = member.rstrip("./-")
                parts.append(f"…/{member.rpartition('/')[2]}" if bare in self.said else member)
                self.said.add(bare)
            elif key == "old_string" and isinstance(value, dict):
                parts.append(_changed(str(member), str(value.get("new_string", ""))))
            elif key != "new_string" or not isinstance(value, dict) or "old_string" not in value:
                parts.append(_words(member, width))
        return one_line(" ".join([part for part in parts if part]), width)

    def _names(self, text: str, given: Json) -> list[str]:
        """What a call and its result name, for the first time."""
        found = first_names(_written(given), WRITTEN_NAMES, WRITTEN_AT, self.said)
        if text.startswith(_STORED) and _NAMES in text:  # the preview tells them
            told = text.partition(_NAMES)[2].partition("\n")[0]
            return found + first_names(told, LONG_NAMES, len(told), self.said)
        most = min(max(RESULT_NAMES, len(text) // LONG_SHARE), len(text) // NAMES_SHARE, LONG_NAMES)
        return found + first_names(text, most, LOOKED_AT * most, self.said)


def _is_replied_to(items: Sequence[Item], at: int) -> bool:
    """Whether the user spoke next: before anything else of the assistant's."""
    for item in items[at + 1 :]:
        if item.role == "assistant":
            return False
        if item.kind == "message" and any(
            p.block.type == "text" and is_wish(p.block.get("text")) for p in item.pieces
        ):
            return True
    return False


def _written(given: Json) -> str:
    if not isinstance(given, dict):
        return ""
    return "\n".join([_words(given[k], WRITTEN_AT) for k in _WRITTEN if k in given])


def _changed(old: str, new: str) -> str:
    """An edit's old and new, from where they part."""
    before, after = old.split("\n"), new.split("\n")
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    told = [one_line("\n".join(lines[same:]), CHANGED) or "nothing" for lines in (before, after)]
    return " → ".join(told)


def _words(value: Json, width: int) -> str:
    """The texts and numbers in a value; switches say little."""
    if isinstance(value, str):
        return value[: width * 2]
    if isinstance(value, dict):
        return " ".join([_words(member, width) for member in value.values()])
    if isinstance(value, list):
        return " ".join([_words(member, width) for member in value[:20]])
    return "" if value is None or isinstance(value, bool) else str(value)


# --- how a call ended


def _outcome(name: str, given: Json, text: str, failed: bool, width: int) -> Iterator[str]:
    runs = isinstance(given, dict) and isinstance(given.get("command"), str)
    if runs:
        last = _last_line(text, width)
        yield from _trouble(text, last, width)
        if last:
            yield f"  = {last}"
    elif failed:
        yield f"  ! {one_line(text, 2 * width)}"
    elif name in _LISTS and not text.startswith(_STORED):
        yield f"  = {text.count(chr(10)) + 1:,} lines" if text.strip() else "  = nothing"


def _last_line(text: str, width: int) -> str:
    """The last line with words in it; of a stored result, of what is shown of its end."""
    end = text[-TROUBLE_AT:].rstrip()
    if text.startswith(_STORED):
        end = end.rpartition("\n")[0].rstrip()
    return one_line(end.rpartition("\n")[2], width)


def _trouble(text: str, last: str, width: int) -> Iterator[str]:
    """The line a command's output ends in trouble with, if it does."""
    end = text[-TROUBLE_AT:]
    at = max([found.start() for found in _TROUBLE.finditer(end)], default=-1)
    if at >= 0:
        start = end.rfind("\n", 0, at) + 1
        line = one_line(end[max(start, at - width) :].partition("\n")[0], width)
        if line != last:
            yield f"  ! {line}"


def subject(block: Block) -> str:
    """What a call was about: its path; else its tool and the first words of what was asked."""
    given = block.value.get("input")
    if isinstance(given, dict):
        for key in _PATH_KEYS:
            if isinstance(given.get(key), str) and "pattern" not in given:
                return str(given[key])
    return ""
