"""Real agents of four frameworks, with their own loops, against the simulated provider.

Each plays the same recorded course with our adapter and with what its framework has of its own.
Cost is the provider's bill; what is lost is found out by asking the model for it.
"""

from __future__ import annotations

import gc
import json
import re
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent as OpenAIAgent,
)
from agents import (
    FunctionTool,
    ModelSettings,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    set_tracing_disabled,
)
from agents.extensions.tool_output_trimmer import ToolOutputTrimmer
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    SdkMcpTool,
    create_sdk_mcp_server,
)
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    SummarizationMiddleware,
)
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from openai import AsyncOpenAI
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import Caching, ProcessHistory
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.tools import Tool
from pydantic_ai.usage import UsageLimits

import reverie
from reverie import testing
from reverie.adapters import Reverie, ReverieMiddleware, ReverieSession, with_reverie

from .course import Ask, Course, Played, play, trace
from .langchain_model import ChatModel

pytestmark = [
    pytest.mark.spec("18.adapters"),
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
set_tracing_disabled(True)
CLAUDE, GPT = "claude-opus-4-8", "gpt-5.6"
OUTPUT = 60_000
PAGE = Path(__file__).resolve().parents[2] / "docs" / "adapters.md"


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Frameworks leave clients open that belong to a loop which has ended."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


# --- one agent of each framework


def pydantic_agent(*capabilities: Any) -> Callable[[Course, testing.Provider], Ask]:
    def begin(course: Course, provider: testing.Provider) -> Ask:
        own = AnthropicProvider(api_key="k", base_url=provider.anthropic_url)

        def tool(about: dict[str, Any]) -> Tool[Any]:
            async def run(ctx: RunContext[Any], **given: Any) -> str:
                return course.run_tool(str(ctx.tool_call_id))

            return Tool.from_schema(
                run, about["name"], about["description"], about["input_schema"], takes_ctx=True
            )

        agent = Agent(
            AnthropicModel(CLAUDE, provider=own),
            instructions=course.system,
            tools=[tool(about) for about in course.tools],
            capabilities=[Caching(), *capabilities],
            model_settings={"max_tokens": OUTPUT},
        )
        history: list[Any] = []

        async def ask(text: str) -> None:
            limits = UsageLimits(request_limit=None)
            done = await agent.run(text, message_history=list(history), usage_limits=limits)
            history[:] = done.all_messages()

        return ask

    return begin


class RecordedTools(AgentMiddleware[Any, Any, Any]):
    """The tools of the trace."""

    def __init__(self, course: Course) -> None:
        super().__init__()
        self._course = course
        self.tools = [
            StructuredTool(
                name=about["name"],
                description=about["description"],
                args_schema=about["input_schema"],
                func=lambda **given: None,
            )
            for about in course.tools
        ]

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        call = request.tool_call
        if call["id"] not in self._course.results:
            return await handler(request)
        text = self._course.run_tool(call["id"])
        return ToolMessage(text, tool_call_id=call["id"], name=call["name"])


def langchain_agent(
    made: Callable[[ChatModel], list[Any]],
) -> Callable[[Course, testing.Provider], Ask]:
    def begin(course: Course, provider: testing.Provider) -> Ask:
        model = ChatModel.at(provider.openai_url)
        agent = create_agent(
            model,
            system_prompt=course.system,
            middleware=[RecordedTools(course), *made(model)],
            checkpointer=InMemorySaver(),
        )
        config: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 10_000}

        async def ask(text: str) -> None:
            said: Any = {"messages": [{"role": "user", "content": text}]}
            await agent.ainvoke(said, config)

        return ask

    return begin


