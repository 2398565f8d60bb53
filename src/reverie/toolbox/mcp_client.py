"""One MCP server as our agent sees it: its tools, its instructions, and calls that end.

A server is started, listed and called within limits of time and size. One that does not come up,
goes down or answers too much costs its own calls an error, never the session. What it says of its
tools is its own word: names, texts and schemas are bounded and stripped of what hides, and no hint
of its own makes a call need no permission. Where it announces other tools, they are listed again,
and what changed is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import mcp_types as types
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

import reverie
from reverie.concurrency import alone
from reverie.errors import InvalidInput
from reverie.light import dataclass
from reverie.text.safety import strip
from reverie.toolbox.json_schema import Check, checker
from reverie.toolbox.mcp_servers import McpServer
from reverie.toolbox.mcp_transports import open_http_streams, open_stdio_streams
from reverie.toolbox.tool import Input, Tool, ToolContext, ToolFailed, ToolOutput
from reverie.world import Notice, Say

START_SECONDS = 20.0
"""From a server's start until its tools are known."""
MAX_TOOLS = 100
MAX_PAGES = 20
MAX_ABOUT = 2_000
MAX_SCHEMA = 32_000
MAX_INSTRUCTIONS = 4_000
MAX_RELISTED = 20
"""Announced changes that are looked at in one session."""
MAX_PICTURE = 5_000_000
_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64
_OBJECT: Mapping[str, Any] = {"type": "object"}


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool as its server describes it, and the name the model knows it by."""

    name: str
    remote: str
    about: str
    schema: Mapping[str, Any]
    check: Check

    @property
    def told(self) -> tuple[str, str]:
        return self.about, json.dumps(self.schema, sort_keys=True)


class ServerConnection:
    """A server that is used, from its start to its end; it runs in a task of its own."""

    def __init__(self, server: McpServer, cwd: Path, environ: Mapping[str, str], say: Say) -> None:
        self.server = server
        self.tools: dict[str, RemoteTool] = {}
        self.instructions = ""
        self.changes: list[str] = []  # what is to be told of them
        self.failure = ""
        self.ready = anyio.Event()
        self._cwd = cwd
        self._environ = environ
        self._say = say
        self._client: Client | None = None
        self._announced = anyio.Event()
        self._closing = anyio.Event()

    async def run(self) -> None:
        """Until it is closed; whatever happens to it stays here."""
        try:
            with anyio.move_on_after(START_SECONDS) as starting:
                _, fault = await alone(self._run_connection(starting), None)
                if fault:
                    self._fail(_text(fault, 300))
            if starting.cancelled_caught:
                self._fail(f"it did not answer within {START_SECONDS:g} s")
        finally:
            self._client = None
            self.ready.set()

    async def _run_connection(self, starting: anyio.CancelScope) -> None:
        try:
            async with self._connect(starting) as client:
                await self._listen(client)
        except BaseExceptionGroup as many:  # of the SDK's tasks; the first says what happened
            raise _first(many) from None

    @asynccontextmanager
    async def _connect(self, starting: anyio.CancelScope) -> AsyncGenerator[Client]:
        server = self.server
        streams = (
            open_http_streams(server)
            if server.url
            else open_stdio_streams(server, self._cwd, self._environ)
        )
        info = types.Implementation(name="reverie", version=reverie.__version__)
        async with Client(
            streams, message_handler=self._hear, client_info=info, cache=None
        ) as client:
            self.tools = await self._list_tools(client)
            self.instructions = _text(client.instructions or "", MAX_INSTRUCTIONS)
            self._client = client
            starting.deadline = float("inf")
            self.ready.set()
            yield client

    async def _listen(self, client: Client) -> None:
        """Look again whenever the server says that its tools are others."""
        async with anyio.create_task_group() as group:
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                group.start_soon(self._watch_tool_changes, client)
            group.start_soon(self._relist, client)
            await self._closing.wait()
            group.cancel_scope.cancel()

    async def _watch_tool_changes(self, client: Client) -> None:
        async def hear() -> None:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._announced.set()

        await alone(hear(), None)  # a server without it announces nothing, and that is all

    async def _relist(self, client: Client) -> None:
        for _ in range(MAX_RELISTED):
            await self._announced.wait()
            self._announced = anyio.Event()
            with anyio.move_on_after(START_SECONDS):
                fresh, fault = await alone(self._list_tools(client), self.tools)
                if not fault:
                    self._compare(fresh)
        self._tell("it announced new tools too often; further ones are not looked at")

    def _compare(self, fresh: dict[str, RemoteTool]) -> None:
        old, self.tools = self.tools, fresh
        gone = [name for name in old if name not in fresh]
        new = [name for name in fresh if name not in old]
        other = [n for n in fresh if n in old and fresh[n].told != old[n].told]
        rows = [
            *(f"- {name} is gone" for name in gone),
            *(f"- {name} is new: {fresh[name].about}" for name in new),
            *(
                f"- {name} is other now: {fresh[name].about}\n"
                f"  its input: {json.dumps(fresh[name].schema, ensure_ascii=False)}"
                for name in other
            ),
        ]
        if rows:
            self.changes.append(f"The MCP server {self.server.name} changed its tools:")
            self.changes += rows

    async def _hear(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._announced.set()

    async def _list_tools(self, client: Client) -> dict[str, RemoteTool]:
        found: dict[str, RemoteTool] = {}
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                made = self._tool(tool)
                if made is not None and len(found) < MAX_TOOLS:
                    found.setdefault(made.name, made)
            cursor = page.next_cursor
            if not cursor or len(found) >= MAX_TOOLS:
                break
        if cursor:
            self._tell(f"only the first {len(found)} of its tools are used")
        return found

    def _tool(self, tool: types.Tool) -> RemoteTool | None:
        name = f"mcp__{self.server.name}__{_NAME.sub('_', tool.name)}"[:_LONGEST]
        schema = {**_OBJECT, **_plain(tool.input_schema)}
        if len(json.dumps(schema)) > MAX_SCHEMA:
            self._tell(f"its tool {name} is left out: its schema is too long")
            return None
        try:
            check = checker(schema)
        except InvalidInput as error:
            self._tell(f"its tool {name} is left out: {error}")
            return None
        return RemoteTool(name, tool.name, _text(tool.description or "", MAX_ABOUT), schema, check)

    # What an agent does with it

    def offered(self) -> list[Tool]:
        """Its tools for a registry: each asks the connection as it is then."""
        return [self._offer(one) for one in self.tools.values()]

    def _offer(self, tool: RemoteTool) -> Tool:
        async def run(value: Input, context: ToolContext) -> ToolOutput:
            del context
            return await self.call(tool.name, value)

        def check(value: Mapping[str, Any]) -> list[str]:
            now = self.tools.get(tool.name)
            return now.check(value) if now is not None else []

        about = tool.about or f"A tool of the MCP server {self.server.name}."
        return Tool(tool.name, about, tool.schema, run, check=check)

    async def call(self, name: str, value: Input) -> ToolOutput:
        """One call, to its result; ToolFailed where there is none."""
        client, tool = self._client, self.tools.get(name)
        if client is None:
            why = self.failure or "it has ended"
            raise ToolFailed(f"the MCP server {self.server.name} is not there: {why}")
        if tool is None:
            known = ", ".join(self.tools) or "none"
            raise ToolFailed(f"its server has no such tool any more; it has: {known}")
        try:
            found = await client.call_tool(tool.remote, value)
        except MCPError as error:
            if error.error.code == types.CONNECTION_CLOSED:
                self._client = None
                self._fail("it closed the connection, or sent too much unasked")
                self.close()
            raise ToolFailed(_text(error.error.message, MAX_ABOUT)) from None
        return output(found)

    def close(self) -> None:
        self._closing.set()

    def _fail(self, why: str) -> None:
        if self._closing.is_set():
            return
        self.failure = why
        self._tell(f"it is not used: {why}" if not self.ready.is_set() else f"it went down: {why}")

    def _tell(self, text: str) -> None:
        self._say(Notice("mcp", f"MCP server {self.server.name}: {text}", "warning"))


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        many = cast("BaseExceptionGroup[BaseException]", error)
        error = many.exceptions[0]
    if isinstance(error, FileNotFoundError):
        return ToolFailed("there is no such program", where=str(error.filename or ""))
    return error


def _text(text: str, most: int) -> str:
    """A server's words: nothing in them that hides, and not without end."""
    one = strip(text).strip()
    return one if len(one) <= most else f"{one[:most]} […]"


