"""A text without its secrets, for what must go on though it holds one: a summary, a report.

What stands there in plain sight is replaced by a mark that names the rule; where that leaves
something, because it was disguised or on two lines, whole lines go. What comes back was
searched and is clean, and a clean text comes back as it was. It raises `ScanFailed` where it
cannot tell.
"""

from __future__ import annotations

import re

from reverie.memory.secrets.scanner import ScanWork, SecretHit, scan, spans
from reverie.memory.secrets.views import TextView

TRIES = 8
LONGEST = 2_000  # characters of an address before the secret in it
_ENDS = re.compile(r"[\s\"'`<>()\[\]{},;]")


def removed(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with a mark in place of each secret, and the rules that found one."""
    hits = scan(text)
    if not hits:
        return text, ()
    rules = tuple(dict.fromkeys(hit.rule for hit in hits))
    text = _without_spans(text.replace("\r\n", "\n").replace("\r", "\n"))
    for _ in range(TRIES):
        hits = scan(text)
        if not hits:
            return text, rules
        text = _without_lines(text, hits)
    return mark(rules[0]), rules


def mark(rule: str) -> str:
    return f"[secret removed: {rule}]"


def _without_spans(text: str) -> str:
    shown = spans(TextView(text), ScanWork())
    found = sorted((*_whole(text, *secret), rule) for rule, secret in shown)
    parts: list[str] = []
    done = 0
    for start, end, rule in found:
        if start >= done:
            parts += (text[done:start], mark(rule))
        done = max(done, end)
    return "".join((*parts, text[done:]))


def _whole(text: str, start: int, end: int) -> tuple[int, int]:
    """The secret with what hangs on behind it; of an address that holds one the whole address, but
    for a login, which is told from its host."""
    low = max(0, start - LONGEST)
    first = max((found.end() for found in _ENDS.finditer(text, low, start)), default=low)
    behind = _ENDS.search(text, end)
    last = behind.start() if behind else len(text)
    scheme, _, rest = text[first:last].partition("://")
    if rest and scheme.isalnum() and "@" not in rest.partition("/")[0]:
        return first, last
    return start, last


def _without_lines(text: str, hits: tuple[SecretHit, ...]) -> str:
    """Without the lines in which a secret begins, and those after them."""
    rules = {hit.line: hit.rule for hit in hits}
    rows = text.split("\n")
    for line, rule in rules.items():
        rows[line - 1] = mark(rule)
        if line < len(rows) and line + 1 not in rules:
            rows[line] = ""
    return "\n".join(rows)
