"""`memory check`, `review`, `rules`.

`reverie memory review`: what untrusted sources want remembered, for a person to decide, and the
memories that newer rules superseded.

Nothing here is in the index or was sent to a model. Accepting saves it as the user's decision, as
it is or as they have edited it, with where it came from in the note; what is dropped can be put
back for thirty days.
"""

from __future__ import annotations

import json
import time
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

import click

from reverie.apps.cli.app import CommandGroup, json_option, project_option
from reverie.apps.cli.keyboard import run_editor
from reverie.apps.cli.output import Column, document, note, say, table, waiting
from reverie.apps.cli.recall import by_user, contents_from, find_memory, open_memory, with_option
from reverie.errors import InvalidInput
from reverie.memory.check import (
    MemoryFix,
    check_memory,
    fix_memory,
    plan_fix,
    report_value,
    set_level,
    undecided,
)
from reverie.memory.values import describe_origin, review_value
from reverie.rules.match import LEVELS
from reverie.session.rules import ProjectRules
from reverie.store.lists import ReviewItem
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project
from reverie.store.replacement import list_superseded
from reverie.store.replacement import restore as restore_superseded
from reverie.store.rules import RuleRow, applies, list_rules
from reverie.text.format import age, plural
from reverie.text.safety import line, reveal
from reverie.topics.entry import TopicFile
from reverie.topics.versions import Origin

if TYPE_CHECKING:
    from reverie.consolidation.lint import LintFinding, LintReport

OUTCOMES = {
    "saved": "saved as edited",
    "unchanged": "was not changed: nothing was saved, it still waits for review",
    "empty": "was left without a text: nothing was saved, it still waits for review",
}
"""What became of an item that was edited."""

review_id = click.argument("item", metavar="ID", help="The item's id, or its first characters.")


_SHOWN = 200


@click.group("review", cls=CommandGroup, no_args_is_help=True)
def app() -> None:
    """Decide on memories from untrusted sources."""


@app.command("list")
@click.option("--dropped", is_flag=True, help="What was dropped in the last 30 days instead.")
@json_option
@project_option
def list_all(dropped: bool, as_json: bool, project: Project) -> None:
    """List what is waiting for review, oldest first, and why."""
    with find_memory(project) as memories:
        if dropped:
            items = memories.review.dropped(time.time()) if memories else []
        else:
            items = memories.review.items() if memories else []
        broken = memories.review.unreadable() if memories else []
        issues = undecided(memories) if memories and not dropped else []
        replaced = list_superseded(memories) if memories and not dropped else []
    if as_json:
        value = {"items": [review_value(item) for item in items], "unreadable": broken}
        rows = [{"file": one.key, "by": one.superseded, "text": one.body} for one in replaced]
        document({**value, "undecided": issues, "superseded": rows})
        return
    if not items:
        say("Nothing was dropped lately." if dropped else "Nothing is waiting for review.")
    else:
        now = time.time()
        names = ("id", "file", "age", "from", "why")
        rows = [
            [
                item.id,
                item.key,
                age(now - item.at),
                describe_origin(item.origin),
                line(", ".join(f"{e.rule}: {reveal(e.words)}" for e in item.evidence), 100),
            ]
            for item in items
        ]
        table([Column(name, wraps=name == "why") for name in names], rows)
    _tell_undecided(issues)
    if replaced:
        say("Superseded by newer rules; `reverie memory review restore FILE` has one hold again:")
        columns = [Column("file"), Column("by"), Column("says", wraps=True)]
        told = [[one.key, one.superseded, line(reveal(one.body), 100)] for one in replaced]
        table(columns, told)
    for name in broken:
        note(f"{name} cannot be read")


