"""The user's own agent program as a model for background work: `cli:claude`, `cli:codex`.

    cli:claude  cli:claude/haiku  cli:codex  cli:codex/gpt-5.5

Each answer is one run of the program the user has, with the login the user has: no tools, no
hooks, no MCP servers, no instruction files but codex's own AGENTS.md, in an empty folder, and no
session left behind. The prompt goes in on standard input, so that nothing of it shows in a list
of processes; no `@` in it attaches a file. Credential files are never read.

A run is counted before it starts, by an `AgentMeter`, which also knows when the program is not
to be asked. What its result says decides, never its exit code alone: refusals exit with 0.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio
from anyio import to_thread

from reverie import programs
from reverie.errors import (
    AuthFailed,
    Incomplete,
    InvalidInput,
    NotAvailable,
    PromptTooLong,
    ProviderError,
    Refused,
    ReverieError,
    Unreachable,
)
from reverie.light import dataclass
from reverie.providers import bound_child
from reverie.providers.capabilities import CLI_AGENT
from reverie.providers.cli_programs import (
    CALL_USD,
    HEADER,
    INSIDE,
    MARK,
    PROGRAMS,
    AgentCommand,
    AgentProgram,
    AgentResult,
)
from reverie.providers.costs import dollars
from reverie.providers.selection import AGENT
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.transcript.blocks import text_block, text_of
from reverie.transcript.records import Usage
from reverie.wire.failures import ProviderWords, from_status, quote_line
from reverie.wire.reply import Reply
from reverie.world import Capabilities, Event

if TYPE_CHECKING:
    from anyio.abc import Process

    from reverie.wire.request import Request

MAX_PROMPT = 180_000
MAX_ANSWER = 4 * 1024 * 1024
KILL_SECONDS = 5.0
DEAREST = "gpt-5.5"
"""Whose price counts where a program does not say which model answered."""
STATUS_SECONDS = 20.0
BREAK = "\u200b"
"""Follows every `@`, so that none names a file."""
OF_A_SESSION = (
    *("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT"),
    *("CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_ENV_FILE", "CLAUDE_PROJECT_DIR"),
)
"""Variables by which Claude Code tells what it starts about the session that started it."""


class AgentMeter(Protocol):
    """What is counted on disk, for all processes of a home; each is called in a thread."""

    def begin(self, settings: Settings, usd: float) -> float:
        """Count a run of at most so much, and keep others waiting; what it may cost. Raises where
        it may not start."""
        ...

    def end(self, usd: float | None, usage: Usage, error: ReverieError | None) -> None:
        """What became of it; no price where it is not known."""
        ...


# --- the program on this machine


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What there is of a program: where, which version, whether it can be used."""

    path: str
    version: str = ""
    missing: tuple[str, ...] = ()  # flags that it does not know
    logged_in: bool = False

    @property
    def usable(self) -> bool:
        return self.logged_in and not self.missing


def agent_path(program: AgentProgram, environ: Mapping[str, str], settings: Settings) -> str:
    """Where the program is, or ""."""
    given = settings.cli_path or program.name
    folders = (f for f in environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(f))
    return shutil.which(os.path.expanduser(given), path=os.pathsep.join(folders)) or ""


def agent_facts(
    program: AgentProgram, environ: Mapping[str, str], settings: Settings
) -> AgentFacts:
    """Ask the program itself: version, help and login; nothing is sent to a provider."""
    path = agent_path(program, environ, settings)
    if not path:
        return AgentFacts("")
    version, helped, status = (
        _told(path, words, environ) for words in (("--version",), program.helps, program.status)
    )
    text = helped.stdout.decode("utf-8", "replace")
    missing = tuple(flag for flag in program.flags if flag not in text)
    name = quote_line(version.stdout.decode("utf-8", "replace"))
    return AgentFacts(path, name, missing, status.returncode == 0)


def _told(
    path: str, words: Sequence[str], environ: Mapping[str, str]
) -> programs.CompletedProcess[bytes]:
    with tempfile.TemporaryDirectory(prefix="reverie-") as folder:
        given = child_environment(environ, "")
        try:
            return programs.run([path, *words], given, folder, seconds=STATUS_SECONDS)
        except (OSError, programs.TimeoutExpired) as error:
            return programs.CompletedProcess([path], 1, b"", str(error).encode())


def child_environment(environ: Mapping[str, str], base_url: str) -> dict[str, str]:
    """The user's own environment, marked as inside; without our proxy's address, where
    `base_url` is to be used in its place, and without what is about another session."""
    left = {*OF_A_SESSION, *(("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL") if base_url else ())}
    return {
        **{name: value for name, value in environ.items() if name not in left},
        INSIDE: "1",
        "ANTHROPIC_CUSTOM_HEADERS": f"{HEADER}: extract",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(CLI_AGENT.max_output),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_PROMPT_CACHING": "1",  # no run reads what another wrote, at twice the price
    }


# --- the model


