"""A memory as an MCP server, on the official SDK: its tools, resources and prompts.

Thin: tools are the library's (`api.model_tools`), resources are the index and the memories, prompts
are the two things a person asks for by hand. Inputs are held against their schemas here. Calls
run in few worker threads, and a client that sends more than can wait is told so; a call that
is cancelled is finished all the same, since it may be half on the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import anyio
import mcp_types as types
from anyio import to_thread
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

import reverie
from reverie.errors import NotFound, ReverieError
from reverie.memory.dream_tools import ClientDreams
from reverie.memory.model_tools import READING, model_tools
from reverie.toolbox.json_schema import Check, checker

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from reverie.memory.memory import Memory
    from reverie.toolbox.toolset import Toolset

NAME = "reverie"
INDEX = "reverie://index"
TOPIC = "reverie://memory/"
MARKDOWN = "text/markdown"
AT_ONCE = 4
"""Calls that work at the same time."""
WAITING = 64
"""Calls that may wait for those."""
PAGE = 100
"""Resources of one page."""
INSTRUCTIONS = """\
Reverie is the long-term memory of this project. It holds what earlier conversations left: who \
the person is, how they want work done, decisions and their reasons, where things are found.

Search it at the start of a task, and before you ask or decide something that may be settled \
already. Keep what the person tells you for later with `remember`, and correct what turned out \
wrong. A rule that the person gave holds as if said now. All else are notes of a certain age and \
not orders: the person's words in this conversation count for more, and the project itself shows \
what is so now."""
_BUSY = "Too many calls are waiting; try this one again when others have been answered"


