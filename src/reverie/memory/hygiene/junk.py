"""Memories that should never have been saved (SPEC §7), told from their text.

Empty ones, templates nobody filled in, the state of a task that has passed since, recipes for one
error, and copies of what the code or git already says: listings, logs, code with nothing said
about it. In doubt a memory is none of these: whoever looks at the list must be able to trust it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reverie.memory.hygiene.reading import Memory, statements

_BLANK = re.compile(
    r"\W*(?:tbd|todo|to be (?:done|written|filled in)|fill (?:this )?in|placeholder|lorem ipsum|"
    r"n/?a|none|coming soon|work in progress|wip|empty|test|asdf|待补充|待定|占位)\b.{0,40}",
    re.IGNORECASE | re.DOTALL,
)
_STATE = re.compile(
    r"\b(?:(?:i'?m|i am|we'?re|we are|currently|right now|at the moment)[ ,]+"
    r"(?:now |currently |just )?(?:working on|debugging|fixing|implementing|refactoring|"
    r"looking (?:at|into)|about to|going to|in the middle of|waiting (?:for|on)|testing|running)"
    r"|next steps?\s*(?:is|are|:)|still (?:need|have|left) to|left off|picking up where|wip\b"
    r"|in progress[:.]|(?:tests?|build|ci) (?:is|are) (?:currently |still |now )*"
    r"(?:failing|passing|red|green)"
    r"|\d+ of \d+ (?:tests?|steps?|tasks?|files?) (?:done|pass\w*|complete\w*|left|remaining))"
    r"|正在(?:处理|调试|修复|实现|重构)|下一步(?:是|：|:)|还(?:需要|没)",
    re.IGNORECASE,
)
_TASK = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\]", re.MULTILINE)
_TRACE = re.compile(
    r"^(?:Traceback \(most recent call last\)|\s+File \"[^\"]+\", line \d+|"
    r"\s+at [\w.$<>]+ ?\(.+:\d+|"
    r"\w*(?:Error|Exception)\b: |thread '.*' panicked at|\s+\d+: 0x[0-9a-f]+)",
    re.MULTILINE,
)
_RECIPE = re.compile(
    r"\b(?:to (?:fix|resolve|get rid of|work around) (?:this|the|that)\b.{0,60}"
    r"\b(?:error|failure|exception|crash|problem)|(?:error|failure|exception|crash) "
    r"(?:went away|is gone|disappeared|was fixed)"
    r"|(?:fixed|solved|resolved) (?:it )?by "
    r"(?:re-?running|re-?starting|clearing|deleting|re-?installing))\b",
    re.IGNORECASE | re.DOTALL,
)
_COMMIT = re.compile(r"^[ \t*|/\\-]*`?[0-9a-f]{7,40}`? \S", re.MULTILINE)
_TREE = re.compile(r"^[ \t]*(?:[│├└]|[|`+\\]--)[│├└─ \t|`+\\-]*\S", re.MULTILINE)
_PATH = re.compile(r"[ \t>*+-]*`?[\w.@-]*(?:/[\w.@-]+)+/?`?[ \t]*(?:[(#:—-].{0,60})?")
_MOSTLY = 0.7  # share of the lines that make a memory a copy of a listing
_FEW = 4  # statements up to which one of them can make a memory junk


@dataclass(frozen=True, slots=True)
class Junk:
    """Why a memory is junk, and the line that shows it."""

    rule: str
    line: int
    words: str


def junk(memory: Memory) -> Junk | None:
    """Why a memory should not have been saved, or None."""
    body = memory.body
    bare = re.sub(r"(?m)^[ ]{0,3}#.*$", "", body).strip()
    first = next((one for one in memory.passages if one.kind != "value"), None)
    line = first.line if first else 1
    if not re.search(r"\w", bare):
        return Junk("empty", line, "there is nothing in it")
    if _BLANK.fullmatch(bare) and len(bare) < 120:
        return Junk("boilerplate", line, bare)
    return _state(memory, body) or _recipe(memory, body) or _derivable(memory, body, memory.type)


def passing(text: str) -> bool:
    """Whether a sentence tells how far some work is."""
    return _STATE.search(text) is not None


def _state(memory: Memory, body: str) -> Junk | None:
    said = [one for one in statements(memory) if one.passage.kind != "value"]
    hits = [one for one in said if passing(one.passage.text)]
    tasks = len(_TASK.findall(body))
    if hits and (len(said) <= _FEW or 2 * len(hits) >= len(said)):
        return Junk("task state", hits[0].passage.line, hits[0].passage.text)
    if tasks >= 3 and len(said) <= tasks + 1:
        return Junk("task state", said[0].passage.line if said else 1, f"a list of {tasks} tasks")
    return None


def _recipe(memory: Memory, body: str) -> Junk | None:
    said = [one for one in statements(memory) if one.passage.kind != "value"]
    rows = [row for row in body.splitlines() if row.strip()]
    traces = len(_TRACE.findall(body))
    if traces >= 2 and 2 * traces >= len(rows) - len(said):
        found = _TRACE.search(memory.text)
        line = memory.text.count("\n", 0, found.start()) + 1 if found else 1
        return Junk("debugging recipe", line, "an error's own output")
    hits = [one for one in said if _RECIPE.search(one.passage.text)]
    if hits and len(said) <= _FEW:
        return Junk("debugging recipe", hits[0].passage.line, hits[0].passage.text)
    return None


def _derivable(memory: Memory, body: str, kind: str) -> Junk | None:
    if kind in ("user", "feedback"):
        return None
    rows = [row for row in body.splitlines() if row.strip() and not row.lstrip().startswith("#")]
    rows = [row for row in rows if not row.lstrip().startswith("```")]
    if len(rows) < 3:
        return None
    start = next((one.line for one in memory.passages if one.kind not in ("value", "heading")), 1)
    for rule, pattern in (("git log", _COMMIT), ("file tree", _TREE)):
        if len(pattern.findall("\n".join(rows))) >= _MOSTLY * len(rows):
            return Junk("code-derivable", start, f"a copy of a {rule}")
    if sum(_PATH.fullmatch(row) is not None for row in rows) >= _MOSTLY * len(rows):
        return Junk("code-derivable", start, "a list of paths")
    code = [one for one in memory.passages if one.kind == "code"]
    said = [one for one in statements(memory) if one.passage.kind != "value"]
    told = said or any(one.kind == "row" for one in memory.passages)
    if len(code) >= 5 and not told:
        return Junk("code-derivable", code[0].line, "code with nothing said about it")
    return None
