"""Message lists in any format, read as blocks and adopted.

Lists of messages in three wire formats, read as our blocks.

Messages, chat completions and responses; dicts or the SDKs' own objects. One message of
the caller's becomes one `ParsedMessage`, whatever it is: roles and parts that nobody knows are
kept as they are and said to be `other`. Nothing is checked, joined, renamed or left out
here (`adopting` does what a transcript needs), and nothing of the caller's is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias, cast

from reverie.errors import InvalidMessage
from reverie.light import dataclass
from reverie.transcript.blocks import Block, Json, Object, block, block_of, dump, text_block
from reverie.transcript.messages import family, interrupted_result
from reverie.wire.stream import input_text

Format: TypeAlias = Literal["messages", "chat", "responses"]
Speaker: TypeAlias = Literal["user", "assistant", "other"]
TEXTS = ("text", "input_text", "output_text")
ITEMS = frozenset(
    {
        *("message", "reasoning", "item_reference"),
        *("function_call", "function_call_output"),
        *("custom_tool_call", "custom_tool_call_output"),
    }
)
_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"}
)
_CHAT_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})
_ITEM_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """One message of the caller's in our blocks, each in the place of its own part."""

    speaker: Speaker
    blocks: tuple[Block, ...]
    marked: bool = False  # whether the caller put a cache mark on it

    @property
    def tokens(self) -> int:
        return sum([b.tokens for b in self.blocks])


# --- values


def value_of(message: object) -> dict[str, Any]:
    """A message as a plain dict of its own: a mapping, or an SDK's object of any version."""
    found = plain(message)
    if not isinstance(found, dict):
        raise InvalidMessage(
            "this is not a message",
            where=type(message).__name__,
            do="Hand in dicts, or the objects of an SDK",
        )
    return cast("dict[str, Any]", found)


def plain(value: object) -> object:
    """A value without objects in it; lists and dicts are new, all else is shared."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        found = cast("Mapping[object, object]", value)
        return {str(k): plain(v) for k, v in found.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [plain(v) for v in cast("Sequence[object]", value)]
    return plain(_dump_object(value))


def _dump_object(value: object) -> object:
    """The fields of an SDK's object."""
    new = getattr(value, "model_dump", None)
    if callable(new):
        return new(mode="json", exclude_unset=True)
    for name in ("to_dict", "dict"):
        old = getattr(value, name, None)
        if callable(old):
            return old()
    raise InvalidMessage("a message holds what is not JSON", where=type(value).__name__)


# --- which format


def format_of(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] = (),
    model: str = "",
) -> tuple[Format, bool]:
    """The format of a list, and whether the list itself tells: by what only one of them has,
    else by its tools or its model. Where it does not tell, all three read it the same."""
    for message in messages:
        found = _telling(message)
        if found:
            return found, True
    for tool in tools:
        if tool.get("type") == "function":
            return ("chat" if "function" in tool else "responses"), False
        if "input_schema" in tool:
            return "messages", False
    return ("messages" if family(model).startswith("claude") else "chat"), False


def _telling(message: Mapping[str, Any]) -> Format | None:
    kind = message.get("type")
    if isinstance(kind, str) and kind in ITEMS and (kind != "message" or "usage" not in message):
        return "responses"
    if message.get("role") in ("system", "developer", "tool", "function"):
        content = message.get("content")
        kinds = _kinds(content)
        return "responses" if kinds & _ITEM_PARTS else "chat"
    if message.get("tool_calls") or message.get("function_call"):
        return "chat"
    kinds = _kinds(message.get("content"))
    if kinds & _BLOCKS or "cache_control" in _keys(message.get("content")):
        return "messages"
    if kinds & _ITEM_PARTS:
        return "responses"
    return "chat" if kinds & _CHAT_PARTS else None


def _kinds(content: object) -> set[str]:
    return {str(p.get("type")) for p in _objects(content)}


def _keys(content: object) -> set[str]:
    return {key for part in _objects(content) for key in part}


def _objects(value: object) -> list[dict[str, Any]]:
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", v) for v in found if isinstance(v, dict)]


# --- reading


def parse_message(message: Mapping[str, Any], form: Format) -> ParsedMessage:
    """One message, or item, of a list."""
    if form == "chat":
        return _chat(message)
    return _item(message) if form == "responses" else _message(message)


def _message(message: Mapping[str, Any]) -> ParsedMessage:
    content, role = message.get("content"), message.get("role")
    blocks = tuple(_block(part) for part in _parts(content))
    marked = "cache_control" in _keys(content)
    return ParsedMessage(role if role in ("user", "assistant") else "other", blocks, marked)


def _parts(content: object) -> list[object]:
    if isinstance(content, list):
        return cast("list[object]", content)
    return [] if content is None else [content]


def _block(part: object) -> Block:
    if isinstance(part, dict):
        return block_of(cast("dict[str, Any]", part))
    return text_block(part if isinstance(part, str) else dump(part))


