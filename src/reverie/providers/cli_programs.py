"""The agent programs that can be asked: their command lines, and their answers read.

Every flag was seen on the wire: no tools, hooks, MCP servers, skills, instruction files or session
left behind. Codex sends the user's own AGENTS.md whatever it is told.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from reverie.errors import NotAvailable
from reverie.light import dataclass
from reverie.transcript.records import Usage

INSIDE = "REVERIE_INSIDE"
"""Set in whatever an agent program starts: Reverie does nothing there."""
HEADER = "x-reverie-inside"
MARK = "Reverie background work."
"""The first words of every prompt, by which a recorded session is known as one of ours."""
SYSTEM = (
    "You do one step of background work for Reverie, which keeps the memory of a coding agent. "
    "You have no tools. Answer with what the message asks for and nothing else."
)
CALL_USD = 0.05
"""List price that one run may reach; so much must be left of the day's before it starts."""
_NAME = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_STATUS = re.compile(r"\bstatus:? (\d{3})\b")
_OFF = (
    *("shell_tool", "unified_exec", "multi_agent", "apps", "hooks", "goals", "image_generation"),
    *("plugins", "view_image", "tool_suggest", "skill_search", "shell_snapshot"),
    "unbounded_connection_retries",
)


@dataclass(frozen=True, slots=True)
class AgentResult:
    """What one run of a program said."""

    text: str
    usage: Usage = Usage()
    usd: float | None = None
    model: str = ""
    stop_reason: str = "end_turn"
    status: int = 0  # that the provider answered with, where that failed
    error: str = ""


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """What a command line is made for."""

    model: str
    folder: Path  # for files of the run
    base_url: str  # in place of the one that the program's settings name; "" leaves that
    environ: Mapping[str, str]
    usd: float  # list price that it may reach


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """One kind of agent program."""

    name: str
    flags: tuple[str, ...]  # without which it cannot be used
    helps: tuple[str, ...]  # the command that lists them
    status: tuple[str, ...]  # the command whose exit code tells whether it is logged in
    line: Callable[[AgentCommand], list[str]]
    read: Callable[[bytes], AgentResult | None]  # None: no answer that can be read


# --- Claude Code


def _claude_line(asked: AgentCommand) -> list[str]:
    own: dict[str, Any] = {"disableAllHooks": True, "permissions": {"deny": ["Read(//**)"]}}
    if asked.base_url:  # its settings count for more than the environment
        own["env"] = {"ANTHROPIC_BASE_URL": asked.base_url}
    words = ["-p", "--safe-mode", "--settings", json.dumps(own), "--strict-mcp-config"]
    words += ["--disable-slash-commands", "--tools", "", "--permission-mode", "dontAsk"]
    words += ["--no-session-persistence", "--model", asked.model or "haiku", "--effort", "low"]
    words += ["--max-budget-usd", f"{asked.usd:g}", "--output-format", "json"]
    return [*words, "--system-prompt", SYSTEM]


def _claude_read(out: bytes) -> AgentResult | None:
    found = _object(out)
    if found is None or found.get("type") != "result":
        return None
    used = _inner(found, "usage")
    usage = Usage(
        _count(used, "input_tokens"),
        _count(used, "cache_read_input_tokens"),
        _count(used, "cache_creation_input_tokens"),
        _count(used, "output_tokens"),
        _count(_inner(used, "cache_creation"), "ephemeral_1h_input_tokens"),
    )
    cost, text = found.get("total_cost_usd"), str(found.get("result") or "")
    failed = found.get("is_error") is not False or found.get("subtype") != "success"
    return AgentResult(
        text,
        usage,
        float(cost) if isinstance(cost, int | float) else None,
        next(iter(_inner(found, "modelUsage")), ""),
        "refusal" if found.get("safety_stops") else str(found.get("stop_reason") or ""),
        _count(found, "api_error_status"),
        (text or str(found.get("subtype"))) if failed else "",
    )


# --- codex


