"""Doors into other people's agents: pydantic-ai, LangChain, the OpenAI Agents SDK, the Claude Agent
SDK. Each is one module, an extra, and a translation of messages and hooks; what they do is done by
`reverie.api.conversations`. None is imported unless it is asked for."""
