"""Folded parts: what old lines become, and what the oldest parts become in the end.

When lines pass their budget the older ones fold into a part: its state, what was said, then the
paths it touched and the commands it ran with their newest references. State is one line, made
without a model: files changed, calls that failed, the last test run, questions nobody answered.
When parts are many the older ones join into one that has no list of calls any more. Each part has
a reference of its own that gives all its rounds. So the whole stays bounded at any length.

Everything is made from the transcript, never from lines, and each fold is one announced move. The
answer that the user replied to last is whole. The user's words stay verbatim while the session is
not very long; then the newest do, and every order, and of older words the beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os.path import commonpath

from reverie.layers.collapse.lines import (
    FOLDED,
    PASTE,
    failed,
    frame_lines,
    is_command,
    of_assistant,
    one_line,
    said_lines,
    shorten,
    texts,
    told_apart,
)
from reverie.settings.catalog import Settings
from reverie.transcript import claude_code
from reverie.transcript.audit import binding
from reverie.transcript.blocks import Block, Json, text_block, text_of
from reverie.transcript.mentions import PATH_KEYS, part_reference, reference
from reverie.transcript.messages import Item
from reverie.transcript.records import (
    AssistantMessage,
    Entry,
    Replaced,
    Stand,
    UserMessage,
    user_words,
)
from reverie.transcript.view import View

PARTS_SHARE = 2  # newer parts may have this part of what lines may have; then they join
FOLDED_SAID = 300  # characters of an answer in a part
JOINED_SAID = 160  # the same once parts are joined
FOLDED_CALL = 40  # characters of what a command or search was asked
REFERENCES = 3  # on a line, at most
SUBJECTS = 20  # lines of calls in a part, at most
LISTED = 12  # files or failures that a state names, at most
ASKED = 2  # open questions
QUESTION = 160  # characters of one
VERBATIM_SESSION = 250_000  # tokens of a session in which all words of the user stay verbatim
VERBATIM_WORDS = 6_000  # tokens of the newest that do in a longer one
BEGINNING = 200  # characters of older words
SHORTENED = 2_000  # tokens of what is shortened in joined parts, at most
SEALED_TOKENS = 14_000  # of all that is sealed: lines, parts and these
CALLS = "[Calls, by what they touched]"
_WRITES = frozenset(
    ("new_string", "content", "new_source", "edits", "new_str", "file_text", "newText")
)
_PATCHED = re.compile(r"(?m)^\*\*\* (?:Add|Update|Delete) File: (.{1,300})$")
_TESTS = re.compile(
    r"(?m)^.*\b\d+ (?:passed|failed|passing|failing)\b.*$|^Ran \d+ tests? .*$|^(?:ok|FAIL)\s+\S+.*$"
)
_TESTS_AT = 3_000  # characters at the end of an output


# --- which lines and parts


def joined_parts(view: View, settings: Settings, before: Item) -> list[Item]:
    """The parts in front of lines that fold which are to be joined now; none where they are few."""
    parts: list[Item] = []
    for item in view.items[: view.live]:
        if item is before:
            break
        parts = [*parts, item] if item.reason == FOLDED else []
    newer = sum([i.tokens for i in parts[1:]])
    return parts if newer > settings.collapse_log // PARTS_SHARE else []


def fold(
    view: View, old: Sequence[Item], intro: Block | None, settings: Settings, summary: str = ""
) -> Replaced | None:
    """The record that folds lines, or joins parts, with a model's summary where there is one; None
    where it would save nothing."""
    size = sum([i.tokens for i in old])
    entries = covered(view, old)
    joined = all(item.reason == FOLDED for item in old)
    text = joined_text(view, entries, settings) if joined else folded_text(view, entries, settings)
    text = "\n".join(filter(None, (text, summary)))
    part = part_reference(entries[0].id) if entries else ""
    block = text_block(frame_lines(view, old, text, "folded", part))
    if block.tokens >= size:
        return None
    blocks = (block,) if intro is None else (intro, block)
    why = f"sealed {'parts' if joined else 'lines'} had {size:,} tokens"
    return Replaced(old[0].id, old[-1].id, (Stand("user", blocks),), FOLDED, why=why)


def covered(view: View, items: Iterable[Item]) -> list[Entry]:
    """The messages that some items stand for."""
    found = view.entries.among(frozenset[str]().union(*[i.covers for i in items]))
    return [e for e in found if isinstance(e.record, (UserMessage, AssistantMessage))]


# --- what they become


def folded_text(view: View, entries: Sequence[Entry], settings: Settings) -> str:
    """A part: its state, what was said in its order, and calls by what they touched."""
    part = _Part(view, entries)
    spoken: list[str] = []
    touched: dict[str, list[str]] = {}
    for entry in entries:
        spoken += part.said(entry, FOLDED_SAID, settings.text_bytes_per_token)
        for block in part.made.get(entry.id, ()):
            mark = "!" if block.call in part.bad else ""
            touched.setdefault(subject(block), []).append(mark + reference(block.call))
    shown = list(touched.items())[-SUBJECTS:]
    made = [_newest(about, refs) for about, refs in shown]
    if len(touched) > len(shown):
        made.insert(0, f"[{len(touched) - len(shown)} older]")
    return "\n".join(filter(None, [part.state(), *spoken, *([CALLS, *made] if made else [])]))


def joined_text(view: View, entries: Sequence[Entry], settings: Settings) -> str:
    """Joined parts: their state, and what was said, the older ever shorter."""
    part = _Part(view, entries)
    bytes_per_token = settings.text_bytes_per_token
    whole = _verbatim(view)
    said = {
        entry.id: part.said(entry, JOINED_SAID, bytes_per_token)
        for entry in entries
        if isinstance(entry.record, UserMessage) and (whole is None or entry.id in whole)
    }
    others = settings.collapse_log * 7 // 4  # lines, newer parts, and what comes before they fold
    room = (SEALED_TOKENS - others) * bytes_per_token - _length(said.values())
    room, left_out = min(room, SHORTENED * bytes_per_token), 0
    for entry in reversed(entries):
        if entry.id in said:
            continue
        user = isinstance(entry.record, UserMessage)
        lines = part.shortened(entry) if user else part.said(entry, JOINED_SAID, bytes_per_token)
        room -= _length([lines])
        if room < 0 and entry.id != part.newest:
            left_out += bool(lines)
            lines = part.orders(entry)
        said[entry.id] = lines
    told = [f"[{left_out:,} older messages: by the reference of this part]"] if left_out else []
    spoken = [line for entry in entries for line in said[entry.id]]
    return "\n".join(filter(None, [part.state(), *told, *spoken]))


def _length(said: Iterable[Sequence[str]]) -> int:
    return sum([len(line) + 1 for lines in said for line in lines])


def _newest(about: str, refs: Sequence[str]) -> str:
    older = len(refs) - REFERENCES
    told = f" ({older} older)" if older > 0 else ""
    return f"{about} {' '.join(refs[-REFERENCES:])}{told}"


def _verbatim(view: View) -> frozenset[str] | None:
    """The messages of the user's that stay as they were said; None: all of them."""
    spoken = [e for e in view.entries if isinstance(e.record, (UserMessage, AssistantMessage))]
    if sum([_tokens(entry) for entry in spoken]) <= VERBATIM_SESSION:
        return None
    out: set[str] = set()
    room = VERBATIM_WORDS
    for entry in reversed(spoken):
        if words := words_of(entry):
            room -= text_block(words).tokens
            if room < 0:
                break
            out.add(entry.id)
    return frozenset(out)


