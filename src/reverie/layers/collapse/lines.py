"""The lines that stand for sealed rounds.

What was said stays as it was said. A call is one line: its tool, what it was asked, its
reference; under it how it ended, and the names in it that a later step could need. A command
ends in the last line of its output, an edit tells old and new, a list how long it was. A failed
call has its exit code and the lines that name the error. A name or path is given once in a seal.
Whose words a text is, its record tells; a result that quotes the user stays a result, whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from reverie.layers.collapse.excerpts import clause, excerpt, one_line, told_apart
from reverie.settings.catalog import Settings
from reverie.text.format import utc_minute
from reverie.transcript import claude_code
from reverie.transcript.blocks import Block, Json, text_of
from reverie.transcript.mentions import error_lines, exit_code, first_names, outline, reference
from reverie.transcript.messages import Item
from reverie.transcript.records import UserMessage, user_words
from reverie.transcript.view import View

SEALED = "collapse"
FOLDED = "collapse fold"
FOLD_SHARE = 2 / 3
RESULT_NAMES = 150
WRITTEN_NAMES = 800  # the same of what a call wrote: names that nobody but the model knows
WRITTEN_AT = 6_000  # characters of it that are searched
LOOKED_AT = 16  # characters that are searched, for each of names
TROUBLE_AT = 600  # characters at its end that are searched for trouble
ERRORS = 3  # lines of a failed result that name an error, at most
ERROR = 240  # characters of one
LONGEST = 6_000  # characters of a failed result that are looked at for its first line
CHANGED = 40  # characters of each side of an edit
RUN_AT = 3_000  # characters at its end that are searched for the end of a test run
RUN = 160  # characters of the line that tells it
SUBJECT = 72  # of a commit
_COUNT = r"(?:^|[^\w\s]|[ \t]{2})[ \t]*%s (?:%s)\b"  # a count of a run, not one in a sentence
_RUN = re.compile(
    _COUNT % (r"\d+", "passed|failed|passing|failing") + r"|^Ran \d+ tests? |^(?:ok|FAIL)\s+\S"
    r"|\b(?:0|[Nn]o) (?:issues|errors|problems)\b|^All checks passed"
)
_RUN_WORDS = (" pass", " fail", "\nRan ", "\nok", "\nFAIL", " issues", " errors", " problems")
_FAILING = re.compile(r"^FAIL|" + _COUNT % (r"[1-9]\d*", "failed|failing"))
_PACKAGE = re.compile(r"(?m)^ok[ \t]+\S")  # one of many that a run tells line by line
_COMMIT = re.compile(r"(?m)^\[([^\s\]]+)(?: \([\w-]+\))? ([0-9a-f]{7,40})\] (.*)$")
_PUSH = re.compile(
    r"(?m)^[ +*-]*(\[new (?:branch|tag)\]|[0-9a-f]{7,40}\.{2,3}[0-9a-f]{7,40}) +\S+ -> (\S+)"
)
_STATUS = re.compile(  # of a branch against another one, and whether all is committed
    r"(?m)^(?:Your branch is ([a-z ]+) '([^/'\n]+)[^'\n]*'([^,.\n]*)"
    r"|(nothing to commit)|## (\S+\.{3}.+))"
)
_STORED, _NAMES = "<persisted-output>", "Names in it: "
_PATH_KEYS = ("file_path", "path", "notebook_path")
_WRITTEN = ("new_string", "content", "new_source", "command", "todos", "edits", "prompt")
_LISTS = ("Grep", "Glob", "LS")


def seal_lines(
    settings: Settings,
    items: Sequence[Item],
    behind: Sequence[Item] = (),
    view: View | None = None,
) -> str:
    """The lines of some rounds. What stands `behind` them in plain sight tells whether the user
    replied, `view` whose words a message has."""
    sealing = _LineBuilder(settings, items, behind, view)
    return "\n".join([line for at in range(len(items)) for line in sealing.item(at)])


class _LineBuilder:
    """`said` are the names given so far: each is given once."""

    def __init__(
        self,
        settings: Settings,
        items: Sequence[Item],
        behind: Sequence[Item],
        view: View | None,
    ) -> None:
        self.items = [*items, *behind]
        self.view = view
        self.width = settings.collapse_line
        self.bytes = settings.text_bytes_per_token
        self.said: set[str] = set()
        said = [p.block for i in items if i.role == "user" for p in i.pieces]
        self.known = texts(said)  # stands in full beside the calls: no name in it is given again
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
        elif item.kind == "message":  # what else is in the user's place, the program put there
            yield from self._item_lines(item)

    def _item_lines(self, item: Item) -> Iterator[str]:
        for piece in item.pieces:
            if piece.block.type != "tool_result":
                yield from said_lines(piece.block, self._origin(item), item.id, self.bytes)

    def _origin(self, item: Item) -> str:
        """Who wrote a message in the user's place."""
        entry = self.view.entries.find(item.id) if self.view is not None else None
        record = entry.record if entry is not None else None
        return record.origin if isinstance(record, UserMessage) else "user"

    def _is_replied_to(self, at: int) -> bool:
        """Whether the user spoke next: before anything else of the assistant's."""
        for item in self.items[at + 1 :]:
            if item.role == "assistant":
                return False
            if item.kind == "message" and any(
                p.block.type == "text" and user_words(p.block.get("text"), self._origin(item))
                for p in item.pieces
            ):
                return True
        return False

    def _answer(self, item: Item, at: int) -> Iterator[str]:
        """A message of the assistant's: its text, then its calls with what came of each."""
        replied = self._is_replied_to(at)
        for piece in item.pieces:
            block = piece.block
            if block.type == "text" and not block.blank:
                text = block.get("text")
                if replied:
                    yield of_assistant(text, reference(item.id), None)
                elif item.calls:
                    yield f"- {one_line(text, SAID)}"  # the call's reference opens it
                else:
                    yield of_assistant(text, reference(item.id))
            elif block.type == "tool_use":
                yield from self._call(block)

    def _call(self, block: Block) -> Iterator[str]:
        given, result = block.value.get("input"), self.results.get(block.call)
        name, ref = block.get("name"), reference(block.call)
        asked_for = self._input_text(given, max(20, self.width - len(name) - len(ref)))
        yield f"> {name} {asked_for} {ref}"
        if result is not None:
            text = text_of(result.value.get("content"))
            yield from _outcome(block, result, text, self.width)
            if found := self._names(text, given, asked_for):
                yield "  " + " ".join(found)

    def _input_text(self, value: Json, width: int) -> str:
        """What a call was asked, on one line; a path that was named before, by its last part."""
        parts: list[str] = []
        for key, member in value.items() if isinstance(value, dict) else ():
            if key in _PATH_KEYS and isinstance(member, str):
                bare = member.rstrip("./-")
                parts.append(f"…/{member.rpartition('/')[2]}" if bare in self.said else member)
                self.said.add(bare)
                self.known += f" {member}"
            elif key == "old_string" and isinstance(value, dict):
                parts.append(_edit_diff(str(member), str(value.get("new_string", ""))))
            elif key != "new_string" or not isinstance(value, dict) or "old_string" not in value:
                parts.append(_words(member, width))
        return one_line(" ".join([part for part in parts if part]), width)

    def _names(self, text: str, given: Json, line: str) -> list[str]:
        """What a call and its result name, for the first time."""
        line = f"{self.known} {line}"
        found = first_names(_written_text(given), WRITTEN_NAMES, WRITTEN_AT, self.said, line)
        if text.startswith(_STORED) and _NAMES in text:  # the preview tells them
            text = text.partition(_NAMES)[2].partition("\n")[0]
        line = " ".join((line, *found))
        return found + first_names(text, RESULT_NAMES, LOOKED_AT * RESULT_NAMES, self.said, line)


