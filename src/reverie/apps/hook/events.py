"""What Claude Code's sessions and a project's memory tell each other, at Claude Code's hooks.

A session that begins, or was compacted, is told the index; a prompt is told what is clearly about
it and was not shown yet; when a turn, the context or the session ends, what the person said is
learned, by rules, free and on this machine, and noted for the model that the user may have said
yes to. A session with no person at it teaches nothing, unless
the flag `extract_noninteractive` is on. The client's transcript is only read.

Nothing here can hold a session up: what fails is one sentence and exit status 1, which
Claude Code shows and passes over. Where memory is switched off, nothing is said or kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from reverie.errors import InvalidInput, ReverieError
from reverie.memory.memory import Memory
from reverie.providers.cli_programs import INSIDE
from reverie.settings.sources import environment
from reverie.text.safety import clean

FAILED = 1
MAX_EVENT = 8 * 1024 * 1024
MAX_PROMPT = 20_000
"""Characters of a prompt that are looked at."""
SHOWN = 4 * 1024 * 1024
"""Bytes at a transcript's end in which is looked for what was shown already."""
START_TOKENS = 2_000
PROMPT_TOKENS = 1_000
GUIDE = (
    "These lines are an index: read_memory of the reverie server gives one whole, search_memory "
    "finds more. How the person wanted work done (files that begin with feedback_) holds as if "
    "they said it now."
)
_COMPACTED = '"compact_boundary"'

Told = Mapping[str, Any]


def main(source: BinaryIO, out: TextIO) -> int:
    """Answer one event; the exit status."""
    if environment().get(INSIDE):
        return 0
    try:
        told = _event(source.read(MAX_EVENT + 1))
        memory = Memory(_text(told, "cwd") or ".")
        if _text(told, "hook_event_name") == "SessionStart":
            _start_proxy(memory)
        if not memory.__project__.settings.memory_off():
            answer = _ANSWERS.get(_text(told, "hook_event_name"), _nothing)(memory, told)
            shown = {**_context(told, answer), **_notice(memory, told)}
            if shown:
                out.write(json.dumps(shown) + "\n")
    except ReverieError as error:
        print(f"reverie: {clean(str(error))}", file=sys.stderr)
        return FAILED
    return 0


def _start_proxy(memory: Memory) -> None:
    """Start the proxy that Claude Code's settings name, where it is gone."""
    project = memory.__project__
    if (project.home / "installed" / "claude-code.json").is_file():
        from reverie.clients.files import ClientSettings
        from reverie.clients.service import start_missing

        start_missing(ClientSettings(project), "claude-code")


def _event(data: bytes) -> Told:
    if len(data) > MAX_EVENT:
        raise InvalidInput("This event is too large")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise InvalidInput("This event is not JSON") from None
    if not isinstance(value, dict):
        raise InvalidInput("This event is not a JSON object")
    return cast("Told", value)


def _text(told: Told, name: str) -> str:
    found = told.get(name)
    return found if isinstance(found, str) else ""


def _context(told: Told, text: str) -> dict[str, Any]:
    """How Claude Code takes context for its model."""
    event = _text(told, "hook_event_name")
    shown = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    return shown if text else {}


def _notice(memory: Memory, told: Told) -> dict[str, Any]:
    """What the person is shown, once, where the agent program cannot be asked."""
    project, event = memory.__project__, _text(told, "hook_event_name")
    if event != "SessionStart" or not project.settings.background_model:
        return {}
    from reverie.store.agent_ledger import AgentLedger

    why = AgentLedger(project.home).notice()
    text = f"Reverie learns by rules for now; your agent is {why}. `reverie doctor` says more."
    return {"systemMessage": text} if why else {}


# One for each event


def _on_start(memory: Memory, told: Told) -> str:
    if _text(told, "source") == "resume":  # what it was told stands in its context
        return ""
    known = memory.context(tokens=START_TOKENS)
    return f"{known}\n\n{GUIDE}" if known else ""


def _on_prompt(memory: Memory, told: Told) -> str:
    if not memory.__project__.flags.on("recall"):
        return ""
    prompt = _text(told, "prompt")[:MAX_PROMPT]
    return memory.reminder(prompt, shown=_context_text(told), tokens=PROMPT_TOKENS)


def _context_text(told: Told) -> str:
    """What the session's context may still hold, as far as its transcript tells."""
    path = _text(told, "transcript_path")
    try:
        with Path(path).open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - SHOWN))
            text = file.read(SHOWN).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
    return text.rpartition(_COMPACTED)[2].replace("\\n", "\n")


def _on_end(memory: Memory, told: Told) -> str:
    path, flags = _text(told, "transcript_path"), memory.__project__.flags
    wanted = flags.on("extract_memories") and (
        is_attended(environment()) or flags.on("extract_noninteractive")
    )
    if wanted and path and Path(path).is_file():
        from reverie.clients.background import note_turn

        ended = _text(told, "hook_event_name") != "Stop"
        note_turn(memory.__project__, Path(path), _text(told, "session_id") or path, ended=ended)
        memory.learn_recorded(path)
    return ""


def is_attended(environ: Mapping[str, str]) -> bool:
    """Whether Claude Code says that a person is at the session."""
    said = environ.get("CLAUDE_CODE_SESSION_ATTENDED", "")
    return said == "1" if said else environ.get("CLAUDE_CODE_ENTRYPOINT", "") == "cli"


def _nothing(memory: Memory, told: Told) -> str:
    del memory, told
    return ""


_ANSWERS: Mapping[str, Callable[[Memory, Told], str]] = {
    "SessionStart": _on_start,
    "UserPromptSubmit": _on_prompt,
    "Stop": _on_end,
    "PreCompact": _on_end,
    "SessionEnd": _on_end,
}
