"""`reverie memory rules`: memories that are rules about calls, what they may do, what they did."""

from __future__ import annotations

import json

import click

from reverie.apps.cli.memory_open import by_user, find_memory, open_memory
from reverie.apps.cli.options import json_option, project_option
from reverie.apps.cli.show import Column, document, line, note, say, table
from reverie.errors import InvalidInput
from reverie.memory.rules.match import LEVELS
from reverie.session.rules import ProjectRules
from reverie.store.project import Project
from reverie.store.rule_rows import RuleRow, applies, list_rules
from reverie.text.untrusted import reveal
from reverie.upkeep.check import set_level


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
