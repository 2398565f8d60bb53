"""A model's whole answer, its calls and its pieces, read from any form that people have it in.

Messages, chat completions and responses; the SDKs' objects of any version, dicts, JSON texts, the
events of a stream that has ended. Which format it is, the answer itself tells. An answer that
broke off or cannot be read raises InvalidMessage: there is no half reply.

Messages that people hand in are read here too. A value's first serialisation is the one kept; a
text that is JSON already is kept as it is. What cannot be read as a message raises InvalidMessage
before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from reverie.errors import InvalidMessage
from reverie.light import dataclass
from reverie.transcript.blocks import (
    Block,
    Json,
    block_of,
    blocks_of,
    dump,
    members,
    parse,
    text_block,
)
from reverie.transcript.records import AssistantMessage, Usage, UserMessage, speaker
from reverie.wire.forms import OUTPUTS
from reverie.wire.lists import Format, content_blocks, plain, result_block, value_of

if TYPE_CHECKING:
    from reverie import world  # the public signature of `like` names it so
    from reverie.wire.chat import ChatAssembler
    from reverie.wire.messages import MessagesAssembler
    from reverie.wire.request import Request
    from reverie.wire.responses import ResponsesAssembler

WHERE = "the reply that was handed in"
WANTED = "Hand in what the client returned: its object, its dict, or its stream once it has ended"
FINAL = ("get_final_message", "get_final_completion", "get_final_response")
"""How the SDKs' helpers for streams call the whole answer."""


Observable: TypeAlias = object
"""An answer of a model, in whatever form its client gives it."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model made; `raw` is what it was given, as the model wrote it."""

    id: str
    name: str
    raw: str

    @property
    def arguments(self) -> dict[str, Any]:
        """What it was given, as a dict. Arguments that are no JSON object stand as their text
        under `INVALID_JSON`, so that the tool can refuse them and the model reads why."""
        try:
            found = parse(self.raw)
        except InvalidMessage:
            found = None
        return dict(found) if isinstance(found, dict) else {"INVALID_JSON": self.raw}

    def result(self, content: object, *, is_error: bool = False) -> UserMessage:
        """What the tool answered, for `Session.add`: a text, content blocks, or any other value,
        which the model gets as JSON."""
        value: dict[str, Any] = {"type": "tool_result", "tool_use_id": self.id}
        value["content"] = _content(content, self.name)
        return UserMessage((block_of({**value, "is_error": True} if is_error else value),), "tool")


def _are_blocks(given: object) -> bool:
    parts = cast("Sequence[object]", given) if isinstance(given, (list, tuple)) else ()
    return bool(parts) and all(isinstance(part, Mapping) and "type" in part for part in parts)


def _content(given: object, name: str) -> object:
    """A text or content blocks as they are; any other value as its JSON."""
    if isinstance(given, str) or _are_blocks(given):
        return given
    try:
        return dump(given)
    except InvalidMessage as error:
        raise InvalidMessage(
            f"a result is a text, content blocks, or what JSON can say: {error.what}",
            where=f"{name}: {type(given).__name__}",
            do="Make a text of it first",
        ) from error


@dataclass(frozen=True, slots=True)
class ReplyContent:
    """A whole response, in our form, with what else the provider said of it."""

    blocks: tuple[Block, ...]
    usage: Usage | None = None
    stop_reason: str = ""
    model: str = ""
    provider: str = ""
    message_id: str = ""
    native: str = ""
    applied_edits: str = "[]"
    diagnostics: str = "null"

    @property
    def text(self) -> str:
        return "".join(b.get("text") for b in self.blocks if b.type == "text")

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(
            ToolCall(b.call, b.get("name"), members(b.raw)["input"][0])
            for b in self.blocks
            if b.type == "tool_use" and "input" in b.value
        )

    def record(self) -> AssistantMessage:
        return AssistantMessage(
            self.blocks,
            self.model,
            self.provider,
            self.message_id,
            self.stop_reason,
            self.usage,
            self.native,
            self.diagnostics,
            self.applied_edits,
        )


