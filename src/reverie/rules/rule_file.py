"""The compiled rules of a project as one file, and the index by which a call finds its rules.

Rules are found by the rarest thing they name (a program with its subcommand, a name in a path, a
word), so that a look costs what the call is long and not how many rules there are. The first line
of the file is JSON with the index; each rule follows on a line of its own, found by where it
begins. So a hook that starts for one call parses the index and the rules that may hold, and nothing
else. A file of another version is not read. A leaf.
"""

from __future__ import annotations

import json

from reverie.rules.calls import SHELL, ParsedCall, in_full
from reverie.rules.match import EVERY, OFF, CompiledRule, FinalCalls, breaks, kind_of
from reverie.text import glob
from reverie.text.shell_commands import is_option, name_of

TYPE_CHECKING = False  # as `typing` has it, without importing it

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MAX_TOKENS = 20_000
VERSION = 1
FOLDER = "compiled-rules"
"""Below home: one file for each project, and what hooks remember of a turn."""
PERSONAL = "personal/"
"""Before the file's name of a rule from the user's own memory, which holds in every project."""
_LONGEST = 120


def anchors(rule: CompiledRule) -> list[str]:
    """By what a rule is found: all of one kind, the rarest that it names."""
    for found in (_command_anchors(rule), _path_anchors(rule), _word_anchors(rule)):
        if found:
            return found
    if types := rule.get("types"):
        return ["x:" + one for one in types]
    tools = rule.get("tools", ())
    if not tools or any("*" in tool or kind_of(tool) == EVERY for tool in tools):
        return [EVERY]
    return [f"t:{name}" for tool in tools for name in (tool.lower(), kind_of(tool))]


def _command_anchors(rule: CompiledRule) -> list[str]:
    commands = rule.get("commands", ())
    if any(sign in one[0] for one in commands for sign in "*?"):
        return []
    if not commands:
        literal = [one for one in rule.get("has", ()) if all(_is_literal(c[0]) for c in one)]
        return ["a:" + choice[0] for choice in literal[0]] if literal else []
    return [_command_anchor(one) for one in commands]


def _is_literal(word: str) -> bool:
    return not is_option(word) and not any(sign in word for sign in "*?")


def _command_anchor(words: Sequence[str]) -> str:
    name = name_of(words[0])
    plain = [word for word in in_full(name, words)[1:] if not is_option(word)]
    return f"c:{name} {plain[0]}" if plain and _is_literal(plain[0]) else f"c:{name}"


def _path_anchors(rule: CompiledRule) -> list[str]:
    found: list[str] = []
    for pattern in rule.get("paths", ()):
        some = glob.anchors(pattern)
        if not some:
            return []
        found += some
    return found


def _word_anchors(rule: CompiledRule) -> list[str]:
    found: list[str] = []
    for word in rule.get("words", ()):
        some = tokens(word)
        if not some:
            return []
        found.append("w:" + some[0])
    return found


def tokens(text: str) -> list[str]:
    """The words of a text, whole, in small letters; of a script without spaces, none."""
    found: list[str] = []
    start = -1
    for at, sign in enumerate(text):
        if (sign.isalnum() or sign == "_") and ord(sign) < 0x3000:
            start = at if start < 0 else start
        elif start >= 0:
            found.append(text[start:at].lower())
            start = -1
            if len(found) > MAX_TOKENS:
                return found
    if start >= 0:
        found.append(text[start:].lower())
    return found


def marks(call: ParsedCall) -> set[str]:
    """The anchors that a call answers to."""
    found = {EVERY, f"t:{call.tool.lower()}", f"t:{call.role}"}
    if call.role == SHELL:
        found |= {"t:write", "t:read"}
    for act in call.acts:
        for view in act.views:
            if view:
                name = name_of(view[0])
                found.add(f"c:{name}")
                words = in_full(name, view)[1:12]
                found.update(f"c:{name} {word}" for word in words if not is_option(word))
                found.update("a:" + word for word in view[:50])
        for path in act.paths:
            found.update(glob.marks(path))
        found.update("w:" + token for token in tokens(act.text))
    return found


def rules_for_call(
    call: ParsedCall, index: dict[str, list[int]], rule_at: Callable[[int], CompiledRule]
) -> list[CompiledRule]:
    """The rules that a call would break, in the order they are kept; `rule_at` is asked for those
    alone that the index names."""
    numbers = {number for mark in marks(call) for number in index.get(mark, ())}
    found = (rule_at(number) for number in sorted(numbers))
    return [rule for rule in found if rule.get("level") != OFF and breaks(rule, call)]


def index_of(rules: Iterable[CompiledRule]) -> dict[str, list[int]]:
    """Where each rule is found."""
    found: dict[str, list[int]] = {}
    for number, rule in enumerate(rules):
        for anchor in dict.fromkeys(anchors(rule)):
            found.setdefault(anchor, []).append(number)
    return found


def rule_file_name(root: str) -> str:
    """The file's name for a project's root; what it was cut from stands in the file."""
    name = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in root)
    number = 0
    for sign in root.encode("utf-8", "surrogateescape"):
        number = (number * 131 + sign) % (1 << 61)
    return f"{name[-_LONGEST:]}-{number:016x}"


def pack_rules(
    root: str,
    folder: str,
    rules: Sequence[CompiledRule],
    by: str = "",
    final: FinalCalls | None = None,
) -> bytes:
    """The file's bytes; `by` is the version that compiled the rules."""
    lines = [json.dumps(rule, ensure_ascii=False, separators=(",", ":")).encode() for rule in rules]
    places: list[int] = []
    at = 0
    for line in lines:
        places.append(at)
        at += len(line) + 1
    head = {"v": VERSION, "root": root, "folder": folder, "at": places, "index": index_of(rules)}
    head |= {"by": by, "final": final or {}}
    first = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
    return b"\n".join([first, *lines, b""])


class PackedRules:
    """A compiled file, read: the index, and each rule when it is asked for."""

    __slots__ = ("_body", "_places", "by", "final", "folder", "index", "root")

    def __init__(self, data: bytes) -> None:
        """ValueError where this is no such file."""
        first, _, self._body = data.partition(b"\n")
        head = json.loads(first)
        if not isinstance(head, dict) or head.get("v") != VERSION:  # pyright: ignore[reportUnknownMemberType]
            raise ValueError("not a file of compiled rules")
        self.root: str = str(head["root"])  # pyright: ignore[reportUnknownArgumentType]
        self.folder: str = str(head["folder"])  # pyright: ignore[reportUnknownArgumentType]
        self.by: str = str(head.get("by", ""))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        self.final: FinalCalls = head.get("final", {})  # pyright: ignore[reportUnknownMemberType]
        self.index: dict[str, list[int]] = head["index"]
        self._places: list[int] = head["at"]

    def __len__(self) -> int:
        return len(self._places)

    def rule_at(self, number: int) -> CompiledRule:
        start = self._places[number]
        return json.loads(self._body[start : self._body.index(b"\n", start)])
