"""All rules of a project: read from memory files, looked up by call.

    book = RuleSet.of([("feedback_push.md", data), …])
    for rule in book.look("Bash", {"command": "git push -f"}, cwd=cwd, root=root): …

A loop or a proxy asks `look` which rules a call would break, and `rules_text` for the text that the
model is shown. Pure; nothing here reads a memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from reverie.rules import rule as reading
from reverie.rules.calls import CallContext, parse
from reverie.rules.literals import table
from reverie.rules.match import (
    OFF,
    REMIND,
    TEAMS,
    UNVERIFIED,
    USER,
    CompiledRule,
    FinalCalls,
)
from reverie.rules.prohibition import compile_sentence
from reverie.rules.rule_file import index_of, rules_for_call
from reverie.topics.entry import TEAM, TopicFile

MAX_TEXT = 2_000
_TELLING = ("commands", "has", "lacks", "paths", "words")
CONDITIONS = ("tools", "commands", "has", "lacks", "unless", "paths", "spared", "types", "words")


class RuleSet:
    """Compiled rules and their index."""

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self.rules = tuple(rules)
        self.index = index_of(self.rules)

    @classmethod
    def of(cls, files: Iterable[tuple[str, bytes]], own: Callable[[str], bool] = bool) -> RuleSet:
        """The rules among memory files; `own` says which are the user's."""
        found = (compile_rule(TopicFile(key, data), own=own(key)) for key, data in files)
        return cls([rule for rule in found if rule is not None])

    def __len__(self) -> int:
        return len(self.rules)

    def look(
        self,
        tool: str,
        given: object,
        *,
        cwd: str,
        root: str = "",
        user: str = "",
        resolve: Callable[[str], str] | None = None,
        project_of: Callable[[str], str] | None = None,
    ) -> list[CompiledRule]:
        """The rules that a call would break."""
        if not self.rules:
            return []
        call = parse(tool, given, CallContext(cwd, root, user, resolve, project_of))
        return rules_for_call(call, self.index, self.rules.__getitem__)


@cache
def final_calls() -> FinalCalls:
    """Return the calls that cannot be taken back, from their table."""
    rows = table("irrevocable")
    lines = [one.split() for row in rows for one in row[1].split("|")]
    return {"commands": lines, "tools": [one for row in rows for one in row[2].split("|")]}


def same_calls(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Say whether two rules name the same calls, whatever their words are."""
    return any(one.get(key) for key in _TELLING) and all(
        one.get(key) == other.get(key) for key in _TELLING
    )


def compile_rule(one: TopicFile, *, own: bool, granted: bool | None = None) -> CompiledRule | None:
    """A memory as a rule; None where it says nothing about calls. `own`: it is the user's;
    `granted`: the user let it do what its head asks for."""
    front = one.front
    if one.type not in reading.RULED or one.superseded:
        return None
    head = reading.read(front)
    if head.never:
        return None
    found = head.rule if head.given else compile_sentence(sentence_of(one))
    if not found or (not head.given and reading.faults_of(found)):
        return None
    return {
        **found,
        "file": one.key,
        "name": one.name,
        "text": one.body.strip()[:MAX_TEXT] or one.description,
        "level": level_for(
            reading.level_of(front), granted=own if granted is None else own and granted
        ),
        "source": USER if own else TEAMS if one.key.startswith(f"{TEAM}/") else UNVERIFIED,
        "said": 1 + len(reading.said_on(front)),
        "read": "head" if head.given else "sentence",
    }


def conditions_of(one: TopicFile) -> dict[str, Any]:
    """What calls a memory is about, and nothing else of it; empty where it is no rule."""
    rule = compile_rule(one, own=True) or {}
    return {key: value for key, value in rule.items() if key in CONDITIONS}


def sentence_of(one: TopicFile) -> str:
    """The words of a memory that are its rule: the description, or how its body begins."""
    return one.description or one.body.strip().partition("\n\n")[0]


def level_for(asked: str, *, granted: bool) -> str:
    """What a rule may do: to ask or block it needs the user's word."""
    return asked if granted or asked in (OFF, REMIND) else REMIND
