"""Makes strings that a pattern of gitleaks matches, and knows nothing of our scanner.

A parser for the part of RE2's syntax that the rules use, and a generator over what it reads.
Strings come from a seed while the tests run; none is written down anywhere.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import string
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import re2  # pyright: ignore[reportMissingTypeStubs]

PRINTABLE = "".join(chr(n) for n in range(32, 127))
WORD = string.ascii_letters + string.digits + "_"
KINDS = {"d": string.digits, "w": WORD, "s": " \t\n", "S": PRINTABLE.replace(" ", "")}
NAMED = {"alnum": string.ascii_letters + string.digits}

# -- the rules -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    regex: str
    keywords: tuple[str, ...]
    floor: float


def upstream(shared: Path) -> list[Rule]:
    """The rules as they were published: all that have a pattern."""
    with gzip.open(shared / "data" / "secrets_dev.json.gz") as file:
        rows = json.load(file)["rules"]
    return [
        Rule(row["id"], row["regex"], tuple(row["keywords"]), float(row.get("entropy") or 0))
        for row in rows
        if row.get("regex")
    ]


# -- reading a pattern ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chars:
    choices: str


@dataclass(frozen=True, slots=True)
class Anchor:
    pass


@dataclass(frozen=True, slots=True)
class Repeat:
    node: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Group:
    node: Node
    captures: bool


@dataclass(frozen=True, slots=True)
class Sequence:
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    nodes: tuple[Node, ...]


Node = Chars | Anchor | Repeat | Group | Sequence | Choice


class Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def parse(self) -> Node:
        node = self.choice(folded=False, dotall=False)
        assert self.at == len(self.pattern), "the pattern was not read to its end"
        return node

    def peek(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def take(self, text: str) -> bool:
        if not self.peek(text):
            return False
        self.at += len(text)
        return True

    def one(self) -> str:
        self.at += 1
        return self.pattern[self.at - 1]

    def choice(self, *, folded: bool, dotall: bool) -> Node:
        branches: list[Node] = []
        while True:
            nodes: list[Node] = []
            while self.at < len(self.pattern) and not self.peek("|") and not self.peek(")"):
                flag = self.flag()
                if flag is None:
                    nodes.append(self.repeated(self.atom(folded=folded, dotall=dotall)))
                else:
                    folded = flag
            branches.append(Sequence(tuple(nodes)))
            if not self.take("|"):
                break
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def flag(self) -> bool | None:
        """A flag that holds for the rest of its group."""
        return True if self.take("(?i)") else None

    def atom(self, *, folded: bool, dotall: bool) -> Node:
        sign = self.one()
        if sign == "(":
            return self.group(folded=folded, dotall=dotall)
        if sign == "[":
            return Chars(fold(self.members(), folded))
        if sign == ".":
            return Chars(PRINTABLE + "\n" if dotall else PRINTABLE)
        if sign in "^$":
            return Anchor()
        if sign == "\\":
            return self.escape(folded=folded)
        return Chars(fold(sign, folded))

    def group(self, *, folded: bool, dotall: bool) -> Node:
        captures = True
        if self.take("?P<"):
            self.at = self.pattern.index(">", self.at) + 1
        elif self.take("?"):
            captures = False
            flags = self.pattern[self.at : self.pattern.index(":", self.at)]
            self.at += len(flags) + 1
            assert flags in ("", "i", "-i", "s"), flags
            folded = folded if flags in ("", "s") else flags == "i"
            dotall = dotall or flags == "s"
        node = self.choice(folded=folded, dotall=dotall)
        assert self.take(")")
        return Group(node, captures)

    def escape(self, *, folded: bool) -> Node:
        sign = self.one()
        if sign in "bBz":
            return Anchor()
        if sign in KINDS:
            return Chars(KINDS[sign])
        return Chars(fold(self.character(sign), folded))

    def character(self, sign: str) -> str:
        if sign == "x":
            self.at += 2
            return chr(int(self.pattern[self.at - 2 : self.at], 16))
        return {"n": "\n", "r": "\r", "t": "\t"}.get(sign, sign)

    def members(self) -> str:
        negated = self.take("^")
        found = ""
        while not self.peek("]") or not found:
            if self.take("[:"):
                end = self.pattern.index(":]", self.at)
                found += NAMED[self.pattern[self.at : end]]
                self.at = end + 2
                continue
            sign = self.one()
            if sign == "\\":
                sign = self.one()
                if sign in KINDS:
                    found += KINDS[sign]
                    continue
                sign = self.character(sign)
            if self.peek("-") and self.pattern[self.at + 1] != "]":
                self.at += 1
                last = self.one()
                found += "".join(chr(n) for n in range(ord(sign), ord(last) + 1))
            else:
                found += sign
        self.at += 1
        if negated:
            found = "".join(sign for sign in PRINTABLE if sign not in found)
        return "".join(sorted(set(found)))

    def repeated(self, node: Node) -> Node:
        least, most = 1, 1
        if self.take("*"):
            least, most = 0, None
        elif self.take("+"):
            least, most = 1, None
        elif self.take("?"):
            least, most = 0, 1
        elif self.peek("{") and self.pattern[self.at + 1].isdigit():
            end = self.pattern.index("}", self.at)
            low, comma, high = self.pattern[self.at + 1 : end].partition(",")
            least = int(low)
            most = least if not comma else int(high) if high else None
            self.at = end + 1
        else:
            return node
        self.take("?")
        return Repeat(node, least, most)


def fold(choices: str, folded: bool) -> str:
    both = choices.lower() + choices.upper() if folded else choices
    return "".join(sorted(set(both)))


# -- making a string -----------------------------------------------------------------


class Maker:
    """Makes one string; what the capture groups caught is kept in `caught`."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.caught: list[str] = []

    def make(self, node: Node) -> str:
        match node:
            case Chars(choices):
                return self.random.choice(choices)
            case Anchor():
                return ""
            case Repeat(inner, least, most):
                return "".join(self.make(inner) for _ in range(self.count(least, most)))
            case Sequence(nodes):
                return "".join(map(self.make, nodes))
            case Choice(nodes):
                return self.make(self.branch(nodes))
            case Group(inner, captures):
                text = self.make(inner)
                if captures and text:
                    self.caught.append(text)
                return text

    def branch(self, nodes: tuple[Node, ...]) -> Node:
        """Any; but an end of the text where that is one of them: what follows is for others."""
        ends = [node for node in nodes if node == Sequence((Anchor(),))]
        return self.random.choice(ends or nodes)

    def count(self, least: int, most: int | None) -> int:
        top = least + 12 if most is None else most
        shapes = (least, min(top, least + 6), self.random.randint(least, min(top, least + 60)))
        return self.random.choice(shapes)


