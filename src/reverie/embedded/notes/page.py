"""A page of notes: what each section is for, and how lines are made to fit.

Headings are known by their words, in any case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.transcript.blocks import estimate
from reverie.transcript.sections import Section

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
