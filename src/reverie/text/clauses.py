"""A message cut into clauses, and a clause into words.

Quoted text (in any of the usual quotes or in backticks) is one word and is never cut. All
scans are linear, over a bounded beginning of the message. Nothing here knows what a clause
asks for; it is only told which words may begin one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

LOOKED_AT = 8_000  # characters of a message that are read for requests

QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "「": "」", "『": "』"}
CUT = re.compile(
    r"(?P<hard>[;；。！？\n]|[!?](?=\s|$)|(?<=[^\s.])\.(?=\s|$))"
    r"|[,，、]|(?<=\s)(?:and|then)(?=\s)|然后|并且|接着|再",
    re.IGNORECASE,
)
EDGE = " \t\r\n,，、:：.。!！?？;；"
FILLERS = frozenset(
    (
        *("please", "can", "could", "would", "will", "you", "kindly", "now", "then", "and", "also"),
        *("first", "next", "finally", "ok", "okay", "hi", "hello", "hey", "let's", "lets", "let"),
        *("us", "just", "i", "want", "need", "to", "me", "like", "i'd"),
    )
)
FILLERS_ZH = (
    *("请", "麻烦", "帮我", "帮忙", "给我", "你", "您", "能不能", "能", "可以", "先", "再", "然后"),
    *("接着", "并且", "现在", "我想", "我要"),
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a clause; what stood in quotes is given without them."""

    text: str
    quoted: bool = False

    @property
    def low(self) -> str:
        """As a keyword: what was quoted is never one."""
        return "" if self.quoted else self.text.lower().strip(EDGE)

    @property
    def bare(self) -> str:
        """Without the punctuation of the sentence around it."""
        if self.quoted:
            return self.text
        text = self.text.strip("\t\r\n ,，、:：!！?？;；。")
        return text.rstrip(".") or text


def spans(text: str) -> list[tuple[int, int]]:
    """Where quoted text stands, quotes included."""
    found: list[tuple[int, int]] = []
    hopeless: set[str] = set()
    at = 0
    while at < len(text):
        mark = text[at]
        close = QUOTES.get(mark)
        opens = close is not None and mark not in hopeless
        if opens and mark in "'\"" and at and text[at - 1].isalnum():
            opens = text[at - 1] > "\u2e80"  # an apostrophe, but for scripts without spaces
        if not opens or close is None:
            at += 1
            continue
        end = text.find(close, at + 1)
        if end < 0:
            hopeless.add(mark)
            at += 1
        else:
            found.append((at, end + 1))
            at = end + 1
    return found


def words(clause: str) -> list[Word]:
    """The words of a clause."""
    out: list[Word] = []
    at = 0
    for start, end in [*spans(clause), (len(clause), len(clause))]:
        out += [Word(one) for one in clause[at:start].split()]
        if end > start:
            out.append(Word(clause[start + 1 : end - 1], quoted=True))
        at = end
    return out


def bared(clause: str) -> str:
    """A clause without the polite words before it."""
    clause = clause.lstrip(EDGE).rstrip()
    while clause:
        first = clause.split(maxsplit=1)[0]
        chinese = next((f for f in FILLERS_ZH if clause.startswith(f)), "")
        if first.lower().strip(EDGE) in FILLERS:
            clause = clause[len(first) :].lstrip(EDGE)
        elif chinese:
            clause = clause[len(chinese) :].lstrip(EDGE)
        else:
            break
    return clause


def clauses(
    text: str, begins: Callable[[str], bool], greedy: Callable[[str], bool]
) -> Iterator[str]:
    """The clauses of a message. A comma or an "and" parts two only where a request
    begins behind it; a greedy clause (a command line) runs to the end of its line."""
    text = text[:LOOKED_AT]
    quoted = iter([*spans(text), (len(text), len(text))])
    low, high = next(quoted)
    start = 0
    for cut in CUT.finditer(text):
        while high <= cut.start() and low < len(text):
            low, high = next(quoted)
        if low <= cut.start() < high or cut.start() < start:
            continue
        if cut.group() != "\n" and greedy(text[start : min(cut.start(), start + 400)]):
            continue
        if not cut["hard"] and not begins(bared(text[cut.end() : cut.end() + 200])):
            continue
        yield text[start : cut.start()]
        start = cut.end()
    yield text[start:]
