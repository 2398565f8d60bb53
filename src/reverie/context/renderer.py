"""The list to send: public Fitted.

The list to send: the caller's own messages, and what stands for those that left.

A message that nothing was decided of is the caller's own object. One whose results were
cut, or whose thinking went with an edit, is a copy with every other member as it was.
What is no part of the conversation (system messages, parts nobody knows) stands in its
place, or behind the lines that cover the place. Cache marks are put on copies, last.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from dataclasses import field
from hashlib import blake2b
from typing import Any, Generic, Literal, SupportsIndex, TypeAlias, TypeVar, cast

from reverie.errors import InvalidMessage
from reverie.layers import collapse, tool_results
from reverie.light import dataclass
from reverie.text.format import plural
from reverie.toolbox.toolset import Toolset
from reverie.transcript.blocks import Block, dump, text_of
from reverie.transcript.mentions import reference
from reverie.transcript.messages import Item
from reverie.transcript.records import Replaced, ResultDecided
from reverie.transcript.view import View
from reverie.wire.forms import edit_message, results, user_message, with_cache_mark
from reverie.wire.lists import (
    AdoptedList,
    AdoptedMessage,
    Format,
    ParsedMessage,
    format_of,
    parse_message,
    plain,
    value_of,
)


@dataclass(slots=True)
class ListRenderer:
    """One list on its way out."""

    messages: Sequence[Any]
    heard: Sequence[ParsedMessage]
    adoption: AdoptedList
    form: Format
    places: Mapping[str, int]  # of parts, by id
    out: list[Any] = field(default_factory=list[Any])
    ours: set[int] = field(default_factory=set[int])  # messages that no caller wrote
    sealed: int = -1  # where the last message that stands for others is
    marks: list[int] = field(default_factory=list[int])  # of callers, on what left
    at: int = 0  # the first part not looked at

    def take(self, item: Item) -> None:
        if item.kind == "replaced":
            self._stand(item)
        elif item.kind == "attached":
            self._add(item)
        elif item.kind == "message":
            place = self.places[item.id]
            self.asides(place)
            self._part(self.adoption.parts[place], item)
            self.at = place + 1

    def _stand(self, item: Item) -> None:
        covered = [self.places[c] for c in item.covers if c in self.places]
        if covered:
            self.asides(min(covered))
        self.sealed = len(self.out)
        self._add(item)
        parts = [self.adoption.parts[c] for c in covered]
        if any(self.heard[n].marked for p in parts for n in range(p.first, p.end)):
            self.marks.append(self.sealed)
        if covered:
            self.asides(max(covered) + 1)

    def _add(self, item: Item) -> None:
        self.ours.add(len(self.out))
        self.out.append(user_message(_text(item), self.form))

    def alternating(self, out: Sequence[Any]) -> list[Any]:
        """The list with our messages joined to those of the user's beside them: in a Messages list
        roles alternate. What callers wrote in a row stays so, and one with members that nobody
        here knows stays by itself."""
        made: list[Any] = []
        before = False
        for n, message in enumerate(out):
            mine = n in self.ours
            if self.form == "messages" and made and (mine or before):
                last, this = value_of(made[-1]), value_of(message)
                if _is_plain(last) and _is_plain(this):
                    made[-1] = {**last, "content": [*_content(last), *_content(this)]}
                    before = mine
                    continue
            made.append(message)
            before = mine
        return made

    def asides(self, end: int) -> None:
        """What stands aside before a part."""
        for part in self.adoption.parts[self.at : end]:
            if part.part == "aside":
                self.out.append(self.messages[part.first])
        self.at = max(self.at, end)

    def _part(self, part: AdoptedMessage, item: Item) -> None:
        if part.part == "interrupted":
            self.out += results(part.blocks, self.adoption.theirs, self.form)
            return
        shown = {piece.index: piece.block for piece in item.pieces}
        changed: dict[int, dict[int, Block]] = {}
        gone: dict[int, list[int]] = {}
        for n, (block, (message, at)) in enumerate(zip(part.blocks, part.places, strict=True)):
            now = shown.get(n)
            if now is None:
                gone.setdefault(message, []).append(at)
            elif now is not block and now != block:  # a renamed one is made anew each time
                changed.setdefault(message, {})[at] = now
        for n in range(part.first, part.end):
            message = self.messages[n]
            if n in changed or n in gone:
                message = edit_message(message, self.form, changed.get(n, {}), gone.get(n, ()))
            if message is not None:
                self.out.append(message)


def _is_plain(value: Mapping[str, Any]) -> bool:
    return value.get("role") == "user" and set(value) == {"role", "content"}


def _content(value: Mapping[str, Any]) -> list[Any]:
    """The content of a message as blocks."""
    found = value.get("content")
    return [{"type": "text", "text": found}] if isinstance(found, str) else list(found or ())


def _text(item: Item) -> str:
    return "\n".join(piece.block.text for piece in item.pieces)


def render_list(
    view: View,
    messages: Sequence[Any],
    heard: Sequence[ParsedMessage],
    adoption: AdoptedList,
    form: Format,
) -> ListRenderer:
    """A played list in the form it came in, without marks of ours."""
    places = {part.id: n for n, part in enumerate(adoption.parts)}
    going = ListRenderer(messages, heard, adoption, form, places)
    for item in view.items:
        going.take(item)
    going.asides(len(adoption.parts))
    return going


def with_marks(going: ListRenderer) -> list[Any]:
    """The list with cache marks: the caller's own, or two of ours, where what was sealed
    ends and at the end."""
    out = list(going.out)
    if any(h.marked for h in going.heard):
        wanted = going.marks
    else:
        wanted = sorted({going.sealed, len(out) - 1} - {-1})
    for at in wanted:
        found = with_cache_mark(out[at])
        out[at] = out[at] if found is None else found
    return out


# --- The list that is sent in place of the caller's, and how lists are told apart.
#
# A `Fitted` is a plain list with figures beside it. Lists are known again by fingerprints of their
# messages' whole contents: callers change old messages in place, and frameworks copy them.


T = TypeVar("T")
_STORED = f"<{tool_results.TAG}>\n"


class Fitted(list[T], Generic[T]):
    """The list to send in place of the caller's, and what became of it."""

    __slots__ = ("before", "changes", "stable", "tokens", "tools")

    def __init__(
        self,
        messages: Sequence[T],
        *,
        tokens: int,
        before: int,
        changes: tuple[str, ...],
        stable: int,
        tools: Toolset,
    ) -> None:
        super().__init__(messages)
        self.tokens = tokens  # rough, with the tools
        self.before = before  # of the caller's list
        self.changes = changes  # what was decided, one sentence each
        self.stable = stable  # messages at the front that the request before had too
        self.tools = tools

    @property
    def saved(self) -> int:
        """Tokens that do not go out because of it."""
        return self.before - self.tokens

    def handle(self, call: object) -> Any:
        """The result of a call that reads back, in the form it came in; else None."""
        return self.tools.handle(call)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[type, tuple[list[T]]]:
        """A copy is a plain list: who handles calls is no part of it."""
        del protocol
        return list, (list(self),)

    def __repr__(self) -> str:
        return f"Fitted({plural(len(self), 'message')}, {self.tokens:,} of {self.before:,} tokens)"


