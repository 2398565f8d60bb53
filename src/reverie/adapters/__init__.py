"""Doors into other people's agents: pydantic-ai, LangChain, the OpenAI Agents SDK, the Claude Agent
SDK. Each is one module, an extra, and a translation of messages and hooks; what they do is done by
`reverie.context.conversations`. None is imported unless it is asked for.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "anthropic": "AsyncMemoryTool MemoryTool",
        "claude_agent": "with_reverie",
        "langchain": "ReverieMiddleware",
        "langgraph_store": "ReverieStore",
        "openai_agents": "ReverieSession",
        "pydantic_ai": "Reverie",
        "telemetry": "enable",
    },
)
