"""Rules in settings files: read from all of them, kept in the local one.

    {"permissions": {"allow": ["Bash(npm test)", "Edit(src/**)"], "deny": ["Read(.env)"]}}

A file that the repository may have brought may only deny. A rule that cannot be read is
said and left out; a file that cannot be read as JSON is never written over, and one that the
user has not approved is not added to: that would approve all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from anyio import to_thread

from reverie.errors import StoreError
from reverie.settings.sources import SettingsFile, settings_files
from reverie.settings.values import parse_object
from reverie.store import local_settings
from reverie.store.local_settings import LOCAL
from reverie.store.project import Project
from reverie.tools.permissions import PermissionRule, Verdict

KEY = "permissions"
_VERDICTS: tuple[Verdict, ...] = ("deny", "ask", "allow")
_RULE = re.compile(r"([\w*.-]{1,128})(?:\((.{0,4000})\))?", re.DOTALL)


def parse_rule(text: str, verdict: Verdict) -> PermissionRule | None:
    """`Tool` or `Tool(pattern)`; None where it is neither."""
    found = _RULE.fullmatch(text.strip())
    return None if found is None else PermissionRule(found[1], found[2] or "", verdict)


def load_rules(project: Project) -> tuple[list[PermissionRule], list[str]]:
    """All rules that hold for a project, and what was wrong on the way."""
    rules: list[PermissionRule] = []
    problems: list[str] = []
    for file in settings_files(home=project.home, root=project.root):
        problems += [str(p) for p in file.problems if p.level == "error"]
        for rule in rules_in(file, problems):
            if rule.verdict == "deny" or file.origin.trusted:
                rules.append(rule)
            else:
                problems.append(f"{file.path}: {rule} is ignored: a repository may only deny")
    return rules, problems


def rules_in(file: SettingsFile, problems: list[str]) -> Iterator[PermissionRule]:
    """The rules that a file gives, whoever wrote it; what is wrong joins the problems."""
    given = file.value.get(KEY)
    if given is None:
        return
    if not isinstance(given, Mapping):
        problems.append(f"{file.path}: {KEY} is not an object")
        return
    lists = cast("Mapping[str, object]", given)
    for verdict in _VERDICTS:
        texts = lists.get(verdict, [])
        if not isinstance(texts, list):
            problems.append(f"{file.path}: {KEY}.{verdict} is not a list")
            continue
        for text in cast("list[object]", texts):
            rule = parse_rule(text, verdict) if isinstance(text, str) else None
            if rule is None:
                problems.append(f"{file.path}: {KEY}.{verdict} has a rule that cannot be read")
            else:
                yield rule


def with_rule(text: str, rule: PermissionRule, place: str = LOCAL) -> str:
    """The settings text with a rule more; everything else in it stays."""
    value, bad = parse_object(text or "{}", place)
    if bad:
        raise StoreError(f"the rule was not kept: {bad[0]}", where=place, do="Mend the file first")
    found = value.get(KEY)
    lists = dict(cast("Mapping[str, object]", found)) if isinstance(found, Mapping) else {}
    held = lists.get(rule.verdict)
    kept = list(cast("Sequence[object]", held)) if isinstance(held, list) else []
    if str(rule) not in kept:
        kept.append(str(rule))
    lists[rule.verdict] = kept
    return json.dumps({**value, KEY: lists}, indent=2, ensure_ascii=False) + "\n"


async def keep(project: Project, rule: PermissionRule) -> None:
    """Put a rule into the project's local settings, which are not committed, at the user's
    word; they are trusted from then on as they were before."""
    await to_thread.run_sync(_keep, project, rule)


def _keep(project: Project, rule: PermissionRule) -> None:
    refusal = "the rule holds for this session and was not kept"
    local_settings.change(project, lambda text: with_rule(text, rule), refusal)