def check_messages(messages: object) -> Sequence[Any]:
    """Refuse what is no list of messages."""
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
        raise InvalidMessage(
            "a list of messages is wanted",
            where=type(cast("object", messages)).__name__,
            do='For one message, hand in [{"role": "user", "content": ...}]',
        )
    return cast("Sequence[Any]", messages)


def is_ours(block: Block) -> bool:
    """Whether a block says what only we say: lines, or a stub with its own call's reference."""
    if block.type == "tool_result":
        text = text_of(block.value.get("content"))
        name = reference(block.call)
        cited = f" with {name} " in text[:500] or f"/{name.removeprefix('r:')}.txt\n" in text[:2000]
        return text.startswith(_STORED) and cited
    return block.get("text").startswith(collapse.OPENING)


def begins(prints: Sequence[bytes], known: Sequence[bytes]) -> bool:
    """Whether one list begins with another."""
    return len(prints) >= len(known) and all(a == b for a, b in zip(prints, known, strict=False))


def fingerprint(message: Any) -> bytes:
    """Of a message's contents, all of them."""
    try:
        data = marshal.dumps(message, 0)  # the plain format: the same for equal values
    except ValueError:
        data = dump(plain(message)).encode()
    return blake2b(data, digest_size=16).digest()


def chains(messages: Sequence[Any]) -> list[str]:
    """For each message what it and all before it come to, the same in any process and however
    the messages are held."""
    found: list[str] = []
    known = b""
    for message in messages:
        data = dump(plain(message)).encode("utf-8", "surrogatepass")
        known = blake2b(known + data, digest_size=16).digest()
        found.append(known.hex())
    return found