@dataclass(frozen=True, slots=True)
class CliModel:
    """A `Model` that asks the user's agent program, one run for each answer."""

    program: AgentProgram
    model: str
    meter: AgentMeter
    environ: Mapping[str, str]
    settings: Settings = DEFAULTS
    base_url: str = ""  # in place of our own proxy's, where the program's settings name that
    allowed: Callable[[], bool] = lambda: True  # asked before each run

    @property
    def name(self) -> str:
        return f"{AGENT}{self.program.name}" + (f"/{self.model}" if self.model else "")

    @property
    def capabilities(self) -> Capabilities:
        return CLI_AGENT

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        prompt = prompt_of(request)
        if len(prompt) > MAX_PROMPT:
            raise PromptTooLong(f"{len(prompt):,} bytes are too many for one run", where=self.name)
        path = agent_path(self.program, self.environ, self.settings)
        if not path or INSIDE in self.environ or not self.allowed():
            why = "it is not installed" if not path else "background work is switched off"
            raise NotAvailable(f"{self.name} cannot be asked: {why}", where=path)
        most = await to_thread.run_sync(self.meter.begin, self.settings, CALL_USD)
        result = AgentResult("")
        error: ReverieError | None = ReverieError("the run was cut off", where=self.name)
        try:
            result = await self._run(path, prompt, most)
            error = await to_thread.run_sync(self._error, result)
        except ReverieError as failed:
            error = failed
        finally:
            with anyio.CancelScope(shield=True):
                usd = result.usd if result.usd is not None else self._list_price(result)
                await to_thread.run_sync(self.meter.end, usd, result.usage, error)
        if error is not None:
            raise error
        text = result.text.replace(f"@{BREAK}", "@")
        yield Reply((text_block(text),), result.usage, "end_turn", result.model, "cli")

    def _list_price(self, result: AgentResult) -> float | None:
        if not result.usage.total:
            return None
        price = dollars(result.model or self.model, result.usage)
        return dollars(DEAREST, result.usage) if price is None else price

    async def _run(self, path: str, prompt: bytes, most: float) -> AgentResult:
        with tempfile.TemporaryDirectory(prefix="reverie-") as folder:
            asked = AgentCommand(self.model, Path(folder), self.base_url, self.environ, most)
            words = self.program.line(asked)
            work = tempfile.mkdtemp(dir=folder)
            line = programs.script(bound_child.__file__, str(os.getpid()), path, *words)
            environ = child_environment(self.environ, self.base_url)
            out = await run_child(line, environ, work, prompt, self.settings.cli_timeout_seconds)
        found = self.program.read(out)
        if found is None:
            facts = await to_thread.run_sync(agent_facts, self.program, self.environ, self.settings)
            if facts.missing:
                told = f"{facts.version} does not know {', '.join(facts.missing)}"
                raise NotAvailable(told, where=path, do="Update it; until then rules do the work")
            raise ProviderError("the program gave no answer that can be read", where=path)
        return found

    def _error(self, result: AgentResult) -> ReverieError | None:
        """Why an answer does not count; None for one that does."""
        if result.error:
            words = ProviderWords(quote_line(result.error))
            if result.status:
                return from_status(result.status, words, {}, self.name).error
            if not agent_facts(self.program, self.environ, self.settings).logged_in:
                do = f"Log in with `{self.program.name}`; until then rules do the work"
                return AuthFailed("the program is not logged in", where=self.name, do=do)
            return ProviderError(f"the program failed: {words.message}", where=self.name)
        if result.stop_reason == "refusal":
            return Refused("the model refused to answer", where=self.name)
        if result.stop_reason != "end_turn" or not result.text.strip():
            why = result.stop_reason if result.text.strip() else "nothing was said"
            return Incomplete(f"the answer is not whole: {why}", where=self.name)
        return None


def parse_name(name: str) -> tuple[AgentProgram, str]:
    """The program and the model in `cli:PROGRAM[/MODEL]`."""
    which, _, model = name.removeprefix(AGENT).partition("/")
    program = PROGRAMS.get(which)
    if program is None or (model and not re.fullmatch(r"[\w.:\[\]-]+", model, re.ASCII)):
        known = ", ".join(f"{AGENT}{one}" for one in PROGRAMS)
        raise InvalidInput("this agent program is not known", where=name[:80], do=f"Name {known}")
    return program, model


def prompt_of(request: Request) -> bytes:
    """A request as one text: what the system prompt says, then the messages."""
    given = request.anthropic()
    said = [(str(one["role"]), text_of(one["content"])) for one in given["messages"]]
    parts = [MARK, text_of(given.get("system") or "")]
    if len(said) == 1:
        parts.append(said[0][1])
    else:
        parts += [f"## {role}\n{text}" for role, text in said if text.strip()]
    whole = "\n\n".join(part for part in parts if part.strip())
    return whole.replace("@", f"@{BREAK}").encode("utf-8", "replace")


# --- one child


async def run_child(
    line: Sequence[str], environ: Mapping[str, str], folder: str, feed: bytes, seconds: float
) -> bytes:
    """What a program prints, which is ended and gone whatever happens here."""
    with tempfile.TemporaryFile() as source:  # has no name, so that nothing of it stays
        source.write(feed)
        source.seek(0)
        pipes = {"stdin": source, "stdout": programs.PIPE, "stderr": programs.DEVNULL}
        try:
            child = await programs.start_async(line, environ, folder, **pipes)
        except OSError as error:
            raise ProviderError(f"the program cannot be started: {error}", where=line[0]) from error
    out = bytearray()
    try:
        with anyio.move_on_after(seconds) as limit:
            assert child.stdout is not None
            async for piece in child.stdout:
                out += piece[: max(0, MAX_ANSWER - len(out))]
            await child.wait()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(child)
    if limit.cancelled_caught:
        raise Unreachable(f"the program gave no answer within {seconds:g} s", where=line[0])
    return bytes(out)


async def _end(child: Process) -> None:
    """End the program and what it started: asked first, killed where it does not go."""
    for sign, seconds in ((signal.SIGTERM, KILL_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        if child.returncode is not None and sign is signal.SIGTERM:
            continue  # it ended; what it may have left is killed
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, sign)
        with anyio.move_on_after(seconds):
            await child.wait()
    await child.aclose()
