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
_OPENS = re.compile(r"[\s\"'`<>()\[\]{},;]")
_ENDS = re.compile(r"[\s\"'`<>|]")
_ESCAPED = re.compile(r"\\[nrt\"]")
_TRAILING = ".,;:)]}*_\\"
_QUOTES = "\"'`"
QUOTED = 200  # characters between two quotes
# Rules that find the first line of a block, and the lines that go on with it.
_BLOCKS = ("private-key", "putty-key")
_KEY_LINE = re.compile(r"[ \t>|#*]*(?:[A-Za-z0-9+/=_\\-]+|[A-Z][\w-]{2,20}: ?[^\s:]+)[ \t]*")
_LAST_LINE = re.compile(r"[ \t>|#*]*-{4,5} ?END\b.*")


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
    found = sorted((*_whole(text, rule, *secret), rule) for rule, secret in shown)
    parts: list[str] = []
    done = 0
    for start, end, rule in found:
        if start >= done:
            parts += (text[done:start], mark(rule))
        done = max(done, end)
    return "".join((*parts, text[done:]))


def _whole(text: str, rule: str, start: int, end: int) -> tuple[int, int]:
    """The secret with what hangs on behind it; of an address that holds one the whole address, but
    for a login, which is told from its host; of a key every line."""
    low = max(0, start - LONGEST)
    first = max((found.end() for found in _OPENS.finditer(text, low, start)), default=low)
    if rule in _BLOCKS:
        return start, _end_of_key(text, _end_of_word(text, end))
    last = max(end, _end_of_quote(text, start, end), _bare_end(text, end))
    scheme, _, rest = text[first:last].partition("://")
    if rest and scheme.isalnum() and "@" not in rest.partition("/")[0]:
        return first, last
    return start, last


def _end_of_word(text: str, end: int) -> int:
    behind = _ENDS.search(text, end)
    return behind.start() if behind else len(text)


def _bare_end(text: str, end: int) -> int:
    """Where the word ends, without what follows an escape, and without stops and brackets."""
    word = text[end : _end_of_word(text, end)]
    escape = _ESCAPED.search(word)
    return end + len(word[: escape.start() if escape else None].rstrip(_TRAILING))


def _end_of_quote(text: str, start: int, end: int) -> int:
    """Where the quote ends in which it stands, if it does so in the same line."""
    if not start or text[start - 1] not in _QUOTES:
        return end
    line = text[end : end + QUOTED].partition("\n")[0]
    return end + max(0, line.find(text[start - 1]))


def _end_of_key(text: str, end: int) -> int:
    """The end of the block's last line, given that of its first."""
    while end < len(text) and text[end] == "\n":
        after = text.find("\n", end + 1)
        stop = after if after >= 0 else len(text)
        line = text[end + 1 : stop]
        if _LAST_LINE.fullmatch(line):
            return stop
        if not _KEY_LINE.fullmatch(line):
            break
        end = stop
    return end


def _without_lines(text: str, hits: tuple[SecretHit, ...]) -> str:
    """Without the lines in which a secret begins, and those after them."""
    rules = {hit.line: hit.rule for hit in hits}
    rows = text.split("\n")
    for line, rule in rules.items():
        rows[line - 1] = mark(rule)
        if line < len(rows) and line + 1 not in rules:
            rows[line] = ""
    return "\n".join(rows)
