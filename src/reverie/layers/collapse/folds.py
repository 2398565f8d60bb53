"""Folded parts: what old lines become, and what the oldest parts become in the end.

When lines pass their budget the older ones fold into a part: its state (`state.PartState`), what
was said, then the paths it touched and the commands it ran with their newest references. When parts
are many the older ones join into one. Each part has a reference of its own that gives all its
rounds. So the whole stays bounded at any length.

Everything is made from the transcript, never from lines, and each fold is one announced move. The
answer that the user replied to last is whole, of others an excerpt with their lists is kept. The
user's words stay verbatim while the session is not very long; then the newest do, and every order,
and of older words the beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reverie.layers.collapse.excerpts import clause, told_apart
from reverie.layers.collapse.lines import (
    FOLDED,
    PASTE,
    frame_lines,
    of_assistant,
    said_lines,
    texts,
)
from reverie.layers.collapse.state import PartState, words_of
from reverie.settings.catalog import Settings
from reverie.transcript import claude_code
from reverie.transcript.audit import binding
from reverie.transcript.blocks import Block, text_block, text_of
from reverie.transcript.mentions import part_reference, reference
from reverie.transcript.messages import Item
from reverie.transcript.records import AssistantMessage, Entry, Replaced, Stand, UserMessage
from reverie.transcript.view import View

PARTS_SHARE = 2  # newer parts may have this part of what lines may have; then they join
FOLDED_SAID = 300  # characters of an answer in a part
JOINED_SAID = 160  # the same once parts are joined
VERBATIM_SESSION = 250_000  # tokens of a session in which all words of the user stay verbatim
VERBATIM_WORDS = 6_000  # tokens of the newest that do in a longer one
BEGINNING = 200  # characters of older words
SHORTENED = 2_000  # tokens of what is shortened in joined parts, at most
LEAST_SHORTENED = 1_000  # of it that there is room for where all words of the user stay verbatim
SHORT_WORDS = "[<user r:…> is the beginning of the user's words, and every order in them]"
SEALED_TOKENS = 14_000  # of all that is sealed: lines, parts and these


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
    bytes_per_token = settings.text_bytes_per_token
    spoken = [line for e in entries for line in part.said(e, FOLDED_SAID, bytes_per_token)]
    return "\n".join(filter(None, [part.text(), *spoken, *part.calls()]))


def joined_text(view: View, entries: Sequence[Entry], settings: Settings) -> str:
    """Joined parts: their state, what was said, the older ever shorter, and their calls."""
    part = _Part(view, entries, joined=True)
    bytes_per_token = settings.text_bytes_per_token
    whole = _verbatim(view)
    said = {
        entry.id: part.said(entry, JOINED_SAID, bytes_per_token)
        for entry in entries
        if isinstance(entry.record, UserMessage) and (whole is None or entry.id in whole)
    }
    others = settings.collapse_log * 7 // 4  # lines, newer parts, and what comes before they fold
    state, calls = part.text(), part.calls()
    room = (SEALED_TOKENS - others) * bytes_per_token - _length([*said.values(), [state], calls])
    least = 0 if whole is not None else LEAST_SHORTENED * bytes_per_token
    room, left_out = max(least, min(room, SHORTENED * bytes_per_token)), 0
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
    told += [SHORT_WORDS] if whole is not None else []
    spoken = [line for entry in entries for line in said[entry.id]]
    return "\n".join(filter(None, [state, *told, *spoken, *calls]))


def _length(said: Iterable[Sequence[str]]) -> int:
    return sum([len(line) + 1 for lines in said for line in lines])


def _verbatim(view: View) -> frozenset[str] | None:
    """The messages of the user's that stay as they were said; None: all of them."""
    spoken = [e for e in view.entries if isinstance(e.record, (UserMessage, AssistantMessage))]
    if sum([b.tokens for entry in spoken for b in blocks_of(entry)]) <= VERBATIM_SESSION:
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


def blocks_of(entry: Entry) -> tuple[Block, ...]:
    record = entry.record
    return record.blocks if isinstance(record, (UserMessage, AssistantMessage)) else ()


class _Part(PartState):
    """The state of some messages, and what was said in them."""

    def __init__(self, view: View, entries: Sequence[Entry], *, joined: bool = False) -> None:
        super().__init__(view, entries, joined=joined)
        self.newest = replied_to(view)

    def said(self, entry: Entry, limit: int, bytes_per_token: int) -> list[str]:
        """What was said in a message: the user's words, an answer up to its limit."""
        record = entry.record
        if isinstance(record, UserMessage):
            return [line for b in record.blocks for line in self._user(b, entry, bytes_per_token)]
        text = texts(record.blocks) if isinstance(record, AssistantMessage) else ""
        if not text or (self.made.get(entry.id) and entry.id != self.newest):
            return [f"- {self.beside[entry.id]}"] if entry.id in self.beside else []
        most = None if entry.id == self.newest else limit
        return [of_assistant(text, reference(entry.id), most)]

    def _user(self, block: Block, entry: Entry, bytes_per_token: int) -> Iterator[str]:
        record = entry.record
        assert isinstance(record, UserMessage)  # the caller has looked
        if block.type == "tool_result":
            text = text_of(block.value.get("content"))
            if claude_code.quotes_user(text):
                mark = "!" if block.call in self.bad else "="
                yield f"{mark} {told_apart(clause(text, 4 * PASTE))} {reference(block.call)}"
        elif record.origin != "interrupted" and (not self.joined or words_of(entry)):  # no notices
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