def _written_text(given: Json) -> str:
    if not isinstance(given, dict):
        return ""
    return "\n".join([_words(given[k], WRITTEN_AT) for k in _WRITTEN if k in given])


def _edit_diff(old: str, new: str) -> str:
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


def _command(call: Block) -> Json:
    given = call.value.get("input")
    return given.get("command") if isinstance(given, dict) else None


def is_command(call: Block) -> bool:
    return isinstance(_command(call), str)


def failed(call: Block, result: Block, text: str) -> bool:
    """Whether a call failed: its result is marked so, its command ended with a code, or a pipe
    hid the code of a run whose output tells that it failed."""
    if result.value.get("is_error") is True or not is_command(call):
        return result.value.get("is_error") is True
    return exit_code(text) != 0 or ("|" in str(_command(call)) and bool(_run_lines(text)[1]))


def _outcome(call: Block, result: Block, text: str, width: int) -> Iterator[str]:
    bad = failed(call, result, text)
    if claude_code.quotes_user(text):  # their words come whole, though a tool could write this too
        yield f"  {'!' if bad else '='} {told_apart(clause(text, 4 * PASTE))}"
    elif bad:
        yield from failure_lines(text)
        if is_command(call) and (last := run_verdict(text, bad=True) or _last_line(text, width)):
            yield f"  = {last}"
    elif is_command(call):
        last = run_verdict(text) or _last_line(text, width)
        found = [one_line(line, width) for line in error_lines(text, TROUBLE_AT)[-1:]]
        yield from [f"  ! {line}" for line in found if line != last]
        git = [line for _, line in git_lines(str(_command(call)), text)]
        for line in dict.fromkeys([*git, last]):
            yield from [f"  = {line}"] if line else ()
    elif call.get("name") in _LISTS and not text.startswith(_STORED):
        count = text.strip().count("\n") + 1
        yield f"  = {count:,} lines" if count > 1 else f"  = {one_line(text, width) or 'nothing'}"