def _tell_undecided(issues: list[dict[str, Any]]) -> None:
    """Show what only a person or a model can decide, of two memories both texts."""
    if issues:
        say(f"{plural(len(issues), 'issue')} to decide; `reverie memory edit FILE` changes one:")
    for one in issues[:_SHOWN]:
        say(line(reveal(f"{one['kind'].replace('_', ' ')} {one['file']}:{one['line']}"), 120))
        rows = [one["evidence"]]
        if one.get("text"):
            other = f"{one['with']}:{one['with_line']}"
            rows = [f"{one['file']}:{one['line']}: {one['text']}", f"{other}: {one['with_text']}"]
        for row in rows:
            say(f"    {line(reveal(row), 240)}")


@app.command()
@review_id
@json_option
@project_option
def show(item: str, as_json: bool, project: Project) -> None:
    """Show one item in full, with hidden characters made visible."""
    with open_memory(project) as memories:
        found = memories.review.find(item)
    if as_json:
        document(review_value(found))
        return
    say(f"{found.key} from {describe_origin(found.origin)}", "bold")
    for one in found.evidence:
        say(f"  line {one.line}, {one.rule}: {reveal(one.words)}", "yellow")
    say(reveal(found.text))


@app.command()
@review_id
@json_option
@project_option
def accept(item: str, as_json: bool, project: Project) -> None:
    """Accept an item and save it as a memory."""
    with open_memory(project) as memories:
        found = memories.review.find(item)
        done = memories.accept(found, _accept_origin(found))
    if as_json:
        document({"accepted": found.id, "file": done.key})
        return
    say(f"{done.key} saved")


@app.command()
@review_id
@with_option
@json_option
@project_option
def edit(item: str, source: str, as_json: bool, project: Project) -> None:
    """Edit an item in your editor ($VISUAL, $EDITOR), then save it as a memory."""
    with open_memory(project) as memories:
        found = memories.review.find(item)
        outcome = edit_item(memories, found.id, contents_from(source) if source else None)
    if as_json:
        document({"edited": found.id, "file": found.key, "outcome": outcome})
        return
    say(f"{found.key} {OUTCOMES[outcome]}")


def edit_item(memories: MemoryStore, name: str, given: bytes | None = None) -> str:
    """Save what is given in an item's project, or what the person makes of it in their editor; says
    what became of it. What was not changed, or has nothing left in it, is no decision."""
    item = memories.review.find(name)
    before = item.text.encode("utf-8", "replace")

    def save(data: bytes) -> str:
        if not TopicFile(item.key, data).body.strip():
            return "empty"
        if data.rstrip() == before.rstrip():  # an editor may end the last line
            return "unchanged"
        memories.accept(memories.review.find(item.id), _accept_origin(item), data)
        return "saved"

    return run_editor(before, item.key, save) if given is None else save(given)


def _accept_origin(item: ReviewItem) -> Origin:
    return by_user("accept", f"from {describe_origin(item.origin)}")


@app.command()
@review_id
@json_option
@project_option
def drop(item: str, as_json: bool, project: Project) -> None:
    """Drop an item from the queue without saving it."""
    with open_memory(project) as memories:
        found = memories.review.find(item)
        memories.drop(found)
    if as_json:
        document({"dropped": found.id})
        return
    say(f"{found.key} dropped")


@app.command()
@review_id
@json_option
@project_option
def restore(item: str, as_json: bool, project: Project) -> None:
    """Put back what was dropped in the last 30 days, or a memory that a newer rule superseded."""
    with open_memory(project) as memories:
        if any(item in (one.key, one.key.removesuffix(".md")) for one in list_superseded(memories)):
            done = restore_superseded(memories, item, by_user("restore"))
            told, name = f"{done.key} holds again", done.key
        else:
            found = memories.review.restore(item, time.time())
            told, name = f"{found.key} waits for review again", found.id
    if as_json:
        document({"restored": name})
        return
    say(told)


# --- `reverie memory check`: what is wrong with the memory of a project, with evidence and a
# score.


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


def _tell(report: LintReport, done: MemoryFix, fix: bool) -> None:
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
    fixable = sum(one.fixable for one in report.findings)
    if fixable and not fix:
        note(f"{plural(fixable, 'fault')} can be fixed: `reverie memory check --fix`")