def _codex_line(asked: AgentCommand) -> list[str]:
    instructions, schema = asked.folder / "instructions.md", asked.folder / "schema.json"
    instructions.write_text(SYSTEM, encoding="utf-8")
    answer = {"type": "object", "properties": {"answer": {"type": "string"}}}
    strict = {**answer, "required": ["answer"], "additionalProperties": False}
    schema.write_text(json.dumps(strict), encoding="utf-8")
    own = _codex_config(asked.environ)
    config = [
        f"model_instructions_file={json.dumps(str(instructions))}",
        "project_doc_max_bytes=0",
        'web_search="disabled"',
        "include_permissions_instructions=false",
        "include_environment_context=false",
        "include_apps_instructions=false",
        "skills.include_instructions=false",
        *(f"mcp_servers.{_plain(name)}.enabled=false" for name in _inner(own, "mcp_servers")),
        *_codex_provider(own, asked.base_url),
    ]
    words = ["exec", "--json", "--ephemeral", "--skip-git-repo-check", "--sandbox", "read-only"]
    words += [word for value in config for word in ("--config", value)]
    words += [word for name in _OFF for word in ("--disable", name)]
    words += ["--model", asked.model] if asked.model else []
    return [*words, "--output-schema", str(schema), "-"]


def _codex_config(environ: Mapping[str, str]) -> dict[str, Any]:
    home = Path(environ.get("HOME", "") or os.path.expanduser("~"))
    path = Path(environ.get("CODEX_HOME") or home / ".codex") / "config.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _codex_provider(own: Mapping[str, Any], base_url: str) -> Iterator[str]:
    """The user's provider with few tries: codex makes thirty. Its built-in one cannot be changed,
    so that one of ours, with the same login and address, stands in for it."""
    tries = {"request_max_retries": "1", "stream_max_retries": "0"}
    name = str(own.get("model_provider") or "openai")
    if name == "openai":
        name, url = "reverie", base_url or str(own.get("openai_base_url") or "")
        tries |= {"name": '"OpenAI"', "wire_api": '"responses"', "requires_openai_auth": "true"}
        tries |= {"base_url": json.dumps(url)} if url else {}
        yield f"model_provider={json.dumps(name)}"
    yield from (f"model_providers.{_plain(name)}.{key}={value}" for key, value in tries.items())


def _plain(name: str) -> str:
    """A name that may stand in a key of codex's configuration."""
    if not _NAME.fullmatch(name):
        what = f"codex has a server or provider whose name cannot be given to it: {name!a}"
        raise NotAvailable(what, do="Rename it with letters, digits, _ and - alone")
    return name


def _codex_read(out: bytes) -> AgentResult | None:
    text, error, used, done = "", "", dict[str, Any](), False
    for event in filter(None, map(_object, out.splitlines())):
        item, kind = _inner(event, "item"), event.get("type")
        if kind == "item.completed" and item.get("type") == "agent_message":
            text = str(item.get("text") or "")
        elif kind == "turn.completed":
            used, done = _inner(event, "usage"), True
        elif kind == "turn.failed":
            error = str(_inner(event, "error").get("message") or kind)
    if not done and not error:
        return None
    answer = (_object(text.encode()) or {}).get("answer")
    read, status = _count(used, "cached_input_tokens"), _STATUS.search(error)
    new = max(0, _count(used, "input_tokens") - read)
    return AgentResult(
        answer if isinstance(answer, str) else text,
        Usage(new, read, 0, _count(used, "output_tokens")),
        status=int(status[1]) if status else 0,
        error=error,
    )


PROGRAMS: Mapping[str, AgentProgram] = {
    "claude": AgentProgram(
        "claude",
        (
            *("--safe-mode", "--settings", "--strict-mcp-config", "--disable-slash-commands"),
            *("--tools", "--permission-mode", "--no-session-persistence", "--model", "--effort"),
            *("--max-budget-usd", "--output-format", "--system-prompt"),
        ),
        ("--help",),
        ("auth", "status"),
        _claude_line,
        _claude_read,
    ),
    "codex": AgentProgram(
        "codex",
        (
            *("--json", "--ephemeral", "--skip-git-repo-check", "--sandbox", "--config"),
            *("--disable", "--model", "--output-schema"),
        ),
        ("exec", "--help"),
        ("login", "status"),
        _codex_line,
        _codex_read,
    ),
}


# --- reading what another program wrote


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _inner(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    found: object = value.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _count(value: Mapping[str, Any], name: str) -> int:
    found: object = value.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0