def openai_agent(kind: str) -> Callable[[Course, testing.Provider], Ask]:
    def begin(course: Course, provider: testing.Provider) -> Ask:
        async def run(context: Any, given: str) -> str:
            return course.run_tool(context.tool_call_id)

        tools = [
            FunctionTool(
                one["name"], one["description"], one["input_schema"], run, strict_json_schema=False
            )
            for one in course.tools
        ]
        session: Any = SQLiteSession("s")
        config = RunConfig()
        if kind == "trimmer":
            config = RunConfig(call_model_input_filter=ToolOutputTrimmer())
        if kind == "reverie":
            session = ReverieSession(session, window=400_000)
            config, tools = session.run_config(), [*tools, *session.tools]

        async def ask(text: str) -> None:
            async with AsyncOpenAI(base_url=provider.openai_url, api_key="k") as client:
                agent = OpenAIAgent(
                    name="a",
                    instructions=course.system,
                    model=OpenAIResponsesModel(GPT, openai_client=client),
                    model_settings=ModelSettings(max_tokens=OUTPUT),
                    tools=list(tools),
                )
                await Runner.run(agent, text, session=session, run_config=config, max_turns=10_000)

        return ask

    return begin


def claude_options(home: Path, url: str, **other: Any) -> ClaudeAgentOptions:
    environ = {
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-fake-0000",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }
    return ClaudeAgentOptions(
        model=CLAUDE,
        setting_sources=[],
        permission_mode="bypassPermissions",
        cwd=home,
        env=environ,
        **other,
    )


def claude_agent(
    home: Path, memory: reverie.Memory | None, ends: list[Callable[[], Awaitable[None]]]
) -> Callable[[Course, testing.Provider], Ask]:
    def begin(course: Course, provider: testing.Provider) -> Ask:
        for step in course.steps:
            for block in step["blocks"]:
                if block["type"] == "tool_use":
                    plain = block["name"].removeprefix("mcp__course__")
                    block["name"] = f"mcp__course__{plain}"
        waiting = list(course.results)  # calls come one after another

        async def run(given: Any) -> dict[str, Any]:
            text = course.run_tool(waiting.pop(0))
            return {"content": [{"type": "text", "text": text}]}

        own = [
            SdkMcpTool(one["name"], one["description"], one["input_schema"], run)
            for one in course.tools
        ]
        options = claude_options(
            home,
            provider.anthropic_url,
            system_prompt=course.system,
            tools=["Read"],
            mcp_servers={"course": create_sdk_mcp_server("course", tools=own)},
        )
        client = ClaudeSDKClient(with_reverie(options, memory) if memory else options)
        ends.append(client.disconnect)
        begun: list[bool] = []

        async def ask(text: str) -> None:
            if not begun:
                begun.append(True)
                await client.connect()
            await client.query(text)
            async for _ in client.receive_response():
                pass

        return ask

    return begin


# --- cheaper, and nothing lost


def assert_better(ours: Played, theirs: dict[str, Played]) -> None:
    assert ours.refused == []
    assert ours.lost == []
    assert ours.others == 0  # no summary was bought
    for name, one in theirs.items():
        assert one.refused == [], name
        assert ours.cost < one.cost, name


async def test_pydantic_ai_is_cheaper_than_with_its_own_processors(
    shared: Path, home: Path
) -> None:
    given = trace(shared, 40)
    ours = await play(given, pydantic_agent(Reverie()))

    def newest(messages: list[Any]) -> list[Any]:
        """The sliding window of its documentation, cut where a request of the user's begins."""
        starts = [n for n, m in enumerate(messages) if "UserPromptPart" in repr(m)]
        return messages[min(starts[-1], len(messages) - 1) :] if len(messages) > 20 else messages

    theirs = {"nothing": await play(given, pydantic_agent())}
    assert_better(ours, theirs)
    assert ours.cost < 0.4 * theirs["nothing"].cost
    window = await play(given, pydantic_agent(ProcessHistory(newest)))
    assert window.lost  # the judge notices what a sliding window drops


async def test_langchain_is_cheaper_than_with_its_own_middleware(shared: Path, home: Path) -> None:
    given = trace(shared, 40)
    ours = await play(given, langchain_agent(lambda _: [ReverieMiddleware(window=400_000)]))
    own: dict[str, Callable[[ChatModel], list[Any]]] = {
        "nothing": lambda _: [],
        "clearing": lambda _: [ContextEditingMiddleware()],
        "clearing at 40,000": lambda _: [
            ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=40_000)])
        ],
        "summaries": lambda m: [SummarizationMiddleware(m, trigger=("fraction", 0.8))],
        "summaries at 40,000": lambda m: [SummarizationMiddleware(m, trigger=("tokens", 40_000))],
    }
    theirs = {name: await play(given, langchain_agent(one)) for name, one in own.items()}
    assert_better(ours, theirs)
    assert ours.cost < 0.6 * min(one.cost for one in theirs.values())
    assert theirs["clearing at 40,000"].lost
    assert theirs["summaries at 40,000"].lost


