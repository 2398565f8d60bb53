"""The parts of an agent, as its place and the settings want them: what it may do, what its tools
work with, its hooks, and how it thinks.

`agent` puts them together.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from reverie.agent.memory import AgentMemory
from reverie.errors import StoreError
from reverie.session.extraction.log import LoggingFiles, log_tools
from reverie.session.hooks import Hooks, hooks_for
from reverie.session.library import Library
from reverie.session.rules import ProjectRules
from reverie.session.session import Session
from reverie.settings import Flags, Settings
from reverie.settings.claude import claude_settings
from reverie.store.home import tool_results_folder
from reverie.store.memories import Memories
from reverie.store.project import Project
from reverie.tools import (
    Asker,
    PermissionPolicy,
    PermissionRoots,
    PermissionRule,
    Registry,
    StoredResults,
    Tool,
    ToolContext,
    Verdict,
    keep,
    load_rules,
)
from reverie.tools.guard import Guards
from reverie.tools.memory_tools import memory_tools
from reverie.tools.sandbox import Sandbox
from reverie.tools.sealed import SealedCalls
from reverie.world import Capabilities, Notice

LEAST_THINKING = 1_024  # tokens of the smallest budget, and what is left for the answer


def policy_for(
    place: Project,
    session: Session,
    mode: Verdict,
    asker: Asker | None,
    memories: Memories | AgentMemory | None,
    held: ProjectRules | None,
) -> PermissionPolicy:
    """What it may do unasked, what it asks for, and what it may not do."""
    rules, problems = load_rules(home=place.home, root=place.root)
    rules = (*rules, *(PermissionRule(name) for name in ("Remember", "Forget", "Snip")))
    for problem in problems:
        session.world.say(Notice("permissions", problem, "warning"))
    ground = PermissionRoots.of(place.worktree, Path(place.user_home), place.home)
    stored = tool_results_folder(session.library.path, session.id)
    root = memories.folder if isinstance(memories, AgentMemory) else memories and memories.root
    own = () if root is None else (Path(os.path.realpath(root)),)
    readable = (Path(os.path.realpath(stored)), *own)
    ground = replace(ground, readable=readable, writable=own)

    async def kept(rule: PermissionRule) -> None:
        try:
            await keep(place.home, place.root, rule)
        except StoreError as error:  # the call was allowed all the same
            session.world.say(Notice("permissions", str(error), "warning"))

    concern = None if held is None else held.concern
    return PermissionPolicy(ground, mode=mode, rules=rules, asker=asker, keep=kept, concern=concern)


def guards_for(
    place: Project, private: bool, tools: Registry, context: Callable[[], ToolContext]
) -> Guards:
    """What background agents may do: read the project and its sessions, no more."""
    library = Library.of(place, claim=not private)
    refused = (place.home, Path(place.user_home) / ".ssh")
    return Guards(tools, context, (place.worktree, library.path), refused, Sandbox())


def tool_context(
    place: Project, session: Session, memories: Memories | None, role: AgentMemory | None = None
) -> ToolContext:
    """What its tools work with: folders, files, what was stored."""
    stored: StoredResults | None = None
    sources: tuple[SealedCalls, ...] = ()
    if session.budget is not None:  # nothing is stored, nor a folder opened, where it is private
        folder = session.library.folder
        stored = StoredResults(folder, session.id, lambda: session.view)
        sources = (SealedCalls(lambda: session.view, folder, session.id),)
    return ToolContext(
        place.worktree,
        place.cwd,
        role.files(place.cwd, place.user_home, session.id)
        if role is not None
        else LoggingFiles(
            place.cwd,
            place.user_home,
            memories=memories,
            session=session.id,
            daily=lambda: place.flags.on("daily_log"),
        ),
        session.world.clock,
        settings=session.world.settings,
        say=session.world.say,
        environ=place.environ,
        stored=stored,
        sources=sources,
    )


def memory_tools_for(memories: Memories | None, flags: Flags) -> tuple[Tool, ...]:
    """Remember and Forget; where a daily log is kept, they add to it."""
    if memories is None:
        return ()
    return log_tools(memories) if flags.on("daily_log") else memory_tools(memories)


def agent_hooks(place: Project, session: Session) -> Hooks:
    """Those of the person and of the project."""
    settings = session.world.settings
    return hooks_for(
        session.id,
        str(place.cwd),
        home=place.home,
        root=place.root,
        seconds=settings.hook_seconds,
        simple=settings.simple,
        say=session.world.say,
        claude=claude_settings(place.home, place.worktree, place.environ),
        transcript=str(session.library.path / f"{session.id}.jsonl"),
    )


def thinking_options(settings: Settings, known: Capabilities) -> dict[str, Any]:
    """Thinking and effort as the settings say and the model can."""
    options: dict[str, Any] = {}
    if settings.thinking != "off" and known.thinking:
        way = settings.thinking if settings.thinking in known.thinking else known.thinking[0]
        most = min(known.max_output or settings.max_output_tokens, settings.max_output_tokens)
        budget = max(LEAST_THINKING, min(settings.thinking_tokens, most - LEAST_THINKING))
        enabled = {"type": "enabled", "budget_tokens": budget}
        options["thinking"] = {"type": "adaptive"} if way == "adaptive" else enabled
    if settings.effort != "default" and known.efforts:
        options["output_config"] = {"effort": settings.effort}
    return options