@dataclass(frozen=True, slots=True)
class Reply(ReplyContent):
    """A whole answer of a model, whichever API it came from."""

    @classmethod
    def of(cls, answer: Observable) -> Reply:
        """An SDK's object, a dict, a JSON text, or a stream that has ended, of any of the three
        APIs."""
        return as_reply(answer)

    @classmethod
    def like(cls, reply: world.Reply) -> Reply:
        """The same answer, as this class."""
        return reply


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an answer on its way, for people to watch; never recorded."""

    kind: Literal["text", "thinking", "tool"]
    text: str


def as_reply(answer: Observable, request: Request | None = None) -> Reply:
    """An answer in our form. With the request that it answers, each of its calls gets a name
    that no other call of the session has."""
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, str):
        return _read(parse(answer), answer, request)
    if isinstance(answer, Mapping) or _is_object(answer):
        value = plain(cast("object", answer))
        return _read(value, dump(value), request)
    events = _events(answer)
    if events is None:
        raise _unknown(type(answer).__name__)
    return _read_stream(events, request)


def _is_object(answer: object) -> bool:
    return any(callable(getattr(answer, name, None)) for name in ("model_dump", "to_dict", "dict"))


def _unknown(where: str) -> InvalidMessage:
    return InvalidMessage("this is no answer of a model that is known", where=where, do=WANTED)


# --- in one piece


def format_of(value: object) -> Format | None:
    """The format of an answer, or of an event of a stream; None where nobody can say."""
    if not isinstance(value, Mapping):
        return None
    found = cast("Mapping[str, Any]", value)
    kind = str(found.get("type") or "")
    if "choices" in found or kind == "chunk":
        return "chat"
    if found.get("object") == "response" or kind.startswith("response.") or "output" in found:
        return "responses"
    if isinstance(found.get("content"), list) or kind.startswith(("message_", "content_block_")):
        return "messages"
    return "chat" if found.get("role") == "assistant" else None


def _read(value: object, text: str, request: Request | None) -> Reply:
    from reverie.wire import messages
    from reverie.wire.chat import ChatAssembler
    from reverie.wire.failures import FailedAttempt
    from reverie.wire.responses import ResponsesAssembler

    form = format_of(value)
    if form is None:
        raise _unknown(type(value).__name__)
    try:
        if form == "messages":
            return messages.read(text)
        if form == "responses":
            return ResponsesAssembler(request, WHERE).read(text)
        return ChatAssembler(request, WHERE).read(
            _completion(cast("Mapping[str, Any]", value), text)
        )
    except InvalidMessage as error:
        raise InvalidMessage(
            f"the reply cannot be read: {error.what}", where=form, do=WANTED
        ) from error
    except FailedAttempt as failed:
        raise failed.error from None


def _completion(value: Mapping[str, Any], text: str) -> str:
    """A message that was taken out of its completion, put back into one."""
    if "choices" in value:
        return text
    finish = "tool_calls" if value.get("tool_calls") else "stop"
    return f'{{"choices":[{{"index":0,"finish_reason":"{finish}","message":{text}}}]}}'


# --- in events


def _events(answer: object) -> Iterable[object] | None:
    """The events of a stream that need not be waited for."""
    for name in FINAL:
        final: Callable[[], object] | None = getattr(answer, name, None)
        if final is not None:
            return [final()]
    return cast("Iterable[object]", answer) if isinstance(answer, Iterable) else None


def _read_stream(events: Iterable[object], request: Request | None) -> Reply:
    from reverie.wire.failures import FailedAttempt

    taken: MessagesAssembler | ChatAssembler | ResponsesAssembler | None = None
    for event in events:
        value = plain(event)
        if taken is None:
            if _is_whole(value):
                return _read(value, dump(value), request)
            taken = _assembly(value, request)
        try:
            taken.take(dump(_chunk(value)))
        except FailedAttempt as failed:
            raise failed.error from None
    if taken is None or not (taken.done or taken.ended()):
        raise InvalidMessage("the stream broke off before the answer was whole", do=WANTED)
    return taken.reply()


def _chunk(value: object) -> object:
    """An event of a stream; the SDKs' own helpers wrap those of chat completions."""
    if isinstance(value, dict) and "chunk" in value:
        return cast("dict[str, object]", value)["chunk"]
    return cast("object", value)