def _plain(value: Any) -> Any:
    """A schema, with nothing in any of its texts that hides."""
    if isinstance(value, str):
        return strip(value)
    if isinstance(value, list):
        return [_plain(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        return {strip(name): _plain(one) for name, one in known.items()}
    return value


def output(found: types.CallToolResult) -> ToolOutput:
    """A result as content blocks; text alone as text."""
    blocks = [_block(one) for one in found.content]
    if not blocks and found.structured_content is not None:
        blocks = [_words_block(json.dumps(found.structured_content, ensure_ascii=False))]
    if all(one["type"] == "text" for one in blocks):
        text = "\n".join(one["text"] for one in blocks)
        return ToolOutput(text or "(the answer is empty)", is_error=bool(found.is_error))
    return ToolOutput(blocks, is_error=bool(found.is_error))


def _block(one: types.ContentBlock) -> dict[str, Any]:
    if isinstance(one, types.TextContent):
        return _words_block(one.text)
    if isinstance(one, types.ImageContent):
        if len(one.data) > MAX_PICTURE:
            return _words_block(f"[a picture of {len(one.data):,} bytes is too large to be shown]")
        source = {"type": "base64", "media_type": one.mime_type, "data": one.data}
        return {"type": "image", "source": source}
    if isinstance(one, types.ResourceLink):
        return _words_block(f"[resource {one.name}: {one.uri}]")
    if isinstance(one, types.EmbeddedResource):
        held = one.resource
        if isinstance(held, types.TextResourceContents):
            return _words_block(held.text)
        return _words_block(f"[resource {held.uri}, {held.mime_type or 'of unknown kind'}]")
    return _words_block(f"[{one.type} that cannot be shown]")


def _words_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
