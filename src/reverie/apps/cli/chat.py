"""`reverie chat`: the terminal agent, line by line; and one prompt in a pipe.

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
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import click

from reverie.agent.agent import AgentOptions
from reverie.agent.place import working_folder
from reverie.apps.cli.options import json_option, model_option, project_option, sessions_like
from reverie.apps.cli.show import encoded, note
from reverie.errors import BudgetExceeded, Incomplete, InvalidInput, Refused, ReverieError
from reverie.session.turn import TurnLimits, TurnResult
from reverie.settings import variable
from reverie.upkeep.place import ProjectPlace, find_session
from reverie.world import Model

OutputFormat = Literal["text", "json", "stream-json"]
Mode = Literal["ask", "allow", "deny"]
MAX_INPUT = 10 * 1024 * 1024
FIRST_BYTE = 3.0  # seconds to wait for piped input when a prompt is there already
CANCELLED = 130
THINKING = ("off", "adaptive", "budget")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
ENDINGS: Mapping[str, type[ReverieError]] = {
    "refused": Refused,
    "truncated": Incomplete,
    "empty": Incomplete,
}


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
@project_option
def chat(
    text: str | None,
    output_format: OutputFormat,
    resume: str,
    go_on: bool,
    model: str,
    agent: str,
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
    folder = working_folder(project)
    place = _with_settings(
        ProjectPlace.of(folder),
        thinking=thinking,
        thinking_tokens=thinking_tokens,
        effort=effort,
        max_output_tokens=max_tokens,
    )
    wanted = AgentOptions(
        project=folder,
        resume=_chosen(place, resume, go_on),
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
    _welcome(place, private)
    if prompt is None:
        from reverie.apps.cli.interactive import converse
        from reverie.apps.cli.trust import offer

        offer(place, project)
        converse(place, wanted, model)
        return
    code = answered(place, wanted, model, prompt, "json" if as_json else output_format, as_json)
    if code:
        raise click.exceptions.Exit(code)


def _with_settings(place: ProjectPlace, **given: str | int | None) -> ProjectPlace:
    """The place with what was asked for on the command line as its environment says it."""
    said = {variable(name): str(value) for name, value in given.items() if value is not None}
    return replace(place, environ={**place.environ, **said})


def _welcome(place: ProjectPlace, private: bool) -> None:
    from reverie.apps.cli.welcome import welcome

    welcome(place.home, place.loaded().settings, private=private)


def _chosen(place: ProjectPlace, resume: str, newest: bool) -> str:
    if resume and newest:
        raise InvalidInput("--resume and --continue cannot be used together")
    library = place.library()
    if resume:
        return find_session(library, resume)
    found = library.sessions() if newest and library else []
    if newest and not found:
        raise InvalidInput("this project has no sessions yet", where=str(place.root))
    return found[0].id if found else ""


def model_named(place: ProjectPlace, name: str, resume: str = "") -> Model:
    """The model asked for; without a name the one a resumed session had, or the default."""
    from reverie.embedded import EmbeddedModel
    from reverie.providers.choose import model_for

    if resume and not name:
        library = place.library()
        head = library.read(resume).view.head if library else None
        name = head.model if head else ""
    settings = place.loaded().settings
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
            note("reverie: nothing came by the pipe; going on without it")
            return text
    data = sys.stdin.buffer.read(MAX_INPUT + 1)
    if len(data) > MAX_INPUT:
        raise InvalidInput(f"the input has more than {MAX_INPUT:,} bytes", where="stdin")
    piped = data.decode("utf-8", "replace")
    return piped if text is None else f"{text}\n\n{piped}" if piped.strip() else text


def answered(
    place: ProjectPlace,
    wanted: AgentOptions,
    model: str,
    prompt: str,
    form: OutputFormat,
    as_json: bool,
) -> int:
    """Run one turn and print what came of it; gives the exit code."""
    from reverie.apps.cli.desk import Cancelled, Desk
    from reverie.apps.cli.screens import Printed, Streamed

    desk = Desk(Streamed() if form == "stream-json" else Printed())
    session = ""
    try:
        found = model_named(place, model, wanted.resume)
        with desk.open(wanted, found) as desk:
            session = desk.agent.session.id
            result = desk.turn(prompt)
    except Cancelled:
        note(f"reverie: cancelled; `reverie --resume {session}` goes on")
        return CANCELLED
    except ReverieError as error:
        if form != "text" and not as_json:
            _object(form, {"type": "error", "what": error.what, **_error(error, session)})
        raise
    _printed(form, result, session, found)
    return _code(result)


def _error(error: ReverieError, session: str) -> dict[str, Any]:
    kind = type(error).__name__
    told = {"error": kind, "where": error.where, "do": error.do, "exit_code": error.exit_code}
    return {**told, "is_error": True, "result": str(error), "session_id": session}


def _printed(form: OutputFormat, result: TurnResult, session: str, model: Model) -> None:
    if form == "text":
        from reverie.apps.cli.show import clean

        text = clean(result.text) if sys.stdout.isatty() else result.text
        sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
    else:
        _object(form, described(result, session, model))


def described(result: TurnResult, session: str, model: Model) -> dict[str, Any]:
    """A turn's end for programs: our own keys, and those that scripts for Claude Code read."""
    from reverie.providers.prices import dollars

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
    if form == "json":
        print(encoded(value))
    else:
        from reverie.apps.cli.show import inert
        from reverie.transcript.blocks import dump

        print(inert(dump(value)), flush=True)


def _code(result: TurnResult) -> int:
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


def resumed(wanted: AgentOptions, session: str) -> AgentOptions:
    """The same wishes for another session."""
    return replace(wanted, resume=session)