def _chat(message: Mapping[str, Any]) -> ParsedMessage:
    content = message.get("content")
    match message.get("role"):
        case "tool":
            return ParsedMessage("user", (result_block(message.get("tool_call_id"), content),))
        case "user":
            return ParsedMessage("user", _content(content))
        case "assistant":
            said = _content(content)
            refusal = message.get("refusal")
            if isinstance(refusal, str) and refusal:
                said = (*said, text_block(refusal))
            calls = tuple(_chat_call(c) for c in _objects(message.get("tool_calls")))
            if message.get("function_call"):  # of the oldest API: known to nobody here
                return ParsedMessage("other", (*said, *calls, block_of({"type": "function_call"})))
            return ParsedMessage("assistant", (*said, *calls))
        case _:
            return ParsedMessage("other", _content(content))


def _content(content: object) -> tuple[Block, ...]:
    if not isinstance(content, (str, list)):
        return ()
    found = content_blocks(cast("Json", content))
    return tuple(block_of(b) for b in found if isinstance(b, dict))


def _chat_call(call: Mapping[str, Any]) -> Block:
    function = call.get("function")
    if isinstance(function, dict):
        about = cast("dict[str, Any]", function)
        return call_block(call.get("id"), about.get("name"), about.get("arguments"))
    custom = call.get("custom")
    about = cast("dict[str, Any]", custom) if isinstance(custom, dict) else {}
    return call_block(call.get("id"), about.get("name"), about.get("input"))


def _item(item: Mapping[str, Any]) -> ParsedMessage:
    match item.get("type") or "message":
        case "message":
            role = item.get("role")
            known = role if role in ("user", "assistant") else "other"
            return ParsedMessage(known, _content(item.get("content")))
        case "function_call":
            return ParsedMessage("assistant", (_item_call(item, "arguments"),))
        case "custom_tool_call":
            return ParsedMessage("assistant", (_item_call(item, "input"),))
        case "reasoning":
            return ParsedMessage(
                "assistant", (block_of({"type": "reasoning", "item": dict(item)}),)
            )
        case str(kind) if kind.endswith("_call") and item.get("call_id"):
            return ParsedMessage("assistant", (call_block(item["call_id"], kind, dict(item)),))
        case str(kind) if kind.endswith("_call"):  # answered by the provider itself
            return ParsedMessage("assistant", (block_of(dict(item)),))
        case str(kind) if kind.endswith("_call_output"):
            return ParsedMessage("user", (result_block(item.get("call_id"), item.get("output")),))
        case _:
            return ParsedMessage("other", (block_of(dict(item)),))


def _item_call(item: Mapping[str, Any], given: str) -> Block:
    return call_block(item.get("call_id"), item.get("name"), item.get(given))


# --- parts that several formats share


def call_block(ident: object, name: object, arguments: object) -> Block:
    """A call; arguments that are no JSON object stand under `INVALID_JSON`."""
    written = arguments if isinstance(arguments, str) else dump(arguments or {})
    head = dump({"type": "tool_use", "id": _word(ident), "name": _word(name)})
    return block(f'{head[:-1]},"input":{input_text(written)}}}')


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


def result_block(call: object, content: object) -> Block:
    """What a tool answered."""
    return block_of(result_of(cast("Json", call), cast("Json", content)))


def result_of(call: Json, content: Json) -> Object:
    text: Json = content if isinstance(content, str) else content_blocks(content)
    return {"type": "tool_result", "tool_use_id": call, "content": text}


def content_blocks(content: Json) -> list[Json]:
    """A message's content: a string, or parts of any kind."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    out: list[Json] = []
    for part in content if isinstance(content, list) else []:
        if not isinstance(part, dict):
            continue
        kind = part.get("type")
        if kind in TEXTS:
            out.append({"type": "text", "text": part.get("text")})
        elif kind in ("image_url", "input_image"):
            out.append({"type": "image", "source": {"type": "url", "url": part.get("image_url")}})
        elif kind in ("file", "input_file"):
            out.append(
                {"type": "document", "source": {k: v for k, v in part.items() if k != "type"}}
            )
        else:
            out.append(part)
    return out


# --- Foreign lists, made fit for a transcript: `adopt`.
#
# A caller's list may hold what a transcript refuses, and all of it is the caller's right: call ids
# that are used again or left empty (renamed inside), results whose call is not there, system
# messages in the middle, roles and parts that nobody knows (kept aside, in their places), calls
# that nobody answered (the result "interrupted"). Nothing is dropped. What was adopted of a list
# stays so when more follows, but for the last round, which may still be answered.


Part: TypeAlias = Literal["user", "assistant", "aside", "interrupted"]
_USER_PARTS = ("text", "tool_result")


@dataclass(frozen=True, slots=True)
class AdoptedMessage:
    """Messages of the caller's that count as one: its own places, and the blocks of ours."""

    id: str
    part: Part
    first: int  # the place of the first of them in the caller's list
    count: int  # how many they are; none where a result was missing
    blocks: tuple[Block, ...]
    places: tuple[tuple[int, int], ...]  # of each block: message, and block in it

    @property
    def end(self) -> int:
        return self.first + self.count

    @property
    def tokens(self) -> int:
        return sum([b.tokens for b in self.blocks])