def _row(one: LintFinding) -> list[str]:
    where = f"{one.file}:{one.line}" if one.line else one.file
    return [one.kind.replace("_", " "), line(reveal(where), 80), line(reveal(one.evidence), 240)]


# --- `reverie memory rules`: memories that are rules about calls, what they may do, what they did.


@click.group(invoke_without_command=True)
@json_option
@project_option
@click.pass_context
def rules(context: click.Context, as_json: bool, project: Project) -> None:
    """List the rules that calls are held against; test a call; set a rule's level."""
    if context.invoked_subcommand:
        return
    with find_memory(project) as memories:
        rows = [] if memories is None else list_rules(memories, project.root)
    if as_json:
        document({"rules": [row.value() for row in rows]})
        return
    if not rows:
        say("No rules yet: no memory names a command, a path or words to hold calls for.")
        say('One is made by `reverie memory add "Never git push --force." --type feedback`.')
        return
    columns = [Column("file"), Column("level"), Column("speaks of", wraps=True)]
    table([*columns, Column("did", wraps=True)], [_cells(row) for row in rows])
    for row in rows:
        for one in row.notes:
            note(line(reveal(f"{row.rule.get('file', '')}: {one}"), 300))


def _cells(row: RuleRow) -> list[str]:
    rule = row.rule
    counts = {} if row.counts is None else dict(row.counts.total)
    counts.pop("said", None)  # the head has every day on which it was said
    did = [f"{event} {count}" for event, count in counts.items()]
    said = [f"said {rule.get('said', 1)} times"] if rule.get("said", 1) > 1 else []
    texts = (rule.get("file", ""), rule.get("level", ""), _about(row), ", ".join([*said, *did]))
    return [line(reveal(text), 160) for text in texts]


def _about(row: RuleRow) -> str:
    """What a rule speaks of, in one line."""
    told = "; ".join(f"{key} {', '.join(texts)}" for key, texts in applies(row.rule).items())
    return line(reveal(told), 160)


@rules.command("test")
@click.option("--tool", required=True, metavar="NAME", help="The tool of the call, such as Bash.")
@click.option("--input", "given", required=True, metavar="JSON", help="The input of the call.")
@json_option
@project_option
def test_call(tool: str, given: str, as_json: bool, project: Project) -> None:
    """Tell which rules a call would break; the call is not made."""
    try:
        value = json.loads(given)
    except ValueError as error:
        do = """Give an object, such as '{"command": "git push"}'"""
        raise InvalidInput(f"--input is no JSON: {error}", where=given[:80], do=do) from error
    with find_memory(project) as memories:
        known = None if memories is None else ProjectRules(memories, project.root, project.cwd)
        found = [] if known is None else known.look(tool, value)
    if as_json:
        rows = [
            {**{k: rule.get(k, "") for k in ("name", "level", "file", "source")}} for rule in found
        ]
        document({"matched": rows})
        return
    for rule in found:
        text = line(reveal(rule.get("text", "")), 200)
        say(f"{rule.get('level', '')}  {rule.get('file', '')}: {text}")
    if not found:
        say("No rule speaks against this call.")


@rules.command("level")
@click.argument("name", metavar="NAME", help="A memory's file or name.")
@click.argument("level", type=click.Choice(LEVELS), help="What the rule may do.")
@json_option
@project_option
def level(name: str, level: str, as_json: bool, project: Project) -> None:
    """Say what a rule may do: off, remind, ask or block."""
    with open_memory(project) as memories:
        key = set_level(memories, name, level, by_user("edit", "the level of a rule"))
        rows = list_rules(memories, project.root)
    applied = next((row for row in rows if row.rule.get("file") == key), None)
    if as_json:
        document({"file": key, "level": level, "is_rule": applied is not None})
        return
    say(f"{key}: {level}")
    if applied is None and level != "off":
        note("It names no call so far: add `applies_to` to its head, as docs/rules.md shows")
    elif applied is not None:
        say(f"It speaks of: {_about(applied)}")