def _tokens(entry: Entry) -> int:
    record = entry.record
    blocks = record.blocks if isinstance(record, (UserMessage, AssistantMessage)) else ()
    return sum([b.tokens for b in blocks])


class _Part:
    """What happened in some messages, told by what was recorded of it."""

    def __init__(self, view: View, entries: Sequence[Entry]) -> None:
        self.view, self.entries = view, entries
        self.newest = replied_to(view)
        self.made: dict[str, list[Block]] = {}  # calls, by message
        self.bad: dict[str, str] = {}  # calls that failed, and what each was
        self.changed: dict[str, None] = {}
        self.tests = ""
        self.asked: list[str] = []
        calls: dict[str, Block] = {}
        for entry in entries:
            record = entry.record
            if isinstance(record, AssistantMessage):
                self.made[entry.id] = [b for b in record.blocks if b.type == "tool_use"]
                calls.update((b.call, b) for b in self.made[entry.id])
            elif isinstance(record, UserMessage):
                for block in record.blocks:
                    if block.type == "tool_result" and block.call in calls:
                        self._take(calls[block.call], block)
        self.asked += _unanswered(view, entries)

    def _take(self, call: Block, result: Block) -> None:
        text = text_of(result.value.get("content"))
        given = call.value.get("input")
        if failed(call, result, text):
            path = path_of(given)
            about = f"{call.get('name')} {path.rpartition('/')[2]}" if path else subject(call)
            self.bad[call.call] = about.replace(", ", " ")
            if call.get("name") == claude_code.ASKS and "(No answer provided)" in text:
                self.asked.append(one_line(_first_question(given), QUESTION))
        else:
            for path in written_paths(given):
                self.changed.pop(path, None)
                self.changed[path] = None
        if is_command(call) and (ran := _test_run(text)):
            self.tests = f"{ran} ({one_line(str(_command(given)), FOLDED_CALL)})"

    def state(self) -> str:
        """Files changed, calls that failed, the last test run, questions nobody answered."""
        times: dict[str, int] = {}
        for about in self.bad.values():
            times[about] = times.get(about, 0) + 1
        bad = [f"{about} ({n})" if n > 1 else about for about, n in list(times.items())[-LISTED:]]
        others = sum(list(times.values())[:-LISTED])
        bad += [f"{others} others"] if others else []
        told = (
            ("Changed", _changed(list(self.changed))),
            ("Failed", ", ".join(bad)),
            ("Last test run", self.tests),
            ("Asked and not answered", " ".join(self.asked[-ASKED:])),
        )
        return " ".join([f"{name}: {what}." for name, what in told if what])

    def said(self, entry: Entry, limit: int, bytes_per_token: int) -> list[str]:
        """What was said in a message: the user's words, an answer up to its limit."""
        record = entry.record
        if isinstance(record, UserMessage):
            return [line for b in record.blocks for line in self._user(b, entry, bytes_per_token)]
        text = texts(record.blocks) if isinstance(record, AssistantMessage) else ""
        if not text or (self.made.get(entry.id) and entry.id != self.newest):
            return []
        most = None if entry.id == self.newest else limit
        return [of_assistant(text, reference(entry.id), most)]

    def _user(self, block: Block, entry: Entry, bytes_per_token: int) -> Iterator[str]:
        record = entry.record
        assert isinstance(record, UserMessage)  # the caller has looked
        if block.type == "tool_result":
            text = text_of(block.value.get("content"))
            if claude_code.quotes_user(text):
                mark = "!" if block.call in self.bad else "="
                yield f"{mark} {told_apart(shorten(text, 4 * PASTE))} {reference(block.call)}"
        elif record.origin != "interrupted":
            yield from said_lines(block, record.origin, entry.id, bytes_per_token)

    def shortened(self, entry: Entry) -> list[str]:
        """The beginning of older words, and every order in them."""
        words = words_of(entry)
        if len(words) <= BEGINNING:
            return [f"<user>{words}</user>"] if words else []
        begin = words[:BEGINNING].rpartition(" ")[0] or words[:BEGINNING]
        more = [order for order in binding(words) if order not in begin]
        return [f"<user {reference(entry.id)}>{' … '.join([begin, *more])} …</user>"]

    def orders(self, entry: Entry) -> list[str]:
        found = binding(words_of(entry))
        return [f"<user {reference(entry.id)}>… {' … '.join(found)}</user>"] if found else []


