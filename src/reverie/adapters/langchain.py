"""Reverie in a LangChain agent: what it sends is kept small, and it remembers.

    agent = create_agent("anthropic:claude-opus-5-5", tools, middleware=[ReverieMiddleware(memory)])

The middleware fits each request and offers `read_back` and the memory's tools. The state, and what
a checkpointer keeps of it, stays whole: what is fitted is only what is sent. `ReverieStore` is a
LangGraph store whose items are memories, in plain files with their history.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from reverie.adapters.langgraph_store import ReverieStore
from reverie.context.conversations import (
    ASIDE,
    AT_ONCE,
    Conversations,
    FitterOptions,
    Value,
    kept_blocks,
    said_in,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Unpack

    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langgraph.prebuilt.tool_node import ToolCallRequest

    from reverie.memory.memory import Memory
    from reverie.world import Notice

__all__ = ["ReverieMiddleware", "ReverieStore"]


class ReverieMiddleware(AgentMiddleware[Any, Any, Any]):
    """A context that stays small, and memory, for one agent and all its threads.

    Each `user_id` of a run's configuration has a memory of its own at the address of `memory`;
    runs without one share that. A memory that was made for a user serves all.
    """

    def __init__(
        self,
        memory: Memory | None = None,
        *,
        learns: bool = True,
        names: Mapping[str, str] | None = None,
        on_notice: Callable[[Notice], object] | None = None,
        **options: Unpack[FitterOptions],
    ) -> None:
        super().__init__()

        @lru_cache(AT_ONCE)
        def made(user: str) -> Conversations[AnyMessage]:
            return Conversations(
                _LangChainMessages(),
                memory=memory and memory.__of_user__(user),
                learns=learns,
                names=names,
                on_notice=on_notice,
                options=options,
            )

        self._of = made
        self.conversations = made("")
        self.tools = [
            StructuredTool(
                name=one.name,
                description=one.description,
                args_schema=dict(one.schema),
                func=_elsewhere,
            )
            for one in self.conversations.tools
        ]

    def _of_user(self) -> Conversations[AnyMessage]:
        """The conversations of the user whom the run is for."""
        return self._of(user) if (user := _user_id()) else self.conversations

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(request.override(messages=self._fit_messages(request)))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        from anyio import to_thread

        sent = await to_thread.run_sync(self._fit_messages, request)
        return await handler(request.override(messages=sent))

    def _fit_messages(self, request: ModelRequest[Any]) -> list[AnyMessage]:
        return self._of_user().fit(
            _name(request.messages),
            request.messages,
            model=_model_name(request.model),
            own_tools=[_tool_definition(tool) for tool in request.tools],
        )

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]
    ) -> Any:
        return self._answer(request) or handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        from anyio import to_thread

        return await to_thread.run_sync(self._answer, request) or await handler(request)

    def _answer(self, request: ToolCallRequest) -> ToolMessage | None:
        asked, messages = request.tool_call, request.state["messages"]
        call = {
            "type": "tool_use",
            "id": asked["id"],
            "name": asked["name"],
            "input": asked["args"],
        }
        found = self._of_user().answer(_name(messages), messages, call)
        if found is None:
            return None
        content: Any = found["content"]
        if isinstance(content, list):
            content = [_theirs(block) for block in cast("list[Value]", content)]
        status = "error" if found.get("is_error") else "success"
        ident = str(asked["id"])
        return ToolMessage(content, tool_call_id=ident, name=asked["name"], status=status)

    def after_agent(self, state: Any, runtime: Any) -> None:
        del runtime
        self._of_user().learn(state["messages"])

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        del runtime
        await self._of_user().aio.learn(state["messages"])


def _user_id() -> str:
    """The user whom a run's configuration names, as LangGraph's pages and its server do."""
    try:
        given = get_config().get("configurable", {})
    except RuntimeError:  # outside a run
        return ""
    return str(given.get("langgraph_auth_user_id") or given.get("user_id") or "")


def _elsewhere(**given: Any) -> str:
    """`wrap_tool_call` answers, which knows the thread."""
    return f"This tool works inside an agent with ReverieMiddleware: {', '.join(given)}"


def _name(messages: Sequence[AnyMessage]) -> str:
    """A thread's first message has an id that no other thread has."""
    return str(messages[0].id) if messages else ""


