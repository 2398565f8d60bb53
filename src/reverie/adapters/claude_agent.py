"""Reverie in an agent of the Claude Agent SDK: memory by hooks, tools in process.

    options = with_reverie(ClaudeAgentOptions(), memory)
    async with ClaudeSDKClient(options) as client: ...

The SDK's program keeps its own context and shows nobody its list, so what is done here is done at
its hooks: what fits joins each prompt, large results of tools are cut as they come in and lie whole
in files that its own Read tool reads, and what was said is learned from at the end of a turn.
Results of its own Read, Edit and Write stay as they are. What it compacts, it compacts by itself.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, SdkMcpTool, create_sdk_mcp_server

from reverie.context.conversations import AT_ONCE, Conversations, Value, said_in
from reverie.context.fitter import fit
from reverie.errors import InvalidInput, ReverieError
from reverie.world import Notice

if TYPE_CHECKING:
    from collections.abc import Callable

    from reverie.memory.memory import Memory

__all__ = ["with_reverie"]

SERVER = "reverie"
CUT = "Bash|Grep|WebFetch|WebSearch|mcp__.*"
"""Tools whose results may be cut: those that no other tool of theirs relies on."""
_READ = {"name": "Read", "input_schema": {"properties": {"file_path": {"type": "string"}}}}


def with_reverie(
    options: ClaudeAgentOptions,
    memory: Memory,
    *,
    learns: bool = True,
    cuts: bool = True,
    on_notice: Callable[[Notice], object] | None = None,
) -> ClaudeAgentOptions:
    """The same options with our hooks and tools beside the caller's own."""
    servers = options.mcp_servers
    if not isinstance(servers, dict):
        raise InvalidInput("mcp_servers is a file", do="Name the servers of that file in a dict")
    made = _Hooks(memory, options, learns, on_notice)
    hooks: dict[Any, list[HookMatcher]] = {k: list(v) for k, v in (options.hooks or {}).items()}
    for event, work, matcher in (
        ("UserPromptSubmit", made.prompted, None),
        ("PreCompact", made.compacts, None),
        ("Stop", made.stopped, None),
        *([("PostToolUse", made.cut, CUT)] if cuts else ()),
    ):
        hooks.setdefault(event, []).append(HookMatcher(matcher=matcher, hooks=[work]))
    return replace(
        options,
        hooks=hooks,
        mcp_servers={**servers, SERVER: create_sdk_mcp_server(SERVER, tools=made.tools)},
        allowed_tools=[*options.allowed_tools, *made.names],
        add_dirs=[*options.add_dirs, *([made.folder] if cuts else ())],
    )


class _Hooks:
    def __init__(
        self, memory: Memory, options: ClaudeAgentOptions, learns: bool, on_notice: Any
    ) -> None:
        self._memory = memory
        self._model = options.model or "claude-opus-5-5"
        self._own = Conversations[Any](memory=memory, learns=learns, on_notice=on_notice)
        self._said: dict[str, list[Value]] = {}  # by session
        self.folder = memory.folder.parent / "results"

    @property
    def tools(self) -> list[SdkMcpTool[Any]]:
        return [
            SdkMcpTool(one.name, one.description, dict(one.schema), partial(self._run, one.name))
            for one in self._memory.tools
        ]

    @property
    def names(self) -> list[str]:
        return [f"mcp__{SERVER}__{name}" for name in self._memory.tools.names]

    async def _run(self, name: str, given: Any) -> dict[str, Any]:
        call = {"type": "tool_use", "id": "", "name": name, "input": given}
        found = await self._memory.tools.aio.handle(call)
        said = {"type": "text", "text": said_in(found)}
        return {"content": [said], "is_error": bool(found.get("is_error"))}

    async def prompted(self, given: Any, tool: str | None, context: Any) -> Any:
        """What fits joins the prompt."""
        del tool, context
        session, words = given["session_id"], str(given["prompt"])
        self._said.setdefault(session, []).append({"role": "user", "content": words})
        while len(self._said) > AT_ONCE:
            self._said.pop(next(iter(self._said)))
        told = await self._own.aio.recall(session, words)
        if not told:
            return {}
        found = {"hookEventName": "UserPromptSubmit", "additionalContext": told}
        return {"hookSpecificOutput": found}

    async def cut(self, given: Any, tool: str | None, context: Any) -> Any:
        """A large result is cut before the model first sees it."""
        del tool, context
        name, before = str(given["tool_name"]), given.get("tool_response")
        if name in self.names:
            return {}
        from anyio import to_thread

        call = str(given.get("tool_use_id") or "")
        after = await to_thread.run_sync(self._shorten_value, name, call, before)
        if after == before:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": after}}

    def _shorten_value(self, name: str, call: str, value: Any) -> Any:
        """A result of whatever shape with its long texts cut; all else is as it was."""
        if isinstance(value, dict):
            known = cast("dict[str, Any]", value)
            return {k: self._shorten_value(name, f"{call}.{k}", v) for k, v in known.items()}
        if isinstance(value, list):
            rows = enumerate(cast("list[Any]", value))
            return [self._shorten_value(name, f"{call}.{n}", v) for n, v in rows]
        return self._cut(name, call, value) if isinstance(value, str) else value

    def _cut(self, name: str, call: str, text: str) -> str:
        use: Value = {"type": "tool_use", "id": call, "name": name, "input": {}}
        result: Value = {"type": "tool_result", "tool_use_id": call, "content": text}
        asked: Value = {"role": "assistant", "content": [use]}
        answered: Value = {"role": "user", "content": [result]}
        try:
            sent = fit(
                [asked, answered],
                model=self._model,
                tools=[_READ],
                store=self.folder,
                via="Read",
                marks=False,
            )
        except ReverieError as error:
            self._own.say(Notice("tool_results", f"a result stays whole: {error}", "warning"))
            return text
        return said_in(sent[-1]["content"][0])

    async def compacts(self, given: Any, tool: str | None, context: Any) -> Any:
        """A compaction drops what was told of memory: it is told anew."""
        del tool, context
        self._own.tell_anew(given["session_id"])
        return {}

    async def stopped(self, given: Any, tool: str | None, context: Any) -> Any:
        """What was said is learned from. Their transcript may not be on the disk yet, so it is
        what these hooks heard."""
        del tool, context
        said = self._said.get(given["session_id"], [])
        said.append({"role": "assistant", "content": str(given.get("last_assistant_message"))})
        await self._own.aio.learn(said)
        return {}