async def test_openai_agents_are_cheaper_than_with_their_own_trimmer(
    shared: Path, home: Path
) -> None:
    given = trace(shared, 40)
    ours = await play(given, openai_agent("reverie"))
    theirs = {name: await play(given, openai_agent(name)) for name in ("nothing", "trimmer")}
    assert_better(ours, theirs)
    assert ours.cost < 0.6 * min(one.cost for one in theirs.values())


async def test_claude_agents_are_cheaper_than_by_themselves(
    shared: Path, home: Path, tmp_path: Path
) -> None:
    given = trace(shared, 120)
    ends: list[Callable[[], Awaitable[None]]] = []
    try:
        plain = await play(given, claude_agent(tmp_path, None, ends))
        ours = await play(given, claude_agent(tmp_path, reverie.Memory("p"), ends))
    finally:
        for end in ends:
            await end()
    assert ours.refused == []
    assert ours.lost == plain.lost == []
    assert ours.cost < 0.8 * plain.cost


# --- the examples of the page: memory of one conversation is there in the next


def examples() -> dict[str, str]:
    """The Python blocks of the page, by the heading they stand under."""
    found = re.findall(
        r"^## (.+?)\n.*?^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    return dict(found)


def loaded(name: str) -> dict[str, Any]:
    code = examples()[name]
    assert len(code.strip().splitlines()) <= 15
    made: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, f"docs/adapters.md, {name}", "exec"), made)
    return made


TOLD = "Remember that the zebra build fails on node 18, because openssl moved to /opt/zebra"
ASKED = "Why does the zebra build fail?"


@contextmanager
def two_conversations() -> Iterator[testing.Provider]:
    """A provider for a conversation that tells, and one that asks: the second request to have
    the words of the first conversation must have them from memory."""
    with testing.provider(["I will.", "Because openssl moved."]) as provider:
        yield provider
    first, second = (json.dumps(one.body) for one in provider.requests)
    assert TOLD in first
    assert ASKED not in first
    assert ASKED in second
    assert "/opt/zebra" in second
    assert all(one.status == 200 for one in provider.requests)


async def test_the_example_of_pydantic_ai(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with two_conversations() as provider:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.anthropic_url)
        ask = loaded("pydantic-ai")["answer"]
        assert await ask(TOLD) == "I will."
        assert await ask(ASKED) == "Because openssl moved."


async def test_the_example_of_langchain(home: Path) -> None:
    with two_conversations() as provider:
        ask = loaded("LangChain and LangGraph")["answer"]
        model = ChatModel.at(provider.openai_url)
        assert ask(model, TOLD) == "I will."
        assert ask(model, ASKED) == "Because openssl moved."


async def test_the_example_of_openai_agents(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with two_conversations() as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_url)
        ask = loaded("OpenAI Agents SDK")["answer"]
        assert await ask("one", TOLD) == "I will."
        assert await ask("two", ASKED) == "Because openssl moved."


async def test_the_example_of_the_claude_agent_sdk(home: Path, tmp_path: Path) -> None:
    with two_conversations() as provider:
        ask = loaded("Claude Agent SDK")["answer"]
        options = claude_options(tmp_path, provider.anthropic_url)
        assert await ask(options, TOLD) == "I will."
        assert await ask(options, ASKED) == "Because openssl moved."
