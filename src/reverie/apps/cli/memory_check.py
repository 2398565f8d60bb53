"""`reverie memory check`: what is wrong with the memory of a project, with evidence and a score."""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING, Any

import click

from reverie.apps.cli.memory_open import by_user, find_memory, open_memory
from reverie.apps.cli.options import json_option, project_option
from reverie.apps.cli.show import Column, document, line, note, say, table, waiting
from reverie.store.project import Project
from reverie.store.rule_rows import list_rules
from reverie.text.counts import plural
from reverie.text.untrusted import reveal
from reverie.upkeep.check import (
    MemoryFix,
    check_memory,
    fix_memory,
    plan_fix,
    report_value,
)

if TYPE_CHECKING:
    from reverie.memory.hygiene.check import Finding, HygieneReport

_SHOWN = 200


@click.command()
@click.option("--fix", is_flag=True, help="Make the fixes that lose nothing.")
@click.option("--dry-run", is_flag=True, help="With --fix: show what it would change, as diffs.")
@json_option
@project_option
def check(fix: bool, dry_run: bool, as_json: bool, project: Project) -> None:
    """Check the memory: junk, duplicates, contradictions, stale dates, secrets, index faults."""
    if dry_run and not fix:
        raise click.UsageError("--dry-run goes with --fix")
    done = MemoryFix()
    if dry_run:
        _would(project, as_json=as_json)
        return
    with (
        waiting("checking the memory"),
        open_memory(project) if fix else find_memory(project) as memories,
    ):
        if fix and memories is not None:
            done = fix_memory(memories, project, by_user("check"))
        report = check_memory(memories, project)
        rows = list_rules(memories, project.root) if memories is not None else []
        idle = {row.rule.get("file", ""): row.idle for row in rows if row.idle}
    if as_json:
        value = {**report_value(report), "idle_rules": list(idle)}
        document({**value, "fixed": done.value()} if fix else value)
    else:
        _tell(report, done, fix)
        for file, told in list(idle.items())[:20]:
            note(line(reveal(f"{file}: {told}"), 300))
    if done.failed:
        raise click.exceptions.Exit(1)


def _would(project: Project, *, as_json: bool) -> None:
    """What a fix would change, and nothing changed."""
    with waiting("checking the memory"), find_memory(project) as memories:
        found = None if memories is None else plan_fix(memories, project)
    nothing: dict[str, Any] = {"files": [], "edits": {}, "plan": ""}
    value = nothing if found is None else found.value()
    if as_json:
        document(value)
        return
    for one in value["files"]:
        before, after = ((one[side] or "").splitlines() for side in ("before", "after"))
        for row in unified_diff(before, after, one["file"], one["file"], lineterm=""):
            say(line(reveal(row), 400))
    for left in value.get("left", [])[:20]:
        note(f"left out: {line(reveal(left), 200)}")
    if not value["files"]:
        say("Nothing to fix.")


def _tell(report: HygieneReport, done: MemoryFix, fix: bool) -> None:
    if done.files or done.removed:
        told = ", ".join(f"{why.replace('_', ' ')} {n}" for why, n in (done.edits or {}).items())
        say(f"{plural(len(done.files), 'file')} changed, {len(done.removed)} removed: {told}")
        say("`reverie memory undo` takes it back")
    elif fix and not done.failed:
        say("Nothing to fix.")
    if done.failed:
        note(done.failed)
    for one in done.dropped[:20]:
        by = f"; instead: {line(reveal(one['by']), 100)}" if one["by"] else ""
        note(f"gone, {one['why'].replace('_', ' ')}: {line(reveal(one['fact']), 100)}{by}")
    for left in done.left[:20]:
        note(f"left out: {line(reveal(left), 200)}")
    if report.findings:
        columns = [Column("kind"), Column("where"), Column("evidence", wraps=True)]
        table(columns, [_row(one) for one in report.findings[:_SHOWN]])
        if len(report.findings) > _SHOWN:
            note(f"{len(report.findings) - _SHOWN:,} more: --json lists all")
    memories = plural(report.memories, "memory", "memories")
    counts = ", ".join(f"{kind.replace('_', ' ')} {n}" for kind, n in report.counts.items())
    say(f"score {report.score} of 100: {memories}, {counts or 'no faults found'}")
    if report.unlooked:
        names = line(reveal(", ".join(report.unlooked)), 120)
        told = plural(len(report.unlooked), "name")
        note(f"There was no time to look for {told} in the repository: {names}")
    fixable = sum(one.fix is not None for one in report.findings)
    if fixable and not fix:
        note(f"{plural(fixable, 'fault')} can be fixed: `reverie memory check --fix`")


def _row(one: Finding) -> list[str]:
    where = f"{one.file}:{one.line}" if one.line else one.file
    return [one.kind.replace("_", " "), line(reveal(where), 80), line(reveal(one.evidence), 240)]
