"""Scripts, and models as answerers.

Where the simulated provider's answers come from.

An answerer is a callable from the request body, as the model is shown it, to an answer:
a text, blocks, or an `SimulatedAnswer`; it may be a coroutine function. `script` plays a list,
`load` a file, `from_model` asks any `world.Model`. An answerer never sees keys, marks it
did not ask for, or the cache.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

from reverie.errors import InvalidInput
from reverie.simulator.faults import InjectedFault, from_json
from reverie.simulator.prompt_cache import Charge, blocks_in, objects
from reverie.transcript.blocks import (
    Block,
    Json,
    Object,
    block,
    block_of,
    blocks_of,
    dump,
    estimate,
    join_members,
    members,
    text_of,
)
from reverie.transcript.messages import Item, Message, SentBlock, message
from reverie.transcript.records import HeadSet
from reverie.transcript.view import Trail
from reverie.wire.request import Request
from reverie.world import Model, complete

SPENT = "The script has no more answers."


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """A response in the making; `fault` befalls the request it would answer."""

    content: tuple[Block, ...]
    stop_reason: str = ""
    fault: InjectedFault | None = None


AnswerBlocks: TypeAlias = "Mapping[str, Json] | Sequence[Mapping[str, Json] | Block]"
Given: TypeAlias = "str | SimulatedAnswer | InjectedFault | AnswerBlocks"
Answerer: TypeAlias = Callable[[Object], "Given | Awaitable[Given]"]


def answer(given: Given) -> SimulatedAnswer:
    """An answer in any of the forms people write it."""
    if isinstance(given, SimulatedAnswer):
        return given
    if isinstance(given, InjectedFault):
        return SimulatedAnswer((), fault=given)
    if isinstance(given, str):
        return SimulatedAnswer(blocks_of(given))
    if isinstance(given, Mapping):
        return _from_mapping(given)
    return SimulatedAnswer(blocks_of(given))


def _from_mapping(given: Mapping[str, Json]) -> SimulatedAnswer:
    """`{"content": …, "stop_reason": …, "fault": …}`, or one block."""
    if "type" in given:
        return SimulatedAnswer((block_of(given),))
    content = given.get("content")
    if content is not None and not isinstance(content, (str, list)):
        raise InvalidInput("a scripted answer's content is neither text nor blocks")
    fault = from_json(given["fault"]) if "fault" in given else None
    blocks = blocks_of(content) if isinstance(content, str) else blocks_of(objects(content))
    return SimulatedAnswer(blocks, str(given.get("stop_reason") or ""), fault)


def call(name: str, given: Mapping[str, Json] | str = "{}", ident: str = "") -> Block:
    """A tool call to put into an answer. An input given as JSON text keeps its bytes;
    without an id the engine gives it one."""
    text = given if isinstance(given, str) else dump(dict(given))
    parts = {"type": '"tool_use"', "id": dump(ident), "name": dump(name), "input": text}
    return block(join_members(parts))


def thinking_block(text: str) -> Block:
    """A thinking block to put into an answer; the engine signs it."""
    return block_of({"type": "thinking", "thinking": text, "signature": ""})


class Script:
    """Answers one after another, each the first that fits; then `otherwise`, for ever."""

    def __init__(self, answers: Iterable[Given], otherwise: Given = SPENT) -> None:
        self._rest = list(answers)
        self._otherwise = otherwise

    def __call__(self, body: Object) -> Given:
        for at, given in enumerate(self._rest):
            if _fits(given, body):
                return self._rest.pop(at)
        return self._otherwise


def script(*answers: Given, otherwise: Given = SPENT) -> Script:
    return Script(answers, otherwise)


def _fits(given: Given, body: Object) -> bool:
    """Whether an entry's `when` holds: `last` (text of the last message), `model`, `tools`."""
    when = given.get("when") if isinstance(given, Mapping) else None
    if not isinstance(when, dict):
        return True
    if "last" in when and str(when["last"]) not in last_text(body):
        return False
    if "model" in when and str(when["model"]) not in str(body.get("model")):
        return False
    return "tools" not in when or bool(body.get("tools")) == when["tools"]


def last_text(body: Object) -> str:
    """The readable text of the last message that is not a system one."""
    said = [m for m in objects(body.get("messages")) if m.get("role") != "system"]
    return text_of(said[-1].get("content")) if said else ""


def load(path: Path) -> Script:
    """A script from a JSON file: a list of answers, or `{"answers": […], "otherwise": …}`."""
    try:
        value = cast("Json", json.loads(path.read_text(encoding="utf-8")))
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise InvalidInput(f"the script cannot be read: {why}", where=str(path)) from problem
    except ValueError as problem:
        raise InvalidInput(
            f"the script is no JSON: {problem}",
            where=str(path),
            do='Give a list of answers, such as ["Hello."]',
        ) from problem
    otherwise: Json = SPENT
    if isinstance(value, dict):
        otherwise = value.get("otherwise", SPENT)
        value = value.get("answers")
    if not isinstance(value, list) or not all(isinstance(v, (str, list, dict)) for v in value):
        raise InvalidInput("a script is a list of texts, blocks or answers", where=str(path))
    return Script([cast("Given", v) for v in value], cast("Given", otherwise))