def entropy(value: str) -> float:
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())


def positives(rule: Rule, count: int, seed: str = "") -> Iterator[str]:
    """Strings that the rule calls a secret: pattern, keyword and entropy all hold."""
    node, published = Parser(rule.regex).parse(), re2.compile(rule.regex)
    made = tried = 0
    while made < count:
        tried += 1
        assert tried < 500 * count, f"{rule.id}: no positives can be made"
        maker = Maker(f"{rule.id}/{seed}/{tried}")
        text = maker.make(node)
        secret = max(maker.caught, key=len, default=text)
        if rule.floor and entropy(secret) <= rule.floor:
            continue
        if not published.search(text):  # a boundary of words that the maker did not heed
            continue
        if not any(word in text.lower() for word in rule.keywords):
            text = f"{maker.random.choice(rule.keywords)} {text}"
        made += 1
        yield text


def one(rule: Rule, seed: str = "one") -> str:
    return next(positives(rule, 1, seed))


CORE = [
    "anthropic-api-key",
    "anthropic-admin-api-key",
    "openai-api-key",
    "aws-access-token",
    "gcp-api-key",
    "github-pat",
    "github-fine-grained-pat",
    "gitlab-pat",
    "slack-bot-token",
    "stripe-access-token",
    "npm-access-token",
    "pypi-upload-token",
    "huggingface-access-token",
    "private-key",
    "jwt",
]


# -- the generator itself ------------------------------------------------------------

pytestmark = pytest.mark.spec("11.secrets")


def test_a_pattern_is_read_as_it_is_meant() -> None:
    node = Parser(r"(?i)\b(ab{2}(?-i:C)[x-z_]{0,3}|\x60)(?:[;\s]|$)").parse()
    made = {Maker(str(n)).make(node) for n in range(200)}
    assert "`" in made
    assert all(text == "`" or text[:4].lower() == "abbC".lower() for text in made)
    assert all(text == "`" or text[3] == "C" for text in made)


def test_it_makes_the_same_from_the_same_seed(shared: Path) -> None:
    rule = upstream(shared)[0]
    assert list(positives(rule, 3)) == list(positives(rule, 3))
    assert list(positives(rule, 3)) != list(positives(rule, 3, seed="other"))


def test_every_rule_with_a_pattern_is_there(shared: Path) -> None:
    assert len(upstream(shared)) == 221
