"""`chat` and `-p`.

`reverie chat`: the terminal agent; and one prompt in a pipe.

With `-p` or piped input one turn runs, its answer goes to stdout and everything else to
stderr; the exit code says how it ended. At a terminal it is a conversation: Ctrl-C
cancels a turn and not the program, twice at an empty prompt it leaves. It never decides
what the agent may do: permissions are the toolbox's, limits the loop's.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

from reverie.apps.cli.app import folder_option, json_option, model_option, sessions_like
from reverie.errors import BudgetExceeded, Incomplete, InvalidInput, Refused, ReverieError

if TYPE_CHECKING:
    from reverie.agent.agent import AgentOptions
    from reverie.apps.cli.controller import TurnDisplay
    from reverie.apps.tui.terminal import Terminal
    from reverie.session.turn import TurnResult
    from reverie.store.project import Project
    from reverie.world import Model

OutputFormat = Literal["text", "json", "stream-json"]
Mode = Literal["ask", "allow", "deny"]
MAX_INPUT = 10 * 1024 * 1024
FIRST_BYTE = 3.0  # seconds to wait for piped input when a prompt is there already
THINKING = ("off", "adaptive", "budget")
EFFORTS = ("low", "medium", "high", "xhigh", "max")


@click.command()
@click.option("-p", "--print", "text", metavar="TEXT", help="Answer one prompt and exit.")
@click.option(
    "--output-format",
    type=click.Choice(get_args(OutputFormat)),
    default="text",
    show_default=True,
    help="Format of the answer.",
)
@click.option(
    "--resume",
    default="",
    metavar="ID",
    shell_complete=sessions_like,
    help="Continue this session.",
)
@click.option("-c", "--continue", "go_on", is_flag=True, help="Continue the newest session.")
@model_option
@click.option("--agent", default="", metavar="NAME", help="Be an agent of this type.")
@click.option("--plain", is_flag=True, help="One line an event, and nothing moves.")
@click.option("--bare", is_flag=True, help="Run without memory, notes and hooks.")
@click.option("--private", is_flag=True, help="Record nothing.")
@click.option(
    "--max-cost", type=click.FloatRange(min=0), metavar="N", help="Limit in price-weighted tokens."
)
@click.option(
    "--max-rounds",
    type=click.IntRange(min=1),
    metavar="N",
    default=500,
    show_default=True,
    help="Maximum rounds in one turn.",
)
@click.option("--thinking", type=click.Choice(THINKING), help="Whether the model thinks first.")
@click.option(
    "--thinking-tokens",
    type=click.IntRange(min=1_024),
    metavar="N",
    help="Tokens it may think, with a budget.",
)
@click.option("--effort", type=click.Choice(EFFORTS), help="How hard the model works.")
@click.option(
    "--max-tokens", type=click.IntRange(min=1), metavar="N", help="Tokens of one answer at most."
)
@click.option(
    "--permission-mode",
    type=click.Choice(get_args(Mode)),
    default="ask",
    show_default=True,
    help="What to do when no permission rule applies.",
)
@json_option
@folder_option()
def chat(
    text: str | None,
    output_format: OutputFormat,
    resume: str,
    go_on: bool,
    model: str,
    agent: str,
    plain: bool,
    bare: bool,
    private: bool,
    max_cost: float | None,
    max_rounds: int,
    thinking: str | None,
    thinking_tokens: int | None,
    effort: str | None,
    max_tokens: int | None,
    permission_mode: Mode,
    as_json: bool,
    project: Path,
) -> None:
    """Chat with an agent (the default command)."""
    prompt = given_prompt(text)
    if prompt is not None and not prompt.strip():
        raise InvalidInput("the prompt is empty", do="Give a prompt with -p, or pipe it in")
    given = {
        "thinking": thinking,
        "thinking_tokens": thinking_tokens,
        "effort": effort,
        "max_output_tokens": max_tokens,
    }
    terminal = None if prompt is not None or plain else drawn_terminal()
    with nullcontext() if terminal is None else terminal:
        from reverie.agent.agent import AgentOptions
        from reverie.session.request_head import working_folder
        from reverie.session.turn import TurnLimits
        from reverie.store.project import Project

        folder = working_folder(project)
        place = _with_settings(Project.at(folder), **given)
        wanted = AgentOptions(
            project=folder,
            resume=_session_to_resume(place, resume, go_on),
            private=private,
            bare=bare,
            mode=permission_mode,
            interactive=prompt is None,
            limits=TurnLimits(rounds=max_rounds, cost=max_cost),
            home=place.home,
            environ=place.environ,
            agents=not agent,
            agent=agent,
        )
        left = _talk(place, wanted, model, terminal) if prompt is None else ""
    if prompt is not None:
        _answer(place, wanted, model, prompt, "json" if as_json else output_format, as_json)
    elif left:
        click.echo(left, err=True)


def _talk(place: Project, wanted: AgentOptions, model: str, terminal: Terminal | None) -> str:
    from reverie.apps.cli.interactive import converse

    return converse(place, wanted, model, terminal)


def _answer(
    place: Project,
    wanted: AgentOptions,
    model: str,
    prompt: str,
    form: OutputFormat,
    as_json: bool,
) -> None:
    from reverie.apps.cli.keyboard import tell_off, welcome

    welcome(place.home, place.settings, private=wanted.private)
    tell_off(place)
    code = run_prompt(place, wanted, model, prompt, form, as_json)
    if code:
        raise click.exceptions.Exit(code)


def drawn_terminal() -> Terminal | None:
    """The terminal app with its input drawn; None where only lines can be shown. The rest of the
    program is loaded behind it."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
        return None
    from reverie.settings.sources import environment

    known = environment()
    if known.get("TERM", "dumb") in ("", "dumb"):
        return None
    try:
        from reverie.apps.tui.terminal import Terminal
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "prompt_toolkit":
            raise
        return None
    return Terminal(colour=not known.get("NO_COLOR"))


