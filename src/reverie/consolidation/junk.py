"""What should never have been saved as a memory (SPEC §7).

Empty memories, templates nobody filled in, the state of a task, recipes for one error, words
against a person, and copies of what the code or git tells: listings, logs, code with nothing said
about it. In doubt a memory is none of these: whoever reads the list must be able to trust it.
Nothing is removed for it by rules; a model that removes such a memory is checked by it.
"""

from __future__ import annotations

import re

from reverie.consolidation.folder import ParsedTopic, Statement, statements
from reverie.light import dataclass

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
    r"(?:failing|passing|red|green)|half(?:way)? (?:done|finished)"
    r"|\d+ of \d+ (?:tests?|steps?|tasks?|files?) (?:done|pass\w*|complete\w*|left|remaining))"
    r"|正在(?:处理|调试|修复|实现|重构)|下一步(?:是|：|:)|还(?:需要|没)",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"(?:i |we )?(?:just |now |also |then )?(?:fixed|implemented|added|refactored|merged|pushed|"
    r"committed|renamed|updated|removed|ran|re-?ran|wrote|finished|started|bumped|debugged|moved)\b"
    r".*(?:\b(?:tests?|imports?|build|lint\w*|functions?|modules?|files?|bugs?|errors?|commits?|"
    r"branch|class|methods?|endpoints?|fixtures?|ci|code|handlers?|docs?)\b|`)",
    re.IGNORECASE | re.DOTALL,
)
_TASK = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\]", re.MULTILINE)
_TRACE = re.compile(
    r"^(?:Traceback \(most recent call last\)|[ \t]+File \"[^\"\n]+\", line \d+|"
    r"[ \t]+at [\w.$<>]+ ?\(.+:\d+|"
    r"\w*(?:Error|Exception)\b: |thread '.*' panicked at|[ \t]+\d+: 0x[0-9a-f]+)",
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
_BLAME = re.compile(
    r"\b(?:is|seems|was) (?:\w+ )?(?:lazy|incompetent|stupid|annoying|arrogant|useless|clueless|"
    r"unreliable|a bad \w+)\b",
    re.IGNORECASE,
)
_COMMIT = re.compile(r"^[ \t*|/\\-]*`?[0-9a-f]{7,40}`? \S", re.MULTILINE)
_TREE = re.compile(r"^[ \t]*(?:[│├└]|[|`+\\]--)[│├└─ \t|`+\\-]*\S", re.MULTILINE)
_PATH = re.compile(
    r"^[ \t>*+-]*`?[\w.@-]*(?:/[\w.@-]+)+/?`?[ \t]*(?:[(#:—-].{0,60})?$", re.MULTILINE
)
_HEADING = re.compile(r"(?m)^[ ]{0,3}#.*$")
_MOSTLY = 0.7
"""Share of the lines that make a memory a copy of a listing; of 642 documents it names none."""
_FEW = 4
"""Statements up to which one of them can make a memory junk: 24 of 24 planted, 0 of 642 false."""


@dataclass(frozen=True, slots=True)
class Junk:
    """Why a memory is junk, and the line that shows it."""

    rule: str
    line: int
    words: str


def junk(memory: ParsedTopic) -> Junk | None:
    """Return why a memory should not have been saved, or None."""
    bare = _HEADING.sub("", memory.body).strip()
    line = next((one.line for one in memory.passages if one.kind != "value"), 1)
    if not re.search(r"\w", bare):
        return Junk("empty", line, "there is nothing in it")
    if _BLANK.fullmatch(bare) and len(bare) < 120:
        return Junk("boilerplate", line, bare)
    said = [one for one in statements(memory) if one.passage.kind != "value"]
    return _passing(memory, said) or _recipe(memory, said) or _derivable(memory, said)


def is_passing(text: str) -> bool:
    """Whether a line of a log tells how far some work is, or what was done."""
    return _STATE.search(text) is not None or _DONE.match(text) is not None


def _passing(memory: ParsedTopic, said: list[Statement]) -> Junk | None:
    for rule, pattern in (("task state", _STATE), ("about a person", _BLAME)):
        hits = [one.passage for one in said if pattern.search(one.passage.text)]
        if hits and (len(said) <= _FEW or 2 * len(hits) >= len(said)):
            return Junk(rule, hits[0].line, hits[0].text)
    tasks = len(_TASK.findall(memory.body))
    if tasks >= 3 and len(said) <= tasks + 1:
        return Junk("task state", said[0].passage.line if said else 1, f"a list of {tasks} tasks")
    return None


def _recipe(memory: ParsedTopic, said: list[Statement]) -> Junk | None:
    rows = [row for row in memory.body.splitlines() if row.strip()]
    traces = [*_TRACE.finditer(memory.text)]
    if len(traces) >= 2 and 2 * len(traces) >= len(rows) - len(said):
        line = memory.text.count("\n", 0, traces[0].start()) + 1
        return Junk("debugging recipe", line, "an error's own output")
    hits = [one.passage for one in said if _RECIPE.search(one.passage.text)]
    return (
        Junk("debugging recipe", hits[0].line, hits[0].text) if hits and len(said) <= _FEW else None
    )


def _derivable(memory: ParsedTopic, said: list[Statement]) -> Junk | None:
    rows = [row for row in memory.body.splitlines() if row.strip() and row.lstrip()[0] != "#"]
    rows = [row for row in rows if not row.lstrip().startswith("```")]
    if memory.type in ("user", "feedback") or len(rows) < 3:
        return None
    start = next((one.line for one in memory.passages if one.kind not in ("value", "heading")), 1)
    text = "\n".join(rows)
    for rule, pattern in (("git log", _COMMIT), ("file tree", _TREE), ("list of paths", _PATH)):
        if len(pattern.findall(text)) >= _MOSTLY * len(rows):
            return Junk("code-derivable", start, f"a copy of a {rule}")
    code = [one for one in memory.passages if one.kind == "code"]
    told = said or any(one.kind == "row" for one in memory.passages)
    if len(code) >= 5 and not told:
        return Junk("code-derivable", code[0].line, "code with nothing said about it")
    return None