def words_of(entry: Entry) -> str:
    """The user's words in a message; empty where it has none."""
    record = entry.record
    if not isinstance(record, UserMessage):
        return ""
    found = [user_words(b.get("text"), record.origin) for b in record.blocks]
    return "\n".join(filter(None, found))


def _changed(paths: Sequence[str]) -> str:
    """Paths by the folder they share, the newest at the end."""
    shown = paths[-LISTED:]
    more = f"{len(paths) - len(shown)} others, " if len(paths) > len(shown) else ""
    try:
        folder = commonpath([p.rpartition("/")[0] for p in shown]) if len(shown) > 1 else ""
    except ValueError:  # some are relative
        folder = ""
    if len(folder) < 2:
        return more + ", ".join(shown)
    return f"in {folder}: {more}" + ", ".join([p[len(folder) + 1 :] for p in shown])


def _test_run(text: str) -> str:
    """The line in which a test run ends, if a text is of one."""
    found = [m.group().strip(" =\t") for m in _TESTS.finditer(text[-_TESTS_AT:])]
    bad = [line for line in found if line.startswith("FAIL")]
    return one_line((bad or found)[-1], QUESTION) if found else ""


def _unanswered(view: View, entries: Sequence[Entry]) -> list[str]:
    """Questions in these messages after which the one who asked spoke next."""
    if not entries:
        return []
    inside = {entry.id for entry in entries}
    out: list[str] = []
    question, who, worked = "", "", False
    for entry in view.entries.since(view.entries.place(entries[0].id) or 0):
        record = entry.record
        if isinstance(record, AssistantMessage):
            worked = True
            if any(b.type == "tool_use" for b in record.blocks):
                continue
            speaker, words = "assistant", texts(record.blocks)
        else:
            speaker, words = "user", words_of(entry)
        if not words.strip():
            continue
        if question and speaker == who and worked:
            out.append(question)
        if entry.id not in inside:
            break
        question = _last_question(words)
        who, worked = speaker, False
    return out


