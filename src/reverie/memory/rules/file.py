"""The compiled rules of a project as one file, made so that a look reads little of it.

The first line is JSON with the index; behind it every rule stands on a line of its own, found by
where it begins. So a hook that starts for one call parses the index and the rules that may hold,
and nothing else, however many there are. A file of another version is no file. A leaf.
"""

from __future__ import annotations

import json

from reverie.memory.rules.match import CompiledRule, index_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION = 1
FOLDER = "compiled-rules"
"""Below home: one file for each project, and what hooks remember of a turn."""
_LONGEST = 120


def name_of(root: str) -> str:
    """The file's name for a project's root; what it was cut from stands in the file."""
    name = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in root)
    number = 0
    for sign in root.encode("utf-8", "surrogateescape"):
        number = (number * 131 + sign) % (1 << 61)
    return f"{name[-_LONGEST:]}-{number:016x}"


def packed(root: str, folder: str, rules: Sequence[CompiledRule], by: str = "") -> bytes:
    """The file's bytes; `by` is the version that compiled the rules."""
    lines = [json.dumps(rule, ensure_ascii=False, separators=(",", ":")).encode() for rule in rules]
    places: list[int] = []
    at = 0
    for line in lines:
        places.append(at)
        at += len(line) + 1
    head = {"v": VERSION, "root": root, "folder": folder, "at": places, "index": index_of(rules)}
    head["by"] = by
    first = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
    return b"\n".join([first, *lines, b""])


class PackedRules:
    """A compiled file, read: the index, and each rule when it is asked for."""

    __slots__ = ("_body", "_places", "by", "folder", "index", "root")

    def __init__(self, data: bytes) -> None:
        """ValueError where this is no such file."""
        first, _, self._body = data.partition(b"\n")
        head = json.loads(first)
        if not isinstance(head, dict) or head.get("v") != VERSION:  # pyright: ignore[reportUnknownMemberType]
            raise ValueError("not a file of compiled rules")
        self.root: str = str(head["root"])  # pyright: ignore[reportUnknownArgumentType]
        self.folder: str = str(head["folder"])  # pyright: ignore[reportUnknownArgumentType]
        self.by: str = str(head.get("by", ""))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        self.index: dict[str, list[int]] = head["index"]
        self._places: list[int] = head["at"]

    def __len__(self) -> int:
        return len(self._places)

    def rule_at(self, number: int) -> CompiledRule:
        start = self._places[number]
        return json.loads(self._body[start : self._body.index(b"\n", start)])
