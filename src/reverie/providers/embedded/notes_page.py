"""A page of notes: its sections, what each is for, and how lines are made to fit.

A section is a `# ` heading, the italic line below it, and what follows; joined again, the
sections are the page to the byte. What stands before the first heading is a section without
one. Headings are known by their words, in any case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from reverie.transcript.blocks import estimate

_ITALIC = re.compile(r"[ \t]*([_*])(?![_*\s]).*\1[ \t\r]*")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
# The first that fits a heading decides; then the first that fits the line below it.
_WORDS = {
    "title": r"\b(?:title|name)\b|标题",
    "state": r"\b(?:state|status|current|now|next|pending|todo)\b|状态|当前|下一步",
    "errors": r"\b(?:errors?|corrections?|failures?|problems?|bugs?)\b|错误|纠正",
    "results": r"\b(?:results?|outputs?|answers?)\b|结果|输出",
    "worklog": r"\b(?:worklog|log|journal|history|steps?)\b|日志|记录",
    "files": r"\b(?:files?|functions?)\b|文件|函数",
    "workflow": r"\b(?:workflows?|commands?)\b|流程|命令",
    "task": r"\b(?:task|specification|spec|goals?|requests?|asked|wants?)\b|任务|目标|需求",
    "system": r"\b(?:codebase|system|documentation|architecture|parts)\b|系统|架构|代码",
    "learnings": r"\b(?:learnings?|learned|lessons?|rules|avoid)\b|经验|教训|规则",
}
PURPOSES = tuple((name, re.compile(words, re.IGNORECASE)) for name, words in _WORDS.items())
EXACT = ("state", "errors")  # purposes whose lines are not shortened for others


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page."""

    heading: str
    description: str
    body: str

    @property
    def text(self) -> str:
        return self.heading + self.description + self.body

    @property
    def lines(self) -> list[str]:
        return self.body.strip("\n").split("\n") if self.body.strip() else []

    def spaced(self, text: str) -> str:
        """New words for the body, with the space behind it that is there now."""
        above = self.heading + self.description
        before = "" if not above or above.endswith("\n") else "\n"
        if not self.body.strip():
            return f"{before}{text}\n{self.body}"
        return before + text + self.body[len(self.body.rstrip()) :]


def page(text: str) -> list[Section]:
    """The sections of a page, in order."""
    lines = _LINE.findall(text)
    starts = _starts(lines)
    before = "".join(lines[: starts[0] if starts else len(lines)])
    out = [Section("", "", before)] if before else []
    for start, end in pairwise([*starts, len(lines)]):
        heading, *below = lines[start:end]
        italic = bool(below) and bool(_ITALIC.fullmatch(below[0].rstrip("\n")))
        about = below.pop(0) if italic else ""
        out.append(Section(heading, about, "".join(below)))
    return out


def _starts(lines: Sequence[str]) -> list[int]:
    out: list[int] = []
    fenced = False
    for at, line in enumerate(lines):
        below = lines[at + 1].rstrip("\n") if at + 1 < len(lines) else ""
        if line.startswith("# ") and (not fenced or _ITALIC.fullmatch(below)):
            out.append(at)
            fenced = False
        elif _FENCE.match(line):
            fenced = not fenced
    return out


def purpose(section: Section) -> str:
    """What a section is for; empty where its words do not say."""
    if not section.heading:
        return ""
    for text in (section.heading, section.description):
        for name, words in PURPOSES:
            if words.search(text):
                return name
    return ""


def fitted(lines: Sequence[str], tokens: int, role: str) -> list[str]:
    """The lines within a budget: the oldest, which stand first, go first. What is in hand is
    written from the most important on, so there the last go."""
    out = list(lines)
    while len(out) > 1 and estimate("\n".join(out)) > tokens:
        del out[-1 if role in ("state", "results", "title") else 0]
    return out
