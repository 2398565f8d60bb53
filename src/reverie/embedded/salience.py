"""What of a conversation matters to one who goes on with it.

The user's words, the files that were worked on and why, the commands that were run, the
errors that were met and what ended them, and what was said at the end of each turn. All of
it is counted or quoted; nothing is interpreted, and tools are known by what they are given.
Linear in the conversation, and the same for the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reverie.embedded.history import clip
from reverie.transcript.mentions import HALVED, REFERENCE, TextPart, reference, trouble

CHANGING = frozenset(
    {"old_string", "new_string", "content", "oldText", "newText", "edits", "new_source", "patch"}
)
WHY = 100  # characters of a reason
SMALL = 200  # characters: a result so short has nothing to read back
QUOTE = "> "
SAID_LAST = "- Said last: "
_SEALED_USER = re.compile(r"(?m)^user: ?(.*)$")
_USER_SECTION = re.compile(
    r"(?ims)^[ \t#*]{0,6}(?:\d{1,2}[.)][ \t]*)?all user messages[^\n]{0,80}\n(.*?)"
    r"(?=^[ \t#*]{0,6}\d{1,2}[.)][ \t]+[A-Z][^\n]{3,60}$|^#{1,6}[ \t]|\Z)"
)
_QUOTES = re.compile(r"(?:^>.*(?:\n|$))+", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+")
_STATE_SECTION = re.compile(
    r"(?ims)^[ \t#*]{0,6}(?:\d{1,2}[.)][ \t]*)?current work[^\n]{0,80}\n(.*?)"
    r"(?=^[ \t#*]{0,6}\d{1,2}[.)][ \t]+[A-Z][^\n]{3,60}$|^#{1,6}[ \t]|^</|\Z)"
)
_CODE = re.compile(r"(?s)```.*?(?:```|\Z)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])")
_TELLING = 24  # letters from which on a sentence says something,
_DENSE = 8  # or signs, in a script without spaces
_LOOKED_AT = 2_000  # characters of an answer in which its first sentence is looked for


@dataclass(slots=True)
class NamedFile:
    """A file that calls named."""

    path: str
    reads: int = 0
    edits: int = 0
    score: float = 0.0
    why: str = ""
    calls: list[str] = field(default_factory=list[str])

    @property
    def touched(self) -> str:
        told = [f"edited {self.edits}×" if self.edits else "", f"read {self.reads}×"]
        return ", ".join(t for t in told if t and not t.endswith(" 0×"))


@dataclass(slots=True)
class ExecutedCommand:
    """A command, or another call that names no file, with how it last went."""

    text: str
    tool: str
    times: int = 0
    failed: bool = False
    at: int = 0
    calls: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class ObservedError:
    """An error: what was tried, what it said, and what came of it."""

    call: str
    tried: str
    line: str
    ended: str
    fixed: bool


@dataclass(frozen=True, slots=True)
class ConversationFacts:
    """A conversation, taken apart."""

    user: tuple[TextPart, ...] = ()
    carried: tuple[str, ...] = ()  # user's words from what stands for older messages
    references: tuple[str, ...] = ()  # in what stands for older messages
    files: tuple[NamedFile, ...] = ()  # the likeliest to be worked on next first
    commands: tuple[ExecutedCommand, ...] = ()  # newest first
    others: tuple[ExecutedCommand, ...] = ()  # searches, agents, pages: newest first
    errors: tuple[ObservedError, ...] = ()  # newest first
    closing: tuple[TextPart, ...] = ()  # what the assistant said last in each turn
    said: tuple[TextPart, ...] = ()  # all that it said
    state: tuple[str, ...] = ()  # what stands for older messages says of the work, newest first
    calls: tuple[TextPart, ...] = ()


def work(found: Sequence[TextPart]) -> ConversationFacts:
    calls = tuple(p for p in found if p.who == "call")
    answers = {p.call: p for p in found if p.who in ("result", "error")}
    stands = [p.text for p in found if p.who == "stand"]
    return ConversationFacts(
        user=tuple(p for p in found if p.who == "user"),
        carried=tuple(words for text in stands for words in user_words(text)),
        references=tuple(dict.fromkeys(r for text in stands for r in REFERENCE.findall(text))),
        files=tuple(_files(found)),
        commands=tuple(_ran([p for p in calls if p.given("command")], answers)),
        others=tuple(_ran([p for p in calls if _is_other(p, answers.get(p.call))], answers)),
        errors=tuple(_errors(calls, answers)),
        closing=tuple(_closing(found)),
        state=tuple(line for text in reversed(stands) for line in _told_before(text) if line),
        said=tuple(p for p in found if p.who == "assistant"),
        calls=calls,
    )


def is_edit(part: TextPart) -> bool:
    given = part.input if isinstance(part.input, dict) else {}
    return bool(part.path) and not CHANGING.isdisjoint(given)


def is_file(part: TextPart) -> bool:
    """Whether a call reads or changes one file: a search names a folder and a pattern."""
    return bool(part.path) and not part.given("pattern") and not part.given("query")


def _is_other(part: TextPart, answer: TextPart | None) -> bool:
    """Whether a call is neither of a file nor a command, and gave more than a word."""
    if part.given("command") or is_file(part):
        return False
    return answer is not None and len(answer.text) > SMALL


# --- the user's words in what stands for older messages


def user_words(text: str) -> list[str]:
    """The user's messages that a summary, notes or sealed lines quote."""
    sealed = _SEALED_USER.findall(text)
    found = ["\n".join(sealed)] if sealed else []
    quoted = _QUOTES.findall(text)
    if not quoted:
        section = _USER_SECTION.search(text)
        return [*found, *_list_points(section[1])] if section else found
    return [*found, *("\n".join(map(_bare, block.splitlines())) for block in quoted)]


