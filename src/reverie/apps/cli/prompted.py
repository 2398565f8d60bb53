"""One prompt, one answer: what `-p` and a pipe get, and the exit code that says how it ended."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from reverie.agent.agent import AgentOptions
from reverie.apps.cli.chat import OutputFormat, model_named
from reverie.apps.cli.show import encoded, note
from reverie.errors import BudgetExceeded, Incomplete, Refused, ReverieError
from reverie.session.turn import TurnResult
from reverie.store.project import Project
from reverie.world import Model

CANCELLED = 130
ENDINGS: Mapping[str, type[ReverieError]] = {
    "refused": Refused,
    "truncated": Incomplete,
    "empty": Incomplete,
}


def answered(
    place: Project,
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