def _last_question(text: str) -> str:
    """The last sentence of a text, where it asks something."""
    text = text[-1_000:].rstrip("\"')*_] \n\t")
    if not text.endswith(("?", "？")):
        return ""
    start = max([text.rfind(sign, 0, -1) for sign in ".!?。！？\n"]) + 1
    return one_line(text[start:].strip(), QUESTION)


def replied_to(view: View) -> str:
    """The assistant's message before the user's newest words; empty where there is none."""
    spoke = False
    for at in range(len(view.entries) - 1, -1, -1):
        entry = view.entries[at]
        record = entry.record
        if spoke and isinstance(record, AssistantMessage) and texts(record.blocks):
            return entry.id
        spoke = spoke or bool(words_of(entry))
    return ""


# --- what a call was about


def path_of(given: Json) -> str:
    """The file or folder that a call names, but for one it searches."""
    if not isinstance(given, dict) or "pattern" in given:
        return ""
    return next((v for k in PATH_KEYS if isinstance(v := given.get(k), str)), "")


def written_paths(given: Json) -> list[str]:
    """The files that a call writes, as far as its input tells."""
    if not isinstance(given, dict):
        return []
    if (path := path_of(given)) and not _WRITES.isdisjoint(given):
        return [path]
    patches = [v for v in given.values() if isinstance(v, str) and v.startswith("*** Begin Patch")]
    return [path.strip() for patch in patches for path in _PATCHED.findall(patch)]


def subject(call: Block) -> str:
    """What a call was about: its path; else its tool and the first words of what was asked."""
    given = call.value.get("input")
    if path := path_of(given):
        return path
    first = next(iter(given.values()), "") if isinstance(given, dict) else ""
    told = one_line(first if isinstance(first, str) else text_of(first), FOLDED_CALL)
    return f"{call.get('name')} {told}".rstrip()


def _command(given: Json) -> Json:
    return given.get("command") if isinstance(given, dict) else ""


def _first_question(given: Json) -> str:
    asked = given.get("questions") if isinstance(given, dict) else None
    first = asked[0] if isinstance(asked, list) and asked else None
    return str(first.get("question") or "") if isinstance(first, Mapping) else ""
