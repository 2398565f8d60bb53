"""The lines that stand for sealed rounds.

The lines that stand for sealed rounds.

What was said stands as `lines` has it. A call is one line: its tool, what it was asked, its
reference; under it how it ended, and the names in it that a later step could need. A command
ends in the last line of its output, an edit tells old and new, a list how long it was; an
error is one only where the result is marked as one, or a command printed it. A name or path
is given once in a seal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from reverie.settings.catalog import Settings
from reverie.text.format import utc_minute
from reverie.transcript import claude_code
from reverie.transcript.blocks import Block, Json, text_block, text_of
from reverie.transcript.mentions import first_names, outline, reference
from reverie.transcript.messages import Item
from reverie.transcript.records import AssistantMessage, Replaced, Stand, UserMessage, is_wish
from reverie.transcript.view import View

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
    sealing = _LineBuilder(settings, items, behind)
    return "\n".join([line for at in range(len(items)) for line in sealing.item(at)])


class _LineBuilder:
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
            yield from self._item_lines(item)

    def _item_lines(self, item: Item) -> Iterator[str]:
        for piece in item.pieces:
            block = piece.block
            if block.type == "text":
                text = block.get("text")
                if is_wish(text):
                    yield of_user(text, reference(item.id), self.bytes)
                else:
                    yield aside(text, reference(item.id))
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
                    yield of_assistant(text, reference(item.id), None)
                elif item.calls:
                    yield in_passing(text)
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
            spoken = ""
            if not name.startswith(FOREIGN):  # what such a tool returns is nobody's word
                result, spoken = claude_code.apart(result, name)
            text = text_of(result.value.get("content"))
            failed = result.value.get("is_error") is True
            yield from _outcome(name, given, text, failed, self.width)
            if found := self._names(text, given):
                yield "  " + " ".join(found)
            if spoken:
                yield f"<user>{spoken}</user>"

    def _input_text(self, value: Json, width: int) -> str:
        """What a call was asked, on one line; a path that was named before, by its last part."""
        parts: list[str] = []
        for key, member in value.items() if isinstance(value, dict) else ():
            if key in _PATH_KEYS and isinstance(member, str):
                bare = member.rstrip("./-")
                parts.append(f"…/{member.rpartition('/')[2]}" if bare in self.said else member)
                self.said.add(bare)
            elif key == "old_string" and isinstance(value, dict):
                parts.append(_edit_diff(str(member), str(value.get("new_string", ""))))
            elif key != "new_string" or not isinstance(value, dict) or "old_string" not in value:
                parts.append(_words(member, width))
        return one_line(" ".join([part for part in parts if part]), width)

    def _names(self, text: str, given: Json) -> list[str]:
        """What a call and its result name, for the first time."""
        found = first_names(_written_text(given), WRITTEN_NAMES, WRITTEN_AT, self.said)
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


# --- Old lines folded: the user's words, the answers, and every call by its reference.
#
# When lines pass their budget the older ones become what was said, in its order, then the paths
# that were touched and the commands and searches that were made, each with its references. It is
# made from the transcript, not from the lines. The answer that the user replied to last still
# stands whole. One announced move.


SEALED = "collapse"
FOLDED = "collapse fold"
FOLD_SHARE = 2 / 3
FOLDED_SAID = 300  # characters of an answer in folded lines
FOLDED_CALL = 40  # characters of what a command or search was asked
CALLS = "[Folded calls, by what they touched]"


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


def collapse_lines(
    view: View, old: Sequence[Item], intro: Block | None, settings: Settings, summary: str = ""
) -> Replaced | None:
    """The record that folds these lines, with a model's summary where there is one; None where
    it would save nothing."""
    size = sum([i.tokens for i in old])
    text = "\n".join(filter(None, (folded_text(view, old, settings), summary)))
    block = text_block(frame_lines(view, old, text, "folded"))
    if block.tokens >= size:
        return None
    blocks = (block,) if intro is None else (intro, block)
    why = f"sealed lines had {size:,} tokens"
    return Replaced(old[0].id, old[-1].id, (Stand("user", blocks),), FOLDED, why=why)


def frame_lines(view: View, items: Iterable[Item], text: str, what: str) -> str:
    """Lines between marks that say of when they are, where that is known, and where they end."""
    found = [view.entries.find(ident) for item in items for ident in item.covers or (item.id,)]
    at = [entry.at for entry in found if entry is not None and entry.at > 0]
    when = f" {utc_minute(min(at))} to {utc_minute(max(at))[11:]} UTC" if at else ""
    return f"[{what}{when}]\n{text}\n[end]"


def folded_text(view: View, items: Sequence[Item], settings: Settings) -> str:
    spoken: list[str] = []
    touched: dict[str, list[str]] = {}
    newest = replied_to(view)
    for entry in view.entries.among(frozenset[str]().union(*[i.covers for i in items])):
        record = entry.record
        if isinstance(record, UserMessage):
            spoken += _user_lines(view, record, reference(entry.id), settings.text_bytes_per_token)
        elif isinstance(record, AssistantMessage):
            text = texts(record.blocks)
            calls = [b for b in record.blocks if b.type == "tool_use"]
            if text and entry.id == newest:
                spoken.append(of_assistant(text, reference(entry.id), None))
            elif text and not calls:
                spoken.append(of_assistant(text, reference(entry.id), FOLDED_SAID))
            for block in calls:
                about = subject(block) or _describe_call(block)
                touched.setdefault(about, []).append(reference(block.call))
    made = [f"{about} {' '.join(refs)}" for about, refs in touched.items()]
    return "\n".join([*spoken, CALLS, *made] if made else spoken)


def _user_lines(view: View, record: UserMessage, ref: str, bytes_per_token: int) -> list[str]:
    out: list[str] = []
    for block in record.blocks:
        if block.type == "tool_result":
            known = view.calls.get(block.call)
            name = known.name if known else ""
            said = "" if name.startswith(FOREIGN) else claude_code.apart(block, name)[1]
            out += [f"<user>{said}</user>"] if said else []
        elif block.type != "text":
            out.append(f"[{block.type}] {ref}")
        elif is_wish(block.get("text"), record.origin):
            out.append(of_user(block.get("text"), ref, bytes_per_token))
        elif record.origin not in ("tool", "interrupted") and not block.blank:
            out.append(aside(block.get("text"), ref))
    return out


def _describe_call(block: Block) -> str:
    """A call without a path: its tool, and the first words of what it was asked."""
    given = block.value.get("input")
    first = next(iter(given.values()), "") if isinstance(given, dict) else ""
    told = one_line(text_of(first) if not isinstance(first, str) else first, FOLDED_CALL)
    return f"{block.get('name')} {told}".rstrip()


def replied_to(view: View) -> str:
    """The assistant's message before the user's newest words; empty where there is none."""
    spoke = False
    for at in range(len(view.entries) - 1, -1, -1):
        entry = view.entries[at]
        record = entry.record
        if isinstance(record, UserMessage):
            spoke = spoke or any(
                b.type == "text" and is_wish(b.get("text"), record.origin) for b in record.blocks
            )
        elif spoke and isinstance(record, AssistantMessage) and texts(record.blocks):
            return entry.id
    return ""


# --- What people and the model said, as it stands in the sealed part.
#
# The user's words are given as they were said, between marks of their own: one pair a message.
# Only a paste over its limit gives its beginning, its names and its end, and is read back by its
# reference. So is what no user typed. The assistant's texts stand up to their limit, the answer
# that the user replied to whole. Nothing the assistant or a tool said can look like the user's
# words: the marks are told apart inside them.


SAID = 1_000  # characters of a text of the assistant's that nobody replied to
PASTE = 4_000  # tokens from which a user's text is cut and read back
PASTE_END = 1_500  # characters of each of its ends
PASTE_NAMES = 1_500
ASIDE = 300  # characters of a text that no user typed
_MARKS = re.compile(r"<(?=/?(?:user|assistant)\b)", re.IGNORECASE)


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


def of_assistant(text: str, reference: str, limit: int | None = SAID) -> str:
    """An answer, with its lines; over the limit its beginning."""
    whole = limit is None or len(text) <= limit
    shown = text if whole else text[:limit].rstrip() + " …"
    return f"<assistant {reference}>{told_apart(shown)}</assistant>"


def in_passing(text: str, limit: int = SAID) -> str:
    """What was said beside a call, on one line; the call's reference opens it."""
    return "- " + one_line(text, limit)


def one_line(text: str, width: int) -> str:
    """The beginning of a text on one line, and a mark where there is more. It cannot look like
    somebody's words."""
    line = " ".join(text[: width * 2].split())
    if len(line) > width or len(text) > width * 2:
        line = line[:width] + "…"
    return told_apart(line)


def told_apart(text: str) -> str:
    """A text that holds no mark of ours."""
    return _MARKS.sub("&lt;", text) if "<" in text else text


def texts(blocks: Sequence[Block]) -> str:
    """The words of a message."""
    return "\n".join([b.get("text") for b in blocks if b.type == "text" and not b.blank])