async def ask_answerer(
    answerer: Answerer, body: Object, request: Request | None = None
) -> SimulatedAnswer:
    """Ask, and wait where waiting is needed. A model is handed our own request if there is one."""
    if isinstance(answerer, ModelAnswers):
        return await answerer.reply(body, request)
    found = answerer(body)
    return answer(await found if inspect.isawaitable(found) else found)


class ModelAnswers:
    """Any model of ours as an answerer."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __call__(self, body: Object) -> Awaitable[Given]:
        return self.reply(body, None)

    async def reply(self, body: Object, request: Request | None) -> SimulatedAnswer:
        given = await complete(self.model, request or request_of(body))
        return SimulatedAnswer(given.blocks, given.stop_reason)


def from_model(model: Model) -> ModelAnswers:
    return ModelAnswers(model)


def request_of(body: Object) -> Request:
    """A request of ours from a body of the Messages API."""
    head = HeadSet(
        str(body.get("model") or ""),
        dump(blocks_in(body.get("system"))),
        dump(objects(body.get("tools"))),
        options=dump({k: v for k, v in body.items() if k not in _HEAD}),
    )
    messages: list[Message] = []
    for at, given in enumerate(objects(body.get("messages"))):
        role = "assistant" if given.get("role") == "assistant" else "user"
        blocks = [block_of(b) for b in blocks_in(given.get("content"))]
        pieces = tuple(SentBlock(b, f"m{at}", n) for n, b in enumerate(blocks))
        before = messages[-1] if messages else None
        messages.append(message([Item(f"m{at}", role, pieces)], before))
    return Request(head, Trail(messages), ())


_HEAD = ("model", "system", "tools", "messages", "cache_control")


# --- A whole response of the Messages API, with its blocks as they were made.
#
# `text()` is the JSON a client receives; blocks go into it byte for byte. A value once made is
# never changed; how it travels (whole, or as events) is the wire's business.


@dataclass(frozen=True, slots=True)
class SimulatedResponse:
    """What the model said and what it is billed as."""

    id: str
    model: str
    content: tuple[Block, ...]
    stop_reason: str
    usage: Object
    extra: Object  # context_management, diagnostics, input_transformations, where asked for

    @property
    def output(self) -> int:
        found = self.usage.get("output_tokens")
        return found if isinstance(found, int) else 0

    def head(self, *, content: str = "[]", stop: str | None = None) -> dict[str, str]:
        """The members' texts, in the API's order."""
        parts = {
            "id": dump(self.id),
            "type": '"message"',
            "role": '"assistant"',
            "model": dump(self.model),
            "content": content,
            "stop_reason": dump(stop),
            "stop_sequence": "null",
            "usage": dump(self.usage),
        }
        return parts | {k: dump(v) for k, v in self.extra.items()}

    def input_of(self, block: Block) -> str:
        """A call's input as far as it was written: the output limit cuts the last one short."""
        whole = members(block.raw)["input"][0]
        cut = self.stop_reason == "max_tokens" and block is self.content[-1]
        return whole[:-1] if cut else whole

    def text(self) -> str:
        content = f"[{','.join(b.raw for b in self.content)}]"
        return join_members(self.head(content=content, stop=self.stop_reason))


def usage_of(charge: Charge, output: int, thinking: int, *, compacting: bool) -> Object:
    """Usage exactly as the API reports it; a compaction's own tokens stand apart."""
    counts = _counts(charge, output)
    if compacting:
        entry: Object = {"type": "compaction", **counts}
        return {**_counts(Charge(), 0), "service_tier": "standard", "iterations": [entry]}
    details: Object = {"output_tokens_details": {"thinking_tokens": thinking}}
    return {**counts, **details, "service_tier": "standard"}


def _counts(charge: Charge, output: int) -> Object:
    return {
        "input_tokens": charge.plain,
        "cache_creation_input_tokens": charge.written,
        "cache_read_input_tokens": charge.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": charge.written_5m,
            "ephemeral_1h_input_tokens": charge.written_1h,
        },
        "output_tokens": output,
    }


def fit_blocks(blocks: tuple[Block, ...], limit: int) -> tuple[tuple[Block, ...], bool]:
    """The blocks that fit into so many tokens; the last text is cut. True if all fit."""
    room = limit
    kept: list[Block] = []
    for one in blocks:
        if one.tokens <= room:
            kept.append(one)
            room -= one.tokens
            continue
        if one.type == "text" and room > 0:
            data = one.get("text").encode("utf-8", "replace")[: room * 4]
            kept.append(one.with_member("text", dump(data.decode("utf-8", "ignore"))))
        return tuple(kept), False
    return tuple(kept), True


def thinking_tokens(blocks: tuple[Block, ...]) -> int:
    return sum(estimate(b.value) for b in blocks if b.thinking)
