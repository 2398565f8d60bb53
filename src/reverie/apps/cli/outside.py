"""Asking, before a conversation begins, for files outside the project that it wants to read."""

from __future__ import annotations

from reverie.apps.cli.desk import Screen
from reverie.session.context import instruction_files
from reverie.store.approvals import IncludeApprovals
from reverie.store.project import Project
from reverie.tools import Question

REASON = "this project asks to read a file outside it, now and in later sessions"


def ask_for_files(project: Project, screen: Screen) -> None:
    """One question for each file that nobody approved yet; a no is not kept."""
    found = instruction_files(project).unapproved
    record = IncludeApprovals(project.home)
    for one in found:
        subject = f"{one.path}, wanted by {one.by}"
        if screen.ask(Question("CLAUDE.md", subject, REASON)).allow:
            record.approve(project.root, one.path, one.by)
