"""Which MCP servers an agent uses: `mcp.json` in home, and a project's own `.mcp.json`.

A server is a command to start or an address to call, in the form that other agents read too.
`${NAME}` and `${NAME:-otherwise}` stand for variables of the environment. What a repository
brings is started only once the user has trusted that very file. What is wrong with an entry is
said, and the others count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from reverie.light import dataclass
from reverie.settings.schema import read_bytes
from reverie.settings.sources import distrust, was_declined
from reverie.store.project import Project

FILE = ".mcp.json"
HOME_FILE = "mcp.json"
MAX_SERVERS = 50
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")  # `__` ends it in a tool's name: none passes for another
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True)
class McpServer:
    """One server: a command, or an address."""

    name: str
    command: tuple[str, ...] = ()
    environ: tuple[tuple[str, str], ...] = ()
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return self.url or " ".join(self.command)


@dataclass(frozen=True, slots=True)
class McpServers:
    """The servers that may be used, and what there is to say about the others."""

    servers: tuple[McpServer, ...] = ()
    problems: tuple[str, ...] = ()


def find_servers(project: Project) -> McpServers:
    """Read the servers of home and of a trusted project; the project's name wins."""
    home = project.home
    found: dict[str, McpServer] = {}
    problems: list[str] = []
    for path, ours in ((home / HOME_FILE, True), (project.worktree / FILE, False)):
        data = file_bytes(path)
        if data is None:
            continue
        why = "" if ours else distrust(home, path, data)
        servers, wrong = servers_in(data, project.environ)
        if why and was_declined(home, path, data):
            continue  # the user has seen it and said no
        if why and servers:
            names = ", ".join(one.name for one in servers)
            problems.append(
                f"{path} is {why}, so its servers are not started ({names}); `reverie trust` "
                "shows what they would run"
            )
            continue
        problems += [f"{path}: {one}" for one in wrong]
        found.update((one.name, one) for one in servers)
    return McpServers(tuple(found.values()), tuple(problems))


def file_bytes(path: Path) -> bytes | None:
    """A file of servers, or None where there is none that can be read."""
    return read_bytes(path)[0]


def servers_in(data: bytes, environ: Mapping[str, str]) -> tuple[list[McpServer], list[str]]:
    """The servers that a file names, whoever wrote it, and what was wrong with others."""
    try:
        value: Any = json.loads(data)
        rows: Any = value["mcpServers"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return [], ['it must be JSON with an object "mcpServers"']
    if not isinstance(rows, dict):
        return [], ['"mcpServers" must be an object']
    found: list[McpServer] = []
    problems: list[str] = []
    for name, row in list(cast("dict[str, Any]", rows).items())[:MAX_SERVERS]:
        made = _server(name, row, environ)
        if isinstance(made, str):
            problems.append(f"{name[:80]}: {made}")
        else:
            found.append(made)
    return found, problems


def _server(name: str, row: object, environ: Mapping[str, str]) -> McpServer | str:
    """One entry, or what is wrong with it."""
    if not _NAME.fullmatch(name) or "__" in name or name.endswith("_"):
        return "a name has letters, digits, _ and -, at most 40; no __ and no _ at its end"
    if not isinstance(row, dict):
        return "it must be an object with a command or a url"
    try:
        given = _expand_variables(cast("dict[str, Any]", row), environ)
    except KeyError as error:
        return f"the variable {error.args[0]} is not set"
    kind, command, url = given.get("type"), given.get("command"), given.get("url")
    if kind == "sse":
        return 'the transport "sse" is not supported any more; use "http"'
    if isinstance(url, str) and url.startswith(("http://", "https://")):
        return McpServer(name, url=url, headers=_pairs(given.get("headers")))
    arguments = given.get("args", [])
    if not isinstance(command, str) or not command.strip() or not _is_texts(arguments):
        return "it needs a command with args that are texts, or a url that begins with http"
    words = (command, *cast("list[str]", arguments))
    if any("\0" in word for word in words):
        return "a command has no NUL"
    return McpServer(name, words, _pairs(given.get("env")))


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in cast("list[object]", value))


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        return ()
    return tuple((str(k), str(v)) for k, v in cast("dict[object, object]", value).items())


def _expand_variables(value: Any, environ: Mapping[str, str]) -> Any:
    """Variables in every text; KeyError where one is not set and has no other value."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _variable(found, environ), value)
    if isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        return {name: _expand_variables(one, environ) for name, one in known.items()}
    if isinstance(value, list):
        return [_expand_variables(one, environ) for one in cast("Sequence[Any]", value)]
    return value


def _variable(found: re.Match[str], environ: Mapping[str, str]) -> str:
    known = environ.get(found[1])
    if known is None and found[2] is None:
        raise KeyError(found[1])
    return known if known is not None else found[2]


def describe_servers(servers: Sequence[McpServer]) -> Iterator[str]:
    """What each would do, for a person who is to trust it."""
    for one in servers:
        yield f"{'call' if one.url else 'start'} the MCP server {one.name}: {one}"