def failure_lines(text: str) -> Iterator[str]:
    """How a call failed: its exit code, and the lines that name the error, as they are."""
    first = f"Exit code {code}" if (code := exit_code(text)) else ""
    rows = [row for row in text[:LONGEST].split("\n") if row.strip() and row.strip() != first]
    every = list(dict.fromkeys(error_lines(text, failed=True))) or rows[:1] or ["failed"]
    for line in [*every[:1], *every[1:][1 - ERRORS :]]:
        yield "  ! " + ": ".join(filter(None, (first, told_apart(clause(line.strip(), ERROR)))))
        first = ""


def run_verdict(text: str, *, bad: bool = False) -> str:
    """How a run of tests or checks ended, in a word, and the line that tells it; empty where a
    text is of none."""
    found, failing = _run_lines(text)
    if not found:
        return ""
    if bad or failing:
        return f"failed: {one_line((failing or found)[-1], RUN)}"
    packages = len(_PACKAGE.findall(text))
    many = packages > 1 and _PACKAGE.match(found[-1])
    return f"passed: {f'{packages} packages ok' if many else one_line(found[-1], RUN)}"


def _run_lines(text: str) -> tuple[list[str], list[str]]:
    """The lines at a text's end that tell how a run ended, and those of them that say it failed."""
    end = "\n" + text[-RUN_AT:]
    if not any(map(end.__contains__, _RUN_WORDS)):
        return [], []
    found = [line.strip(" =\t") for line in end.split("\n") if _RUN.search(line)]
    return found, [line for line in found if _FAILING.search(line)]


def git_lines(command: str, text: str) -> list[tuple[str, str]]:
    """What git tells of commits and pushes, their hash and branch, and of where the branch is."""
    if "git" not in command:
        return []
    made = [
        ("commit", f"commit {m[2]} on {m[1]}: {one_line(m[3], SUBJECT)}")
        for m in _COMMIT.finditer(text)
    ]
    made += [("push", f"pushed {m[1]} to {m[2]}") for m in _PUSH.finditer(text)]
    where = " ".join([part for m in _STATUS.finditer(text) for part in m.groups() if part])
    return [*made, ("status", f"status: {one_line(where, 2 * SUBJECT)}")] if where else made