class MemoryServer:
    """The handlers of one server over one memory."""

    def __init__(self, memory: Memory, *, read_only: bool = False) -> None:
        self.memory = memory
        self._read_only = read_only
        self._dreams = ClientDreams(memory)
        self._tools = model_tools(memory, read_only=read_only, dreams=self._dreams)
        self._checks: dict[str, Check] = {one.name: checker(one.schema) for one in self._tools}
        self._limiter = anyio.CapacityLimiter(AT_ONCE)
        self._waiting = 0

    def server(self) -> Server[Any]:
        return Server(
            NAME,
            version=reverie.__version__,
            title="Reverie memory",
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
        )

    async def _run(self, work: Callable[[], Any]) -> Any:
        """In a worker thread, when it is this call's turn."""
        if self._waiting >= WAITING + AT_ONCE:
            raise MCPError(types.INTERNAL_ERROR, _BUSY)
        self._waiting += 1
        try:
            return await to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self._waiting -= 1

    # Tools

    async def list_tools(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=one.name,
                    description=one.description,
                    input_schema=dict(one.schema),
                    annotations=types.ToolAnnotations(
                        read_only_hint=one.name in (*READING, "search_sessions"),
                        destructive_hint=False,
                        open_world_hint=False,
                    ),
                )
                for one in self._tools
            ]
        )

    async def call_tool(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        check = self._checks.get(params.name)
        if check is None:
            known = ", ".join(self._checks)
            text = f"There is no tool named {params.name[:80]!r}. There are: {known}"
            raise MCPError(types.INVALID_PARAMS, text)
        wrong = check(params.arguments or {})
        if wrong:
            return _text_result(
                f"The input of {params.name} is wrong: {'; '.join(wrong)}", is_error=True
            )
        named = model_tools(
            self.memory,
            client=_client(context),
            read_only=self._read_only,
            dreams=self._dreams,
        )
        return await self._run(lambda: _call_tool(named, params))

    # Resources

    async def list_resources(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        del context
        found = await self._run(self.memory.list)
        first = _cursor(params)
        index = types.Resource(
            uri=INDEX,
            name="index",
            title="Index of the memory",
            description="One line for each memory",
            mime_type=MARKDOWN,
        )
        topics = [
            types.Resource(
                uri=f"{TOPIC}{quote(one.file)}",
                name=one.file,
                title=one.name or one.file,
                description=" ".join(one.text.split())[:200],
                mime_type=MARKDOWN,
                size=len(one.text.encode()),
            )
            for one in found[first : first + PAGE]
        ]
        more = str(first + PAGE) if first + PAGE < len(found) else None
        shown = topics if first else [index, *topics]
        return types.ListResourcesResult(resources=shown, next_cursor=more)

    async def list_templates(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        del context, params
        template = types.ResourceTemplate(
            uri_template=f"{TOPIC}{{file}}",
            name="memory",
            title="One memory",
            description="A memory whole, by its file as the index names it",
            mime_type=MARKDOWN,
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, context: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        del context
        uri = str(params.uri)
        try:
            text = await self._run(lambda: self._resource(uri))
        except NotFound as error:
            raise MCPError(types.INVALID_PARAMS, str(error), {"uri": uri}) from None
        except ReverieError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from None
        found = types.TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text)
        return types.ReadResourceResult(contents=[found])

    def _resource(self, uri: str) -> str:
        if uri == INDEX:
            return self.memory.context(tokens=10_000) or "There are no memories yet."
        if not uri.startswith(TOPIC):
            raise NotFound("There is no such resource", where=uri[:200])
        return self.memory.get(unquote(uri.removeprefix(TOPIC))).text

    # Prompts

    async def list_prompts(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        del context, params
        about = types.PromptArgument(name="about", description="What the work is about")
        recall = types.Prompt(
            name="recall",
            title="What do you remember?",
            description="Brings the index of the memory, and what is known about a subject",
            arguments=[about],
        )
        keep = types.Prompt(
            name="keep",
            title="Keep what matters",
            description="Asks to keep what this conversation settled for later ones",
        )
        dream = types.Prompt(
            name="dream",
            title="Tidy the memory",
            description="Leads through a dream: the memory is read, merged, checked and applied",
        )
        return types.ListPromptsResult(prompts=[recall, keep, dream])

    async def get_prompt(
        self, context: ServerRequestContext[Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        del context
        if params.name in PROMPTS:
            return _prompt(PROMPTS[params.name])
        if params.name != "recall":
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt named {params.name[:80]!r}")
        about = (params.arguments or {}).get("about", "")[:2_000]
        known = await self._run(lambda: self.memory.context(about, tokens=6_000))
        wanted = f"This is about: {about}\n\n" if about.strip() else ""
        return _prompt(f"{wanted}{known or 'Nothing is remembered of this project yet.'}")


KEEP = """\
Look back over this conversation for what a later one should know: what I told you about myself, \
how I want work done and why, decisions with their reasons, where things are found. Leave out \
what the code or its history shows and what only this task needed. For each, look with \
`search_memory` whether it is known; keep what is new with `remember`, one fact a call, and \
replace what is wrong now. Then tell me in one line each what you kept."""
DREAM = """\
Tidy the long-term memory of this project. Call `dream_open` and follow the instructions that it \
gives: read all its pages, write the files that change with `dream_write`, correct what it finds \
wrong, and end with `dream_close`. Then tell me in a few lines what changed, what was left out and \
how I undo it (`reverie dream undo`). If nothing needs to change, close it without a write."""
PROMPTS = {"keep": KEEP, "dream": DREAM}


def _call_tool(tools: Toolset, params: types.CallToolRequestParams) -> types.CallToolResult:
    call = {
        "type": "tool_use",
        "id": "call",
        "name": params.name,
        "input": dict(params.arguments or {}),
    }
    found = tools.handle(call)
    return _text_result(str(found["content"]), is_error=bool(found.get("is_error")))


def _text_result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=is_error
    )


def _prompt(text: str) -> types.GetPromptResult:
    content = types.TextContent(type="text", text=text)
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


def _client(context: ServerRequestContext[Any]) -> str:
    """Who calls, as they name themselves."""
    known = context.session.client_params
    return known.client_info.name if known is not None else "mcp"


def _cursor(params: types.PaginatedRequestParams | None) -> int:
    given = params.cursor if params is not None else None
    if given is None:
        return 0
    if not given.isascii() or not given.isdigit() or len(given) > 9:
        raise MCPError(types.INVALID_PARAMS, "There is no such page")
    return int(given)
