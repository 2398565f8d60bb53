"""The rules of MemoryCode, and the judge of whether a text tells one as current.

A rule is an object (`function`, `method decorator`) and what is asked of it; a dialogue gives it
as a topic in plain words, and as a pattern where it still holds at the end. The judge reads plain
text, sentence by sentence, and knows nothing of how a memory is made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Rule = tuple[str, str]
"""An object and what is asked of it: a pattern of names, a decorator or module, or ""."""


def rule_of(thing: str, pattern: Any) -> Rule:
    if isinstance(pattern, list):
        return thing, str(pattern[0])
    return thing, "" if pattern is True else str(pattern)


CAMEL = r"^[A-Z][a-z0-9]*((\d|[a-z])[A-Z\d]*[a-z0-9]*)*$"
UPPER = r"\b[A-Z][A-Z0-9_]*\b"
SNAKE = "^[a-z0-9_]*$"
TOPICS: Sequence[tuple[str, str, str]] = (
    (r"always start (?P<o>.+) names with '(?P<p>.+)'", "{o}", "^{p}.*"),
    (r"always end (?P<o>.+) names with '(?P<p>.+)'", "{o}", ".*{p}$"),
    (r"always include a single digit in (?P<o>.+) names", "{o}", r".*\d$"),
    (r"always include the string '(?P<p>.+)' in (?P<o>.+) names", "{o}", ".*{p}.*"),
    (r"always add the '@(?P<p>\w+)' .* to all (?P<o>class|function|method)(?:es|s)",
     "{o} decorator", "{p}"),
    (r"always import the '(?P<p>\w+)' module.*", "import", "{p}"),
    (r"always use docstrings in (?P<o>\w+)s", "{o} docstring", ""),
    (r"always use annotations for (?P<o>\w+)s", "{o} annotation", ""),
    (r"always include (?P<p>assert|try) statements in (?P<o>\w+)s", "{o} {p}", ""),
    (r"always add comments in your code", "comment", ""),
    (r"always use CamelCase for class names", "class", CAMEL),
    (r"always use all UPPERCASE for class names", "class", UPPER),
    (r"always use snake_case for class names", "class", SNAKE),
)  # fmt: skip
CASES = {
    CAMEL: r"camel[ _-]?case",
    UPPER: r"upper[ _-]?case|all caps|capital letters",
    SNAKE: r"snake[ _-]?case",
}
OBJECTS = {
    "function": r"\bfunctions?\b(?!['’]?s?'? (?:arguments?|parameters?))",
    "function argument": r"\b(?:arguments?|parameters?|args?)\b",
    "method": r"\bmethods?\b",
    "attribute": r"\battributes?\b",
    "variable": r"\bvariables?\b",
    "class": r"\bclass(?:es)?\b",
    "import": r"\bimport",
    "comment": r"\bcod(?:e|ing)\b|\badd\b|\bwrit",
}
WORDS = {
    "docstring": r"\bdoc[- ]?strings?\b",
    "annotation": r"\bannotat|\btype hints?\b",
    "assert": r"\bassert",
    "try": r"\btry['’`\"]?(?:[-/ ](?:except|catch|statements?|blocks?|clauses?)|, )|'try'|`try`",
    "comment": r"\bcomment(?:s|ed|ing)?\b",
}


def told(topic: str) -> Rule | None:
    """The rule that a topic's text gives."""
    for pattern, thing, what in TOPICS:
        if found := re.fullmatch(pattern, topic):
            known = found.groupdict()
            return thing.replace("{o}", known.get("o", "")).replace("{p}", known.get("p", "")), (
                what.replace("{p}", known.get("p", ""))
            )
    return None


def signs(rule: Rule) -> tuple[str, str]:
    """Patterns for a rule's object, and for its literal part."""
    thing, pattern = rule
    base, _, rest = thing.rpartition(" ")
    if rest in WORDS:
        return OBJECTS[base or rest], WORDS[rest]
    if rest == "decorator":
        return OBJECTS[base], rf"(?<!\w)@?{re.escape(pattern)}(?!\w)"
    if thing == "import":
        return OBJECTS[thing], rf"(?<!\w){re.escape(pattern)}(?!\w)"
    if pattern in CASES:
        return OBJECTS[thing], CASES[pattern]
    if pattern == r".*\d$":
        return OBJECTS[thing], r"\bdigits?\b|\bnumbers?\b|\bnumerals?\b"
    literal = pattern.removeprefix("^").removeprefix(".*").removesuffix("$").removesuffix(".*")
    return OBJECTS[thing], rf"(?<![A-Za-z0-9_]){re.escape(literal)}(?![A-Za-z0-9_])"


# The judge

OLD = re.compile(
    r"\b(?:instead of|rather than|no longer|formerly|previously|until now|used to|not any ?more"
    r"|replac(?:es|ed|ing)(?! by)|supersed(?:es|ing)|in place of|and not|, not)\b",
    re.IGNORECASE,
)
GONE = re.compile(
    r"\b(?:is|are|was|were) (?:no longer|superseded|outdated|dropped|replaced)\b", re.IGNORECASE
)
BY = re.compile(r"\b(?:replaced|superseded) (?:by|with)\b", re.IGNORECASE)
DEAD = re.compile(r"(?im)^(?:status|superseded[\w ]*|replaced[\w ]*):\s*\S+")
END = re.compile(r"(?<=[.!?;])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Page:
    """A memory file: its head, and sentences that it tells as current."""

    key: str
    head: str
    current: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, key: str, text: str) -> Page:
        _, head, body = text.split("---\n", 2) if text.startswith("---\n") else ("", "", text)
        if DEAD.search(head):
            return cls(key, "", (), text)
        parts = [now(part) for part in END.split(f"{head}\n{body}")]
        about = " ".join(re.findall(r"(?m)^(?:name|description):(.*)$", head))
        return cls(key, about, tuple(filter(None, parts)), text)

    def states(self, rule: Rule) -> bool:
        thing, literal = signs(rule)
        return any(
            re.search(literal, part, re.IGNORECASE)
            and (
                re.search(thing, part, re.IGNORECASE) or re.search(thing, self.head, re.IGNORECASE)
            )
            for part in self.current
        )


def now(sentence: str) -> str:
    """What a sentence tells as current."""
    if by := BY.search(sentence):
        return sentence[by.end() :]
    if GONE.search(sentence):
        return ""
    old = OLD.search(sentence)
    return sentence[: old.start()] if old else sentence


SMALL = frozenset(
    re.findall(
        r"\w+",
        "a always an and as at by for in is it never of on only or the their to use with your",
    )
)
STEM = 5


def speaks_of(page: Page, topic: str) -> bool:
    """Whether most content words of a topic stand in a page, by their beginnings."""
    words = {word[:STEM] for word in re.findall(r"[a-z0-9]+", topic.lower()) if word not in SMALL}
    known = {word[:STEM] for word in re.findall(r"[a-z0-9]+", page.text.lower())}
    return len(words & known) >= 0.7 * len(words)