@dataclass(slots=True)
class CallIds:
    """The names of calls: those given by the caller, and ours, of which each is there once."""

    theirs: dict[str, str] = field(default_factory=dict[str, str])  # ours → the caller's
    waiting: dict[str, list[str]] = field(default_factory=dict[str, list[str]])  # theirs → ours

    def made(self, one: Block, place: str) -> Block:
        """A call that waits for its result now, under a name no other has."""
        given = one.call
        name = given if given and given not in self.theirs else f"{given}~{place}"
        self.theirs[name] = given
        self.waiting.setdefault(given, []).append(name)
        return one if name == given else one.with_member("id", dump(name))

    def answered(self, one: Block) -> Block | None:
        """A result of a call that waits, under the call's name; None where none does."""
        waiting = self.waiting.get(one.call)
        if not waiting:
            return None
        name = waiting.pop(0)
        return one if name == one.call else one.with_member("tool_use_id", dump(name))

    def left(self) -> list[str]:
        return [name for names in self.waiting.values() for name in names]


@dataclass(slots=True)
class ListAdopter:
    """Goes through a list once, from its beginning."""

    joins: bool  # whether neighbouring messages of the assistant's are one
    calls: CallIds = field(default_factory=CallIds)
    out: list[AdoptedMessage] = field(default_factory=list[AdoptedMessage])
    answered: int = 0  # where in `out` the results of the last round end

    def take(self, at: int, said: ParsedMessage) -> None:
        if said.speaker == "assistant":
            self._assistant(at, said)
        elif said.speaker == "user":
            self._user(at, said)
        else:
            self._aside(at, said)

    def _assistant(self, at: int, said: ParsedMessage) -> None:
        before = self.out[-1] if self.out else None
        joined = self.joins and before is not None and before.part == "assistant"
        if not said.blocks or all(b.blank for b in said.blocks):
            self._aside(at, said)
            return
        if not joined:
            self.close()
        made = tuple(
            self.calls.made(b, f"{at}.{n}") if b.type == "tool_use" else b
            for n, b in enumerate(said.blocks)
        )
        places = tuple((at, n) for n in range(len(made)))
        if joined and before is not None:
            self.out[-1] = AdoptedMessage(
                before.id,
                "assistant",
                before.first,
                at + 1 - before.first,
                before.blocks + made,
                before.places + places,
            )
        else:
            self.out.append(AdoptedMessage(f"m{at}", "assistant", at, 1, made, places))
        self.answered = len(self.out)

    def _user(self, at: int, said: ParsedMessage) -> None:
        blocks: list[Block] = []
        places: list[tuple[int, int]] = []
        results = 0
        for n, one in enumerate(said.blocks):
            found = self.calls.answered(one) if one.type == "tool_result" else one
            results += one.type == "tool_result" and found is not None
            if found is not None and not found.blank:
                blocks.append(found)
                places.append((at, n))
        plain = all(b.type in _USER_PARTS for b in said.blocks)
        if not blocks or not (results or plain):
            self._aside(at, said)
            return
        self.out.append(AdoptedMessage(f"m{at}", "user", at, 1, tuple(blocks), tuple(places)))
        if results == len(said.blocks) and self.answered == len(self.out) - 1:
            self.answered = len(self.out)

    def _aside(self, at: int, said: ParsedMessage) -> None:
        self.out.append(AdoptedMessage(f"m{at}", "aside", at, 1, said.blocks, ()))

    def close(self) -> None:
        """Give every call that still waits a result that says it was interrupted."""
        left = self.calls.left()
        self.calls.waiting.clear()
        if left:
            before = self.out[self.answered - 1]
            results = tuple(interrupted_result(name) for name in left)
            made = AdoptedMessage(f"{before.id}:open", "interrupted", before.end, 0, results, ())
            self.out.insert(self.answered, made)


@dataclass(frozen=True, slots=True)
class AdoptedList:
    """A whole list, adopted."""

    parts: tuple[AdoptedMessage, ...]
    theirs: dict[str, str]  # what the caller calls each call

    def settled(self) -> int:
        """How many parts stay as they are, whatever follows in the list."""
        return next(
            (n for n in reversed(range(len(self.parts))) if self.parts[n].part == "assistant"), 0
        )

    def asides(self) -> Iterator[AdoptedMessage]:
        return (p for p in self.parts if p.part == "aside")


def adopt(messages: Sequence[ParsedMessage], form: Format) -> AdoptedList:
    """A list in the parts a transcript takes."""
    adopter = ListAdopter(joins=form != "chat")
    for at, said in enumerate(messages):
        adopter.take(at, said)
    adopter.close()
    return AdoptedList(tuple(adopter.out), adopter.calls.theirs)