def describe_decisions(view: View) -> tuple[str, ...]:
    """What was decided of a list, one sentence each."""
    return tuple(one for entry in view.entries if (one := _change(entry.record, view)))


def lets_go(view: View) -> bool:
    """Whether a result's content was cleared or stored."""
    decided = (one.record for one in view.entries if isinstance(one.record, ResultDecided))
    return any(one.content and one.action != "kept" for one in decided)


def _change(record: object, view: View) -> str:
    if isinstance(record, ResultDecided) and record.content:
        call = view.calls.get(record.call)
        name = call.name if call else ""
        why = f": {record.why}" if record.why else ""
        return f"{record.action} the result of {name} {reference(record.call)}{why}"
    if isinstance(record, Replaced):
        return f"{record.reason}{f': {record.why}' if record.why else ''}"
    return ""


# --- A caller's list as far as it was heard: what is new of it, and whose it is.
#
# A list goes on where it begins with what was heard before, or with what was handed out for that:
# a framework wrote our list over the caller's. Anything else is another list. All contents are
# compared, since callers change old messages in place.


How: TypeAlias = Literal["goes on", "tells", "another"]


class ListCursor:
    """The messages of one conversation, in our blocks."""

    def __init__(self, tools: Sequence[Mapping[str, Any]], model: str) -> None:
        self._tools, self._model = tools, model
        self._forget()

    def _forget(self) -> None:
        self.messages: list[Any] = []
        self.heard: list[ParsedMessage] = []
        self.form: Format = "chat"
        self._prints: list[bytes] = []
        self._tells = False  # whether the list itself says which form it has
        self._out: list[bytes] = []  # what was handed out last

    def take(self, messages: Sequence[Any]) -> How:
        """Take in what is new. It goes on, only now tells which form it has, or is another."""
        how: How = "goes on"
        prints = [fingerprint(m) for m in messages]
        if begins(prints, self._prints):
            new, at = list(messages), len(self._prints)
        elif self._is_ours(prints):
            new, at = self.originals(messages, prints), len(self._prints)
            prints = [*self._prints, *prints[len(self._out) :]]
        else:
            self._forget()
            new, at, how = list(messages), 0, "another"
        values = [value_of(m) for m in new[at:]]
        if not self._tells:
            whole = values if not at else [value_of(m) for m in new]
            form, self._tells = format_of(whole, self._tools, self._model)
            if form != self.form and at:
                how, values, self.heard = "tells", whole, []
            self.form = form
        self.heard += [parse_message(v, self.form) for v in values]
        self.messages, self._prints = new, prints
        return how

    def _is_ours(self, prints: Sequence[bytes]) -> bool:
        return bool(self._out) and begins(prints, self._out)

    def originals(self, messages: Sequence[Any], prints: Sequence[bytes] = ()) -> list[Any]:
        """A list in the caller's own words, where it begins with what was handed out."""
        known = prints or [fingerprint(m) for m in messages]
        if not self._is_ours(known):
            return list(messages)
        return [*self.messages, *messages[len(self._out) :]]

    def handed(self, out: Sequence[Any]) -> bool:
        """Remember what goes out; whether it differs from what came in."""
        self._out = [fingerprint(m) for m in out]
        return self._out != self._prints

    @property
    def is_fitted(self) -> bool:
        """Whether it holds words of ours whose originals nobody here knows."""
        return any(is_ours(b) for h in self.heard if h.speaker == "user" for b in h.blocks)

    @property
    def tokens(self) -> int:
        return sum([h.tokens for h in self.heard])
