"""What a rule finds in a sentence, and the frame all rules are written in.

A rule is a pattern and what it means: the kind, the type of memory, and how the rule or fact is
worded from the words that matched. It takes the user's words as they are, or turns them by a
fixed form ("why do you X" is "do not X"); it never adds a thought of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from reverie.embedded.extraction.words import Sentence
from reverie.memory.format.entry import Type

TYPE_OF: dict[str, Type] = {
    "correction": "feedback",
    "standing_instruction": "feedback",
    "confirmation": "feedback",
    "preference": "user",
    "role": "user",
    "deadline": "project",
    "project_fact": "project",
    "pointer": "reference",
}


@dataclass(frozen=True, slots=True)
class Found:
    """One thing worth keeping: what kind, its wording, and the reason and range if given."""

    kind: str
    type: Type
    rule: str
    why: str = ""
    how: str = ""
    quote: str = ""  # the words as they were said, where the rule is worded otherwise
    turn: str = ""
    complaint: bool = False  # what was wrong, not yet what to do

    @property
    def text(self) -> str:
        return " ".join(filter(None, (self.rule, self.why, self.how, self.quote)))


Wording: TypeAlias = "Callable[[dict[str, str]], str]"
"""From the named parts of what matched to the rule; nothing where they do not make one."""


@dataclass(frozen=True, slots=True)
class SentenceRule:
    """A pattern over a masked sentence. `asks`: it may be a question; `wording`: how it is
    turned into a rule, where it is; `unless`: what else in the sentence speaks against it."""

    kind: str
    pattern: re.Pattern[str]
    asks: bool = False
    wording: Wording | None = None
    unless: re.Pattern[str] | None = None

    def reads(self, sentence: Sentence, seen: str) -> Found | None:
        """What the sentence says by this rule; `seen` is it without the words that lead in."""
        if sentence.asks and not self.asks:
            return None
        match = self.pattern.search(seen)
        if match is None or (self.unless is not None and self.unless.search(seen)):
            return None
        said = sentence.text[len(sentence.text) - len(seen) :]
        parts = {name: said[match.start(name) : match.end(name)] for name in match.groupdict()}
        turned = self.wording(parts) if self.wording else ""
        if self.wording and not turned:
            return None
        rule = turned or parts.get("rule") or said
        return Found(self.kind, TYPE_OF[self.kind], rule, quote=said if turned else "")


def pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)
