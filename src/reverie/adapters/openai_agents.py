"""Reverie in an agent of the OpenAI Agents SDK: what it sends is kept small, and it remembers.

    session = ReverieSession(SQLiteSession("thread-1"), memory)
    agent = Agent(name="a", tools=[*my_tools, *session.tools])
    await Runner.run(agent, text, session=session, run_config=session.run_config())

A session around one of theirs, which goes on keeping every item as it came; what is fitted is only
what is sent. Items are fitted in the form they have, so nothing is translated. What lies with the
provider (`conversation_id`, `previous_response_id`) is not seen here and passes as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agents import FunctionTool, RunConfig
from agents.memory import Session, SessionABC
from agents.run_config import CallModelData, ModelInputData
from agents.tool import ToolOutputImage, ToolOutputText

from reverie.context.conversations import Conversations, FitterOptions, Value, pictures_in, said_in
from reverie.world import Notice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from agents.items import TResponseInputItem
    from agents.tool_context import ToolContext

    from reverie.memory.memory import Memory
    from reverie.toolbox.toolset import Offer

__all__ = ["ReverieSession"]


class ReverieSession(SessionABC):
    """A session whose requests stay small and whose conversations are remembered."""

    def __init__(
        self,
        session: Session,
        memory: Memory | None = None,
        *,
        learns: bool = True,
        names: Mapping[str, str] | None = None,
        on_notice: Callable[[Notice], object] | None = None,
        **options: Unpack[FitterOptions],
    ) -> None:
        self.session_id = session.session_id
        self.session_settings = session.session_settings
        self._session = session
        self._fitted = False
        self._conversations: Conversations[Any] = Conversations(
            memory=memory, learns=learns, names=names, on_notice=on_notice, options=options
        )

    @property
    def tools(self) -> list[FunctionTool]:
        """`read_back` and the memory's tools, for the agents of this session."""
        return [self._tool(offer) for offer in self._conversations.tools]

    def _tool(self, offer: Offer) -> FunctionTool:
        async def run(context: ToolContext[Any], given: str) -> Any:
            call = {"type": "tool_use", "id": context.tool_call_id, "name": offer.name}
            asked = {**call, "input": given}
            found = await self._conversations.aio.answer(self.session_id, (), asked)
            pictures = [_picture(source) for source in pictures_in(found)]
            return [ToolOutputText(text=said_in(found)), *pictures] if pictures else said_in(found)

        schema = dict(offer.schema)
        return FunctionTool(offer.name, offer.description, schema, run, strict_json_schema=False)

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """What a run is given so that its requests are fitted."""
        return replace(config or RunConfig(), call_model_input_filter=self.fit)

    async def fit(self, data: CallModelData[Any]) -> ModelInputData:
        """`call_model_input_filter`: the items to send in place of these."""
        self._fitted = True
        given, agent = data.model_data, data.agent
        tools = [tool for tool in agent.tools if isinstance(tool, FunctionTool)]
        sent = await self._conversations.aio.fit(
            self.session_id,
            given.input,
            model=_model_name(agent.model),
            own_tools=[
                {"type": "function", "name": t.name, "parameters": t.params_json_schema}
                for t in tools
            ],
        )
        return ModelInputData(sent, given.instructions)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        return await self._session.get_items(limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self._session.add_items(items)
        last = cast("Value", items[-1]) if items else {}
        if last.get("role") == "assistant":  # a turn is over
            if not self._fitted:
                text = "requests are not trimmed: pass run_config=session.run_config() to the run"
                self._conversations.say(Notice("fit", text, "warning"))
            self._fitted = True  # it is said once
            await self._conversations.aio.learn(await self._session.get_items())

    async def pop_item(self) -> TResponseInputItem | None:
        return await self._session.pop_item()

    async def clear_session(self) -> None:
        await self._session.clear_session()


def _model_name(model: Any) -> str:
    return str(model if isinstance(model, str) else getattr(model, "model", "") or "")


def _picture(source: Value) -> ToolOutputImage:
    url = source.get("url") or f"data:{source['media_type']};base64,{source['data']}"
    return ToolOutputImage(image_url=str(url))
