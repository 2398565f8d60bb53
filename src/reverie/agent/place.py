"""Where an agent works, and what it is told of the place: once, at the head of its session.

The system prompt with the memory section, the instruction files with the memory index, and the
surroundings. Rendered when a session begins, and again only behind a compaction that replaced the
conversation's beginning. Nothing here opens a session.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reverie.agent.git_state import git_state
from reverie.errors import NotFound
from reverie.session.attachments import date_line, framed, local_date
from reverie.session.context import gather, memory_section
from reverie.session.recall.young import young_memories
from reverie.session.team import is_on
from reverie.settings import Settings
from reverie.store.memories import Memories
from reverie.store.project import Project, work_root
from reverie.world import Capabilities, Clock, Notice, Say, say_nothing


def project_at(
    folder: Path, home: Path | None, environ: Mapping[str, str], say: Say = say_nothing
) -> Project:
    """Return the project around a working folder; say what is wrong with its settings."""
    found = Project.at(working_folder(folder), home=home, environ=environ)
    for problem in found.problems:
        say(Notice("settings", str(problem), "warning"))
    return found


SEALED_ROUNDS = """\
Earlier rounds of a long conversation are sealed: short lines at its beginning stand for them, each
with a reference such as r:abc123. A line leaves things out: before you rely on what it only names,
read that with ReadBack.
"""


def system_prompt(project: Project, text: str, memories: Memories | None, say: Say) -> str:
    """The system prompt, with what there is to say about sealed rounds and about memory."""
    if project.settings.context_policy == "collapse":
        text = f"{text.rstrip()}\n\n{SEALED_ROUNDS}"
    if memories is None:
        return text
    flags = project.flags
    section = memory_section(
        project.settings,
        memories.folder,
        team=flags.on("team_memory"),
        daily_log=flags.on("daily_log"),
        search_past=flags.on("search_past"),
        say=say,
    )
    return f"{text.rstrip()}\n\n{section}" if section else text


def head_context(project: Project, clock: Clock, memories: Memories | None, say: Say) -> str:
    """Instruction files and the memory index, then where and when this is."""
    folder = None if memories is None else memories.folder
    scanned = () if memories is None else memories.folder.scan()
    young = () if memories is None else young_memories(memories, project.settings, scanned)
    found = gather(
        project, memory=folder, young=young, scanned=scanned, team=is_on(project), say=say
    )  # fmt: skip
    here = surroundings(project.cwd, clock.now())
    return f"{found.text}\n{here}" if found.text else here


def working_folder(project: Path) -> Path:
    """The folder to work in, as an absolute path; NotFound where it is gone."""
    try:
        folder = Path(os.path.abspath(project))
        if not folder.is_dir():
            raise FileNotFoundError
    except FileNotFoundError:
        raise NotFound(
            "the working folder is not there", where=str(project), do="Go to one that exists"
        ) from None
    return folder


def surroundings(cwd: Path, now: float) -> str:
    """Where an agent works, told once at the head of its session."""
    top = work_root(cwd)
    there = os.path.lexists(top / ".git")
    lines = (
        f"Working folder: {cwd}",
        f"Git checkout: {top if there else 'none'}",
        *(git_state(top) if there else ()),
        f"Platform: {platform.system()} {platform.release()}",
        date_line(local_date(now)),
    )
    return framed("environment", "\n".join(lines))


# How it thinks

LEAST_THINKING = 1_024  # tokens of the smallest budget, and what is left for the answer


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