def _with_settings(place: Project, **given: str | int | None) -> Project:
    """The place with what was asked for on the command line as its environment says it."""
    from reverie.settings.sources import variable

    said = {variable(name): str(value) for name, value in given.items() if value is not None}
    return replace(place, environ={**place.environ, **said}).reload()


def _session_to_resume(place: Project, resume: str, newest: bool) -> str:
    if resume and newest:
        raise InvalidInput("--resume and --continue cannot be used together")
    from reverie.session.library import SessionLibrary, find_session

    library = SessionLibrary.find(place)
    if resume:
        return find_session(library, resume)
    found = library.sessions() if newest and library else []
    if newest and not found:
        raise InvalidInput("this project has no sessions yet", where=str(place.root))
    return found[0].id if found else ""


def model_named(place: Project, name: str, resume: str = "", *, background: bool = False) -> Model:
    """The model asked for; without a name the one a resumed session had, or the default. In the
    background it may be an agent program."""
    from reverie.embedded.model import EmbeddedModel
    from reverie.models import named
    from reverie.providers.selection import AGENT, model_for
    from reverie.session.library import SessionLibrary

    if resume and not name:
        library = SessionLibrary.find(place)
        head = library.read(resume).view.head if library else None
        name = head.model if head else ""
    settings = place.settings
    if background and name.startswith(AGENT):
        return named(name, settings=settings)
    found = model_for(name, place.environ, settings, session=resume)
    return found or EmbeddedModel(settings)


# --- one prompt


def given_prompt(text: str | None) -> str | None:
    """What was asked on the command line and by pipe; None where a person will type.
    A single dash means the pipe alone."""
    if text == "-":
        text = None
    if sys.stdin is None or sys.stdin.isatty():
        return text
    kind = os.fstat(sys.stdin.fileno()).st_mode
    if text is not None:
        if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind)):
            return text
        if not select.select([sys.stdin], [], [], FIRST_BYTE)[0]:
            click.echo("reverie: nothing came by the pipe; going on without it", err=True)
            return text
    data = sys.stdin.buffer.read(MAX_INPUT + 1)
    if len(data) > MAX_INPUT:
        raise InvalidInput(f"the input has more than {MAX_INPUT:,} bytes", where="stdin")
    piped = data.decode("utf-8", "replace")
    return piped if text is None else f"{text}\n\n{piped}" if piped.strip() else text


def with_session(wanted: AgentOptions, session: str) -> AgentOptions:
    """The same wishes for another session."""
    return replace(wanted, resume=session)


