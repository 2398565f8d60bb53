"""Reverie in a pydantic-ai agent: what it sends is kept small, and it remembers.

    agent = Agent("anthropic:claude-opus-5-5", capabilities=[Reverie(memory)])

A capability that fits each request and offers `read_back` and the memory's tools. The agent's own
history stays whole: what is fitted is only what is sent. A part that nothing was decided of is sent
as the object it is. Instructions and system prompts stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import messages as theirs
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.tools import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset

from reverie.context.conversations import (
    ASIDE,
    Conversations,
    FitterOptions,
    Value,
    kept_blocks,
    pictures_in,
    said_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult

    from reverie.memory.memory import Memory
    from reverie.world import Notice

__all__ = ["Reverie"]


class Reverie(AbstractCapability[Any]):
    """A context that stays small, and memory, for one agent and all its conversations."""

    def __init__(
        self,
        memory: Memory | None = None,
        *,
        learns: bool = True,
        names: Mapping[str, str] | None = None,
        on_notice: Callable[[Notice], object] | None = None,
        **options: Unpack[FitterOptions],
    ) -> None:
        self.conversations = Conversations(
            _PydanticMessages(),
            memory=memory,
            learns=learns,
            names=names,
            on_notice=on_notice,
            options=options,
        )

    def get_toolset(self) -> FunctionToolset[Any]:
        return FunctionToolset([self._tool(offer.name) for offer in self.conversations.tools])

    def _tool(self, name: str) -> Tool[Any]:
        offer = next(one for one in self.conversations.tools if one.name == name)

        async def run(ctx: RunContext[Any], **given: Any) -> Any:
            call = {"type": "tool_use", "id": ctx.tool_call_id, "name": name, "input": given}
            found = await self.conversations.aio.answer(_name(ctx), ctx.messages, call)
            pictures = [_picture(source) for source in pictures_in(found)]
            return [said_in(found), *pictures] if pictures else said_in(found)

        schema = dict(offer.schema)
        return Tool.from_schema(run, name, offer.description, schema, takes_ctx=True)

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        parameters = request_context.model_request_parameters
        tools = [
            {"name": t.name, "description": t.description, "input_schema": t.parameters_json_schema}
            for t in (*parameters.function_tools, *parameters.output_tools)
        ]
        sent = await self.conversations.aio.fit(
            _name(ctx),
            list(request_context.messages),
            model=request_context.model.model_name,
            own_tools=tools,
        )
        return replace(request_context, messages=sent)

    async def after_run(
        self, ctx: RunContext[Any], *, result: AgentRunResult[Any]
    ) -> AgentRunResult[Any]:
        del ctx
        await self.conversations.aio.learn(result.all_messages())
        return result


def _name(ctx: RunContext[Any]) -> str:
    return ctx.conversation_id or ctx.run_id or ""


class _PydanticMessages:
    """A request's parts are blocks of the user's, a response's blocks of the model's."""

    def read(self, message: theirs.ModelMessage) -> list[Value]:
        return [
            {"role": role, "content": [block for block, _ in pairs]}
            for role, pairs in _sections(message)
        ]

    def changed(
        self, message: theirs.ModelMessage, values: Sequence[Value]
    ) -> list[theirs.ModelMessage]:
        blocks = [block for value in values for block in value["content"]]
        pairs = [pair for _, section in _sections(message) for pair in section]
        kept = kept_blocks([block for block, _ in pairs], blocks)
        parts = [_part(pairs[one.at][1], one.content) for one in kept]
        whole = list(dict.fromkeys(map(id, parts)))  # a prompt of several blocks is one part
        by_id = {id(part): part for part in parts}
        return [replace(message, parts=[by_id[one] for one in whole])] if whole else []

    def made(self, value: Value) -> list[theirs.ModelMessage]:
        parts: list[theirs.ModelRequestPart] = []
        for block in value["content"]:
            if block["type"] == "tool_result":
                part = theirs.ToolReturnPart(
                    "", said_in(block), block["tool_use_id"], outcome="interrupted"
                )
            else:
                part = theirs.UserPromptPart(block["text"])
            parts.append(part)
        return [theirs.ModelRequest(parts)]


def _part(part: Any, content: Any) -> Any:
    """A part whose result became something else; its pictures stay."""
    if content is None:
        return part
    text = content if isinstance(content, str) else said_in({"content": content})
    files = list(getattr(part, "files", ()))
    return replace(part, content=[text, *files] if files else text)


def _sections(message: theirs.ModelMessage) -> list[tuple[str, list[tuple[Value, Any]]]]:
    """A message's parts as blocks, in runs of one role each."""
    out: list[tuple[str, list[tuple[Value, Any]]]] = []
    for part in message.parts:
        is_answer = isinstance(message, theirs.ModelResponse)
        blocks = [_response_block(part)] if is_answer else _request_blocks(part)
        role = "assistant" if is_answer else "user"
        if not is_answer and any(block["type"] == ASIDE for block in blocks):
            role = ASIDE
        if not out or out[-1][0] != role:
            out.append((role, []))
        out[-1][1].extend((block, part) for block in blocks)
    return out


def _request_blocks(part: Any) -> list[Value]:
    """A part of a request."""
    if isinstance(part, theirs.UserPromptPart):
        given = [part.content] if isinstance(part.content, str) else part.content
        return [_content(one) for one in given]
    if isinstance(part, theirs.ToolReturnPart):
        text = {"type": "text", "text": part.model_response_str()}
        files = [_content(file) for file in part.files]
        content = [text, *files] if files else text["text"]
        return [{"type": "tool_result", "tool_use_id": part.tool_call_id, "content": content}]
    if getattr(part, "tool_name", None) and hasattr(part, "model_response"):  # asked to try again
        content = part.model_response()
        return [{"type": "tool_result", "tool_use_id": part.tool_call_id, "content": content}]
    return [_as_it_is(part)]


def _response_block(part: Any) -> Value:
    """A part of a response."""
    if isinstance(part, theirs.TextPart):
        return {"type": "text", "text": part.content}
    if isinstance(part, theirs.ThinkingPart):
        return {"type": "thinking", "thinking": part.content, "signature": part.signature or ""}
    if isinstance(part, theirs.ToolCallPart):
        given = part.args_as_dict()
        return {
            "type": "tool_use",
            "id": part.tool_call_id,
            "name": part.tool_name,
            "input": given,
        }
    return _as_it_is(part)


def _content(one: Any) -> Value:
    if isinstance(one, str):
        return {"type": "text", "text": one}
    if isinstance(one, theirs.BinaryContent) and one.is_image:
        source = {"type": "base64", "media_type": one.media_type, "data": one.base64}
        return {"type": "image", "source": source}
    if isinstance(one, theirs.ImageUrl):
        return {"type": "image", "source": {"type": "url", "url": one.url}}
    if isinstance(one, theirs.TextContent):
        return {"type": "text", "text": one.content}
    known = getattr(one, "identifier", "")
    return {"type": "document", "source": {"type": "theirs", "kind": str(one.kind), "id": known}}


def _as_it_is(part: Any) -> Value:
    """What only pydantic-ai knows: it stays, and is told apart by what it holds."""
    if isinstance(part, theirs.FilePart):
        return _content(part.content)
    return {"type": ASIDE, "kind": part.part_kind, "text": repr(part)}


def _picture(source: Value) -> theirs.BinaryContent | theirs.ImageUrl:
    if source.get("type") == "url":
        return theirs.ImageUrl(source["url"])
    data = f"data:{source['media_type']};base64,{source['data']}"
    return theirs.BinaryContent.from_data_uri(data)
