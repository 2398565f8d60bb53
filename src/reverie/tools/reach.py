"""What an allow rule covers, in words for the person who is about to keep it.

It says of a beginning that anything may follow, and, of programs whose options run other programs
or write files, which those are. The list names what is common and is no promise that a program
missing from it does neither.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from reverie.tools import command
from reverie.tools.permissions import OPEN_ENDS, PermissionRule

BEYOND: Mapping[str, str] = {
    "awk": "its scripts run programs and write files",
    "bash": "it runs any program",
    "cargo": "it runs the project's own code",
    "curl": "`-o` writes files, `-d` sends them",
    "env": "it runs any program",
    "find": "`-exec` runs programs, `-delete` deletes",
    "git": "`-c` and `--output` run programs and write files",
    "make": "it runs the project's own code",
    "node": "it runs any code",
    "npm": "it runs the project's own code",
    "perl": "it runs any code",
    "python": "it runs any code",
    "python3": "it runs any code",
    "rsync": "`-e` runs programs",
    "ruby": "it runs any code",
    "sed": "`-i` writes files, and its scripts run programs",
    "sh": "it runs any program",
    "sort": "`-o` writes files",
    "ssh": "it runs any program, elsewhere too",
    "sudo": "it runs any program, as another user",
    "tar": "`--to-command` runs programs",
    "wget": "`-O` writes files",
    "xargs": "it runs any program",
}


def reach(rule: PermissionRule, *, runs: bool) -> str:
    """What the rule covers; `runs` says that its pattern is of a command line."""
    if not rule.pattern:
        return f"every call of {rule.tool}"
    if not runs:
        return f"{rule.tool} of {rule.pattern}, and of nothing else"
    if not rule.pattern.endswith(OPEN_ENDS):
        return "this command alone, word for word"
    start = rule.pattern[:-2].strip()
    told = f"every command that begins with `{start}`, whatever follows"
    words = command.plain_words(start) or ("",)
    beyond = BEYOND.get(os.path.basename(words[0]))
    return f"{told}: {beyond}" if beyond else told
