"""Bash, BashOutput and KillShell: commands in the project's folder.

Each command gets a fresh shell of its own, no terminal and nothing on its standard input.
When it ends or its time is up everything it started is killed, daemons too (see `keeper`
for what holds); what should go on is started with run_in_background. All output is kept:
see `spool` for how much of it in memory.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from anyio.lowlevel import checkpoint

from reverie.errors import NotAvailable
from reverie.tools.process import KILLED, Command, Exit, run
from reverie.tools.programs import find_program, without_keys
from reverie.tools.spool import MAX, Spool
from reverie.tools.tool import Input, Output, Tool, ToolContext, ToolFailed

QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "PAGER": "cat", "TERM": "dumb"}


def shell_of(context: ToolContext) -> str:
    path, projects = context.environ.get("PATH"), (context.root, context.cwd)
    found = find_program("bash", path, projects) or find_program("sh", path, projects)
    if not found:
        raise NotAvailable("there is no bash or sh on PATH outside the project")
    return found


def environ_of(context: ToolContext) -> dict[str, str]:
    """What a command finds in its environment: ours without keys, and nothing that asks."""
    return {**without_keys(context.environ), **QUIET}


def command_of(argv: list[str], context: ToolContext) -> Command:
    return Command(argv, Path(context.cwd), environ_of(context))


async def bash(value: Input, context: ToolContext) -> Output:
    line = str(value["command"])
    if not line.strip() or "\0" in line:
        raise ToolFailed("the command is empty or has a NUL character")
    argv = [shell_of(context), "-c", line]
    if value.get("run_in_background"):
        return await _in_background(argv, context)
    most = context.settings.tool_seconds
    seconds = min(float(value.get("timeout") or most), most)
    spool = Spool(context.stored, context.call)
    try:
        ended = await run(command_of(argv, context), spool, seconds)
    finally:
        spool.close()
    return _output(spool.text, ended)


def _output(text: str, ended: Exit) -> Output:
    body = text.rstrip("\n")
    if ended.cause == "time":
        note = f"[ended after {ended.waited}, with {KILLED}]"
    elif ended.cause == "output":
        note = f"[ended: it said more than {MAX:,} bytes]"
    elif ended.code:
        note = f"[exit code {ended.code}]"
    else:
        return Output(body or "(no output)")
    return Output(f"{body}\n{note}" if body else note, is_error=True)


async def _in_background(argv: list[str], context: ToolContext) -> Output:
    if context.shells is None:
        raise ToolFailed("there are no background commands here")
    if not context.cwd.is_dir():
        raise ToolFailed("the working folder is gone", where=str(context.cwd))
    name = await context.shells.start(argv, replace(context, environ=environ_of(context)))
    return Output(f"Started as {name}. BashOutput reads what it says, KillShell ends it.")


async def bash_output(value: Input, context: ToolContext) -> Output:
    if context.shells is None:
        raise ToolFailed("there are no background commands here")
    await checkpoint()  # what was just said may come in
    return Output(context.shells.read(str(value["id"])))


async def kill_shell(value: Input, context: ToolContext) -> Output:
    if context.shells is None:
        raise ToolFailed("there are no background commands here")
    return Output(await context.shells.kill(str(value["id"])))


_ID = {
    "type": "object",
    "properties": {"id": {"type": "string", "description": "The id that Bash gave"}},
    "required": ["id"],
    "additionalProperties": False,
}

BASH = Tool(
    "Bash",
    "Runs a shell command in the working folder, each time in a new shell, for at most 2 minutes. "
    "Output and errors come back together, with the exit code where it is not 0. When it ends, so "
    "does all it started; run_in_background starts what should go on. No terminal, no input.",
    {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command line"},
            "timeout": {
                "type": "number",
                "minimum": 1,
                "description": "Seconds after which it is ended",
            },
            "run_in_background": {
                "type": "boolean",
                "description": "Return at once with an id; read with BashOutput",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    bash,
    command="command",
    times_itself=True,
)
BASH_OUTPUT = Tool(
    "BashOutput",
    "Gives what a background command has said since it was last asked, and whether it still runs.",
    _ID,
    bash_output,
    read_only=True,
)
KILL_SHELL = Tool(
    "KillShell",
    "Ends a background command and everything it started.",
    _ID,
    kill_shell,
    read_only=True,
)