def _is_whole(value: object) -> bool:
    """Whether a value is an answer and no event of one."""
    if not isinstance(value, dict):
        return False
    found = cast("dict[str, Any]", value)
    kind = str(found.get("type") or "")
    is_event = kind == "chunk" or kind.startswith(("message_", "content_block_", "response."))
    return (
        not is_event and found.get("object") != "chat.completion.chunk" and bool(format_of(found))
    )


def _assembly(
    value: object, request: Request | None
) -> MessagesAssembler | ChatAssembler | ResponsesAssembler:
    from reverie.wire.chat import ChatAssembler
    from reverie.wire.messages import MessagesAssembler
    from reverie.wire.responses import ResponsesAssembler

    form = format_of(value)
    if form == "chat":
        return ChatAssembler(request, WHERE)
    if form == "responses":
        return ResponsesAssembler(request, WHERE)
    if form == "messages":
        return MessagesAssembler(WHERE)
    raise _unknown(type(value).__name__)


# --- messages as people hand them in


class SdkObject(Protocol):
    """An object of an SDK."""

    def model_dump(self, *, mode: str, exclude_unset: bool) -> dict[str, Any]: ...


Addable: TypeAlias = "str | Block | UserMessage | Mapping[str, Any] | SdkObject"


def user(*content: str | Mapping[str, Any] | Block) -> UserMessage:
    """A message of the user's: texts, or content blocks."""
    parts = [text_block(c) if isinstance(c, str) else c for c in content]
    return UserMessage(blocks_of(parts))


def tool_result(
    call: str, content: str | Sequence[Mapping[str, Any]], *, is_error: bool = False
) -> UserMessage:
    """What a tool answered."""
    return ToolCall(call, "", "").result(content, is_error=is_error)


def as_user(said: Sequence[Addable]) -> UserMessage:
    """Everything handed in, as one user message; who speaks in it, each block tells."""
    if not said:
        raise InvalidMessage("nothing was handed in", do="Add at least one message")
    parts = [_one(s) for s in said]
    blocks = tuple(b for p in parts for b in p.blocks)
    if all(b.blank for b in blocks):
        raise InvalidMessage("a user message has no content", do="Send some text, or a result")
    return UserMessage(blocks, parts[0].origin)


def _one(said: Addable) -> UserMessage:
    if isinstance(said, UserMessage):
        return said
    if isinstance(said, str):
        return user(said)
    if isinstance(said, Block):
        return UserMessage((said,), speaker(said))
    value = said if isinstance(said, Mapping) else value_of(said)
    if value.get("role") == "tool":
        return _one(result_block(value.get("tool_call_id"), value.get("content")))
    if str(value.get("type")) in OUTPUTS:
        return _one(result_block(value.get("call_id"), value.get("output")))
    if "role" not in value:
        return _one(block_of(value))
    if value["role"] != "user":
        raise InvalidMessage(
            "only user messages are added",
            where=f"role {value['role']}",
            do="Hand the model's own messages to observe",
        )
    return _from_content(value.get("content"))


def _from_content(content: object) -> UserMessage:
    if isinstance(content, str):
        return user(content)
    if not isinstance(content, Sequence):
        raise InvalidMessage("a message's content must be text or a list of blocks")
    parts = plain(cast("object", content))
    blocks = blocks_of(cast("Sequence[Mapping[str, Any]]", content_blocks(cast("Json", parts))))
    return UserMessage(blocks)