def _model_name(model: Any) -> str:
    found = getattr(model, "model_name", None) or getattr(model, "model", None)
    return str(found or model.__class__.__name__)


def _tool_definition(tool: BaseTool | dict[str, Any]) -> Value:
    if isinstance(tool, dict) and "function" not in tool:
        return tool  # of the provider's own kinds
    about = convert_to_openai_tool(tool)["function"]
    described = {"name": about["name"], "description": about.get("description", "")}
    return {**described, "input_schema": about.get("parameters", {})}


class _LangChainMessages:
    """One message is one value; a system message in the middle stays where it stands."""

    def read(self, message: AnyMessage) -> list[Value]:
        if isinstance(message, ToolMessage):
            content = message.content
            result = content if isinstance(content, str) else _blocks(content)
            block = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": result}
            return [{"role": "user", "content": [block]}]
        role = {"human": "user", "ai": "assistant"}.get(message.type, ASIDE)
        blocks = _blocks(message.content)
        if isinstance(message, AIMessage):
            blocks = [*blocks, *_calls(message)]
        return [{"role": role, "content": blocks}]

    def changed(self, message: AnyMessage, values: Sequence[Value]) -> list[AnyMessage]:
        (before,), (after,) = self.read(message), values
        kept = kept_blocks(before["content"], after["content"])
        if isinstance(message, ToolMessage):
            content: Any = kept[0].content
            if not isinstance(content, str):
                text = {"type": "text", "text": said_in({"content": content})}
                content = [text, *[p for p in message.content if _is_media(p)]]
            return [message.model_copy(update={"content": content})]
        parts = message.content if isinstance(message.content, list) else []
        left = [parts[one.at] for one in kept if one.at < len(parts)]
        return [message.model_copy(update={"content": left})]

    def made(self, value: Value) -> list[AnyMessage]:
        out: list[AnyMessage] = []
        for block in value["content"]:
            if block["type"] == "tool_result":
                out.append(ToolMessage(said_in(block), tool_call_id=block["tool_use_id"]))
            else:
                out.append(HumanMessage(block["text"]))
        return out


def _blocks(content: str | Sequence[str | dict[str, Any]]) -> list[Value]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [_block(part) for part in content]


def _block(part: str | dict[str, Any]) -> Value:
    """A content block of theirs; the kinds that we know have the names of the Messages API."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = part.get("type")
    if kind == "text":
        return {"type": "text", "text": str(part.get("text") or "")}
    if kind in ("thinking", "redacted_thinking", "reasoning"):
        told = str(part.get("thinking") or part.get("reasoning") or "")
        return {"type": "thinking", "thinking": told, "signature": str(part.get("signature") or "")}
    if kind == "image" and part.get("base64"):
        source = {"type": "base64", "media_type": part.get("mime_type"), "data": part["base64"]}
        return {"type": "image", "source": source}
    if kind == "image" and part.get("url"):
        return {"type": "image", "source": {"type": "url", "url": part["url"]}}
    if _is_media(part):
        return {"type": "image", "source": {"type": "theirs", "value": part}}
    return {"type": ASIDE, "value": part}  # calls among them: `tool_calls` says those again


def _is_media(part: object) -> bool:
    kinds = ("image", "image_url", "input_image", "audio", "video", "file", "document")
    return isinstance(part, dict) and cast("Value", part).get("type") in kinds


def _calls(message: AIMessage) -> list[Value]:
    good = [(c["id"], c["name"], c["args"]) for c in message.tool_calls]
    bad = [(c["id"], c["name"], {"invalid": c["args"]}) for c in message.invalid_tool_calls]
    return [{"type": "tool_use", "id": i, "name": n, "input": given} for i, n, given in good + bad]


def _theirs(block: Value) -> Value:
    """A picture that was read back, as their models take it."""
    source = cast("Value", block.get("source") or {})
    if source.get("type") == "theirs":
        return source["value"]
    if source.get("type") == "base64":
        return {"type": "image", "base64": source["data"], "mime_type": source["media_type"]}
    if source.get("type") == "url":
        return {"type": "image", "url": source["url"]}
    return block