# --- Asking, before a conversation begins, for files outside the project that it wants to read.


REASON = "this project asks to read a file outside it, now and in later sessions"


def ask_for_files(project: Project, screen: TurnDisplay) -> None:
    """One question for each file that nobody approved yet; a no is not kept."""
    from reverie.session.context import instruction_files
    from reverie.store.approvals import IncludeApprovals
    from reverie.toolbox.permissions import Question

    found = instruction_files(project).unapproved
    record = IncludeApprovals(project.home)
    for one in found:
        subject = f"{one.path}, wanted by {one.by}"
        if screen.ask(Question("CLAUDE.md", subject, REASON)).allow:
            record.approve(project.root, one.path, one.by)


# --- One prompt, one answer: what `-p` and a pipe get, and the exit code that says how it ended.


CANCELLED = 130
ENDINGS: Mapping[str, type[ReverieError]] = {
    "refused": Refused,
    "truncated": Incomplete,
    "empty": Incomplete,
}


def run_prompt(
    place: Project,
    wanted: AgentOptions,
    model: str,
    prompt: str,
    form: OutputFormat,
    as_json: bool,
) -> int:
    """Run one turn and print what came of it; gives the exit code."""
    from reverie.apps.cli.controller import ChatController, TurnCancelled
    from reverie.apps.cli.output import note
    from reverie.apps.cli.screens import AnswerScreen, JsonScreen

    desk = ChatController(JsonScreen() if form == "stream-json" else AnswerScreen())
    session = ""
    try:
        found = model_named(place, model, wanted.resume)
        with desk.open(wanted, found) as desk:
            session = desk.agent.session.id
            result = desk.turn(prompt)
    except TurnCancelled:
        note(f"reverie: cancelled; `reverie --resume {session}` goes on")
        return CANCELLED
    except ReverieError as error:
        if form != "text" and not as_json:
            _object(form, {"type": "error", "what": error.what, **_error(error, session)})
        raise
    _print_result(form, result, session, found)
    return _code(result)


def _error(error: ReverieError, session: str) -> dict[str, Any]:
    kind = type(error).__name__
    told = {"error": kind, "where": error.where, "do": error.do, "exit_code": error.exit_code}
    return {**told, "is_error": True, "result": str(error), "session_id": session}


def _print_result(form: OutputFormat, result: TurnResult, session: str, model: Model) -> None:
    if form == "text":
        from reverie.text.safety import clean

        text = clean(result.text) if sys.stdout.isatty() else result.text
        sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
    else:
        _object(form, result_facts(result, session, model))


def result_facts(result: TurnResult, session: str, model: Model) -> dict[str, Any]:
    """A turn's end for programs: our own keys, and those that scripts for Claude Code read."""
    from reverie.providers.costs import dollars

    usage, free = result.usage, model.capabilities.free
    counts = {
        "uncached": usage.uncached,
        "read": usage.read,
        "written": usage.written,
        "output": usage.output,
    }
    cost = dollars(model.name, usage, free=free)
    return {
        "type": "result",
        "outcome": result.outcome,
        "text": result.text,
        "session_id": session,
        "model": model.name,
        "rounds": result.rounds,
        "usage": counts,
        "cost": 0.0 if free else round(result.weighted, 2),
        "reason": result.reason,
        "stop_reason": result.stop_reason,
        "result": result.text,
        "is_error": result.outcome != "completed",
        "num_turns": result.rounds,
        "total_cost_usd": None if cost is None else round(cost, 6),
    }


def _object(form: OutputFormat, value: dict[str, Any]) -> None:
    from reverie.apps.cli.output import json_text

    if form == "json":
        print(json_text(value))
    else:
        from reverie.apps.cli.output import inert
        from reverie.transcript.blocks import dump

        print(inert(dump(value)), flush=True)


def _code(result: TurnResult) -> int:
    from reverie.apps.cli.output import note

    if result.outcome == "limit":
        note(f"reverie: stopped at a limit: {result.reason}")
        return BudgetExceeded.exit_code
    if result.outcome == "blocked":
        note(f"reverie: a hook blocked the prompt: {result.reason}")
        return 1
    if result.outcome in ENDINGS:
        note(f"reverie: {result.reason}")
        return ENDINGS[result.outcome].exit_code
    return 0