def _bare(line: str) -> str:
    return line[len(QUOTE.rstrip()) :].removeprefix(" ")


def _list_points(section: str) -> Iterator[str]:
    """The points of a list, each with the lines that belong to it."""
    lines: list[str] = []
    for line in [*section.splitlines(), ""]:
        bullet = _BULLET.match(line)
        if lines and (bullet or not line.strip()):
            yield "\n".join(lines)
            lines = []
        if line.strip():
            lines.append(line[bullet.end() :] if bullet else line.strip())


# --- files and commands


def _files(found: Sequence[TextPart]) -> list[NamedFile]:
    known: dict[str, NamedFile] = {}
    last = found[-1].at if found else 0
    half = max(1.0, HALVED * (last - (found[0].at if found else 0) + 1))
    said = ""
    for part in found:
        if part.who == "assistant":
            said = part.text
        elif part.who == "user":
            said = ""
        if part.who != "call" or not is_file(part):
            continue
        file = known.setdefault(part.path, NamedFile(part.path))
        gain = 0.5 ** ((last - part.at) / half)
        file.calls.append(part.call)
        file.why = file.why or clip(said, WHY)
        file.score += gain
        if is_edit(part):
            file.edits += 1
        else:
            file.reads += 1
    return sorted(known.values(), key=lambda file: -file.score)


def _ran(calls: Sequence[TextPart], answers: dict[str, TextPart]) -> list[ExecutedCommand]:
    known: dict[str, ExecutedCommand] = {}
    for part in calls:
        text = part.given("command") or _describe_call(part)
        ran = known.setdefault(f"{part.tool} {text}", ExecutedCommand(text, part.tool))
        ran.times += 1
        ran.at = part.at
        ran.calls.append(part.call)
        answer = answers.get(part.call)
        ran.failed = answer is not None and answer.who == "error"
    return sorted(known.values(), key=lambda ran: -ran.at)


def _describe_call(part: TextPart) -> str:
    """What a call that runs no command asked, in a few words."""
    keys = ("pattern", "query", "description", "subject", "url", "skill", "reference", "taskId")
    words = [part.given(key) for key in keys]
    found = [w for w in (*words, part.path) if w] or [part.text]
    return " ".join(found[:2])


# --- errors and what ended them


def _errors(calls: Sequence[TextPart], answers: dict[str, TextPart]) -> Iterator[ObservedError]:
    place = {part.call: n for n, part in enumerate(calls)}
    failed = [a for a in answers.values() if a.who == "error" and a.call in place]
    for answer in reversed(failed):
        call = calls[place[answer.call]]
        ended, fixed = _resolution(call, calls[place[answer.call] + 1 :], answers)
        yield ObservedError(call.call, describe_attempt(call), trouble(answer.text), ended, fixed)


def _resolution(
    call: TextPart, later: Sequence[TextPart], answers: dict[str, TextPart]
) -> tuple[str, bool]:
    """What was changed until the same was tried again and went well."""
    changed: dict[str, None] = {}
    for part in later:
        answer = answers.get(part.call)
        if answer is None or answer.who != "result":
            continue
        if is_same(part, call):
            files = ", ".join(path.rpartition("/")[2] for path in [*changed][-3:])
            after = f"after changing {files} " if files else ""
            return f"{after}it went well ({reference(part.call)})", True
        if is_edit(part):
            changed.pop(part.path, None)
            changed[part.path] = None
    return "", False


def is_same(one: TextPart, other: TextPart) -> bool:
    """Whether two calls try the same: the same command, or the same file by the same tool."""
    if one.tool != other.tool:
        return False
    command = one.given("command")
    if command or other.given("command"):
        return _program(command) == _program(other.given("command"))
    return one.path == other.path if one.path else one.text == other.text


def _program(command: str) -> str:
    """A command without where it is run and what is done with its output."""
    last = re.split(r"&&|;", command)[-1] if command.lstrip().startswith("cd ") else command
    return " ".join(re.split(r"[|>]|2>&1", last)[0].split()[:3])


def describe_attempt(call: TextPart) -> str:
    command = call.given("command")
    if command:
        return f"`{clip(command, 100)}`"
    return f"{call.tool} {clip(call.path or _describe_call(call), 100)}".strip()


def _closing(found: Sequence[TextPart]) -> Iterator[TextPart]:
    """What the assistant said last before the user spoke again, and at the end."""
    last: TextPart | None = None
    for part in found:
        if part.who == "assistant":
            last = part
        elif part.who == "user" and last is not None:
            yield last
            last = None
    if last is not None:
        yield last


def first_sentence(text: str) -> str:
    """The first sentence of prose in a text that says something, without its marks; with the
    next one behind an exclamation such as "Found it!". Nothing where there is none."""
    for line in _CODE.sub("", text[:_LOOKED_AT]).splitlines():
        said = ""
        for sentence in _SENTENCE_END.split(line.strip(" \t#*->`•")):
            said = f"{said} {sentence}".strip()
            if len(said) >= _TELLING or (len(said) >= _DENSE and not said.isascii()):
                return clip(said)
    return ""


def _told_before(text: str) -> Iterator[str]:
    """What a summary says of the state of the work, line by line."""
    section = _STATE_SECTION.search(text)
    for line in section[1].splitlines() if section else ():
        if not REFERENCE.search(line) and not line.endswith(":"):
            yield first_sentence(line.removeprefix(SAID_LAST))