def _last_line(text: str, width: int) -> str:
    """The last line with words in it; of a stored result, of what is shown of its end."""
    end = text[-TROUBLE_AT:].rstrip()
    if text.startswith(_STORED):
        end = end.rpartition("\n")[0].rstrip()
    return one_line(end.rpartition("\n")[2], width)


# --- which lines fold, and what is around all lines


def fold_lines(view: View, settings: Settings, coming: int) -> list[Item]:
    """The sealed lines that are to be folded now; none where they are few."""
    runs = groupby(view.items[: view.live], lambda item: item.reason == SEALED)
    lines = max([list(run) for sealed, run in runs if sealed], key=len, default=list[Item]())
    total = sum([i.tokens for i in lines]) + coming
    if total <= settings.collapse_log or len(lines) < 2:
        return []
    size, count = 0, 0
    while count < len(lines) and size < total * FOLD_SHARE:
        size += lines[count].tokens
        count += 1
    return lines[:count]


def frame_lines(view: View, items: Iterable[Item], text: str, what: str, part: str = "") -> str:
    """Lines between marks that say of when they are, where that is known, and where they end."""
    found = [view.entries.find(ident) for item in items for ident in item.covers or (item.id,)]
    at = [entry.at for entry in found if entry is not None and entry.at > 0]
    first, last = (utc_minute(min(at)), utc_minute(max(at))) if at else ("", "")
    when = f"{first} to {last[11:] if first[:10] == last[:10] else last} UTC" if at else ""
    return f"[{' '.join(filter(None, (what, when, part)))}]\n{text}\n[end]"


# --- What people and the model said, as it stands in the sealed part.
#
# The user's words are given as they were said, between marks of their own: one pair a message.
# Only a paste over its limit gives its beginning, its names and its end, and is read back by its
# reference. So is what no user typed. The assistant's texts keep their beginning and their end,
# the answer that the user replied to is whole. Nothing the assistant or a tool said can look like
# the user's words: the marks are told apart inside them.


SAID = 1_000  # characters of a text of the assistant's that nobody replied to
PASTE = 4_000  # tokens from which a user's text is cut and read back
PASTE_END = 1_500  # characters of each of its ends
PASTE_NAMES = 1_500
ASIDE = 300  # characters of a text that no user typed


def of_user(text: str, reference: str, bytes_per_token: int) -> str:
    """What the user said, whole; of a paste its two ends and its names."""
    if len(text) <= PASTE * bytes_per_token:
        return f"<user>{text}</user>"
    return f"<user {reference}>{outline_paste(text)}</user>"


def outline_paste(text: str) -> str:
    """The two ends of a long text, and the names between them."""
    head, foot = text[:PASTE_END], text[-PASTE_END:]
    found = outline(text[PASTE_END:-PASTE_END], PASTE_NAMES, head + foot)
    return f"{head}\n[… {len(text):,} characters in all; names in it: {found} …]\n{foot}"


def aside(text: str, reference: str) -> str:
    """What stands in the user's place and no user typed: one line, read back like a result."""
    line = one_line(text, ASIDE)
    return f"> notice {reference}\n  {line} {outline(text[ASIDE:], ASIDE, line)}".rstrip()


def said_lines(block: Block, origin: str, ident: str, bytes_per_token: int) -> Iterator[str]:
    """A block in the user's place: their words, a notice of their client's, or a picture."""
    text, ref = block.get("text"), reference(ident)
    if block.type != "text":
        yield f"[{block.type}] {ref}"
    elif words := user_words(text, origin):
        if notice := text[: -len(words)].strip():  # what a client put in front of them
            yield aside(notice, ref)
        yield of_user(words, ref, bytes_per_token)
    elif not block.blank:
        yield aside(text, ref)


def of_assistant(text: str, reference: str, limit: int | None = SAID) -> str:
    """An answer, with its lines; over the limit an excerpt."""
    shown = text if limit is None else excerpt(text, limit)
    return f"<assistant {reference}>{told_apart(shown)}</assistant>"


def texts(blocks: Sequence[Block]) -> str:
    """The words of a message."""
    return "\n".join([b.get("text") for b in blocks if b.type == "text" and not b.blank])
