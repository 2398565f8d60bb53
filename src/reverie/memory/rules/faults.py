"""What is wrong with rules: heads that cannot be used, and rules that exclude each other."""

from __future__ import annotations

from collections.abc import Sequence

from reverie.memory.format.frontmatter import Frontmatter
from reverie.memory.rules import reading
from reverie.memory.rules.match import LEVELS, CompiledRule, is_command

MAX_COMPARED = 200
"""Rules of one program that are held against each other."""


def faults_in(front: Frontmatter, type: str) -> list[str]:  # noqa: A002
    """What is wrong with what a head says of calls."""
    head = reading.read(front)
    found = list(head.faults)
    if head.given and not head.never and type not in reading.RULED:
        found.append(f"only {' and '.join(reading.RULED)} memories are rules")
    level = front.get(reading.LEVEL).strip().lower()
    if level and level not in LEVELS:
        found.append(f"`level: {level[:40]}` is none of {', '.join(LEVELS)}")
    return found


def contradictions(rules: Sequence[CompiledRule]) -> dict[str, list[str]]:
    """Rules that exclude each other: one forbids what another demands of the same command."""
    found: dict[str, list[str]] = {}
    ruled = [rule for rule in rules if rule.get("commands")]
    by_program: dict[str, list[CompiledRule]] = {}
    for rule in ruled:
        for command in rule.get("commands", ()):
            by_program.setdefault(command[0], []).append(rule)
    for same in by_program.values():
        for one in same[:MAX_COMPARED]:
            for other in same[:MAX_COMPARED]:
                if one is not other and _excludes(one, other):
                    found.setdefault(one.get("file", ""), []).append(other.get("file", ""))
                    found.setdefault(other.get("file", ""), []).append(one.get("file", ""))
    return {file: sorted(set(others)) for file, others in found.items()}


def _excludes(one: CompiledRule, other: CompiledRule) -> bool:
    """Whether one rule forbids the option that another needs, of one command."""
    alike = any(
        is_command(mine, theirs) or is_command(theirs, mine)
        for mine in one.get("commands", ())
        for theirs in other.get("commands", ())
    )
    needed = [choice for choices in other.get("lacks", ()) for choice in choices]
    return alike and any(choice in needed for choices in one.get("has", ()) for choice in choices)
