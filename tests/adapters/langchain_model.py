"""A LangChain chat model over the OpenAI SDK, for a provider on this machine.

LangChain's own provider packages are not among what is installed; messages and tools go through
LangChain's own converters.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from openai import OpenAI


class ChatModel(BaseChatModel):
    client: Any
    model_name: str = "gpt-5.6"

    @classmethod
    def at(cls, url: str, window: int = 400_000) -> ChatModel:
        client = OpenAI(base_url=url, api_key="k", max_retries=0)
        return cls(client=client, profile={"max_input_tokens": window})

    @property
    def _llm_type(self) -> str:
        return "openai-sdk"

    def bind_tools(self, tools: Sequence[Any], **other: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(one) for one in tools])

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **given: Any
    ) -> ChatResult:
        tools = given.get("tools")
        sent: Any = convert_to_openai_messages(messages)
        reply = self.client.chat.completions.create(
            model=self.model_name,
            messages=sent,
            max_completion_tokens=60_000,
            **({"tools": tools} if tools else {}),
        )
        said = reply.choices[0].message
        calls = [
            {"id": c.id, "name": c.function.name, "args": json.loads(c.function.arguments)}
            for c in said.tool_calls or ()
        ]
        used = reply.usage
        counted: Any = {
            "input_tokens": used.prompt_tokens,
            "output_tokens": used.completion_tokens,
            "total_tokens": used.total_tokens,
        }
        answer = AIMessage(said.content or "", tool_calls=calls, usage_metadata=counted)
        return ChatResult(generations=[ChatGeneration(message=answer)])
